"""The commands of the terminal chat: what a line of input means."""

from dataclasses import dataclass

COMMANDS = {
    "/help": "show this list",
    "/new": "forget the conversation and begin a new one",
    "/regenerate": "answer the last message again",
    "/drafter X": "who drafts from now on (hybrid, mtp, model, ...); alone: all there are",
    "/gamma N": "tokens drafted a round, 0 to 16; /gamma auto chooses them for speed",
    "/rule X": "how drafts are accepted (exact, block; lossy: target-prob, typical, ensemble)",
    "/temperature T": "0 always takes the likeliest token",
    "/system TEXT": "the system prompt; /system - removes it; alone: show it",
    "/colour on|off": "colour the tokens by origin, or not",
    "/stats": "the numbers so far",
    "/quit": "leave (or Ctrl+D)",
}
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
