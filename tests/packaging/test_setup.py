"""The set-up of a checkout: what it detects, what it says, and what it remembers."""

import io
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace

import pytest
from bootstrap import checkout as checkout_module
from bootstrap import pip, steps, system, torch_build
from bootstrap.checkout import Checkout
from bootstrap.console import Console, SetupError
from bootstrap.torch_build import TorchBuild, torch_advice

ROOT = Path(__file__).resolve().parents[2]
CPU = TorchBuild(version="2.13.0+cpu", cuda=None)
PLAIN_CPU = TorchBuild(version="2.13.0", cuda=None)
CUDA = TorchBuild(version="2.13.0+cu130", cuda="13.0")


def _advice(build: TorchBuild | None, *, has_card: bool = True, platform: str = "linux"):
    return torch_advice(
        has_card=has_card,
        build=build,
        platform=platform,
        python="/a b/python",
        constraints="pins.txt",
    )


def test_a_card_with_a_cpu_build_gets_the_exact_command() -> None:
    assert _advice(CPU).endswith("run: '/a b/python' -m pip install -c pins.txt torch===2.13.0")


@pytest.mark.parametrize(
    ("build", "has_card"), [(CPU, False), (PLAIN_CPU, False), (CUDA, True), (None, True)]
)
def test_nothing_is_advised_where_nothing_can_be_mended(build, has_card) -> None:
    assert _advice(build, has_card=has_card) is None


def test_outside_linux_the_advice_names_the_page_with_the_command() -> None:
    assert "pytorch.org/get-started" in _advice(CPU, platform="win32")


@pytest.mark.parametrize(
    ("text", "build"),
    [
        ("__version__ = '2.13.0+cpu'\ncuda: Optional[str] = None\nhip = None\n", CPU),
        ("__version__ = '2.13.0+cu130'\ncuda: Optional[str] = '13.0'\n", CUDA),
        ("nothing of the kind", None),
    ],
)
def test_the_build_of_torch_is_read_without_importing_it(text, build, tmp_path: Path) -> None:
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch" / "version.py").write_text(text, encoding="utf-8")
    assert torch_build.read_torch_build(tmp_path) == build


def test_no_torch_is_no_build(tmp_path: Path) -> None:
    assert torch_build.read_torch_build(tmp_path) is None


def test_the_installed_torch_is_read_as_it_describes_itself() -> None:
    import torch

    build = torch_build.read_torch_build(Path(torch.__file__).parents[1])
    assert build == TorchBuild(version=torch.__version__, cuda=torch.version.cuda)


def _completed(stdout: str = "", code: int = 0) -> "subprocess.CompletedProcess[str]":
    return subprocess.CompletedProcess([], code, stdout=stdout, stderr="")


def _qt_folder(tmp_path: Path) -> Path:
    plugin = tmp_path / "plugins" / "platforms" / "libqxcb.so"
    plugin.parent.mkdir(parents=True)
    plugin.touch()
    return tmp_path


