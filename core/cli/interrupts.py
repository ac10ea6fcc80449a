"""Ctrl+C as a request to stop the work, not the program."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from core.cancel import CancelToken


@contextmanager
def interrupt_cancels(cancel: CancelToken, *, even_if_ignored: bool = False) -> Iterator[None]:
    """Let Ctrl+C, or a request to terminate, cancel the work inside; a second one raises
    KeyboardInterrupt.

    Outside the main thread nothing changes. Nor does it where the interrupt is ignored, as for
    a job in the background of a shell, unless ``even_if_ignored``.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def on_signal(_number: int, _frame: FrameType | None) -> None:
        if cancel.cancelled:
            raise KeyboardInterrupt
        cancel.cancel()

    previous = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    taken = [
        number
        for number, handler in previous.items()
        if handler is not None and (even_if_ignored or handler is not signal.SIG_IGN)
    ]
    for number in taken:
        signal.signal(number, on_signal)
    try:
        yield
    finally:
        for number in taken:
            signal.signal(number, previous[number])
