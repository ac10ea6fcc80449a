"""``paceline ask``: one prompt in, one reply out, for a person or for a program."""

import io
import json
import re
import signal
from pathlib import Path
from typing import Any

import pytest

from core.cancel import CancelToken
from core.cli.style import harmless
from core.errors import UserError
from core.events import Notice
from core.requests import Rule, SpeculationParams
from tests.helpers.cli import CommandLine, Stream, make_model_file
from tests.helpers.fake_engine import FakeEngine, make_round

REPLY = "A hash table is a kind of **shelf**."
SGR = re.compile(r"\x1b\[[0-9;]*m")


@pytest.fixture
def model(tmp_path: Path) -> tuple[str, str]:
    return ("--target", make_model_file(tmp_path))


@pytest.fixture(autouse=True)
def terminal_kind(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "100")
    for name in ("NO_COLOR", "FORCE_COLOR", "COLORTERM"):
        monkeypatch.delenv(name, raising=False)


def test_piped_output_is_the_reply_and_nothing_else(model: tuple[str, str]) -> None:
    command = CommandLine()
    assert command.run("ask", "What is a hash table?", *model) == 0
    assert command.out.getvalue() == f"{REPLY}\n"


def test_force_color_puts_no_colour_into_a_pipe(
    model: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    command = CommandLine()
    command.run("ask", "Hi", *model)
    assert "\x1b" not in command.out.getvalue() + command.complaint


def test_the_summary_on_stderr_has_the_numbers_and_what_was_in_force(
    model: tuple[str, str],
) -> None:
    command = CommandLine()
    command.run("ask", "Hi", *model, "--drafter", "ngram", "--gamma", "4")
    summary = command.complaint.splitlines()[-1]
    assert "tokens/s" in summary
    assert "mean acceptance length 3.00" in summary  # accepted 3, 1, 2 in three rounds
    assert "75% accepted" in summary  # 6 of 8
    assert "first token after 0.02 s" in summary
    assert "drafter ngram, gamma 4, rule exact" in summary
    assert "int8 on cpu" in summary


@pytest.mark.parametrize("text", [("",), ("   ",), ("", " \n\t")])
def test_an_empty_prompt_is_refused_before_anything_is_loaded(
    text: tuple[str, ...], model: tuple[str, str]
) -> None:
    command = CommandLine()
    assert command.run("ask", *text, *model) == 1
    assert command.complaint == "paceline: TEXT is empty. Write a prompt, or pipe one in.\n"


@pytest.mark.parametrize("text", [(), ("",)])
def test_with_json_an_empty_prompt_is_one_failed_line(
    text: tuple[str, ...], model: tuple[str, str]
) -> None:
    command = CommandLine(piped=" \n")
    assert command.run("ask", *text, "--json", *model) == 1
    [event] = command.events()
    assert (event["event"], event["kind"]) == ("failed", "user")


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (("--drafter", "off"), "speculation is off because the drafter is off"),
        (("--gamma", "0"), "speculation is off because gamma is 0"),
        (("--drafter", "model"), "speculation is off because This pair has no draft model"),
    ],
)
def test_the_summary_says_why_speculation_is_off(
    options: tuple[str, str], reason: str, model: tuple[str, str]
) -> None:
    command = CommandLine()
    command.run("ask", "Hi", *model, *options)
    assert reason in command.complaint.splitlines()[-1]


def test_every_option_reaches_the_engine(model: tuple[str, str]) -> None:
    engine = FakeEngine()
    command = CommandLine(engine=engine)
    argv = [
        "ask",
        "--device",
        "cpu",
        "--precision",
        "int8",
        "--context-limit",
        "99",
        "--drafter",
        "hybrid",
        "--gamma",
        "3",
        "--rule",
        "typical",
        "--ensemble-weight",
        "0.4",
        "--typical-epsilon",
        "0.2",
        "--typical-delta",
        "0.6",
        "--temperature",
        "0.5",
        "--top-k",
        "4",
        "--top-p",
        "0.9",
        "--min-p",
        "0.1",
        "--repetition-penalty",
        "1.1",
        "--presence-penalty",
        "0.2",
        "--frequency-penalty",
        "0.3",
        "--seed",
        "7",
        "--max-new-tokens",
        "12",
        "--stop",
        "END",
        "--stop",
        "###",
        "--system",
        "Short!",
        "Hello",
        "there",
    ]
    assert command.run(*argv, *model) == 0
    load = engine.load_requests[0]
    assert (load.device, load.precision, load.context_limit) == ("cpu", "int8", 99)
    request = engine.requests[0]
    assert request.messages == (("system", "Short!"), ("user", "Hello there"))
    assert request.speculation == SpeculationParams(
        drafter="hybrid",
        gamma=3,
        rule="typical",
        ensemble_weight=0.4,
        typical_epsilon=0.2,
        typical_delta=0.6,
    )
    sampling = request.sampling
    assert (sampling.temperature, sampling.top_k, sampling.top_p) == (0.5, 4, 0.9)
    assert (sampling.min_p, sampling.repetition_penalty) == (0.1, 1.1)
    assert (sampling.presence_penalty, sampling.frequency_penalty) == (0.2, 0.3)
    assert (sampling.seed, request.max_new_tokens, request.stop) == (7, 12, ("END", "###"))


