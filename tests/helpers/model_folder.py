"""A folder that looks like a model from outside, without torch and without real weights."""

import json
import struct
from pathlib import Path


def model_folder(path: Path, *, layers: int = 6, hidden: int = 64) -> Path:
    """Write config, tokenizer and one tensor to ``path`` and return it."""
    path.mkdir(parents=True)
    config = {
        "model_type": "llama",
        "architectures": ["LlamaForCausalLM"],
        "num_hidden_layers": layers,
        "hidden_size": hidden,
        "num_attention_heads": 4,
        "max_position_embeddings": 512,
    }
    (path / "config.json").write_text(json.dumps(config), encoding="utf-8")
    (path / "tokenizer.json").write_text("{}", encoding="utf-8")
    tensor = {"weight": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}}
    header = json.dumps(tensor).encode()
    content = struct.pack("<Q", len(header)) + header + bytes(8)
    (path / "model.safetensors").write_bytes(content)
    return path
