"""What a pass of the int8 CPU runner costs: ``python -m benchmarks.runner_cost``.

Times whole passes by rows and by context, the linears of such a pass alone, and its attention
alone. Everything alternates in shuffled order, and the medians are shown, in milliseconds. What
a pass takes beyond its linears is the overhead. Needs models in Paceline's model folder, or paths.
"""

import argparse
import json
import random
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import torch

from core.cancel import CancelToken
from core.errors import UserError
from core.hub.library import Library, data_root
from core.hub.resolve import resolve_pair
from core.models.lean.attention import KeyValueCache
from core.models.lean.linear import Int8Linear
from core.models.lean.model import LeanModel
from core.models.lean.runner import LeanRunner
from core.models.loader import load_pair
from core.requests import Device, LoadRequest, Precision

ROWS = (1, 2, 3, 4, 5, 6, 7, 8, 9, 17)
SHORT = 66
"""The context of the passes by rows; all of them end before the next tile of keys begins."""
CONTEXTS = (512, 2000)
FEW = (1, 6)


@dataclass(frozen=True, slots=True, kw_only=True)
class PassCost:
    """Medians of one kind of pass. ``ratio`` is over one row at this context.

    ``overhead`` is the share of the pass outside its linears.
    """

    context: int
    rows: int
    pass_ms: float
    ratio: float
    linears_ms: float
    attention_ms: float
    overhead: float


def measure(model: LeanModel, *, repeats: int, seed: int = 0) -> list[PassCost]:
    """Return the costs of all kinds of passes, each timed ``repeats`` times."""
    chance = random.Random(seed)
    kinds = [(SHORT, rows) for rows in ROWS] + [(long, rows) for long in CONTEXTS for rows in FEW]
    runners = {context: LeanRunner(model) for context in dict(kinds)}
    vocab = model.weights.shape.vocab
    ids = [chance.randrange(vocab) for _ in range(max(runners) + max(ROWS))]
    for context, runner in runners.items():
        runner.forward(ids[:context], 1)

    def whole(context: int, rows: int) -> float:
        taken_ms = _timed(lambda: runners[context].forward(ids[context : context + rows], rows))
        runners[context].crop(context)
        return taken_ms

    jobs: dict[str, Callable[[int, int], float]] = {
        "pass": whole,
        "linears": lambda _, rows: _linears_ms(model, rows),
        "attention": lambda context, rows: _attention_ms(model, context, rows),
    }
    keys = [(name, *kind) for name in jobs for kind in kinds]
    times: dict[tuple[str, int, int], list[float]] = {key: [] for key in keys}
    for turn in range(repeats + 1):
        for name, context, rows in chance.sample(keys, len(keys)):
            taken_ms = jobs[name](context, rows)
            if turn:  # the first turn warms up
                times[name, context, rows].append(taken_ms)
    medians = {key: statistics.median(values) for key, values in times.items()}
    return [
        PassCost(
            context=context,
            rows=rows,
            pass_ms=medians["pass", context, rows],
            ratio=medians["pass", context, rows] / medians["pass", context, 1],
            linears_ms=medians["linears", context, rows],
            attention_ms=medians["attention", context, rows],
            overhead=1 - medians["linears", context, rows] / medians["pass", context, rows],
        )
        for context, rows in kinds
    ]


def _timed(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return 1000 * (time.perf_counter() - start)


@torch.inference_mode()
def _linears_ms(model: LeanModel, rows: int) -> float:
    weights = model.weights
    shape = weights.shape
    hidden = torch.randn(rows, shape.hidden)
    mixed = torch.randn(rows, shape.heads * shape.head_dim)
    inner = torch.randn(rows, weights.layers[0].gate_up(hidden).shape[1] // 2)
    work: list[tuple[Int8Linear, torch.Tensor]] = []
    for layer in weights.layers:
        work += [(layer.query_key_value, hidden), (layer.output, mixed)]
        work += [(layer.gate_up, hidden), (layer.down, inner)]
    work.append((weights.head, hidden))
    return _timed(lambda: [linear(tensor) for linear, tensor in work])


@torch.inference_mode()
def _attention_ms(model: LeanModel, context: int, rows: int) -> float:
    shape = model.weights.shape
    heads = torch.randn(rows, shape.heads + 2 * shape.kv_heads, shape.head_dim)
    cache = KeyValueCache(shape, context + rows)
    cache.length = context
    cache.plan(rows)

    def attend() -> None:
        plan = cache.plan(rows)
        for layer in range(shape.layers):
            cache.attend(layer, heads, plan)

    return _timed(attend)


def main(argv: Sequence[str] | None = None) -> int:
    """Measure the models of the command line; return the exit code."""
    args = parse_arguments(argv)
    if args.threads:
        torch.set_num_threads(args.threads)
    results: dict[str, list[PassCost]] = {}
    try:
        for name in args.models:
            loaded = load_pair(
                LoadRequest(target=str(_path(name)), device=Device.CPU, precision=Precision.INT8),
                prepared_dir=args.prepared or data_root() / "prepared",
                on_progress=lambda _: None,
                cancel=CancelToken(),
            )
            results[name] = measure(loaded.target.model, repeats=args.repeats)
    except UserError as error:
        print(f"runner_cost: {error}", file=sys.stderr)
        return 1
    if args.json:
        print(
            json.dumps({name: [asdict(cost) for cost in costs] for name, costs in results.items()})
        )
        return 0
    for name, costs in results.items():
        print(f"{name}, {torch.get_num_threads()} threads, {args.repeats} repeats")
        print("context rows  pass ms  ratio  linears ms  attention ms  overhead")
        for cost in costs:
            print(
                f"{cost.context:7d} {cost.rows:4d} {cost.pass_ms:8.1f} {cost.ratio:6.2f}"
                f" {cost.linears_ms:11.1f} {cost.attention_ms:13.2f} {cost.overhead:9.0%}"
            )
    return 0


def _path(name: str) -> Path:
    path = Path(name).expanduser()
    if path.exists():
        return path
    return resolve_pair(Library(data_root() / "models"), target=name)[0]


def parse_arguments(argv: Sequence[str] | None = None) -> argparse.Namespace:
    """Return the options; ``argv`` None takes the process's own."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.runner_cost",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add(
        "models",
        nargs="*",
        default=["smollm2-135m"],
        help="names of the catalog or paths (default: smollm2-135m)",
    )
    add("--repeats", type=int, default=15, help="default: %(default)s")
    add("--threads", type=int, help="default: torch's own")
    add("--prepared", type=Path, help="where prepared copies are kept (default: Paceline's own)")
    add("--json", action="store_true", help="JSON in place of tables")
    return parser.parse_args(argv)


if __name__ == "__main__":
    sys.exit(main())
