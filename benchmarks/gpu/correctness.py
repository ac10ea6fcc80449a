"""Question 1: does the static runner, captured where it can be, say what the eager one says?"""

from collections.abc import Sequence
from typing import Any

import torch

from benchmarks.gpu.models import BF16, NF4, build, free, quantize, synthetic_pair
from benchmarks.gpu.replies import Talk, eager, random_ids, static
from benchmarks.gpu.report import Part
from benchmarks.gpu.setting import Setting
from core.decoding.gamma import FixedGamma
from core.models.runner import Runner
from core.models.static.runner import STEP_ROWS
from core.requests import Precision

_FLOAT32_ERROR = 1e-4
_PASSES = 3
"""Each number of rows is run as it is, recorded, and replayed with other tokens."""


def run(setting: Setting, part: Part) -> None:
    """Compare logits and greedy text in float32, bfloat16 and nf4."""
    for precision in (Precision.FLOAT32, BF16, NF4):
        if not setting.budget.has(20 if setting.on_cuda else 0):
            part.leave_out(f"{precision}: no time was left")
            continue
        with part.attempt(str(precision)):
            _check(setting, part, precision)
        free()


def _check(setting: Setting, part: Part, precision: Precision) -> None:
    dtype = torch.float32 if precision is Precision.FLOAT32 else torch.bfloat16
    model = build(setting.check, setting.device, dtype)
    if precision is NF4:
        quantize(model, precision)
    _logits(setting, part, precision, model)
    del model
    pair = synthetic_pair(
        setting.check, 1, 0.7, setting.device, dtype, precision if precision is NF4 else BF16
    )
    _texts(setting, part, precision, pair.target, pair.draft)


def _logits(setting: Setting, part: Part, precision: Precision, model: Any) -> None:
    reference, runner = eager(model), static(model)
    text = random_ids(setting.check.vocab, 100 + STEP_ROWS + _PASSES)
    worst, wrong_choices = 0.0, 0
    for both in (reference, runner):
        both.forward(text[:100], 1)
    for attempt in range(_PASSES):
        for rows in range(1, STEP_ROWS + 1):
            block = text[100 + attempt : 100 + attempt + rows]
            expected, got = reference.forward(block, rows), runner.forward(block, rows)
            error = float((expected - got).abs().max())
            worst = max(worst, error)
            wrong_choices += _differing_choices(expected, got, error)
            kept = {both.crop(100) for both in (reference, runner)}
            if kept != {100}:
                part.check(f"{precision}: crop", False, f"kept {kept} of 100 tokens")
    exact = precision is not Precision.FLOAT32 or worst <= _FLOAT32_ERROR
    part.check(
        f"{precision}: logits of 1..{STEP_ROWS} rows",
        exact and wrong_choices == 0,
        f"largest difference {worst:.3g}, {wrong_choices} other choices beyond near-ties",
    )
    part.row(
        "Static against eager runner",
        {"precision": str(precision), "largest difference": worst, "graphs": runner.captured},
    )
    if setting.on_cuda:
        part.check(f"{precision}: every number of rows is captured", runner.captured == STEP_ROWS)


def _differing_choices(expected: torch.Tensor, got: torch.Tensor, error: float) -> int:
    """Count rows whose first choice differs though the best two are further apart than errors."""
    top = expected.topk(2, dim=-1).values
    apart = (top[:, 0] - top[:, 1]) > 2.0 * error
    return int((apart & (expected.argmax(-1) != got.argmax(-1))).sum())


def _texts(setting: Setting, part: Part, precision: Precision, target: Any, draft: Any) -> None:
    prompt, count = random_ids(setting.check.vocab, 40, seed=3), setting.check_tokens
    plain = Talk(eager(target)).reply(prompt, count, FixedGamma(0))
    talk = Talk(static(target), static(draft))
    for gamma in setting.check_gammas:
        reply = talk.reply(prompt, count, FixedGamma(gamma))
        verdict = same_text(eager(target), prompt, plain.ids, reply.ids, precision)
        part.check(f"{precision}: greedy text at gamma {gamma}", not verdict, verdict)
    # What the caches keep of one conversation must serve the next, which turns off half-way.
    turned = [*prompt, *plain.ids[: count // 2], *random_ids(setting.check.vocab, 5, seed=4)]
    expected = Talk(eager(target)).reply(turned, count, FixedGamma(0))
    reply = talk.reply(turned, count, FixedGamma(4))
    verdict = same_text(eager(target), turned, expected.ids, reply.ids, precision)
    part.check(f"{precision}: a reused cache", not verdict, verdict)


def same_text(
    runner: Runner,
    prompt: Sequence[int],
    expected: Sequence[int],
    got: Sequence[int],
    precision: Precision,
) -> str:
    """Return how two greedy texts differ more than they may, or "".

    In float32 not at all; elsewhere the first difference must be a near-tie of the reference.
    """
    if list(expected) == list(got):
        return ""
    place = next(i for i, (a, b) in enumerate(zip(expected, got, strict=True)) if a != b)
    logits = runner.forward([*prompt, *expected[:place]], 1)[0]
    gap = float(logits[expected[place]] - logits[got[place]])
    allowed = 0.0 if precision is Precision.FLOAT32 else 0.02 * float(logits.abs().max())
    if abs(gap) <= allowed:
        return ""
    return f"token {place} is another one, {gap:.3g} less likely in logits ({allowed:.3g} may be)"
