"""What a load puts together: runners, caches, drafters and what can be said of them."""

from dataclasses import dataclass
from typing import Any

from core.decoding.gamma import AutoGamma, FixedGamma, GammaController
from core.drafting.base import Drafter, ReadingDrafter
from core.drafting.early_exit import EarlyExitDrafter, exit_depth
from core.drafting.heads import head_for_pair
from core.drafting.hybrid import HybridDrafter
from core.drafting.model import ModelDrafter
from core.drafting.mtp import MtpDrafter
from core.drafting.ngram import NgramDrafter
from core.errors import BugError, UserError, clause
from core.events import DrafterOption, Loaded
from core.models.cache import TokenCache
from core.models.mtp.find import HeadSearch
from core.models.mtp.modules import Head
from core.models.pairing import real_size
from core.models.runners import make_runner, runner_notice
from core.prompt import boundary_ids, stop_ids
from core.requests import DrafterKind, SpeculationParams

_NO_EXIT = "only int8 on the CPU and models on a GPU can run their first layers alone"


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """The working parts of one loaded pair; dropped as a whole on unload."""

    target: TokenCache
    tokenizer: Any
    draft: ModelDrafter | None
    ngram: NgramDrafter
    early_exit: EarlyExitDrafter | None
    mtp: MtpDrafter | None
    custom: Drafter | None
    """Takes the place of every drafter but "off"."""
    stop_ids: frozenset[int]
    auto_gamma: AutoGamma
    """Lives as long as the pair: what it learns in one reply holds for the next."""
    loaded: Loaded

    def readers_for(self, speculation: SpeculationParams) -> tuple[ReadingDrafter, ...]:
        """Return the drafters that read the prompt for a reply with these parameters."""
        if self.custom is not None or speculation.gamma == 0:
            return ()
        kind = speculation.drafter
        readers: list[ReadingDrafter] = []
        if self.mtp is not None and kind in (DrafterKind.MTP, DrafterKind.HYBRID):
            readers.append(self.mtp)
        if self.draft is not None and kind in (DrafterKind.MODEL, DrafterKind.HYBRID):
            readers.append(self.draft)
        return tuple(readers)

    def gamma_controller(self, speculation: SpeculationParams) -> GammaController:
        """Return what chooses the draft lengths of a reply."""
        if speculation.gamma == "auto":
            return self.auto_gamma
        return FixedGamma(speculation.gamma)

    def choose_drafter(self, speculation: SpeculationParams) -> tuple[Drafter | None, str]:
        """Return the drafter to use and, where the one asked for is not to be had, why."""
        kind = speculation.drafter
        if kind == DrafterKind.OFF or speculation.gamma == 0:
            return None, ""
        if self.custom is not None and self.target.runner.croppable:
            return self.custom, ""
        option = next(option for option in self.loaded.drafters if option.kind == kind)
        if not option.available:
            return None, f"Speculation is off because {option.reason}."
        if kind == DrafterKind.EARLY_EXIT:
            return self.early_exit, ""
        if kind == DrafterKind.NGRAM:
            return self.ngram, ""
        if kind == DrafterKind.HYBRID:
            return HybridDrafter([self.ngram, *self.readers_for(speculation)]), ""
        if kind in (DrafterKind.MODEL, DrafterKind.MTP):
            return self.readers_for(speculation)[0], ""
        raise BugError(f"No drafter was built for {kind!r}.")

    def clear_caches(self) -> None:
        """Give the caches of both models and of the head back."""
        self.target.clear()
        self.ngram.reset()
        if self.mtp is not None:
            self.mtp.clear()
        if self.draft is not None:
            self.draft.clear()


