"""What a head is: its host, its shape, the tokens it knows and how it was made."""

import math
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from enum import StrEnum
from typing import Any

from core.errors import UserError

CARD_NAME = "head.json"
"""The file that makes a folder a head."""
FORMAT = 1
"""The version of the card; a newer one is refused."""
MAX_DEPTH = 16
_FINGERPRINT = re.compile(r"[0-9a-f]{16,64}")
_MAKE_AGAIN = "Train the head again, or choose another."


class HeadKind(StrEnum):
    """How a head makes several tokens of one state.

    ``sequential``: one module applied again and again, each time on its own last output and the
    token that was drafted. ``parallel``: one module for each position, none sees drafted tokens.
    """

    SEQUENTIAL = "sequential"
    PARALLEL = "parallel"


@dataclass(frozen=True, slots=True, kw_only=True)
class HeadHost:
    """The model that a head reads: :func:`core.models.mtp.host.describe_host` makes it.

    ``hidden`` is the width of a state, ``vocab`` the number of ids that the host knows.
    """

    name: str
    fingerprint: str
    hidden: int
    layers: int
    vocab: int

    def __post_init__(self) -> None:
        _require(bool(_FINGERPRINT.fullmatch(str(self.fingerprint))), "host.fingerprint")
        for name in ("hidden", "layers", "vocab"):
            _whole(f"host.{name}", getattr(self, name), 1, 2**31 - 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class HeadShape:
    """The dimensions of a head.

    Of a parallel head ``intermediate`` (inside of a residual block) and ``blocks`` (how many each
    position has) count alone; of a sequential one everything but ``blocks`` does.
    """

    intermediate: int
    heads: int = 1
    kv_heads: int = 1
    head_dim: int = 64
    blocks: int = 1
    rope_theta: float = 10000.0
    norm_eps: float = 1e-5

    def __post_init__(self) -> None:
        _whole("shape.blocks", self.blocks, 1, 8)
        for name in ("heads", "kv_heads", "head_dim", "intermediate"):
            _whole(f"shape.{name}", getattr(self, name), 1, 2**20)
        _require(self.heads % self.kv_heads == 0, "shape.kv_heads")
        _require(self.head_dim % 2 == 0, "shape.head_dim")
        _require(_finite(self.rope_theta) and self.rope_theta > 1, "shape.rope_theta")
        _require(_finite(self.norm_eps) and 0 < self.norm_eps < 1, "shape.norm_eps")


@dataclass(frozen=True, slots=True, kw_only=True)
class HeadCard:
    """A head in words and numbers.

    ``depth`` is how many tokens it was trained to draft (K); ``state_layers`` are the host's states
    it reads, counted as in :meth:`core.models.runner.Runner.keep_states`; ``vocabulary`` are the
    host's ids that it drafts, in the order of its logits. ``acceptance`` is what was measured
    on held-out prompts, position by position, each given that those before it stood, and
    ``acceptance_length`` the mean number of tokens a round. ``data``, ``losses``, ``licence`` and
    ``command`` are for people.

    Raises UserError naming the field that makes no sense.
    """

    kind: str
    host: HeadHost
    shape: HeadShape
    state_layers: tuple[int, ...]
    vocabulary: tuple[int, ...]
    depth: int = 3
    data: str = ""
    losses: str = ""
    acceptance: tuple[float, ...] = ()
    acceptance_length: float | None = None
    licence: str = ""
    seed: int = 0
    command: str = ""
    format: int = FORMAT

    def __post_init__(self) -> None:
        _version(self.format)
        _require(self.kind in [str(kind) for kind in HeadKind], "kind")
        _whole("depth", self.depth, 1, MAX_DEPTH)
        _whole("seed", self.seed, 0, 2**63 - 1)
        layers = self.host.layers
        _require(bool(self.state_layers), "state_layers")
        for layer in self.state_layers:
            _whole("state_layers", layer, 0, layers)
        if self.kind == HeadKind.PARALLEL:
            _require(self.state_layers == (layers,), "state_layers")
        _require(bool(self.vocabulary), "vocabulary")
        _require(len(set(self.vocabulary)) == len(self.vocabulary), "vocabulary")
        ids = self.vocabulary
        _require(min(ids) >= 0 and max(ids) < self.host.vocab, "vocabulary")
        _require(all(_finite(a) and 0 <= a <= 1 for a in self.acceptance), "acceptance")
        length = self.acceptance_length
        _require(length is None or (_finite(length) and length >= 0), "acceptance_length")
        for name in ("data", "losses", "licence", "command"):
            _require(isinstance(getattr(self, name), str), name)

    @property
    def state_width(self) -> int:
        """How wide the states are that the head reads, side by side."""
        return len(self.state_layers) * self.host.hidden

    def to_json(self) -> dict[str, Any]:
        """Return the card as plain values, without the vocabulary, which is stored elsewhere."""
        values = asdict(self)
        del values["vocabulary"]
        return values

    @classmethod
    def from_json(cls, values: Mapping[str, Any], vocabulary: tuple[int, ...]) -> "HeadCard":
        """Return the card of :meth:`to_json`'s values. Raises UserError for what is no card."""
        if values.get("format") != FORMAT and isinstance(values.get("format"), int):
            _version(values["format"])
        try:
            plain = {
                field.name: values[field.name] for field in fields(cls) if field.name in values
            }
            plain["host"] = HeadHost(**values["host"])
            plain["shape"] = HeadShape(**values["shape"])
            for name in ("state_layers", "acceptance"):
                plain[name] = tuple(plain.get(name, ()))
            plain["vocabulary"] = vocabulary
            return cls(**plain)
        except (KeyError, TypeError, AttributeError) as error:
            raise UserError("The head's card is damaged or is no card.", _MAKE_AGAIN) from error


def _version(version: object) -> None:
    if version != FORMAT:
        raise UserError(
            f"The head has a card of version {version!r}, and this Paceline reads {FORMAT}.",
            "Update Paceline, or train the head again.",
        )


def _require(holds: bool, name: str) -> None:
    if not holds:
        raise UserError(f"The field {name} of the head's card makes no sense.", _MAKE_AGAIN)


def _whole(name: str, value: object, low: int, high: int) -> None:
    whole = isinstance(value, int) and not isinstance(value, bool)
    if not whole or not low <= int(str(value)) <= high:
        raise UserError(
            f"The field {name} of the head's card is {value!r}.",
            f"It must be a whole number from {low} to {high}.",
        )


def _finite(value: object) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return -math.inf < value < math.inf  # unlike isfinite, for whole numbers of any size
