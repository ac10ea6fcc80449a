"""The page that trains heads, in the whole window, on a child that speaks and does not train."""

import pytest
from PySide6.QtCore import QSize
from PySide6.QtWidgets import QLabel

from app.storage.training import UnfinishedStore
from app.training_records import Phase, TrainingChoices, Unfinished
from app.widgets.stage_list import Mark
from tests.helpers import fake_training as fake
from tests.helpers.fake_engine import Gate
from tests.helpers.fake_training import Step
from tests.helpers.model_folder import model_folder
from tests.helpers.training_page import Answers, Page


@pytest.fixture
def labels() -> object:
    def texts(widget: object) -> str:
        return " ".join(label.text() for label in widget.findChildren(QLabel))  # type: ignore[attr-defined]

    return texts


def test_the_page_covers_the_chat_and_gives_it_back(make_bench, tmp_path, labels) -> None:
    page = Page(make_bench, tmp_path)
    assert page.window.training.isVisible()
    assert not page.window.composer.isVisible()
    assert "never changes what the model says" in labels(page.window.training)
    page.window.commands.write.trigger()
    assert page.window.composer.isVisible()
    page.window.commands.train.trigger()
    page.window.training.backClicked.emit()
    assert page.window.composer.isVisible()
    assert page.window.status.training() == ""


def test_a_training_runs_from_its_start_to_a_head_that_is_loaded(
    make_bench, tmp_path, labels
) -> None:
    play = [
        fake.LOAD,
        fake.DISK,
        {"event": "notice", "kind": "vocabulary", "message": "It drafts 8,192 tokens."},
        fake.GENERATE,
        fake.written(250),
        fake.TRAIN,
        fake.trained(5, 4.0),
        fake.trained(10, 3.0),
        fake.measured(10, 0.4, 0.3, 0.2, length=1.5),
        "resume",
        fake.finished(str(tmp_path / "heads" / "mine"), 0.6, 0.5, 0.4, length=1.97),
    ]
    page = Page(make_bench, tmp_path, play)
    page.start()
    page.bench.until(lambda: page.run.acceptance.value() == "1.50 of max 4")
    assert page.run.loss.value() == "3.000"
    assert page.run.notes() == "It drafts 8,192 tokens."
    assert "10 of 300 steps" in page.run.stages.words()
    assert "45 s left" in page.run.stages.words()
    marks = page.run.stages.marks()
    assert [marks[stage] for stage in ("load", "generate", "train", "evaluate", "save")] == [
        Mark.DONE,
        Mark.DONE,
        Mark.PRESENT,
        Mark.WAITING,
        Mark.WAITING,
    ]
    assert "3 MB" in page.form._disk.text()
    page.bench.app.training._process.resume()
    page.until(Phase.IDLE)
    result = page.run.result
    assert result.isVisible()
    assert "1.97 tokens on average" in result.words()
    assert result.path() == str(tmp_path / "heads" / "mine")
    assert [bar.value for bar in result.bars.bars()] == ["60%", "50%", "40%"]
    assert page.record.load() is None
    page.button("Load this head").click()
    page.bench.until(lambda: len(page.bench.engine.load_requests) == 2)
    assert page.bench.engine.load_requests[1].head == str(tmp_path / "heads" / "mine")
    assert page.window.composer.isVisible()
    page.bench.until(lambda: page.bench.app.models.ready)
    assert page.bench.app.preferences.settings.head_path == str(tmp_path / "heads" / "mine")
    assert page.window.status.training() == "", "it was seen on the page"


def test_another_pair_lets_go_of_the_head(make_bench, tmp_path) -> None:
    answers = Answers()
    answers.model = tmp_path / "heads" / "mine"
    page = Page(make_bench, tmp_path, shown=False, dialogs=answers)
    preferences = page.bench.app.preferences
    page.window.settings.browseClicked.emit("head")
    assert page.window.settings.settings().head_path == str(answers.model)
    preferences.change_paths(target=str(tmp_path / "other.gguf"))
    assert preferences.settings.head_path == ""
    assert page.window.settings.settings().head_path == ""


def test_a_head_is_not_loaded_under_a_reply_that_is_being_written(make_bench, tmp_path) -> None:
    page = Page(make_bench, tmp_path, [fake.LOAD, fake.finished("head", 0.5)])
    page.start()
    page.bench.until(lambda: page.run.result.isVisible())
    page.window.show_chat()
    page.bench.engine.round_gate = Gate(open_=False)
    page.bench.send()
    page.bench.until(page.bench.engine.round_gate.reached.is_set)
    page.run.result.loadClicked.emit()
    assert "Stop it before loading" in page.window.model_bar.text()
    page.bench.engine.round_gate.open()
    page.bench.until(lambda: not page.bench.app.chat.reply.running)


