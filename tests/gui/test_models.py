"""Loading, failing to load, fetching, and what is in force, from the window's side."""

import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from PySide6.QtWidgets import QLabel

from app.settings import Settings
from app.training_records import Phase
from core.errors import UserError
from core.events import DrafterOption, GammaBelief
from tests.helpers.fake_engine import FakeEngine, Gate, make_round
from tests.helpers.window import Bench, MakeBench


def fetching(*lines: str, code: int = 0) -> Callable[[str], list[str]]:
    script = "\n".join([*(f"print({line!r}, flush=True)" for line in lines), f"exit({code})"])
    return lambda name: [sys.executable, "-c", script]


def test_the_last_pair_is_loaded_at_the_start(make_bench: MakeBench) -> None:
    bench = make_bench()
    assert bench.engine.load_requests[0].target.endswith("model.gguf")
    assert "CPU int8" in bench.window.header.text()


def test_while_the_model_loads_the_text_is_kept_and_the_reason_is_said(
    make_bench: MakeBench,
) -> None:
    engine = FakeEngine(load_gate=Gate(open_=False))
    bench = make_bench(engine, load=False)
    bench.until(engine.load_gate.reached.is_set)
    bench.send("Hello")
    assert bench.window.composer.text() == "Hello"
    assert bench.app.models.reason == "The model is loading."
    engine.load_gate.open()
    bench.until(lambda: bench.app.models.ready)


def test_a_load_that_fails_says_what_to_do_and_can_be_tried_again(make_bench: MakeBench) -> None:
    engine = FakeEngine(load_error=UserError("The file is damaged.", "Fetch it again."))
    bench = make_bench(engine, load=False)
    bench.until(lambda: bench.window.model_bar.text())
    assert bench.window.model_bar.text() == "The file is damaged. Fetch it again."
    assert not bench.app.models.ready
    engine.load_error = None
    bench.window.model_bar.press("retry-load")
    bench.until(lambda: bench.app.models.ready)
    assert bench.window.model_bar.text() == ""


def test_a_load_that_crashes_shows_no_traceback(make_bench: MakeBench) -> None:
    bench = make_bench(FakeEngine(load_error=KeyError("rope_theta")), load=False)
    bench.until(lambda: bench.window.model_bar.text())
    assert "rope_theta" not in bench.window.model_bar.text()


def test_a_load_can_be_given_up(make_bench: MakeBench) -> None:
    engine = FakeEngine(load_gate=Gate(open_=False))
    bench = make_bench(engine, load=False)
    bench.until(engine.load_gate.reached.is_set)
    bench.window.commands.cancel_load.trigger()
    bench.until(lambda: "cancelled" in bench.window.model_bar.text())
    assert bench.window.model_bar.actions_shown() == ["retry-load"]


def test_a_path_that_does_not_exist_leaves_the_loaded_pair_alone(make_bench: MakeBench) -> None:
    bench = make_bench()
    bench.app.preferences.change_paths(target=str(bench.folder / "missing.gguf"))
    bench.window.settings.loadClicked.emit()
    assert "missing.gguf" in bench.window.model_bar.text()
    assert bench.app.models.ready
    assert len(bench.engine.load_requests) == 1


def test_a_pair_that_fails_to_load_leaves_the_way_back_to_the_last_one(
    make_bench: MakeBench, tmp_path: Path
) -> None:
    bench = make_bench()
    other = tmp_path / "other.gguf"
    other.write_bytes(b"GGUF")
    bench.app.preferences.change_paths(target=str(other))
    bench.engine.load_error = UserError("The file is damaged.", "Fetch it again.")
    bench.window.settings.loadClicked.emit()
    bench.until(lambda: bench.window.model_bar.text() == "The file is damaged. Fetch it again.")
    assert bench.window.model_bar.actions_shown() == ["retry-load", "load-last"]
    bench.engine.load_error = None
    bench.window.model_bar.press("load-last")
    bench.until(lambda: bench.app.models.ready)
    assert bench.engine.load_requests[-1] == bench.engine.load_requests[0]
    assert bench.send_and_wait().state == "complete"


