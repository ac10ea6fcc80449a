"""What opens when Paceline is started without a command."""

import _ctypes
import socket
from collections.abc import Mapping
from pathlib import Path

import pytest

from paceline.front import Front, choose_front, display_answers, window_obstacle


def _choose(environ: Mapping[str, str], *, platform: str = "linux", terminal: bool, up: bool):
    return choose_front(
        environ, platform=platform, stdin_is_terminal=terminal, answers=lambda environ: up
    )


@pytest.mark.parametrize("environ", [{"DISPLAY": ":0"}, {"WAYLAND_DISPLAY": "wayland-0"}])
@pytest.mark.parametrize("terminal", [True, False])
def test_a_display_that_answers_opens_the_window(environ, terminal) -> None:
    choice = _choose(environ, terminal=terminal, up=True)
    assert (choice.front, choice.reason) == (Front.WINDOW, "")


@pytest.mark.parametrize("environ", [{}, {"DISPLAY": ""}])
def test_without_a_display_a_terminal_gets_the_chat_and_one_line(environ) -> None:
    choice = _choose(environ, terminal=True, up=True)
    assert choice.front is Front.CHAT
    assert choice.reason == "There is no display: starting the chat in this terminal."


def test_without_a_display_and_a_terminal_standard_input_is_answered() -> None:
    choice = _choose({}, terminal=False, up=False)
    assert choice.front is Front.ANSWER
    assert "\n" not in choice.reason


def test_a_display_that_does_not_answer_is_named() -> None:
    choice = _choose({"DISPLAY": ":7"}, terminal=True, up=False)
    assert choice.front is Front.CHAT
    assert ":7 does not answer" in choice.reason


@pytest.mark.parametrize("platform", ["win32", "darwin"])
def test_windows_and_macos_always_have_a_display(platform) -> None:
    assert _choose({}, platform=platform, terminal=False, up=False).front is Front.WINDOW


def test_a_qt_platform_that_was_asked_for_is_not_second_guessed() -> None:
    choice = _choose({"QT_QPA_PLATFORM": "offscreen"}, terminal=True, up=False)
    assert choice.front is Front.WINDOW


def test_an_x11_display_over_the_network_answers_only_while_a_server_listens() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        environ = {"DISPLAY": f"127.0.0.1:{server.getsockname()[1] - 6000}.0"}
        assert display_answers(environ)
    assert not display_answers(environ)


def test_a_wayland_display_answers_only_while_a_server_listens(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)  # the kernel limits the length of a socket's path
    environ = {"XDG_RUNTIME_DIR": ".", "WAYLAND_DISPLAY": "wayland-9"}
    assert not display_answers(environ)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as server:
        server.bind("wayland-9")
        server.listen()
        assert display_answers(environ)


@pytest.mark.parametrize(
    "display", ["", "nonsense", ":99999", "/no/such/socket:0", "127.0.0.1:99999"]
)
def test_a_display_that_cannot_be_reached_does_not_answer(display) -> None:
    assert not display_answers({"DISPLAY": display})


@pytest.fixture
def plugins(tmp_path: Path) -> Path:
    """A folder where the X11 plugin cannot be loaded and the Wayland one can."""
    (tmp_path / "libqxcb.so").write_bytes(b"not a library")
    (tmp_path / "libqwayland.so").symlink_to(_ctypes.__file__)
    return tmp_path


@pytest.mark.parametrize(
    ("environ", "is_obstructed"),
    [
        ({"DISPLAY": ":0"}, True),
        ({"WAYLAND_DISPLAY": "wayland-0"}, False),
        ({"WAYLAND_DISPLAY": "wayland-0", "DISPLAY": ":0"}, False),
        ({"DISPLAY": ":0", "QT_QPA_PLATFORM": "offscreen"}, False),
    ],
)
def test_a_plugin_that_cannot_be_loaded_is_found_before_qt_aborts(
    environ, is_obstructed, plugins: Path
) -> None:
    obstacle = window_obstacle(environ, plugins)
    assert ("libqxcb.so" in obstacle) == is_obstructed
    assert bool(obstacle) == is_obstructed


def test_an_unknown_qt_is_left_to_say_for_itself_what_it_lacks(tmp_path: Path) -> None:
    assert window_obstacle({"DISPLAY": ":0"}, None) == ""
    assert window_obstacle({"DISPLAY": ":0"}, tmp_path) == ""
