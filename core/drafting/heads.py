"""From a head, or from where to look for one, to the drafter of a pair."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from core.drafting.model import ModelDrafter
from core.drafting.mtp import MtpDrafter
from core.errors import UserError, clause
from core.models.cache import TokenCache
from core.models.mtp.card import HeadHost
from core.models.mtp.find import NO_HEAD, FoundHead, HeadSearch
from core.models.mtp.host import describe_host
from core.models.mtp.inference import make_head_runner
from core.models.mtp.modules import Head
from core.models.mtp.native import NativeRunner, has_native_layers
from core.models.runner import Runner


@dataclass(frozen=True, slots=True, kw_only=True)
class PairHead:
    """The head of a pair: its drafter, and its name with its host's; or why there is none."""

    drafter: MtpDrafter | None = None
    name: str | None = None
    reason: str = NO_HEAD
    notices: tuple[str, ...] = ()


def head_for_pair(
    heads: Head | HeadSearch | None,
    target: TokenCache,
    draft: ModelDrafter | None,
    names: tuple[str, str | None],
    model: Any = None,
) -> PairHead:
    """Return the drafter of a head on the target or, where that has none, on the draft model.

    ``names`` are those of target and draft. ``model`` is the target's own, whose checkpoint may
    have brought a head: that one is taken where no other was asked for or trained. A head that was
    asked for and cannot be used is left out with a notice. Raises UserError for a head at hand that
    is for neither.
    """
    if heads is None:
        return PairHead()
    found = _trained(heads, target, draft, names)
    if found.drafter is not None or not isinstance(heads, HeadSearch) or heads.path is not None:
        return found
    if not has_native_layers(model):
        return found
    try:
        runner = NativeRunner(model, target.runner, target.runner.vocab_size)
    except UserError as error:
        return replace(found, reason=clause(error.message))
    drafter = MtpDrafter(runner, target, vocab_size=target.runner.vocab_size)
    return PairHead(drafter=drafter, name=f"the model's own on {names[0]}", reason="")


def _trained(
    heads: Head | HeadSearch,
    target: TokenCache,
    draft: ModelDrafter | None,
    names: tuple[str, str | None],
) -> PairHead:
    hosts: list[HeadHost] = []
    models: list[ModelDrafter | None] = []
    for model in (None, draft) if draft is not None else (None,):
        runner = target.runner if model is None else model.runner
        host = _describe(runner, names[0 if model is None else 1] or "")
        if host is not None:
            hosts.append(host)
            models.append(model)
    if not hosts:
        return PairHead(reason="the states of this model cannot be read")
    try:
        if isinstance(heads, HeadSearch):
            found, reason = heads.find(hosts)
            if found is None:
                return _left_out(heads, reason)
        else:
            found = _at_hand(heads, hosts)
        drafter = _drafter(found.head, target, models[found.host])
    except UserError as error:
        if not isinstance(heads, HeadSearch):
            raise
        return _left_out(heads, clause(error.message))
    return PairHead(drafter=drafter, name=f"{found.name} on {hosts[found.host].name}", reason="")


def _left_out(heads: HeadSearch, reason: str) -> PairHead:
    # Where nobody asked for a head, the list of drafters says enough.
    notices = (f"The head was left out: {reason}.",) if heads.path is not None else ()
    return PairHead(reason=reason, notices=notices)


def _drafter(head: Head, target: TokenCache, model: ModelDrafter | None) -> MtpDrafter:
    cache = target if model is None else model.cache
    vocab_size = target.runner.vocab_size
    try:
        runner = make_head_runner(head, cache.runner, vocab_size)
    except (MemoryError, torch.OutOfMemoryError):
        raise UserError(
            "There is not enough memory for it.", "Close other programs, or choose a smaller model."
        ) from None
    return MtpDrafter(runner, cache, vocab_size=vocab_size, model=model)


def _at_hand(head: Head, hosts: Sequence[HeadHost]) -> FoundHead:
    for number, host in enumerate(hosts):
        if head.card.host.fingerprint == host.fingerprint:
            return FoundHead(head=head, name=head.card.kind, host=number)
    raise UserError(
        f"The head was made for {head.card.host.name or 'another model'}.",
        "Give one that was made for the target or the draft.",
    )


def _describe(runner: Runner, name: str) -> HeadHost | None:
    try:
        return describe_host(runner, name=name)
    except (AttributeError, NotImplementedError):
        return None  # some architectures have no table of embeddings for tokens
