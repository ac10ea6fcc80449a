"""The one thread that owns the engine.

A job goes in through :meth:`EngineThread.submit`; its events come out of
:attr:`EngineThread.events` tagged with the job's id, in order, and end with exactly one terminal
event. Nothing of Qt is used here, so the thread can be tested and closed without an event loop.
"""

import logging
import queue
import sys
import threading
import traceback
from collections import deque
from collections.abc import Callable, Generator, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace

from app.engine.imports import collection_paused
from app.engine.work import (
    Cancelled,
    CountTokens,
    EngineLike,
    Generate,
    Job,
    JobEvent,
    ListOptions,
    Load,
    OptionsListed,
    TokensCounted,
    Unload,
    Unloaded,
    Work,
)
from core.cancel import CancelToken
from core.errors import Cancelled as CancelledError
from core.errors import UserError
from core.events import Failed, Finished, FinishReason, Notice
from core.requests import GenerateRequest

logger = logging.getLogger(__name__)

CLOSE_TIMEOUT_S = 5.0
_SWITCH_INTERVAL_S = 0.0002
"""How long one thread may keep the interpreter lock when another wants it.

Every operation of a model gives the lock up and takes it back. At Python's own 5 ms decoding
stands still while the window works; docs/measurements.md has what this is worth.
"""


class EngineThread:
    """Owns the engine for life and runs one job at a time.

    ``engine_factory`` and ``list_options`` (of a device) are called on the thread, because
    they import torch. ``submit`` and ``shutdown`` are called from one other thread; ``events`` is
    an unbounded deque that the other side must drain.
    """

    def __init__(
        self,
        engine_factory: Callable[[], EngineLike],
        list_options: Callable[[str], OptionsListed] = lambda device: OptionsListed((), ()),
    ) -> None:
        self.events: deque[tuple[int, JobEvent]] = deque()
        self._engine_factory = engine_factory
        self._list_options = list_options
        self._engine: EngineLike | None = None
        self._jobs: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        self._unfinished: dict[int, Job] = {}
        self._lock = threading.Lock()
        self._last_id = 0
        self._closing = False
        self._starting = False
        # A daemon, so that a native call that cannot be interrupted never keeps the program alive.
        self._thread = threading.Thread(target=self._run, name="paceline-engine", daemon=True)

    def start(self) -> None:
        """Start the thread. Jobs may be submitted before."""
        self._thread.start()

    @property
    def starting(self) -> bool:
        """Whether the engine is being imported and made, which nothing can interrupt."""
        return self._starting

    def submit(self, work: Work) -> Job:
        """Queue ``work`` and return its job; after :meth:`shutdown` the job is born cancelled."""
        with self._lock:
            self._last_id += 1
            job = Job(self._last_id, work, CancelToken())
            if self._closing:
                job.cancel.cancel()
                return job
            self._unfinished[job.id] = job
        self._jobs.put(job)
        return job

    def shutdown(self, timeout_s: float = CLOSE_TIMEOUT_S) -> bool:
        """Cancel everything, wait at most ``timeout_s`` and say whether the thread ended.

        An engine that is still starting is not waited for: it has nothing that must be saved.
        """
        with self._lock:
            self._closing = True
            for job in self._unfinished.values():
                job.cancel.cancel()
        self._jobs.put(None)
        if self._thread.ident is not None:
            self._thread.join(0 if self._starting else timeout_s)
        return not self._thread.is_alive()

    def _run(self) -> None:
        with _short_switch_interval():
            while (job := self._jobs.get()) is not None:
                self._perform(job)
            self._engine = None

    def _perform(self, job: Job) -> None:
        ended = False
        try:
            with closing(self._stream(job)) as events:
                for event in events:
                    # Forgotten first: whoever sees the terminal event may trust the job is over.
                    if ended := job.ends_with(event):
                        self._forget(job)
                    self.events.append((job.id, event))
                    if ended:
                        break
        except CancelledError:
            if not ended:
                self._end(job, _given_up(job.work))
        except UserError as error:
            if not ended:
                self._end(job, Failed(kind="user", message=str(error)))
        except Exception:
            logger.exception("job %d (%s) broke off", job.id, type(job.work).__name__)
            if not ended:
                self._end(job, _bug(traceback.format_exc()))
        else:
            if not ended:
                self._end(job, _bug(f"{type(job.work).__name__} ended without a result"))

    def _end(self, job: Job, event: JobEvent) -> None:
        if job.cancel.cancelled and not isinstance(job.work, Generate):
            event = Cancelled()
        self._forget(job)
        self.events.append((job.id, event))

    def _forget(self, job: Job) -> None:
        with self._lock:
            self._unfinished.pop(job.id, None)

    def _stream(self, job: Job) -> Generator[JobEvent, None, None]:
        work = job.work
        if job.cancel.cancelled:
            yield _given_up(work)
            return
        if isinstance(work, ListOptions):
            with self._start():
                options = self._list_options(work.device)
            yield options
            return
        if self._engine is None:
            with self._start():
                self._engine = self._engine_factory()
        engine = self._engine
        if isinstance(work, Load):
            # A load creates so many objects that full collections would hold the window up.
            with collection_paused():
                result = engine.load(
                    work.request, lambda step: self.events.append((job.id, step)), job.cancel
                )
            yield result
        elif isinstance(work, Unload):
            engine.unload()
            yield Unloaded()
        elif isinstance(work, CountTokens):
            loaded = engine.loaded
            limit = loaded.context_limit if loaded else 0
            yield TokensCounted(engine.count_prompt_tokens(work.request), limit)
        else:
            yield from self._generate(engine, work, job.cancel)

    @contextmanager
    def _start(self) -> Iterator[None]:
        self._starting = True
        try:
            yield
        finally:
            self._starting = False

    def _generate(
        self, engine: EngineLike, work: Generate, cancel: CancelToken
    ) -> Generator[JobEvent, None, None]:
        request = work.request
        if work.leave_out_oldest and engine.loaded is not None:
            request, left_out = fit_prompt(
                request, engine.loaded.context_limit, engine.count_prompt_tokens
            )
            if left_out:
                yield Notice(
                    kind="oldest-left-out",
                    message=f"The {left_out} oldest messages were left out so that the chat fits.",
                )
        yield from engine.generate(request, cancel)


