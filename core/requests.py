"""What goes into the engine: frozen plain values, validated where they are made."""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, Literal

from core.errors import UserError

MAX_GAMMA = 16
"""The largest draft length that can be asked for, in tokens."""

MIN_TEMPERATURE = 1e-6
"""Below it a temperature is no longer a number that logits can be divided by."""

DEFAULT_MAX_NEW_TOKENS = 1024
"""The longest reply, in tokens, that the window and the command line ask for by themselves."""

AUTO_GAMMA: Final = "auto"
"""The draft length that a controller chooses round by round."""


class DrafterKind(StrEnum):
    """Who proposes the tokens that the target verifies."""

    OFF = "off"
    MODEL = "model"
    NGRAM = "ngram"
    HYBRID = "hybrid"
    MTP = "mtp"
    EARLY_EXIT = "early-exit"


class Rule(StrEnum):
    """How drafted tokens are accepted. At temperature 0 every rule is the greedy one."""

    EXACT = "exact"
    BLOCK = "block"
    TARGET_PROB = "target-prob"
    TYPICAL = "typical"
    ENSEMBLE = "ensemble"

    @property
    def lossy(self) -> bool:
        """Whether the reply is drawn from something else than the target's distribution."""
        return self not in (Rule.EXACT, Rule.BLOCK)


class Device(StrEnum):
    """Where the models run."""

    AUTO = "auto"
    CPU = "cpu"
    CUDA = "cuda"


class Precision(StrEnum):
    """The number format of the weights."""

    AUTO = "auto"
    FLOAT32 = "float32"
    BFLOAT16 = "bfloat16"
    INT8 = "int8"
    NF4 = "nf4"


def _number(name: str, value: float, low: float, high: float) -> None:
    # A comparison also refuses what is no number, and does not turn a huge whole one into a float.
    if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
        raise UserError(f"{name} is {value!r}.", f"It must be a number from {low:g} to {high:g}.")


