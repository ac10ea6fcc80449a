"""``paceline models list``: the models, the pairs and the heads."""

import argparse
import json
from dataclasses import asdict
from typing import Any

from rich.table import Table

from core.cli.context import Context
from core.cli.exits import EXIT_DONE
from core.cli.style import make_console, sentence
from core.hub.files import format_bytes
from core.hub.heads import local_heads
from core.hub.library import Library, ModelState

PIPE_WIDTH = 1000
"""On a pipe a row is a line, however long."""

_NOTHING = "-"


def show_list(args: argparse.Namespace, context: Context, library: Library) -> int:
    """Show what is in the catalog and on this computer; return the exit code."""
    if args.json:
        context.stdout.write(json.dumps(_listing(library), indent=2) + "\n")
        return EXIT_DONE
    console = make_console(context.stdout)
    if not console.is_terminal:
        console.width = PIPE_WIDTH
    tables = [_models(library), _pairs(library), _own(library), _heads()]
    for position, table in enumerate(table for table in tables if table.row_count):
        if position:
            console.print()
        console.print(table, soft_wrap=False)
    return EXIT_DONE


def _models(library: Library) -> Table:
    table = _table("model", "title", "size", "status", "licence")
    for model in library.catalog.models.values():
        status = library.status(model.id)
        state = str(status.state)
        if status.state is ModelState.PARTIAL:
            state += f" {100 * status.done_bytes // status.total_bytes}%"
        table.add_row(model.id, model.title, format_bytes(model.size_bytes), state, model.licence)
    return table


def _pairs(library: Library) -> Table:
    table = _table("pair", "title", "target", "draft")
    for pair in library.catalog.pairs.values():
        table.add_row(pair.id, pair.title, pair.target, pair.draft or "none")
    return table


def _own(library: Library) -> Table:
    table = _table("your own", "kind", "size", "path")
    for local in library.local_models():
        size = format_bytes(local.size_bytes)
        table.add_row(sentence(local.name), local.kind, size, sentence(str(local.path)))
    return table


def _heads() -> Table:
    table = _table("head", "for", "kind", "tokens a round", "size", "whose")
    for head in local_heads():
        table.add_row(
            sentence(head.name),
            sentence(head.host) or _NOTHING,
            "damaged" if head.damage else head.kind,
            _NOTHING if head.acceptance_length is None else f"{head.acceptance_length:.2f}",
            format_bytes(head.size_bytes),
            "shipped" if head.shipped else "your own",
        )
    return table


def _table(*headers: str) -> Table:
    return Table(*headers, box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")


def _listing(library: Library) -> dict[str, Any]:
    models = []
    for model in library.catalog.models.values():
        status = library.status(model.id)
        models.append(
            {
                "id": model.id,
                "title": model.title,
                "publisher": model.publisher,
                "licence": model.licence,
                "suits": model.suits,
                "size_bytes": model.size_bytes,
                "sha256": model.sha256,
                "status": str(status.state),
                "done_bytes": status.done_bytes,
                "path": None if status.path is None else str(status.path),
            }
        )
    own = [{**asdict(local), "path": str(local.path)} for local in library.local_models()]
    pairs = [asdict(pair) for pair in library.catalog.pairs.values()]
    heads = [{**asdict(head), "path": str(head.path)} for head in local_heads()]
    return {"models": models, "pairs": pairs, "local_models": own, "heads": heads}
