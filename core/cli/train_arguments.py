"""The command line of ``paceline train-mtp``."""

import argparse
from pathlib import Path

DESCRIPTION = """\
Trains a head that drafts several tokens for a model (MTP). The model answers prompts that ship
with Paceline, and your own; the head learns from its text and never changes what it says. What
is done already is not done again: after Ctrl+C, a kill or a power cut the same command goes on
with the text that was made and with the training that was begun.

As a child process (--json) it writes one JSON object a line, each with an "event" key:
stage_started, disk_use, progress, evaluated, earlier, kept, notice, paused, and at the end exactly
one finished, stopped or failed. It reads the words pause, resume and cancel, one a line.

examples:
  paceline train-mtp
  paceline train-mtp --pair qwen2.5-coder --host draft --minutes 600
  paceline train-mtp --target ./model.gguf --data questions.txt --tokens 300000 --out ./head"""

DISTILL = """\
Fine-tunes a draft model on the target's own text, towards the target's own distribution, so that
more of its drafts stand. The result is a folder of safetensors beside the original, which is never
changed; use it with --draft. All weights are trained, in float32: on the CPU that is for small
models. Stopping and going on, and --json, are as for train-mtp.

examples:
  paceline distill --pair qwen2.5-coder --tokens 2000000
  paceline distill --target ./big --draft ./small --data questions.txt --epochs 3"""


def add_train_arguments(command: argparse.ArgumentParser) -> None:
    """Add what only this command takes; the models are added by the caller."""
    head = command.add_argument_group("head")
    head.add_argument(
        "--host",
        choices=("target", "draft"),
        default="target",
        help="the model whose states the head reads; on a draft it learns the target's text "
        "(default: %(default)s)",
    )
    head.add_argument(
        "--kind",
        choices=("sequential", "parallel"),
        default="sequential",
        help="one module applied again and again, or one for each position (default: %(default)s)",
    )
    head.add_argument(
        "--depth", metavar="K", type=int, default=3, help="tokens it drafts (default: %(default)s)"
    )
    head.add_argument(
        "--layers",
        metavar="N,N",
        type=_whole_numbers,
        help="after which layers it reads states (default: the thirds of the model)",
    )
    head.add_argument(
        "--vocabulary",
        metavar="N",
        type=int,
        default=8192,
        help="it drafts the N most frequent tokens alone (default: %(default)s)",
    )
    head.add_argument(
        "--out", metavar="DIR", type=Path, help="where it goes (default: data folder)"
    )
    head.add_argument(
        "--packed",
        action="store_true",
        help="keep it in 4.5 bits a weight, about a quarter of the size",
    )

    _add_text(command)
    command.add_argument_group("text generated before").add_argument(
        "--text",
        metavar=("DIR", "HELD_OUT_DIR"),
        type=Path,
        nargs=2,
        help="train on text that was generated before, and measure on other such text",
    )

    training = command.add_argument_group("training")
    training.add_argument(
        "--minutes",
        metavar="N",
        type=float,
        help="how long all may take; half of it for the text, unless --tokens is given",
    )
    training.add_argument("--epochs", metavar="X", type=float, default=6.0)
    training.add_argument("--learning-rate", metavar="X", type=float, default=5e-3)
    training.add_argument(
        "--loss",
        choices=("kl", "ce"),
        help="towards the host's distribution or the text's tokens (default: kl; for a draft ce)",
    )
    training.add_argument(
        "--weights", metavar="X,X", type=_numbers, help="the weight of each step in the loss"
    )
    training.add_argument("--noise", metavar="X", type=float, default=0.0)
    training.add_argument("--batch-tokens", metavar="N", type=int, default=2048)
    training.add_argument("--seed", metavar="N", type=int, default=0)
    training.add_argument(
        "--anew", action="store_true", help="begin anew where a training of these choices stopped"
    )
    command.add_argument("--json", action="store_true", help="write JSON lines and read words")


def add_distill_arguments(command: argparse.ArgumentParser) -> None:
    """Add what ``paceline distill`` takes beside the models."""
    command.add_argument(
        "--out", metavar="DIR", type=Path, help="where the result goes (default: beside the draft)"
    )
    _add_text(command)
    training = command.add_argument_group("training")
    training.add_argument("--epochs", metavar="X", type=float, default=2.0)
    training.add_argument("--learning-rate", metavar="X", type=float, default=3e-5)
    training.add_argument("--batch-tokens", metavar="N", type=int, default=2048)
    training.add_argument("--seed", metavar="N", type=int, default=0)
    training.add_argument(
        "--anew", action="store_true", help="begin anew where a training of these choices stopped"
    )
    command.add_argument("--json", action="store_true", help="write JSON lines and read words")


def _add_text(command: argparse.ArgumentParser) -> None:
    data = command.add_argument_group("text")
    data.add_argument(
        "--data",
        metavar="FILE",
        type=Path,
        nargs="+",
        default=[],
        help="prompts of your own: .txt with one a line, or .jsonl with a text a line",
    )
    data.add_argument("--own-only", action="store_true", help="leave the shipped prompts out")
    data.add_argument(
        "--tokens", metavar="N", type=int, help="tokens of replies to generate (default: 600000)"
    )
    data.add_argument(
        "--temperatures",
        metavar="X,X",
        type=_numbers,
        default=(0.0, 0.7, 0.7, 1.0),
        help="a reply to each prompt at each of these (default: 0,0.7,0.7,1)",
    )
    data.add_argument(
        "--fast-text",
        action="store_true",
        help="int8 alone: generate with less precise activations, half as long",
    )
    data.add_argument(
        "--reply-tokens",
        metavar="N",
        type=int,
        default=384,
        help="the longest reply (default: %(default)s)",
    )
    data.add_argument(
        "--lanes",
        metavar="N",
        type=int,
        default=32,
        help="replies made side by side (default: %(default)s)",
    )


def _whole_numbers(text: str) -> tuple[int, ...]:
    try:
        return tuple(int(part) for part in text.split(","))
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no list of whole numbers") from None


def _numbers(text: str) -> tuple[float, ...]:
    try:
        return tuple(float(part) for part in text.split(","))
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no list of numbers") from None