def test_gamma_is_automatic_unless_a_length_is_given(model: tuple[str, str]) -> None:
    engine = FakeEngine()
    for options in ((), ("--gamma", "auto"), ("--gamma", "2")):
        assert CommandLine(engine=engine).run("ask", "Hi", *model, *options) == 0
    assert [request.speculation.gamma for request in engine.requests] == ["auto", "auto", 2]


def test_the_summary_of_an_automatic_gamma_says_how_long_drafts_were(
    model: tuple[str, str],
) -> None:
    command = CommandLine()
    command.run("ask", "Hi", *model, "--gamma", "auto")
    summary = command.complaint.splitlines()[-1]
    assert "mean drafted length 2.67" in summary  # 8 in three rounds
    assert "gamma auto, rule exact" in summary
    fixed = CommandLine()
    fixed.run("ask", "Hi", *model, "--gamma", "4")
    assert "mean drafted length" not in fixed.complaint


@pytest.mark.parametrize("rule", list(Rule))
def test_the_summary_calls_a_lossy_rule_lossy(rule: Rule, model: tuple[str, str]) -> None:
    command = CommandLine()
    command.run("ask", "Hi", *model, "--rule", rule)
    summary = command.complaint.splitlines()[-1]
    assert f"rule {rule}" in summary
    assert ("lossy" in summary) == rule.lossy


@pytest.mark.parametrize("argv", [("ask",), ("ask", "-")])
def test_a_prompt_can_be_piped_in(argv: tuple[str, ...], model: tuple[str, str]) -> None:
    engine = FakeEngine()
    command = CommandLine(engine=engine, piped="Summarise\nthis: 日本 é\n")
    assert command.run(*argv, *model) == 0
    assert engine.requests[0].messages == (("user", "Summarise\nthis: 日本 é"),)


def test_an_empty_pipe_and_bytes_that_are_no_text_are_refused_in_words(
    model: tuple[str, str],
) -> None:
    command = CommandLine(piped=" \n")
    assert command.run("ask", *model) == 1
    assert "has no text" in command.complaint
    command = CommandLine()
    assert command.run("ask", "broken \udcff", *model) == 1
    assert "not valid UTF-8" in command.complaint


def test_undecodable_standard_input_is_refused_in_words(
    model: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def read(_stream: Stream, _size: int = -1) -> str:
        return b"\xff\xfe".decode("utf-8")

    monkeypatch.setattr(Stream, "read", read)
    command = CommandLine()
    assert command.run("ask", *model) == 1
    assert "not UTF-8" in command.complaint


def test_json_is_one_event_a_line_from_loading_to_exactly_one_end(model: tuple[str, str]) -> None:
    command = CommandLine()
    assert command.run("ask", "--json", "Hi", *model) == 0
    kinds = [event["event"] for event in command.events()]
    assert kinds[0] == "load_progress"
    assert kinds.count("loaded") == 1
    assert kinds.count("round") == 3
    assert kinds[-1] == "finished"
    assert kinds.count("finished") + kinds.count("failed") == 1
    assert command.complaint == ""
    rounds = [event for event in command.events() if event["event"] == "round"]
    texts = "".join(token["text"] for round_ in rounds for token in round_["tokens"])
    assert texts == command.events()[-1]["text"] == REPLY


def test_json_is_flushed_line_by_line(model: tuple[str, str]) -> None:
    class Counting(Stream):
        flushed: list[str]

        def flush(self) -> None:
            super().flush()
            self.flushed = [*getattr(self, "flushed", []), self.getvalue()]

    command = CommandLine()
    command.out = Counting()
    command.run("ask", "--json", "Hi", *model)
    lines = command.out.getvalue().splitlines(keepends=True)
    for count in range(1, len(lines) + 1):
        assert "".join(lines[:count]) in command.out.flushed


def test_json_ends_with_failed_when_the_model_cannot_be_loaded(model: tuple[str, str]) -> None:
    engine = FakeEngine(load_error=UserError("The file is cut off.", "Fetch it again."))
    command = CommandLine(engine=engine)
    assert command.run("ask", "--json", "Hi", *model) == 1
    last = command.events()[-1]
    assert (last["event"], last["kind"]) == ("failed", "user")
    assert last["message"] == "The file is cut off. Fetch it again."
    assert command.complaint == "paceline: The file is cut off. Fetch it again.\n"


def test_json_ends_with_failed_for_a_value_out_of_range(model: tuple[str, str]) -> None:
    command = CommandLine()
    assert command.run("ask", "--json", "--gamma", "40", "Hi", *model) == 1
    assert [event["event"] for event in command.events()] == ["failed"]


def test_json_ends_with_failed_for_a_fault_and_exits_with_70(model: tuple[str, str]) -> None:
    command = CommandLine(engine=FakeEngine(raise_at_round=1))
    assert command.run("ask", "--json", "Hi", *model) == 70
    last = command.events()[-1]
    assert (last["event"], last["kind"]) == ("failed", "bug")
    assert "boom" in last["message"]


@pytest.mark.parametrize("options", [(), ("--json",)])
def test_ctrl_c_keeps_what_there_is_and_exits_with_130(
    options: tuple[str, ...], model: tuple[str, str]
) -> None:
    engine = FakeEngine()

    def interrupt(cancel: CancelToken) -> None:
        signal.raise_signal(signal.SIGINT)
        assert cancel.cancelled

    engine.round_gate.wait = interrupt  # type: ignore[method-assign]
    handler = signal.getsignal(signal.SIGINT)
    command = CommandLine(engine=engine)
    assert command.run("ask", "Hi", *model, *options) == 130
    assert signal.getsignal(signal.SIGINT) is handler
    if options:
        last = command.events()[-1]
        assert (last["event"], last["reason"], last["text"]) == (
            "finished",
            "cancelled",
            "A hash table is",
        )
    else:
        assert command.out.getvalue() == "A hash table is\n"
        assert "stopped" in command.complaint.splitlines()[-1]


def test_a_second_ctrl_c_does_not_wait_for_the_engine(model: tuple[str, str]) -> None:
    engine = FakeEngine()

    def interrupt_twice(_cancel: CancelToken) -> None:
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)
        raise AssertionError("the second interrupt was not heard")

    engine.round_gate.wait = interrupt_twice  # type: ignore[method-assign]
    command = CommandLine(engine=engine)
    assert command.run("ask", "Hi", *model) == 130


