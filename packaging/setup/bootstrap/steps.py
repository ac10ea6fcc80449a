"""The steps of the set-up, each of which may be stopped and run again."""

import argparse
import fcntl
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from importlib.util import find_spec
from pathlib import Path

from bootstrap import pip, system, torch_build
from bootstrap.checkout import Checkout
from bootstrap.console import Console, SetupError

ROOT = Path(__file__).resolve().parents[3]
DEFAULT_MODEL = "smollm2-135m"
_NEEDED_BYTES = 3_000_000_000
_NEEDED_WITH_CUDA_BYTES = 10_000_000_000  # 7 GB in .venv, and the 3 GB that pip keeps of them
_SPARE_CUDA = "PIP_EXTRA_INDEX_URL set to the CPU index that pytorch.org/get-started names"


def main(argv: Sequence[str]) -> int:
    """Set the checkout up and return 0, or 1 after one sentence that says what to do."""
    parser = argparse.ArgumentParser(prog="packaging/setup", description=__doc__)
    parser.add_argument("--dev", action="store_true", help="with what the tests and linters need")
    parser.add_argument("--no-model", action="store_true", help="without the default model")
    options = parser.parse_args(argv)
    try:
        with _only_one(ROOT / "pyproject.toml"):
            set_up(Checkout(ROOT), dev=options.dev, model=not options.no_model)
    except SetupError as error:
        sys.stderr.write(f"set-up: {error}\n")
        return 1
    except OSError as error:
        sys.stderr.write(
            f"set-up: {error.strerror or error} ({error.filename or ROOT}). "
            "Mend that, then run the command again; it goes on where it stopped.\n"
        )
        return 1
    except KeyboardInterrupt:
        sys.stderr.write("\nset-up: stopped; the same command goes on where it stopped.\n")
        return 130
    return 0


def set_up(checkout: Checkout, *, dev: bool, model: bool) -> None:
    """Bring the environment, Qt's system libraries and the default model into place.

    Raises SetupError where only the person can go on.
    """
    has_card = torch_build.has_nvidia_card()
    extras = frozenset([*(["dev"] if dev else []), *(["cuda"] if has_card else [])])
    fresh = not checkout.holds(extras)
    console = Console(sys.stderr, steps=5 if model else 4, quiet=not fresh)
    if fresh:
        if not checkout.is_sound():
            _check_space(checkout, _NEEDED_BYTES)
        console.step("Python environment in .venv")
        _make_environment(checkout, console)
        console.step("Packages, as pinned in packaging/constraints.txt")
        # What an earlier set-up brought stays: `make run` after `make test` takes nothing away.
        extras |= checkout.read_stamp().extras
        _install_packages(checkout, sorted(extras), console, wants_cuda=has_card)
        checkout.write_stamp(extras)
    console.step("Qt's system libraries")
    _bring_libraries(checkout, console, needed=dev)
    console.step(f"Graphics card: {'NVIDIA' if has_card else 'none of NVIDIA, running on the CPU'}")
    _advise_on_torch(checkout, console, has_card=has_card)
    if model:
        console.step(f"Default model {DEFAULT_MODEL}")
        _bring_model(checkout, console, needed=dev)


def _check_space(checkout: Checkout, needed: int, why: str = "", instead: str = "") -> None:
    free = shutil.disk_usage(checkout.root).free
    if free < needed:
        raise SetupError(
            f"Only {free / 1e9:.1f} GB are free in {checkout.root}; "
            f"the packages need about {needed / 1e9:.0f} GB{why}.",
            f"Free some space, then run the command again{instead}.",
        )


def _prepare_for_cuda(checkout: Checkout, console: Console, *, wanted: bool) -> None:
    """Check the space for a torch with CUDA, and say how to spare it where nothing would use it."""
    if torch_build.read_torch_build(checkout.site_packages) is not None:
        return  # it is here already
    file = pip.chosen_file(checkout.python, "torch", constraints=checkout.constraints)
    if file is None or not torch_build.brings_cuda(file):
        return
    instead = "" if wanted else f", or spare CUDA: run it with {_SPARE_CUDA}"
    _check_space(checkout, _NEEDED_WITH_CUDA_BYTES, ", as torch brings CUDA", instead)
    if not wanted:
        console.note(
            "this torch brings CUDA, about 3 GB to fetch and 7 GB on the disk, and there is no "
            "NVIDIA card here; to spare that, stop with Ctrl+C and start again with "
            f"{_SPARE_CUDA}"
        )


