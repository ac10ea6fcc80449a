"""Decides what opens when no command is given: the window, the terminal chat or one answer."""

import ctypes
import re
import socket
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

_CONNECT_TIMEOUT_S = 2.0
_X11_DISPLAY = re.compile(r"^(?P<host>.*):(?P<number>\d+)(?:\.\d+)?$")
_X11_FIRST_PORT = 6000


class Front(StrEnum):
    """What the person meets."""

    WINDOW = "window"
    CHAT = "chat"
    """A chat in the terminal."""
    ANSWER = "answer"
    """One answer to the prompt on standard input."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """The front, and the line that says why it is not the window ("" for the window)."""

    front: Front
    reason: str = ""


def choose_front(
    environ: Mapping[str, str],
    *,
    platform: str,
    stdin_is_terminal: bool,
    answers: Callable[[Mapping[str, str]], bool] | None = None,
) -> Choice:
    """Return what to open without a command.

    ``platform`` is ``sys.platform``. ``answers`` tells whether the display named in the
    environment takes connections (Qt would abort the process on one that does not); None asks it.
    """
    if platform in ("win32", "darwin") or environ.get("QT_QPA_PLATFORM"):
        return Choice(front=Front.WINDOW)
    name = environ.get("WAYLAND_DISPLAY") or environ.get("DISPLAY")
    if name and (answers or display_answers)(environ):
        return Choice(front=Front.WINDOW)
    cause = f"The display {name} does not answer" if name else "There is no display"
    if stdin_is_terminal:
        return Choice(front=Front.CHAT, reason=f"{cause}: starting the chat in this terminal.")
    return Choice(
        front=Front.ANSWER,
        reason=f"{cause} and no terminal: answering the prompt on standard input.",
    )


def display_answers(environ: Mapping[str, str]) -> bool:
    """Return whether the Wayland or X11 display of the environment takes a connection."""
    return _wayland_answers(environ) or _x11_answers(environ.get("DISPLAY", ""))


def window_obstacle(environ: Mapping[str, str], plugins: Path | None) -> str:
    """Return the loader's words when no Qt plugin for the display can be loaded, else "".

    Qt would abort the process. ``plugins`` is Qt's folder of platform plugins, None for unknown.
    """
    if plugins is None or environ.get("QT_QPA_PLATFORM"):
        return ""
    names = {"WAYLAND_DISPLAY": "libqwayland.so", "DISPLAY": "libqxcb.so"}
    files = [plugins / file for name, file in names.items() if environ.get(name)]
    reasons = [_load_error(file) for file in files if file.exists()]
    return reasons[-1] if all(reasons) and reasons else ""


def _load_error(library: Path) -> str:
    try:
        ctypes.CDLL(str(library))
    except OSError as error:
        return str(error)
    return ""


def _wayland_answers(environ: Mapping[str, str]) -> bool:
    name = environ.get("WAYLAND_DISPLAY")
    if not name:
        return False
    # An absolute name replaces the folder, as Wayland's own rule has it.
    return _connects(str(Path(environ.get("XDG_RUNTIME_DIR", "/")) / name))


def _x11_answers(display: str) -> bool:
    match = _X11_DISPLAY.match(display)
    if not match:
        return False
    host, number = match["host"].removeprefix("tcp/"), int(match["number"])
    if host in ("", "unix"):
        path = f"/tmp/.X11-unix/X{number}"  # fixed by the X11 protocol
        return _connects(path) or _connects(f"\0{path}")
    if host.startswith("/"):  # a socket path, as on macOS
        return _connects(display)
    try:
        with socket.create_connection((host, _X11_FIRST_PORT + number), _CONNECT_TIMEOUT_S):
            return True
    except (OSError, OverflowError):  # overflow: no port has that number
        return False


def _connects(path: str) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(_CONNECT_TIMEOUT_S)
        try:
            probe.connect(path)
        except (OSError, ValueError):
            return False
    return True
