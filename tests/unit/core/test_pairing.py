"""Judging pairs by vocabulary."""

from core.models.pairing import check_pair, compare_vocabularies
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


def test_comparing_vocabularies_looks_each_token_up_a_few_times_and_goes_through_a_few_times():
    looked_up, gone_through = [], []

    class Counting(dict[str, int]):
        def get(self, key, default=None):
            looked_up.append(key)
            return super().get(key, default)

        def __getitem__(self, key):
            looked_up.append(key)
            return super().__getitem__(key)

        def __contains__(self, key):
            looked_up.append(key)
            return super().__contains__(key)

        def items(self):
            gone_through.append("items")
            return super().items()

        def values(self):
            gone_through.append("values")
            return super().values()

        def keys(self):
            gone_through.append("keys")
            return super().keys()

        def __iter__(self):
            gone_through.append("iter")
            return super().__iter__()

    target, draft = Counting(vocabulary(1_000)), Counting(vocabulary(1_000))
    draft["other"] = draft.pop("token999")
    verdict = compare_vocabularies(target, draft, 1_000, 1_000)
    assert not verdict.compatible
    assert len(looked_up) <= 3 * 1_000
    assert len(gone_through) <= 10
