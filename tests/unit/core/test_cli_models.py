"""``paceline models``: what is here, fetching, checking and removing, for people and programs."""

import json
import re
import shutil
import signal
from pathlib import Path

import pytest

from core.cancel import CancelToken
from core.errors import Cancelled, UserError
from core.hub.catalog import CatalogModel, load_catalog
from core.hub.download import DownloadProgress, OnProgress
from core.hub.library import PARTS_NAME, Library, data_root, part_file_name
from tests.helpers.cli import CommandLine

MODEL = "smollm2-135m"
PAIR = "qwen2.5-coder"
MEMBERS = ["qwen2.5-coder-1.5b", "qwen2.5-coder-0.5b"]


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PACELINE_HOME", str(tmp_path / "home"))
    return data_root()


def put_model(model_id: str) -> Path:
    """A file of the right size (it holds nothing, so that it takes no room on the disk)."""
    model = load_catalog().model(model_id)
    library = Library(data_root() / "models")
    path = library.folder(model_id) / model.file
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        file.truncate(model.size_bytes)
    library.mark_ready(model)
    return path


def put_half_of_the_parts(model_id: str) -> None:
    """What a fetch that broke off leaves."""
    parts = load_catalog().model(model_id).parts
    folder = Library(data_root() / "models").folder(model_id) / PARTS_NAME
    folder.mkdir(parents=True)
    for part in parts[: len(parts) // 2]:
        (folder / part_file_name(part.package)).touch()


def fake_download(
    model: CatalogModel, library: Library, on_progress: OnProgress, cancel: CancelToken
) -> Path:
    for percent in range(101):
        if cancel.cancelled:
            raise Cancelled
        on_progress(
            DownloadProgress(
                model_id=model.id,
                stage="fetching",
                done_bytes=model.size_bytes * percent // 100,
                total_bytes=model.size_bytes,
                bytes_per_second=1e6,
            )
        )
    return put_model(model.id)


def test_list_shows_each_model_with_its_state_on_one_line_of_a_pipe() -> None:
    put_model(MODEL)
    put_half_of_the_parts(MEMBERS[1])
    command = CommandLine()
    assert command.run("models", "list") == 0
    models, pairs, _ = command.out.getvalue().split("\n\n")
    rows = {line.split()[0]: line for line in models.splitlines()}
    assert "98 MB" in rows[MODEL]
    assert "ready" in rows[MODEL]
    assert "Apache-2.0" in rows[MODEL]
    assert "absent" in rows[MEMBERS[0]]
    assert re.search(r"partial 5\d%", rows[MEMBERS[1]])
    pair = next(line for line in pairs.splitlines() if line.startswith(PAIR))
    assert all(member in pair for member in MEMBERS)


def test_without_an_action_the_models_are_listed() -> None:
    alone, listed = CommandLine(), CommandLine()
    assert alone.run("models") == listed.run("models", "list") == 0
    assert alone.out.getvalue() == listed.out.getvalue()
    assert "usage" not in alone.complaint


def test_list_as_json_has_everything_a_program_needs() -> None:
    path = put_model(MODEL)
    command = CommandLine()
    assert command.run("models", "list", "--json") == 0
    listing = json.loads(command.out.getvalue())
    model = next(entry for entry in listing["models"] if entry["id"] == MODEL)
    assert (model["status"], model["path"]) == ("ready", str(path))
    assert model["size_bytes"] == 98_362_432
    assert {pair["id"] for pair in listing["pairs"]} == {MODEL, PAIR}


def test_list_shows_the_persons_own_models(home: Path) -> None:
    own = home / "models" / "mine" / "tiny [b].gguf"
    own.parent.mkdir(parents=True)
    own.write_bytes(b"GGUF")
    command = CommandLine()
    assert command.run("models", "list") == 0
    assert str(own) in command.out.getvalue()


def test_get_fetches_every_model_of_a_pair() -> None:
    command = CommandLine(download=fake_download)
    assert command.run("models", "get", PAIR) == 0
    ready = command.out.getvalue().splitlines()
    assert [line.split()[0] for line in ready] == MEMBERS
    assert "fetching qwen2.5-coder-1.5b: 559 MB of 1.1 GB, 1 MB/s" in command.complaint
    assert len(command.complaint.splitlines()) <= 2 * 12  # a line a tenth, not one a packet


def test_get_as_json_ends_with_one_terminal_line() -> None:
    command = CommandLine(download=fake_download)
    assert command.run("models", "get", MODEL, "--json") == 0
    events = command.events()
    assert [event["event"] for event in events[:-1]] == ["download_progress"] * (len(events) - 1)
    assert events[0]["model_id"] == MODEL
    assert events[0]["stage"] == "fetching"
    assert events[-2]["done_bytes"] == events[-2]["total_bytes"] == 98_362_432
    assert events[-1]["event"] == "download_finished"
    assert [model["id"] for model in events[-1]["models"]] == [MODEL]
    assert Path(events[-1]["models"][0]["path"]).is_file()
    assert command.complaint == ""


def test_get_on_a_terminal_shows_a_bar_and_clears_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "100")
    command = CommandLine(download=fake_download, terminal=True)
    assert command.run("models", "get", MODEL) == 0
    assert "98 MB of 98 MB" in command.complaint
    assert "is ready" in command.out.getvalue()


