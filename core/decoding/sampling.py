"""One path from logits to a drawn token, for draft and target alike.

Order of the steps: repetition, presence and frequency penalties, temperature, top-k, top-p,
min-p. The repetition penalty sees prompt and reply (Keskar et al. 2019, CTRL); presence and
frequency penalties see the reply alone. Everything is float32 and row by row, so a row's
distribution does not depend on the rows beside it.
"""

from collections.abc import Sequence

import torch

from core.requests import SamplingParams

_NUCLEUS_GUESS = 1024
"""Tokens tried for top-p before a whole row is sorted, which takes ten times longer."""


class Sampler:
    """Shapes logits and draws tokens for one request; used by one thread.

    ``committed_ids`` (prompt, then reply) feed the penalties; ``generator`` is a CPU generator,
    so that a seed means the same on every device.
    """

    def __init__(
        self,
        params: SamplingParams,
        *,
        vocab_size: int,
        prompt_ids: Sequence[int] = (),
        device: torch.device | str = "cpu",
        generator: torch.Generator | None = None,
    ) -> None:
        self.params = params
        self.greedy = params.temperature == 0.0
        self._vocab_size = vocab_size
        self._generator = generator if generator is not None else _generator(params.seed)
        self._penalties = (
            _Penalties(params, vocab_size, prompt_ids, device) if _penalises(params) else None
        )

    def commit(self, ids: Sequence[int]) -> None:
        """Add reply tokens that later penalties must see."""
        if self._penalties is not None:
            self._penalties.commit(ids)

    @torch.inference_mode()
    def shape(self, logits: torch.Tensor, drafted: Sequence[int] = ()) -> torch.Tensor:
        """Return float32 logits [rows, vocab] after penalties.

        Row j sees the committed tokens and ``drafted[: len(drafted) - rows + 1 + j]``.
        """
        logits = logits.float()
        if self._penalties is not None:
            logits = self._penalties.apply(logits, drafted)
        return logits

    @torch.inference_mode()
    def probs(self, logits: torch.Tensor, drafted: Sequence[int] = ()) -> torch.Tensor:
        """Return the distribution [rows, vocab] that tokens are drawn from; rows as in shape().

        At temperature 0 it is one-hot at the largest logit.
        """
        shaped = self.shape(logits, drafted)
        if self.greedy:
            one_hot = torch.zeros_like(shaped)
            return one_hot.scatter_(-1, shaped.argmax(dim=-1, keepdim=True), 1.0)
        return filtered_probs(shaped, self.params)

    @torch.inference_mode()
    def draft_probs(
        self, logits: torch.Tensor, drafted: Sequence[int], ids: torch.Tensor | None = None
    ) -> torch.Tensor:
        """Return what a draft model drafts from; rows as in shape().

        At temperature 0 that is the model's own distribution, of which it takes the peak: how high
        that is says how sure the draft is. ``ids`` [columns] are the tokens that the columns stand
        for where the draft knows but some; None means all in their order.
        """
        if ids is None or self._penalties is None:
            shaped = self.shape(logits, drafted)
        else:
            full = logits.new_full((len(logits), self._vocab_size), float("-inf"))
            full[:, ids] = logits
            shaped = self.shape(full, drafted)[:, ids]
        if self.greedy:
            return torch.softmax(shaped, dim=-1)
        return filtered_probs(shaped, self.params)

    def uniforms(self, count: int) -> list[float]:
        """Draw independent uniforms in [0, 1)."""
        drawn: list[float] = torch.rand(
            count, generator=self._generator, dtype=torch.float64
        ).tolist()
        return drawn


@torch.inference_mode()
def filtered_probs(logits: torch.Tensor, params: SamplingParams) -> torch.Tensor:
    """Return softmax of [rows, vocab] logits after temperature, top-k, top-p and min-p.

    ``params.temperature`` must be above 0.
    """
    # Subtracting the maximum first keeps logits / temperature finite at tiny temperatures.
    logits = (logits - logits.amax(dim=-1, keepdim=True)) / params.temperature
    probs = torch.softmax(logits, dim=-1)  # [rows, vocab]
    vocab_size = probs.shape[-1]
    if 0 < params.top_k < vocab_size:
        threshold = torch.topk(probs, params.top_k, dim=-1).values[:, -1:]
        probs = _renormalised(torch.where(probs < threshold, 0.0, probs))
    if params.top_p < 1.0:
        probs = _renormalised(_nucleus(probs, params.top_p))
    if params.min_p > 0.0:
        threshold = params.min_p * probs.amax(dim=-1, keepdim=True)
        probs = _renormalised(torch.where(probs < threshold, 0.0, probs))
    return probs


