"""Runs pip and turns what it prints into a few readable lines; the whole goes to a log.

pip's own configuration holds: no index is named and no cache is moved. What pip has fetched
stays in its cache, so a set-up that broke off goes on where it was.
"""

import json
import re
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from urllib.parse import unquote

from bootstrap import system
from bootstrap.console import Console, SetupError

_DOWNLOADING = re.compile(
    r"^\s*Downloading (?:\S*/)?(?P<file>[^/\s]+\.(?:whl|tar\.gz)) \((?P<size>.+)\)"
)
_PROGRESS = re.compile(r"^Progress (?P<done>\d+) of (?P<total>\d+)")
_INSTALLING = re.compile(r"^Installing collected packages: (?P<names>.+)")
_ERROR = re.compile(r"^ERROR: (?P<text>.+)")
_NO_ANSWER = re.compile(r"^WARNING: Retrying \(")
_WORTH_A_LINE = re.compile(r"GB|\b\d{2,}\S* MB")
_QUARTER_FROM_BYTES = 50_000_000


class PipReader:
    """Shows the lines of one pip run on a console and remembers what went wrong."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._package = ""
        self._quarter = 0
        self.error = ""
        self.is_offline = False

    def feed(self, line: str) -> None:
        """Take one line of pip's output, without its newline."""
        if match := _DOWNLOADING.match(line):
            self._begin(match["file"], match["size"])
        elif match := _PROGRESS.match(line):
            self._show_progress(int(match["done"]), int(match["total"]))
        elif match := _INSTALLING.match(line):
            names = match["names"].split(", ")
            what = names[0] if len(names) == 1 else f"{len(names)} packages (about a minute)"
            self._console.note(f"unpacking {what}")
        elif match := _ERROR.match(line):
            self.error = self.error or match["text"]  # the first is the cause
        elif _NO_ANSWER.match(line):
            self.is_offline = True

    def _begin(self, file: str, size: str) -> None:
        name, version = file.split("-")[:2]
        self._package, self._quarter = f"{name} {version.removesuffix('.tar.gz')}", 0
        if not self._console.is_terminal and _WORTH_A_LINE.search(size):
            self._console.note(f"fetching {self._package} ({size})")

    def _show_progress(self, done: int, total: int) -> None:
        megabytes = f"{done / 1e6:.1f} of {total / 1e6:.1f} MB"
        if self._console.is_terminal:
            self._console.progress(f"fetching {self._package}: {megabytes}")
            return
        quarter = 4 * done // total if total >= _QUARTER_FROM_BYTES else 0
        if self._quarter < quarter < 4:
            self._quarter = quarter
            self._console.note(f"fetching {self._package}: {megabytes}")


def chosen_file(python: Path, package: str, *, constraints: Path) -> str | None:
    """Return the name of the file that pip would install of a package, which is not fetched.

    None where pip cannot tell, as without a network: installing then says why.
    """
    options = ["--quiet", "--dry-run", "--ignore-installed", "--no-deps", "--report", "-"]
    command = [str(python), "-m", "pip", "install", *options, "-c", str(constraints), package]
    try:
        report = json.loads(system.run_quietly(command).stdout)
        url: str = report["install"][0]["download_info"]["url"]
    except (ValueError, LookupError, TypeError):
        return None
    return unquote(url).rpartition("/")[2]


def install(python: Path, arguments: Sequence[str], *, log: Path, console: Console) -> None:
    """Run ``python -m pip install`` with ``arguments``; ``log`` is extended by all it prints.

    Raises SetupError with pip's own reason when it fails.
    """
    command = [str(python), "-m", "pip", "install", "--disable-pip-version-check", *arguments]
    reader = PipReader(console)
    with (
        log.open("a", encoding="utf-8") as log_file,
        subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            encoding="utf-8",
            errors="replace",
        ) as process,
    ):
        log_file.write(f"$ {' '.join(command)}\n")
        for line in _lines(process):
            if not _PROGRESS.match(line):
                log_file.write(f"{line}\n")
            reader.feed(line)
    if process.returncode != 0:
        reason = "the package index does not answer" if reader.is_offline else reader.error
        raise SetupError(
            f"The packages could not be installed: {reason or 'pip failed'}".rstrip(".") + ".",
            "Check the network and the free disk space, then run the command again; what is "
            f"already fetched is kept. The whole of pip's output is in {log}.",
        )


def _lines(process: "subprocess.Popen[str]") -> Iterator[str]:
    for line in process.stdout or ():
        yield line.rstrip("\n")
