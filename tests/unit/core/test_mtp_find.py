"""Which head a pair gets, and what is said where it gets none."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from core.cancel import CancelToken
from core.cli.options import load_request_of
from core.cli.parser import build_parser
from core.engine import Engine
from core.models.mtp.card import CARD_NAME
from core.models.mtp.files import save_head
from core.models.mtp.find import HeadSearch
from core.models.mtp.host import describe_host
from core.models.runner import EagerRunner
from core.requests import DrafterKind, LoadRequest
from tests.helpers.checkpoints import save_folder, write_gguf
from tests.helpers.heads import random_head, saved_head
from tests.helpers.tiny import ids, request, run, tiny_llama


def _host(seed=0):
    return EagerRunner(tiny_llama(seed=seed))


def _break(folder: Path) -> None:
    for weights in folder.glob("*.safetensors"):
        weights.write_bytes(b"")


def test_the_first_host_and_the_first_folder_come_first(tmp_path):
    own, shipped = tmp_path / "own", tmp_path / "shipped"
    hosts = [describe_host(_host(seed)) for seed in (0, 1, 2)]
    search = HeadSearch(folders=(own, shipped))
    assert search.find(hosts)[0] is None
    save_head(random_head(_host(1)), shipped / "of-the-draft")
    assert search.find(hosts)[0].name == "of-the-draft"
    assert search.find(hosts)[0].host == 1
    save_head(random_head(_host(0)), shipped / "of-the-target")
    assert search.find(hosts)[0].name == "of-the-target"
    save_head(random_head(_host(0)), own / "mine")
    assert search.find(hosts)[0].name == "mine"
    assert search.find(hosts)[0].host == 0
    _break(own / "mine")
    assert search.find(hosts)[0].name == "of-the-target"


def test_of_several_heads_the_longest_measured_acceptance_counts(tmp_path):
    own, shipped = tmp_path / "own", tmp_path / "shipped"
    search = HeadSearch(folders=(own, shipped))
    hosts = [describe_host(_host())]
    head = random_head(_host())
    for folder, length in ((own / "a", 1.4), (own / "b", None), (shipped / "c", 1.9)):
        save_head(head, folder, card=replace(head.card, acceptance_length=length))
    assert search.find(hosts)[0].name == "c"
    save_head(head, own / "a", card=replace(head.card, acceptance_length=1.9))
    assert search.find(hosts)[0].name == "a"


def test_a_damaged_head_is_the_reason_where_there_is_no_other(tmp_path):
    save_head(random_head(_host()), tmp_path / "heads" / "mine")
    _break(tmp_path / "heads" / "mine")
    (tmp_path / "heads" / "empty").mkdir()
    (tmp_path / "heads" / "file").write_text("")
    for folders in ((tmp_path / "heads",), (tmp_path / "heads" / "file", tmp_path / "heads")):
        found, reason = HeadSearch(folders=folders).find([describe_host(_host())])
        assert found is None
        assert "damaged" in reason


@pytest.mark.parametrize(
    "card",
    [
        "[" * 200_000,
        '{"acceptance_length": 1' + "0" * 400 + "}",
        '{"host": {"fingerprint": "%s"}, "acceptance_length": 9, "weights": {"file": "\\u0000"}}',
        '{"host": {"fingerprint": "%s"}, "acceptance_length": Infinity}',
    ],
    ids=["nested", "number", "zero", "infinite"],
)
def test_no_damaged_card_keeps_another_head_away(tmp_path, card):
    host = describe_host(_host())
    save_head(random_head(_host()), tmp_path / "mine")
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / CARD_NAME).write_text(card.replace("%s", host.fingerprint))
    found, _ = HeadSearch(folders=(tmp_path,)).find([host])
    assert found.name == "mine"


def test_a_head_that_was_asked_for_is_the_only_one_looked_at(tmp_path):
    save_head(random_head(_host(1)), tmp_path / "heads" / "other")
    save_head(random_head(_host(0)), tmp_path / "heads" / "mine")
    hosts = [describe_host(_host(0))]
    search = HeadSearch(path=tmp_path / "heads" / "other", folders=(tmp_path / "heads",))
    found, reason = search.find(hosts)
    assert found is None
    assert "other weights" in reason
    search = HeadSearch(path=tmp_path / "heads" / "mine" / "head.json")
    assert search.find(hosts)[0].name == "mine"


@pytest.fixture
def checkpoint(tmp_path):
    return save_folder(tmp_path / "model")


def _load(checkpoint, head=None, precision="int8"):
    engine = Engine(prepared_dir=checkpoint.parent / "prepared")
    wanted = LoadRequest(target=str(checkpoint), device="cpu", precision=precision, head=head)
    return engine, engine.load(wanted, lambda progress: None, CancelToken())


def _option(loaded):
    return next(option for option in loaded.drafters if option.kind == DrafterKind.MTP)


@pytest.mark.parametrize("form", ["folder", "gguf"])
def test_a_load_finds_the_head_of_the_target_whatever_the_precision(
    tmp_path, checkpoint, monkeypatch, form
):
    if form == "gguf":
        checkpoint = write_gguf(tmp_path / "model.gguf")
    monkeypatch.setenv("PACELINE_HOME", str(tmp_path / "home"))
    engine, loaded = _load(checkpoint)
    assert not _option(loaded).available
    assert _option(loaded).reason == "no head was trained for this model"
    runner = engine._parts.target.runner
    save_head(random_head(runner, vocabulary=range(200)), tmp_path / "home" / "heads" / "mine")
    for precision in ("int8", "float32", "bfloat16"):
        engine, loaded = _load(checkpoint, precision=precision)
        assert loaded.head == "mine on model"
        assert _option(loaded).available
        assert loaded.notices == ()
    plain = ids(run(engine, request(drafter="off", max_new_tokens=9)))
    assert len(ids(run(engine, request(drafter="mtp", max_new_tokens=9)))) == len(plain)


def test_a_head_that_does_not_fit_is_left_out_with_a_notice(tmp_path, checkpoint):
    save_head(random_head(_host(3)), tmp_path / "foreign")
    for path, words in ((tmp_path / "foreign", "was made for"), (tmp_path / "no", "no head at")):
        _, loaded = _load(checkpoint, head=str(path))
        assert loaded.head is None
        assert words in _option(loaded).reason
        assert words in " ".join(loaded.notices)


@pytest.mark.parametrize("kind", [MemoryError, torch.OutOfMemoryError])
def test_case_28_a_head_without_memory_is_left_out_and_the_pair_is_usable(
    tmp_path, checkpoint, monkeypatch, kind
):
    def full(*_):
        raise kind("no memory, on purpose")

    engine, _ = _load(checkpoint)
    save_head(random_head(engine._parts.target.runner), tmp_path / "head")
    monkeypatch.setattr("core.drafting.heads.make_head_runner", full)
    engine, loaded = _load(checkpoint, head=str(tmp_path / "head"))
    assert loaded.head is None
    assert loaded.notices == ("The head was left out: there is not enough memory for it.",)
    assert len(ids(run(engine, request(drafter="mtp", max_new_tokens=4)))) == 4


def test_the_command_line_hands_the_path_on(checkpoint, tmp_path):
    path = str(saved_head(tmp_path / "mine"))
    arguments = ["ask", "--target", str(checkpoint), "--head", path, "Hello"]
    assert load_request_of(build_parser().parse_args(arguments)).head == path
