"""What can be trained, why not, what it takes of the disk, and the command line that it makes."""

from dataclasses import replace
from pathlib import Path

import pytest

from app.controllers.pairs import load_request_for, with_head, without_foreign_head
from app.controllers.training_plan import (
    check_file,
    disk_plan,
    host_choices,
    obstacle,
    run_title,
    shipped_prompts,
    train_arguments,
)
from app.settings import Settings
from app.training_records import Budget, PromptFile, TrainedHead, TrainingChoices
from core.cli.parser import build_parser
from core.errors import UserError
from core.hub.library import Library
from core.training.sizes import checkpoint_bytes, text_bytes
from tests.helpers.model_folder import model_folder


@pytest.fixture
def library(tmp_path: Path) -> Library:
    return Library(tmp_path / "models")


@pytest.fixture
def own(tmp_path: Path) -> TrainingChoices:
    target = model_folder(tmp_path / "grösser als gedacht")
    draft = model_folder(tmp_path / "draft", layers=2, hidden=32)
    return TrainingChoices(pair="custom", target_path=str(target), draft_path=str(draft))


def test_every_choice_makes_a_command_line_that_the_command_understands(
    own: TrainingChoices,
) -> None:
    choices = replace(
        own,
        host="draft",
        kind="parallel",
        depth=5,
        vocabulary=4096,
        shipped=False,
        files=("my prompts.txt", "more.jsonl"),
        budget=Budget.TOKENS,
        tokens=500,
        precision="int8",
    )
    arguments = train_arguments(choices, resume=True)
    parsed = build_parser().parse_args(["train-mtp", "--json", *arguments])
    assert (parsed.target, parsed.draft) == (own.target_path, own.draft_path)
    assert (parsed.host, parsed.kind, parsed.depth, parsed.vocabulary) == (
        "draft",
        "parallel",
        5,
        4096,
    )
    assert (parsed.tokens, parsed.minutes, parsed.anew) == (500, None, False)
    assert parsed.own_only
    assert [str(path) for path in parsed.data] == ["my prompts.txt", "more.jsonl"]
    assert (parsed.device, parsed.precision) == ("auto", "int8")


def test_a_training_that_is_gone_on_with_gets_what_is_left_of_its_minutes() -> None:
    choices = TrainingChoices(pair="smollm2-135m", minutes=30)
    parser = build_parser()
    first = parser.parse_args(["train-mtp", *train_arguments(choices, resume=False)])
    assert (first.pair, first.minutes, first.anew) == ("smollm2-135m", 30, True)
    rest = train_arguments(choices, resume=True, spent_s=600)
    assert parser.parse_args(["train-mtp", *rest]).minutes == 20
    late = train_arguments(choices, resume=True, spent_s=6000)
    assert parser.parse_args(["train-mtp", *late]).minutes == 1


def test_only_the_models_of_the_pair_are_hosts(library: Library, own: TrainingChoices) -> None:
    names = [(choice.title, choice.detail) for choice in host_choices(library, own)]
    assert names == [("Target", "grösser als gedacht"), ("Draft", "draft")]
    alone = host_choices(library, replace(own, draft_path=""))
    assert [choice.enabled for choice in alone] == [True, False]
    assert alone[1].reason == "This pair has no draft model."
    catalog = host_choices(library, TrainingChoices(pair="qwen2.5-coder"))
    assert all(choice.enabled for choice in catalog)
    assert not host_choices(library, TrainingChoices(pair="gone"))[0].enabled
    assert run_title(library, own) == "Sequential head for grösser als gedacht"


def test_what_keeps_a_training_from_starting_is_said(
    library: Library, own: TrainingChoices
) -> None:
    assert obstacle(library, own, ()) == ""
    assert "fetch it first" in obstacle(library, TrainingChoices(pair="smollm2-135m"), ())
    headless = replace(own, draft_path="", host="draft")
    assert "no draft model" in obstacle(library, headless, ())
    nothing = replace(own, target_path="")
    assert obstacle(library, nothing, ()) == "No target is chosen. Choose one in the settings."
    assert "no prompts" in obstacle(library, replace(own, shipped=False), ())
    bad = PromptFile(path="a/bad.txt", problem="Line 2 of bad.txt cannot be used.")
    assert obstacle(library, own, (bad,)).startswith("bad.txt cannot be used.")
    gone = replace(own, target_path=str(Path(own.target_path) / "gone.gguf"))
    assert "There is no model at" in obstacle(library, gone, ())


