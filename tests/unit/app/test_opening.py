"""Opening the conversations where the folder can be written, and where it cannot."""

import os
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from app.storage.conversations import ConversationStore
from app.storage.db import Database
from app.storage.opening import open_conversations


@contextmanager
def read_only(folder: Path) -> Iterator[None]:
    """Let this process read ``folder`` but not write it, also when the tests run as root."""
    if not hasattr(os, "geteuid"):
        pytest.skip("folder permissions work otherwise on this system")
    for file in folder.iterdir():
        file.chmod(0o444)
    folder.chmod(0o555)
    user = os.geteuid()
    if user == 0:
        os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(user)
        folder.chmod(0o755)


@pytest.fixture
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as name:
        yield Path(name)


def begin(path: Path, title: str) -> Database:
    database = Database(path)
    store = ConversationStore(database)
    store.add_message(store.create(title).id, None, "user", "Hello")
    return database


def test_where_all_is_well_nothing_is_said(folder: Path) -> None:
    opened = open_conversations(folder / "chats.db")
    assert (opened.notice, opened.unkept, opened.unread) == ("", "", False)
    opened.database.close()


@pytest.mark.parametrize("closed", [True, False])
def test_stored_chats_can_be_read_in_a_folder_that_cannot_be_written(
    folder: Path, closed: bool
) -> None:
    path = folder / "chats.db"
    database = begin(path, "Kept")
    if closed:
        database.close()
    before = path.read_bytes()
    with read_only(folder):
        opened = open_conversations(path)
    store = ConversationStore(opened.database)
    assert [each.title for each in store.list()] == ["Kept"]
    assert store.thread(store.list()[0].id)[0].text == "Hello"
    assert "not kept" in opened.notice
    assert "Nothing you write" in opened.unkept
    assert not opened.unread
    store.create("Not kept")
    store.delete(store.list()[0].id)
    opened.database.close()
    assert path.read_bytes() == before
    database.close()


def test_an_empty_folder_that_cannot_be_written_is_not_called_unreadable(folder: Path) -> None:
    with read_only(folder):
        opened = open_conversations(folder / "chats.db")
    assert opened.unkept
    assert not opened.unread
    opened.database.close()


@pytest.mark.parametrize("content", ["damaged", "newer", "secret"])
def test_chats_that_cannot_be_read_either_are_said_to_be_there(folder: Path, content: str) -> None:
    path = folder / "chats.db"
    begin(path, "Kept").close()
    if content == "damaged":
        path.write_bytes(b"no database " * 1000)
    if content == "newer":
        connection = sqlite3.connect(path)
        connection.execute("PRAGMA user_version = 999")
        connection.close()
    with read_only(folder):
        if content == "secret":
            user, _ = os.geteuid(), os.seteuid(os.getuid())
            path.chmod(0o000)
            os.seteuid(user)
        opened = open_conversations(path)
    assert opened.unread
    assert "could not be opened" in opened.unkept
    assert ConversationStore(opened.database).list() == []
    opened.database.close()
