"""One run of the command line on streams of the test's own, with a scripted engine."""

import io
import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from core.cancel import CancelToken
from core.cli import main
from core.cli.context import Context, EngineLike
from core.hub.catalog import CatalogModel
from core.hub.download import OnProgress
from core.hub.library import Library
from tests.helpers.fake_engine import FakeEngine


class Stream(io.StringIO):
    """A stream that may claim to be a terminal."""

    def __init__(self, text: str = "", *, terminal: bool = False) -> None:
        super().__init__(text)
        self._terminal = terminal

    def isatty(self) -> bool:
        return self._terminal


def no_download(
    model: CatalogModel, library: Library, on_progress: OnProgress, cancel: CancelToken
) -> Path:
    raise AssertionError("nothing should have been fetched")


@dataclass
class CommandLine:
    """Runs one command; ``typed`` are the lines a person types, then comes the end of input.

    A typed item may be an exception, which is raised instead of a line. ``out`` and ``err`` may
    be replaced before the run.
    """

    engine: EngineLike = field(default_factory=FakeEngine)
    piped: str = ""
    typed: Iterable[str | BaseException] = ()
    terminal: bool = False
    debug: bool = False
    download: Callable[[CatalogModel, Library, OnProgress, CancelToken], Path] = no_download
    out: Stream = field(init=False)
    err: Stream = field(init=False)

    def __post_init__(self) -> None:
        self.out = Stream(terminal=self.terminal)
        self.err = Stream(terminal=self.terminal)

    def run(self, *argv: str) -> int:
        typed = iter(self.typed)

        def read_line(prompt: str) -> str:
            self.out.write(prompt)
            line = next(typed, EOFError())
            if isinstance(line, BaseException):
                raise line
            return line

        context = Context(
            stdin=Stream(self.piped, terminal=self.terminal),
            stdout=self.out,
            stderr=self.err,
            read_line=read_line,
            engine_factory=lambda: self.engine,
            download=self.download,
            debug=self.debug,
        )
        return main(argv, context)

    def events(self) -> list[dict[str, Any]]:
        """What was written, as one JSON object a line."""
        return [json.loads(line) for line in self.out.getvalue().splitlines()]

    @property
    def complaint(self) -> str:
        return self.err.getvalue()


def make_model_file(folder: Path) -> str:
    """A path that looks like a model to the command line; the scripted engine never opens it."""
    path = folder / "a model.gguf"
    path.write_bytes(b"GGUF")
    return str(path)
