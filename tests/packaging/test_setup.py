"""The steps of the set-up: what is remembered, what stops them, what is pinned."""

import io
import subprocess
import sys
import venv
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace

import pytest
from bootstrap import checkout as checkout_module
from bootstrap import steps, system
from bootstrap.checkout import Checkout
from bootstrap.console import Console, SetupError

ROOT = Path(__file__).resolve().parents[2]


def _completed(stdout: str = "", code: int = 0) -> "subprocess.CompletedProcess[str]":
    return subprocess.CompletedProcess([], code, stdout=stdout, stderr="")


def _checkout(tmp_path: Path) -> Checkout:
    (tmp_path / "packaging").mkdir()
    (tmp_path / "pyproject.toml").write_text("[project]\n", encoding="utf-8")
    (tmp_path / "packaging" / "constraints.txt").write_text("torch==1\n", encoding="utf-8")
    (tmp_path / "packaging" / "hatch_build.py").touch()
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


@pytest.mark.usefixtures("works")
def test_an_environment_that_a_kill_cut_in_half_is_made_anew(tmp_path: Path, monkeypatch) -> None:
    checkout = _checkout(tmp_path)
    assert checkout.is_sound()

    def die(*arguments: object, **options: object) -> None:
        assert not checkout.is_sound()
        raise SetupError("pip failed.", "Try again.")

    monkeypatch.setattr(steps.pip, "install", die)
    with pytest.raises(SetupError):
        steps.set_up(checkout, dev=False, model=False)
    assert checkout.is_sound()  # pip has ended by itself


def test_a_moved_checkout_is_set_up_again(tmp_path: Path) -> None:
    first = _checkout(tmp_path)
    before = first.fingerprint()
    moved = tmp_path.with_name(f"{tmp_path.name}-moved")
    tmp_path.rename(moved)
    assert Checkout(moved).fingerprint() != before


def test_a_path_beyond_ascii_keeps_the_environment_working(tmp_path: Path) -> None:
    root = tmp_path / "pace line é"
    root.mkdir()
    checkout = _checkout(root)
    venv.create(checkout.environment, with_pip=False)
    (checkout.site_packages / "pip.py").touch()
    (checkout.site_packages / "_paceline.pth").write_text(f"{root}\n", encoding="utf-8")
    assert checkout.python_works()


def test_a_full_disk_is_said_before_anything_is_fetched(tmp_path: Path, monkeypatch) -> None:
    usage = SimpleNamespace(free=1_000_000_000)
    monkeypatch.setattr(steps.shutil, "disk_usage", lambda path: usage)
    with pytest.raises(SetupError, match=r"Only 1\.0 GB are free .* need about 3 GB"):
        steps.set_up(_checkout(tmp_path), dev=False, model=False)


def _install_with(file: str | None, free: int, card: bool, tmp_path: Path, monkeypatch) -> str:
    """What is shown when pip would take this file of torch and so many bytes are free."""
    monkeypatch.setattr(steps.shutil, "disk_usage", lambda path: SimpleNamespace(free=free))
    monkeypatch.setattr(steps.pip, "install", lambda *arguments, **options: None)
    monkeypatch.setattr(steps.pip, "chosen_file", lambda *arguments, **options: file)
    stream = io.StringIO()
    console = Console(stream, steps=1)
    steps._install_packages(_checkout(tmp_path), [], console, wants_cuda=card)
    return stream.getvalue()


CUDA_WHEEL = "torch-2.13.0-cp311-cp311-manylinux_2_28_x86_64.whl"
CPU_WHEEL = "torch-2.13.0+cpu-cp311-cp311-manylinux_2_28_x86_64.whl"


@pytest.mark.parametrize(("card", "advice"), [(False, "PIP_EXTRA_INDEX_URL"), (True, "Free some")])
def test_a_disk_too_full_for_cuda_is_said_before_it_is_fetched(
    card: bool, advice: str, tmp_path: Path, monkeypatch
) -> None:
    with pytest.raises(SetupError, match=r"Only 6\.0 GB .* about 10 GB, as torch brings") as raised:
        _install_with(CUDA_WHEEL, 6_000_000_000, card, tmp_path, monkeypatch)
    assert advice in str(raised.value)
    assert ("PIP_EXTRA_INDEX_URL" in str(raised.value)) != card


@pytest.mark.parametrize(
    ("file", "free", "card", "remarks"),
    [
        (CUDA_WHEEL, 20_000_000_000, False, True),
        (CUDA_WHEEL, 20_000_000_000, True, False),
        (CPU_WHEEL, 4_000_000_000, False, False),
        (CPU_WHEEL, 4_000_000_000, True, False),
        (None, 4_000_000_000, False, False),
    ],
)
def test_cuda_for_no_card_is_remarked_on_before_it_is_fetched(
    file: str | None, free: int, card: bool, remarks: bool, tmp_path: Path, monkeypatch
) -> None:
    shown = _install_with(file, free, card, tmp_path, monkeypatch)
    assert ("about 3 GB to fetch and 7 GB on the disk" in shown) == remarks


def test_a_python_without_venv_and_no_right_to_install_is_one_sentence(
    tmp_path: Path, monkeypatch
) -> None:
    monkeypatch.setattr(steps, "find_spec", lambda name: None)
    monkeypatch.setattr(system, "apt_command", lambda: None)
    package = f"python{sys.version_info.major}.{sys.version_info.minor}-venv"
    with pytest.raises(SetupError, match=f"{package} is missing"):
        steps.set_up(_checkout(tmp_path), dev=False, model=False)


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


@pytest.mark.parametrize("needed", [True, False])
def test_libraries_that_cannot_be_installed_are_named(needed, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(system, "missing_libraries", lambda folder: ("libEGL.so.1",))
    monkeypatch.setattr(system, "apt_command", lambda: None)
    stream = io.StringIO()
    console = Console(stream, steps=1)
    expected = (
        pytest.raises(SetupError, match="lacks a system library") if needed else nullcontext()
    )
    with expected:
        steps._bring_libraries(_checkout(tmp_path), console, needed=needed)
    assert ("The window lacks a system library." in stream.getvalue()) != needed
