"""Tiny random models, a byte-level tokenizer and scripted drafters for the unit tests."""

from collections.abc import Iterator, Sequence

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import (
    LlamaConfig,
    LlamaForCausalLM,
    MistralConfig,
    MistralForCausalLM,
    PreTrainedModel,
    PreTrainedTokenizerFast,
)

from core.cancel import CancelToken
from core.drafting.base import Draft
from core.engine import Engine
from core.events import Event, Failed, Finished, Round, Token
from core.requests import GenerateRequest, SamplingParams, SpeculationParams

VOCAB = 256


def tiny_llama(
    *, seed: int = 0, vocab: int = VOCAB, context: int = 512, hidden: int = 32
) -> LlamaForCausalLM:
    """T of the test kit: 2 layers, float32, fixed seed."""
    torch.manual_seed(seed)
    config = LlamaConfig(
        vocab_size=vocab,
        hidden_size=hidden,
        intermediate_size=2 * hidden,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=context,
        # Wide weights make sharp distributions, so that drafts are neither all right nor all wrong.
        initializer_range=0.4,
        eos_token_id=None,
        bos_token_id=None,
        tie_word_embeddings=False,
    )
    return LlamaForCausalLM(config).eval()


def anti(model: LlamaForCausalLM) -> LlamaForCausalLM:
    """A model that likes least what ``model`` likes best."""
    other = type(model)(model.config).eval()
    other.load_state_dict(model.state_dict())
    with torch.no_grad():
        other.lm_head.weight.neg_()
    return other


def noisy(model: PreTrainedModel, scale: float = 0.05, seed: int = 1) -> PreTrainedModel:
    """A model that agrees with ``model`` often but not always."""
    other = type(model)(model.config).eval()
    other.load_state_dict(model.state_dict())
    torch.manual_seed(seed)
    with torch.no_grad():
        for parameter in other.parameters():
            parameter.add_(scale * parameter.std() * torch.randn_like(parameter))
    return other


def wide(model: LlamaForCausalLM, extra: int = 128) -> LlamaForCausalLM:
    """``model`` with its vocabulary padded by ``extra`` rows that it must never choose."""
    config = LlamaConfig(
        **{**model.config.to_dict(), "vocab_size": model.config.vocab_size + extra}
    )
    other = LlamaForCausalLM(config).eval()
    state = model.state_dict()
    for name in ("model.embed_tokens.weight", "lm_head.weight"):
        padding = 10.0 * torch.randn(extra, state[name].shape[1])
        state[name] = torch.cat([state[name], padding])
    other.load_state_dict(state)
    return other


def sliding(*, seed: int = 0, window: int = 8, context: int = 512) -> MistralForCausalLM:
    """SWA of the test kit: every layer sees the last ``window`` tokens alone."""
    torch.manual_seed(seed)
    config = MistralConfig(
        vocab_size=VOCAB,
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=context,
        sliding_window=window,
        initializer_range=0.4,
        eos_token_id=None,
        bos_token_id=None,
        tie_word_embeddings=False,
    )
    return MistralForCausalLM(config).eval()


def byte_tokenizer(eos: str | None = None) -> PreTrainedTokenizerFast:
    """A tokenizer of the 256 byte tokens, without merges."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokenizer = Tokenizer(
        models.BPE(vocab={symbol: index for index, symbol in enumerate(alphabet)}, merges=[])
    )
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token=eos)


class ScriptedDrafter:
    """Returns the given ids, whatever the context; ``probs`` None makes them deterministic."""

    def __init__(self, proposals: Sequence[Sequence[int]]) -> None:
        self._proposals: Iterator[Sequence[int]] = iter(proposals)
        self.committed: list[tuple[int, tuple[int, ...]]] = []

    def propose(self, context: Sequence[int], gamma: int) -> Draft | None:
        ids = next(self._proposals, None)
        return None if ids is None else Draft(tuple(ids))

    def commit(self, accepted: int, committed_ids: Sequence[int]) -> None:
        self.committed.append((accepted, tuple(committed_ids)))

    def reset(self) -> None:
        pass


def request(
    prompt: Sequence[int] = (1, 2, 3, 4, 5),
    *,
    drafter: str = "model",
    gamma: int = 4,
    max_new_tokens: int = 32,
    stop: tuple[str, ...] = (),
    **sampling: float,
) -> GenerateRequest:
    """A request on plain ids."""
    return GenerateRequest(
        prompt_ids=tuple(prompt),
        sampling=SamplingParams(**sampling),  # type: ignore[arg-type]
        speculation=SpeculationParams(drafter=drafter, gamma=gamma),
        max_new_tokens=max_new_tokens,
        stop=stop,
    )


def run(engine: Engine, wanted: GenerateRequest) -> list[Event]:
    """All events of a reply that must not fail."""
    events = list(engine.generate(wanted, CancelToken()))
    if isinstance(events[-1], Failed):
        raise AssertionError(f"{events[-1].message}\n{events[-1].detail}")
    return events


def rounds(events: Sequence[Event]) -> list[Round]:
    return [event for event in events if isinstance(event, Round)]


def tokens(events: Sequence[Event]) -> list[Token]:
    return [token for round_ in rounds(events) for token in round_.tokens]


def ids(events: Sequence[Event]) -> list[int]:
    return [token.id for token in tokens(events)]


def finished(events: Sequence[Event]) -> Finished:
    last = events[-1]
    if not isinstance(last, Finished):
        raise AssertionError(f"the reply ended with {last}")
    return last
