"""Paceline beside transformers and llama.cpp: ``python -m benchmarks.compare``.

Every contender is a process of its own with the models loaded. They answer the same prompts one
at a time, prompt by prompt, all modes of all contenders in shuffled order before the next prompt.
Writes ``docs/benchmarks.md``. Needs the pair in Paceline's model folder and an environment with
``benchmarks/peers/requirements.txt``; ``make bench-peers`` sees to the second.
"""

import argparse
import contextlib
import datetime
import random
import shlex
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks.contender import ROOT, Contender
from benchmarks.document import OURS, Entry, Setting, to_document
from core.bench.cases import Case, load_cases, parse_suites
from core.bench.configuration import parse_configurations
from core.bench.files import replace_file
from core.bench.machine import describe_machine
from core.errors import UserError
from core.hub.library import Library, data_root
from core.hub.resolve import resolve_pair

LLAMA, HUGGINGFACE = "llama.cpp", "transformers"
_MODULES = {OURS: "ours", LLAMA: "llama_cpp", HUGGINGFACE: "huggingface"}
_DRAFTLESS: Mapping[str, tuple[str, ...]] = {
    LLAMA: ("plain", "n-gram"),
    HUGGINGFACE: ("plain", "prompt lookup"),
}
_DRAFTED: Mapping[str, str] = {LLAMA: "draft", HUGGINGFACE: "assisted"}
_WARM_UP_TOKENS = 4


