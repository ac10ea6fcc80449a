"""The moments of an optimizer as numbers by name, for a checkpoint."""

from collections.abc import Iterable, Mapping

import torch

Named = Iterable[tuple[str, torch.nn.Parameter]]

_STEP = "step"
_KEYS = (_STEP, "exp_avg", "exp_avg_sq")


def optimizer_tensors(optimizer: torch.optim.AdamW, named: Named) -> dict[str, torch.Tensor]:
    """Return what an optimizer has kept of its parameters so far."""
    return {
        f"optimizer.{key}.{name}": value
        for name, parameter in named
        for key, value in optimizer.state.get(parameter, {}).items()
    }


def restore_optimizer(
    optimizer: torch.optim.AdamW, named: Named, tensors: Mapping[str, torch.Tensor]
) -> None:
    """Put back what :func:`optimizer_tensors` returned, each moment where its parameter is."""
    for name, parameter in named:
        for key in _KEYS:
            kept = tensors.get(f"optimizer.{key}.{name}")
            if kept is not None:
                # The count of steps stays on the CPU, where the optimizer reads it.
                device = kept.device if key == _STEP else parameter.device
                optimizer.state[parameter][key] = kept.to(device, copy=True)
