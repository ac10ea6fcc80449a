"""Fine-tuning a draft model on the target's own text, towards the target's own distribution.

Distillation for speculative decoding as in DistillSpec (arXiv 2310.08461): the text is the
target's, and the loss is the forward divergence KL(target || draft) at every place of a reply.
"""

from collections.abc import Iterable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass
from typing import Any

import torch
import torch.nn.functional as F

from core.errors import UserError
from core.training.acceptance import Acceptance, Walk
from core.training.data import Batch, TextData
from core.training.optimizer_state import optimizer_tensors, restore_optimizer
from core.training.schedule import warm_cosine

MEASURED_GAMMA = 4
"""Tokens a round that acceptance is reported for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DistillSettings:
    """How a draft is fine-tuned."""

    epochs: float = 2.0
    learning_rate: float = 3e-5
    warm_up_steps: int = 50
    batch_tokens: int = 2048
    clip: float = 1.0
    seed: int = 0

    def __post_init__(self) -> None:
        if not 0 < self.epochs <= 1000:
            raise UserError(f"epochs is {self.epochs}.", "It must be above 0 and at most 1000.")
        if not 0 < self.learning_rate <= 1:
            raise UserError(
                f"learning_rate is {self.learning_rate}.", "It must be above 0 and at most 1."
            )

    def fixed(self) -> dict[str, Any]:
        """Return plain values that a resumed run must share."""
        return asdict(self)


class DraftTrainer:
    """A draft model in float32, its optimizer and its place in the text.

    What decides the next step is in :meth:`tensors` and :meth:`position`, as of a head's trainer.
    """

    def __init__(
        self, draft: Any, data: TextData, *, unembedding: torch.Tensor, settings: DistillSettings
    ) -> None:
        """``draft`` is a transformers causal LM, whose weights are copied before they change.

        ``unembedding`` [vocabulary, hidden] is the target's head, whose last states the text has.
        """
        self.draft = draft
        self.settings = settings
        self._data = data
        self._device: torch.device = draft.device
        width = min(len(unembedding), draft.config.get_text_config().vocab_size)
        self._unembedding = unembedding[:width].clone().to(self._device, torch.float32)
        for parameter in draft.parameters():
            # What is mapped from a file stays as it is.
            parameter.data = parameter.detach().clone()
            parameter.requires_grad_(True)
        self._named = list(draft.named_parameters())
        self._optimizer = torch.optim.AdamW(
            [parameter for _, parameter in self._named],
            lr=settings.learning_rate,
            betas=(0.9, 0.95),
            weight_decay=0.0,
        )
        self.step = 0
        self._epoch, self._place = 0, 0
        self._plan = self._planned(0)
        self.total_steps = max(1, round(settings.epochs * len(self._plan)))

    @property
    def done(self) -> bool:
        """Whether all steps were taken."""
        return self.step >= self.total_steps

    @property
    def epoch(self) -> int:
        """How many times all of the text was seen."""
        return self._epoch

    def train_step(self) -> tuple[float, tuple[float, ...], int]:
        """Take one step; return the loss, the same as a tuple, and the tokens seen."""
        if self._place == len(self._plan):
            self._epoch, self._place = self._epoch + 1, 0
            self._plan = self._planned(self._epoch)
        batch = self._data.batch(self._plan[self._place]).to(self._device)
        self._place += 1
        settings = self.settings
        rate = warm_cosine(self.step, self.total_steps, settings.warm_up_steps, 0.05)
        for group in self._optimizer.param_groups:
            group["lr"] = settings.learning_rate * rate
        self._optimizer.zero_grad(set_to_none=True)
        places = _reply_places(batch)
        goal = F.linear(self._states(batch)[places], self._unembedding).log_softmax(-1)
        mine = self._logits(batch)[places].log_softmax(-1)
        loss = F.kl_div(mine, goal, reduction="batchmean", log_target=True)
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(self.draft.parameters(), settings.clip)
        self._optimizer.step()
        self.step += 1
        value = loss.item()
        return value, (value,), batch.tokens

    @torch.no_grad()
    def measure(self, batches: Iterable[Batch]) -> Acceptance:
        """Return how the draft's greedy tokens would have stood in the greedy replies."""
        walk = Walk(MEASURED_GAMMA)
        for read in batches:
            batch = read.to(self._device)
            named = self._logits(batch).argmax(-1) == torch.roll(batch.ids, -1, dims=1)
            steps = range(1, MEASURED_GAMMA + 1)
            walk.add(batch, torch.stack([torch.roll(named, -step, dims=1) for step in steps]))
        return walk.result()

    def tensors(self) -> dict[str, torch.Tensor]:
        """Return everything of the state that is numbers, by name."""
        found = {f"draft.{name}": parameter.detach() for name, parameter in self._named}
        return {**found, **optimizer_tensors([self._optimizer], self._named)}

    def position(self) -> dict[str, Any]:
        """Return the rest of the state as plain values."""
        return {
            "step": self.step,
            "total_steps": self.total_steps,
            "epoch": self._epoch,
            "place": self._place,
        }

    @torch.no_grad()
    def restore(self, tensors: dict[str, torch.Tensor], position: dict[str, Any]) -> None:
        """Go on where :meth:`tensors` and :meth:`position` were taken.

        Raises KeyError and ValueError.
        """
        for name, parameter in self._named:
            parameter.copy_(tensors[f"draft.{name}"])
        restore_optimizer([self._optimizer], self._named, tensors)
        self.step, self.total_steps = position["step"], position["total_steps"]
        self._epoch, self._place = position["epoch"], position["place"]
        self._plan = self._planned(self._epoch)
        if self._place > len(self._plan):
            raise ValueError("it is past the end of the text")

    def _states(self, batch: Batch) -> torch.Tensor:
        return batch.states[..., -self._unembedding.shape[1] :].float()

    def _logits(self, batch: Batch) -> torch.Tensor:
        """Return the draft's logits [rows, length, shared vocabulary] float32."""
        with self._autocast():
            output = self.draft(
                input_ids=batch.ids, attention_mask=batch.mask.long(), use_cache=False
            )
        logits: torch.Tensor = output.logits[..., : len(self._unembedding)].float()
        return logits

    def _planned(self, epoch: int) -> list[list[int]]:
        return self._data.plan(self.settings.batch_tokens, self.settings.seed * 1_000_003 + epoch)

    def _autocast(self) -> AbstractContextManager[Any]:
        if self._device.type != "cuda":
            return nullcontext()
        return torch.autocast("cuda", dtype=torch.bfloat16)


def _reply_places(batch: Batch) -> torch.Tensor:
    """Return the places [rows, length] whose next token is one of the reply's."""
    places = torch.arange(batch.ids.shape[1], device=batch.ids.device)
    ends = batch.mask.sum(1)
    return (places >= batch.starts[:, None] - 1) & (places + 1 < ends[:, None])
