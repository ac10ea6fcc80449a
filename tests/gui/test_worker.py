"""The engine's thread: order of events, one end per job, errors, cancelling, closing."""

import sys
import threading
import time
from collections.abc import Iterator

import pytest

from app.engine.work import (
    Cancelled,
    CountTokens,
    Generate,
    ListOptions,
    Load,
    OptionsListed,
    TokensCounted,
    Unload,
    Unloaded,
)
from app.engine.worker import EngineThread, fit_prompt
from app.records import Choice
from core.errors import UserError
from core.events import Failed, Finished, Loaded, LoadProgress, PrefillProgress, Round
from core.requests import GenerateRequest, LoadRequest
from tests.helpers.fake_engine import FakeEngine, Gate

HELLO = GenerateRequest(messages=(("user", "Hello"),))
LOAD = LoadRequest(target="model.gguf")


class Bench:
    """A thread and what came out of it so far."""

    def __init__(self, engine: FakeEngine) -> None:
        self.engine = engine
        self.thread = EngineThread(
            lambda: engine,
            lambda device: OptionsListed((Choice(device, device),), (Choice("int8", "int8"),)),
        )

    def wait(self, job_id: int, *kinds: type) -> list[object]:
        """The job's events up to the first of ``kinds``."""
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline:
            events = [event for id_, event in list(self.thread.events) if id_ == job_id]
            if any(isinstance(event, kinds) for event in events):
                return events
            time.sleep(0.001)
        raise AssertionError(f"no {kinds} among {events}")


@pytest.fixture
def bench() -> Iterator[Bench]:
    made = Bench(FakeEngine())
    made.thread.start()
    yield made
    assert made.thread.shutdown()


def test_a_reply_arrives_in_order_and_ends_once(bench: Bench) -> None:
    job = bench.thread.submit(Generate(HELLO))
    events = bench.wait(job.id, Finished)
    assert [type(event) for event in events] == [
        PrefillProgress,
        PrefillProgress,
        Round,
        Round,
        Round,
        Finished,
    ]
    assert events[-1].text == "A hash table is a kind of **shelf**."


def test_events_after_the_end_are_never_passed_on(bench: Bench) -> None:
    def talkative(request, cancel):
        yield Finished(reason="stop", text="done")
        yield Finished(reason="stop", text="again")

    bench.engine.generate = talkative
    first = bench.thread.submit(Generate(HELLO))
    second = bench.thread.submit(Unload())
    bench.wait(second.id, Unloaded)
    assert len([1 for id_, _ in bench.thread.events if id_ == first.id]) == 1


def test_an_engine_that_raises_mid_reply_leaves_the_thread_usable(bench: Bench) -> None:
    bench.engine.raise_at_round = 2
    events = bench.wait(bench.thread.submit(Generate(HELLO)).id, Failed)
    assert sum(isinstance(event, Round) for event in events) == 2
    assert events[-1].kind == "bug"
    assert "boom at token 5" in events[-1].detail
    assert "boom" not in events[-1].message
    bench.engine.raise_at_round = None
    assert bench.wait(bench.thread.submit(Generate(HELLO)).id, Finished)[-1].reason == "stop"


def test_a_user_error_keeps_its_sentence(bench: Bench) -> None:
    bench.engine.load_error = UserError("There is no such file.", "Choose another.")
    failed = bench.wait(bench.thread.submit(Load(LOAD)).id, Failed)[-1]
    assert failed.kind == "user"
    assert failed.message == "There is no such file. Choose another."


def test_a_stream_that_just_stops_is_a_fault_and_not_a_silence(bench: Bench) -> None:
    bench.engine.generate = lambda request, cancel: iter(())
    failed = bench.wait(bench.thread.submit(Generate(HELLO)).id, Failed)[-1]
    assert failed.kind == "bug"


def test_a_factory_that_fails_is_reported_and_tried_again() -> None:
    attempts = []

    def factory() -> FakeEngine:
        attempts.append(1)
        if len(attempts) == 1:
            raise UserError("Torch is missing.", "Install it.")
        return FakeEngine()

    thread = EngineThread(factory)
    thread.start()
    bench = Bench(FakeEngine())
    bench.thread = thread
    assert bench.wait(thread.submit(Load(LOAD)).id, Failed)[-1].kind == "user"
    assert bench.wait(thread.submit(Load(LOAD)).id, Loaded)
    assert thread.shutdown()


