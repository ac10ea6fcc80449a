"""Tiny random models with recurrent states, one of each way in which they differ."""

from collections.abc import Callable
from typing import Any

import torch
from transformers import (
    BambaConfig,
    BambaForCausalLM,
    FalconH1Config,
    FalconH1ForCausalLM,
    JambaConfig,
    JambaForCausalLM,
    Lfm2Config,
    Lfm2ForCausalLM,
    Mamba2Config,
    Mamba2ForCausalLM,
    PreTrainedModel,
    Qwen3_5ForCausalLM,
    Qwen3_5TextConfig,
    RecurrentGemmaConfig,
    RecurrentGemmaForCausalLM,
    xLSTMConfig,
    xLSTMForCausalLM,
)

_NO_ENDS: dict[str, Any] = {"eos_token_id": None, "bos_token_id": None, "pad_token_id": None}
_PLAIN: dict[str, Any] = {
    "vocab_size": 256,
    "hidden_size": 32,
    "initializer_range": 0.4,
    **_NO_ENDS,
}
_HYBRID: dict[str, Any] = {
    **_PLAIN,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 512,
}
_MAMBA: dict[str, Any] = {
    "mamba_n_heads": 8,
    "mamba_d_head": 8,
    "mamba_n_groups": 1,
    "mamba_d_state": 8,
    "mamba_chunk_size": 16,
}

MODELS: dict[str, Callable[[], PreTrainedModel]] = {
    # A gated delta net beside attention, as in Qwen3-Next and Qwen3.5.
    "delta-net": lambda: Qwen3_5ForCausalLM(
        Qwen3_5TextConfig(
            **_HYBRID,
            head_dim=8,
            linear_num_value_heads=4,
            linear_num_key_heads=2,
            linear_key_head_dim=8,
            linear_value_head_dim=8,
            layer_types=["linear_attention", "full_attention"],
        )
    ),
    # Mamba 1, whose states a pass over several tokens does not take up again.
    "jamba": lambda: JambaForCausalLM(
        JambaConfig(
            **_HYBRID,
            attn_layer_period=2,
            attn_layer_offset=1,
            num_experts=1,
            num_experts_per_tok=1,
            mamba_d_state=8,
            mamba_dt_rank=4,
        )
    ),
    # State and attention in the same layer.
    "falcon-h1": lambda: FalconH1ForCausalLM(FalconH1Config(**_HYBRID, **_MAMBA, mamba_d_ssm=64)),
    # Convolution states alone.
    "lfm2": lambda: Lfm2ForCausalLM(
        Lfm2Config(
            **_HYBRID, layer_types=["conv", "full_attention"], block_auto_adjust_ff_dim=False
        )
    ),
    # No attention at all.
    "mamba2": lambda: Mamba2ForCausalLM(
        Mamba2Config(
            **_PLAIN,
            num_hidden_layers=2,
            state_size=8,
            num_heads=8,
            head_dim=8,
            n_groups=1,
            chunk_size=16,
        )
    ),
    # Positions begin at 0 in every pass unless they are given.
    "bamba": lambda: BambaForCausalLM(BambaConfig(**_HYBRID, **_MAMBA, attn_layer_indices=[1])),
}

UNKNOWN: dict[str, Callable[[], PreTrainedModel]] = {
    # Keeps its states in its own modules.
    "recurrent-gemma": lambda: RecurrentGemmaForCausalLM(
        RecurrentGemmaConfig(
            vocab_size=256,
            hidden_size=32,
            intermediate_size=64,
            num_hidden_layers=3,
            num_attention_heads=4,
            num_key_value_heads=2,
            lru_width=32,
            attention_window_size=16,
            **_NO_ENDS,
        )
    ),
    # Has a cache of its own kind.
    "xlstm": lambda: xLSTMForCausalLM(
        xLSTMConfig(vocab_size=256, hidden_size=32, num_hidden_layers=2, num_heads=4, **_NO_ENDS)
    ),
}


def tiny_recurrent(name: str, *, seed: int = 0) -> PreTrainedModel:
    """One of ``MODELS`` or ``UNKNOWN``, float32."""
    torch.manual_seed(seed)
    return {**MODELS, **UNKNOWN}[name]().eval()