def main(argv: Sequence[str] | None = None) -> int:
    """Run the comparison of the command line and write the page; return the exit code."""
    args = parse_arguments(argv)
    try:
        page = compare(args)
        replace_file(args.output, page)
    except UserError as error:
        print(f"compare: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    print(page)
    return 0


def compare(args: argparse.Namespace) -> str:
    """Run everything and return the page. Raises UserError."""
    cases = load_cases(
        parse_suites(args.suite), per_suite=args.prompts, max_new_tokens=args.max_new_tokens
    )
    chosen = list(dict.fromkeys([OURS, *args.contenders.split(",")]))
    for name in chosen:
        if name not in _MODULES:
            known = ", ".join(_MODULES)
            raise UserError(f"There is no contender {name!r}.", f"Choose from: {known}.")
    if LLAMA in chosen and not args.peers_python.exists():
        raise UserError(f"There is no {args.peers_python}.", "make bench-peers sets it up.")
    target, draft = resolve_pair(Library(data_root() / "models"), pair=args.pair)
    modes = {name: _modes(name, args.config, drafted=draft is not None) for name in chosen}
    machine, about = describe_machine(), []
    with contextlib.ExitStack() as stack:
        contenders: dict[str, Contender] = {}
        for name in chosen:
            contender = Contender(
                name=name,
                module=f"benchmarks.peers.{_MODULES[name]}",
                python=args.peers_python if name == LLAMA else Path(sys.executable),
                threads=args.threads,
            )
            contenders[name] = stack.enter_context(contender)
            _say(f"loading {name}")
            about.append((name, contender.load(target=target, draft=draft, threads=args.threads)))
        entries = _run(contenders, modes, cases, args)
    names = [path.name for path in (target, draft) if path is not None]
    return to_document(
        Setting(
            pair=" with ".join(names),
            machine=machine,
            commit=_commit(),
            date=datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d"),
            command=command_of(sys.argv[1:]),
            threads=args.threads,
            seed=args.seed,
            about=tuple(about),
            notes=(_lengths(args),),
        ),
        entries,
    )


def _run(
    contenders: Mapping[str, Contender],
    modes: Mapping[str, Sequence[str]],
    cases: Sequence[Case],
    args: argparse.Namespace,
) -> list[Entry]:
    """Warm up, then return every reply of the comparison. Raises UserError."""
    prompts: dict[str, dict[str, object]] = {}
    for case in cases:
        ids, ends = contenders[OURS].render(case.text)
        prompts[case.name] = {"text": case.text, "ids": ids, "stop_ids": ends}
    for name, contender in contenders.items():
        for mode in modes[name]:
            _say(f"warming up {name} {mode}")
            contender.reply(mode, prompts[cases[0].name], _WARM_UP_TOKENS)
    order = random.Random(args.seed)
    slow = {case.name for suite in parse_suites(args.suite) for case in _first(cases, suite, args)}
    entries: list[Entry] = []
    for repeat in range(args.repeats):
        for case in order.sample(cases, len(cases)):
            takes_part = [
                (name, mode)
                for name in contenders
                for mode in modes[name]
                if name != HUGGINGFACE or (repeat == 0 and case.name in slow)
            ]
            for name, mode in order.sample(takes_part, len(takes_part)):
                length = args.slow_tokens if name == HUGGINGFACE else args.max_new_tokens
                reply = contenders[name].reply(mode, prompts[case.name], length)
                _check_prompt(name, reply.prompt_tokens, prompts[case.name])
                speed = reply.tokens_per_second or 0.0
                _say(
                    f"{repeat + 1}/{args.repeats} {case.name}: {name} {mode}, {speed:.1f} tokens/s"
                )
                entries.append(
                    Entry(
                        contender=name,
                        mode=mode,
                        suite=case.suite,
                        case=case.name,
                        repeat=repeat,
                        reply=reply,
                    )
                )
    return entries


def _check_prompt(name: str, prompt_tokens: int, prompt: Mapping[str, object]) -> None:
    """Raise UserError where a contender read another prompt than the others."""
    ids = prompt["ids"]
    if isinstance(ids, list) and prompt_tokens != len(ids):
        raise UserError(f"{name} read {prompt_tokens} prompt tokens in place of {len(ids)}.")


def _first(cases: Sequence[Case], suite: str, args: argparse.Namespace) -> Sequence[Case]:
    return [case for case in cases if case.suite == suite][: args.slow_prompts]


def _modes(name: str, configurations: str, *, drafted: bool) -> tuple[str, ...]:
    if name == OURS:
        return tuple(one.name for one in parse_configurations(configurations))
    return (*_DRAFTLESS[name], *([_DRAFTED[name]] if drafted else []))


def _lengths(args: argparse.Namespace) -> str:
    text = f"Replies: up to {args.max_new_tokens} tokens, {args.repeats} for each prompt and mode"
    if HUGGINGFACE not in args.contenders.split(","):
        return text
    return (
        f"{text}; {HUGGINGFACE}, which is slow on a CPU, makes {args.slow_tokens} tokens once for "
        f"the first prompts of a suite ({args.slow_prompts})"
    )


def command_of(argv: Sequence[str]) -> str:
    """Return how to run this again: without the paths, which are those of one machine."""
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--peers-python")
    parser.add_argument("--output")
    _, rest = parser.parse_known_args(argv)
    return "make bench-peers" + (f" ARGS={shlex.quote(shlex.join(rest))}" if rest else "")


def _commit() -> str:
    """Return the commit, and whether the tree differs from it; the page itself does not count."""

    def git(*words: str) -> str:
        ran = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=False)
        return ran.stdout.strip()

    changed = git("status", "--porcelain", "--untracked-files=no", "--", ":!docs/benchmarks.md")
    return (git("rev-parse", "--short=12", "HEAD") or "unknown") + (
        " with changes" if changed else ""
    )


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def parse_arguments(argv: Sequence[str] | None = None) -> argparse.Namespace:
    """Return the options; ``argv`` None takes the process's own."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.compare",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("--pair", default="qwen2.5-coder", help="a pair of the catalog (default: %(default)s)")
    add("--suite", default="code,edit", help="suites with commas (default: %(default)s)")
    add("--prompts", type=int, default=2, help="prompts a suite (default: %(default)s)")
    add("--repeats", type=int, default=1, help="default: %(default)s")
    add("--max-new-tokens", type=int, default=96, help="default: %(default)s")
    add("--config", default="off,ngram:auto,hybrid:auto", help="ours (default: %(default)s)")
    add(
        "--contenders",
        default=f"{LLAMA},{HUGGINGFACE}",
        help="beside Paceline, with commas (default: %(default)s)",
    )
    add("--slow-tokens", type=int, default=32, help="tokens of transformers' replies")
    add("--slow-prompts", type=int, default=1, help="prompts a suite for transformers")
    add("--threads", type=int, default=2, help="of each contender (default: %(default)s)")
    add("--seed", type=int, default=0, help="of the order (default: %(default)s)")
    add(
        "--peers-python",
        type=Path,
        default=ROOT / "build" / "peers" / "bin" / "python",
        help="the Python that has xllamacpp (default: build/peers/bin/python)",
    )
    add("--output", type=Path, default=ROOT / "docs" / "benchmarks.md", help="the page to write")
    return parser.parse_args(argv)


if __name__ == "__main__":
    sys.exit(main())