def test_the_disk_that_is_told_is_what_the_training_counts(
    library: Library, own: TrainingChoices, tmp_path: Path
) -> None:
    choices = replace(own, budget=Budget.TOKENS, tokens=1000)
    home = tmp_path / "not" / "there" / "yet"
    plan = disk_plan(library, choices, home)
    assert plan.needed_bytes == text_bytes(1000, 3, 64) + checkpoint_bytes(64)
    assert plan.free_bytes > 0
    assert plan.folder == str(home / "training")
    assert not home.exists()
    small = disk_plan(library, replace(choices, kind="parallel", host="draft"), home)
    # The target's last states stay beside those of the draft, and it is the wider one.
    assert small.needed_bytes == text_bytes(1000, 2, 64) + checkpoint_bytes(64)
    by_time = disk_plan(library, replace(own, minutes=120), home).needed_bytes
    assert by_time > disk_plan(library, replace(own, minutes=60), home).needed_bytes


def test_a_file_of_prompts_is_counted_or_refused(tmp_path: Path) -> None:
    good = tmp_path / "good.txt"
    good.write_text("One\n\nTwo\nOne\n", encoding="utf-8")
    assert check_file(str(good)) == PromptFile(path=str(good), prompts=2)
    bad = tmp_path / "bad.jsonl"
    bad.write_text('{"text": "fine"}\n{"txt": 1}\n', encoding="utf-8")
    assert "Line 2 of bad.jsonl" in check_file(str(bad)).problem
    assert "no file" in check_file(str(tmp_path / "gone.txt")).problem
    assert "neither a .txt" in check_file(str(tmp_path)).problem
    large = tmp_path / "large.txt"
    large.write_bytes(b"word " * 900_000)
    assert check_file(str(large)) == PromptFile(path=str(large))
    assert shipped_prompts() >= 1500


@pytest.mark.parametrize(
    "wrong",
    [
        {"depth": 0},
        {"depth": "3"},
        {"vocabulary": 3},
        {"minutes": 0},
        {"tokens": 5},
        {"host": "both"},
        {"kind": "medusa"},
        {"budget": "money"},
        {"pair": 4},
        {"files": (1,)},
    ],
)
def test_choices_out_of_range_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(UserError):
        TrainingChoices(**{"pair": "smollm2-135m", **wrong})  # type: ignore[arg-type]


def test_a_head_is_loaded_with_its_models_and_a_drafter_that_uses_it(
    library: Library, own: TrainingChoices
) -> None:
    head = TrainedHead(path="heads/mine", title="Mine", choices=own)
    settings = with_head(Settings(drafter="ngram"), head)
    assert (settings.pair, settings.drafter, settings.head_path) == (
        "custom",
        "hybrid",
        "heads/mine",
    )
    assert load_request_for(library, settings).head == "heads/mine"
    named = replace(settings, head_path="smollm2-135m-instruct-sequential")
    shipped = load_request_for(library, named).head
    assert shipped is not None
    assert Path(shipped).is_dir()
    assert with_head(Settings(drafter="mtp"), head).drafter == "mtp"
    catalog = replace(own, pair="smollm2-135m", target_path="", draft_path="")
    kept = with_head(
        Settings(target_path="mine.gguf"), TrainedHead(path="h", title="", choices=catalog)
    )
    assert (kept.pair, kept.target_path) == ("smollm2-135m", "mine.gguf")


def test_other_models_do_not_keep_the_head_of_those_before(own: TrainingChoices) -> None:
    before = Settings(pair="custom", target_path="a.gguf", head_path="head")
    assert without_foreign_head(replace(before, temperature=0.0), before).head_path == "head"
    assert without_foreign_head(replace(before, pair="smollm2-135m"), before).head_path == ""
    assert without_foreign_head(replace(before, target_path="b.gguf"), before).head_path == ""
    other = replace(before, pair="smollm2-135m", head_path="other")
    assert without_foreign_head(other, before).head_path == "other"
    headless = replace(before, head_path="")
    assert without_foreign_head(replace(headless, pair="x"), headless).head_path == ""
