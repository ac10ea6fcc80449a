"""``paceline chat``: a conversation in the terminal that goes on whatever happens in it."""

import re
import signal
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from rich.console import Console
from rich.text import Text

from core.cancel import CancelToken
from core.cli.commands import COMMANDS, Command, parse_line
from core.cli.context import standard_context
from core.cli.reply import LiveReply, fold
from core.cli.tty import echo_off
from core.errors import UserError
from core.events import DrafterOption, Event, Failed, Finished, FinishReason
from core.requests import GenerateRequest
from tests.helpers.cli import CommandLine, Stream, make_model_file
from tests.helpers.fake_engine import FakeEngine, make_round

REPLY = "A hash table is a kind of **shelf**."
SGR = re.compile(r"\x1b\[[0-9;]*m")


@pytest.fixture
def model(tmp_path: Path) -> tuple[str, str]:
    return ("--target", make_model_file(tmp_path))


@pytest.fixture(autouse=True)
def dumb_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    # Nothing is redrawn on it, so that what was shown can be read back.
    monkeypatch.setenv("TERM", "dumb")
    monkeypatch.setenv("COLUMNS", "100")


@dataclass
class ScriptedEngine(FakeEngine):
    """Ends the first replies with these events instead."""

    endings: list[Event] = field(default_factory=list)

    def generate(self, request: GenerateRequest, cancel: CancelToken) -> Iterator[Event]:
        if self.endings:
            self.requests.append(request)
            yield self.endings.pop(0)
            return
        yield from super().generate(request, cancel)


def chat(*typed: str | BaseException, engine: FakeEngine | None = None) -> CommandLine:
    return CommandLine(engine=engine or FakeEngine(), typed=typed, terminal=True)


def test_the_history_goes_with_every_message_and_new_forgets_it(model: tuple[str, str]) -> None:
    engine = FakeEngine()
    command = chat("One", "Two", "/new", "Three", engine=engine)
    assert command.run("chat", *model) == 0
    first, second, third = (request.messages for request in engine.requests)
    assert first == (("user", "One"),)
    assert second == (("user", "One"), ("assistant", REPLY), ("user", "Two"))
    assert third == (("user", "Three"),)
    assert command.out.getvalue().count(REPLY) == 3


def test_the_greeting_names_the_model_what_is_in_force_and_every_origin(
    model: tuple[str, str],
) -> None:
    engine = FakeEngine(notices=("The draft was dropped.",))
    command = chat(engine=engine)
    command.run("chat", *model, "--gamma", "3")
    shown = command.out.getvalue()
    for part in ("fake-135m", "gamma 3", "int8 on cpu", "The draft was dropped."):
        assert part in shown
    for origin in ("accepted", "resampled", "bonus", "plain"):
        assert f"  {origin}  " in shown


@pytest.mark.parametrize(
    ("draft", "head", "lines"),
    [
        (None, None, ["fake-135m"]),
        (None, "mine on fake-135m", ["fake-135m", "head: mine"]),
        ("small", "mine on small", ["fake-135m", "draft: small", "head: mine on small"]),
    ],
)
def test_the_greeting_names_target_draft_and_head_on_a_line_each(
    draft: str | None, head: str | None, lines: list[str], model: tuple[str, str]
) -> None:
    class Pair(FakeEngine):
        def load(self, *arguments):  # type: ignore[no-untyped-def]
            return replace(super().load(*arguments), draft=draft)

    command = chat(engine=Pair(head=head))
    command.run("chat", *model)
    shown = SGR.sub("", command.out.getvalue()).splitlines()
    assert shown[: len(lines)] == lines
    assert shown[len(lines)].startswith("drafter hybrid")


def test_each_reply_is_followed_by_its_numbers(model: tuple[str, str]) -> None:
    command = chat("Hi")
    command.run("chat", *model)
    assert "mean acceptance length 3.00 | 75% accepted" in command.out.getvalue()


def test_regenerate_answers_the_last_message_again(model: tuple[str, str]) -> None:
    engine = FakeEngine()
    chat("One", "Two", "/regenerate", "Three", engine=engine).run("chat", *model)
    _, second, again, third = (request.messages for request in engine.requests)
    assert again == second
    assert third == (*second, ("assistant", REPLY), ("user", "Three"))


def test_regenerate_without_a_message_says_so(model: tuple[str, str]) -> None:
    command = chat("/regenerate")
    assert command.run("chat", *model) == 0
    assert "no message to answer again" in command.complaint


