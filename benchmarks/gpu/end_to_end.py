"""Question 4: whole replies of one synthetic pair, ours beside what transformers does with it."""

import time
from typing import Any

import torch
from transformers import GenerationConfig, StoppingCriteria

from benchmarks.gpu.models import BF16, NF4, Pair, free, synthetic_pair
from benchmarks.gpu.replies import Reply, Talk, eager, random_ids, static
from benchmarks.gpu.report import Part
from benchmarks.gpu.setting import Setting
from core.decoding.gamma import AutoGamma, FixedGamma, GammaController
from core.models.measure import measure_verify_ms
from core.models.runner import Runner
from core.requests import DrafterKind, Precision

_PROMPT_TOKENS = 64
_TEMPERATURE = 1.0
"""Greedy text of random weights runs in circles; sampled text accepts as the pair was made to."""


def run(setting: Setting, part: Part) -> None:
    """Compare tokens a second for every agreement, in bfloat16 and nf4."""
    for precision in (BF16, NF4):
        for wanted in setting.agreements:
            if not setting.budget.has(setting.reserve_s + (45 if setting.on_cuda else 0)):
                part.leave_out(f"{precision}, agreement {wanted}: no time was left")
                continue
            with part.attempt(f"{precision}, agreement {wanted}"):
                # Held by the call alone, so that the next pair finds its memory free.
                _compare(setting, part, precision, _pair(setting, wanted, precision))
            free()


def _pair(setting: Setting, wanted: float, precision: Precision) -> Pair:
    return synthetic_pair(
        setting.target,
        setting.pair_layers,
        wanted,
        setting.device,
        torch.bfloat16,
        precision,
    )


def _compare(setting: Setting, part: Part, precision: Precision, pair: Pair) -> None:
    title = f"Synthetic pair, {precision}, agreement {pair.agreement:.2f}"
    prompt = random_ids(setting.target.vocab, _PROMPT_TOKENS, seed=5)

    def note(name: str, speed: float, length: float | None, share: float | None) -> None:
        values = {"tokens/s": speed, "tokens a round": length, "draft share": share}
        part.row(title, {"run": name, **values})

    for name, draft in (("transformers plain", None), ("transformers assisted", pair.draft)):
        if not setting.budget.has(setting.reserve_s + (15 if setting.on_cuda else 0)):
            part.leave_out(f"{title}: no time was left for {name}")
            continue
        speed, length = _generate(setting, pair.target, draft, prompt)
        note(name, speed, length, None)
    fast_target, fast_draft = static(pair.target), static(pair.draft)
    controller = AutoGamma()
    controller.seed(
        measure_verify_ms(fast_target),
        {str(DrafterKind.MODEL): measure_verify_ms(fast_draft, (1,))[1]},
    )
    runs: list[tuple[str, Runner, Runner | None, GammaController]] = [
        ("ours eager, plain", eager(pair.target), None, FixedGamma(0)),
        ("ours, plain", fast_target, None, FixedGamma(0)),
        *(
            (f"ours, gamma {gamma}", fast_target, fast_draft, FixedGamma(gamma))
            for gamma in setting.gammas
        ),
        ("ours, gamma auto", fast_target, fast_draft, controller),
    ]
    for name, target, draft, gamma in runs:
        if not setting.budget.has(setting.reserve_s + (10 if setting.on_cuda else 0)):
            part.leave_out(f"{title}: no time was left for {name}")
            continue
        reply = _reply(setting, Talk(target, draft), prompt, gamma)
        share = reply.draft_ms / (reply.draft_ms + reply.verify_ms)
        note(name, reply.tokens_per_second, reply.acceptance_length, share if draft else None)


def _reply(setting: Setting, talk: Talk, prompt: list[int], gamma: GammaController) -> Reply:
    """Return the second reply; in the first what is run for the first time is set up."""
    for seed in (6, 7):
        reply = talk.reply(prompt, setting.reply_tokens, gamma, temperature=_TEMPERATURE, seed=seed)
    talk.target.clear()
    return reply


class _Clock(StoppingCriteria):
    """Stops nothing, and notes when how many tokens stood; it is asked after every round."""

    def __init__(self) -> None:
        self.ticks: list[tuple[float, int]] = []

    def __call__(self, input_ids: torch.Tensor, scores: Any, **_: Any) -> torch.Tensor:
        self.ticks.append((time.perf_counter(), input_ids.shape[1]))
        return torch.zeros(input_ids.shape[0], dtype=torch.bool, device=input_ids.device)


def _generate(
    setting: Setting, target: Any, draft: Any, prompt: list[int]
) -> tuple[float, float | None]:
    """Return tokens a second after the first round, and tokens a round where there is a draft."""
    ids = torch.tensor([prompt], device=setting.device)
    make: Any = GenerationConfig
    config = make(
        max_new_tokens=setting.reply_tokens,
        do_sample=True,
        temperature=_TEMPERATURE,
        top_k=0,
        top_p=1.0,
        eos_token_id=None,
        pad_token_id=0,
    )
    for _ in range(2):
        clock = _Clock()
        with torch.inference_mode():
            target.generate(
                ids,
                attention_mask=torch.ones_like(ids),
                generation_config=config,
                assistant_model=draft,
                stopping_criteria=[clock],
            )
    (first_at, first_length), (last_at, last_length) = clock.ticks[0], clock.ticks[-1]
    rounds = len(clock.ticks) - 1
    speed = (last_length - first_length) / (last_at - first_at) if rounds else 0.0
    length = (last_length - first_length) / rounds if draft is not None and rounds else None
    return speed, length
