"""Sets a checkout up: ``python3 packaging/setup``, as ``make run`` and ``make test`` do.

This file keeps to a grammar that old interpreters read, so that they can say what is wrong.
"""

import os
import shutil
import sys

OLDEST = (3, 11)
NEWER = ("python3.14", "python3.13", "python3.12", "python3.11")


def main() -> int:
    if sys.version_info >= OLDEST:
        from bootstrap.steps import main as set_up

        return set_up(sys.argv[1:])
    found = [path for path in map(shutil.which, NEWER) if path]
    if found:
        os.execv(found[0], [found[0]] + sys.argv)  # noqa: RUF005 - older grammar
    sys.stderr.write(
        "Paceline needs Python %d.%d or newer and this is %d.%d. "  # noqa: UP031
        "Install one (Debian, Ubuntu: sudo apt-get install python3.11 python3.11-venv), "
        "then run the command again.\n" % (OLDEST + sys.version_info[:2])
    )
    return 1


if __name__ == "__main__":
    sys.exit(main())
