"""How far a training is, and the time it took, over pauses, stops and goings-on."""

from pathlib import Path

import pytest

from app.controllers.training_progress import TrainingProgress, how_far
from app.storage.training import UnfinishedStore
from app.training_records import TrainingChoices, Unfinished

RUN = Unfinished(choices=TrainingChoices(pair="smollm2-135m"), title="Sequential head for X")


class Clock:
    now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def progress(tmp_path: Path, clock: Clock) -> TrainingProgress:
    return TrainingProgress(UnfinishedStore(tmp_path / "unfinished.json"), clock)


def kept(progress: TrainingProgress) -> Unfinished:
    assert progress.keep() == ""
    run = progress._store.load()
    assert run is not None
    return run


def test_time_counts_while_the_training_runs_alone(
    progress: TrainingProgress, clock: Clock
) -> None:
    progress.begin(RUN)
    progress.count_time(True)
    clock.now_s += 10
    progress.count_time(False)
    clock.now_s += 1000
    progress.count_time(True)
    clock.now_s += 5
    assert kept(progress).spent_s == 15
    clock.now_s += 5
    assert kept(progress).spent_s == 20


def test_going_on_is_no_step_back(progress: TrainingProgress) -> None:
    progress.begin(RUN)
    assert progress.nothing_made()
    progress.reach("load", 0.5)
    assert progress.nothing_made()
    progress.reach("generate", 0.3)
    progress.reach("train", 0.4)
    assert not progress.nothing_made()
    progress.begin(kept(progress))
    for stage in ("load", "generate"):
        progress.reach(stage, 0.0)
        progress.reach(stage, 0.9)
    assert progress.words() == "Head: writing text 90%"
    assert (kept(progress).stage, kept(progress).fraction) == ("train", 0.4)
    progress.reach("train", 0.0)
    assert kept(progress).fraction == 0.4
    progress.reach("train", 0.6)
    assert kept(progress).fraction == 0.6


def test_what_is_forgotten_is_not_kept_again(progress: TrainingProgress) -> None:
    progress.begin(RUN)
    progress.forget()
    progress.reach("train", 0.5)
    assert progress.keep() == ""
    assert progress._store.load() is None


def test_a_stage_that_is_not_known_does_no_harm(progress: TrainingProgress) -> None:
    progress.begin(RUN)
    progress.reach("polish", 0.5)
    assert progress.words() == "Head: starting 50%"
    assert how_far(RUN) == "Sequential head for X: stopped at its beginning."
