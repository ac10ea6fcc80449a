"""Loading models as the engine does, for tests that look at what was loaded."""

from pathlib import Path

from core.cancel import CancelToken
from core.models.loader import LoadedPair, load_pair
from core.requests import LoadRequest


def load_models(
    target: Path, draft: Path | None, prepared_dir: Path, *, precision: str = "auto"
) -> LoadedPair:
    """A target and perhaps a draft on the CPU."""
    request = LoadRequest(
        target=str(target),
        draft=None if draft is None else str(draft),
        device="cpu",
        precision=precision,
    )
    return load_pair(
        request, prepared_dir=prepared_dir, on_progress=lambda _: None, cancel=CancelToken()
    )