def test_a_terminal_shows_each_origin_in_colour_with_a_cue_besides(
    model: tuple[str, str],
) -> None:
    command = CommandLine(terminal=True)
    assert command.run("ask", "Hi", *model) == 0
    shown = command.out.getvalue()
    assert SGR.sub("", shown) == f"{REPLY}\n"
    assert "\x1b[3;32mA" in shown  # accepted: italic, green
    assert "\x1b[1;4;34m is\x1b[0m" in shown  # bonus: bold, underlined, blue
    assert "\x1b[4;33m kind\x1b[0m" in shown  # resampled: underlined, yellow


def test_no_color_keeps_the_cue_and_drops_the_colour(
    model: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    command = CommandLine(terminal=True)
    command.run("ask", "Hi", *model)
    assert "\x1b[4m kind\x1b[0m" in command.out.getvalue()
    assert not re.search(r"\x1b\[[0-9;]*3[0-7]m", command.out.getvalue())


EVIL = ("safe\x1b[2J\x1b]0;title\x07", "\x9b31m", " over\rwritten\x08\x7f", " end")


def test_control_sequences_of_a_reply_never_reach_the_terminal(model: tuple[str, str]) -> None:
    engine = FakeEngine(rounds=(make_round(0, EVIL),))
    command = CommandLine(engine=engine, terminal=True)
    assert command.run("ask", "Hi", *model) == 0
    shown = SGR.sub("", command.out.getvalue())
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]", shown)
    assert "safe␛[2J␛]0;title␇" in shown


def test_control_sequences_of_an_error_or_a_notice_never_reach_the_terminal(
    model: tuple[str, str],
) -> None:
    engine = FakeEngine(before=[Notice(kind="system-role", message="evil \x1b[2J notice")])
    command = CommandLine(engine=engine, terminal=True)
    command.run("ask", "Hi", *model)
    assert "\x1b[2J" not in command.complaint
    assert "evil ␛[2J notice" in command.complaint


def test_text_that_looks_like_markup_is_shown_as_it_is(model: tuple[str, str]) -> None:
    rounds = (make_round(0, ["[bold]", "x", "[/bold]", " :smile:", " [link=a]", "\n\n", "  y"]),)
    command = CommandLine(engine=FakeEngine(rounds=rounds), terminal=True)
    assert command.run("ask", "Hi", *model) == 0
    shown = SGR.sub("", command.out.getvalue())
    assert shown == "[bold]x[/bold] :smile: [link=a]\n\n  y\n"


def test_harmless_text_keeps_letters_tabs_and_newlines() -> None:
    assert harmless("a\tb\n日本 👩‍👩‍👧 é") == "a\tb\n日本 👩‍👩‍👧 é"


def test_a_narrow_encoding_does_not_end_a_reply(
    model: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from core.cli.context import standard_context

    raw = io.BytesIO()
    monkeypatch.setattr("sys.stdout", io.TextIOWrapper(raw, encoding="ascii", errors="strict"))
    context = standard_context(debug=False)
    context.stdout.write("日本 é ok")
    context.stdout.flush()
    assert raw.getvalue() == b"?? ? ok"


def test_json_survives_every_encoding(model: tuple[str, str]) -> None:
    rounds = (make_round(0, ["日本", " 👩‍👩‍👧"]),)
    command = CommandLine(engine=FakeEngine(rounds=rounds))
    command.run("ask", "--json", "Hi", *model)
    assert command.out.getvalue().isascii()
    last: dict[str, Any] = json.loads(command.out.getvalue().splitlines()[-1])
    assert last["text"] == "日本 👩‍👩‍👧"