def test_no_pair_is_loaded_under_a_reply_that_is_being_written(make_bench: MakeBench) -> None:
    bench = make_bench()
    bench.engine.round_gate = Gate(open_=False)
    bench.send()
    bench.until(lambda: bench.app.chat.reply.running)
    bench.window.commands.load.trigger()
    assert "Stop it before loading" in bench.window.model_bar.text()
    bench.engine.round_gate.open()
    bench.until(lambda: not bench.app.chat.reply.running)
    assert len(bench.engine.load_requests) == 1


def test_a_draft_that_was_dropped_is_said_with_its_reason(make_bench: MakeBench) -> None:
    bench = make_bench(FakeEngine(notices=("The draft did not fit into memory.",)))
    assert bench.window.model_bar.text() == "The draft did not fit into memory."


def test_a_drafter_that_the_pair_lacks_is_off_and_the_next_reply_is_plain(
    make_bench: MakeBench, tmp_path: Path
) -> None:
    model = tmp_path / "model.gguf"
    bench = make_bench(settings=Settings(pair="custom", target_path=str(model), drafter="model"))
    bench.send_and_wait()
    assert bench.engine.requests[-1].speculation.drafter == "off"
    said = [label.text() for label in bench.window.status.findChildren(QLabel)]
    assert any("This pair has no draft model" in text for text in said)


def test_changing_the_precision_asks_for_a_reload_and_loading_does_it(
    make_bench: MakeBench,
) -> None:
    bench = make_bench()
    changed = bench.app.preferences.settings
    bench.window.settings.changed.emit(type(changed)(**{**_plain(changed), "precision": "float32"}))
    bench.window.settings.loadClicked.emit()
    bench.until(lambda: len(bench.engine.load_requests) == 2)
    assert bench.engine.load_requests[1].precision == "float32"
    bench.until(lambda: bench.app.models.ready)


def test_a_plain_reply_gives_the_baseline_and_the_next_its_speed_up(
    make_bench: MakeBench,
) -> None:
    bench = make_bench()
    changed = bench.app.preferences.settings
    plain = type(changed)(**{**_plain(changed), "drafter": "off"})
    bench.window.settings.changed.emit(plain)
    bench.engine.rounds = tuple(make_round(i, [f"w{i} "], gamma=0, accepted=0) for i in range(20))
    assert "speed_up" not in bench.send_and_wait().metrics
    assert bench.app.models.baseline == pytest.approx(50.0)
    bench.window.settings.changed.emit(changed)
    bench.engine.rounds = tuple(make_round(i, ["a ", "b "]) for i in range(20))
    assert bench.send_and_wait("Again").metrics["speed_up"] == pytest.approx(2.0)


@pytest.mark.parametrize("trains", [False, True])
def test_a_speed_up_that_cannot_be_is_not_shown_nor_one_beside_other_work(
    make_bench: MakeBench, trains: bool
) -> None:
    bench = make_bench()
    changed = bench.app.preferences.settings
    bench.window.settings.changed.emit(replace(changed, drafter="off"))
    bench.engine.rounds = tuple(make_round(i, [f"w{i} "], gamma=0, accepted=0) for i in range(20))
    bench.send_and_wait()
    plain = bench.app.models.baseline
    assert plain is not None
    bench.window.settings.changed.emit(changed)
    bench.engine.rounds = tuple(make_round(i, ["a ", "b "]) for i in range(20))
    if trains:
        bench.app.training._phase = Phase.RUNNING
    else:  # the plain speed is of a time when the machine was busy
        bench.app.models._baseline._values = dict.fromkeys(
            bench.app.models._baseline._values, plain / 10
        )
    assert "speed_up" not in bench.send_and_wait("Again").metrics
    assert (bench.app.models.baseline is None) == (not trains)
    bench.app.training._phase = Phase.IDLE


BELIEF = GammaBelief(
    source="model",
    acceptance=(0.2,),
    verify_ms=(20.0, 22.0),
    draft_ms=19.0,
    reason="A draft costs more time than it saves.",
)


