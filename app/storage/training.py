"""The training that is not finished, kept in one small file so that it can be gone on with."""

import json
import logging
from dataclasses import asdict
from pathlib import Path
from typing import Any

from app.storage.files import write_atomic
from app.training_records import TrainingChoices, Unfinished
from core.errors import UserError
from core.hub.files import parse_json

_log = logging.getLogger(__name__)


class UnfinishedStore:
    """Reads and writes that file; one that cannot be read counts as none."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def load(self) -> Unfinished | None:
        """Return the training that is not finished, None where there is none."""
        try:
            values: Any = parse_json(self.path.read_text(encoding="utf-8"))
            choices = {**values.pop("choices")}
            choices["files"] = tuple(choices.get("files", ()))
            return Unfinished(choices=TrainingChoices(**choices), **values)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except (OSError, ValueError, KeyError, TypeError, AttributeError, UserError) as error:
            _log.warning("the unfinished training could not be read: %s", type(error).__name__)
            return None

    def save(self, run: Unfinished) -> None:
        """Keep ``run`` in place of the one before. Raises UserError when it cannot be written."""
        write_atomic(self.path, json.dumps(asdict(run), indent=2) + "\n")

    def remove(self) -> None:
        """Forget the training; what it made stays."""
        try:
            self.path.unlink(missing_ok=True)
        except OSError as error:
            _log.warning("the record of a training could not be removed: %s", error.strerror)