@pytest.mark.parametrize(
    ("line", "part"),
    [
        ("/gamma 99", "gamma is 99"),
        ("/gamma many", "auto or a whole number"),
        ("/rule fair", "rule is 'fair'"),
        ("/drafter magic", "drafter is 'magic'"),
        ("/drafter model", "This pair has no draft model."),
        ("/temperature hot", "needs a number"),
        ("/temperature -1", "temperature is -1"),
        ("/temperature nan", "temperature is nan"),
        ("/colour maybe", "on or off"),
        ("/nope", "no command /nope"),
        ("broken \udcff", "not valid UTF-8"),
        ("/system \udcff", "not valid UTF-8"),
    ],
)
def test_a_wrong_line_gets_one_sentence_and_changes_nothing(
    line: str, part: str, model: tuple[str, str]
) -> None:
    engine = FakeEngine()
    command = chat(line, "Hi", engine=engine)
    assert command.run("chat", *model) == 0
    assert part in command.complaint
    assert command.complaint.count("\n") == 4  # three stages of loading, one complaint
    before = FakeEngine()
    chat("Hi", engine=before).run("chat", *model)
    assert engine.requests == before.requests


def test_commands_change_the_next_reply(model: tuple[str, str]) -> None:
    engine = FakeEngine()
    lines = ("/drafter ngram", "/gamma 2", "/temperature 0", "/system Be brief.", "Hi")
    chat(*lines, engine=engine).run("chat", *model)
    request = engine.requests[0]
    assert (request.speculation.drafter, request.speculation.gamma) == ("ngram", 2)
    assert request.sampling.temperature == 0.0
    assert request.messages == (("system", "Be brief."), ("user", "Hi"))


def test_an_automatic_gamma_and_a_lossy_rule_are_named_under_the_reply(
    model: tuple[str, str],
) -> None:
    engine = FakeEngine()
    command = chat("/gamma auto", "/rule typical", "Hi", engine=engine)
    command.run("chat", *model, "--gamma", "3")
    speculation = engine.requests[0].speculation
    assert (speculation.gamma, speculation.rule) == ("auto", "typical")
    lines = command.out.getvalue().splitlines()
    [said] = [line for line in lines if "mean drafted length 2.67" in line]
    assert "lossy rule typical" in said


def test_system_alone_shows_the_prompt_and_a_dash_removes_it(model: tuple[str, str]) -> None:
    engine = FakeEngine()
    command = chat("/system", "/system -", "Hi", engine=engine)
    command.run("chat", *model, "--system", "Be brief.")
    assert "system prompt: Be brief." in command.out.getvalue()
    assert engine.requests[0].messages == (("user", "Hi"),)


def test_drafter_alone_lists_what_is_available_and_why_not(model: tuple[str, str]) -> None:
    command = chat("/drafter")
    command.run("chat", *model)
    lines = command.out.getvalue().splitlines()
    [off] = [line for line in lines if line.startswith("  model")]
    [on] = [line for line in lines if line.startswith("  hybrid")]
    assert off.endswith("not available: This pair has no draft model.")
    assert on.index("available") == off.index("not available")
    assert on.endswith("available, in use")


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("/gamma", "gamma is 3; it can be auto, or a whole number from 0 to 16"),
        (
            "/rule",
            "rule is typical; it can be exact or block, or one of the lossy ones: "
            "target-prob, typical, ensemble",
        ),
        (
            "/temperature",
            "temperature is 0.5; it can be a number from 0, which always takes the likeliest "
            "token, to 100",
        ),
        ("/colour", "colour is on; it can be on or off"),
    ],
)
def test_a_setting_alone_shows_its_value_and_what_it_can_be(
    line: str, shown: str, model: tuple[str, str]
) -> None:
    engine = FakeEngine()
    command = chat(line, "Hi", engine=engine)
    options = ("--gamma", "3", "--rule", "typical", "--temperature", "0.5")
    assert command.run("chat", *model, *options) == 0
    words = " ".join(SGR.sub("", command.out.getvalue()).split())
    assert shown in words
    assert command.complaint.count("\n") == 3  # three stages of loading
    speculation = engine.requests[0].speculation
    assert (speculation.gamma, speculation.rule) == (3, "typical")


def test_switching_speculation_off_says_why_it_is_off(model: tuple[str, str]) -> None:
    command = chat("/gamma 0")
    command.run("chat", *model)
    assert "speculation is off because gamma is 0" in command.out.getvalue()