def test_an_automatic_gamma_shows_what_it_drafts_while_it_streams(make_bench: MakeBench) -> None:
    gate = Gate(open_=False)
    bench = make_bench(FakeEngine(round_gate=gate))
    header, status = bench.window.header, bench.window.status
    assert "gamma automatic" in header.text()
    assert "now)" not in header.text()

    def while_streaming() -> None:
        bench.send()
        bench.until(lambda: "gamma automatic (3 now)" in header.text())
        assert "gamma automatic (3 now)" in status._speculation.text()
        assert "gamma automatic (3 now)" in bench.window.metrics._in_force.text()
        gate.open()

    bench.until_replied(while_streaming)
    assert "gamma automatic" in header.text()
    assert "now)" not in header.text()


def test_a_fixed_gamma_shows_itself_and_not_what_was_drafted(make_bench: MakeBench) -> None:
    bench = make_bench()
    changed = bench.app.preferences.settings
    bench.window.settings.changed.emit(replace(changed, gamma=7))
    bench.send_and_wait()
    assert "gamma 7" in bench.window.header.text()


def test_a_lossy_rule_is_named_wherever_it_is_in_force(make_bench: MakeBench) -> None:
    bench = make_bench()
    changed = bench.app.preferences.settings
    bench.window.settings.changed.emit(replace(changed, rule="typical", temperature=0.7))
    for line in (
        bench.window.header.text(),
        bench.window.status._speculation.text(),
        bench.window.metrics._in_force.text(),
    ):
        assert "lossy (typical)" in line
    reply = bench.send_and_wait()
    footer = bench.window.transcript.message_widget(reply.id).footer
    assert "lossy (typical)" in footer.words
    assert bench.engine.requests[-1].speculation.rule == "typical"


def test_a_gamma_that_settles_at_zero_is_said_once_with_its_reason(make_bench: MakeBench) -> None:
    rounds = [replace(make_round(i, ["a "], gamma=0), belief=BELIEF) for i in range(40)]
    bench = make_bench(FakeEngine(rounds=tuple(rounds)))
    bench.send_and_wait()
    assert bench.window.metrics._note.text() == f"Automatic gamma has settled at 0. {BELIEF.reason}"


def test_a_reply_slower_than_plain_says_so_beside_its_numbers_also_after_a_restart(
    make_bench: MakeBench,
) -> None:
    bench = make_bench()
    changed = bench.app.preferences.settings
    bench.window.settings.changed.emit(replace(changed, drafter="off"))
    bench.engine.rounds = tuple(make_round(i, ["a "], gamma=0, accepted=0) for i in range(20))
    bench.send_and_wait()
    bench.window.settings.changed.emit(changed)
    slow = (make_round(i, ["a ", "b "], ms=80.0) for i in range(20))
    bench.engine.rounds = tuple(replace(round_, belief=BELIEF) for round_ in slow)
    reply = bench.send_and_wait("Again")
    said = "Speculation is costing speed: this reply ran at 0.50× plain decoding."
    assert bench.window.metrics._note.text() == f"{said} {BELIEF.reason}"
    bench.app.chat.open(None)
    assert not bench.window.metrics._note.isVisible()
    bench.app.chat.open(reply.conversation_id)
    assert bench.window.metrics._note.text() == f"{said} {BELIEF.reason}"
    assert bench.window.metrics.belief.reason.text() == BELIEF.reason


def test_a_missing_model_is_offered_fetched_and_loaded(make_bench: MakeBench) -> None:
    progress = (
        '{"event": "download_progress", "model_id": "smollm2-135m", "stage": "fetching",'
        ' "done_bytes": 40, "total_bytes": 100, "bytes_per_second": 10.0}'
    )
    bench = make_bench(
        settings=Settings(),
        fetch_command=fetching(progress, '{"event": "failed", "message": "No network."}', code=1),
        load=False,
    )
    assert "is not on this computer yet" in bench.window.model_bar.text()
    assert not bench.app.models.ready
    bench.window.model_bar.press("fetch-model")
    bench.until(lambda: bench.window.model_bar.text() == "No network.")
    assert bench.window.model_bar.actions_shown() == ["fetch-model", "not-now"]


