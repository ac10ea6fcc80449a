"""The paths of one checkout, and what is remembered about its environment."""

import hashlib
import json
import os
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from bootstrap import system


@dataclass(frozen=True, slots=True, kw_only=True)
class Stamp:
    """What the last finished set-up installed."""

    fingerprint: str = ""
    extras: frozenset[str] = frozenset()


class Checkout:
    """One checkout with its environment in ``.venv``."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.environment = root / ".venv"
        self.python = self.environment / "bin" / "python"
        self.log = self.environment / "setup.log"
        self.constraints = root / "packaging" / "constraints.txt"
        self._build_hook = root / "packaging" / "hatch_build.py"
        self.unpacking = self.environment / "setup-unpacking"
        """Exists while pip works; left over, a kill may have cut a package in half."""
        self._stamp_file = self.environment / "setup-done.json"

    @property
    def site_packages(self) -> Path:
        """Where the environment keeps its packages."""
        version = f"python{sys.version_info.major}.{sys.version_info.minor}"
        return self.environment / "lib" / version / "site-packages"

    def fingerprint(self) -> str:
        """Return a hash that changes when the packages have to be installed anew."""
        digest = hashlib.sha256(os.fsencode(self.root))  # an editable install names the folder
        for file in (self.root / "pyproject.toml", self.constraints, self._build_hook):
            digest.update(file.read_bytes())
        return digest.hexdigest()

    def holds(self, extras: Iterable[str]) -> bool:
        """Return whether the packages, with ``extras``, are installed as the checkout has them."""
        stamp = self.read_stamp()
        return (
            stamp.fingerprint == self.fingerprint()
            and stamp.extras.issuperset(extras)
            and self.python_works()
        )

    def read_stamp(self) -> Stamp:
        """Return what the last finished set-up left, or an empty stamp."""
        try:
            stored = json.loads(self._stamp_file.read_text(encoding="utf-8"))
            return Stamp(fingerprint=stored["fingerprint"], extras=frozenset(stored["extras"]))
        except (OSError, ValueError, KeyError, TypeError):
            return Stamp()  # unreadable counts as absent: the steps are safe to repeat

    def write_stamp(self, extras: Iterable[str]) -> None:
        """Remember a finished set-up."""
        text = json.dumps({"fingerprint": self.fingerprint(), "extras": sorted(extras)})
        fresh = self._stamp_file.with_suffix(".new")
        fresh.write_text(text, encoding="utf-8")
        os.replace(fresh, self._stamp_file)

    def is_sound(self) -> bool:
        """Return whether the environment can be built upon instead of being made anew."""
        return self.python_works() and not self.unpacking.exists()

    def python_works(self) -> bool:
        """Return whether the environment's interpreter starts, with pip, in this version."""
        version = tuple(sys.version_info[:2])
        check = f"import sys, pip; sys.exit(sys.version_info[:2] != {version!r})"
        try:
            return system.run_quietly([str(self.python), "-c", check]).returncode == 0
        except OSError:
            return False
