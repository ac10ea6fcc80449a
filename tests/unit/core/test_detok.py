"""Text appears token by token, never broken, and equals decoding all ids at once."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.decoding.detok import Detokenizer
from tests.helpers.tiny_tokenizers import byte_level, sentencepiece_like

BYTE_LEVEL = byte_level()
SENTENCEPIECE = sentencepiece_like()
CASE_19 = "👩‍👩‍👧 日本 é"


def one_shot(tokenizer, ids):
    return tokenizer.decode(ids, skip_special_tokens=True, clean_up_tokenization_spaces=False)


def stream(tokenizer, ids):
    detokenizer = Detokenizer(tokenizer)
    return [*(detokenizer.feed(token) for token in ids), detokenizer.flush()]


def byte_ids(text):
    """One token a byte, as the byte-level alphabet spells it."""
    pieces = BYTE_LEVEL.backend_tokenizer.pre_tokenizer.pre_tokenize_str(text)
    return [
        BYTE_LEVEL.convert_tokens_to_ids(character) for piece, _ in pieces for character in piece
    ]


class CountingTokenizer:
    """Counts the ids that are decoded in all."""

    unk_token_id = None

    def __init__(self, tokenizer):
        self._tokenizer = tokenizer
        self.decoded = 0

    def convert_tokens_to_ids(self, token):
        return self._tokenizer.convert_tokens_to_ids(token)

    def decode(self, ids, **options):
        self.decoded += len(ids)
        return self._tokenizer.decode(ids, **options)


def test_a_character_appears_whole_with_the_token_that_completes_it():
    ids = byte_ids("é日a")
    assert stream(BYTE_LEVEL, ids) == ["", "é", "", "", "日", "a", ""]


def test_case_19_one_byte_at_a_time_never_shows_a_replacement_character():
    texts = stream(BYTE_LEVEL, byte_ids(CASE_19))
    assert "".join(texts) == CASE_19
    assert not any("\ufffd" in text for text in texts)


@pytest.mark.parametrize("kept", range(len(CASE_19.encode()) + 1))
def test_a_reply_stopped_in_mid_character_shows_only_whole_characters(kept):
    ids = byte_ids(CASE_19)[:kept]
    assert "".join(stream(BYTE_LEVEL, ids)) == CASE_19.encode()[:kept].decode(errors="ignore")


def test_a_token_that_ends_in_mid_character_shows_what_is_complete_of_it():
    tokenizer = byte_level()
    tokenizer.add_tokens(["zzĠðŁ"])  # "zz " and the first half of an emoji, in one token
    ids = [tokenizer.convert_tokens_to_ids("zzĠðŁ"), *byte_ids("😀")[2:]]
    assert stream(tokenizer, ids) == ["zz ", "", "😀", ""]


def test_invalid_bytes_in_the_middle_equal_one_shot_decoding():
    lone = byte_ids("é")[1]
    ids = [*byte_ids("a"), lone, lone, *byte_ids("b")]
    assert "".join(stream(BYTE_LEVEL, ids)) == one_shot(BYTE_LEVEL, ids) == "a\ufffd\ufffdb"


def test_a_broken_byte_token_does_not_take_back_a_character_already_shown():
    ids = SENTENCEPIECE.encode("😀", add_special_tokens=False)
    ids = [*ids, ids[-1], *SENTENCEPIECE.convert_tokens_to_ids(["▁fox"])]
    texts = "".join(stream(SENTENCEPIECE, ids))
    assert texts.startswith("😀")
    assert texts.endswith("\ufffd fox")


def test_special_tokens_are_not_shown():
    end = BYTE_LEVEL.convert_tokens_to_ids("<|im_end|>")
    ids = [*byte_ids("a"), end, *byte_ids("b")]
    assert stream(BYTE_LEVEL, ids) == ["a", "", "b", ""]


def test_ids_beyond_the_tokenizer_add_nothing():
    assert stream(BYTE_LEVEL, [*byte_ids("a"), 100_000, *byte_ids("b")]) == ["a", "", "b", ""]


@settings(max_examples=150)
@given(st.text(max_size=80))
def test_any_text_streams_to_itself(text):
    ids = BYTE_LEVEL.encode(text, add_special_tokens=False)
    texts = "".join(stream(BYTE_LEVEL, ids))
    # One ending in a genuine U+FFFD cannot be told from one cut in mid-character.
    assert texts == one_shot(BYTE_LEVEL, ids).removesuffix("\ufffd")


@settings(max_examples=300)
@given(st.lists(st.integers(0, len(BYTE_LEVEL) - 1), max_size=120))
def test_any_ids_stream_to_their_one_shot_decoding(ids):
    expected = one_shot(BYTE_LEVEL, ids).removesuffix("\ufffd")
    assert "".join(stream(BYTE_LEVEL, ids)) == expected


@settings(max_examples=150)
@given(st.text(alphabet="the quickfoxa é日😀|<>", max_size=80))
def test_leading_spaces_and_byte_tokens_stream_as_decoded_at_once(text):
    ids = SENTENCEPIECE.encode(text, add_special_tokens=False)
    assert "".join(stream(SENTENCEPIECE, ids)) == one_shot(SENTENCEPIECE, ids)


@pytest.mark.parametrize("kept", range(1, 8))
def test_byte_tokens_cut_in_mid_character_show_only_whole_characters(kept):
    ids = SENTENCEPIECE.encode("😀😀", add_special_tokens=False)[1:][:kept]
    texts = stream(SENTENCEPIECE, ids)
    assert "".join(texts) == "😀😀".encode()[:kept].decode(errors="ignore")


@pytest.mark.parametrize(
    ("tokenizer", "ids"),
    [
        (BYTE_LEVEL, byte_ids("plain words in a row ") * 200),
        (BYTE_LEVEL, byte_ids(CASE_19) * 100),
        (BYTE_LEVEL, [byte_ids("é")[1]] * 3000),
        (SENTENCEPIECE, SENTENCEPIECE.encode("the quick fox " * 200)),
        (SENTENCEPIECE, SENTENCEPIECE.encode("😀" * 700)),
    ],
    ids=["words", "emoji", "invalid", "pieces", "byte-tokens"],
)
def test_the_cost_of_a_token_does_not_grow_with_the_reply(tokenizer, ids):
    counting = CountingTokenizer(tokenizer)
    detokenizer = Detokenizer(counting)
    for token in ids:
        detokenizer.feed(token)
    assert counting.decoded / len(ids) < 100


@pytest.mark.real_model
def test_the_default_models_tokenizer_streams_case_19(smollm2):
    tokenizer = smollm2.target.tokenizer
    ids = tokenizer.encode(
        f"{CASE_19}\n```python\n\tprint('naïve  €')\n```", add_special_tokens=False
    )
    texts = stream(tokenizer, ids)
    assert "".join(texts) == one_shot(tokenizer, ids)
    assert not any("\ufffd" in text for text in texts)
