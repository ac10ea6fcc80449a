"""Which runner a model gets."""

from typing import Any

from core.models.lean.model import LeanModel
from core.models.lean.runner import LeanRunner
from core.models.runner import EagerRunner, Runner


def make_runner(
    model: Any, *, vocab_size: int | None = None, context_limit: int | None = None
) -> Runner:
    """Return the fastest runner for a model; ``vocab_size`` and ``context_limit`` as there."""
    if isinstance(model, LeanModel):
        return LeanRunner(model, vocab_size=vocab_size, context_limit=context_limit)
    return EagerRunner(model, vocab_size=vocab_size, context_limit=context_limit)
