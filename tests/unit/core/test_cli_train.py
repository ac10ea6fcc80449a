"""``paceline train-mtp``: its lines, its words on standard input and what it shows."""

import io
import json
import threading

import pytest

from core.cancel import CancelToken
from core.cli.exits import EXIT_BROKEN_PIPE
from core.cli.train_mtp import numbers, told
from core.hub.library import data_root
from core.training import events
from core.training.control import Control
from tests.helpers.checkpoints import save_folder
from tests.helpers.cli import CommandLine, Stream
from tests.helpers.tiny import tiny_llama
from tests.helpers.tiny_tokenizers import CHATML, byte_level


@pytest.fixture(scope="module")
def target(tmp_path_factory):
    tokenizer = byte_level(chat_template=CHATML, eos="<|im_end|>")
    folder = tmp_path_factory.mktemp("model") / "tiny"
    return str(save_folder(folder, tiny_llama(vocab=len(tokenizer)), tokenizer))


@pytest.fixture
def arguments(target, tmp_path, monkeypatch):
    monkeypatch.setenv("PACELINE_HOME", str(tmp_path / "home"))
    data = tmp_path / "own.txt"
    data.write_text("\n".join(f"Say {number}" for number in range(12)))
    return [
        "train-mtp",
        *("--target", target, "--data", str(data), "--own-only"),
        *("--tokens", "200", "--reply-tokens", "12", "--epochs", "4", "--vocabulary", "100"),
        *("--batch-tokens", "300", "--temperatures", "0,1"),
    ]


def test_json_lines_tell_all_of_a_run(arguments):
    line = CommandLine()
    assert line.run(*arguments, "--json") == 0
    heard = line.events()
    assert heard[0] == {
        "event": "stage_started",
        "stage": "load",
        "detail": "tiny",
        "resumed": False,
    }
    assert heard[-1]["event"] == "finished"
    assert heard[-1]["path"].startswith(str(data_root() / "heads"))
    assert {"disk_use", "progress", "kept", "evaluated", "notice"} <= {e["event"] for e in heard}
    assert line.complaint == ""


def test_a_person_sees_what_happens_and_where_the_head_is(arguments):
    line = CommandLine()
    assert line.run(*arguments) == 0
    assert "The head is ready: " in line.out.getvalue()
    assert "mean acceptance length" in line.complaint
    assert "needs up to" in line.complaint


def test_a_terminal_gets_bars(arguments):
    line = CommandLine(terminal=True)
    assert line.run(*arguments) == 0
    assert "The head is ready: " in line.out.getvalue()


def test_the_word_cancel_stops_with_everything_kept(arguments):
    line = CommandLine(piped="cancel\n")
    code = line.run(*arguments, "--json")
    assert code == 130
    assert line.events()[-1]["event"] == "stopped"


def test_bad_data_is_refused_in_words_with_the_line(arguments, tmp_path):
    bad = tmp_path / "bad.jsonl"
    bad.write_text('{"text": "fine"}\n{"txt": 1}\n')
    line = CommandLine()
    assert line.run(*arguments, "--data", str(bad), "--json") == 1
    last = line.events()[-1]
    assert last["event"] == "failed"
    assert last["kind"] == "user"
    assert "Line 2 of bad.jsonl" in last["message"]
    assert "Line 2 of bad.jsonl" in line.complaint


def test_a_host_that_is_not_there_is_refused(arguments):
    line = CommandLine()
    assert line.run(*arguments, "--host", "draft") == 1
    assert "no draft model" in line.complaint


@pytest.mark.parametrize("wrong", [["--layers", "a,b"], ["--weights", "x"], ["--kind", "medusa"]])
def test_a_command_line_that_is_not_understood_is_usage(arguments, wrong):
    assert CommandLine().run(*arguments, *wrong) == 2


def test_words_pause_resume_and_cancel():
    paused = []
    cancel = CancelToken()
    control = Control(cancel, paused.append)
    assert not control.stopped()
    control.say("nonsense")
    control.say("PAUSE\n")
    waiting = threading.Timer(0.05, control.say, ("resume",))
    waiting.start()
    assert not control.stopped()
    assert paused == [True, False]
    control.say("pause")
    threading.Timer(0.05, cancel.cancel).start()
    assert control.stopped()
    assert paused == [True, False, True, False]
    control.listen(io.StringIO("cancel"))


def test_a_run_whose_parent_is_gone_while_it_pauses_stops():
    paused = Control(CancelToken(), lambda _: None)
    paused._read(io.StringIO("pause\n"))
    assert paused.stopped()
    at_work = Control(CancelToken(), lambda _: None)
    at_work._read(io.StringIO("pause\nresume\n"))
    assert not at_work.stopped()


def test_a_run_that_nobody_hears_any_more_keeps_what_it_has(arguments):
    class Pipe(Stream):
        def write(self, text: str) -> int:
            if '"step": 1,' in self.getvalue():
                raise BrokenPipeError
            return super().write(text)

    line = CommandLine()
    line.out = Pipe()
    assert line.run(*arguments, "--epochs", "300", "--json") == EXIT_BROKEN_PIPE
    assert line.complaint == ""
    (card,) = data_root().glob("training/*/*/checkpoint.json")
    assert json.loads(card.read_text())["position"]["step"] < 300


def test_events_are_told_in_words():
    progress = events.Progress(
        stage="train", done=1500, total=3000, unit="steps", loss=1.25, seconds_left=120.0
    )
    assert numbers(progress) == "1,500 of 3,000 steps, loss 1.250, 2 min left"
    found = events.Evaluated(step=7, acceptance=(0.5, 0.25), length=1.6, loss=1.0, tokens=9)
    assert "1.60 on held-out text, by position 50%, 25%" in told(found)
    with pytest.raises(ValueError, match="no event"):
        events.from_json({"event": "nonsense"})
    with pytest.raises(ValueError, match="no event"):
        events.from_json({"event": "paused", "colour": 1})
    assert json.dumps(events.to_json(found))


def test_a_stop_says_how_to_go_on():
    words = told(events.Stopped(stage="train"))
    assert "what is finished is kept, and the same command goes on" in words


@pytest.mark.parametrize("error", [OSError("a disk went"), RuntimeError("a mistake")])
def test_every_error_ends_in_an_event_that_says_so(arguments, monkeypatch, error):
    def fail(*_):
        raise error

    monkeypatch.setattr("core.training.run.run_training", fail)
    line = CommandLine()
    assert line.run(*arguments, "--json") != 0
    last = line.events()[-1]
    assert (last["event"], last["kind"]) == ("failed", "bug")
    assert str(error) in last["message"]


def test_where_writing_fails_that_is_the_error(arguments):
    class Full(Stream):
        def write(self, text: str) -> int:
            raise OSError("the output is full")

    line = CommandLine()
    line.out = Full()
    assert line.run(*arguments, "--json") != 0
    assert "the output is full" in line.complaint


@pytest.mark.parametrize("command", ["train-mtp", "distill"])
@pytest.mark.parametrize("option", [("--head", "x"), ("--context-limit", "64")])
def test_what_a_training_ignores_is_not_offered(command, option):
    line = CommandLine()
    assert line.run(command, "--target", "x", *option) == 2
