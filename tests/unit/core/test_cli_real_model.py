"""The command line on the embedded default model, as a person's shell runs it."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.real_model


@pytest.fixture
def shell(tmp_path: Path, prepared_dir: Path) -> dict[str, str]:
    """The environment of a shell whose home has the prepared copies of the other tests."""
    (tmp_path / "prepared").symlink_to(prepared_dir)
    return {**os.environ, "PACELINE_HOME": str(tmp_path)}


def paceline(*argv: str, shell: dict[str, str]) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "paceline", *argv]
    return subprocess.run(command, env=shell, capture_output=True, text=True, check=False)


def test_ask_gives_the_same_reply_as_text_and_as_events_and_no_library_speaks(
    smollm2_path: Path, shell: dict[str, str]
) -> None:
    argv = ["--target", str(smollm2_path), "--temperature", "0", "--max-new-tokens", "8"]
    argv += ["--precision", "float32", "Repeat after me: one two three, one two three"]
    events = paceline("ask", "--json", *argv, shell=shell)
    assert (events.returncode, events.stderr) == (0, "")
    last = json.loads(events.stdout.splitlines()[-1])
    assert last["event"] == "finished"
    text = paceline("ask", *argv, shell=shell)
    assert text.returncode == 0
    assert text.stdout.rstrip("\n") == last["text"].rstrip("\n")
    *stages, summary = text.stderr.splitlines()
    assert "tokens/s" in summary
    assert "float32 on cpu" in summary
    assert all(line.split()[0] in ("Starting", "Looking", "Loading") for line in stages)
