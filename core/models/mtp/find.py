"""Which head a pair gets: the one asked for, else one that was made for its target or draft."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from core.errors import UserError, clause
from core.hub.heads import fingerprint_at, heads_for
from core.models.mtp.card import HeadHost
from core.models.mtp.files import load_head
from core.models.mtp.modules import Head

logger = logging.getLogger(__name__)

NO_HEAD = "no head was trained for this model"


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundHead:
    """A head with the name of its folder and the place of its host among those asked for."""

    head: Head
    name: str
    host: int


@dataclass(frozen=True, slots=True, kw_only=True)
class HeadSearch:
    """Where to look: at ``path`` alone where it is given, else in the folders, one head a folder.

    Of several heads for one host the one with the longest measured acceptance is taken. Where that
    is equal the folders decide: the person's own heads come first when their folder does.
    """

    path: Path | None = None
    folders: tuple[Path, ...] = ()

    def find(self, hosts: Sequence[HeadHost]) -> tuple[FoundHead | None, str]:
        """Return a head for the first host that has one, or None and why, as a clause."""
        if self.path is not None:
            return self._asked_for(self.path, hosts)
        reason = NO_HEAD
        for number, host in enumerate(hosts):
            for place in heads_for(host.fingerprint, self.folders):
                try:
                    head = load_head(place, host)
                except UserError as error:
                    reason = clause(error.message)
                    logger.info("a head is left out: %s", reason)
                else:
                    return FoundHead(head=head, name=place.name, host=number), ""
        return None, reason

    def _asked_for(self, path: Path, hosts: Sequence[HeadHost]) -> tuple[FoundHead | None, str]:
        folder = path if path.is_dir() else path.parent
        own = fingerprint_at(folder)
        number = next((n for n, host in enumerate(hosts) if host.fingerprint == own), 0)
        try:
            head = load_head(path, hosts[number])
        except UserError as error:
            return None, clause(error.message)
        return FoundHead(head=head, name=folder.absolute().name, host=number), ""
