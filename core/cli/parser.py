"""The grammar of the command line."""

import argparse
from enum import StrEnum
from typing import Final, Literal

from core.cli.bench_arguments import DESCRIPTION as _BENCH
from core.cli.bench_arguments import add_bench_arguments
from core.cli.train_arguments import DESCRIPTION as _TRAIN
from core.cli.train_arguments import DISTILL as _DISTILL
from core.cli.train_arguments import add_distill_arguments, add_train_arguments
from core.requests import (
    AUTO_GAMMA,
    DEFAULT_MAX_NEW_TOKENS,
    MAX_GAMMA,
    Device,
    DrafterKind,
    Precision,
    Rule,
    SpeculationParams,
)
from paceline import __version__

DEFAULT_PAIR = "smollm2-135m"
DEFAULT_GAMMA: Final = AUTO_GAMMA
DEFAULT_TEMPERATURE = 0.7
DEFAULT_TOP_P = 0.95

_EXIT_CODES = """\
exit codes:
  0 done · 1 something you can mend (one line on stderr says what) · 2 the command line
  could not be understood · 70 a fault of the program · 130 stopped with Ctrl+C"""

_MAIN = f"""\
Without a command the window opens.

examples:
  paceline ask "Explain hash tables to a ten-year-old."
  paceline chat --pair qwen2.5-coder
  paceline bench --pair qwen2.5-coder
  paceline models list
  paceline doctor

files and environment:
  Models, heads and prepared copies are in the data folder that `paceline doctor` names, and logs
  where the system keeps them (on Linux ~/.local/state/paceline/log). PACELINE_HOME puts all of it
  into one folder, NO_COLOR switches colours off, PACELINE_DEBUG=1 shows more.

{_EXIT_CODES}"""

_ASK = f"""\
The reply streams to standard output: coloured by origin on a terminal, plain text otherwise.
Loading progress and one summary line go to standard error. With --json standard output carries
one JSON object a line, each with an "event" key: load_progress, loaded, prefill_progress,
notice, round, and at the end exactly one finished or failed; standard error stays quiet.

examples:
  paceline ask "Write a haiku about rain."
  paceline ask --pair qwen2.5-coder --temperature 0 "Write a palindrome check in Python."
  paceline ask --drafter off --seed 1 --max-new-tokens 64 "Tell me a story."
  paceline ask --target ./big.gguf --draft ./small.gguf --drafter model --gamma 4 "Hello"
  paceline ask --rule typical --typical-epsilon 0.2 "Tell me a story."
  git diff | paceline ask --system "Summarise this change." -
  paceline ask --json "Hello" | jq -c 'select(.event == "round") | .accepted'

{_EXIT_CODES}"""

_CHAT = f"""\
/help inside the chat lists its commands. Ctrl+C stops a reply, Ctrl+D leaves.
When standard input is not a terminal, it is read as one prompt and answered once.

examples:
  paceline chat
  paceline chat --pair qwen2.5-coder --system "Answer in one sentence."
  echo "What is a prime number?" | paceline chat

{_EXIT_CODES}"""

_MODELS = """\
Without an ACTION everything is listed.

examples:
  paceline models
  paceline models get qwen2.5-coder
  paceline models check smollm2-135m
  paceline models remove qwen2.5-coder-1.5b --yes"""

_GET = """\
A transfer that breaks off or is stopped goes on where it was the next time.
With --json standard output carries one JSON object a line: download_progress, and at the end
exactly one download_finished, download_cancelled or failed.

examples:
  paceline models get smollm2-135m
  paceline models get qwen2.5-coder          (a pair: all its models)"""

