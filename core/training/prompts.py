"""The prompts that training data is generated from: those that ship, and files of the user's own.

The shipped ones are ``resources/prompts/*.jsonl``, one JSON object a line. They share nothing with
the suites of ``core/bench/cases.py``, which stay unseen.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, Final

from core.errors import BugError, UserError
from core.hub.files import parse_json
from core.requests import GenerateRequest

PROMPTS_DIR = Path(__file__).resolve().parents[2] / "resources" / "prompts"

MAX_PROMPT_CHARACTERS: Final = 32_000
"""The longest prompt, with its system message: far more than a training example can hold."""

MAX_LINE_BYTES: Final = 1 << 20
"""The longest line that is read from a user's file."""

MAX_FILE_BYTES: Final = 64 << 20
"""The largest file of a user's prompts."""


class Suite(StrEnum):
    """What a prompt asks for. ``OWN`` are the prompts of a user's file."""

    CHAT = "chat"
    CODE = "code"
    REWRITE = "rewrite"
    SUMMARISE = "summarise"
    OWN = "own"


SHIPPED_SUITES: Final = tuple(suite for suite in Suite if suite is not Suite.OWN)


class Split(StrEnum):
    """Whether a prompt is trained on, or kept back to measure on."""

    TRAIN = "train"
    HELD_OUT = "held-out"


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """One request of a user, with the system message it is given under, if any.

    Raises UserError when a text is empty, too long or no text.
    """

    id: str
    suite: Suite
    text: str
    split: Split
    system: str | None = None

    def __post_init__(self) -> None:
        for name, text in (("text", self.text), ("system", self.system)):
            if name == "system" and text is None:
                continue
            if not isinstance(text, str):
                raise UserError(f'The value of "{name}" is no text.', "Put it in double quotes.")
            if not text.strip():
                raise UserError(f"The {name} is empty.", "Write something there, or remove it.")
            if "\0" in text:
                raise UserError(f"The {name} holds a zero character.", "Save the file as UTF-8.")
        if len(self.text) + len(self.system or "") > MAX_PROMPT_CHARACTERS:
            raise UserError(
                f"The prompt is longer than {MAX_PROMPT_CHARACTERS:,} characters.", "Shorten it."
            )
        GenerateRequest(messages=self.messages)

    @property
    def messages(self) -> tuple[tuple[str, str], ...]:
        """The (role, text) pairs that the chat template takes."""
        user = ("user", self.text)
        return (user,) if self.system is None else (("system", self.system), user)


def read_prompts(split: Split, folder: Path = PROMPTS_DIR) -> tuple[Prompt, ...]:
    """Return the shipped prompts of one split, suite by suite, always in the same order.

    Raises BugError when a file contradicts itself, since it ships with the program.
    """
    prompts: list[Prompt] = []
    for suite in SHIPPED_SUITES:
        name = f"{suite}.jsonl"
        lines = (folder / name).read_bytes().decode("utf-8").removesuffix("\n").split("\n")
        for number, line in enumerate(lines, start=1):
            try:
                prompts.append(_shipped_prompt(parse_json(line), suite))
            except (ValueError, KeyError, TypeError, UserError) as error:
                raise BugError(f"Line {number} of {name} is wrong: {error}.") from error
    if len({prompt.id for prompt in prompts}) != len(prompts):
        raise BugError("An id of the shipped prompts stands twice.")
    return tuple(prompt for prompt in prompts if prompt.split == split)


def _shipped_prompt(entry: dict[str, Any], suite: Suite) -> Prompt:
    prompt = Prompt(
        **{**entry, "suite": Suite(entry["suite"]), "split": Split(entry["split"])},
    )
    if prompt.suite is not suite or not prompt.id.startswith(f"{suite}-"):
        raise ValueError(f"{prompt.id!r} does not belong to {suite}")
    return prompt


def read_user_prompts(path: Path) -> tuple[Prompt, ...]:
    """Return the prompts of a user's file, each once, in its order, with the suite ``own``.

    A ``.txt`` file has one prompt a line; empty lines count for nothing. A ``.jsonl`` file has one
    JSON object a line with the key ``text`` and, if wanted, ``system`` and ``split`` ("train",
    which is the default, or "held-out"); other keys are ignored. Both are UTF-8.

    Raises UserError naming the file, the line and what is wrong with it.
    """
    kind = path.suffix.lower()
    if kind not in (".txt", ".jsonl"):
        raise UserError(
            f"{path.name} is neither a .txt nor a .jsonl file.",
            "Give a text file with one prompt a line, or a JSONL file with one object a line.",
        )
    prompts: dict[tuple[str, str | None], Prompt] = {}
    for number, line in _lines(path):
        try:
            entry = {"text": line.strip()} if kind == ".txt" else _user_object(line)
            prompt = Prompt(
                id=f"own-{number:04d}",
                suite=Suite.OWN,
                text=entry["text"],
                system=entry.get("system"),
                split=Split(entry.get("split", Split.TRAIN)),
            )
        except UserError as error:
            raise _refused(path, number, error.message, error.action) from None
        prompts.setdefault((prompt.text, prompt.system), prompt)
    if not prompts:
        raise UserError(f"{path.name} has no prompts.", "Write at least one prompt into it.")
    return tuple(prompts.values())


def _user_object(line: str) -> dict[str, Any]:
    try:
        entry = parse_json(line)
    except ValueError:
        raise UserError(
            "It is not valid JSON.", 'Write one object a line, such as {"text": "Hello"}.'
        ) from None
    if not isinstance(entry, dict):
        raise UserError("It is no JSON object.", 'Write it as {"text": "Hello"}.')
    if "text" not in entry:
        found = ", ".join(map(repr, list(entry)[:5])) or "none"
        raise UserError(f'The key "text" is missing; its keys are: {found}.', "Add the prompt.")
    if entry.get("split", Split.TRAIN) not in tuple(Split):
        raise UserError(
            f"The split is {str(entry['split'])[:40]!r}.", f"It must be one of: {', '.join(Split)}."
        )
    return entry


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the number and the text of every line that is not blank; the first has number 1."""
    try:
        if not path.is_file():
            raise UserError(f"There is no file {path}.", "Choose a file with prompts.")
        size_bytes = path.stat().st_size
        if size_bytes > MAX_FILE_BYTES:
            raise UserError(
                f"{path.name} has {size_bytes / (1 << 20):,.0f} MB of prompts; "
                f"at most {MAX_FILE_BYTES >> 20} MB are read.",
                "Give a part of it.",
            )
        with path.open("rb") as file:
            number = 0
            while content := file.readline(MAX_LINE_BYTES + 1):
                number += 1
                if len(content) > MAX_LINE_BYTES:
                    raise _refused(
                        path, number, f"It is longer than {MAX_LINE_BYTES:,} bytes.", "Shorten it."
                    )
                try:
                    line = content.decode("utf-8-sig" if number == 1 else "utf-8")
                except UnicodeDecodeError:
                    raise _refused(
                        path, number, "It is not UTF-8.", "Save the file as UTF-8 text."
                    ) from None
                if line.strip():
                    yield number, line
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise UserError(f"{path} cannot be read: {reason}.", "Check the file.") from error


def _refused(path: Path, number: int, problem: str, action: str) -> UserError:
    return UserError(f"Line {number} of {path.name} cannot be used. {problem}", action)
