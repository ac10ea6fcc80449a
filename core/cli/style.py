"""How the command line looks: consoles, the look of each origin, and harmless text."""

import errno
import os
from collections.abc import Mapping
from types import MappingProxyType
from typing import TextIO

from rich.console import Console

from core.events import FinishReason, Loaded, Origin
from core.metrics import GenerationMetrics
from core.requests import AUTO_GAMMA, DrafterKind, Rule, SpeculationParams

SEPARATOR = " | "

_REASONS: Mapping[str, str] = MappingProxyType(
    {
        FinishReason.LENGTH: "cut at the longest reply asked for",
        FinishReason.CONTEXT: "cut where the context is full",
        FinishReason.CANCELLED: "stopped",
    }
)

ORIGIN_STYLES: Mapping[str, str] = MappingProxyType(
    {
        Origin.ACCEPTED: "green italic",
        Origin.RESAMPLED: "yellow underline",
        Origin.BONUS: "blue bold underline",
        Origin.PLAIN: "",
    }
)
"""The colour of each origin with a cue that is not colour: what the draft wrote is italic, what
the target itself wrote in a drafted round is underlined, and the bonus is bold besides."""

ORIGIN_MEANINGS: Mapping[str, str] = MappingProxyType(
    {
        Origin.ACCEPTED: "drafted, and accepted by the target",
        Origin.RESAMPLED: "the target's own token where it refused the draft",
        Origin.BONUS: "the target's extra token after it accepted the whole draft",
        Origin.PLAIN: "no draft in that round",
    }
)

# C0 (but tab and newline), DEL and C1 become visible signs: a reply must never steer a terminal.
_HARMLESS = {code: chr(0x2400 + code) for code in range(0x20) if chr(code) not in "\t\n"}
_HARMLESS[0x7F] = "\u2421"
_HARMLESS.update({code: f"\\x{code:02x}" for code in range(0x80, 0xA0)})


def harmless(text: str) -> str:
    """Return the text with every control character, but tab and newline, made visible."""
    return text.translate(_HARMLESS)


class _PipeConsole(Console):
    """A console that leaves it to the caller what happens when nobody reads it any more."""

    def on_broken_pipe(self) -> None:
        """Let the error out; without this the console would end the program with the code 1."""
        raise BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE))


def make_console(stream: TextIO) -> Console:
    """Return a console that honours NO_COLOR, keeps plain streams plain and guesses nothing.

    Writing to it raises OSError, BrokenPipeError among them, as the stream itself does.
    """
    return _PipeConsole(
        file=stream,
        force_terminal=stream.isatty(),  # FORCE_COLOR must not put colours into a pipe
        highlight=False,
        markup=False,
        emoji=False,
        soft_wrap=True,
    )


def can_redraw(console: Console) -> bool:
    """Whether a line of this console can be rewritten in place."""
    return console.is_terminal and not console.is_dumb_terminal


def sentence(text: str) -> str:
    """Return the text as one harmless line."""
    return harmless(" ".join(text.split()))


def say(console: Console, text: str) -> None:
    """Print a quiet line: what accompanies a reply and is none of it."""
    console.print(sentence(text), style="dim", soft_wrap=not console.is_terminal)


def speed(metrics: GenerationMetrics) -> str:
    """Return the numbers of a reply, as far as they are known, on one line."""
    first = metrics.time_to_first_token_ms
    parts = [pace(metrics), acceptance(metrics)]
    parts.append("" if first is None else f"first token after {first / 1000:.2f} s")
    return SEPARATOR.join(filter(None, parts))


def pace(metrics: GenerationMetrics) -> str:
    """Return how many tokens were decoded and how fast."""
    tokens = f"{metrics.tokens} token{'' if metrics.tokens == 1 else 's'}"
    if metrics.tokens_per_second is None:
        return tokens
    return f"{tokens}{SEPARATOR}{metrics.tokens_per_second:.1f} tokens/s"


def acceptance(metrics: GenerationMetrics) -> str:
    """Return how well the drafts stood; nothing where nothing was drafted."""
    if metrics.acceptance_rate is None or metrics.mean_acceptance_length is None:
        return ""
    length = f"mean acceptance length {metrics.mean_acceptance_length:.2f}"
    return f"{length}{SEPARATOR}{100 * metrics.acceptance_rate:.0f}% accepted"


def in_force(speculation: SpeculationParams, loaded: Loaded) -> str:
    """Return what a reply is made with, or why nothing drafts, on one line."""
    where = f"{loaded.precision} on {loaded.device}"
    off = next(
        (
            option.reason.rstrip(".")
            for option in loaded.drafters
            if option.kind == speculation.drafter and not option.available
        ),
        "",
    )
    if speculation.drafter == DrafterKind.OFF:
        off = "the drafter is off"
    elif speculation.gamma == 0:
        off = "gamma is 0"
    if off:
        return f"{where}{SEPARATOR}speculation is off because {off}"
    drafting = f"drafter {speculation.drafter}, gamma {speculation.gamma}, {rule(speculation)}"
    return f"{drafting}{SEPARATOR}{where}"


def rule(speculation: SpeculationParams) -> str:
    """Return the rule by its name, and that it is lossy where it is."""
    return f"{'lossy ' if Rule(speculation.rule).lossy else ''}rule {speculation.rule}"


def drafted(speculation: SpeculationParams, metrics: GenerationMetrics) -> str:
    """Return what an automatic gamma came to in a reply, as the tail of a line."""
    if speculation.gamma != AUTO_GAMMA or not metrics.proposed:
        return ""
    return f"{SEPARATOR}mean drafted length {metrics.proposed / metrics.rounds:.2f}"


def ending(reason: str) -> str:
    """Return how a reply ended where it did not end by itself, as the tail of a line."""
    return f"{SEPARATOR}{_REASONS[reason]}" if reason in _REASONS else ""
