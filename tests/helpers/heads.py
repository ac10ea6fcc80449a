"""Heads for tiny hosts: random ones, and one that is always right."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM

from core.hub import heads
from core.models.lean.model import LeanModel, read_lean_model
from core.models.mtp.card import HeadCard, HeadHost, HeadKind, HeadShape
from core.models.mtp.files import save_head
from core.models.mtp.host import describe_host
from core.models.mtp.modules import Head, make_head
from core.models.runner import Runner
from core.models.runners import make_runner
from tests.helpers.tiny import tiny_llama

SHIPPED = "smollm2-135m-instruct-sequential"
"""The one shipped head that tests of lists see."""
BARE_HOST = HeadHost(name="none", fingerprint="0" * 32, hidden=32, layers=2, vocab=256)


def ship_one_head(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Let a single head ship, and the home be in ``folder``; return where own heads go."""
    monkeypatch.setenv("PACELINE_HOME", str(folder / "home"))
    (folder / "shipped").mkdir()
    (folder / "shipped" / SHIPPED).symlink_to(heads.SHIPPED_HEADS / SHIPPED)
    monkeypatch.setattr(heads, "SHIPPED_HEADS", folder / "shipped")
    return heads.head_folders()[0]


def head_card(
    *,
    kind: str = HeadKind.SEQUENTIAL,
    host: HeadHost = BARE_HOST,
    state_layers: Sequence[int] = (1, 2),
    vocabulary: Sequence[int] | None = None,
    depth: int = 3,
    seed: int = 0,
) -> HeadCard:
    """The card of a head that is as small as its host."""
    return HeadCard(
        kind=kind,
        host=host,
        shape=HeadShape(heads=4, kv_heads=2, head_dim=8, intermediate=48),
        state_layers=(host.layers,) if kind == HeadKind.PARALLEL else tuple(state_layers),
        vocabulary=tuple(range(host.vocab) if vocabulary is None else vocabulary),
        depth=depth,
        seed=seed,
    )


def random_head(host: Runner, *, kind: str = HeadKind.SEQUENTIAL, seed: int = 0, **card) -> Head:
    """A head that was never trained and whose every weight counts."""
    head = make_head(head_card(kind=kind, host=describe_host(host), seed=seed, **card))
    torch.manual_seed(seed)
    with torch.no_grad():
        for parameter in head.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    return head.eval()


def saved_head(folder: Path, **card) -> Path:
    """A folder with an untrained head for a host that nobody has."""
    made = head_card()
    save_head(make_head(made), folder, card=replace(made, **card))
    return folder


def forgetful_llama(seed: int = 0, *, vocab: int = 256) -> LlamaForCausalLM:
    """A host whose next token depends on the last one alone."""
    model = tiny_llama(seed=seed, vocab=vocab)
    with torch.no_grad():
        for layer in model.model.layers:
            layer.self_attn.o_proj.weight.zero_()
            layer.mlp.down_proj.weight.zero_()
    return model


def perfect_head(model: LlamaForCausalLM, vocabulary: Sequence[int] | None = None) -> Head:
    """A sequential head for a forgetful host that knows exactly what comes next."""
    card = head_card(host=describe_host(make_runner(model)), vocabulary=vocabulary)
    head = make_head(card)
    hidden = card.host.hidden
    with torch.no_grad():
        head.join.weight.zero_()
        head.join.weight[:, hidden:] = torch.eye(hidden)
        head.attention_output.weight.zero_()
        head.down.weight.zero_()
    return head.eval()


def lean_model(model: LlamaForCausalLM, folder: Path) -> LeanModel:
    """``model`` in int8, by way of a checkpoint in ``folder``."""
    model.save_pretrained(str(folder))
    config = LlamaConfig.from_pretrained(str(folder))
    return read_lean_model(folder, config, None, lambda fraction: None)
