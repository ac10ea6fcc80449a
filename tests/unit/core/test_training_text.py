"""The stage that makes text: how much is enough, and what is said where none could be made."""

from types import SimpleNamespace

import pytest
import torch

from core.errors import UserError
from core.requests import LoadRequest
from core.training import text_stage
from core.training.jobs import GenerationSettings
from core.training.places import Places
from core.training.report import Report
from core.training.request import TrainRequest
from core.training.shards import Generated
from core.training.text_stage import make_text


class Author:
    """Stands for a model: ``answers`` says whether it makes a reply when it is asked."""

    def __init__(self) -> None:
        self.answers = {"text": True, "held-out": True}
        self.asked: list[str] = []

    def generate(self, model, jobs, *, ends, settings, store, on_progress, stop, max_tokens):
        name = store.folder.name
        self.asked.append(name)
        if self.answers[name]:
            states = torch.zeros(2, 4, dtype=torch.bfloat16)
            store.add(
                Generated(
                    key=f"p{len(self.asked)}/0",
                    ids=(1, 2, 3),
                    prompt_length=1,
                    temperature=0.0,
                    states=states,
                )
            )
            store.flush()
        return True


@pytest.fixture
def author(monkeypatch):
    made = Author()
    monkeypatch.setattr(text_stage, "generate", made.generate)
    monkeypatch.setattr(text_stage, "make_jobs", lambda *_: [])
    monkeypatch.setattr(text_stage, "reply_ends", lambda _: frozenset())
    return made


def _make(author, folder, **budget):
    """Return whether text to train on was asked for."""
    author.asked.clear()
    places = Places(
        base=folder,
        text=folder / "text",
        held_out=folder / "held-out",
        checkpoint=folder / "checkpoint",
        head=folder / "head",
    )
    make_text(
        TrainRequest(load=LoadRequest(target="x"), home=folder, **budget),
        SimpleNamespace(model=None, tokenizer=None),
        GenerationSettings(layers=(1,)),
        ([], []),
        places,
        Report(lambda _: None, lambda: False),
    )
    return "text" in author.asked


def test_text_is_made_longer_where_more_time_is_given_and_not_for_the_same(author, tmp_path):
    assert _make(author, tmp_path, minutes=10)
    assert not _make(author, tmp_path, minutes=10)
    assert not _make(author, tmp_path, minutes=5)
    assert _make(author, tmp_path, minutes=60)
    assert not _make(author, tmp_path, minutes=60)


def test_too_little_time_for_one_reply_is_said_and_does_not_count_as_enough(author, tmp_path):
    author.answers["text"] = False
    with pytest.raises(UserError, match=r"No reply was finished .* Allow more minutes"):
        _make(author, tmp_path, minutes=0.5)
    author.answers["text"] = True
    assert _make(author, tmp_path, minutes=0.5)


@pytest.mark.parametrize("name", ["text", "held-out"])
def test_prompts_that_are_all_too_long_are_said_to_be(author, tmp_path, name):
    author.answers[name] = False
    with pytest.raises(UserError, match="longer than 768 tokens"):
        _make(author, tmp_path, tokens=1000)