def test_pause_go_on_and_stop_keep_the_run(make_bench, tmp_path) -> None:
    play = [
        fake.TRAIN,
        fake.trained(5, 4.0),
        "pause",
        {"event": "paused", "paused": True},
        "resume",
        {"event": "paused", "paused": False},
        fake.trained(20, 3.0),
        "cancel",
        fake.STOPPED,
        {"exit": 130},
    ]
    page = Page(make_bench, tmp_path, play, [fake.LOAD, fake.TRAIN, "cancel", fake.STOPPED])
    page.start()
    page.bench.until(lambda: page.run.loss.value() == "4.000")
    page.button("Pause").click()
    assert page.training.phase is Phase.PAUSED
    assert page.run.stages.words() == "Paused"
    page.button("Go on").click()
    page.bench.until(lambda: page.run.loss.value() == "3.000")
    page.button("Stop").click()
    page.until(Phase.IDLE)
    assert "stopped while training at 7%" in page.run.bar.text()
    kept = page.record.load()
    assert kept is not None
    assert (kept.stage, kept.choices) == ("train", page.form.choices())
    page.run.bar.press("go-on-training")
    page.until_stage("train")
    assert "--anew" in page.fake.asked[0]
    assert "--anew" not in page.fake.asked[1]
    again = page.record.load()
    assert again is not None
    assert again.fraction == kept.fraction, "loading again is no step back"
    page.button("Stop").click()
    page.until(Phase.IDLE)


def test_a_training_that_goes_on_shows_how_it_went_before(make_bench, tmp_path) -> None:
    before = fake.earlier({5: 4.0, 10: 3.0}, {10: 1.5})
    page = Page(make_bench, tmp_path, [fake.TRAIN, before, fake.trained(15, 2.5), "cancel"])
    page.start()
    page.bench.until(lambda: page.run.loss.value() == "2.500")
    assert [list(part) for part in page.run.loss._curve.points()] == [[5, 10, 15], [4.0, 3.0, 2.5]]
    assert page.run.acceptance.value() == "1.50 of max 4"
    left = [plot.plot.viewRange()[0][0] for plot in (page.run.loss, page.run.acceptance)]
    assert left == [0.0, 0.0], "both begin at step 0"
    page.training.stop()


def test_while_a_training_runs_the_chat_works_and_says_how_far_it_is(make_bench, tmp_path) -> None:
    play = [fake.GENERATE, fake.written(430), "cancel", fake.STOPPED]
    page = Page(make_bench, tmp_path, play)
    page.start()
    page.window.training.backClicked.emit()
    page.bench.until(lambda: page.window.status.training() == "Head: writing text 43%")
    assert page.bench.send_and_wait().state == "complete"
    page.window.status.trainingClicked.emit()
    assert page.window.training.isVisible()
    assert page.window.status.training() == ""
    page.window.show_chat()
    page.training.stop()
    page.bench.until(lambda: page.window.status.training() == "Training stopped")


def test_closing_the_window_stops_the_training_and_the_next_start_offers_to_go_on(
    make_bench, tmp_path
) -> None:
    play = [fake.TRAIN, fake.trained(30, 2.0), "cancel", fake.STOPPED]
    page = Page(make_bench, tmp_path, play)
    page.start()
    page.bench.until(lambda: page.run.loss.value() == "2.000")
    page.bench.close()
    assert not page.training._process.running
    again = Page(make_bench, tmp_path, [fake.TRAIN, "cancel", fake.STOPPED], shown=False)
    assert "not finished" in again.window.chat_bar.text()
    assert again.window.status.training() == "Training unfinished"
    again.window.chat_bar.press("show-training")
    assert again.window.training.isVisible()
    assert "stopped while training at 10%" in again.run.bar.text()
    again.run.bar.press("go-on-training")
    again.until_stage("train")
    assert "--anew" not in again.fake.asked[0]


def test_a_training_that_finishes_while_the_window_closes_is_not_offered(
    make_bench, tmp_path
) -> None:
    page = Page(make_bench, tmp_path, [fake.TRAIN, "cancel", fake.finished("head", 0.5)])
    page.start()
    page.until_stage("train")
    page.bench.close()
    assert page.record.load() is None


def test_after_a_kill_of_the_window_the_run_is_offered(make_bench, tmp_path) -> None:
    other = model_folder(tmp_path / "another-model")
    choices = TrainingChoices(pair="custom", target_path=str(other), kind="parallel", depth=5)
    store = UnfinishedStore(tmp_path / "training" / "unfinished.json")
    store.save(Unfinished(choices=choices, title="Parallel head for X", stage="generate"))
    page = Page(make_bench, tmp_path, [fake.GENERATE, "cancel", fake.STOPPED])
    assert "Parallel head for X: stopped while writing text." in page.run.bar.text()
    assert page.form.choices() == choices, "not what the settings say now"
    assert page.button("Go on with the training").isEnabled()
    page.run.bar.press("forget-training")
    assert store.load() is None
    assert "stays in" in page.run.bar.text()
    assert page.button("Start training").isEnabled()


def test_the_minutes_that_were_spent_are_not_spent_again(make_bench, tmp_path) -> None:
    choices = TrainingChoices(pair="custom", target_path=str(tmp_path / "tiny-model"), minutes=30)
    run = Unfinished(choices=choices, title="Mine", stage="train", fraction=0.5, spent_s=600.0)
    UnfinishedStore(tmp_path / "training" / "unfinished.json").save(run)
    page = Page(make_bench, tmp_path, [fake.TRAIN, "cancel", fake.STOPPED])
    page.start()
    page.until_stage("train")
    asked = page.fake.asked[0]
    assert asked[asked.index("--minutes") + 1] == "20"


