"""What optimizers remember as numbers by name, for a checkpoint."""

from collections.abc import Iterable, Mapping, Sequence

import torch
from torch.optim import Optimizer

Named = Iterable[tuple[str, torch.nn.Parameter]]

_PREFIX = "optimizer."
_STEP = "step"


def optimizer_tensors(optimizers: Sequence[Optimizer], named: Named) -> dict[str, torch.Tensor]:
    """Return what the optimizers have kept of their parameters so far."""
    return {
        f"{_PREFIX}{key}.{name}": value
        for name, parameter in named
        for optimizer in optimizers
        for key, value in optimizer.state.get(parameter, {}).items()
    }


def restore_optimizer(
    optimizers: Sequence[Optimizer], named: Named, tensors: Mapping[str, torch.Tensor]
) -> None:
    """Put back what :func:`optimizer_tensors` returned, each moment where its parameter is.

    Every parameter is one of one optimizer.
    """
    owners = {
        parameter: optimizer
        for optimizer in optimizers
        for group in optimizer.param_groups
        for parameter in group["params"]
    }
    parameters = dict(named)
    for title, kept in tensors.items():
        if not title.startswith(_PREFIX):
            continue
        key, _, name = title.removeprefix(_PREFIX).partition(".")
        parameter = parameters.get(name)
        if parameter is not None:
            # The count of steps stays on the CPU, where the optimizer reads it.
            device = kept.device if key == _STEP else parameter.device
            owners[parameter].state[parameter][key] = kept.to(device, copy=True)
