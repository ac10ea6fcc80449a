"""Training a head on generated text: the host stays as it is, only the head learns.

Matrices learn by Muon (Jordan et al. 2024; its size matched to AdamW's as in arXiv 2502.16982), and
norms by AdamW. docs/mtp.md has what was compared.
"""

import math
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass
from typing import Any

import torch

from core.errors import UserError
from core.models.mtp.modules import Head
from core.training.data import Batch, TextData
from core.training.lean_batch import multiplies_bfloat16
from core.training.loss import Teacher, chain_places, steps_loss
from core.training.optimizer_state import optimizer_tensors, restore_optimizer
from core.training.schedule import warm_cosine

_NORM_ROWS = 8
"""The norms of several layers are one parameter of so many rows at most, and no matrix."""

Embed = Callable[[Sequence[int]], torch.Tensor]
"""The host's input embeddings [ids, hidden] float32."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainSettings:
    """How a head is trained.

    ``weights`` are the loss's by step (any sum). ``loss`` is "kl", to the host's own distribution,
    or "ce", to the tokens of the text. ``noise`` is added to the states, in parts of their size.
    ``average`` is the decay of the mean of weights that is saved; 0 saves the last ones.
    """

    weights: tuple[float, ...]
    epochs: float = 6.0
    learning_rate: float = 5e-3
    warm_up_steps: int = 100
    final_share: float = 0.02
    """The learning rate at the end, as a share of the highest."""
    weight_decay: float = 0.01
    clip: float = 1.0
    batch_tokens: int = 4096
    loss: str = "kl"
    noise: float = 0.0
    average: float = 0.998
    seed: int = 0

    def __post_init__(self) -> None:
        if not all(0 <= weight < math.inf for weight in self.weights) or sum(self.weights) <= 0:
            raise UserError("The weights of the steps make no sense.", "Give positive numbers.")
        ranges = {
            "epochs": (0.0, 1000.0),
            "learning_rate": (0.0, 1.0),
            "noise": (0.0, 1.0),
            "average": (0.0, 0.99999),
            "batch_tokens": (1, 1 << 20),
        }
        for name, (low, high) in ranges.items():
            value = getattr(self, name)
            if not low <= value <= high:
                raise UserError(f"{name} is {value}.", f"It must be from {low} to {high}.")
        if self.loss not in ("kl", "ce"):
            raise UserError(f"There is no loss called {self.loss!r}.", "Choose kl or ce.")

    def fixed(self) -> dict[str, Any]:
        """Return plain values that a resumed run must share."""
        return {**asdict(self), "weights": list(self.weights)}


def step_weights(depth: int, decay: float | None = None) -> tuple[float, ...]:
    """Return the weights of the steps: FastMTP's for three, else powers of .8 or of ``decay``."""
    if decay is None and depth == 3:
        return (0.51, 0.31, 0.18)
    return tuple((0.8 if decay is None else decay) ** step for step in range(depth))


def prefers_bfloat16(device: torch.device) -> bool:
    """Whether training is faster in bfloat16 there."""
    return device.type == "cuda" or multiplies_bfloat16()


