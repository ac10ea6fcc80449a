"""What the GPU check found: parts with checks, tables, and what could not be looked at."""

import json
import time
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

Value = str | int | float | bool | None


@dataclass(slots=True)
class Part:
    """One question and what was found. ``state`` is done, failed or left out."""

    name: str
    state: str = "left out"
    seconds: float = 0.0
    checks: list[dict[str, Value]] = field(default_factory=list)
    tables: dict[str, list[dict[str, Value]]] = field(default_factory=dict)
    not_checked: list[str] = field(default_factory=list)

    def check(self, name: str, ok: bool, detail: str = "") -> None:
        """Note whether something is as it must be."""
        self.checks.append({"name": name, "ok": ok, "detail": detail})

    def row(self, table: str, values: Mapping[str, Value]) -> None:
        """Add a line to a table; numbers are kept to four digits."""
        rounded = {
            name: float(f"{value:.4g}") if isinstance(value, float) else value
            for name, value in values.items()
        }
        self.tables.setdefault(table, []).append(rounded)

    def leave_out(self, what: str) -> None:
        """Note what could not be checked, and why, as one sentence."""
        if what not in self.not_checked:
            self.not_checked.append(what)

    @contextmanager
    def attempt(self, what: str) -> Iterator[None]:
        """Go on after the block whatever happens in it: what fails is a result, too."""
        try:
            yield
        except ImportError as error:
            self.leave_out(f"{what}: {error}")
        except Exception as error:  # noqa: BLE001 - the other questions still count
            self.check(f"{what}: ran to its end", False, f"{type(error).__name__}: {error}")
            traceback.print_exc()

    @property
    def ok(self) -> bool:
        """Whether nothing was found wrong."""
        return self.state != "failed" and all(check["ok"] for check in self.checks)


class Budget:
    """The time that is left."""

    def __init__(self, limit_s: float) -> None:
        self._end = time.monotonic() + limit_s

    @property
    def left_s(self) -> float:
        """Seconds until the limit."""
        return self._end - time.monotonic()

    def has(self, seconds: float) -> bool:
        """Return whether that much is left."""
        return self.left_s > seconds


def write(path: Path, about: Mapping[str, Any], parts: list[Part]) -> None:
    """Write all that was found so far as JSON."""
    path.parent.mkdir(parents=True, exist_ok=True)
    found = {"about": dict(about), "parts": [asdict(part) for part in parts]}
    path.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


def lines(part: Part) -> list[str]:
    """Return what a terminal shows of a part."""
    shown = [f"== {part.name}: {part.state}, {part.seconds:.1f} s"]
    passed = sum(bool(check["ok"]) for check in part.checks)
    if part.checks:
        shown.append(f"   {passed} of {len(part.checks)} checks passed")
    shown += [f"   WRONG {c['name']}: {c['detail']}" for c in part.checks if not c["ok"]]
    for title, rows in part.tables.items():
        shown.append(f"   {title}")
        names = list(dict.fromkeys(name for row in rows for name in row))
        table = [names, *([_text(row.get(name)) for name in names] for row in rows)]
        widths = [max(len(row[column]) for row in table) for column in range(len(names))]
        shown += [
            "   " + "  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True))
            for row in table
        ]
    return shown + [f"   not checked: {reason}" for reason in part.not_checked]


def _text(value: Value) -> str:
    return "" if value is None else f"{value:g}" if isinstance(value, float) else str(value)
