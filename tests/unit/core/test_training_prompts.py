"""The prompts that training data is generated from: what ships, and what users bring."""

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable
from pathlib import Path

import pytest

from core.bench.cases import Suite as BenchSuite
from core.bench.cases import load_cases
from core.errors import BugError, UserError
from core.training.prompts import (
    MAX_FILE_BYTES,
    MAX_LINE_BYTES,
    MAX_PROMPT_CHARACTERS,
    SHIPPED_SUITES,
    Prompt,
    Split,
    Suite,
    read_prompts,
    read_user_prompts,
)

Gram = tuple[str, ...]

GRAM_WORDS = 8
LEAST_IN_ALL = {Suite.CHAT: 500, Suite.CODE: 450, Suite.REWRITE: 350, Suite.SUMMARISE: 320}


@pytest.fixture(scope="module")
def train() -> tuple[Prompt, ...]:
    return read_prompts(Split.TRAIN)


@pytest.fixture(scope="module")
def held_out() -> tuple[Prompt, ...]:
    return read_prompts(Split.HELD_OUT)


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text.lower())


def _grams(text: str) -> list[Gram]:
    words = _words(text)
    return [tuple(words[at : at + GRAM_WORDS]) for at in range(len(words) - GRAM_WORDS + 1)]


def _all_grams(texts: Iterable[str]) -> set[Gram]:
    return {gram for text in texts for gram in _grams(text)}


def _beyond(text: str, other: str) -> list[str]:
    """The words of ``text`` that are in no run of eight words that ``other`` has too."""
    words, shared = _words(text), set(_grams(other))
    covered = {
        at + step
        for at, gram in enumerate(_grams(text))
        if gram in shared
        for step in range(GRAM_WORDS)
    }
    return [word for at, word in enumerate(words) if at not in covered]


def test_enough_prompts_ship_for_each_suite_and_split(
    train: tuple[Prompt, ...], held_out: tuple[Prompt, ...]
) -> None:
    assert Counter(prompt.suite for prompt in held_out) == dict.fromkeys(SHIPPED_SUITES, 30)
    counts = Counter(prompt.suite for prompt in train + held_out)
    assert counts.keys() == LEAST_IN_ALL.keys()
    assert all(counts[suite] >= least for suite, least in LEAST_IN_ALL.items()), counts
    assert {prompt.split for prompt in train} == {Split.TRAIN}
    assert {prompt.split for prompt in held_out} == {Split.HELD_OUT}


def test_the_shipped_prompts_come_in_the_same_order_each_time(train: tuple[Prompt, ...]) -> None:
    assert read_prompts(Split.TRAIN) == train
    assert [prompt.id for prompt in train if prompt.suite is Suite.CHAT][:2] == [
        "chat-0001",
        "chat-0002",
    ]


def test_no_id_and_no_text_ships_twice(
    train: tuple[Prompt, ...], held_out: tuple[Prompt, ...]
) -> None:
    prompts = train + held_out
    assert len({prompt.id for prompt in prompts}) == len(prompts)
    texts = Counter(" ".join(_words(prompt.text)) for prompt in prompts)
    assert [text for text, count in texts.items() if count > 1] == []


def test_every_shipped_prompt_has_a_sensible_length(
    train: tuple[Prompt, ...], held_out: tuple[Prompt, ...]
) -> None:
    for prompt in train + held_out:
        assert len(prompt.text) >= 12, prompt.id
        assert len(_words(prompt.text)) <= 400, prompt.id
        assert len(prompt.text) <= 2500, prompt.id
        assert prompt.text == prompt.text.strip(), prompt.id


def test_a_passage_to_summarise_is_in_each_prompt_that_asks_for_it(
    train: tuple[Prompt, ...], held_out: tuple[Prompt, ...]
) -> None:
    for prompt in train + held_out:
        if prompt.suite is Suite.SUMMARISE:
            assert len(_words(prompt.text)) >= 80, prompt.id


def test_the_held_out_prompts_share_no_eight_words_in_a_row_with_the_others(
    train: tuple[Prompt, ...], held_out: tuple[Prompt, ...]
) -> None:
    shared = _all_grams(prompt.text for prompt in train) & _all_grams(
        prompt.text for prompt in held_out
    )
    assert shared == set()


def test_the_suites_of_the_benchmark_stay_unseen(
    train: tuple[Prompt, ...], held_out: tuple[Prompt, ...]
) -> None:
    bench = _all_grams(case.text for case in load_cases(tuple(BenchSuite)))
    assert bench
    for prompt in train + held_out:
        assert not bench.intersection(_grams(prompt.text)), prompt.id


