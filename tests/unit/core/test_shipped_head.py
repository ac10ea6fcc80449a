"""The head that ships for the default model, as it lies in resources."""

from core.hub.heads import SHIPPED_HEADS
from core.models.mtp.files import load_head

MOST_BYTES = 20_000_000


def test_a_shipped_head_is_small_measured_and_says_how_it_was_made():
    folders = [path for path in SHIPPED_HEADS.iterdir() if path.is_dir()]
    assert folders
    for folder in folders:
        assert sum(path.stat().st_size for path in folder.iterdir()) <= MOST_BYTES
        card = load_head(folder).card
        assert card.depth == len(card.acceptance) == 3
        assert card.acceptance_length >= 1.9
        assert card.command.startswith("paceline train-mtp ")
        assert "/" not in card.command  # no place of the machine that made it
        assert card.data
        assert card.licence
