"""Packages of the operating system: what Qt still needs here, and how to get it."""

import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

_QT_FILES = (
    "plugins/platforms/libqxcb.so",
    "plugins/platforms/libqoffscreen.so",
    "lib/libQt6Widgets.so.6",
    "lib/libQt6OpenGLWidgets.so.6",
)
_NOT_FOUND = re.compile(r"^\s*(?P<name>\S+) => not found", re.MULTILINE)
_SONAME = re.compile(r"^(?P<stem>.+)\.so\.(?P<major>\d+)$")
_DEBIAN_EXCEPTIONS = {
    "libglib-2.0.so.0": "libglib2.0-0",
    "libgthread-2.0.so.0": "libglib2.0-0",
    "libz.so.1": "zlib1g",
    "libbrotlidec.so.1": "libbrotli1",
}

Run = Callable[[Sequence[str]], "subprocess.CompletedProcess[str]"]


def run_quietly(command: Sequence[str]) -> "subprocess.CompletedProcess[str]":
    """Run ``command`` without a terminal and keep what it prints; never raises on failure."""
    return subprocess.run(
        command,
        check=False,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        encoding="utf-8",
        errors="replace",
        # English, as ldd's answer is read, and UTF-8, as the checkout's path may need.
        env={**os.environ, "DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C.UTF-8"},
    )


def missing_libraries(qt_folder: Path, run: Run = run_quietly) -> tuple[str, ...]:
    """Return the sonames that Qt's platform plugins ask for and the loader does not find.

    The loader itself is asked (``ldd``), so no distribution has to be known. Empty where there
    is no ``ldd``, as outside Linux.
    """
    if shutil.which("ldd") is None:
        return ()
    names: set[str] = set()
    for file in _QT_FILES:
        path = qt_folder / file
        if path.exists():
            names.update(_NOT_FOUND.findall(run(["ldd", str(path)]).stdout))
    return tuple(sorted(names))


def debian_packages(sonames: Iterable[str]) -> tuple[str, ...]:
    """Return Debian's package of each soname, by its naming rule: libfoo.so.1 is in libfoo1."""
    packages = set()
    for soname in sonames:
        match = _SONAME.match(soname)
        if soname in _DEBIAN_EXCEPTIONS or match is None:
            packages.add(_DEBIAN_EXCEPTIONS.get(soname, soname))
            continue
        stem = match["stem"].lower().replace("_", "-")
        packages.add(f"{stem}{'-' if stem[-1].isdigit() else ''}{match['major']}")
    return tuple(sorted(packages))


def apt_command() -> list[str] | None:
    """Return how apt-get can be run without asking anyone, or None where it cannot."""
    if shutil.which("apt-get") is None:
        return None
    if os.geteuid() == 0:
        return ["apt-get"]
    if shutil.which("sudo") and run_quietly(["sudo", "-n", "true"]).returncode == 0:
        return ["sudo", "-n", "apt-get"]
    return None


def apt_install(apt: Sequence[str], packages: Sequence[str], run: Run = run_quietly) -> bool:
    """Install ``packages`` and return whether that worked; the package lists are renewed first."""
    run([*apt, "update", "-q"])  # a failure shows in what follows
    install = [*apt, "install", "-q", "-y", "--no-install-recommends", *packages]
    return run(install).returncode == 0


def install_sentence(packages: Sequence[str], sonames: Sequence[str] = ()) -> str:
    """Return what a person has to do to get ``packages``, or the ``sonames`` outside Debian."""
    if shutil.which("apt-get") or not sonames:
        return f"Run: sudo apt-get install {' '.join(packages)}"
    return f"Install the packages of your distribution that hold: {' '.join(sonames)}"