@pytest.mark.parametrize("stage", [None, fake.TRAIN])
def test_an_error_is_said_where_it_happens_and_can_be_tried_again(
    make_bench, tmp_path, stage: Step | None
) -> None:
    sentence = "Another training of this model is running. Wait until it has finished."
    play: list[Step] = [fake.LOAD, fake.failed("user", sentence), {"exit": 1}]
    if stage is not None:
        play.insert(1, stage)
    page = Page(make_bench, tmp_path, play, [fake.LOAD, "cancel", fake.STOPPED])
    page.start()
    page.bench.until(lambda: page.run.bar.text())
    assert page.run.bar.text() == sentence
    assert (page.record.load() is None) == (stage is None)
    page.run.bar.press(page.run.bar.actions_shown()[0])
    page.until_stage("load")
    assert ("--anew" in page.fake.asked[1]) == (stage is None)


def test_a_fault_shows_no_traceback(make_bench, tmp_path) -> None:
    page = Page(make_bench, tmp_path, [fake.TRAIN, fake.failed("bug", "KeyError: 'rope_theta'")])
    page.start()
    page.bench.until(lambda: page.run.bar.text())
    assert "fault in Paceline (KeyError)" in page.run.bar.text()
    assert "rope_theta" not in page.run.bar.text()


def test_a_training_on_top_of_a_failed_resume_keeps_the_record(make_bench, tmp_path) -> None:
    choices = TrainingChoices(pair="custom", target_path=str(tmp_path / "tiny-model"))
    run = Unfinished(choices=choices, title="Mine", stage="train", fraction=0.5)
    store = UnfinishedStore(tmp_path / "training" / "unfinished.json")
    store.save(run)
    page = Page(make_bench, tmp_path, [fake.LOAD, fake.failed("user", "No memory. Close some.")])
    page.run.bar.press("go-on-training")
    page.bench.until(lambda: page.run.bar.text() == "No memory. Close some.")
    kept = store.load()
    assert kept is not None
    assert (kept.stage, kept.fraction) == ("train", 0.5)


def test_a_stage_that_only_drafts_have_shows_once_it_begins(make_bench, tmp_path) -> None:
    page = Page(make_bench, tmp_path)
    stages = page.run.stages
    page.run.begin("Sequential head for a draft")
    stages.begin("load", "target", resumed=False)
    stages.begin("generate", "prompts", resumed=False)
    assert not stages._titles["read"].isVisible()
    stages.begin("load", "draft", resumed=False)
    assert stages.marks()["generate"] is Mark.DONE, "loading the draft is no step back"
    stages.begin("read", "text", resumed=False)
    assert stages._titles["read"].isVisible()
    stages.begin("train", "9 steps", resumed=False)
    assert stages.marks()["read"] is Mark.DONE


def test_the_plots_of_a_long_training_stay_bounded(make_bench, tmp_path) -> None:
    page = Page(make_bench, tmp_path)
    for step in range(1, 3000):
        page.run.loss.add(step, 5.0 / step)
    x, _ = page.run.loss._line.getData()
    assert len(x) <= 2048
    assert x[-1] == 2999
    assert len(page.run.loss.plot.getPlotItem().items) == 1


@pytest.mark.parametrize("size", [(800, 560), (900, 600), (1360, 860)])
def test_everything_has_its_room(make_bench, tmp_path, size: tuple[int, int]) -> None:
    play = [fake.TRAIN, fake.trained(9, 2.0), fake.measured(9, 0.5, 0.4, length=1.6), "cancel"]
    page = Page(make_bench, tmp_path, play)
    page.start()
    page.bench.until(lambda: page.run.acceptance.value() == "1.60 of max 3")
    page.run.show_notice(
        "A long sentence about what went wrong and what to do. " * 3, (), error=True
    )
    page.window.resize(*size)
    page.bench.until(lambda: page.window.size() == QSize(*size))
    page.bench.qtbot.wait(1)
    for widget in (page.run.stages, page.run.loss, page.run.acceptance, page.run.bar):
        place = widget.mapTo(page.run, widget.rect().topLeft())
        assert place.x() >= 0, widget
        assert place.x() + widget.width() <= page.run.width(), widget
        assert widget.width() >= widget.minimumSizeHint().width(), widget
    beside = page.run.acceptance.mapTo(page.run, page.run.rect().topLeft()).x()
    left = page.run.loss.mapTo(page.run, page.run.rect().topLeft()).x()
    assert (beside > left) == (size[0] > 1000)


def test_a_theme_reaches_the_page(make_bench, tmp_path) -> None:
    page = Page(make_bench, tmp_path)
    page.bench.app.preferences.choose_theme("dark")
    assert page.run.loss.theme is not None
    assert page.run.loss.theme.name == "dark"
