"""The SQLite file that holds the conversations."""

import contextlib
import logging
import os
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from app.storage.files import set_aside
from app.storage.migrate import check_readable, load_migrations, migrate
from app.storage.text import folded
from core.errors import UserError

MEMORY = ":memory:"
"""The path of a database that is gone when the program ends."""

IMMEDIATE_VACUUM_BYTES = 4 * 2**20
"""Up to this size the file is rewritten at once after a deletion (about 10 ms a MiB); a larger
one is rewritten on closing, so that the window's thread is not held up."""

_BUSY_TIMEOUT_MS = 2000
_DAMAGED = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
_UNWRITABLE = (
    sqlite3.SQLITE_READONLY,
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_PERM,
    sqlite3.SQLITE_AUTH,
)

_log = logging.getLogger(__name__)

Parameters = Sequence[object] | Mapping[str, object]


class Database:
    """One connection, used on the thread that made it, in small transactions.

    Write-ahead logging: a killed program loses no committed transaction. The file is readable
    by its owner only. What is deleted is overwritten, in the file and in the log.

    ``path`` ":memory:" keeps everything in memory. A damaged file is set aside and a fresh one
    begun; ``notices`` then holds a sentence for the person. ``copy_of`` fills a database in memory
    with what a file holds, which is only read. Raises UserError when the folder cannot be
    written, and when the file is newer than the program (it is left as it is).
    """

    def __init__(self, path: Path | str, *, copy_of: Path | None = None) -> None:
        self._in_memory = str(path) == MEMORY
        self._source = copy_of
        self.path = copy_of or Path(path)
        self.notices: tuple[str, ...] = ()
        if not self._in_memory:
            _create_private(self.path)
        with self._explained():
            try:
                self._connection = self._open()
            except sqlite3.DatabaseError as error:
                if self._in_memory or _code(error) not in _DAMAGED:
                    raise
                _log.error("the conversation file is damaged", exc_info=error)
                moved = set_aside(self.path, "-wal", "-shm")
                self.notices = (
                    f"The file with the conversations was damaged. It was kept as {moved.name}, "
                    "and a new one was begun.",
                )
                _create_private(self.path)
                self._connection = self._open()

    def query(self, sql: str, parameters: Parameters = ()) -> list[sqlite3.Row]:
        """Return all rows of a SELECT. Raises UserError when the file cannot be read."""
        with self._explained():
            return self._connection.execute(sql, parameters).fetchall()

    @contextlib.contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """Commit everything done inside, or nothing when it raises.

        Raises UserError when the file cannot be written (full disk, read-only, in use).
        """
        with self._explained():
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield self._connection
                self._connection.commit()
            except BaseException:
                self._connection.rollback()
                raise

    @contextlib.contextmanager
    def deletion(self) -> Iterator[sqlite3.Connection]:
        """A transaction after which no trace of the deleted rows stays on the disk."""
        with self.transaction() as connection:
            yield connection
            # In the same transaction, so that a kill before the rewrite does not forget it.
            connection.execute("INSERT OR IGNORE INTO housekeeping (task) VALUES ('vacuum')")
        if self._in_memory:
            return
        with self._explained():
            self._empty_log()
            if self.path.stat().st_size <= IMMEDIATE_VACUUM_BYTES:
                self._vacuum_if_due()

    def close(self) -> None:
        """Finish pending housekeeping and close; closing twice is harmless."""
        try:
            if not self._in_memory:
                self._vacuum_if_due()
        except sqlite3.ProgrammingError:
            return
        self._connection.close()

    def _open(self) -> sqlite3.Connection:
        connection = sqlite3.connect(
            self.path if not self._in_memory else MEMORY,
            timeout=_BUSY_TIMEOUT_MS / 1000,
            isolation_level=None,
        )
        try:
            connection.row_factory = sqlite3.Row
            connection.create_function("folded", 1, folded, deterministic=True)
            if self._source is not None:
                _fill(connection, self._source)
            migrations = load_migrations()
            check_readable(connection, migrations, self.path.name)
            connection.execute("PRAGMA journal_mode = WAL")
            # A power cut may cost the last seconds, a kill costs nothing; full
            # synchronisation would hold the window's thread for each save.
            connection.execute("PRAGMA synchronous = NORMAL")
            connection.execute("PRAGMA secure_delete = ON")
            check = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
            if check != "ok":
                damaged = sqlite3.DatabaseError(check)
                damaged.sqlite_errorcode = sqlite3.SQLITE_CORRUPT
                raise damaged
            migrate(connection, migrations)
            connection.execute("PRAGMA foreign_keys = ON")
            # A file that can be read but not written is found out now, not at the first message.
            connection.execute("BEGIN IMMEDIATE")
            connection.execute("COMMIT")
        except BaseException:
            connection.close()
            raise
        return connection

    def _vacuum_if_due(self) -> None:
        """Rewrite the file if something was deleted since the last time.

        secure_delete clears deleted rows, but pages that were split earlier can still hold
        copies of rows that moved; only a rewrite is sure to drop them. A failure (a full disk)
        leaves the task for the next time.
        """
        due = self._connection.execute("SELECT 1 FROM housekeeping WHERE task = 'vacuum'")
        if due.fetchone() is None:
            return
        try:
            self._connection.execute("VACUUM")
            self._connection.execute("DELETE FROM housekeeping WHERE task = 'vacuum'")
        except sqlite3.OperationalError as error:
            _log.warning("the conversation file was not rewritten", exc_info=error)
        self._empty_log()

    def _empty_log(self) -> None:
        self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()

    @contextlib.contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            explanation = self._explanation(error)
            if explanation is None:
                raise
            raise explanation from error

    def _explanation(self, error: sqlite3.Error) -> UserError | None:
        code = _code(error)
        if code == sqlite3.SQLITE_FULL:
            return UserError("The disk is full; nothing more can be saved.", "Free some space.")
        if code in _UNWRITABLE:
            return _unwritable(self.path)
        if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            return UserError(
                f"{self.path} is in use by another program.", "Close that program and try again."
            )
        if code == sqlite3.SQLITE_IOERR:
            return UserError(
                f"{self.path} could not be read or written.",
                "Check the disk, then start Paceline again.",
            )
        if code in _DAMAGED:
            return UserError(
                f"{self.path} is damaged.",
                "Start Paceline again: the file is then kept under another name and a new "
                "one is begun.",
            )
        return None


