"""Which runner a model gets."""

import logging
from typing import Any

from core.models.lean.model import LeanModel
from core.models.lean.runner import LeanRunner
from core.models.recurrent import RecurrentRunner, eager_runner
from core.models.runner import Runner
from core.models.static.graphs import CudaGraphs
from core.models.static.obstacle import capture_obstacle, static_obstacle
from core.models.static.runner import StaticRunner

logger = logging.getLogger(__name__)


def make_runner(
    model: Any, *, vocab_size: int | None = None, context_limit: int | None = None
) -> Runner:
    """Return the fastest runner for a model; ``vocab_size`` and ``context_limit`` as there.

    On CUDA that is the static cache with captured graphs, where neither is forbidden. Raises
    UserError for models that cannot be run.
    """
    if isinstance(model, LeanModel):
        return LeanRunner(model, vocab_size=vocab_size, context_limit=context_limit)
    if model.device.type != "cuda":
        return eager_runner(model, vocab_size=vocab_size, context_limit=context_limit)
    obstacle = static_obstacle(model)
    if obstacle:
        logger.info("%s %s and runs eagerly", type(model).__name__, obstacle)
        return eager_runner(model, vocab_size=vocab_size, context_limit=context_limit)
    obstacle = capture_obstacle(model)
    if obstacle:
        logger.info("%s %s and is not captured", type(model).__name__, obstacle)
    return StaticRunner(
        model,
        vocab_size=vocab_size,
        context_limit=context_limit,
        graphs=None if obstacle else CudaGraphs(model.device),
    )


def runner_notice(runner: Runner, name: str) -> str:
    """Return what a person should know of how a model runs, as a sentence, or ""."""
    if isinstance(runner, RecurrentRunner) and runner.one_by_one:
        return f"{name} takes in one token at a time, so speculation cannot make it faster."
    return ""