def test_prompts_that_share_a_passage_ask_for_different_things(
    train: tuple[Prompt, ...], held_out: tuple[Prompt, ...]
) -> None:
    owners: dict[Gram, set[int]] = defaultdict(set)
    prompts = train + held_out
    for number, prompt in enumerate(prompts):
        for gram in _grams(prompt.text):
            owners[gram].add(number)
    pairs = {
        (one, other)
        for numbers in owners.values()
        for one in numbers
        for other in numbers
        if one < other
    }
    assert pairs
    for one, other in pairs:
        first, second = prompts[one], prompts[other]
        assert first.suite is second.suite, (first.id, second.id)
        assert first.suite is not Suite.CHAT, (first.id, second.id)
        left = set(_beyond(first.text, second.text))
        right = set(_beyond(second.text, first.text))
        assert left, (first.id, second.id)
        assert right, (first.id, second.id)
        assert len(left & right) <= 0.6 * len(left | right), (first.id, second.id)


def test_no_opening_paragraph_is_used_often(train: tuple[Prompt, ...]) -> None:
    openings = Counter(
        " ".join(_words(prompt.text.split("\n\n")[0]))
        for prompt in train
        if prompt.suite is not Suite.SUMMARISE
    )
    assert [opening for opening, count in openings.items() if count > 5] == []


@pytest.mark.parametrize(
    "change",
    [
        {"suite": "code"},
        {"split": "test"},
        {"id": "code-0001"},
        {"text": " "},
        {"text": 3},
        {"more": 1},
    ],
)
def test_a_shipped_file_that_contradicts_itself_is_a_bug(
    tmp_path: Path, change: dict[str, object]
) -> None:
    for suite in SHIPPED_SUITES:
        good = {"id": f"{suite}-0001", "suite": suite, "split": "train", "text": f"About {suite}?"}
        (tmp_path / f"{suite}.jsonl").write_text(json.dumps(good) + "\n", encoding="utf-8")
    assert len(read_prompts(Split.TRAIN, tmp_path)) == len(SHIPPED_SUITES)
    entry = {"id": "chat-0001", "suite": "chat", "split": "train", "text": "Hello?"} | change
    (tmp_path / "chat.jsonl").write_text(json.dumps(entry) + "\n", encoding="utf-8")
    with pytest.raises(BugError, match=r"Line 1 of chat\.jsonl"):
        read_prompts(Split.TRAIN, tmp_path)


def test_a_shipped_id_that_stands_twice_is_a_bug(tmp_path: Path) -> None:
    for suite in SHIPPED_SUITES:
        line = json.dumps(
            {"id": f"{suite}-0001", "suite": suite, "split": "train", "text": "Hello?"}
        )
        (tmp_path / f"{suite}.jsonl").write_text(f"{line}\n{line}\n", encoding="utf-8")
    with pytest.raises(BugError, match="twice"):
        read_prompts(Split.TRAIN, tmp_path)


def test_the_messages_begin_with_the_system_message() -> None:
    plain = Prompt(id="a", suite=Suite.CHAT, text="Hello?", split=Split.TRAIN)
    asked = Prompt(id="a", suite=Suite.CHAT, text="Hello?", split=Split.TRAIN, system="Be brief.")
    assert plain.messages == (("user", "Hello?"),)
    assert asked.messages == (("system", "Be brief."), ("user", "Hello?"))


def test_a_text_file_has_one_prompt_a_line(tmp_path: Path) -> None:
    path = tmp_path / "mine.TXT"
    path.write_bytes("\ufeffWhy is it late?\r\n\r\n  Où est le chat ?  \r\n".encode())
    prompts = read_user_prompts(path)
    assert [(prompt.id, prompt.text) for prompt in prompts] == [
        ("own-0001", "Why is it late?"),
        ("own-0003", "Où est le chat ?"),
    ]
    assert {(prompt.suite, prompt.split, prompt.system) for prompt in prompts} == {
        (Suite.OWN, Split.TRAIN, None)
    }


def test_only_a_line_feed_ends_a_line(tmp_path: Path) -> None:
    path = tmp_path / "mine.txt"
    path.write_text("one\u2028still one\x0cand one\ntwo", encoding="utf-8")
    assert [prompt.text for prompt in read_user_prompts(path)] == [
        "one\u2028still one\x0cand one",
        "two",
    ]


def test_a_jsonl_file_may_have_system_messages_splits_and_other_keys(tmp_path: Path) -> None:
    path = tmp_path / "mine.jsonl"
    path.write_text(
        '{"text": "First line\\nsecond line", "source": "me"}\n\n'
        '{"text": "Hi?", "system": "Be brief.", "split": "held-out"}\n'
        '{"text": "Ho?", "system": null}',
        encoding="utf-8",
    )
    first, second, third = read_user_prompts(path)
    assert (first.text, first.system, first.split) == ("First line\nsecond line", None, "train")
    assert (second.text, second.system, second.split) == ("Hi?", "Be brief.", "held-out")
    assert (third.text, third.system, third.id) == ("Ho?", None, "own-0004")


