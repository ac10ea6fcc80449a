"""Judging pairs by vocabulary."""

import time

from core.models.pairing import check_pair
from tests.helpers.tiny import byte_tokenizer
from tests.helpers.tiny_tokenizers import byte_level


class Vocabulary:
    """A tokenizer as far as pairing looks at it."""

    def __init__(self, vocab: dict[str, int]) -> None:
        self._vocab = vocab

    def get_vocab(self) -> dict[str, int]:
        return dict(self._vocab)


def vocabulary(size: int) -> dict[str, int]:
    return {f"token{number}": number for number in range(size)}


def test_the_same_tokenizer_is_compatible():
    verdict = check_pair(byte_tokenizer(), byte_tokenizer(), 256, 256)
    assert verdict.compatible
    assert verdict.shared_vocab == 256
    assert verdict.reason == "Both models use the same 256 tokens."


def test_different_widths_of_one_tokenizer_are_compatible_both_ways_round():
    for widths in ((256, 384), (384, 256)):
        verdict = check_pair(byte_tokenizer(), byte_tokenizer(), *widths)
        assert verdict.compatible
        assert verdict.shared_vocab == 256
        assert "padded differently" in verdict.reason


def test_padding_that_a_gguf_file_names_is_no_part_of_the_vocabulary():
    small = {**vocabulary(90), **{f"[PAD{number}]": number for number in range(90, 100)}}
    large = {**vocabulary(90), **{f"[PAD{number}]": number for number in range(90, 128)}}
    for pair in ((small, large), (large, small), (large, vocabulary(90))):
        verdict = check_pair(Vocabulary(pair[0]), Vocabulary(pair[1]), 100, 128)
        assert verdict.compatible
        assert verdict.shared_vocab == 90


def test_permuted_ids_are_refused_with_the_first_one_and_both_texts():
    permuted = vocabulary(100)
    permuted["token7"], permuted["token42"] = 42, 7
    verdict = check_pair(Vocabulary(vocabulary(100)), Vocabulary(permuted), 100, 100)
    assert not verdict.compatible
    assert verdict.reason == (
        "The vocabularies differ: token 7 is 'token7' in the target and 'token42' in the draft."
    )
    assert verdict.shared_vocab == 7


def test_added_tokens_count():
    plain = byte_level()
    more = byte_level()
    more.add_special_tokens({"additional_special_tokens": ["<tool>"]})
    verdict = check_pair(plain, more, 512, 512)
    assert not verdict.compatible
    assert f"token {len(plain)} is missing in the target and '<tool>' in the draft" in (
        verdict.reason
    )


def test_foreign_tokenizers_are_refused():
    verdict = check_pair(byte_tokenizer(), byte_level(), 256, 400)
    assert not verdict.compatible
    assert "The vocabularies differ" in verdict.reason


def test_a_model_without_a_vocabulary_is_refused_in_words():
    verdict = check_pair(Vocabulary({}), byte_tokenizer(), 256, 256)
    assert not verdict.compatible
    assert verdict.shared_vocab == 0


def test_comparing_150_thousand_tokens_takes_a_fraction_of_a_second():
    target, draft = vocabulary(150_000), vocabulary(150_000)
    draft["other"] = draft.pop("token149999")
    started = time.perf_counter()
    verdict = check_pair(Vocabulary(target), Vocabulary(draft), 150_000, 150_000)
    # 40 ms on an idle machine; the bound leaves room for a busy one.
    assert time.perf_counter() - started < 1.0
    assert not verdict.compatible
