"""``paceline doctor``: report what works on this computer and what does not."""

import argparse
import json
from collections.abc import Iterator
from dataclasses import asdict

from rich.text import Text

from core.cli.checks import CHECKS, Check, Verdict
from core.cli.context import Context, quiet_libraries
from core.cli.exits import EXIT_DONE, EXIT_USER
from core.cli.style import make_console, sentence

_NAME_WIDTH = 14

_STYLES = {Verdict.OK: "green", Verdict.WARN: "yellow", Verdict.FAIL: "red bold"}


def run(args: argparse.Namespace, context: Context) -> int:
    """Report; return 1 when a check fails. One check that breaks does not end the others."""
    if not context.debug:
        quiet_libraries()
    checks = []
    console = make_console(context.stdout)
    for check in run_checks():
        checks.append(check)
        if not args.json:
            line = Text(f"{check.verdict:<5}", style=_STYLES[check.verdict])
            line.append(f"{check.name:<{_NAME_WIDTH}}", style="bold").append(sentence(check.detail))
            console.print(line)
            if check.action:
                console.print(Text(f"     {'':<{_NAME_WIDTH}}{sentence(check.action)}"))
    failed = any(check.verdict is Verdict.FAIL for check in checks)
    if args.json:
        report = {"ok": not failed, "checks": [asdict(check) for check in checks]}
        context.stdout.write(json.dumps(report, indent=2) + "\n")
    return EXIT_USER if failed else EXIT_DONE


def run_checks() -> Iterator[Check]:
    """Yield the outcome of every check; one that breaks fails and does not end the others."""
    for name, check in CHECKS.items():
        try:
            yield check(name)
        except Exception as error:  # noqa: BLE001 - whatever is broken here is the finding
            yield Check(
                name=name,
                verdict=Verdict.FAIL,
                detail=f"could not be examined ({type(error).__name__}: {error})",
                action="If chatting works all the same, please report this line.",
            )
