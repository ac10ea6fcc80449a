"""The command line of ``paceline bench``."""

import argparse

from core.bench.cases import ALL_SUITES, Suite

STANDARD_OUTPUT = "-"

DESCRIPTION = """\
Answers the prompts of the suites (chat, code, edit, summarise) with every configuration, from
empty caches and in shuffled order, and prints medians with quartiles. A configuration is written
DRAFTER:GAMMA:RULE@TEMPERATURE: off, ngram:auto, model:4, hybrid:8:block@0.7. What is left out is
auto, exact and 0. Plain decoding (off) is always measured beside the others. Progress goes to
standard error; Ctrl+C stops and reports what was measured so far.

examples:
  paceline bench --pair qwen2.5-coder
  paceline bench --pair qwen2.5-coder --suite code,edit --config ngram:auto,model:4 --repeats 5
  paceline bench --suite chat --config hybrid:4@0.7,hybrid:4:block@0.7 --max-new-tokens 128
  paceline bench --also-head mine=./mine --config mtp:3,mtp/mine:3
  paceline bench --markdown report.md --csv report.csv --plot speed.png
  paceline bench --json | jq '.summaries[] | {suite, configuration, speed_up}'"""


def add_bench_arguments(command: argparse.ArgumentParser) -> None:
    """Add what only this command takes; the models are added by the caller."""
    what = command.add_argument_group("what is run")
    what.add_argument(
        "--suite",
        metavar="S",
        default=ALL_SUITES,
        help=f"suites with commas between: {', '.join(Suite)}, or {ALL_SUITES} (default)",
    )
    what.add_argument(
        "--prompts", metavar="N", type=int, help="only the first N prompts of each suite"
    )
    what.add_argument(
        "--config",
        metavar="C",
        help="configurations with commas between (default: off, and every drafter at gamma auto)",
    )
    what.add_argument(
        "--also-head",
        metavar="NAME=H",
        action="append",
        default=[],
        help="another MTP head, by its name or folder, for configurations such as mtp/NAME:3; "
        "loads the models once more",
    )
    what.add_argument(
        "--repeats",
        metavar="N",
        type=int,
        default=3,
        help="how often each prompt is answered (default: %(default)s)",
    )
    what.add_argument(
        "--max-new-tokens",
        metavar="N",
        type=int,
        help="the longest reply, in tokens (default: what the suite says)",
    )
    what.add_argument(
        "--seed",
        metavar="N",
        type=int,
        default=0,
        help="the order and, above temperature 0, the replies (default: %(default)s)",
    )
    output = command.add_argument_group(
        "reports",
        f"FILE is replaced; {STANDARD_OUTPUT} writes to standard output instead of the table",
    )
    output.add_argument(
        "--json",
        metavar="FILE",
        nargs="?",
        const=STANDARD_OUTPUT,
        help="everything as one JSON object (default FILE: -)",
    )
    output.add_argument("--markdown", metavar="FILE", help="the report as Markdown")
    output.add_argument("--csv", metavar="FILE", help="the medians and quartiles as CSV")
    output.add_argument("--plot", metavar="FILE", help="tokens/s as bars, a PNG picture")
