"""What the set-up detects of the machine, and what it says about it."""

import subprocess
from pathlib import Path

import pytest
from bootstrap import system, torch_build
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


@pytest.mark.parametrize(
    ("file", "brings"),
    [
        ("torch-2.13.0-cp311-cp311-manylinux_2_28_x86_64.whl", True),
        ("torch-2.13.0+cu130-cp311-cp311-manylinux_2_28_x86_64.whl", True),
        ("torch-2.13.0+cpu-cp311-cp311-manylinux_2_28_x86_64.whl", False),
        ("torch-2.13.0-cp311-none-macosx_11_0_arm64.whl", False),
        ("torch-2.13.0-cp311-cp311-win_amd64.whl", False),
    ],
)
def test_a_file_of_torch_tells_whether_cuda_comes_with_it(file: str, brings: bool) -> None:
    assert torch_build.brings_cuda(file) == brings


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
