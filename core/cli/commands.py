"""The commands of the terminal chat: what a line of input means."""

from dataclasses import dataclass

from core.requests import AUTO_GAMMA, MAX_GAMMA, Rule

COMMANDS = {
    "/help": "show this list",
    "/new": "forget the conversation and begin a new one",
    "/regenerate": "answer the last message again",
    "/drafter X": "who drafts from now on; alone: all there are",
    "/gamma N": "tokens drafted a round: auto, or 0 to 16; alone: show it",
    "/rule X": "how drafts are accepted; alone: show it and all there are",
    "/temperature T": "0 always takes the likeliest token; alone: show it",
    "/system TEXT": "the system prompt; /system - removes it; alone: show it",
    "/colour on|off": "colour the tokens by origin, or not; alone: show it",
    "/stats": "the numbers so far",
    "/quit": "leave (or Ctrl+D)",
}
_LOSSLESS = " or ".join(rule for rule in Rule if not rule.lossy)
_LOSSY = ", ".join(rule for rule in Rule if rule.lossy)
CAN_BE = {
    "gamma": f"{AUTO_GAMMA}, or a whole number from 0 to {MAX_GAMMA}",
    "rule": f"{_LOSSLESS}, or one of the lossy ones: {_LOSSY}",
    "temperature": "a number from 0, which always takes the likeliest token, to 100",
    "colour": "on or off",
}
"""What a command that stands alone can be given."""
HELP_NOTES = (
    "Ctrl+C stops a reply. A line that ends with \\ goes on in the next one.",
    "Begin with // to send a message that begins with /.",
)


@dataclass(frozen=True, slots=True)
class Command:
    """A line that begins with a slash: ``name`` without it, in lower case, and the rest."""

    name: str
    rest: str


def parse_line(line: str) -> Command | str:
    """Return the command of a line, or the message that it is."""
    text = line.strip()
    if text.startswith("//"):
        return text[1:]
    if not text.startswith("/"):
        return text
    name, _, rest = text[1:].partition(" ")
    return Command(name=name.lower(), rest=rest.strip())
