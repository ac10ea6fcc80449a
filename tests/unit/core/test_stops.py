"""Stop strings end a reply exactly where they begin, however the text is cut into tokens."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.decoding.stops import StopScanner


def scan(stop, texts):
    """Return the token texts shown, and whether a stop string ended the reply."""
    scanner = StopScanner(stop)
    shown = []
    for text in texts:
        result = scanner.feed(text)
        shown += result.texts
        if result.matched:
            return shown, True
    result = scanner.flush()
    return shown + list(result.texts), result.matched


def reference(stop, texts):
    """Cut the whole text where the earliest stop string begins; keep each token's own part."""
    whole = "".join(texts)
    starts = [whole.find(s) for s in stop if s in whole]
    if not starts:
        return list(texts), False
    shown, done = [], 0
    for text in texts:
        if done >= min(starts):
            break
        shown.append(text[: min(starts) - done])
        done += len(text)
    return shown, True


def cuts(text):
    """Every way to cut a text into tokens of at least one character."""
    if not text:
        yield []
    for length in range(1, len(text) + 1):
        for rest in cuts(text[length:]):
            yield [text[:length], *rest]


def test_without_stop_strings_every_token_is_shown_at_once():
    scanner = StopScanner(())
    assert scanner.feed("a").texts == ("a",)
    assert scanner.feed("").texts == ("",)
    assert scanner.flush().texts == ()


@pytest.mark.parametrize("offset", range(9))
def test_a_stop_string_is_found_at_every_offset_and_across_every_cut(offset):
    text = "x" * offset + "STOP" + "x" * (8 - offset)
    for size in range(1, len(text) + 1):
        texts = [text[start : start + size] for start in range(0, len(text), size)]
        shown, matched = scan(("STOP",), texts)
        assert matched
        assert "".join(shown) == "x" * offset
        assert all(shown)


@pytest.mark.parametrize("texts", list(cuts("aaSTOP!")), ids="|".join)
def test_the_outcome_does_not_depend_on_how_the_text_is_cut(texts):
    shown, matched = scan(("STOP", "P!"), texts)
    assert ("".join(shown), matched) == ("aa", True)


def test_a_token_is_held_only_while_it_may_belong_to_a_stop_string():
    scanner = StopScanner(("\n\nUser:",))
    assert scanner.feed("Hi").texts == ("Hi",)
    assert scanner.feed(".\n").texts == ()
    assert scanner.feed("\n").texts == ()
    assert scanner.feed("Well").texts == (".\n", "\n", "Well")


def test_the_token_in_which_the_stop_string_begins_keeps_its_own_text_before_it():
    assert scan(("END",), ["one", " two E", "N", "D three"]) == (["one", " two "], True)


def test_a_token_left_without_text_is_dropped():
    assert scan(("END",), ["one", "END"]) == (["one"], True)


def test_a_token_that_only_begins_a_character_goes_with_that_character():
    assert scan(("é",), ["a", "", "é", "b"]) == (["a"], True)
    assert scan(("x",), ["a", "", "é", "b"]) == (["a", "", "é", "b"], False)


def test_the_match_that_starts_earliest_wins_even_if_another_is_complete_before():
    assert scan(("abcd", "bc"), list("xabcdx")) == (["x"], True)
    assert scan(("abcd", "bc"), list("xabcx")) == (["x", "a"], True)


def test_a_complete_match_counts_when_the_reply_ends_while_a_longer_one_is_pending():
    assert scan(("abcd", "bc"), list("xabc")) == (["x", "a"], True)


def test_a_failed_start_of_a_stop_string_can_contain_the_real_one():
    assert scan(("aab",), list("aaab")) == (["a"], True)


def test_an_unfinished_stop_string_at_the_end_is_shown():
    assert scan(("STOP",), ["a", "ST"]) == (["a", "ST"], False)


tokens = st.lists(st.text(alphabet="ab\n", max_size=4), max_size=14)
stops = st.lists(st.text(alphabet="ab\n", min_size=1, max_size=5), min_size=1, max_size=3)


@settings(max_examples=800)
@given(tokens, stops)
def test_any_text_and_stop_strings_agree_with_a_search_of_the_whole_text(texts, stop):
    assert scan(tuple(stop), texts) == reference(stop, texts)


@settings(max_examples=300)
@given(tokens, stops)
def test_what_is_shown_before_the_end_is_never_taken_back(texts, stop):
    scanner = StopScanner(tuple(stop))
    shown = ""
    for count, text in enumerate(texts, start=1):
        result = scanner.feed(text)
        shown += "".join(result.texts)
        assert "".join(reference(stop, texts)[0]).startswith(shown)
        if result.matched:
            break
        held = len("".join(texts[:count])) - len(shown)
        assert held < max(map(len, stop)) + 4
