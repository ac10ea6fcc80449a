"""What a wheel carries, and that its launcher finds it."""

import base64
import hashlib
import shutil
import subprocess
import sys
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest
from hatchling.builders.sdist import SdistBuilder
from hatchling.builders.wheel import WheelBuilder

ROOT = Path(__file__).resolve().parents[2]
BUNDLED = ("app", "core", "resources")


def _build_wheel(source: Path, folder: Path) -> Path:
    return Path(next(WheelBuilder(str(source)).build(directory=str(folder), versions=["standard"])))


def _contents(wheel: Path) -> dict[str, str]:
    with zipfile.ZipFile(wheel) as archive:
        return {name: hashlib.sha256(archive.read(name)).hexdigest() for name in archive.namelist()}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return _build_wheel(ROOT, tmp_path_factory.mktemp("wheel"))


def test_a_wheel_has_the_launcher_and_nothing_else_at_its_top(wheel: Path) -> None:
    tops = {name.partition("/")[0] for name in _contents(wheel)}
    assert {top for top in tops if not top.endswith(".dist-info")} == {"paceline"}


def test_a_wheel_carries_every_source_file_of_the_parts(wheel: Path) -> None:
    names = _contents(wheel).keys()
    for part in BUNDLED:
        wanted = {
            f"paceline/_lib/{path.relative_to(ROOT).as_posix()}"
            for path in (ROOT / part).rglob("*")
            if path.is_file() and "__pycache__" not in path.parts
        }
        assert wanted <= names


def test_a_wheel_carries_no_leftovers_and_the_licence(wheel: Path) -> None:
    names = _contents(wheel).keys()
    assert not [name for name in names if "__pycache__" in name or name.endswith(".pyc")]
    assert not [name for name in names if name.startswith(("tests/", "packaging/"))]
    assert [name for name in names if name.endswith("licenses/LICENSE")]


def test_a_wheel_made_from_the_source_archive_is_the_same(wheel: Path, tmp_path: Path) -> None:
    archive = next(SdistBuilder(str(ROOT)).build(directory=str(tmp_path), versions=["standard"]))
    with tarfile.open(archive) as source:
        for member in source:  # by hand: Debian's Python 3.11 has no extraction filters yet
            content = source.extractfile(member)
            if content is not None:
                path = tmp_path / "source" / member.name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(content.read())
    [unpacked] = (tmp_path / "source").iterdir()
    assert _contents(_build_wheel(unpacked, tmp_path / "again")) == _contents(wheel)


def test_the_launcher_of_an_unpacked_wheel_runs_what_the_wheel_carries(
    wheel: Path, tmp_path: Path
) -> None:
    site = tmp_path / "a folder with späces"
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(site)
    program = (
        "import sys\n"
        f"sys.path.insert(0, {str(site)!r})\n"
        "from paceline.__main__ import main\n"
        "code = main(['--version'])\n"
        "import app, core\n"
        "print(app.__file__, core.__file__, sep='\\n')\n"
        "sys.exit(code)\n"
    )
    result = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )
    assert result.returncode == 0, result.stderr
    assert result.stdout.splitlines()[-2:] == [
        str(site / "paceline" / "_lib" / part / "__init__.py") for part in ("app", "core")
    ]


def test_an_editable_install_starts_in_every_locale_wherever_it_lies(tmp_path: Path) -> None:
    source = tmp_path / "pace line é '\""
    for name in ("paceline", "packaging"):
        shutil.copytree(ROOT / name, source / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    (tmp_path / "dist").mkdir()
    built = WheelBuilder(str(source)).build(directory=str(tmp_path / "dist"), versions=["editable"])
    venv.create(tmp_path / "env", with_pip=False)
    [packages] = (tmp_path / "env" / "lib").glob("*/site-packages")
    with zipfile.ZipFile(next(built)) as archive:
        archive.extractall(packages)
        [record] = (name for name in archive.namelist() if name.endswith("/RECORD"))
        assert archive.namelist()[-1] == record
        for line in archive.read(record).decode("utf-8").splitlines():
            name, digest, size = line.split(",")
            content = archive.read(name)
            expected = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).decode()
            assert name == record or (digest, size) == (
                f"sha256={expected.rstrip('=')}",
                str(len(content)),
            )
    for locale in ("C", "C.UTF-8"):
        shown = subprocess.run(
            [tmp_path / "env" / "bin" / "python", "-m", "paceline.front"],
            check=False,
            capture_output=True,
            text=True,
            cwd=tmp_path,
            env={"LC_ALL": locale},
        )
        assert (shown.returncode, shown.stderr) == (0, "")
