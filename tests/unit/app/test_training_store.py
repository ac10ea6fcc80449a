"""The training that is not finished outlives the program, and a damaged record counts as none."""

import json
from pathlib import Path

import pytest

from app.storage.training import UnfinishedStore
from app.training_records import TrainingChoices, Unfinished
from core.errors import UserError

RUN = Unfinished(
    choices=TrainingChoices(pair="smollm2-135m", files=("a.txt", "b.jsonl"), minutes=30),
    title="Sequential head for SmolLM2",
    stage="train",
    fraction=0.43,
    spent_s=12.5,
)


def test_what_was_kept_comes_back(tmp_path: Path) -> None:
    store = UnfinishedStore(tmp_path / "training" / "unfinished.json")
    assert store.load() is None
    store.save(RUN)
    assert store.load() == RUN
    store.remove()
    store.remove()
    assert store.load() is None


@pytest.mark.parametrize(
    "content",
    [
        "",
        "[]",
        "{",
        "\xff",
        '{"title": "x"}',
        '{"choices": 3, "title": "x"}',
        '{"choices": {"pair": "p", "depth": 99}, "title": "x"}',
        '{"choices": {"pair": "p", "colour": 1}, "title": "x"}',
    ],
)
def test_a_damaged_record_counts_as_none(tmp_path: Path, content: str) -> None:
    path = tmp_path / "unfinished.json"
    path.write_text(content, encoding="latin-1")
    assert UnfinishedStore(path).load() is None


@pytest.mark.parametrize(
    "wrong", [{"stage": 3}, {"fraction": "half"}, {"fraction": 7.0}, {"spent_s": -1}, {"title": 1}]
)
def test_a_record_with_wrong_values_counts_as_none(
    tmp_path: Path, wrong: dict[str, object]
) -> None:
    path = tmp_path / "unfinished.json"
    store = UnfinishedStore(path)
    store.save(RUN)
    path.write_text(json.dumps({**json.loads(path.read_text()), **wrong}), encoding="utf-8")
    assert store.load() is None


def test_a_folder_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    (tmp_path / "training").write_text("in the way", encoding="utf-8")
    with pytest.raises(UserError):
        UnfinishedStore(tmp_path / "training" / "unfinished.json").save(RUN)
