"""Prompt lookup proposes what followed the last time, and stays cheap in long contexts."""

import random
from collections import Counter
from collections.abc import Iterable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.drafting.base import DraftContext
from core.drafting.ngram import NgramDrafter


def propose(ids, gamma=4, **options):
    draft = NgramDrafter(**options).propose(DraftContext(list(ids), prompt_length=0), gamma)
    return None if draft is None else list(draft.ids)


def reference(ids, gamma, min_ngram, max_ngram, boundary_ids):
    """The most recent longest match by brute force, continued through its own tokens."""
    best, best_length = None, 0
    for end in range(len(ids) - 1, 0, -1):
        length = 0
        while (
            length < min(max_ngram, end)
            and ids[end - 1 - length] == ids[-1 - length]
            and ids[-1 - length] not in boundary_ids
        ):
            length += 1
        if length >= min_ngram and length > best_length:
            best, best_length = end, length
    if best is None:
        return None
    text = list(ids)
    proposal = []
    for position in range(best, best + gamma):
        if text[position] in boundary_ids:
            break
        proposal.append(text[position])
        text.append(text[position])
    return proposal or None


def test_what_followed_the_last_time_is_proposed():
    assert propose([1, 2, 3, 4, 5, 9, 1, 2], gamma=3) == [3, 4, 5]


def test_a_single_repeated_token_is_no_match():
    assert propose([1, 2, 3, 9, 1]) is None


def test_a_longer_match_is_preferred_to_a_later_one():
    assert propose([7, 1, 2, 3, 0, 1, 2, 4, 0, 7, 1, 2], gamma=1) == [3]


def test_of_equally_long_matches_the_most_recent_is_taken():
    assert propose([8, 1, 2, 3, 9, 1, 2, 4, 5, 1, 2], gamma=1) == [4]


def test_no_match_declines():
    assert propose([1, 2, 3, 4]) is None
    assert propose([]) is None


@pytest.mark.parametrize("gamma", range(9))
def test_never_more_than_asked_is_proposed(gamma):
    proposal = propose([1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 2], gamma=gamma)
    assert proposal == ([3, 4, 5, 6, 7, 8, 9, 1][:gamma] or None)


def test_periodic_text_is_drafted_through_the_end_of_the_context():
    assert propose([1, 2, 3, 1, 2], gamma=8) == [3, 1, 2, 3, 1, 2, 3, 1]
    assert propose([5, 5, 5], gamma=4) == [5, 5, 5, 5]


def test_a_match_does_not_cross_a_turn_marker():
    assert propose([1, 0, 2, 7, 8, 1, 0, 2], min_ngram=2, boundary_ids=frozenset({0})) is None


def test_a_proposal_is_cut_before_a_turn_marker_or_end():
    ids = [1, 2, 3, 0, 4, 1, 2]
    assert propose(ids, boundary_ids=frozenset({0})) == [3]
    assert propose([1, 2, 0, 4, 1, 2], boundary_ids=frozenset({0})) is None


def test_the_proposal_is_deterministic_so_it_has_no_probabilities():
    draft = NgramDrafter().propose(DraftContext([1, 2, 3, 1, 2], prompt_length=0), 2)
    assert draft is not None
    assert draft.probs is None


@pytest.mark.parametrize(("low", "high"), [(0, 3), (3, 2), (-1, 0)])
def test_an_empty_range_of_lengths_is_refused(low, high):
    with pytest.raises(ValueError, match="are no range"):
        NgramDrafter(min_ngram=low, max_ngram=high)


contexts = st.lists(st.integers(0, 3), max_size=40)


@settings(max_examples=400)
@given(
    contexts, st.integers(0, 6), st.integers(1, 3), st.integers(0, 4), st.sampled_from([(), (0,)])
)
def test_any_context_agrees_with_brute_force(ids, gamma, low, more, boundary):
    proposal = propose(
        ids, gamma, min_ngram=low, max_ngram=low + more, boundary_ids=frozenset(boundary)
    )
    expected = reference(ids, gamma, low, low + more, frozenset(boundary))
    assert proposal == (expected if gamma else None)


@settings(max_examples=200)
@given(contexts, st.lists(st.lists(st.integers(0, 3), min_size=1, max_size=6), max_size=8))
def test_a_context_that_grows_round_by_round_is_indexed_as_if_new(prompt, rounds):
    drafter = NgramDrafter()
    ids = list(prompt)
    context = DraftContext(ids, prompt_length=len(ids))
    for committed in rounds:
        draft = drafter.propose(context, 4)
        assert (None if draft is None else list(draft.ids)) == propose(ids)
        drafter.commit(0, committed)
        ids.extend(committed)


@settings(max_examples=200)
@given(contexts, st.integers(0, 40), contexts)
def test_an_edited_context_is_indexed_afresh(ids, kept, other):
    drafter = NgramDrafter()
    drafter.propose(DraftContext(ids, prompt_length=0), 4)
    edited = [*ids[:kept], 9, *other]
    draft = drafter.propose(DraftContext(edited, prompt_length=0), 4)
    assert (None if draft is None else list(draft.ids)) == propose(edited)


def test_after_a_reset_nothing_of_the_old_text_is_proposed():
    drafter = NgramDrafter()
    drafter.propose(DraftContext([1, 2, 3, 4], prompt_length=0), 4)
    drafter.reset()
    assert drafter.propose(DraftContext([5, 6, 1, 2], prompt_length=0), 4) is None


@pytest.mark.parametrize("kind", ["varied", "monotonous", "frequent"])
def test_a_round_in_a_context_of_30000_tokens_stays_cheap(kind):
    rng = random.Random(7)
    if kind == "varied":
        ids = [rng.randrange(2000) for _ in range(30_000)]
    elif kind == "monotonous":
        ids = [5] * 30_000
    else:  # the same two tokens all over the text, before and after something else each time
        ids = [token for n in range(10_000) for token in (100 + n, 1, 2)]
    read = Counter[str]()

    class Read(list[int]):
        """Counts the entries that are read, by the owner's name."""

        def __init__(self, owner: str, entries: Iterable[int]) -> None:
            super().__init__(entries)
            self.owner = owner

        def __getitem__(self, index):
            found = super().__getitem__(index)
            read[self.owner] += len(found) if isinstance(index, slice) else 1
            return found

        def __iter__(self):
            read[self.owner] += len(self)
            return super().__iter__()

    ids = Read("context", ids)
    drafter = NgramDrafter()
    context = DraftContext(ids, prompt_length=len(ids))
    drafter.propose(context, 8)
    drafter._ids = Read("index", drafter._ids)
    drafter._earlier = Read("chain", drafter._earlier)
    for _ in range(50):
        read.clear()
        drafter.propose(context, 8)
        # What is new, and the tail that tells whether the text goes on.
        assert read["context"] <= 50
        assert read["chain"] <= 1100
        assert read["index"] <= 10_000
        ids.extend((1, 2))