def _integer(name: str, value: int, low: int, high: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise UserError(f"{name} is {value!r}.", f"It must be a whole number from {low} to {high}.")


def _gamma(value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= MAX_GAMMA:
        raise UserError(
            f"gamma is {value!r}.", f"It must be auto or a whole number from 0 to {MAX_GAMMA}."
        )


def _message(message: object) -> None:
    if not isinstance(message, tuple) or len(message) != 2:
        raise UserError("A message is no pair.", "Every message must be a role and a text.")
    role, text = message
    if role not in ("system", "user", "assistant"):
        raise UserError(
            f"A message has the role {role!r}.", "It must be one of: system, user, assistant."
        )
    if not isinstance(text, str):
        raise UserError("A message is not text.", "Every message must be a string.")
    if any("\ud800" <= character <= "\udfff" for character in text):
        raise UserError(
            "A message holds half of a character (a lone surrogate).", "Remove or retype it."
        )


def _member(name: str, value: str, kinds: type[StrEnum]) -> None:
    allowed = [str(kind) for kind in kinds]
    if value not in allowed:
        raise UserError(f"{name} is {value!r}.", f"It must be one of: {', '.join(allowed)}.")


@dataclass(frozen=True, slots=True, kw_only=True)
class SamplingParams:
    """How the next token is drawn, for draft and target alike.

    ``temperature`` 0 is greedy. ``top_k`` 0, ``top_p`` 1, ``min_p`` 0,
    ``repetition_penalty`` 1 and the other penalties at 0 switch that filter off.
    ``seed`` None draws a fresh seed for every request.

    Raises UserError naming the field, its value and its range.
    """

    temperature: float = 0.0
    top_k: int = 0
    top_p: float = 1.0
    min_p: float = 0.0
    repetition_penalty: float = 1.0
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0
    seed: int | None = None

    def __post_init__(self) -> None:
        _number("temperature", self.temperature, 0.0, 100.0)
        if 0.0 < self.temperature < MIN_TEMPERATURE:
            raise UserError(
                f"temperature is {self.temperature!r}.",
                f"It must be 0 (greedy) or a number from {MIN_TEMPERATURE:g} to 100.",
            )
        _integer("top_k", self.top_k, 0, 2**31 - 1)
        _number("top_p", self.top_p, 0.0, 1.0)
        if self.top_p == 0.0:
            raise UserError("top_p is 0.", "It must be above 0 and at most 1.")
        _number("min_p", self.min_p, 0.0, 1.0)
        _number("repetition_penalty", self.repetition_penalty, 0.01, 100.0)
        _number("presence_penalty", self.presence_penalty, -100.0, 100.0)
        _number("frequency_penalty", self.frequency_penalty, -100.0, 100.0)
        if self.seed is not None:
            _integer("seed", self.seed, 0, 2**63 - 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class SpeculationParams:
    """Who drafts, how far ahead (``gamma`` tokens), and by which rule tokens are accepted.

    ``gamma`` "auto" takes the length that makes the most tokens per second, 0 included; 0 decodes
    plainly. ``ensemble_weight`` is the target's share in the rule ensemble; ``typical_epsilon`` and
    ``typical_delta`` are the limits of the rule typical.

    Raises UserError naming the field, its value and its range.
    """

    drafter: str = DrafterKind.MODEL
    gamma: int | Literal["auto"] = 4
    rule: str = Rule.EXACT
    ensemble_weight: float = 0.7
    typical_epsilon: float = 0.09
    typical_delta: float = 0.3

    def __post_init__(self) -> None:
        _member("drafter", self.drafter, DrafterKind)
        if self.gamma != AUTO_GAMMA:
            _gamma(self.gamma)
        _member("rule", self.rule, Rule)
        _number("ensemble_weight", self.ensemble_weight, 0.0, 1.0)
        _number("typical_epsilon", self.typical_epsilon, 0.0, 1.0)
        _number("typical_delta", self.typical_delta, 0.0, 1.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class GenerateRequest:
    """One reply to be generated.

    ``messages`` are (role, text) pairs with roles system, user and assistant, rendered
    through the chat template; ``prompt_ids``, when given, are used as they are instead.

    Raises UserError naming the field, its value and its range.
    """

    messages: tuple[tuple[str, str], ...] = ()
    prompt_ids: tuple[int, ...] | None = None
    sampling: SamplingParams = field(default_factory=SamplingParams)
    speculation: SpeculationParams = field(default_factory=SpeculationParams)
    max_new_tokens: int = 256
    stop: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not self.messages and not self.prompt_ids:
            raise UserError("The request has no text.", "Write a message first.")
        for message in self.messages:
            _message(message)
        for token in self.prompt_ids or ():
            _integer("a prompt id", token, 0, 2**31 - 1)
        _integer("max_new_tokens", self.max_new_tokens, 1, 2**31 - 1)
        if not isinstance(self.stop, tuple) or not all(
            isinstance(text, str) and text for text in self.stop
        ):
            raise UserError(
                "A stop string is empty or not in a list.", "Give one or more non-empty strings."
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadRequest:
    """Which models to load and how.

    ``target`` and ``draft`` are local paths: a ``.gguf`` file or a folder of safetensors.
    ``context_limit`` caps the context in tokens; None takes the model's own. ``head`` is the folder
    of a head that drafts; None takes one that was made for the target or the draft, if any.

    Raises UserError naming the field, its value and its range.
    """

    target: str
    draft: str | None = None
    device: str = Device.AUTO
    precision: str = Precision.AUTO
    context_limit: int | None = None
    head: str | None = None

    def __post_init__(self) -> None:
        if not self.target:
            raise UserError("No model was chosen.", "Choose a model to load.")
        _member("device", self.device, Device)
        _member("precision", self.precision, Precision)
        if self.context_limit is not None:
            _integer("context_limit", self.context_limit, 16, 2**31 - 1)