_DOCTOR = """\
Each line is ok, warn or fail, and says what to do. The exit code is 1 when a line fails.

examples:
  paceline doctor
  paceline doctor --json"""


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of every command; ``args.command`` names the one chosen."""
    parser = argparse.ArgumentParser(
        prog="paceline",
        description="Chat with local language models, with visible speculative decoding.",
        epilog=_MAIN,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"paceline {__version__}")
    parser.set_defaults(debug=False)
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)

    ask = _command(commands, "ask", "answer one prompt", _ASK)
    ask.add_argument(
        "text",
        metavar="TEXT",
        nargs="*",
        help="the prompt; - (or nothing, with something piped in) reads standard input",
    )
    ask.set_defaults(complain=ask.error)
    _add_generation(ask)
    ask.add_argument("--json", action="store_true", help="write the events as JSON lines")

    _add_generation(_command(commands, "chat", "chat in the terminal", _CHAT))

    bench = _command(
        commands, "bench", "measure how fast replies are made", f"{_BENCH}\n\n{_EXIT_CODES}"
    )
    _add_models(bench)
    add_bench_arguments(bench)

    train = _command(
        commands,
        "train-mtp",
        "train an MTP head, which drafts for a model",
        f"{_TRAIN}\n\n{_EXIT_CODES}",
    )
    _add_models(train, replies=False)
    add_train_arguments(train)

    distil = _command(
        commands,
        "distill",
        "fine-tune a draft model on its target's text",
        f"{_DISTILL}\n\n{_EXIT_CODES}",
    )
    _add_models(distil, replies=False)
    add_distill_arguments(distil)

    models = _command(
        commands, "models", "list models and heads; fetch, check, remove models", _MODELS
    )
    actions = models.add_subparsers(dest="action", metavar="ACTION")
    models.set_defaults(action="list", json=False)
    _command(actions, "list", "show the models, the pairs and the heads", "").add_argument(
        "--json", action="store_true", help="write one JSON object"
    )
    get = _command(actions, "get", "fetch a model or the models of a pair", _GET)
    check = _command(actions, "check", "read every byte again and compare the hash", "")
    remove = _command(actions, "remove", "delete a model's files", "")
    remove.add_argument("--yes", action="store_true", help="do not ask")
    for action in (get, check, remove):
        action.add_argument("id", metavar="ID", help="a model or pair of `paceline models list`")
        action.add_argument("--json", action="store_true", help="write JSON lines")

    doctor = _command(commands, "doctor", "say what works here and what does not", _DOCTOR)
    doctor.add_argument("--json", action="store_true", help="write one JSON object")
    return parser


def gamma_of(text: str) -> int | Literal["auto"]:
    """Return the draft length that was written; its range is checked where it is used."""
    try:
        return AUTO_GAMMA if text == AUTO_GAMMA else int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"{text!r} is neither {AUTO_GAMMA} nor a whole number from 0 to {MAX_GAMMA}"
        ) from None


def _command(
    commands: "argparse._SubParsersAction[argparse.ArgumentParser]",
    name: str,
    summary: str,
    epilog: str,
) -> argparse.ArgumentParser:
    command = commands.add_parser(
        name,
        help=summary,
        description=f"{summary[0].upper()}{summary[1:]}.",
        epilog=epilog,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    command.add_argument(
        "--debug",
        action="store_true",
        default=argparse.SUPPRESS,
        help="log to standard error and show tracebacks (also PACELINE_DEBUG=1)",
    )
    return command


def _add_models(command: argparse.ArgumentParser, *, replies: bool = True) -> None:
    """Add which models to load and how; ``replies`` False leaves out what shapes replies alone."""
    models = command.add_argument_group("models")
    which = models.add_mutually_exclusive_group()
    which.add_argument(
        "--pair", metavar="P", help=f"a pair of the catalog (default: {DEFAULT_PAIR})"
    )
    which.add_argument(
        "--target", metavar="T", help="the model that answers: an id, a .gguf file or a folder"
    )
    models.add_argument(
        "--draft", metavar="D", help="the model that drafts, in place of the pair's own"
    )
    _choice(models, "--device", Device, Device.AUTO, "where the models run")
    _choice(models, "--precision", Precision, Precision.AUTO, "the number format of the weights")
    if not replies:
        command.set_defaults(head=None, context_limit=None)
        return
    models.add_argument(
        "--head",
        metavar="H",
        help="an MTP head, for --drafter mtp and hybrid: its name or its folder",
    )
    models.add_argument("--context-limit", metavar="N", type=int, help="cap the context, in tokens")


def _add_generation(command: argparse.ArgumentParser) -> None:
    _add_models(command)
    speculation = command.add_argument_group("speculation")
    speculation.add_argument(
        "--drafter",
        choices=[str(kind) for kind in DrafterKind],
        help="who drafts (default: what suits the pair)",
    )
    speculation.add_argument(
        "--gamma",
        metavar="N",
        type=gamma_of,
        help=f"tokens drafted a round: auto, or 0 to {MAX_GAMMA} (default: what suits the pair)",
    )
    lossy = ", ".join(rule for rule in Rule if rule.lossy)
    _choice(
        speculation,
        "--rule",
        Rule,
        Rule.EXACT,
        "how drafted tokens are accepted; exact and block leave the target's distribution as it "
        f"is, the others are lossy: {lossy}",
    )
    usual = SpeculationParams()
    for flag, value, summary in (
        ("--ensemble-weight", usual.ensemble_weight, "lossy rule ensemble: the target's share"),
        ("--typical-epsilon", usual.typical_epsilon, "lossy rule typical: its highest limit"),
        (
            "--typical-delta",
            usual.typical_delta,
            "lossy rule typical: how far the limit sinks where the target is unsure",
        ),
    ):
        speculation.add_argument(
            flag, metavar="X", type=float, default=value, help=f"{summary} (default: %(default)s)"
        )

    sampling = command.add_argument_group("sampling")
    sampling.add_argument(
        "--temperature",
        metavar="X",
        type=float,
        default=DEFAULT_TEMPERATURE,
        help="0 always takes the likeliest token (default: %(default)s)",
    )
    sampling.add_argument(
        "--top-k", metavar="N", type=int, default=0, help="keep the N likeliest; 0 is off"
    )
    sampling.add_argument(
        "--top-p",
        metavar="X",
        type=float,
        default=DEFAULT_TOP_P,
        help="keep the likeliest that add up to X; 1 is off (default: %(default)s)",
    )
    sampling.add_argument(
        "--min-p",
        metavar="X",
        type=float,
        default=0.0,
        help="drop what is below X times the likeliest; 0 is off",
    )
    sampling.add_argument("--repetition-penalty", metavar="X", type=float, default=1.0)
    sampling.add_argument("--presence-penalty", metavar="X", type=float, default=0.0)
    sampling.add_argument("--frequency-penalty", metavar="X", type=float, default=0.0)
    sampling.add_argument(
        "--seed",
        metavar="N",
        type=int,
        help="repeat a reply made with a fixed gamma; without it every reply is fresh",
    )

    reply = command.add_argument_group("reply")
    reply.add_argument(
        "--max-new-tokens",
        metavar="N",
        type=int,
        default=DEFAULT_MAX_NEW_TOKENS,
        help="the longest reply, in tokens (default: %(default)s)",
    )
    reply.add_argument(
        "--stop",
        metavar="S",
        action="append",
        default=[],
        help="end the reply before this text; may be given several times",
    )
    reply.add_argument("--system", metavar="TEXT", default="", help="the system prompt")


def _choice(
    group: "argparse._ArgumentGroup", flag: str, kinds: type[StrEnum], default: str, summary: str
) -> None:
    group.add_argument(
        flag,
        choices=[str(kind) for kind in kinds],
        default=str(default),
        help=f"{summary} (default: {default})",
    )
