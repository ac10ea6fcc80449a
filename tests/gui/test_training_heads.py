"""The training page beside the heads that a model has already."""

import json
from pathlib import Path

import pytest

from app.training_records import Phase
from tests.helpers import fake_training as fake
from tests.helpers.fake_engine import FakeEngine
from tests.helpers.training_page import Page

HOST = "a" * 16


def head_at(folder: Path, length: float) -> Path:
    folder.mkdir(parents=True)
    card = {"host": {"fingerprint": HOST}, "acceptance_length": length}
    (folder / "head.json").write_text(json.dumps(card), encoding="utf-8")
    return folder


@pytest.mark.parametrize(("length", "worse"), [(1.9, True), (2.9, False)])
def test_a_trained_head_is_compared_with_the_one_that_the_model_has(
    make_bench, tmp_path, length: float, worse: bool
) -> None:
    head_at(tmp_path / "heads" / "before", 2.63)
    new = head_at(tmp_path / "heads" / "new", length)
    page = Page(make_bench, tmp_path, [fake.LOAD, fake.finished(str(new), 0.6, length=length)])
    page.start()
    page.until(Phase.IDLE)
    said = page.run.result.comparison()
    assert "drafts with before, which brings 2.63 tokens a round" in said
    assert f"this one brings {length:.2f}" in said
    assert ("worse with this one" in said) == worse
    assert page.run.result.load.property("primary") != worse


def test_the_first_head_of_a_model_is_compared_with_nothing(make_bench, tmp_path) -> None:
    new = head_at(tmp_path / "heads" / "new", 1.9)
    page = Page(make_bench, tmp_path, [fake.LOAD, fake.finished(str(new), 0.6, length=1.9)])
    page.start()
    page.until(Phase.IDLE)
    assert page.run.result.isVisible()
    assert page.run.result.comparison() == ""


def test_the_form_says_which_head_the_loaded_model_has(make_bench, tmp_path) -> None:
    head_at(tmp_path / "heads" / "before", 2.63)
    page = Page(make_bench, tmp_path, engine=FakeEngine(head="before on fake-135m"))
    label = page.form._head
    assert label.text() == (
        "This model has a head already: before, which brings 2.63 tokens a round."
    )
    assert label.isVisible()
    page.form._fields["pair"].set_value("smollm2-135m")
    page.form._fields["pair"].edited.emit()
    assert not label.isVisible()


def test_the_form_says_nothing_of_a_head_that_there_is_not(make_bench, tmp_path) -> None:
    assert not Page(make_bench, tmp_path).form._head.isVisible()