def test_a_fetch_can_be_stopped_and_is_offered_again(make_bench: MakeBench) -> None:
    bench = make_bench(
        settings=Settings(),
        fetch_command=lambda name: [sys.executable, "-c", "import time; time.sleep(60)"],
        load=False,
    )
    bench.window.model_bar.press("fetch-model")
    bench.until(lambda: bench.app.fetch.running)
    bench.window.model_bar.press("stop-fetch")
    bench.until(lambda: bench.window.model_bar.actions_shown() == ["fetch-model"])


def test_a_fetch_program_that_is_missing_is_said_in_words(make_bench: MakeBench) -> None:
    bench = make_bench(
        settings=Settings(), fetch_command=lambda name: ["/no/such/program"], load=False
    )
    bench.window.model_bar.press("fetch-model")
    bench.until(lambda: "could not be started" in bench.window.model_bar.text())


def test_drafters_of_the_pair_are_offered_with_reasons(make_bench: MakeBench) -> None:
    engine = FakeEngine(
        drafters=(DrafterOption(kind="model", available=False, reason="Vocabularies differ."),)
    )
    bench = make_bench(engine)
    assert bench.app.models.loaded.drafters[0].reason == "Vocabularies differ."


def _plain(settings: Settings) -> dict[str, object]:
    return {name: getattr(settings, name) for name in Settings.__dataclass_fields__}


def choose(bench: Bench, **choice: object) -> None:
    """Change settings as the panel does."""
    settings = replace(bench.window.settings.settings(), **choice)
    bench.window.settings.set_settings(settings)
    bench.window.settings.changed.emit(settings)


def banner(bench: Bench) -> str:
    return bench.window.settings._banner_text.text()


def test_a_pair_that_could_not_be_fetched_is_not_what_the_next_start_loads(
    make_bench: MakeBench,
) -> None:
    bench = make_bench(fetch_command=fetching(code=1))
    choose(bench, pair="qwen2.5-coder", temperature=0.25)
    bench.window.settings.loadClicked.emit()
    bench.window.model_bar.press("fetch-model")
    bench.until(lambda: "not-now" in bench.window.model_bar.actions_shown())
    bench.close()
    again = make_bench()
    assert again.app.models.ready
    assert again.app.preferences.settings.pair == "custom"
    assert again.app.preferences.settings.temperature == 0.25


def test_a_pair_that_fails_to_load_is_not_what_the_next_start_loads(
    make_bench: MakeBench, tmp_path: Path
) -> None:
    bench = make_bench()
    other = tmp_path / "other.gguf"
    other.write_bytes(b"GGUF")
    choose(bench, target_path=str(other), precision="int8")
    bench.engine.load_error = UserError("The file is damaged.", "Fetch it again.")
    bench.window.settings.loadClicked.emit()
    bench.until(lambda: bench.window.model_bar.text())
    bench.close()
    again = make_bench(FakeEngine())
    assert again.app.preferences.settings.target_path.endswith("model.gguf")
    assert again.app.preferences.settings.precision == "auto"


def test_a_pair_that_was_loaded_is_what_the_next_start_loads(
    make_bench: MakeBench, tmp_path: Path
) -> None:
    bench = make_bench()
    other = tmp_path / "other.gguf"
    other.write_bytes(b"GGUF")
    choose(bench, target_path=str(other))
    bench.window.settings.loadClicked.emit()
    bench.until(lambda: len(bench.engine.load_requests) == 2 and bench.app.models.ready)
    bench.close()
    assert make_bench(FakeEngine()).engine.load_requests[0].target == str(other)


def test_a_choice_made_during_the_first_load_does_not_replace_what_is_loading(
    make_bench: MakeBench,
) -> None:
    engine = FakeEngine(load_gate=Gate(open_=False))
    bench = make_bench(engine, load=False)
    bench.until(engine.load_gate.reached.is_set)
    choose(bench, pair="qwen2.5-coder")
    bench.close()
    assert make_bench(FakeEngine()).app.models.ready


def test_after_load_was_pressed_the_panel_no_longer_says_to_press_it(
    make_bench: MakeBench,
) -> None:
    bench = make_bench()
    choose(bench, target_path="missing.gguf")
    assert "when you press Load" in banner(bench)
    bench.window.settings.loadClicked.emit()
    assert bench.window.settings._banner.isVisible()
    assert "when you press Load" not in banner(bench)
    choose(bench, precision="int8")
    assert "when you press Load" in banner(bench)