def test_the_loader_names_the_missing_libraries(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(system.shutil, "which", lambda name: f"/usr/bin/{name}")
    answer = (
        "\tlibxcb-cursor.so.0 => not found\n"
        "\tlibEGL.so.1 => not found\n"
        "\tlibc.so.6 => /lib/libc.so.6 (0x01)\n"
    )
    missing = system.missing_libraries(_qt_folder(tmp_path), lambda command: _completed(answer))
    assert missing == ("libEGL.so.1", "libxcb-cursor.so.0")


def test_nothing_is_missing_where_there_is_no_loader_to_ask(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(system.shutil, "which", lambda name: None)
    assert system.missing_libraries(_qt_folder(tmp_path)) == ()


@pytest.mark.parametrize(
    ("soname", "package"),
    [
        ("libxcb-cursor.so.0", "libxcb-cursor0"),
        ("libxcb-icccm.so.4", "libxcb-icccm4"),
        ("libxkbcommon-x11.so.0", "libxkbcommon-x11-0"),
        ("libX11.so.6", "libx11-6"),
        ("libX11-xcb.so.1", "libx11-xcb1"),
        ("libEGL.so.1", "libegl1"),
        ("libGL.so.1", "libgl1"),
        ("libdbus-1.so.3", "libdbus-1-3"),
        ("libfontconfig.so.1", "libfontconfig1"),
        ("libglib-2.0.so.0", "libglib2.0-0"),
        ("libgthread-2.0.so.0", "libglib2.0-0"),
    ],
)
def test_a_library_is_found_in_debians_package(soname: str, package: str) -> None:
    assert system.debian_packages([soname]) == (package,)


def test_packages_are_named_once_and_in_order() -> None:
    names = system.debian_packages(["libglib-2.0.so.0", "libEGL.so.1", "libgthread-2.0.so.0"])
    assert names == ("libegl1", "libglib2.0-0")


def test_other_distributions_are_told_the_libraries(monkeypatch) -> None:
    monkeypatch.setattr(system.shutil, "which", lambda name: None)
    assert "libEGL.so.1" in system.install_sentence(["libegl1"], ["libEGL.so.1"])
    monkeypatch.setattr(system.shutil, "which", lambda name: f"/usr/bin/{name}")
    sentence = system.install_sentence(["libegl1"], ["libEGL.so.1"])
    assert sentence == "Run: sudo apt-get install libegl1"


@pytest.mark.parametrize(
    ("user", "tools", "sudo_code", "command"),
    [
        (0, {"apt-get"}, 1, ["apt-get"]),
        (0, set(), 0, None),
        (1000, {"apt-get", "sudo"}, 0, ["sudo", "-n", "apt-get"]),
        (1000, {"apt-get", "sudo"}, 1, None),
        (1000, {"apt-get"}, 0, None),
    ],
)
def test_packages_are_installed_only_where_nobody_has_to_be_asked(
    user, tools, sudo_code, command, monkeypatch
) -> None:
    monkeypatch.setattr(system.os, "geteuid", lambda: user)
    monkeypatch.setattr(system.shutil, "which", lambda name: name if name in tools else None)
    monkeypatch.setattr(system, "run_quietly", lambda command: _completed(code=sudo_code))
    assert system.apt_command() == command


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


def test_a_log_shows_the_large_downloads_by_quarters() -> None:
    stream = io.StringIO()
    reader = pip.PipReader(Console(stream, steps=1))
    for line in PIP_LINES:
        reader.feed(line)
    assert [line.strip() for line in stream.getvalue().splitlines()] == [
        "fetching torch 2.13.0 (526.6 MB)",
        "fetching torch 2.13.0: 131.7 of 526.6 MB",
        "unpacking 2 packages (the large ones take a minute)",
    ]


def test_a_terminal_shows_every_download_on_one_line() -> None:
    stream = _Terminal()
    reader = pip.PipReader(Console(stream, steps=1))
    for line in PIP_LINES:
        reader.feed(line)
    shown = stream.getvalue()
    assert shown.count("\n") == 1
    assert "fetching rich 15.0.0: 0.3 of 0.3 MB" in shown


def _checkout(tmp_path: Path) -> Checkout:
    (tmp_path / "packaging").mkdir()
    (tmp_path / "pyproject.toml").write_text("[project]\n", encoding="utf-8")
    (tmp_path / "packaging" / "constraints.txt").write_text("torch==1\n", encoding="utf-8")
    (tmp_path / ".venv").mkdir()
    return Checkout(tmp_path)


@pytest.fixture
def works(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkout_module.Checkout, "python_works", lambda self: True)


@pytest.mark.usefixtures("works")
def test_a_finished_set_up_is_remembered_until_its_inputs_change(tmp_path: Path) -> None:
    checkout = _checkout(tmp_path)
    assert not checkout.holds([])
    checkout.write_stamp(["dev"])
    assert checkout.holds([])
    assert checkout.holds(["dev"])
    assert not checkout.holds(["dev", "cuda"])
    checkout.constraints.write_text("torch==2\n", encoding="utf-8")
    assert not checkout.holds([])


@pytest.mark.usefixtures("works")
@pytest.mark.parametrize("text", ["", "{", "[]", '{"fingerprint": 1}', "null"])
def test_a_damaged_stamp_counts_as_none(text: str, tmp_path: Path) -> None:
    checkout = _checkout(tmp_path)
    checkout.write_stamp([])
    [stamp] = checkout.environment.glob("*.json")
    stamp.write_text(text, encoding="utf-8")
    assert not checkout.holds([])


def test_an_environment_without_a_working_python_is_made_anew(tmp_path: Path) -> None:
    checkout = _checkout(tmp_path)
    checkout.write_stamp([])
    assert not checkout.holds([])


def test_a_moved_checkout_is_set_up_again(tmp_path: Path) -> None:
    first = _checkout(tmp_path)
    before = first.fingerprint()
    moved = tmp_path.with_name(f"{tmp_path.name}-moved")
    tmp_path.rename(moved)
    assert Checkout(moved).fingerprint() != before


def test_a_full_disk_is_said_before_anything_is_fetched(tmp_path: Path, monkeypatch) -> None:
    usage = SimpleNamespace(free=1_000_000_000)
    monkeypatch.setattr(steps.shutil, "disk_usage", lambda path: usage)
    with pytest.raises(SetupError, match=r"Only 1\.0 GB are free .* need about 3 GB"):
        steps.set_up(_checkout(tmp_path), dev=False, model=False)


def test_a_python_without_venv_and_no_right_to_install_is_one_sentence(
    tmp_path: Path, monkeypatch
) -> None:
    monkeypatch.setattr(steps, "find_spec", lambda name: None)
    monkeypatch.setattr(system, "apt_command", lambda: None)
    package = f"python{sys.version_info.major}.{sys.version_info.minor}-venv"
    with pytest.raises(SetupError, match=f"{package} is missing"):
        steps.set_up(_checkout(tmp_path), dev=False, model=False)


def test_a_failing_pip_is_told_with_its_own_reason_and_the_log(tmp_path: Path) -> None:
    script = tmp_path / "python"
    script.write_text("#!/bin/sh\necho 'ERROR: No matching distribution for x'\nexit 1\n")
    script.chmod(0o755)
    console = Console(io.StringIO(), steps=1)
    log = tmp_path / "setup.log"
    with pytest.raises(SetupError, match=r"No matching distribution for x\. Check the network"):
        pip.install(script, ["x"], log=log, console=console)
    assert "No matching distribution" in log.read_text(encoding="utf-8")


def test_every_pinned_package_is_pinned_once_and_exactly() -> None:
    text = (ROOT / "packaging" / "constraints.txt").read_text(encoding="utf-8")
    pins = [line for line in text.splitlines() if line and not line.startswith("#")]
    names = [pin.partition("==")[0].lower().replace("_", "-") for pin in pins]
    assert all("==" in pin for pin in pins)
    assert len(names) == len(set(names))


def test_the_environment_of_the_tests_is_the_pinned_one() -> None:
    from importlib import metadata

    text = (ROOT / "packaging" / "constraints.txt").read_text(encoding="utf-8")
    pins = dict(line.split("==") for line in text.splitlines() if "==" in line)
    installed = {
        dist.metadata["Name"].lower().replace("_", "-"): dist.version.split("+")[0]
        for dist in metadata.distributions()
    }
    differing = {
        name: (version, installed[key])
        for name, version in pins.items()
        if (key := name.lower().replace("_", "-")) in installed and installed[key] != version
    }
    assert differing == {}


def test_set_up_commands_leave_standard_input_alone(monkeypatch) -> None:
    """``echo "Hello" | make run`` needs it for the prompt."""
    seen = []

    def spy(command: Sequence[str], **options: object) -> "subprocess.CompletedProcess[str]":
        seen.append(options["stdin"])
        return _completed()

    monkeypatch.setattr(system.subprocess, "run", spy)
    system.run_quietly(["true"])
    steps._bring_model(Checkout(ROOT), Console(io.StringIO(), steps=1), needed=True)
    assert seen == [subprocess.DEVNULL] * 2


@pytest.fixture
def no_model(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(steps.subprocess, "run", lambda command, **options: _completed(code=1))


@pytest.mark.usefixtures("no_model")
def test_an_unfinished_model_stops_the_tests() -> None:
    console = Console(io.StringIO(), steps=1)
    with pytest.raises(SetupError, match="default model is not complete"):
        steps._bring_model(Checkout(ROOT), console, needed=True)


@pytest.mark.usefixtures("no_model")
def test_an_unfinished_model_does_not_keep_the_window_shut() -> None:
    stream = io.StringIO()
    steps._bring_model(Checkout(ROOT), Console(stream, steps=1), needed=False)
    assert "Going on without the default model" in stream.getvalue()
