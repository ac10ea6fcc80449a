"""Which head a model has already, and how one that was trained compares with it."""

import json
from pathlib import Path

from app.controllers.heads import is_loaded, present_head
from app.settings import Settings
from app.training_records import TrainedHead, TrainingChoices
from core.events import Loaded

HOST, OTHER = "a" * 16, "b" * 16
LOADED = Loaded(
    target="large",
    draft="small",
    device="cpu",
    precision="int8",
    context_limit=2048,
    drafters=(),
    head="mine on large",
)


def head_at(folder: Path, length: float | None, host: str = HOST) -> Path:
    """A folder with the card of a head and no weights."""
    folder.mkdir(parents=True)
    card = {"host": {"fingerprint": host}, "acceptance_length": length}
    (folder / "head.json").write_text(json.dumps(card), encoding="utf-8")
    return folder


def trained(path: Path) -> TrainedHead:
    return TrainedHead(path=str(path), title="Head", choices=TrainingChoices(pair="pair"))


def test_the_best_other_head_of_the_same_host_is_what_there_is(tmp_path: Path) -> None:
    own, shipped = tmp_path / "own", tmp_path / "shipped"
    new = head_at(own / "new", 1.9)
    head_at(own / "short", 1.2)
    head_at(own / "foreign", 3.5, OTHER)
    best = head_at(shipped / "best", 2.63)
    present = present_head(trained(new), "", (own, shipped, tmp_path / "nowhere"))
    assert present == best


def test_a_head_that_was_chosen_for_the_host_comes_before_the_best(tmp_path: Path) -> None:
    new = head_at(tmp_path / "own" / "new", 1.9)
    head_at(tmp_path / "own" / "best", 2.6)
    chosen = head_at(tmp_path / "elsewhere" / "chosen", 2.1)
    foreign = head_at(tmp_path / "elsewhere" / "foreign", 2.2, OTHER)
    folders = (tmp_path / "own",)
    named = [
        present.name
        for path in (chosen, foreign, new)
        if (present := present_head(trained(new), str(path), folders)) is not None
    ]
    assert named == ["chosen", "best", "best"]


def test_the_only_head_of_a_host_is_compared_with_nothing(tmp_path: Path) -> None:
    new = head_at(tmp_path / "own" / "new", 1.9)
    assert present_head(trained(new), "", (tmp_path / "own",)) is None
    assert present_head(trained(tmp_path / "gone"), "", (tmp_path / "own",)) is None


def test_a_head_is_told_of_the_loaded_pair_and_its_host_alone() -> None:
    chosen = Settings(pair="custom", target_path="/large", draft_path="/small")
    choices = TrainingChoices(pair="custom", target_path="/large", draft_path="/small")
    on_draft = TrainingChoices(
        pair="custom", target_path="/large", draft_path="/small", host="draft"
    )
    assert is_loaded(choices, chosen, LOADED)
    assert not is_loaded(on_draft, chosen, LOADED)
    assert not is_loaded(TrainingChoices(pair="custom", target_path="/x"), chosen, LOADED)
    assert not is_loaded(TrainingChoices(pair="other"), chosen, LOADED)
    assert is_loaded(TrainingChoices(pair="other"), Settings(pair="other"), LOADED)