def test_the_engine_is_made_on_its_own_thread() -> None:
    makers = []

    def factory() -> FakeEngine:
        makers.append(threading.current_thread().name)
        return FakeEngine()

    bench = Bench(FakeEngine())
    bench.thread = EngineThread(factory)
    bench.thread.start()
    bench.wait(bench.thread.submit(Load(LOAD)).id, Loaded)
    assert makers == ["paceline-engine"]
    assert bench.thread.shutdown()


def test_a_working_window_holds_the_engine_up_for_a_fraction_of_a_millisecond() -> None:
    """A model gives the interpreter lock up in every operation, and waits to have it back."""
    before = sys.getswitchinterval()
    seen = []

    def factory() -> FakeEngine:
        seen.append(sys.getswitchinterval())
        return FakeEngine()

    bench = Bench(FakeEngine())
    bench.thread = EngineThread(factory)
    bench.thread.start()
    bench.wait(bench.thread.submit(Load(LOAD)).id, Loaded)
    assert bench.thread.shutdown()
    assert seen == [pytest.approx(0.0002)]
    assert sys.getswitchinterval() == before


def test_a_load_reports_progress_and_can_be_cancelled(bench: Bench) -> None:
    bench.engine.load_gate = Gate(open_=False)
    job = bench.thread.submit(Load(LOAD))
    bench.wait(job.id, LoadProgress)
    job.cancel.cancel()
    events = bench.wait(job.id, Cancelled)
    assert isinstance(events[-1], Cancelled)
    bench.engine.load_gate.open()
    assert bench.wait(bench.thread.submit(Load(LOAD)).id, Loaded)


def test_a_job_cancelled_in_the_queue_never_reaches_the_engine(bench: Bench) -> None:
    bench.engine.prefill_gate = Gate(open_=False)
    first = bench.thread.submit(Generate(HELLO))
    assert bench.engine.prefill_gate.reached.wait(30)
    queued = bench.thread.submit(Generate(HELLO))
    counted = bench.thread.submit(CountTokens(HELLO))
    queued.cancel.cancel()
    counted.cancel.cancel()
    bench.engine.prefill_gate.open()
    assert bench.wait(first.id, Finished)
    assert bench.wait(queued.id, Finished)[-1].reason == "cancelled"
    assert bench.wait(counted.id, Cancelled)
    assert len(bench.engine.requests) == 1


def test_tokens_are_counted_against_the_context(bench: Bench) -> None:
    bench.wait(bench.thread.submit(Load(LOAD)).id, Loaded)
    counted = bench.wait(bench.thread.submit(CountTokens(HELLO)).id, TokensCounted)[-1]
    assert counted == TokensCounted(5, 2048)


def test_what_the_machine_can_run_is_asked_on_the_thread(bench: Bench) -> None:
    listed = bench.wait(bench.thread.submit(ListOptions("cpu")).id, OptionsListed)[-1]
    assert listed.devices[0].value == "cpu"
    assert listed.precisions[0].value == "int8"


@pytest.mark.parametrize("where", ["load", "prefill", "round"])
def test_shutting_down_at_any_point_ends_the_thread_in_time(where: str) -> None:
    engine = FakeEngine()
    gate = Gate(open_=False)
    setattr(engine, f"{where}_gate", gate)
    bench = Bench(engine)
    bench.thread.start()
    bench.thread.submit(Load(LOAD) if where == "load" else Generate(HELLO))
    assert gate.reached.wait(30)
    assert bench.thread.shutdown()  # False where the wait ran out
    assert bench.thread.submit(Generate(HELLO)).cancel.cancelled


def test_shutting_down_a_thread_that_never_started_returns_at_once() -> None:
    assert EngineThread(FakeEngine).shutdown()


def _count(request: GenerateRequest) -> int:
    return sum(len(text) for _, text in request.messages)


def test_the_oldest_turns_are_left_out_whole_and_the_system_prompt_stays() -> None:
    request = GenerateRequest(
        messages=(
            ("system", "ssss"),
            ("user", "u" * 40),
            ("assistant", "a" * 40),
            ("user", "v" * 10),
            ("assistant", "b" * 10),
            ("user", "w" * 10),
        ),
        max_new_tokens=10,
    )
    fitted, left_out = fit_prompt(request, 60, _count)
    assert fitted.messages == (request.messages[0], *request.messages[3:])
    assert left_out == 2


def test_a_prompt_that_fits_is_left_alone() -> None:
    assert fit_prompt(HELLO, 1000, _count) == (HELLO, 0)


def test_a_last_message_that_is_too_long_alone_is_refused_in_words() -> None:
    request = GenerateRequest(messages=(("user", "hi"), ("assistant", "yo"), ("user", "w" * 99)))
    with pytest.raises(UserError, match="Shorten it"):
        fit_prompt(request, 50, _count)
