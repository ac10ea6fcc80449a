"""The head that ships for the default model, as it lies in resources."""

import pytest

from core.hub.heads import SHIPPED_HEADS
from core.models.mtp.files import load_head

FOLDERS = [path for path in SHIPPED_HEADS.iterdir() if path.is_dir()]


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_a_shipped_head_is_small_measured_and_says_how_it_was_made(folder):
    assert sum(path.stat().st_size for path in folder.iterdir()) <= 22_000_000
    card = load_head(folder).card
    assert card.depth == len(card.acceptance) == 3
    assert card.acceptance_length >= 1.45
    assert card.command.startswith("paceline train-mtp ")
    assert "/" not in card.command  # no place of the machine that made it
    assert card.data
    assert card.licence


def test_the_head_of_the_default_model_is_smaller_and_better():
    (folder,) = [folder for folder in FOLDERS if folder.name.startswith("smollm2-135m")]
    assert sum(path.stat().st_size for path in folder.iterdir()) <= 20_000_000
    assert load_head(folder).card.acceptance_length >= 1.9
