"""How a run ends: with what it made, stopped by the person, or out of memory."""

from collections.abc import Callable
from pathlib import Path

import torch

from core.errors import Cancelled, UserError
from core.training.events import Stopped
from core.training.report import Emit, Report


def outcome_of(
    work: Callable[[Report], Path], emit: Emit, stopped: Callable[[], bool]
) -> Path | None:
    """Return what the work made, or None, with Stopped said, where ``stopped()`` became true.

    Raises UserError, also where memory ran out.
    """
    report = Report(emit, stopped)
    try:
        return work(report)
    except Cancelled:
        emit(Stopped(stage=report.stage))
        return None
    except (MemoryError, torch.OutOfMemoryError):
        raise UserError(
            "Memory ran out during the training.",
            "Give fewer --lanes and --batch-tokens, or close other programs; the text is kept.",
        ) from None
