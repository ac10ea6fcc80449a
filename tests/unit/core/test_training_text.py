"""The stage that makes text: how much is enough, and what is said where none could be made."""

from collections.abc import Callable
from types import SimpleNamespace

import pytest
import torch

from core.errors import UserError
from core.requests import LoadRequest
from core.training import text_stage
from core.training.generate import GenerationProgress
from core.training.jobs import GenerationSettings
from core.training.places import Places
from core.training.report import Report
from core.training.request import TrainRequest
from core.training.shards import Generated
from core.training.text_stage import make_text


def _progress(tokens):
    return GenerationProgress(
        done_jobs=1, total_jobs=9, tokens=tokens, total_tokens=999, seconds_left=5.0, flushed=False
    )


class Author:
    """Stands for a model: ``answers`` says whether it makes a reply when it is asked."""

    def __init__(self) -> None:
        self.answers = {"text": True, "held-out": True}
        self.asked: list[str] = []
        self.jobs: dict[str, int] = {}
        self.progress = _progress(300)
        self.cuts: dict[str, Callable[[], bool]] = {}

    def generate(self, model, jobs, *, ends, settings, store, on_progress, stop, cut, max_tokens):
        name = store.folder.name
        self.asked.append(name)
        self.jobs[name], self.cuts[name] = len(jobs), cut
        on_progress(self.progress)
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
    monkeypatch.setattr(text_stage, "make_jobs", lambda _, prompts, *__: prompts)
    monkeypatch.setattr(text_stage, "reply_ends", lambda _: frozenset())
    return made


def _make(author, folder, report=None, **budget):
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
        (range(500), range(120)),
        places,
        Report(lambda _: None, lambda: False) if report is None else report,
    )
    return "text" in author.asked


def test_text_is_made_longer_where_more_time_is_given_and_not_for_the_same(author, tmp_path):
    assert _make(author, tmp_path, minutes=10)
    assert not _make(author, tmp_path, minutes=10)
    assert not _make(author, tmp_path, minutes=5)
    assert _make(author, tmp_path, minutes=60)
    assert not _make(author, tmp_path, minutes=60)


@pytest.mark.parametrize(("minutes", "prompts"), [(0.5, 8), (5, 30), (60, 120)])
def test_few_minutes_measure_on_few_prompts(author, tmp_path, minutes, prompts):
    _make(author, tmp_path, minutes=minutes)
    assert (author.jobs["held-out"], author.jobs["text"]) == (prompts, 500)


def test_tokens_measure_on_all_prompts_and_are_not_cut(author, tmp_path):
    _make(author, tmp_path, tokens=1000)
    assert author.jobs["held-out"] == 120
    assert not author.cuts["held-out"]()


def test_minutes_bound_what_is_measured_on_whatever_amount_of_text_is_given(author, tmp_path):
    report = Report(lambda _: None, lambda: False)
    _make(author, tmp_path, report, minutes=1, tokens=1000)
    assert author.jobs["held-out"] == 8
    report.clock = lambda: report.started_s + 3600
    assert author.cuts["held-out"]()
    assert not author.cuts["text"]()


@pytest.mark.parametrize("loading_s", [0, 50])
def test_both_texts_have_their_share_of_the_minutes_however_long_the_loading_took(
    author, tmp_path, loading_s
):
    report = Report(lambda _: None, lambda: False)
    now_s = report.started_s
    report.clock = lambda: now_s
    now_s += loading_s
    _make(author, tmp_path, report, minutes=1)
    for name, share_s in (("held-out", 10), ("text", 30)):
        left_s = max(share_s - loading_s, share_s / 2)
        before_s = now_s
        now_s = before_s + left_s - 0.1
        assert not author.cuts[name]()
        now_s = before_s + left_s + 0.1
        assert author.cuts[name]()
        now_s = before_s


def test_text_that_says_nothing_yet_is_not_cut(author, tmp_path):
    author.progress = _progress(200)
    report = Report(lambda _: None, lambda: False)
    _make(author, tmp_path, report, minutes=1)
    report.clock = lambda: report.started_s + 3600
    assert not author.cuts["held-out"]()


@pytest.mark.parametrize("name", ["text", "held-out"])
def test_prompts_that_are_all_too_long_are_said_to_be(author, tmp_path, name):
    author.answers[name] = False
    with pytest.raises(UserError, match="longer than 768 tokens"):
        _make(author, tmp_path, tokens=1000)