@torch.inference_mode()
def draw(probs: torch.Tensor, uniform: float) -> int:
    """Return the token of a [vocab] distribution at ``uniform`` in [0, 1) of its cumulative sum.

    ``probs`` need not be normalised. A token of probability 0 is never drawn.
    """
    cumulative = torch.cumsum(probs.double(), dim=-1)
    point = cumulative[-1] * uniform
    index = int(torch.searchsorted(cumulative, point, right=True))
    # Rounding can put the point on the very end of the sum.
    return index if index < probs.shape[-1] else int(torch.nonzero(probs)[-1])


@torch.inference_mode()
def has_valid_numbers(logits: torch.Tensor) -> bool:
    """Return whether every row of [rows, vocab] logits has a finite maximum and no NaN."""
    return bool(torch.isfinite(logits.amax(dim=-1)).all())


def _nucleus(probs: torch.Tensor, top_p: float) -> torch.Tensor:
    """Keep the fewest most likely tokens whose sum reaches ``top_p``; Holtzman et al. 2020."""
    guess = min(_NUCLEUS_GUESS, probs.shape[-1])
    values, indices = torch.topk(probs, guess, dim=-1)
    if guess < probs.shape[-1] and bool((values.sum(dim=-1) < top_p).any()):
        values, indices = torch.sort(probs, dim=-1, descending=True, stable=True)
    before = torch.cumsum(values, dim=-1) - values
    keep = before < top_p
    keep[:, 0] = True  # a sum smaller than float32 can tell from 0 still keeps the likeliest
    kept = torch.where(keep, values, 0.0)
    return torch.zeros_like(probs).scatter_(-1, indices, kept)


def _renormalised(probs: torch.Tensor) -> torch.Tensor:
    return probs / probs.sum(dim=-1, keepdim=True)


def _generator(seed: int | None) -> torch.Generator:
    generator = torch.Generator()
    if seed is None:
        generator.seed()
    else:
        generator.manual_seed(seed)
    return generator


def _penalises(params: SamplingParams) -> bool:
    return (
        params.repetition_penalty != 1.0
        or params.presence_penalty != 0.0
        or params.frequency_penalty != 0.0
    )


class _Penalties:
    """Counts committed tokens and applies the penalties to a block of rows."""

    def __init__(
        self,
        params: SamplingParams,
        vocab_size: int,
        prompt_ids: Sequence[int],
        device: torch.device | str,
    ) -> None:
        self._params = params
        self._seen = torch.zeros(vocab_size, dtype=torch.bool, device=device)
        self._counts = torch.zeros(vocab_size, device=device)
        prompt = [token for token in prompt_ids if token < vocab_size]
        self._seen[torch.tensor(prompt, dtype=torch.long, device=device)] = True

    def commit(self, ids: Sequence[int]) -> None:
        for token in ids:
            self._seen[token] = True
            self._counts[token] += 1.0

    def apply(self, logits: torch.Tensor, drafted: Sequence[int]) -> torch.Tensor:
        rows = logits.shape[0]
        seen = self._seen.repeat(rows, 1)  # [rows, vocab]
        counts = self._counts.repeat(rows, 1)  # [rows, vocab]
        for position, token in enumerate(drafted):
            # Token i of the draft is context for every row that comes after it.
            first = max(position + rows - len(drafted), 0)
            seen[first:, token] = True
            counts[first:, token] += 1.0
        params = self._params
        if params.repetition_penalty != 1.0:
            penalised = torch.where(
                logits > 0, logits / params.repetition_penalty, logits * params.repetition_penalty
            )
            logits = torch.where(seen, penalised, logits)
        if params.presence_penalty != 0.0:
            logits = logits - params.presence_penalty * (counts > 0).float()
        if params.frequency_penalty != 0.0:
            logits = logits - params.frequency_penalty * counts
        return logits
