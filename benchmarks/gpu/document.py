"""Turn the JSON of a GPU check into ``docs/gpu-results.md``.

python -m benchmarks.gpu.document build/gpu-check.json docs/gpu-results.md
"""

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

_INTRODUCTION = """# Results on a GPU

Written from one run of `benchmarks/gpu_check.py`. No weights are real: targets are made from
configurations with random weights, and a pair is synthetic: its draft is the first layers of its
target, whose later layers were scaled down until drafts agree as often as the table says. So these
numbers compare ways of running, not models.
"""


def main(arguments: Sequence[str]) -> int:
    """Write the page; refuse what was no run on a card."""
    if len(arguments) != 2:
        print("usage: python -m benchmarks.gpu.document FOUND.json PAGE.md")
        return 2
    found = json.loads(Path(arguments[0]).read_text(encoding="utf-8"))
    if found["about"]["tiny"] or found["about"]["device"] == "cpu":
        print("These are no results of a GPU at full size, so there is nothing to document.")
        return 1
    Path(arguments[1]).write_text(page(found), encoding="utf-8")
    return 0


def page(found: dict[str, Any]) -> str:
    """Return the page as Markdown."""
    about = found["about"]
    shown = ("date", "device", "commit", "torch", "cuda", "transformers", "bitsandbytes", "python")
    lines = [_INTRODUCTION, "| | |", "| --- | --- |"]
    lines += [f"| {name} | {about[name]} |" for name in shown]
    for part in found["parts"]:
        lines += ["", f"## {part['name']}", ""]
        passed = sum(check["ok"] for check in part["checks"])
        told = f"{part['state'].capitalize()}, {part['seconds']:.0f} s"
        lines.append(f"{told}; {passed} of {len(part['checks'])} checks passed.")
        lines += [
            f"- **Wrong:** {check['name']}: {check['detail']}"
            for check in part["checks"]
            if not check["ok"]
        ]
        lines += [f"- Not checked: {reason}" for reason in part["not_checked"]]
        for title, rows in part["tables"].items():
            names = list(dict.fromkeys(name for row in rows for name in row))
            lines += ["", f"**{title}**", "", _row(names), _row(["---"] * len(names))]
            lines += [_row([_cell(row.get(name)) for name in names]) for row in rows]
    return "\n".join(lines) + "\n"


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _cell(value: object) -> str:
    return "" if value is None else f"{value:g}" if isinstance(value, float) else str(value)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
