"""Where a training keeps things, and what it says that they take."""

from dataclasses import replace

import pytest

from core.models.mtp.card import HeadHost
from core.requests import LoadRequest
from core.training.jobs import GenerationSettings
from core.training.places import find_places
from core.training.request import TrainRequest

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