def assemble(
    *,
    target: Any,
    tokenizer: Any,
    draft: Any,
    names: tuple[str, str | None],
    custom: Drafter | None = None,
    precision: str | None = None,
    context_limit: int | None = None,
    notices: tuple[str, ...] = (),
    no_draft: str = "",
    heads: Head | HeadSearch | None = None,
) -> Parts:
    """Build the working parts from transformers causal models that share ``tokenizer``.

    ``names`` are those of target and draft. ``precision`` and ``context_limit`` None take the
    target's own. ``no_draft`` says, as a clause, why a draft that was asked for is not there.
    ``heads`` is a head for target or draft, or where to look for one. Raises UserError for a head
    that is for neither.
    """
    generation = getattr(target, "generation_config", None)
    ends = stop_ids(tokenizer, generation, target.config)
    vocab_size = _vocab_size(target, tokenizer, ends)
    runner = make_runner(target, vocab_size=vocab_size, context_limit=context_limit)
    drafting: ModelDrafter | None = None
    no_draft = no_draft or "no draft model is loaded with this target"
    if draft is not None:
        try:
            draft_runner = make_runner(draft, vocab_size=vocab_size)
        except UserError as error:
            no_draft = clause(error.message)
            notices += (f"The draft model was left out: {no_draft}.",)
        else:
            if draft_runner.croppable:
                drafting = ModelDrafter(draft_runner)
            else:
                no_draft = f"{names[1]} keeps a recurrent state, which cannot be rolled back"
    no_rollback = (
        ""
        if runner.croppable
        else f"{names[0]} keeps a recurrent state, which cannot be rolled back after a rejection"
    )
    if slow := runner_notice(runner, names[0]):
        notices += (slow,)
    cache = TokenCache(runner)
    early_exit: EarlyExitDrafter | None = None
    if runner.exits_early and runner.layers > 1:
        depth = exit_depth(runner.layers, getattr(generation, "assistant_early_exit", None))
        early_exit = EarlyExitDrafter(cache, depth)
    head = head_for_pair(None if no_rollback else heads, cache, drafting, names, target)
    notices += head.notices
    head_reason = no_rollback or head.reason
    model_reason = no_rollback or ("" if drafting is not None else no_draft)
    options = (
        DrafterOption(kind=DrafterKind.OFF, available=True),
        DrafterOption(kind=DrafterKind.MODEL, available=not model_reason, reason=model_reason),
        DrafterOption(kind=DrafterKind.NGRAM, available=not no_rollback, reason=no_rollback),
        DrafterOption(kind=DrafterKind.HYBRID, available=not no_rollback, reason=no_rollback),
        DrafterOption(kind=DrafterKind.MTP, available=not head_reason, reason=head_reason),
        DrafterOption(
            kind=DrafterKind.EARLY_EXIT,
            available=early_exit is not None,
            reason="" if early_exit is not None else _NO_EXIT,
        ),
    )
    loaded = Loaded(
        target=names[0],
        draft=names[1] if drafting is not None else None,
        device=runner.device.type,
        precision=precision or str(target.dtype).removeprefix("torch."),
        context_limit=runner.context_limit,
        drafters=options,
        head=head.name,
        notices=notices,
        memory_bytes=sum(
            model.get_memory_footprint()
            for model in (target, draft if drafting is not None else None)
            if model is not None
        ),
    )
    return Parts(
        target=cache,
        tokenizer=tokenizer,
        draft=drafting,
        ngram=NgramDrafter(boundary_ids=boundary_ids(tokenizer) | ends),
        early_exit=early_exit,
        mtp=head.drafter,
        custom=custom,
        stop_ids=ends,
        auto_gamma=AutoGamma(),
        loaded=loaded,
    )


def _vocab_size(target: Any, tokenizer: Any, ends: frozenset[int]) -> int:
    """Return how wide the logits are used: up to the last id that means something.

    What pads them beyond is masked in target and draft alike; a draft that lacks real tokens must
    not take them from the target.
    """
    width: int = target.config.get_text_config().vocab_size
    known = max(real_size(tokenizer.get_vocab()), max(ends, default=-1) + 1)
    return min(width, known) if known > 0 else width
