"""What the set-up shows of pip's work, and what it says when pip fails."""

import io
from collections.abc import Sequence
from pathlib import Path

import pytest
from bootstrap import pip
from bootstrap.console import Console, SetupError


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


PIP_LINES = (
    "Collecting torch==2.13.0",
    "  Downloading torch-2.13.0-cp311-cp311-linux.whl.metadata (29 kB)",
    "Downloading torch-2.13.0-cp311-cp311-linux.whl (526.6 MB)",
    *(f"Progress {done} of 526600000" for done in (0, 131_650_000, 200_000_000, 526_600_000)),
    "Downloading rich-15.0.0-py3-none-any.whl (310 kB)",
    "Progress 310000 of 310000",
    "Installing collected packages: torch, rich",
    "Successfully installed rich-15.0.0 torch-2.13.0",
)


def _shown(stream: io.StringIO, lines: Sequence[str]) -> str:
    reader = pip.PipReader(Console(stream, steps=1))
    for line in lines:
        reader.feed(line)
    return stream.getvalue()


def test_a_log_shows_the_large_downloads_by_quarters() -> None:
    shown = _shown(io.StringIO(), PIP_LINES)
    assert [line.strip() for line in shown.splitlines()] == [
        "fetching torch 2.13.0 (526.6 MB)",
        "fetching torch 2.13.0: 131.7 of 526.6 MB",
        "unpacking 2 packages (about a minute)",
    ]


def test_a_terminal_shows_every_download_on_one_line() -> None:
    shown = _shown(_Terminal(), PIP_LINES)
    assert shown.count("\n") == 1
    assert "fetching rich 15.0.0: 0.3 of 0.3 MB" in shown


@pytest.mark.parametrize(
    ("answer", "file"),
    [
        (
            '{"install": [{"download_info": {"url": "file:///a b/torch-2%2Bcpu-cp311.whl"}}]}',
            "torch-2+cpu-cp311.whl",
        ),
        ('{"install": []}', None),
        ("ERROR: there is no network", None),
        ("[]", None),
    ],
)
def test_pip_is_asked_which_file_it_would_fetch(answer, file, tmp_path: Path) -> None:
    script = tmp_path / "python"
    script.write_text(f"#!/bin/sh\necho '{answer}'\n")
    script.chmod(0o755)
    assert pip.chosen_file(script, "torch", constraints=tmp_path / "pins") == file


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        (("ERROR: No space left on device", "ERROR: Later"), r"No space left on device\. Check"),
        (("WARNING: Retrying (Retry(total=0))", "ERROR: Later"), r"index does not answer\. Check"),
        ((), r"pip failed\. Check"),
    ],
)
def test_a_failing_pip_is_told_with_its_first_reason_and_the_log(
    lines, reason, tmp_path: Path
) -> None:
    script = tmp_path / "python"
    script.write_text("\n".join(["#!/bin/sh", *(f"echo '{line}'" for line in lines), "exit 1"]))
    script.chmod(0o755)
    console = Console(io.StringIO(), steps=1)
    log = tmp_path / "setup.log"
    with pytest.raises(SetupError, match=reason):
        pip.install(script, ["x"], log=log, console=console)
    assert all(line in log.read_text(encoding="utf-8") for line in lines)