def head_placeholder(bench: Bench) -> str:
    return bench.window.settings._fields["head_path"].control.placeholderText()


def test_the_head_of_the_loaded_pair_is_named_until_another_one_is_chosen(
    make_bench: MakeBench, tmp_path: Path
) -> None:
    bench = make_bench(FakeEngine(head="mine-sequential on fake-135m"))
    assert head_placeholder(bench) == "mine-sequential"
    choose(bench, head_path=str(tmp_path / "other"))
    assert head_placeholder(bench) == "looked for when the models are loaded"
    choose(bench, head_path="")
    assert head_placeholder(bench) == "mine-sequential"


def test_a_pair_without_a_head_says_so_where_one_is_chosen(make_bench: MakeBench) -> None:
    reason = "no head was trained for this model"
    option = DrafterOption(kind="mtp", available=False, reason=reason)
    bench = make_bench(FakeEngine(drafters=(*FakeEngine().drafters, option)))
    assert head_placeholder(bench) == reason


def test_the_head_that_drafts_is_named_beside_the_models_and_under_its_replies(
    make_bench: MakeBench,
) -> None:
    bench = make_bench(FakeEngine(head="mine-sequential on fake-135m"))
    window = bench.window
    said = "The head that drafts is mine-sequential on fake-135m."
    assert said in window.header._how.toolTip()
    assert "hybrid · head mine-sequential · gamma" in window.metrics._in_force.text()
    reply = bench.send_and_wait()
    assert window.transcript.message_widget(reply.id).footer._numbers.toolTip() == said
    choose(bench, drafter="ngram")
    assert "head" not in window.header._how.toolTip()
    assert "head mine-sequential" in window.metrics._in_force.text(), "the plotted reply had it"
    bench.app.chat.open(None)
    assert "head" not in window.metrics._in_force.text()
    bench.app.chat.open(reply.conversation_id)
    assert "head mine-sequential" in window.metrics._in_force.text()


PLAIN = tuple(make_round(i, [f"w{i} "], gamma=0, accepted=0) for i in range(20))
DRAFTED = tuple(make_round(i, ["a ", "b "]) for i in range(20))


def measure(bench: Bench) -> None:
    bench.engine.rounds = PLAIN
    bench.window.commands.measure.trigger()
    bench.until(lambda: bench.app.models.baseline is not None and bench.app.models.ready)


def speed_up_shown(bench: Bench) -> str:
    return bench.window.metrics.numbers.grid.text("speed_up")


def test_measuring_the_plain_speed_says_so_and_then_what_it_found(make_bench: MakeBench) -> None:
    gate = Gate(open_=False)
    bench = make_bench(FakeEngine(rounds=PLAIN, round_gate=gate, gate_at_round=10))
    status, said = bench.window.status, "Measuring the plain speed"
    bench.window.commands.measure.trigger()
    assert status._state.text() == f"{said} 0 %"
    assert status._progress.isVisible()
    bench.until(lambda: status._state.text() not in (f"{said} 0 %", ""))
    assert status._state.text().startswith(said)
    assert not bench.window.commands.measure.isEnabled()
    gate.open()
    bench.until(lambda: bench.app.models.ready)
    assert not status._progress.isVisible()
    assert status._state.text() == "Ready"
    assert bench.window.model_bar.text() == "Plain decoding makes 50 tok/s with this model."
    assert bench.window.commands.measure.isEnabled()


def test_an_answer_too_short_to_measure_says_what_to_do(make_bench: MakeBench) -> None:
    bench = make_bench()
    bench.window.commands.measure.trigger()
    bench.until(lambda: bench.window.model_bar.text())
    assert "too short to measure" in bench.window.model_bar.text()
    assert bench.app.models.baseline is None


def test_a_short_reply_is_not_what_is_measured(make_bench: MakeBench) -> None:
    bench = make_bench()
    bench.send_and_wait("Say yes")
    measure(bench)
    assert "Say yes" not in str(bench.engine.requests[-1].messages)


