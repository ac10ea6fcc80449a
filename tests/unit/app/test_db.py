"""The database file: migrations, damage, permissions, and what a deletion leaves behind."""

import os
import random
import sqlite3
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from app.storage import db as db_module
from app.storage.db import MEMORY, Database
from app.storage.migrate import APPLICATION_ID, Migration, check_readable, load_migrations, migrate
from app.storage.text import folded
from core.errors import UserError


@contextmanager
def opened(path: Path | str) -> Iterator[Database]:
    database = Database(path)
    try:
        yield database
    finally:
        database.close()


@contextmanager
def raw(path: Path) -> Iterator[sqlite3.Connection]:
    connection = sqlite3.connect(path, isolation_level=None)
    try:
        yield connection
    finally:
        connection.close()


@pytest.fixture
def read_only_folder() -> Iterator[Path]:
    """A folder that this process may read but not write, also when the tests run as root."""
    if not hasattr(os, "geteuid"):
        pytest.skip("folder permissions work otherwise on this system")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with opened(folder / "chats.db"):
            pass
        os.chmod(folder / "chats.db", 0o444)
        os.chmod(folder, 0o555)
        user = os.geteuid()
        if user == 0:
            os.seteuid(65534)
        try:
            yield folder
        finally:
            os.seteuid(user)
            os.chmod(folder, 0o755)


def add_conversation(database: Database, title: str, *texts: str) -> int:
    with database.transaction() as connection:
        cursor = connection.execute(
            "INSERT INTO conversation (title, created_at, updated_at) VALUES (?, 0, 0)", (title,)
        )
        for text in texts:
            connection.execute(
                "INSERT INTO message (conversation_id, role, state, created_at, text)"
                " VALUES (?, 'user', 'complete', 0, ?)",
                (cursor.lastrowid, text),
            )
    assert cursor.lastrowid is not None
    return cursor.lastrowid


def delete_conversation(database: Database, conversation_id: int) -> None:
    with database.deletion() as connection:
        connection.execute("DELETE FROM conversation WHERE id = ?", (conversation_id,))


def bytes_on_disk(folder: Path) -> bytes:
    return b"".join(file.read_bytes() for file in sorted(folder.iterdir()))


def test_a_new_file_has_the_newest_format_and_is_marked_as_ours(tmp_path: Path) -> None:
    with opened(tmp_path / "chats.db") as database:
        assert database.query("PRAGMA user_version")[0][0] == load_migrations()[-1].version
        assert database.query("PRAGMA application_id")[0][0] == APPLICATION_ID
        assert database.query("PRAGMA journal_mode")[0][0] == "wal"
        assert database.query("PRAGMA foreign_keys")[0][0] == 1
        assert database.query("PRAGMA secure_delete")[0][0] == 1
        assert database.notices == ()


def test_opening_again_keeps_what_was_stored(tmp_path: Path) -> None:
    with opened(tmp_path / "chats.db") as database:
        add_conversation(database, "first")
    with opened(tmp_path / "chats.db") as database:
        assert [row["title"] for row in database.query("SELECT title FROM conversation")] == [
            "first"
        ]


def test_a_path_with_spaces_and_other_scripts_works(tmp_path: Path) -> None:
    path = tmp_path / "mes données 日本 ?#%41" / "chats.db"
    with opened(path) as database:
        add_conversation(database, "first")
    assert path.exists()


@pytest.mark.skipif(os.name != "posix", reason="file modes exist on POSIX only")
def test_the_file_and_its_log_are_readable_by_the_owner_only(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    with opened(folder / "chats.db") as database:
        add_conversation(database, "first")
        modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in folder.iterdir()}
    assert set(modes) == {"chats.db", "chats.db-wal", "chats.db-shm"}
    assert set(modes.values()) == {0o600}


@pytest.mark.skipif(os.name != "posix", reason="file modes exist on POSIX only")
def test_a_file_that_others_could_read_is_closed_to_them(tmp_path: Path) -> None:
    with opened(tmp_path / "chats.db"):
        pass
    (tmp_path / "chats.db").chmod(0o644)
    with opened(tmp_path / "chats.db"):
        pass
    assert stat.S_IMODE((tmp_path / "chats.db").stat().st_mode) == 0o600


