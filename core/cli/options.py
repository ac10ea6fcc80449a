"""From parsed arguments to the engine's requests."""

import argparse
import os
from dataclasses import dataclass

from core.cli.parser import DEFAULT_GAMMA, DEFAULT_PAIR
from core.errors import UserError
from core.hub.catalog import CatalogPair, load_catalog
from core.hub.heads import resolve_head
from core.hub.library import Library, data_root
from core.hub.resolve import resolve_pair
from core.requests import (
    DrafterKind,
    GenerateRequest,
    LoadRequest,
    SamplingParams,
    SpeculationParams,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Choices:
    """How replies are made: everything of a request but its messages."""

    sampling: SamplingParams
    speculation: SpeculationParams
    max_new_tokens: int
    stop: tuple[str, ...]
    system: str

    def request(self, messages: tuple[tuple[str, str], ...]) -> GenerateRequest:
        """Return the request for a reply to these messages, with the system prompt before them.

        Raises UserError.
        """
        for _, text in (*messages, ("system", self.system)):
            require_unicode(text)
        system = (("system", self.system),) if self.system else ()
        return GenerateRequest(
            messages=(*system, *messages),
            sampling=self.sampling,
            speculation=self.speculation,
            max_new_tokens=self.max_new_tokens,
            stop=self.stop,
        )


def open_library() -> Library:
    """Return the library in the data folder. Raises UserError when that cannot be one."""
    library = _library()
    try:
        os.listdir(library.models_dir)
    except FileNotFoundError:
        pass  # nothing was fetched yet
    except OSError as error:
        raise UserError(
            f"The folder {library.models_dir} cannot be read"
            f" ({error.strerror or type(error).__name__}).",
            "Make it a folder you can read, or set PACELINE_HOME to another one.",
        ) from error
    return library


def _library() -> Library:
    return Library(data_root() / "models")


def choices_of(args: argparse.Namespace) -> Choices:
    """Return how replies are made; drafter and gamma default to what suits the pair.

    Raises UserError naming the field, its value and its range.
    """
    pair = _pair_of(args)
    drafter = args.drafter or (pair.drafter if pair else DrafterKind.HYBRID)
    gamma = args.gamma if args.gamma is not None else pair.gamma if pair else DEFAULT_GAMMA
    for text in args.stop:
        require_unicode(text)
    return Choices(
        sampling=SamplingParams(
            temperature=args.temperature,
            top_k=args.top_k,
            top_p=args.top_p,
            min_p=args.min_p,
            repetition_penalty=args.repetition_penalty,
            presence_penalty=args.presence_penalty,
            frequency_penalty=args.frequency_penalty,
            seed=args.seed,
        ),
        speculation=SpeculationParams(
            drafter=drafter,
            gamma=gamma,
            rule=args.rule,
            ensemble_weight=args.ensemble_weight,
            typical_epsilon=args.typical_epsilon,
            typical_delta=args.typical_delta,
        ),
        max_new_tokens=args.max_new_tokens,
        stop=tuple(args.stop),
        system=args.system,
    )


def load_request_of(args: argparse.Namespace) -> LoadRequest:
    """Return which models to load and how.

    Raises UserError for a model or a head that is not here or not known.
    """
    pair = None if args.target else args.pair or DEFAULT_PAIR
    head = str(resolve_head(args.head)) if args.head else None
    library = _library()
    if pair is not None or {args.target, args.draft} & library.catalog.models.keys():
        library = open_library()
    target, draft = resolve_pair(library, pair=pair, target=args.target, draft=args.draft)
    return LoadRequest(
        target=str(target),
        draft=None if draft is None else str(draft),
        device=args.device,
        precision=args.precision,
        context_limit=args.context_limit,
        head=head,
    )


def require_unicode(text: str) -> None:
    """Raise UserError for bytes that came in but are no text."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        raise UserError("The text is not valid UTF-8.", "Save it as UTF-8 and try again.") from None


def _pair_of(args: argparse.Namespace) -> CatalogPair | None:
    """Return the pair whose habits hold: none for models that were put together by hand."""
    if args.target or args.draft:
        return None
    return load_catalog().pairs.get(args.pair or DEFAULT_PAIR)
