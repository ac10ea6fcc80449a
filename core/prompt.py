"""Messages to prompt ids, through the model's own chat template."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import jinja2

from core.errors import UserError
from core.events import Notice

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

Messages = Sequence[tuple[str, str]]

_SEAM = "\ufdd0"
"""Marks where text is cut for encoding. Unicode reserves it for use inside programs, so text has
none to lose."""

_PROBE = "paceline"


_FOLDED = Notice(
    kind="system-role",
    message="This model takes no system prompt, so its text stands at the start of the first "
    "message.",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rendered:
    """A prompt, and what the person should know about how it was made."""

    ids: tuple[int, ...]
    notices: tuple[Notice, ...] = ()


def render(tokenizer: "PreTrainedTokenizerBase", messages: Messages) -> Rendered:
    """Return the ids that ask for the next reply to ``messages``, (role, text) pairs.

    Control tokens spelled out in a message reach the model as plain characters. A template
    that refuses or drops a system message gets its text in the first user turn, and one that
    wants the roles to alternate gets neighbours of one role joined; a tokenizer without a
    template gets a plain format.

    Raises UserError where the template refuses the conversation all the same.
    """
    if not tokenizer.chat_template:
        return _render_plainly(tokenizer, messages)
    safe = _cut_control_tokens(tokenizer, messages)
    has_system = any(role == "system" for role, _ in safe)
    attempts: list[tuple[Messages, tuple[Notice, ...]]] = []
    if not has_system or _takes_system(tokenizer):
        attempts += [(safe, ()), (_join_neighbours(safe), ())]
    if has_system:
        folded = _fold_system(safe)
        attempts += [(folded, (_FOLDED,)), (_join_neighbours(folded), (_FOLDED,))]
    refusals: list[str] = []
    for attempt, notices in attempts:
        try:
            text = _apply_template(tokenizer, attempt)
        except jinja2.TemplateError as error:
            refusals.append(str(error))
        else:
            return Rendered(ids=_encode(tokenizer, text), notices=notices)
    raise UserError(
        f"The model's chat template refuses this conversation: {refusals[0].rstrip('.')}.",
        "Start a new conversation, or choose another model.",
    )


def stop_ids(tokenizer: "PreTrainedTokenizerBase", *configs: object) -> frozenset[int]:
    """Return every id that ends a reply.

    ``configs`` are the model's generation config and config, or None; their ``eos_token_id``
    may be one id or several. Beside them stand the tokenizer's own end token and the one that
    the chat template writes after a reply, which converted checkpoints often fail to name.
    """
    ids: set[int] = set()
    for source in (tokenizer, *configs):
        value = getattr(source, "eos_token_id", None)
        if value is not None:
            ids.update([value] if isinstance(value, int) else value)
    end_of_turn = _end_of_turn(tokenizer)
    if end_of_turn is not None:
        ids.add(end_of_turn)
    return frozenset(ids)


def boundary_ids(tokenizer: "PreTrainedTokenizerBase") -> frozenset[int]:
    """Return the ids of all special tokens: what stands between turns is no text to look up."""
    return frozenset(
        token_id for token_id, token in tokenizer.added_tokens_decoder.items() if token.special
    )


def common_prefix_length(first: Sequence[int], second: Sequence[int]) -> int:
    """Return how many ids the two begin with in common."""
    length = 0
    for a, b in zip(first, second, strict=False):
        if a != b:
            break
        length += 1
    return length


def _apply_template(
    tokenizer: "PreTrainedTokenizerBase", messages: Messages, *, add_generation_prompt: bool = True
) -> str:
    return str(
        tokenizer.apply_chat_template(
            [{"role": role, "content": content} for role, content in messages],
            tokenize=False,
            add_generation_prompt=add_generation_prompt,
        )
    )


def _render_plainly(tokenizer: "PreTrainedTokenizerBase", messages: Messages) -> Rendered:
    turns = [
        f"{role.capitalize()}: {content}"
        for role, content in _cut_control_tokens(tokenizer, messages)
    ]
    ids = _encode(tokenizer, "\n\n".join([*turns, "Assistant:"]))
    # A template writes the begin token itself; without one it is up to the tokenizer.
    begin = tokenizer.bos_token_id
    if begin is not None and tokenizer.encode("")[:1] == [begin]:
        ids = (begin, *ids)
    notice = Notice(
        kind="no-template",
        message="This model has no chat template and may not have been trained to chat.",
    )
    return Rendered(ids=ids, notices=(notice,))


def _cut_control_tokens(tokenizer: "PreTrainedTokenizerBase", messages: Messages) -> Messages:
    """Put a seam after the first character of every control token in the messages.

    Encoded piece by piece, the text then has no control token left but those that the template
    writes. A token of one character cannot be cut. Tokens that are added but not special stay
    whole: templates look for some of them (``</think>``) in earlier replies.
    """
    tokens = sorted(
        (
            token.content
            for token in tokenizer.added_tokens_decoder.values()
            if token.special and len(token.content) > 1
        ),
        key=len,
        reverse=True,
    )
    # A look-ahead finds tokens that overlap, too.
    spelled = "|".join(map(re.escape, tokens))
    anywhere = re.compile(f"(?=({spelled})).", re.DOTALL) if tokens else None
    cut: list[tuple[str, str]] = []
    for role, content in messages:
        content = content.replace(_SEAM, "")
        if anywhere is not None:
            content = anywhere.sub(rf"\g<0>{_SEAM}", content)
        cut.append((role, content))
    return cut


def _encode(tokenizer: "PreTrainedTokenizerBase", text: str) -> tuple[int, ...]:
    """Encode the text piece by piece between the seams, adding nothing."""
    first, *others = text.split(_SEAM)
    ids = list(tokenizer.encode(first, add_special_tokens=False))
    newline = tokenizer.encode("\n", add_special_tokens=False)
    for piece in others:
        # SentencePiece puts a space before the start of a text; after a newline it does not.
        piece_ids = tokenizer.encode("\n" + piece, add_special_tokens=False)
        if piece_ids[: len(newline)] == newline:
            ids += piece_ids[len(newline) :]
        else:
            ids += tokenizer.encode(piece, add_special_tokens=False)
    return tuple(ids)


def _takes_system(tokenizer: "PreTrainedTokenizerBase") -> bool:
    """Try it out: templates raise at a system message, or leave its text out without a word."""
    try:
        return _PROBE in _apply_template(tokenizer, [("system", _PROBE), ("user", "Hello")])
    except jinja2.TemplateError:
        return False


def _fold_system(messages: Messages) -> Messages:
    """Move the text of the system messages to the start of the first user message."""
    system = [content for role, content in messages if role == "system"]
    rest = [(role, content) for role, content in messages if role != "system"]
    for index, (role, content) in enumerate(rest):
        if role == "user":
            rest[index] = (role, "\n\n".join([*system, content]))
            return rest
    return [("user", "\n\n".join(system)), *rest]


def _join_neighbours(messages: Messages) -> Messages:
    joined: list[tuple[str, str]] = []
    for role, content in messages:
        if joined and joined[-1][0] == role:
            joined[-1] = (role, f"{joined[-1][1]}\n\n{content}")
        else:
            joined.append((role, content))
    return joined


def _end_of_turn(tokenizer: "PreTrainedTokenizerBase") -> int | None:
    """Return the special token that the template writes after a reply, if it writes one."""
    if not tokenizer.chat_template:
        return None
    conversation = [("user", "Hello"), ("assistant", _PROBE)]
    try:
        text = _apply_template(tokenizer, conversation, add_generation_prompt=False)
    except jinja2.TemplateError:
        return None
    _, found, after = text.rpartition(_PROBE)
    endings = {
        token.content: token_id
        for token_id, token in tokenizer.added_tokens_decoder.items()
        if token.special and found and after.lstrip().startswith(token.content)
    }
    return endings[max(endings, key=len)] if endings else None
