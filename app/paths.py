"""The folders that Paceline uses, made when they are first needed."""

import os
import tempfile
from dataclasses import dataclass
from pathlib import Path

import platformdirs

from core.errors import UserError
from core.hub.library import data_root

APP_NAME = "paceline"


@dataclass(frozen=True, slots=True, kw_only=True)
class AppPaths:
    """Where things are kept: one root when PACELINE_HOME is set, else the system's places."""

    data: Path
    """Conversations and models."""
    config: Path
    cache: Path
    logs: Path

    @property
    def database(self) -> Path:
        """The file with the conversations."""
        return self.data / "conversations.db"

    @property
    def settings(self) -> Path:
        """The file with the settings."""
        return self.config / "settings.json"


def app_paths() -> AppPaths:
    """Return the folders of this person; none is made yet."""
    data = data_root()
    if os.environ.get("PACELINE_HOME"):
        return AppPaths(data=data, config=data, cache=data / "cache", logs=data / "logs")
    return AppPaths(
        data=data,
        config=platformdirs.user_config_path(APP_NAME, appauthor=False),
        cache=platformdirs.user_cache_path(APP_NAME, appauthor=False),
        logs=platformdirs.user_log_path(APP_NAME, appauthor=False),
    )


def ensured(folder: Path) -> Path:
    """Make the folder if it is missing, see that it can be written, and return it.

    Raises UserError when it cannot.
    """
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        # Tried, not asked: access rights do not tell about read-only disks and full ones.
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise UserError(
            f"The folder {folder} cannot be written: {error.strerror or error}.",
            "Make it writable, or set PACELINE_HOME to a folder that is.",
        ) from error
    return folder