def test_the_plain_speed_cannot_be_measured_under_a_reply(make_bench: MakeBench) -> None:
    bench = make_bench(FakeEngine(round_gate=Gate(open_=False)))

    def while_streaming() -> None:
        bench.send()
        bench.until(lambda: bench.app.chat.reply.running)
        assert not bench.window.commands.measure.isEnabled()
        bench.engine.round_gate.open()

    bench.until_replied(while_streaming)
    assert bench.window.commands.measure.isEnabled()


def test_the_plain_speed_stays_known_with_another_head_and_not_with_another_target(
    make_bench: MakeBench, tmp_path: Path
) -> None:
    bench = make_bench()
    measure(bench)
    choose(bench, head_path=str(tmp_path / "other"))
    bench.window.settings.loadClicked.emit()
    bench.until(lambda: len(bench.engine.load_requests) == 2 and bench.app.models.ready)
    bench.engine.rounds = tuple(make_round(i, ["a ", "b "], ms=80.0) for i in range(20))
    bench.send_and_wait()
    assert "Speculation is costing speed" in bench.window.metrics._note.text()
    other = tmp_path / "other.gguf"
    other.write_bytes(b"GGUF")
    choose(bench, target_path=str(other))
    bench.window.settings.loadClicked.emit()
    bench.until(lambda: len(bench.engine.load_requests) == 3 and bench.app.models.ready)
    assert bench.app.models.baseline is None


def test_the_panel_shows_the_speed_up_that_stands_under_the_reply(make_bench: MakeBench) -> None:
    bench = make_bench()
    measure(bench)
    bench.engine.rounds = DRAFTED
    reply = bench.send_and_wait()
    bench.close()
    again = make_bench(FakeEngine())
    again.app.chat.open(reply.conversation_id)
    assert "2.00×" in again.window.transcript.message_widget(reply.id).footer.words
    assert speed_up_shown(again) == "2.00×"
    assert not again.window.metrics.numbers.waiting.isVisible()


def test_the_panel_says_what_an_unknown_speed_up_waits_for(make_bench: MakeBench) -> None:
    bench = make_bench(FakeEngine(rounds=DRAFTED))
    bench.send_and_wait()
    assert speed_up_shown(bench) == "–"
    assert bench.window.metrics.numbers.waiting.isVisible()
    measure(bench)
    assert speed_up_shown(bench) == "2.00×"
    assert not bench.window.metrics.numbers.waiting.isVisible()


def test_a_pair_that_is_not_here_is_fetched_before_it_is_loaded(make_bench: MakeBench) -> None:
    bench = make_bench()
    choose(bench, pair="qwen2.5-coder")
    assert banner(bench) == "This pair is not on this computer: 1.6 GB to fetch."
    assert bench.window.settings._load.text() == "Fetch and load…"
    bench.window.settings.loadClicked.emit()
    assert bench.window.model_bar.actions_shown() == ["fetch-model"]
    choose(bench, pair="custom", precision="int8")
    assert bench.window.settings._load.text() == "Load"


def test_the_plain_speed_of_one_model_says_nothing_of_a_reply_of_another(
    make_bench: MakeBench, tmp_path: Path
) -> None:
    bench = make_bench(FakeEngine(rounds=DRAFTED))
    bench.send_and_wait()
    choose(bench, precision="int8")
    bench.window.settings.loadClicked.emit()
    bench.until(lambda: len(bench.engine.load_requests) == 2 and bench.app.models.ready)
    measure(bench)
    assert speed_up_shown(bench) == "2.00×", "the same model under another name of its precision"
    other = tmp_path / "other.gguf"
    other.write_bytes(b"GGUF")
    bench.engine.target = "other"
    choose(bench, target_path=str(other))
    bench.window.settings.loadClicked.emit()
    bench.until(lambda: len(bench.engine.load_requests) == 3 and bench.app.models.ready)
    measure(bench)
    assert speed_up_shown(bench) == "–"
    bench.engine.rounds = DRAFTED
    bench.send_and_wait("Again")
    assert speed_up_shown(bench) == "2.00×"
