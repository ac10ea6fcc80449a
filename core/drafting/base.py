"""The seam between the decoding loop and whoever drafts."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, overload

if TYPE_CHECKING:
    import torch

    from core.decoding.gamma import GammaController
    from core.decoding.sampling import Sampler
    from core.events import Notice


@dataclass(frozen=True, slots=True)
class Draft:
    """Proposed token ids and the distributions they were really drawn from.

    ``probs`` is [len(ids), vocab] float32 after the drafter's own temperature and filters, or
    None for a deterministic proposal, whose distribution is then one-hot. ``source`` names the kind
    of proposal, ``confidence`` says how sure it was of each token before it was drawn, and
    ``steps`` how many forward passes it took; a gamma controller learns from them. ``fixed_ms`` is
    the part of the first pass's time that no later one takes, such as a draft model's before its
    head goes on, or the whole pass of one that gives every token at once.
    """

    ids: tuple[int, ...]
    probs: "torch.Tensor | None" = None
    source: str = ""
    confidence: tuple[float, ...] = ()
    steps: int = 0
    fixed_ms: float = 0.0


class DraftContext(Sequence[int]):
    """The committed ids (prompt and reply) as a read-only sequence, with what drafting needs.

    ``prompt_length`` is where the reply begins; ``sampler`` shapes and draws in the same way as
    the target does, with the request's own generator; ``gamma`` says how far each kind of proposal
    should go; ``stop_ids`` end a reply.
    """

    __slots__ = ("_ids", "gamma", "prompt_length", "sampler", "stop_ids")

    def __init__(
        self,
        ids: list[int],
        *,
        prompt_length: int,
        sampler: "Sampler | None" = None,
        gamma: "GammaController | None" = None,
        stop_ids: frozenset[int] = frozenset(),
    ) -> None:
        self._ids = ids
        self.prompt_length = prompt_length
        self.sampler = sampler
        self.gamma = gamma
        self.stop_ids = stop_ids

    def __len__(self) -> int:
        return len(self._ids)

    @overload
    def __getitem__(self, index: int) -> int: ...
    @overload
    def __getitem__(self, index: slice) -> list[int]: ...
    def __getitem__(self, index: int | slice) -> int | list[int]:
        return self._ids[index]


def limit_of(context: Sequence[int], source: str, gamma: int) -> int:
    """Return how many tokens a source may propose when ``gamma`` are asked for."""
    controller = context.gamma if isinstance(context, DraftContext) else None
    return gamma if controller is None else min(gamma, controller.limit(source))


class Drafter(Protocol):
    """Proposes tokens; called from the engine's thread only."""

    def propose(self, context: Sequence[int], gamma: int) -> Draft | None:
        """Return at most ``gamma`` tokens that may follow ``context``, or None to decline.

        The engine passes a :class:`DraftContext`.
        """

    def commit(self, accepted: int, committed_ids: Sequence[int]) -> None:
        """Learn the outcome: ``accepted`` drafted tokens stand; ``committed_ids`` were added."""

    def reset(self) -> None:
        """Forget everything; the next context may be unrelated to the last."""


class ReadingDrafter(Drafter, Protocol):
    """A drafter with a cache of its own, which has to read a prompt before it can draft."""

    def prefill(self, ids: Sequence[int], stop: Callable[[], bool]) -> Iterator[int]:
        """Read a prompt in chunks after the target has; ends early when ``stop()`` is true."""

    def take_notice(self) -> "Notice | None":
        """Return why it stopped drafting in this reply, once."""

    def clear(self) -> None:
        """Give the cache back."""
