"""Numbers as words of the window: few digits, a unit, and a dash where nothing is known."""

from app.names import RULE_NAMES

UNKNOWN = "–"


def short(value: float | None) -> str:
    """Return ``value`` with one decimal below 10 and thousands set apart above."""
    if value is None:
        return UNKNOWN
    return f"{value:.1f}" if abs(value) < 9.95 else f"{value:,.0f}"


def speed(tokens_per_second: float | None) -> str:
    """Return a speed in tokens per second."""
    return UNKNOWN if tokens_per_second is None else f"{short(tokens_per_second)} tok/s"


def percent(fraction: float | None) -> str:
    """Return a fraction of 1 in percent."""
    return UNKNOWN if fraction is None else f"{100.0 * fraction:.0f} %"


def duration(milliseconds: float | None) -> str:
    """Return a time in ms below one second, in s above."""
    if milliseconds is None:
        return UNKNOWN
    if milliseconds < 999.5:
        return f"{milliseconds:.0f} ms"
    return f"{milliseconds / 1000.0:.{2 if milliseconds < 9995 else 1}f} s"


def span(seconds: float) -> str:
    """Return a long time in s, min, or h and min."""
    if seconds < 99.5:
        return f"{max(0.0, seconds):.0f} s"
    minutes = round(seconds / 60)
    if minutes < 100:
        return f"{minutes} min"
    return f"{minutes // 60} h {minutes % 60} min"


def step_time(milliseconds: float) -> str:
    """Return the time of one small step, with the digits that short ones need."""
    digits = 2 if milliseconds < 1 else 1 if milliseconds < 10 else 0
    return f"{milliseconds:.{digits}f} ms"


def ratio(value: float | None) -> str:
    """Return a speed-up, and say so where it is none."""
    if value is None:
        return UNKNOWN
    return f"{value:.2f}× (slower)" if is_slower(value) else f"{value:.2f}×"


def is_slower(speed_up: float) -> bool:
    """Whether a speed-up is none, in the two digits that are shown."""
    return speed_up < 0.995


def count(value: int) -> str:
    """Return a whole number with thousands set apart."""
    return f"{value:,}"


def size(number_bytes: int) -> str:
    """Return an amount of memory in MB or GB (powers of 1000)."""
    if number_bytes < 999_500_000:
        return f"{number_bytes / 1e6:.0f} MB"
    return f"{number_bytes / 1e9:.1f} GB"


def rule_words(rule: str, *, lossy: bool) -> str:
    """Return the name of an acceptance rule, and say so where it is lossy."""
    name = RULE_NAMES.get(rule, rule)
    return f"lossy ({name})" if lossy else f"{name} rule"


def head_sentence(head: str) -> str:
    """Return that a head drafts; ``head`` names it and its host, "" where none does."""
    return f"The head that drafts is {head}." if head else ""


def off_sentence(reason: str) -> str:
    """Return why nothing drafts as one sentence; ``reason`` may be a clause or a sentence."""
    reason = reason.strip().rstrip(".")
    if not reason:
        return "Speculation is off: plain decoding was chosen."
    if reason.lower().startswith("speculation"):
        return f"{reason[0].upper()}{reason[1:]}."
    return f"Speculation is off because {reason}."
