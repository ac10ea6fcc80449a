"""Errors that Paceline raises on purpose.

A :class:`UserError` is shown to the person as it stands; anything else is a fault
of the program, logged with its traceback and offered as a report.
"""


class PacelineError(Exception):
    """Base of every error that Paceline raises on purpose."""


class UserError(PacelineError):
    """Something the person can mend.

    ``message`` is one plain sentence; ``action`` says what to do about it.
    """

    def __init__(self, message: str, action: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.action = action

    def __str__(self) -> str:
        return f"{self.message} {self.action}".strip()


class Cancelled(PacelineError):
    """The person asked the work to stop; nothing half done is left behind."""


class BugError(PacelineError):
    """A broken invariant inside the program."""


def clause(sentence: str) -> str:
    """Return a sentence in the form it takes after a colon or "because"."""
    return sentence[:1].lower() + sentence[1:].rstrip(".")
