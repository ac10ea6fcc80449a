"""Free proposals first, a model's where there are none."""

from collections.abc import Sequence

from core.drafting.base import Draft, Drafter


class HybridDrafter:
    """Asks its drafters in order and takes the first proposal."""

    def __init__(self, drafters: Sequence[Drafter]) -> None:
        self._drafters = tuple(drafters)

    def propose(self, context: Sequence[int], gamma: int) -> Draft | None:
        """Return the first proposal of at least one token, else the last one's answer."""
        draft: Draft | None = None
        for drafter in self._drafters:
            draft = drafter.propose(context, gamma)
            if draft is not None and draft.ids:
                break
        return draft

    def commit(self, accepted: int, committed_ids: Sequence[int]) -> None:
        """Tell every drafter."""
        for drafter in self._drafters:
            drafter.commit(accepted, committed_ids)

    def reset(self) -> None:
        """Reset every drafter."""
        for drafter in self._drafters:
            drafter.reset()
