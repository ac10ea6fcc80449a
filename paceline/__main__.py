"""The one way in: no arguments open the window, anything else is a command line."""

import importlib.util
import os
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path

EXIT_USER_ERROR = 1
EXIT_BUG = 70
EXIT_INTERRUPTED = 130


def main(argv: Sequence[str] | None = None) -> int:
    """Run Paceline and return its exit code.

    0 done, 1 the person can act (one line on stderr says how), 2 usage, 70 a bug,
    130 stopped with Ctrl+C. ``argv`` None takes the process's own arguments.
    """
    _expose_bundled_packages()
    arguments = list(sys.argv[1:] if argv is None else argv)
    from core.errors import UserError

    try:
        return _run_command(arguments) if arguments else _open_front()
    except UserError as error:
        return _say(str(error), EXIT_USER_ERROR)
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    except Exception as error:  # noqa: BLE001 - the last border before the shell
        if isinstance(error, ModuleNotFoundError) and not _is_ours(error.name):
            return _say(
                f"The package {error.name} is not installed. "
                "Run `make run` in a checkout, or `pip install paceline`.",
                EXIT_USER_ERROR,
            )
        traceback.print_exc()
        return _say("This is a fault of Paceline; please report the lines above.", EXIT_BUG)


def _open_front() -> int:
    from paceline.front import Front, choose_front, window_obstacle

    stdin_is_terminal = sys.stdin is not None and sys.stdin.isatty()
    choice = choose_front(os.environ, platform=sys.platform, stdin_is_terminal=stdin_is_terminal)
    if choice.front is Front.WINDOW:
        obstacle = window_obstacle(os.environ, _qt_platform_plugins())
        if obstacle:
            return _say(
                f"The window lacks a library of the system: {obstacle}. `make run` in a checkout "
                "names the packages to install; `paceline chat` works without.",
                EXIT_USER_ERROR,
            )
        from app.main import main as open_window

        return open_window()
    _say(choice.reason, 0)
    return _run_command(["chat"] if choice.front is Front.CHAT else ["ask", "-"])


def _qt_platform_plugins() -> Path | None:
    """Qt's folder of platform plugins on Linux, found without importing Qt."""
    found = importlib.util.find_spec("PySide6") if sys.platform == "linux" else None
    if found is None or found.origin is None:
        return None
    return Path(found.origin).parent / "Qt" / "plugins" / "platforms"


def _run_command(arguments: list[str]) -> int:
    from core.cli import main as run_command

    return run_command(arguments)


def _say(sentence: str, code: int) -> int:
    if sys.stderr is not None:  # a window started without a console has none
        print(f"paceline: {sentence}", file=sys.stderr, flush=True)
    return code


def _is_ours(module: str | None) -> bool:
    return module is None or module.partition(".")[0] in ("app", "core", "paceline")


def _expose_bundled_packages() -> None:
    """Let ``app`` and ``core`` of an installed wheel be imported; a checkout has no ``_lib``."""
    bundled = Path(__file__).resolve().parent / "_lib"
    if bundled.is_dir() and str(bundled) not in sys.path:
        sys.path.insert(0, str(bundled))


if __name__ == "__main__":
    sys.exit(main())
