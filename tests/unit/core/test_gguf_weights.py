"""Unpacking a GGUF file tensor by tensor: the same files that transformers' loader leads to."""

import json
from pathlib import Path

import gguf
import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from core.errors import UserError
from core.models.checkpoint import read_gguf, save_folder, unpack_gguf
from core.models.source import open_source
from core.requests import Precision
from tests.helpers.checkpoints import write_gguf
from tests.helpers.tiny_tokenizers import byte_level

HIDDEN, HEADS, KV_HEADS, INNER = 64, 4, 2, 96
QWEN3_SIZE = 128
"""transformers reads no other size of heads from a file of this family."""


def write(
    path: Path,
    family: str,
    *,
    tied: bool = False,
    kind: gguf.GGMLQuantizationType = gguf.GGMLQuantizationType.Q8_0,
    extra: str = "",
) -> Path:
    """Write a tiny random model whose matrices are quantized and whose heads are wider."""
    vocabulary = byte_level(vocab_size=259).get_vocab()
    tokens = sorted(vocabulary, key=lambda text: vocabulary[text])
    tokens.append(tokens[10] + tokens[11])
    writer = gguf.GGUFWriter(path, family)
    writer.add_name("Tiny")
    writer.add_context_length(128)
    writer.add_embedding_length(HIDDEN)
    writer.add_block_count(2)
    writer.add_feed_forward_length(INNER)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(KV_HEADS)
    size = QWEN3_SIZE if family == "qwen3" else HIDDEN // HEADS
    writer.add_key_length(size)
    writer.add_value_length(size)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_freq_base(10000.0)
    writer.add_vocab_size(len(tokens))
    writer.add_tokenizer_model("gpt2")
    writer.add_token_list(tokens)
    writer.add_token_types([3] * 3 + [1] * (len(tokens) - 3))
    writer.add_token_merges([f"{tokens[10]} {tokens[11]}"])
    writer.add_bos_token_id(0)
    writer.add_eos_token_id(2)
    shapes: dict[str, tuple[int, ...]] = {
        "token_embd.weight": (len(tokens), HIDDEN),
        "output_norm.weight": (HIDDEN,),
    }
    if not tied:
        shapes["output.weight"] = (len(tokens), HIDDEN)
    if extra:
        shapes[extra] = (HIDDEN,)
    for layer in range(2):
        block: dict[str, tuple[int, ...]] = {
            "attn_q.weight": (HEADS * size, HIDDEN),
            "attn_k.weight": (KV_HEADS * size, HIDDEN),
            "attn_v.weight": (KV_HEADS * size, HIDDEN),
            "attn_output.weight": (HIDDEN, HEADS * size),
            "ffn_gate.weight": (INNER, HIDDEN),
            "ffn_up.weight": (INNER, HIDDEN),
            "ffn_down.weight": (HIDDEN, INNER),
            "attn_norm.weight": (HIDDEN,),
            "ffn_norm.weight": (HIDDEN,),
        }
        if family == "qwen2":
            block |= {"attn_q.bias": (HEADS * size,)}
            block |= {f"attn_{name}.bias": (KV_HEADS * size,) for name in "kv"}
        if family == "qwen3":
            block |= {f"attn_{name}_norm.weight": (size,) for name in "qk"}
        shapes |= {f"blk.{layer}.{name}": shape for name, shape in block.items()}
    random = np.random.default_rng(0)
    for name, shape in shapes.items():
        values = random.normal(0, 0.4, shape).astype(np.float32)
        if len(shape) == 1:
            writer.add_tensor(name, values)
        else:
            writer.add_tensor(name, gguf.quants.quantize(values, kind), raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def unpack(path: Path, folder: Path, precision: Precision = Precision.BFLOAT16) -> bool:
    folder.mkdir()
    return unpack_gguf(
        open_source(str(path)),
        folder,
        precision=precision,
        on_fraction=lambda _: None,
        between_steps=lambda: None,
    )


def through_transformers(path: Path, folder: Path, precision: Precision) -> None:
    model, tokenizer = read_gguf(
        open_source(str(path)),
        precision=precision,
        on_fraction=lambda _: None,
        between_steps=lambda: None,
    )
    save_folder(model, tokenizer, folder, lambda _: None)


@pytest.mark.parametrize(
    ("family", "tied", "kind", "precision"),
    [
        ("llama", True, gguf.GGMLQuantizationType.Q4_1, Precision.BFLOAT16),
        ("llama", False, gguf.GGMLQuantizationType.F16, Precision.FLOAT32),
        ("qwen2", False, gguf.GGMLQuantizationType.Q5_0, Precision.BFLOAT16),
        ("qwen3", True, gguf.GGMLQuantizationType.Q8_0, Precision.FLOAT32),
    ],
)
def test_the_files_are_those_that_transformers_leads_to(tmp_path, family, tied, kind, precision):
    path = write(tmp_path / "tiny.gguf", family, tied=tied, kind=kind)
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    assert unpack(path, ours, precision)
    through_transformers(path, theirs, precision)
    assert {file.name for file in ours.iterdir()} == {file.name for file in theirs.iterdir()}
    for file in theirs.iterdir():
        if file.suffix == ".json":
            assert json.loads((ours / file.name).read_text()) == json.loads(file.read_text())
    got, expected = (load_file(folder / "model.safetensors") for folder in (ours, theirs))
    assert got.keys() == expected.keys()
    for name, weight in expected.items():
        assert got[name].dtype == weight.dtype
        assert torch.equal(got[name], weight), name


def test_a_tensor_of_an_unknown_name_leaves_the_file_to_transformers(tmp_path):
    path = write(tmp_path / "tiny.gguf", "llama", extra="blk.0.attn_sinks.weight")
    assert not unpack(path, tmp_path / "ours")
    assert list((tmp_path / "ours").iterdir()) == []


def test_another_family_is_left_to_transformers(tmp_path):
    path = write_gguf(tmp_path / "tiny.gguf", architecture="starcoder2")
    assert not unpack(path, tmp_path / "ours")


def test_a_missing_tensor_is_told_by_its_name(tmp_path):
    path = write_gguf(tmp_path / "tiny.gguf", leave_out=("blk.1.ffn_up.weight",))
    with pytest.raises(UserError, match=r"layers\.1\.mlp\.up_proj"):
        unpack(path, tmp_path / "ours")


def test_stopping_between_tensors_stops_the_writing(tmp_path):
    path = write(tmp_path / "tiny.gguf", "llama")
    (tmp_path / "ours").mkdir()

    def stop(fraction: float) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        unpack_gguf(
            open_source(str(path)),
            tmp_path / "ours",
            precision=Precision.BFLOAT16,
            on_fraction=stop,
            between_steps=lambda: None,
        )
