"""A store of conversations in memory."""

from collections.abc import Iterator

import pytest

from app.storage.conversations import ConversationStore
from app.storage.db import MEMORY, Database


@pytest.fixture
def database() -> Iterator[Database]:
    database = Database(MEMORY)
    yield database
    database.close()


@pytest.fixture
def store(database: Database) -> ConversationStore:
    ticks = iter(range(1, 1_000_000))
    return ConversationStore(database, clock=lambda: float(next(ticks)))
