"""What is in force: which drafter really runs, and why none does. Pure functions."""

from dataclasses import replace

from app.names import HEAD_DRAFTERS, head_name
from app.records import Choice, InForce, Message
from app.settings import Settings, speculation_params
from app.widgets.settings_choices import DRAFTERS
from core.events import DrafterOption, Loaded
from core.requests import AUTO_GAMMA, DrafterKind, Rule, SpeculationParams


def drafter_choices(loaded: Loaded | None) -> list[Choice]:
    """Return every drafter, with the reason beside each that the loaded pair cannot have."""
    options = {option.kind: option for option in loaded.drafters} if loaded is not None else {}
    choices = []
    for choice in DRAFTERS:
        option = options.get(choice.value, DrafterOption(kind=choice.value, available=True))
        choices.append(replace(choice, enabled=option.available, reason=option.reason))
    return choices


def head_words(loaded: Loaded | None) -> str:
    """Return which head the loaded pair has, or why none; "" while nothing is loaded."""
    if loaded is None:
        return ""
    if loaded.head is not None:
        return head_name(loaded.head)
    reasons = (option.reason for option in loaded.drafters if option.kind == DrafterKind.MTP)
    return next(reasons, "") or "no head was trained for these models"


def speculation_for(settings: Settings, loaded: Loaded | None) -> SpeculationParams:
    """Return what was chosen, with the drafter off where the loaded pair cannot have it."""
    chosen = speculation_params(settings)
    refused = _refusal(settings, loaded) is not None
    return replace(chosen, drafter=DrafterKind.OFF) if refused else chosen


def off_reason(settings: Settings, speculation: SpeculationParams, loaded: Loaded | None) -> str:
    """Return why nothing drafts, to follow "Speculation is off because"; "" when it does."""
    if loaded is None:
        return "no model is loaded"
    if settings.drafter == DrafterKind.OFF:
        return "it was switched off in the settings"
    if speculation.drafter == DrafterKind.OFF:
        return _refusal(settings, loaded) or "it was off when this reply began"
    if speculation.gamma == 0:
        return "gamma is 0"
    return ""


def gamma_words(gamma: int | str, now: int | None) -> str:
    """Return the draft length in words; ``now`` is what an automatic one just was."""
    if gamma != AUTO_GAMMA:
        return str(gamma)
    return "automatic" if now is None else f"automatic ({now} now)"


def head_of(speculation: SpeculationParams, loaded: Loaded | None) -> str:
    """Return the head that drafts with ``speculation`` and its host, "" where none does."""
    uses_it = speculation.drafter in HEAD_DRAFTERS
    return (loaded.head or "") if loaded is not None and uses_it else ""


def in_force(
    pair: str,
    speculation: SpeculationParams,
    loaded: Loaded | None,
    why_off: str,
    gamma_now: int | None = None,
) -> InForce:
    """Return what the running or next reply uses; ``gamma_now`` is what was drafted last."""
    drafting = not why_off
    return InForce(
        pair=pair,
        drafter=speculation.drafter if drafting else DrafterKind.OFF,
        gamma=gamma_words(speculation.gamma, gamma_now) if drafting else "0",
        rule=speculation.rule,
        lossy=drafting and Rule(speculation.rule).lossy,
        device=loaded.device if loaded is not None else "",
        precision=loaded.precision if loaded is not None else "",
        context_limit=loaded.context_limit if loaded is not None else 0,
        off_reason=why_off,
        head=head_of(speculation, loaded) if drafting else "",
    )


def in_force_of(message: Message) -> InForce:
    """Return what a stored reply was made with, as far as that is known."""
    stored = message.settings.get("speculation")
    speculation = stored if isinstance(stored, dict) else {}
    drafting = bool(message.metrics.get("proposed"))
    drafter, rule = str(speculation.get("drafter")), str(speculation.get("rule"))
    known = rule in set(Rule)
    return InForce(
        pair=str(message.settings.get("pair", "")),
        drafter=drafter if drafting else DrafterKind.OFF,
        gamma=gamma_words(speculation.get("gamma", 0), None) if drafting else "0",
        rule=rule if known else Rule.EXACT,
        lossy=drafting and known and Rule(rule).lossy,
        device=str(message.settings.get("device", "")),
        precision=str(message.settings.get("precision", "")),
        head=str(message.settings.get("head", "")) if drafting else "",
    )


def _refusal(settings: Settings, loaded: Loaded | None) -> str | None:
    if loaded is None or settings.drafter == DrafterKind.OFF:
        return None
    for option in loaded.drafters:
        if option.kind == settings.drafter and not option.available:
            return option.reason
    return None
