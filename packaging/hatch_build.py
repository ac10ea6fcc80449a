"""Hatch build hook: a wheel carries app, core and resources inside the launcher's package.

Modules literally named ``app`` and ``core`` in site-packages would collide with other projects,
so a standard wheel has them under ``paceline/_lib``, which the launcher puts on ``sys.path``.
An editable install exposes the checkout as it is, wherever that lies.
"""

import base64
import hashlib
import os
import zipfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

BUNDLED = ("app", "core", "resources")


class BundleHook(BuildHookInterface[Any]):
    """Adds the bundled folders to standard wheels, and mends the path file of editable ones."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Extend ``build_data`` before the wheel is written; ``version`` is its kind."""
        if version != "standard":
            return
        for name in BUNDLED:
            build_data["force_include"][str(Path(self.root, name))] = f"paceline/_lib/{name}"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Rewrite the path file of an editable wheel so that every locale can read it."""
        if version == "editable" and not str(self.root).isascii():
            _rewrite_path_files(Path(artifact_path))


def ascii_path_line(line: str) -> str:
    """Return a line of a ``.pth`` file that means the same and is ASCII.

    Python 3.11 reads these files in the encoding of the locale, and refuses to start on a folder
    that has other letters in its name: under ``LC_ALL=C``, not even UTF-8 mode helps.
    """
    if line.isascii():
        return line
    return f"import os, sys; sys.path.append(os.fsdecode({os.fsencode(line)!r}))"


def _rewrite_path_files(wheel: Path) -> None:
    fresh = wheel.with_suffix(".new")
    hashes: dict[str, str] = {}
    with zipfile.ZipFile(wheel) as old, zipfile.ZipFile(fresh, "w") as new:
        for entry in old.infolist():  # RECORD comes last, as the wheel format advises
            content = old.read(entry)
            if entry.filename.endswith(".pth"):
                lines = content.decode("utf-8").splitlines()
                content = "".join(f"{ascii_path_line(line)}\n" for line in lines).encode("ascii")
                hashes[entry.filename] = _record_line(entry.filename, content)
            elif entry.filename.endswith(".dist-info/RECORD"):
                records = content.decode("utf-8").splitlines()
                kept = (hashes.get(record.split(",")[0], record) for record in records)
                content = "".join(f"{record}\n" for record in kept).encode("utf-8")
            new.writestr(entry, content)
    os.replace(fresh, wheel)


def _record_line(name: str, content: bytes) -> str:
    digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
    return f"{name},sha256={digest},{len(content)}"
