"""Opens the conversations, to be read at least where nothing can be saved."""

import logging
from dataclasses import dataclass
from pathlib import Path

from app.paths import ensured
from app.storage.db import MEMORY, Database
from core.errors import UserError

logger = logging.getLogger(__name__)

_UNKEPT = "Nothing you write or change is kept after closing."


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    """An open database and what the person must know about it.

    ``notice`` says once what is wrong and what to do, ``unkept`` says as long as the window is
    open that nothing is saved; both are "" where all is well. ``unread`` means that there are
    stored chats which could not be read.
    """

    database: Database
    notice: str = ""
    unkept: str = ""
    unread: bool = False


def open_conversations(path: Path) -> Opened:
    """Open the database at ``path``, else a copy of it in memory, else an empty one there."""
    try:
        ensured(path.parent)
        return Opened(database=Database(path))
    except UserError as error:
        logger.info("chats cannot be saved: %s", error)
        notice = f"{error} Until then chats are not kept after closing."
    if not path.exists():
        return Opened(database=Database(MEMORY), notice=notice, unkept=_UNKEPT)
    try:
        return Opened(database=Database(MEMORY, copy_of=path), notice=notice, unkept=_UNKEPT)
    except UserError as error:
        logger.info("stored chats cannot be read: %s", error)
        unkept = f"The stored chats could not be opened. {_UNKEPT}"
        return Opened(database=Database(MEMORY), notice=notice, unkept=unkept, unread=True)
