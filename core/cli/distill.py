"""``paceline distill``: a draft model that speaks more like its target."""

import argparse
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from core.cli.context import Context
from core.cli.options import load_request_of
from core.cli.train_mtp import Show, run_child
from core.errors import UserError
from core.hub.library import data_root

if TYPE_CHECKING:
    from core.training.distill_run import DistillRequest


def run(args: argparse.Namespace, context: Context) -> int:
    """Distil the draft of the arguments; return the exit code. Raises UserError."""

    def work(show: Show, stopped: Callable[[], bool]) -> Path | None:
        from core.training.distill_run import run_distillation  # seconds of imports

        return run_distillation(request_of(args), show, stopped)

    return run_child(args, context, work, "The distilled draft is ready")


def request_of(args: argparse.Namespace) -> "DistillRequest":
    """Return the distillation that the arguments ask for. Raises UserError."""
    from core.training.distill import DistillSettings
    from core.training.distill_run import DistillRequest, text_request

    load = load_request_of(args)
    if load.draft is None:
        raise UserError("There is no draft model to distil.", "Name it with --draft.")
    return DistillRequest(
        text=text_request(
            replace(load, draft=None),
            data_root(),
            data=tuple(args.data),
            own_only=args.own_only,
            tokens=args.tokens,
            temperatures=args.temperatures,
            fast=args.fast_text,
            max_new_tokens=args.reply_tokens,
            lanes=args.lanes,
            seed=args.seed,
        ),
        draft=load.draft,
        settings=DistillSettings(
            epochs=args.epochs,
            learning_rate=args.learning_rate,
            batch_tokens=args.batch_tokens,
            seed=args.seed,
        ),
        out=None if args.out is None else args.out.expanduser().absolute(),
        anew=args.anew,
    )
