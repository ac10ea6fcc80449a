"""The form of the training page: what it begins with, refuses, and keeps."""

from dataclasses import replace

from app.controllers import training_form
from app.training_records import Phase
from tests.helpers import fake_training as fake
from tests.helpers.model_folder import model_folder
from tests.helpers.training_page import Answers, Page


def test_no_model_is_read_before_the_page_is_seen(make_bench, tmp_path, monkeypatch) -> None:
    """The header of a large vocabulary takes a noticeable part of a second."""
    read: list[object] = []
    plan = training_form.disk_plan
    monkeypatch.setattr(training_form, "disk_plan", lambda *args: read.append(args) or plan(*args))
    page = Page(make_bench, tmp_path, shown=False)
    assert read == []
    page.window.commands.train.trigger()
    assert read != []


def test_the_form_begins_with_the_chosen_pair_and_says_what_it_takes(make_bench, tmp_path) -> None:
    page = Page(make_bench, tmp_path)
    choices = page.form.choices()
    assert choices.pair == "custom"
    assert choices.target_path.endswith("tiny-model")
    assert (choices.host, choices.kind, choices.depth) == ("target", "sequential", 3)
    assert "on the disk" in page.form._disk.text()
    before = page.form._disk.text()
    page.form._fields["minutes"].set_value(6000)
    page.form._fields["minutes"].edited.emit()
    assert page.form._disk.text() != before
    host = page.form._fields["host"]
    assert [choice.enabled for choice in host.box._choices] == [True, False]


def test_files_of_prompts_are_added_counted_refused_and_removed(make_bench, tmp_path) -> None:
    good, bad = tmp_path / "good.txt", tmp_path / "bad.jsonl"
    good.write_text("One\nTwo\n", encoding="utf-8")
    bad.write_text('{"txt": 1}\n', encoding="utf-8")
    play = [fake.TRAIN, "cancel", fake.STOPPED]
    page = Page(make_bench, tmp_path, play, dialogs=Answers(good, bad, good))
    page.button("Add files…").click()
    assert page.form.choices().files == (str(good), str(bad))
    assert "bad.jsonl cannot be used" in page.form._obstacle.text()
    assert not page.button("Start training").isEnabled()
    page.form.removeClicked.emit(str(bad))
    assert page.button("Start training").isEnabled()
    page.start()
    page.until_stage("train")
    assert page.fake.asked[0][-2:] == ["--data", str(good)]


def test_without_any_prompts_nothing_starts(make_bench, tmp_path) -> None:
    page = Page(make_bench, tmp_path)
    page.form._fields["shipped"].set_value(False)
    page.form._fields["shipped"].edited.emit()
    assert "There are no prompts" in page.form._obstacle.text()
    assert not page.button("Start training").isEnabled()
    page.training.begin()
    assert page.training.phase is Phase.IDLE
    assert page.fake.asked == []


def test_a_pair_that_is_not_here_says_what_to_do(make_bench, tmp_path) -> None:
    page = Page(make_bench, tmp_path)
    page.form._fields["pair"].set_value("qwen2.5-coder")
    page.form._fields["pair"].edited.emit()
    assert "fetch it first" in page.form._obstacle.text()
    assert page.form._disk.isHidden()
    assert "0.5B" in page.form._fields["host"].box._choices[1].detail


def test_another_pair_in_the_settings_is_what_the_page_opens_with(make_bench, tmp_path) -> None:
    page = Page(make_bench, tmp_path)
    page.form._fields["depth"].set_value(5)
    page.window.show_chat()
    other = model_folder(tmp_path / "other-model")
    page.bench.app.preferences.change_paths(target=str(other))
    page.window.show_training()
    assert page.form.choices().target_path == str(other)
    settings = page.window.settings.settings()
    page.bench.app.preferences.replace(replace(settings, pair="qwen2.5-coder"))
    page.window.show_chat()
    page.window.show_training()
    assert (page.form.choices().pair, page.form.choices().depth) == ("qwen2.5-coder", 5)
    page.form._fields["pair"].set_value("smollm2-135m")
    page.window.show_chat()
    page.window.show_training()
    assert page.form.choices().pair == "smollm2-135m", "what was chosen here stays"


def test_choices_stay_as_they_are_while_a_training_runs(make_bench, tmp_path) -> None:
    page = Page(make_bench, tmp_path, [fake.TRAIN, "cancel", fake.STOPPED])
    page.start()
    page.until_stage("train")
    assert not page.form._fields["depth"].isEnabled()
    page.training.begin()
    assert len(page.fake.asked) == 1
    page.button("Stop").click()
    page.until(Phase.IDLE)
    assert page.form._fields["depth"].isEnabled()