def test_a_prompt_that_stands_twice_is_taken_once(tmp_path: Path) -> None:
    path = tmp_path / "mine.txt"
    path.write_text("one\ntwo\none\n", encoding="utf-8")
    assert [prompt.id for prompt in read_user_prompts(path)] == ["own-0001", "own-0002"]


def test_the_shipped_files_can_be_read_as_a_users(held_out: tuple[Prompt, ...]) -> None:
    folder = Path(__file__).resolve().parents[3] / "resources" / "prompts"
    own = read_user_prompts(folder / "code.jsonl")
    assert [prompt.text for prompt in own if prompt.split is Split.HELD_OUT] == [
        prompt.text for prompt in held_out if prompt.suite is Suite.CODE
    ]


@pytest.mark.parametrize(
    ("name", "content", "line", "words"),
    [
        ("a.txt", b"fine\nna\xefve\n", 2, "UTF-8"),
        ("a.txt", "fine".encode("utf-16"), 1, "UTF-8"),
        ("a.txt", "fine".encode("utf-16-le"), 1, "zero character"),
        ("a.txt", b"fine\n\n" + b"x" * (MAX_PROMPT_CHARACTERS + 1), 3, "longer than 32,000"),
        ("a.txt", b"fine\n" + b"x" * (MAX_LINE_BYTES + 1), 2, "longer than 1,048,576 bytes"),
        ("a.jsonl", b'{"text": "fine"}\n{"text": "fi', 2, "not valid JSON"),
        ("a.jsonl", b"Why is it late?\n", 1, "not valid JSON"),
        ("a.jsonl", b"[" * 30_000, 1, "not valid JSON"),
        ("a.jsonl", b'["fine"]\n', 1, "no JSON object"),
        ("a.jsonl", b"7\n", 1, "no JSON object"),
        ("a.jsonl", b'{"prompt": "fine"}\n', 1, "'prompt'"),
        ("a.jsonl", b"{}\n", 1, '"text" is missing'),
        ("a.jsonl", b'{"text": ["fine"]}\n', 1, '"text" is no text'),
        ("a.jsonl", b'{"text": null}\n', 1, '"text" is no text'),
        ("a.jsonl", b'{"text": " \\n "}\n', 1, "text is empty"),
        ("a.jsonl", b'{"text": "fine", "system": 3}\n', 1, '"system" is no text'),
        ("a.jsonl", b'{"text": "fine", "system": ""}\n', 1, "system is empty"),
        ("a.jsonl", b'{"text": "fine", "split": "dev"}\n', 1, "'dev'"),
        ("a.jsonl", b'{"text": "fine", "split": ["train"]}\n', 1, "The split is"),
        ("a.jsonl", b'{"text": "half: \\ud83d"}\n', 1, "half of a character"),
    ],
)
def test_bad_data_is_refused_with_its_line(
    tmp_path: Path, name: str, content: bytes, line: int, words: str
) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(UserError) as caught:
        read_user_prompts(path)
    assert f"Line {line} of {name} " in caught.value.message
    assert words in caught.value.message
    assert caught.value.action


@pytest.mark.parametrize("name", ["a.txt", "a.jsonl"])
@pytest.mark.parametrize("content", [b"", b"\n \r\n\t\n", b"\xef\xbb\xbf"])
def test_a_file_without_prompts_is_refused(tmp_path: Path, name: str, content: bytes) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(UserError, match="has no prompts"):
        read_user_prompts(path)


def test_a_file_of_another_kind_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "mine.csv"
    path.write_text("text\nHello\n", encoding="utf-8")
    with pytest.raises(UserError, match=r"neither a \.txt nor a \.jsonl"):
        read_user_prompts(path)


def test_a_file_that_is_not_there_or_a_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "folder.txt").mkdir()
    for name in ("folder.txt", "nothing.txt", "x" * 300 + ".txt"):
        with pytest.raises(UserError) as caught:
            read_user_prompts(tmp_path / name)
        assert name in caught.value.message


def test_a_file_that_is_too_large_is_refused_without_being_read(tmp_path: Path) -> None:
    path = tmp_path / "mine.txt"
    with path.open("wb") as file:
        file.truncate(MAX_FILE_BYTES + 1)
    with pytest.raises(UserError, match="at most 64 MB"):
        read_user_prompts(path)