@contextmanager
def _short_switch_interval() -> Iterator[None]:
    """Let the threads of the process take turns often inside the block."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(_SWITCH_INTERVAL_S)
    try:
        yield
    finally:
        sys.setswitchinterval(before)


def fit_prompt(
    request: GenerateRequest, limit: int, count: Callable[[GenerateRequest], int]
) -> tuple[GenerateRequest, int]:
    """Drop whole turns from the start until the prompt leaves room for a reply.

    The system message and the last user message stay. Room means ``max_new_tokens``, but at most
    a quarter of ``limit``. Returns the request and how many messages were left out.

    Raises UserError when the last message alone is too long.
    """
    room = min(request.max_new_tokens, limit // 4)
    system = tuple(m for m in request.messages[:1] if m[0] == "system")
    turns = request.messages[len(system) :]
    left_out = 0
    candidate = request
    while count(candidate) + room > limit:
        rest = turns[left_out + 1 :]
        while rest and rest[0][0] != "user":
            rest = rest[1:]
        if not rest:
            raise UserError(
                "The message alone is longer than the model can read.",
                "Shorten it, or lower the longest reply in the settings.",
            )
        left_out = len(turns) - len(rest)
        candidate = replace(request, messages=system + rest)
    return candidate, left_out


def _given_up(work: Work) -> JobEvent:
    if isinstance(work, Generate):
        return Finished(reason=FinishReason.CANCELLED, text="")
    return Cancelled()


def _bug(detail: str) -> Failed:
    return Failed(
        kind="bug",
        message="Something went wrong inside Paceline. Try again; the details are in the log.",
        detail=detail,
    )