class Trainer:
    """A head, its optimizer and its place in the data.

    Everything that decides the next step is in :meth:`tensors` and :meth:`position`, so that a run
    that goes on from them does what an unbroken one does, bit for bit.
    """

    def __init__(
        self,
        head: Head,
        data: TextData,
        *,
        embed: Embed,
        unembedding: torch.Tensor,
        settings: TrainSettings,
        bfloat16: bool | None = None,
    ) -> None:
        """``unembedding`` [v, hidden] are the host's rows of the head's vocabulary, float32.

        ``bfloat16`` None takes what is faster here.
        """
        self.head = head
        self.settings = settings
        self._data = data
        self._embed = embed
        device = unembedding.device
        self._bfloat16 = prefers_bfloat16(device) if bfloat16 is None else bfloat16
        index = torch.full((head.card.host.vocab,), -1)
        index[torch.tensor(head.card.vocabulary)] = torch.arange(len(head.card.vocabulary))
        self.teacher = Teacher(
            # A copy: what a runner made in inference mode cannot be used to learn.
            unembedding=unembedding.clone().to(torch.bfloat16 if self._bfloat16 else torch.float32),
            index=index.to(device),
            weights=settings.weights,
            kl=settings.loss == "kl",
        )
        self._named = list(head.named_parameters())
        self._parameters = [parameter for _, parameter in self._named]
        matrices = [p for p in self._parameters if _is_matrix(p)]
        vectors = [p for p in self._parameters if not _is_matrix(p)]
        rate = settings.learning_rate
        self._optimizers: list[torch.optim.Optimizer] = [
            # By its shape each update is as large as AdamW's, so that one rate serves both.
            torch.optim.Muon(
                matrices,
                lr=rate,
                weight_decay=settings.weight_decay,
                adjust_lr_fn="match_rms_adamw",
            )
        ]
        if vectors:
            self._optimizers.append(
                torch.optim.AdamW(
                    vectors, lr=rate, weight_decay=0.0, betas=(0.9, 0.95), foreach=True
                )
            )
        self._average = [parameter.detach().clone() for parameter in self._parameters]
        self._noise = torch.Generator().manual_seed(settings.seed)
        self.step = 0
        self._epoch, self._place = 0, 0
        self._plan = self._planned(0)
        self.total_steps = max(1, round(settings.epochs * len(self._plan)))

    @property
    def epoch(self) -> int:
        """How many times all of the text was seen."""
        return self._epoch

    @property
    def done(self) -> bool:
        """Whether all steps were taken."""
        return self.step >= self.total_steps

    def train_step(self) -> tuple[float, tuple[float, ...], int]:
        """Take one step; return the weighted loss, those by step and the tokens seen."""
        if self._place == len(self._plan):
            self._epoch, self._place = self._epoch + 1, 0
            self._plan = self._planned(self._epoch)
        batch = self._data.batch(self._plan[self._place]).to(self.teacher.index.device)
        self._place += 1
        rate = self.learning_rate(self.step)
        for optimizer in self._optimizers:
            for group in optimizer.param_groups:
                group["lr"] = rate
            optimizer.zero_grad(set_to_none=True)
        with self._autocast():
            outputs = self._outputs(batch, self._noisy(batch.states.float()))
            loss, by_step = steps_loss(self.head, outputs, batch, self.teacher)
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(self._parameters, self.settings.clip)
        for optimizer in self._optimizers:
            optimizer.step()
        self.step += 1
        self._follow()
        return float(loss.detach()), tuple(by_step.tolist()), batch.tokens

    def learning_rate(self, step: int) -> float:
        """Return the rate of a step."""
        settings = self.settings
        return settings.learning_rate * warm_cosine(
            step, self.total_steps, settings.warm_up_steps, settings.final_share
        )

    @torch.inference_mode()
    def outputs(self, batch: Batch) -> list[torch.Tensor]:
        """Return the outputs of the head as it stands by step, without noise."""
        with self._autocast():
            return self._outputs(batch, batch.states.float())

    def averaged(self) -> AbstractContextManager[None]:
        """Inside, the head has the weights that are saved."""
        return _Swapped(self._parameters, self._average if self.settings.average else [])

    def tensors(self) -> dict[str, torch.Tensor]:
        """Return everything of the state that is numbers, by name."""
        found: dict[str, torch.Tensor] = {"noise": self._noise.get_state()}
        for (name, parameter), average in zip(self._named, self._average, strict=True):
            found[f"head.{name}"] = parameter.detach()
            found[f"average.{name}"] = average
        return {**found, **optimizer_tensors(self._optimizers, self._named)}

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
        self._noise.set_state(tensors["noise"])
        for (name, parameter), average in zip(self._named, self._average, strict=True):
            parameter.copy_(tensors[f"head.{name}"])
            average.copy_(tensors[f"average.{name}"])
        restore_optimizer(self._optimizers, self._named, tensors)
        self.step, self.total_steps = position["step"], position["total_steps"]
        self._epoch, self._place = position["epoch"], position["place"]
        self._plan = self._planned(self._epoch)
        if self._place > len(self._plan):
            raise ValueError("it is past the end of the text")

    def _outputs(self, batch: Batch, states: torch.Tensor) -> list[torch.Tensor]:
        wanted = self.head.card.state_width
        embeddings = self._embed(batch.ids.flatten().tolist()).view(*batch.ids.shape, -1)
        return self.head.forward_steps(
            states[..., -wanted:],
            embeddings,
            batch.mask,
            len(self.settings.weights),
            chain_places(batch),
        )

    def _noisy(self, states: torch.Tensor) -> torch.Tensor:
        if not self.settings.noise:
            return states
        layers = states.view(*states.shape[:-1], -1, self.head.card.host.hidden)
        size = layers.pow(2).mean(-1, keepdim=True).sqrt() * self.settings.noise
        noise = torch.randn(layers.shape, generator=self._noise).to(layers.device)
        noisy: torch.Tensor = layers + size * noise
        return noisy.flatten(-2)

    @torch.no_grad()
    def _follow(self) -> None:
        decay = min(self.settings.average, (1 + self.step) / (10 + self.step))
        torch._foreach_lerp_(self._average, list[torch.Tensor](self._parameters), 1 - decay)

    def _planned(self, epoch: int) -> list[list[int]]:
        return self._data.plan(self.settings.batch_tokens, self.settings.seed * 1_000_003 + epoch)

    def _autocast(self) -> AbstractContextManager[Any]:
        if not self._bfloat16:
            return nullcontext()
        return torch.autocast(self.teacher.unembedding.device.type, dtype=torch.bfloat16)


def _is_matrix(parameter: torch.nn.Parameter) -> bool:
    return parameter.dim() == 2 and len(parameter) > _NORM_ROWS


class _Swapped:
    """Puts other values into parameters and takes them out again."""

    def __init__(self, parameters: list[torch.nn.Parameter], others: list[torch.Tensor]) -> None:
        self._parameters, self._others = parameters, others

    def __enter__(self) -> None:
        self._swap()

    def __exit__(self, *_: object) -> None:
        self._swap()

    def _swap(self) -> None:
        for parameter, other in zip(self._parameters, self._others, strict=False):
            parameter.data, other.data = other.data, parameter.data