@pytest.mark.parametrize("options", [(), ("--json",)])
def test_ctrl_c_during_a_transfer_exits_with_130(options: tuple[str, ...]) -> None:
    def interrupted(
        model: CatalogModel, library: Library, on_progress: OnProgress, cancel: CancelToken
    ) -> Path:
        signal.raise_signal(signal.SIGINT)
        assert cancel.cancelled
        # The transfer's own process was interrupted as well, and looks as if it had failed.
        raise UserError("The package could not be fetched.", "Check the network.")

    command = CommandLine(download=interrupted)
    assert command.run("models", "get", MODEL, *options) == 130
    assert command.complaint == ""
    if options:
        assert [event["event"] for event in command.events()] == ["download_cancelled"]


@pytest.mark.parametrize("options", [(), ("--json",)])
def test_a_failed_transfer_says_what_to_do(options: tuple[str, ...]) -> None:
    def broken(
        model: CatalogModel, library: Library, on_progress: OnProgress, cancel: CancelToken
    ) -> Path:
        raise UserError("There is no network.", "Connect and try again.")

    command = CommandLine(download=broken)
    assert command.run("models", "get", MODEL, *options) == 1
    assert command.complaint == "paceline: There is no network. Connect and try again.\n"
    if options:
        last = command.events()[-1]
        assert (last["event"], last["kind"]) == ("failed", "user")
        assert last["message"] == "There is no network. Connect and try again."


def test_a_fault_during_a_transfer_ends_the_json_with_failed() -> None:
    def broken(
        model: CatalogModel, library: Library, on_progress: OnProgress, cancel: CancelToken
    ) -> Path:
        raise RuntimeError("out of step")

    command = CommandLine(download=broken)
    assert command.run("models", "get", MODEL, "--json") == 70
    assert [(event["event"], event["kind"]) for event in command.events()] == [("failed", "bug")]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_program_stops_a_transfer_by_a_signal_even_where_it_was_ignored(
    number: signal.Signals,
) -> None:
    def stopped(
        model: CatalogModel, library: Library, on_progress: OnProgress, cancel: CancelToken
    ) -> Path:
        signal.raise_signal(number)
        assert cancel.cancelled
        raise Cancelled

    before = signal.signal(number, signal.SIG_IGN)
    try:
        command = CommandLine(download=stopped)
        assert command.run("models", "get", MODEL, "--json") == 130
        assert signal.getsignal(number) is signal.SIG_IGN
    finally:
        signal.signal(number, before)


@pytest.mark.parametrize("action", ["get", "check", "remove"])
def test_an_unknown_name_lists_the_known_ones(action: str) -> None:
    command = CommandLine()
    assert command.run("models", action, "gpt-9") == 1
    assert "gpt-9" in command.complaint
    assert PAIR in command.complaint


def test_check_reads_every_byte_and_withdraws_what_is_wrong() -> None:
    put_model(MODEL)  # the right size, but only zeros
    command = CommandLine()
    assert command.run("models", "check", MODEL) == 1
    assert "differs from the published file" in command.out.getvalue()
    assert f"paceline models get {MODEL}" in command.out.getvalue()
    command = CommandLine()
    command.run("models", "list")
    assert "partial" in command.out.getvalue()


def test_check_as_json_ends_with_the_verdict(smollm2_path: Path) -> None:
    path = put_model(MODEL)
    path.unlink()
    shutil.copyfile(smollm2_path, path)
    command = CommandLine()
    assert command.run("models", "check", MODEL, "--json") == 0
    events = command.events()
    assert events[0]["event"] == "check_progress"
    assert events[-1] == {"event": "check_finished", "models": [{"id": MODEL, "ok": True}]}


def test_check_of_a_model_that_is_not_here_says_so() -> None:
    command = CommandLine()
    assert command.run("models", "check", MODEL) == 1
    assert f"paceline models get {MODEL}" in command.complaint


def test_remove_asks_and_a_no_deletes_nothing() -> None:
    path = put_model(MODEL)
    command = CommandLine(piped="n\n", terminal=True)
    assert command.run("models", "remove", MODEL) == 0
    assert "[y/N]" in command.complaint
    assert path.is_file()


@pytest.mark.parametrize(("answer", "options"), [("y\n", ()), ("", ("--yes",))])
def test_remove_deletes_after_a_yes(answer: str, options: tuple[str, ...]) -> None:
    path = put_model(MODEL)
    command = CommandLine(piped=answer, terminal=bool(answer))
    assert command.run("models", "remove", MODEL, *options) == 0
    assert not path.parent.exists()
    assert f"{MODEL} was removed" in command.out.getvalue()


@pytest.mark.parametrize("options", [(), ("--json",)])
def test_remove_that_cannot_ask_needs_yes(options: tuple[str, ...]) -> None:
    path = put_model(MODEL)
    command = CommandLine()
    assert command.run("models", "remove", MODEL, *options) == 1
    assert "--yes" in command.complaint
    assert path.is_file()


def test_remove_of_what_is_not_here_says_so_and_is_done() -> None:
    command = CommandLine()
    assert command.run("models", "remove", PAIR, "--yes", "--json") == 0
    assert command.events() == [{"event": "remove_finished", "models": []}]
    command = CommandLine()
    assert command.run("models", "remove", MODEL) == 0
    assert f"{MODEL} is not here" in command.out.getvalue()
