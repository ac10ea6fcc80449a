"""A stand-in for CUDA graphs on the CPU: operations are recorded with their tensors and redone.

Like the real thing it does nothing but the recorded work at the recorded addresses: Python does not
run again, numbers that Python had are fixed, and what was computed while recording is gone.
"""

from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from core.models.static.graphs import Step


class RecordingGraphs:
    """A graph back end that counts; ``error``, where set, is raised by every capture."""

    def __init__(self) -> None:
        self.captures = 0
        self.replays = 0
        self.releases = 0
        self.error: RuntimeError | None = None

    def capture(self, step: Step) -> Step:
        if self.error is not None:
            raise self.error
        with _Recorder() as recorder:
            step()
        self.captures += 1
        recorder.spoil()

        def replay() -> None:
            self.replays += 1
            recorder.redo()

        return replay

    def release(self) -> None:
        self.releases += 1


class _Recorder(TorchDispatchMode):
    def __init__(self) -> None:
        super().__init__()
        self._work: list[tuple[Any, Any, Any, list[torch.Tensor]]] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func is torch.ops.aten._local_scalar_dense.default:
            raise RuntimeError("operation not permitted when stream is capturing")
        result = func(*args, **kwargs)
        given = {leaf.untyped_storage().data_ptr() for leaf in _tensors((args, kwargs))}
        made = _tensors(result)
        fresh = [out for out in made if out.untyped_storage().data_ptr() not in given]
        writes = any(
            argument.alias_info is not None and argument.alias_info.is_write
            for argument in func._schema.arguments
        )
        # What only views another tensor stays a view of it.
        if writes or fresh:
            self._work.append((func, args, kwargs, [] if writes else made))
        return result

    def spoil(self) -> None:
        """Forget what was computed."""
        for _, _, _, made in self._work:
            for out in made:
                if out.is_floating_point():
                    out.fill_(float("nan"))

    def redo(self) -> None:
        for func, args, kwargs, made in self._work:
            result = func(*args, **kwargs)
            for out, new in zip(made, _tensors(result), strict=False):
                out.copy_(new)


def _tensors(tree: Any) -> list[torch.Tensor]:
    return [leaf for leaf in tree_leaves(tree) if isinstance(leaf, torch.Tensor)]
