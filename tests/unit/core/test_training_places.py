"""Where a training keeps things, and what it says that they take."""

from dataclasses import replace

import pytest

from core.errors import UserError
from core.models.mtp.card import HeadHost
from core.models.mtp.files import save_head
from core.models.runner import EagerRunner
from core.requests import LoadRequest
from core.training.jobs import GenerationSettings
from core.training.places import check_place, disk_use, find_places, place_for_head
from core.training.request import TrainRequest
from tests.helpers.heads import random_head
from tests.helpers.tiny import tiny_llama

HOST = HeadHost(name="model", hidden=32, layers=2, vocab=256, fingerprint="0123456789abcdef")
SETTINGS = GenerationSettings(layers=(1, 2))


@pytest.fixture
def request_with(tmp_path):
    def make(**choices):
        return TrainRequest(load=LoadRequest(target="x"), home=tmp_path, **choices)

    return make


def test_heads_of_two_models_with_one_name_lie_in_two_folders(request_with, tmp_path):
    def head(host, **choices):
        return find_places(request_with(**choices), host, SETTINGS, [], []).head

    other = replace(HOST, fingerprint="fedcba9876543210")
    assert head(HOST) == tmp_path / "heads" / "model-sequential-01234567"
    assert head(other) == tmp_path / "heads" / "model-sequential-fedcba98"
    assert head(HOST, kind="parallel") != head(HOST)
    assert head(HOST, out=tmp_path / "mine") == tmp_path / "mine"


def test_a_head_is_saved_beside_others_and_never_over_one(tmp_path):
    folder, head = tmp_path / "head", random_head(EagerRunner(tiny_llama()))
    for name in ("head", "head-2", "head-3"):
        assert place_for_head(folder) == tmp_path / name
        save_head(head, tmp_path / name)


@pytest.mark.parametrize("kind", ["loop", "dangling", "long", "zero"])
def test_a_place_that_cannot_be_made_is_refused_in_words(tmp_path, kind):
    place = tmp_path / {"long": "n" * 300, "zero": "a\0b"}.get(kind, kind)
    if kind in ("loop", "dangling"):
        place.symlink_to("loop" if kind == "loop" else tmp_path / "nowhere" / "deep")
    with pytest.raises(UserError, match="--out"):
        check_place(place)


def test_a_free_place_can_be_given(tmp_path):
    (tmp_path / "empty").mkdir()
    for place in (tmp_path / "empty", tmp_path / "new" / "deeper"):
        check_place(place)
    assert not (tmp_path / "new").exists()


def test_minutes_take_no_more_of_the_disk_than_all_replies_would(request_with):
    def needed(prompts, **choices):
        request = request_with(**choices)
        places = find_places(request, HOST, SETTINGS, [], [])
        return disk_use(request, HOST, 2, places, prompts=prompts).needed_bytes

    few = {"temperatures": (0.0, 1.0), "max_new_tokens": 50}
    assert needed(4, minutes=60, **few) == needed(4, tokens=4 * 2 * 50, **few)
    assert needed(4, minutes=600, **few) == needed(4, minutes=60, **few)
    assert needed(10**9, minutes=600, **few) > needed(10**9, minutes=60, **few)
