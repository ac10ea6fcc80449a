"""Numbered SQL files that bring a database to the format this program reads."""

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources

from core.errors import BugError, UserError

APPLICATION_ID = 0x50434C4E
"""Marks a SQLite file as Paceline's ("PCLN")."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Migration:
    """One step: ``version`` is the format the database has after ``sql`` ran."""

    version: int
    name: str
    sql: str


def load_migrations() -> tuple[Migration, ...]:
    """Return the shipped ``NNNN_name.sql`` files in order, numbered from 1 without a gap."""
    folder = resources.files("app.storage").joinpath("migrations")
    found = sorted(
        (
            Migration(
                version=int(entry.name[:4]),
                name=entry.name[5:].removesuffix(".sql"),
                sql=entry.read_text(encoding="utf-8"),
            )
            for entry in folder.iterdir()
            if entry.name.endswith(".sql")
        ),
        key=lambda migration: migration.version,
    )
    if not found or [m.version for m in found] != list(range(1, len(found) + 1)):
        raise BugError(f"migrations are missing or misnumbered: {[m.name for m in found]}")
    return tuple(found)


def check_readable(
    connection: sqlite3.Connection, migrations: Sequence[Migration], name: str
) -> None:
    """Raise UserError for a database that is newer than the program or another program's.

    Only reads. ``name`` is the file's name for the message.
    """
    tables = int(connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0])
    application = int(connection.execute("PRAGMA application_id").fetchone()[0])
    if tables and application != APPLICATION_ID:
        raise UserError(
            f"{name} was not made by Paceline.",
            "Move it elsewhere, or start Paceline with another data folder (PACELINE_HOME).",
        )
    version, newest = _version(connection), migrations[-1].version
    if version > newest:
        raise UserError(
            f"The conversations in {name} were saved by a newer Paceline "
            f"(format {version}; this one reads up to {newest}).",
            "Update Paceline, or start it with another data folder (PACELINE_HOME).",
        )


def migrate(connection: sqlite3.Connection, migrations: Sequence[Migration]) -> None:
    """Apply what is missing, each step in a transaction of its own.

    sqlite3.Error passes through, with the failed step undone and the earlier ones kept.
    """
    for migration in migrations[_version(connection) :]:
        script = (
            f"BEGIN IMMEDIATE;\n{migration.sql}\n"
            f"PRAGMA application_id = {APPLICATION_ID};\n"
            f"PRAGMA user_version = {migration.version};\nCOMMIT;"
        )
        try:
            connection.executescript(script)
        except sqlite3.Error:
            connection.rollback()
            raise


def _version(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA user_version").fetchone()[0])
