"""Every check and measurement that needs an NVIDIA GPU, in one call of a few minutes.

    python benchmarks/gpu_check.py [--wheels FOLDER] [--limit-s 420] [--out FILE]

Writes all numbers as JSON to --out, which is build/gpu-check.json where it is not given.
Needs torch and transformers (5.17 or newer) and nothing of the window. Models have random weights;
pairs are synthetic. Ends with 0 where every check passed, 1 where one did not, 2 without a GPU.
"""

import argparse
import platform
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
_NAME = "gpu-check.json"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the parts in order until the time is up; return the exit code."""
    options = _parser().parse_args(arguments)
    started = time.monotonic()
    for folder in (ROOT, *(options.wheels or ())):
        # Before any import of torch's companions, so that theirs are found first.
        sys.path.insert(0, str(Path(folder).resolve()))
    import torch

    from benchmarks.gpu import correctness, costs, end_to_end, memory, window
    from benchmarks.gpu.report import Budget, Part, lines, write
    from benchmarks.gpu.setting import full, tiny

    if options.device == "cuda" and not torch.cuda.is_available():
        print(
            "There is no NVIDIA GPU here that torch can use. --device cpu --tiny tries the script."
        )
        return 2
    budget = Budget(options.limit_s - (time.monotonic() - started))
    setting = (tiny if options.tiny else full)(torch.device(options.device), budget)
    about = _about(setting.device, options)
    questions: list[tuple[str, float, Callable[[Any, Part], None]]] = [
        ("1 correctness", 0, correctness.run),
        ("2 verification", 40, costs.run_verify),
        ("3 draft step", 10, costs.run_draft),
        ("4 end to end", setting.reserve_s + 45, end_to_end.run),
        ("5 memory", 15, memory.run),
        ("6 window", 15, window.run),
    ]
    parts: list[Part] = []
    for name, needed_s, question in questions:
        part = Part(name)
        parts.append(part)
        if not budget.has(needed_s if setting.on_cuda else 0):
            part.leave_out("all of it: no time was left")
        else:
            _answer(part, question, setting)
        print("\n".join(lines(part)), flush=True)
        write(options.out, about, parts)
    print(f"written to {options.out} after {time.monotonic() - started:.0f} s")
    return 0 if all(part.ok for part in parts) else 1


def _answer(part: Any, question: Callable[[Any, Any], None], setting: Any) -> None:
    from benchmarks.gpu.models import free

    started = time.monotonic()
    part.state = "failed"
    with part.attempt("all"):
        question(setting, part)
        part.state = "done"
    part.seconds = round(time.monotonic() - started, 2)
    free()


def _about(device: Any, options: argparse.Namespace) -> dict[str, Any]:
    import torch
    import transformers

    about: dict[str, Any] = {
        "date": time.strftime("%Y-%m-%d"),
        "commit": _commit(),
        "device": torch.cuda.get_device_name(device) if device.type == "cuda" else "cpu",
        "python": platform.python_version(),
        "torch": torch.__version__,
        "cuda": torch.version.cuda,
        "transformers": transformers.__version__,
        "bitsandbytes": _bitsandbytes(),
        "tiny": options.tiny,
        "weights": "random; pairs are synthetic: the draft is the first layers of its target",
    }
    print(", ".join(f"{name} {value}" for name, value in about.items()), flush=True)
    return about


def _bitsandbytes() -> str:
    try:
        import bitsandbytes
    except (ImportError, RuntimeError, OSError) as error:
        return f"none ({error})"
    return str(bitsandbytes.__version__)


def _commit() -> str:
    git = ["git", "-C", str(ROOT), "rev-parse", "--short", "HEAD"]
    try:
        done = subprocess.run(git, capture_output=True, text=True, check=False)
    except OSError:
        return "unknown"
    return done.stdout.strip() or "unknown"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="gpu_check.py", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument(
        "--wheels",
        action="append",
        metavar="FOLDER",
        help="a folder of unpacked wheels, such as bitsandbytes or a newer transformers; "
        "may be given several times",
    )
    parser.add_argument("--limit-s", type=float, default=420.0, help="stop early after so long")
    parser.add_argument(
        "--out",
        type=Path,
        default=ROOT / "build" / _NAME,
        help="the JSON file to write (default: build/gpu-check.json)",
    )
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--tiny", action="store_true", help="tiny shapes, to try the script itself")
    return parser


if __name__ == "__main__":
    sys.exit(main())