def _make_environment(checkout: Checkout, console: Console) -> None:
    if checkout.is_sound():
        return
    if find_spec("ensurepip") is None:
        _bring_venv(console)
    command = [sys.executable, "-m", "venv", "--clear", str(checkout.environment)]
    result = system.run_quietly(command)
    if result.returncode != 0:
        last = (result.stderr or result.stdout).strip().splitlines()[-1:]
        raise SetupError(
            f"The Python environment could not be made: {''.join(last) or 'venv failed'}.",
            f"Try `{' '.join(command)}` to see more.",
        )


def _bring_venv(console: Console) -> None:
    """Debian ships Python without the part that makes environments."""
    package = f"python{sys.version_info.major}.{sys.version_info.minor}-venv"
    apt = system.apt_command()
    if apt is not None:
        console.note(f"installing {package}")
        if system.apt_install(apt, [package]):
            return
    raise SetupError(
        f"This Python cannot make virtual environments: {package} is missing.",
        f"{system.install_sentence([package])}, then run the command again.",
    )


def _install_packages(
    checkout: Checkout, extras: Sequence[str], console: Console, *, wants_cuda: bool
) -> None:
    constraint = ["-c", str(checkout.constraints)]
    install = partial(pip.install, checkout.python, log=checkout.log, console=console)
    wanted = f"{checkout.root}[{','.join(extras)}]" if extras else str(checkout.root)
    editable = ["--build-constraint", str(checkout.constraints), "--editable", wanted]
    checkout.unpacking.touch()
    try:
        # A recent pip first: it resumes broken downloads and reports progress in lines.
        install(["--upgrade", *constraint, "pip"])
        _prepare_for_cuda(checkout, console, wanted=wants_cuda)
        install(["--progress-bar", "raw", *constraint, *editable])
    finally:  # pip itself takes back what it could not finish; only a kill leaves the mark
        checkout.unpacking.unlink()


def _bring_libraries(checkout: Checkout, console: Console, *, needed: bool) -> None:
    """Install what Qt lacks, or say how; the tests need it, the terminal chat works without."""
    qt_folder = checkout.site_packages / "PySide6" / "Qt"
    missing = system.missing_libraries(qt_folder)
    if not missing:
        return
    packages = system.debian_packages(missing)
    apt = system.apt_command()
    if apt is not None:
        console.note(f"installing {' '.join(packages)}")
        system.apt_install(apt, packages)
        missing = system.missing_libraries(qt_folder)
    if missing:
        what = "a system library" if len(missing) == 1 else f"{len(missing)} system libraries"
        lack = f"The window lacks {what}."
        advice = system.install_sentence(system.debian_packages(missing), missing)
        if needed:
            raise SetupError(lack, advice)
        console.note(f"{lack} {advice}")


def _advise_on_torch(checkout: Checkout, console: Console, *, has_card: bool) -> None:
    advice = torch_build.torch_advice(
        has_card=has_card,
        build=torch_build.read_torch_build(checkout.site_packages),
        platform=sys.platform,
        python=str(checkout.python),
        constraints=str(checkout.constraints),
    )
    if advice:
        console.note(advice)


def _bring_model(checkout: Checkout, console: Console, *, needed: bool) -> None:
    """Let the command line fetch the model: it shows progress, checks the hash and resumes."""
    result = subprocess.run(
        [str(checkout.python), "-m", "paceline", "models", "get", DEFAULT_MODEL],
        check=False,
        cwd=checkout.root,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL if console.is_quiet else sys.stderr,  # progress is on stderr
    )
    if result.returncode == 0:
        return
    if needed:
        raise SetupError(
            "The default model is not complete (the line above says why).",
            "Run the command again; what is already fetched is kept.",
        )
    console.note("Going on without the default model; the next run tries again.")


@contextmanager
def _only_one(file: Path) -> Iterator[None]:
    """Wait for another set-up of the same checkout instead of installing across it."""
    with file.open("rb") as handle:  # the lock goes with the handle, even after a kill
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            sys.stderr.write("set-up: another one is running here; waiting for it.\n")
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
