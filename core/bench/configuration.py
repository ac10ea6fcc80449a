"""How a configuration is written: ``off``, ``ngram:auto``, ``mtp/NAME:3``, ``model:4@0.7``."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Literal

from core.errors import UserError
from core.events import DrafterOption
from core.requests import (
    AUTO_GAMMA,
    MAX_GAMMA,
    DrafterKind,
    Rule,
    SamplingParams,
    SpeculationParams,
)

_FORM = "Write off, or DRAFTER:GAMMA or DRAFTER:GAMMA:RULE, with @TEMPERATURE after it if wanted."
_READS_HEAD = (DrafterKind.MTP, DrafterKind.HYBRID)


@dataclass(frozen=True, slots=True, kw_only=True)
class Configuration:
    """One way of making replies; its text is what :func:`parse_configuration` reads.

    ``head`` names one of several heads; without it the one that the pair is loaded with drafts.
    Raises UserError naming the field, its value and its range.
    """

    drafter: str
    gamma: int | Literal["auto"] = AUTO_GAMMA
    rule: str = Rule.EXACT
    temperature: float = 0.0
    head: str = ""

    def __post_init__(self) -> None:
        if self.head and self.drafter not in _READS_HEAD:
            raise UserError(
                f"The drafter {self.drafter} has no head.", "Name one behind mtp or hybrid."
            )
        self.speculation()
        self.sampling(0)

    @property
    def plain(self) -> bool:
        """Whether nothing drafts, so that this is what the others are measured against."""
        return self.drafter == DrafterKind.OFF

    @property
    def name(self) -> str:
        """The text that stands for it in reports; what is usual is left out."""
        parts = [f"{self.drafter}/{self.head}" if self.head else str(self.drafter)]
        if not self.plain:
            parts.append(str(self.gamma))
            if self.rule != Rule.EXACT:
                parts.append(str(self.rule))
        return ":".join(parts) + (f"@{self.temperature:g}" if self.temperature else "")

    @property
    def lossy(self) -> bool:
        """Whether its replies are not drawn from the target's own distribution."""
        return not self.plain and self.temperature > 0 and Rule(self.rule).lossy

    @property
    def baseline(self) -> "Configuration":
        """Plain decoding at the same temperature."""
        return Configuration(drafter=DrafterKind.OFF, temperature=self.temperature)

    def speculation(self) -> SpeculationParams:
        """Return the request's part of that name."""
        return SpeculationParams(drafter=self.drafter, gamma=self.gamma, rule=self.rule)

    def sampling(self, seed: int) -> SamplingParams:
        """Return the request's part of that name."""
        return SamplingParams(temperature=self.temperature, seed=seed)


def parse_configuration(text: str) -> Configuration:
    """Return the configuration that ``text`` stands for; gamma is auto where it is left out.

    Raises UserError quoting the text and saying what is wrong with it.
    """
    before, at, tail = text.strip().partition("@")
    first, *rest = before.split(":")
    drafter, slash, head = first.partition("/")
    try:
        temperature = float(tail) if at else 0.0
    except ValueError:
        raise UserError(f"{text!r} has no number after the @.", _FORM) from None
    kinds = [str(kind) for kind in DrafterKind]
    if drafter not in kinds:
        raise UserError(f"{text!r} names no drafter.", f"Begin with one of: {', '.join(kinds)}.")
    if slash and not head:
        raise UserError(f"{text!r} names no head after the slash.", "Write mtp/NAME:GAMMA.")
    if len(rest) > 2 or (rest and drafter == DrafterKind.OFF):
        raise UserError(f"{text!r} has too many parts.", _FORM)
    gamma = _gamma(text, rest)
    rule = rest[1] if len(rest) > 1 else Rule.EXACT
    try:
        return Configuration(
            drafter=drafter, gamma=gamma, rule=rule, temperature=temperature, head=head
        )
    except UserError as error:
        raise UserError(f"{text!r} cannot be run: {error.message}", error.action) from None


def parse_configurations(text: str) -> tuple[Configuration, ...]:
    """Return the configurations of a list with commas, each once. Raises UserError."""
    return tuple(dict.fromkeys(parse_configuration(part) for part in text.split(",")))


def with_baselines(configurations: Sequence[Configuration]) -> tuple[Configuration, ...]:
    """Return the configurations after the plain ones that they are measured against."""
    baselines = [configuration.baseline for configuration in configurations]
    return tuple(dict.fromkeys([*baselines, *configurations]))


def default_configurations(drafters: Sequence[DrafterOption]) -> tuple[Configuration, ...]:
    """Return plain decoding and every drafter that a loaded pair has, at automatic gamma.

    Without a draft model or a head hybrid is n-gram under another name, so it is left out; so is
    the early exit, which few models are trained for.
    """
    available = [option.kind for option in drafters if option.available]
    left_out = {DrafterKind.OFF, DrafterKind.EARLY_EXIT}
    if not {DrafterKind.MODEL, DrafterKind.MTP} & set(available):
        left_out.add(DrafterKind.HYBRID)
    chosen = [Configuration(drafter=kind) for kind in available if kind not in left_out]
    return (Configuration(drafter=DrafterKind.OFF), *chosen)


def require_head(configuration: Configuration, heads: Collection[str]) -> None:
    """Raise UserError for a configuration whose head is not among the names."""
    if configuration.head not in heads:
        raise UserError(
            f"{configuration.name} names a head that is not there.",
            f"Give it with --also-head {configuration.head}=HEAD.",
        )


def require_draft(configuration: Configuration, *, has_draft: bool) -> None:
    """Raise UserError for a configuration whose draft model nobody named."""
    if configuration.drafter == DrafterKind.MODEL and not has_draft:
        raise UserError(
            f"{configuration.name} cannot be run: there is no draft model.",
            "Name one with --draft, or choose a pair that has one.",
        )


def require_available(configuration: Configuration, drafters: Sequence[DrafterOption]) -> None:
    """Raise UserError for a configuration whose drafter the loaded pair does not have."""
    reasons = {option.kind: option.reason for option in drafters if not option.available}
    if configuration.drafter in reasons:
        reason = reasons[configuration.drafter].rstrip(".")
        raise UserError(
            f"{configuration.name} cannot be run: {reason}.",
            "Leave it out, or choose another pair.",
        )


def _gamma(text: str, rest: Sequence[str]) -> int | Literal["auto"]:
    if not rest or rest[0] == AUTO_GAMMA:
        return AUTO_GAMMA
    if not rest[0].isascii() or not rest[0].isdigit() or not 1 <= int(rest[0]) <= MAX_GAMMA:
        raise UserError(
            f"{text!r} has the draft length {rest[0]!r}.",
            f"It must be auto or a whole number from 1 to {MAX_GAMMA}.",
        )
    return int(rest[0])