def test_help_lists_every_command(model: tuple[str, str]) -> None:
    command = chat("/help")
    command.run("chat", *model)
    for name in COMMANDS:
        assert name in command.out.getvalue()


def test_stats_counts_the_session(model: tuple[str, str]) -> None:
    command = chat("One", "Two", "/stats")
    command.run("chat", *model)
    lines = SGR.sub("", command.out.getvalue()).splitlines()
    at = lines.index("> 2 replies | 18 tokens | 150.0 tokens/s")
    assert lines[at + 1 : at + 3] == [
        "mean acceptance length 3.00 | 75% accepted",
        "from now on: drafter hybrid, gamma auto, rule exact | int8 on cpu",
    ]


def test_before_the_first_reply_stats_has_no_rates(model: tuple[str, str]) -> None:
    command = chat("/stats")
    command.run("chat", *model)
    lines = SGR.sub("", command.out.getvalue()).splitlines()
    at = lines.index("> 0 replies | 0 tokens")
    assert lines[at + 1].startswith("from now on: ")


def test_no_line_of_the_help_is_broken_on_a_narrow_terminal(
    model: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    command = chat("/help")
    command.run("chat", *model)
    assert max(map(len, SGR.sub("", command.out.getvalue()).splitlines())) <= 80


@pytest.mark.parametrize("leave", ["/quit", "/exit"])
def test_quit_leaves(leave: str, model: tuple[str, str]) -> None:
    engine = FakeEngine()
    assert chat(leave, "Hi", engine=engine).run("chat", *model) == 0
    assert engine.requests == []


def test_two_slashes_send_a_message_that_begins_with_one() -> None:
    assert parse_line("//etc/passwd is a file") == "/etc/passwd is a file"
    assert parse_line("/Gamma  4 ") == Command(name="gamma", rest="4")
    assert parse_line("  plain text ") == "plain text"


def test_a_backslash_at_the_end_goes_on_in_the_next_line(model: tuple[str, str]) -> None:
    engine = FakeEngine()
    chat("One\\", "two", engine=engine).run("chat", *model)
    assert engine.requests[0].messages == (("user", "One\ntwo"),)


def test_ctrl_c_at_the_prompt_does_not_leave(model: tuple[str, str]) -> None:
    engine = FakeEngine()
    command = chat(KeyboardInterrupt(), "Hi", engine=engine)
    assert command.run("chat", *model) == 0
    assert len(engine.requests) == 1
    assert "Ctrl+D or /quit leaves." in command.out.getvalue()


def test_ctrl_c_stops_the_reply_keeps_it_and_the_chat_goes_on(model: tuple[str, str]) -> None:
    engine = FakeEngine()
    stopped = iter([True])

    def interrupt_once(_cancel: CancelToken) -> None:
        if next(stopped, False):
            signal.raise_signal(signal.SIGINT)

    engine.round_gate.wait = interrupt_once  # type: ignore[method-assign]
    command = chat("One", "Two", engine=engine)
    assert command.run("chat", *model) == 0
    assert engine.requests[1].messages[1] == ("assistant", "A hash table is")
    assert "stopped" in command.out.getvalue()


def test_a_reply_that_breaks_off_is_kept_and_the_next_message_works(
    model: tuple[str, str],
) -> None:
    failed = Failed(kind="user", message="Memory ran out. Shorten it.", text="A hash")
    engine = ScriptedEngine(endings=[failed])
    command = chat("One", "Two", engine=engine)
    assert command.run("chat", *model) == 0
    assert "Memory ran out. Shorten it." in command.complaint
    assert engine.requests[1].messages[:2] == (("user", "One"), ("assistant", "A hash"))


def test_a_fault_is_one_line_with_the_log_and_the_chat_goes_on(model: tuple[str, str]) -> None:
    failed = Failed(kind="bug", message="The engine failed.", detail="Traceback ...")
    engine = ScriptedEngine(endings=[failed])
    command = chat("One", "Two", engine=engine)
    assert command.run("chat", *model) == 0
    assert "The engine failed." in command.complaint
    assert "faults.log" in command.complaint
    assert "Traceback" not in command.complaint
    assert engine.requests[1].messages == (("user", "Two"),)


def test_a_message_without_a_reply_can_be_asked_again(model: tuple[str, str]) -> None:
    nothing = Finished(reason=FinishReason.CANCELLED, text="")
    engine = ScriptedEngine(endings=[nothing])
    command = chat("One", "/regenerate", "Two", engine=engine)
    assert command.run("chat", *model) == 0
    assert "/regenerate asks again" in command.out.getvalue()
    assert engine.requests[1].messages == (("user", "One"),)
    assert engine.requests[2].messages[:2] == (("user", "One"), ("assistant", REPLY))


def test_a_regeneration_that_gives_nothing_keeps_the_old_reply(model: tuple[str, str]) -> None:
    engine = ScriptedEngine()

    class Once(ScriptedEngine):
        def generate(self, request: GenerateRequest, cancel: CancelToken) -> Iterator[Event]:
            if len(self.requests) == 1:
                self.endings = [Finished(reason=FinishReason.CANCELLED, text="")]
            yield from super().generate(request, cancel)

    engine = Once()
    assert chat("One", "/regenerate", "Two", engine=engine).run("chat", *model) == 0
    assert engine.requests[2].messages[:2] == (("user", "One"), ("assistant", REPLY))


def test_a_model_that_cannot_be_loaded_ends_the_chat_with_one_line(
    model: tuple[str, str],
) -> None:
    command = chat("Hi", engine=FakeEngine(load_error=UserError("It is broken.", "Mend it.")))
    assert command.run("chat", *model) == 1
    assert command.complaint.splitlines()[-1] == "paceline: It is broken. Mend it."


def test_without_a_terminal_standard_input_is_answered_once(model: tuple[str, str]) -> None:
    engine = FakeEngine()
    command = CommandLine(engine=engine, piped="Hi\nthere\n")
    assert command.run("chat", *model) == 0
    assert command.out.getvalue() == f"{REPLY}\n"
    assert [request.messages for request in engine.requests] == [(("user", "Hi\nthere"),)]


def test_the_drafters_of_a_pair_that_can_do_everything_are_switched(
    model: tuple[str, str],
) -> None:
    engine = FakeEngine(drafters=(DrafterOption(kind="model", available=True),))
    chat("/drafter model", "Hi", engine=engine).run("chat", *model)
    assert engine.requests[0].speculation.drafter == "model"


def make_live(
    monkeypatch: pytest.MonkeyPatch, *, width: int = 40, height: int = 12
) -> tuple[Stream, Console]:
    from core.cli.style import make_console

    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", str(width))
    monkeypatch.setenv("LINES", str(height))
    stream = Stream(terminal=True)
    return stream, make_console(stream)


def screen(raw: str, width: int) -> list[str]:
    """What a terminal shows of the few sequences that a live reply uses; it never scrolls."""
    rows, row, column = [[" "] * width], 0, 0
    for sequence, character in re.findall(r"(\x1b\[[0-9;?]*[A-Za-z])|(.)", raw, re.DOTALL):
        if sequence.endswith("A"):
            row -= int(sequence[2:-1])
        elif sequence.endswith("K"):
            rows[row] = [" "] * width
        elif sequence:
            assert sequence[-1] in "mhl", sequence
        elif character == "\r":
            column = 0
        elif character == "\n" or column == width:
            row, column = row + 1, 0
        if character and character not in "\r\n":
            while len(rows) <= row:
                rows.append([" "] * width)
            rows[row][column] = character
            column += 1
        while len(rows) <= row:
            rows.append([" "] * width)
    return ["".join(cells).rstrip() for cells in rows]


def test_a_live_reply_leaves_the_whole_text_once_and_no_numbers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from core.metrics import MetricsAccumulator

    width = 40
    stream, console = make_live(monkeypatch, width=width)
    words = [f" word{index}" for index in range(40)] + ["\n", "```\n", "x = 1\n", "```", "\n", "."]
    numbers = MetricsAccumulator()
    with LiveReply(console) as view:
        for index, word in enumerate(words):
            round_ = make_round(index, [word], rejected=index % 2)
            numbers.add(round_)
            view.show_round(round_, numbers.snapshot())
    shown = screen(stream.getvalue(), width)
    text = " ".join(" ".join(shown).split())
    assert text == " ".join("".join(words).split())


def test_a_live_reply_shows_its_numbers_while_it_comes(monkeypatch: pytest.MonkeyPatch) -> None:
    from core.metrics import summarise

    stream, console = make_live(monkeypatch, width=90)
    with LiveReply(console) as view:
        round_ = make_round(0, ["A", " hash"])
        view.show_round(round_, summarise([round_]))
        shown = screen(stream.getvalue(), 90)
        assert shown[0] == "A hash"
        assert shown[1].startswith("2 tokens | 100.0 tokens/s | mean acceptance length 2.00")


def test_a_live_line_never_grows_past_the_screen(monkeypatch: pytest.MonkeyPatch) -> None:
    from core.metrics import summarise

    stream, console = make_live(monkeypatch, width=20, height=8)
    with LiveReply(console) as view:
        round_ = make_round(0, [f" word{index}" for index in range(60)])
        view.show_round(round_, summarise([round_]))
        assert len(screen(stream.getvalue(), 20)) < 8


def test_a_live_reply_neutralises_control_sequences(monkeypatch: pytest.MonkeyPatch) -> None:
    from core.metrics import summarise

    stream, console = make_live(monkeypatch)
    with LiveReply(console) as view:
        round_ = make_round(0, ["\x1b[2J", "\x1b]0;x\x07"])
        view.show_round(round_, summarise([round_]))
    assert "\x1b[2J" not in stream.getvalue()
    assert "\x1b]0" not in stream.getvalue()
    assert "␛[2J␛]0;x␇" in SGR.sub("", stream.getvalue())


def test_a_line_is_cut_where_the_terminal_would_cut_it() -> None:
    rows = [row.plain for row in fold(Text("abcd日本語ef"), 5)]
    assert rows == ["abcd", "日本", "語ef"]
    assert [row.plain for row in fold(Text("abcde"), 5)] == ["abcde"]
    assert [row.plain for row in fold(Text(""), 5)] == [""]


@pytest.mark.skipif(sys.platform == "win32", reason="the console of Windows has no echo to take")
def test_what_is_typed_during_a_reply_is_not_echoed_into_it_and_not_lost() -> None:
    import os
    import termios

    master, slave = os.openpty()
    with open(slave, "w", encoding="utf-8") as terminal:

        def echoes() -> bool:
            return bool(termios.tcgetattr(slave)[3] & termios.ECHO)

        assert echoes()
        with echo_off(terminal):
            assert not echoes()
            os.write(master, b"typed\n")
        assert echoes()
        assert os.read(slave, 10) == b"typed\n"
    os.close(master)


@pytest.mark.skipif(sys.platform == "win32", reason="the console of Windows edits lines itself")
def test_the_arrow_keys_bring_back_and_edit_what_was_typed(tmp_path: Path) -> None:
    import os
    import subprocess

    program = (
        "from core.cli.context import standard_context\n"
        "read_line = standard_context(debug=False).read_line\n"
        "lines = [read_line('> '), read_line('> ')]\n"
        f"open({str(tmp_path / 'lines')!r}, 'w').write(repr(lines))\n"
    )
    master, slave = os.openpty()
    child = subprocess.Popen(
        [sys.executable, "-c", program], stdin=slave, stdout=slave, stderr=slave
    )
    os.close(slave)
    shown = b""
    for typed in (b"two words\n", b"\x1b[A\x1b[D\x1b[D!\n"):
        while not shown.endswith(b"> "):
            shown += os.read(master, 1000)
        os.write(master, typed)
        shown = b""
    assert child.wait(30) == 0
    os.close(master)
    assert (tmp_path / "lines").read_text() == "['two words', 'two wor!ds']"


@pytest.mark.skipif(sys.platform == "win32", reason="the console of Windows has no echo to take")
@pytest.mark.parametrize("line", ["loading", "fetching", "measuring"])
def test_what_is_typed_during_a_line_of_progress_is_not_echoed_into_it(
    line: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    import argparse
    import os
    import termios

    from core.cli import bench, loading, models
    from core.cli.style import make_console

    monkeypatch.setenv("TERM", "xterm-256color")
    master, slave = os.openpty()
    with open(slave, "w", encoding="utf-8") as terminal:
        context = replace(standard_context(debug=False), stderr=terminal)
        shown = {
            "loading": lambda: loading.progress_line(make_console(terminal)),
            "fetching": lambda: models._progress(argparse.Namespace(json=False), context, ""),
            "measuring": lambda: bench._shown(make_console(terminal)),
        }
        with shown[line]():
            assert not termios.tcgetattr(slave)[3] & termios.ECHO
        assert termios.tcgetattr(slave)[3] & termios.ECHO
    os.close(master)


def test_a_stream_that_is_no_terminal_is_left_alone(tmp_path: Path) -> None:
    with echo_off(Stream()):
        pass
    with (tmp_path / "file").open("w", encoding="utf-8") as file, echo_off(file):
        pass