def test_memory_holds_conversations_without_a_file(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    with opened(MEMORY) as database:
        conversation_id = add_conversation(database, "gone soon", "text")
        delete_conversation(database, conversation_id)
        assert database.query("SELECT * FROM message") == []
    assert list(tmp_path.iterdir()) == []


def test_a_database_of_a_newer_program_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "chats.db"
    with opened(path) as database:
        add_conversation(database, "from the future")
    with raw(path) as connection:
        connection.execute("PRAGMA user_version = 999")
    before = path.read_bytes()
    with pytest.raises(UserError, match=r"newer Paceline \(format 999") as raised:
        Database(path)
    assert "Update Paceline" in raised.value.action
    assert path.read_bytes() == before


def test_a_database_of_another_program_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "chats.db"
    with raw(path) as connection:
        connection.execute("CREATE TABLE theirs (a)")
    before = path.read_bytes()
    with pytest.raises(UserError, match="not made by Paceline"):
        Database(path)
    assert path.read_bytes() == before


def test_an_empty_file_is_taken_as_a_new_database(tmp_path: Path) -> None:
    (tmp_path / "chats.db").touch()
    with opened(tmp_path / "chats.db") as database:
        assert database.notices == ()


def test_a_file_that_is_no_database_is_set_aside_and_a_fresh_one_begun(tmp_path: Path) -> None:
    path = tmp_path / "chats.db"
    path.write_bytes(b"not a database, but somebody's bytes " * 200)
    with opened(path) as database:
        add_conversation(database, "fresh")
        [notice] = database.notices
    [kept] = tmp_path.glob("chats.damaged-*.db")
    assert kept.read_bytes().startswith(b"not a database")
    assert kept.name in notice


def test_a_database_with_overwritten_pages_is_set_aside(tmp_path: Path) -> None:
    path = tmp_path / "chats.db"
    with opened(path) as database:
        for number in range(50):
            add_conversation(database, f"chat {number}", "words " * 500)
    damaged = bytearray(path.read_bytes())
    for page in range(2, len(damaged) // 4096, 2):
        damaged[page * 4096 : page * 4096 + 200] = os.urandom(200)
    path.write_bytes(damaged)
    with opened(path) as database:
        assert len(database.notices) == 1
        assert database.query("SELECT * FROM conversation") == []
    [kept] = tmp_path.glob("chats.damaged-*.db")
    assert kept.read_bytes() == bytes(damaged)


def test_two_damaged_files_of_one_second_are_both_kept(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr("app.storage.files.time.strftime", lambda _: "2030-01-01-000000")
    for content in (b"a" * 5000, b"b" * 5000):
        (tmp_path / "chats.db").write_bytes(content)
        with opened(tmp_path / "chats.db"):
            pass
    assert {file.read_bytes()[:1] for file in tmp_path.glob("chats.damaged-*")} == {b"a", b"b"}


def test_a_read_only_folder_with_a_database_gives_a_sentence(read_only_folder: Path) -> None:
    with pytest.raises(UserError, match="cannot be saved in") as raised:
        Database(read_only_folder / "chats.db")
    assert "PACELINE_HOME" in raised.value.action


def test_a_read_only_folder_without_a_database_gives_a_sentence(read_only_folder: Path) -> None:
    with pytest.raises(UserError, match="cannot be saved in"):
        Database(read_only_folder / "other.db")


def test_a_folder_below_a_file_gives_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UserError, match="cannot be saved in"):
        Database(tmp_path / "file" / "chats.db")


def test_a_file_locked_by_another_program_gives_a_sentence(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(db_module, "_BUSY_TIMEOUT_MS", 1)
    path = tmp_path / "chats.db"
    with opened(path) as database, raw(path) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(UserError, match="in use by another program"):
            add_conversation(database, "waits")
        other.execute("ROLLBACK")
        add_conversation(database, "works again")


def test_a_full_disk_gives_a_sentence_and_keeps_the_rest(tmp_path: Path) -> None:
    with opened(tmp_path / "chats.db") as database:
        add_conversation(database, "kept")
        pages = database.query("PRAGMA page_count")[0][0]
        database.query(f"PRAGMA max_page_count = {pages}")
        with pytest.raises(UserError, match="disk is full"):
            add_conversation(database, "too much", "x" * 100_000)
        assert [row["title"] for row in database.query("SELECT title FROM conversation")] == [
            "kept"
        ]


def test_a_transaction_that_raises_leaves_nothing(tmp_path: Path) -> None:
    def fail_halfway(database: Database) -> None:
        with database.transaction() as connection:
            connection.execute(
                "INSERT INTO conversation (title, created_at, updated_at) VALUES ('x', 0, 0)"
            )
            raise ZeroDivisionError

    with opened(tmp_path / "chats.db") as database:
        with pytest.raises(ZeroDivisionError):
            fail_halfway(database)
        assert database.query("SELECT * FROM conversation") == []


def test_a_failing_migration_leaves_the_earlier_format() -> None:
    first, broken = (
        Migration(version=1, name="first", sql="CREATE TABLE a (x);"),
        Migration(
            version=2, name="broken", sql="CREATE TABLE b (x); INSERT INTO missing SELECT 1;"
        ),
    )
    with raw(Path(MEMORY)) as connection:
        with pytest.raises(sqlite3.OperationalError):
            migrate(connection, [first, broken])
        assert connection.execute("PRAGMA user_version").fetchone()[0] == 1
        assert connection.execute("SELECT name FROM sqlite_master").fetchall() == [("a",)]
        check_readable(connection, [first, broken], "chats.db")


def test_only_missing_migrations_are_applied() -> None:
    first = Migration(version=1, name="first", sql="CREATE TABLE a (x);")
    second = Migration(version=2, name="second", sql="ALTER TABLE a ADD COLUMN y;")
    with raw(Path(MEMORY)) as connection:
        migrate(connection, [first])
        migrate(connection, [first, second])
        migrate(connection, [first, second])
        assert [row[1] for row in connection.execute("PRAGMA table_info(a)")] == ["x", "y"]


@pytest.mark.parametrize("seed", [0, 12])
def test_a_deleted_conversation_leaves_no_trace_in_file_or_log(tmp_path: Path, seed: int) -> None:
    # With seed 12 a copy of a moved row stays in a split page unless the file is rewritten.
    chance = random.Random(seed)
    with opened(tmp_path / "chats.db") as database:
        secret = add_conversation(database, "SECRET title", "SECRETWORD in the first message")
        others = [add_conversation(database, f"chat {number}") for number in range(40)]
        with database.transaction() as connection:
            for _ in range(2000):
                owner = secret if chance.random() < 0.05 else chance.choice(others)
                word = "SECRETWORD " if owner == secret else "other words "
                connection.execute(
                    "INSERT INTO message (conversation_id, role, state, created_at, text)"
                    " VALUES (?, 'user', 'complete', 0, ?)",
                    (owner, word * chance.choice([1, 2, 3, 5, 8, 13, 20, 40, 80, 160])),
                )
        assert b"SECRET" in bytes_on_disk(tmp_path)
        delete_conversation(database, secret)
        assert b"SECRET" not in bytes_on_disk(tmp_path)
        assert len(database.query("SELECT * FROM conversation")) == len(others)


def test_a_large_file_is_rewritten_on_closing(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(db_module, "IMMEDIATE_VACUUM_BYTES", 0)
    with opened(tmp_path / "chats.db") as database:
        delete_conversation(database, add_conversation(database, "SECRET", "text " * 1000))
        assert b"SECRET" not in bytes_on_disk(tmp_path)
        assert database.query("SELECT task FROM housekeeping")[0]["task"] == "vacuum"
        pages_before = database.query("PRAGMA page_count")[0][0]
    with opened(tmp_path / "chats.db") as database:
        assert database.query("SELECT task FROM housekeeping") == []
        assert database.query("PRAGMA page_count")[0][0] < pages_before


def test_closing_twice_is_harmless(tmp_path: Path) -> None:
    database = Database(tmp_path / "chats.db")
    database.close()
    database.close()


def test_folding_ignores_case_and_the_form_of_accents() -> None:
    assert folded("ÉCOLE") == folded("e\u0301cole".replace("e\u0301", "é"))
    assert folded("E\u0301cole") == folded("école")
    assert folded("STRASSE") == folded("straße")
