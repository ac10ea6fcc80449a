"""The one way to ask running work to stop."""

import threading


class CancelToken:
    """A flag that one thread sets and another polls between rounds or chunks.

    Safe to use from any thread. Once cancelled it stays cancelled.
    """

    __slots__ = ("_event",)

    def __init__(self) -> None:
        self._event = threading.Event()

    def cancel(self) -> None:
        """Ask the work to stop at its next check."""
        self._event.set()

    def is_cancelled(self) -> bool:
        """Whether :meth:`cancel` was called; for handing on as a function."""
        return self._event.is_set()

    @property
    def cancelled(self) -> bool:
        """Whether :meth:`cancel` was called."""
        return self._event.is_set()
