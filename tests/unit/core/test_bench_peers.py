"""The comparison with other programs: its processes, its ratios and its page."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.compare import command_of, compare, parse_arguments
from benchmarks.contender import Contender, Reply
from benchmarks.document import OURS, Entry, Setting, best_mode, ratios, to_document
from core.bench.machine import Machine
from core.errors import UserError

PROMPT = {"text": "one two", "ids": [3, 3], "stop_ids": [0]}


@pytest.fixture
def contender() -> Iterator[Contender]:
    module, python = "tests.helpers.bench_worker", Path(sys.executable)
    with Contender(name="made up", module=module, python=python, threads=1) as process:
        yield process


def load(contender: Contender) -> str:
    return contender.load(target=Path("a.gguf"), draft=None, threads=1)


def entry(contender: str, mode: str, speed: float | None, *, case: str = "edit/a") -> Entry:
    reply = Reply(
        prompt_tokens=20,
        tokens=32,
        tokens_per_second=speed,
        first_token_ms=500.0,
        acceptance_length=1.0 if mode in ("off", "plain") else 2.5,
    )
    suite = case.partition("/")[0]
    return Entry(contender=contender, mode=mode, suite=suite, case=case, repeat=0, reply=reply)


ENTRIES = [
    entry(OURS, "off", 10.0),
    entry(OURS, "ngram:auto", 30.0),
    entry(OURS, "ngram:auto", 20.0, case="edit/b"),
    entry(OURS, "off", 9.0, case="code/c"),
    entry("llama.cpp", "plain", 12.0),
    entry("llama.cpp", "draft", 15.0),
    entry("llama.cpp", "draft", 20.0, case="edit/b"),
    entry("llama.cpp", "plain", 12.0, case="code/c"),
    entry("transformers", "plain", 1.5),
]

SETTING = Setting(
    pair="big.gguf with small.gguf",
    machine=Machine(
        system="Linux 6.1 x86_64",
        processor="A Processor",
        cores=2,
        threads=2,
        torch_threads=2,
        memory_bytes=8_000_000_000,
        gpu="",
        python="3.11.7",
        versions=(("paceline", "0.1.0"),),
        load_average=0.1,
    ),
    commit="abc123",
    date="2026-01-02",
    command="python -m benchmarks.compare",
    threads=2,
    seed=4,
    about=((OURS, "int8 weights"), ("llama.cpp", "xllamacpp 1")),
    notes=("Replies: up to 32 tokens",),
)


def test_a_contender_answers_prompt_after_prompt(contender: Contender) -> None:
    assert load(contender) == "1 threads"
    assert contender.render("one three") == ([3, 5], [0])
    replies = [contender.reply("plain", PROMPT, length) for length in (4, 8)]
    assert [reply.tokens for reply in replies] == [4, 8]
    assert {reply.prompt_tokens for reply in replies} == {2}


def test_a_contender_that_fails_says_why_and_goes_on(contender: Contender) -> None:
    load(contender)
    with pytest.raises(UserError, match="made up failed: ValueError: no such mode"):
        contender.reply("broken", PROMPT, 4)
    assert contender.reply("plain", PROMPT, 4).tokens == 4


def test_a_contender_that_ends_is_quoted_with_its_last_words(contender: Contender) -> None:
    load(contender)
    for _ in range(2):
        with pytest.raises(UserError, match="made up failed: it ended") as caught:
            contender.reply("gone", PROMPT, 4)
        assert "the last words" in caught.value.action


def test_the_best_mode_has_most_tokens_per_second_at_the_median() -> None:
    assert best_mode(ENTRIES, OURS, "edit") == "ngram:auto"
    assert best_mode(ENTRIES, "llama.cpp", "code") == "plain"
    assert best_mode(ENTRIES, "transformers", "code") is None
    assert best_mode([entry(OURS, "off", None)], OURS, "edit") is None


def test_a_ratio_divides_best_by_best_prompt_by_prompt() -> None:
    found = {(ratio.suite, ratio.peer): ratio for ratio in ratios(ENTRIES)}
    assert set(found) == {
        ("edit", "llama.cpp"),
        ("edit", "transformers"),
        ("code", "llama.cpp"),
    }
    assert found["edit", "llama.cpp"].values == (2.0, 1.0)
    assert found["edit", "llama.cpp"].peer_mode == "draft"
    assert found["edit", "transformers"].values == (20.0,)
    assert found["code", "llama.cpp"].values == (0.75,)


def test_the_page_names_machine_versions_commit_and_command() -> None:
    page = to_document(SETTING, ENTRIES)
    for text in ("A Processor", "paceline 0.1.0", "xllamacpp 1", "abc123", "2026-01-02"):
        assert text in page
    assert "`python -m benchmarks.compare`" in page
    assert (
        "| Paceline | ngram:auto | 25.0 (22.5-27.5) | 2.50 | 0.50 s (0.50-0.50) | 2 | 64 |" in page
    )
    assert "| edit | Paceline ngram:auto | llama.cpp draft | 1.50x (1.25-1.75) |" in page
    assert page.endswith("|\n")


def test_the_command_on_the_page_has_no_paths_of_the_machine() -> None:
    asked = ["--suite", "code,edit", "--peers-python", "elsewhere/python", "--output=x.md"]
    assert command_of(asked) == "make bench-peers ARGS='--suite code,edit'"
    assert command_of([]) == "make bench-peers"


def test_a_comparison_without_the_models_or_the_peers_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="must be fetched"):
        compare(parse_arguments(["--contenders", "transformers"]))
    with pytest.raises(UserError, match="no contender 'ollama'"):
        compare(parse_arguments(["--contenders", "ollama"]))
    with pytest.raises(UserError, match="no suite called 'songs'"):
        compare(parse_arguments(["--suite", "songs"]))
    missing = tmp_path / "python"
    with pytest.raises(UserError, match="There is no") as caught:
        compare(parse_arguments(["--contenders", "llama.cpp", "--peers-python", str(missing)]))
    assert "make bench-peers" in str(caught.value)