def _fill(connection: sqlite3.Connection, source: Path) -> None:
    """Copy what ``source`` holds, its log included.

    SQLite writes beside a file with a log also to read it, so that a copy elsewhere is read.
    """
    try:
        with tempfile.TemporaryDirectory(prefix="paceline-") as folder:
            copy = Path(folder) / source.name
            shutil.copyfile(source, copy)
            log = source.with_name(f"{source.name}-wal")
            if log.exists():
                shutil.copyfile(log, copy.with_name(log.name))
            with contextlib.closing(sqlite3.connect(copy)) as reader:
                reader.execute("PRAGMA journal_mode = DELETE").fetchall()
                reader.backup(connection)
    except OSError as error:
        raise UserError(
            f"{source} could not be read: {error.strerror or error}.",
            "Make the file readable for you, then start Paceline again.",
        ) from error


def _code(error: sqlite3.Error) -> int:
    # Errors of the Python layer carry no code. The low byte is the primary code.
    return int(getattr(error, "sqlite_errorcode", 0)) & 0xFF


def _create_private(path: Path) -> None:
    """Make the file, for its owner only, before SQLite does; the log inherits its mode."""
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
        if os.name == "posix" and path.stat().st_mode & 0o077:
            path.chmod(0o600)
    except OSError as error:
        raise _unwritable(path) from error


def _unwritable(path: Path) -> UserError:
    return UserError(
        f"Conversations cannot be saved in {path.parent}.",
        "Make the folder writable, or set PACELINE_HOME to a folder that is.",
    )
