"""What a command needs from outside, built in one place so that tests can hand in their own."""

import contextlib
import io
import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TextIO

from core.cancel import CancelToken
from core.cli.tty import read_line
from core.events import Event, Loaded, LoadProgress
from core.hub.catalog import CatalogModel
from core.hub.download import OnProgress, download
from core.hub.library import Library, data_root
from core.requests import GenerateRequest, LoadRequest

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer


class EngineLike(Protocol):
    """The part of :class:`core.engine.Engine` that the command line uses."""

    def load(
        self,
        request: LoadRequest,
        on_progress: Callable[[LoadProgress], None],
        cancel: CancelToken,
    ) -> Loaded:
        """Load the models of the request and say what is in force."""

    def generate(self, request: GenerateRequest, cancel: CancelToken) -> Iterator[Event]:
        """Yield the events of one reply."""

    def clear_caches(self) -> None:
        """Forget every prompt that was read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """The streams of one run, the way to an engine and the way to fetch a model."""

    stdin: TextIO
    stdout: TextIO
    stderr: TextIO
    read_line: Callable[[str], str]
    """Shows the prompt it is given and returns a line; raises EOFError at the end of input."""
    engine_factory: Callable[[], EngineLike]
    download: Callable[[CatalogModel, Library, OnProgress, CancelToken], Path]
    debug: bool = False
    """Whether the libraries may speak and a bug shows its traceback."""


class _Dropping(io.BufferedIOBase):
    """The bytes of standard error, lost where they cannot be written.

    They only accompany what a command does: a full disk behind them must not cost a reply.
    """

    def __init__(self, stream: io.TextIOWrapper) -> None:
        self._stream = stream
        # Unbuffered, or what could not be written would be tried once more at the exit.
        raw: Any = getattr(stream.buffer, "raw", stream.buffer)
        self._write: Callable[[memoryview], int | None] = raw.write

    @property
    def name(self) -> str:
        return str(self._stream.name)

    def writable(self) -> bool:
        return True

    def isatty(self) -> bool:
        return self._stream.isatty()

    def fileno(self) -> int:
        return self._stream.fileno()

    def write(self, data: "ReadableBuffer", /) -> int:
        left = memoryview(data).cast("B")
        size = len(left)
        with contextlib.suppress(OSError):
            while left and (written := self._write(left)):
                left = left[written:]
        return size


def _dropping(stream: TextIO) -> TextIO:
    if not isinstance(stream, io.TextIOWrapper):
        return stream
    return io.TextIOWrapper(
        _Dropping(stream), encoding=stream.encoding, errors="replace", write_through=True
    )


def standard_context(*, debug: bool) -> Context:
    """Return the process's own streams and the real engine, which is imported when first made.

    What cannot be written to standard error is lost, and nothing else is.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a narrow encoding must not end a reply
    return Context(
        # A closed stream is None: then there is nothing to read and nobody to write to.
        stdin=sys.stdin or io.StringIO(),
        stdout=sys.stdout or io.StringIO(),
        stderr=_dropping(sys.stderr or io.StringIO()),
        read_line=read_line,
        engine_factory=lambda: _make_engine(debug=debug),
        download=download,
        debug=debug,
    )


def _make_engine(*, debug: bool) -> EngineLike:
    if not debug:
        quiet_libraries()
    from core.engine import Engine  # seconds of imports: only a command that generates pays

    return Engine(prepared_dir=data_root() / "prepared")


def quiet_libraries() -> None:
    """Keep the libraries' warnings and bars off stderr; must run before they are imported."""
    import warnings

    warnings.simplefilter("ignore")
    os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
    os.environ.setdefault("TRANSFORMERS_NO_ADVISORY_WARNINGS", "1")
    os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
