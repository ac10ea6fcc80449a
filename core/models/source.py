"""Looking a model over before anything of it is loaded, so that a wrong choice costs nothing."""

import re
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from core.errors import UserError
from core.hub.files import parse_json
from core.models.gguf_header import GgufHeader, read_gguf_header
from core.models.safetensors_header import read_safetensors_header

PICKLE_SUFFIXES = frozenset({".bin", ".pt", ".pth", ".ckpt", ".pkl", ".pickle"})
_ONLY = "Choose a GGUF file or a folder with safetensors weights."
_WEIGHTS = "model.safetensors"
_INDEX = "model.safetensors.index.json"
_TOKENIZERS = ("tokenizer.json", "tokenizer.model", "vocab.json", "tekken.json", "spiece.model")
_DRAFT_ONLY = re.compile(r"eagle|medusa|hydra|speculator|mtp|nextn|draft", re.IGNORECASE)
_TEXT_MODEL = re.compile(r"(ForCausalLM|LMHeadModel)$")
_ENCODERS = frozenset(
    {"bert", "nomic-bert", "nomic-bert-moe", "jina-bert-v2", "jina-bert-v3", "modern-bert"}
    | {"neo-bert", "gemma-embedding", "t5encoder", "clip", "mmproj"}
)
_SPLIT = re.compile(r"-\d{5}-of-\d{5}$")


class SourceKind(StrEnum):
    """The two ways in which a model may lie on the disk."""

    GGUF = "gguf"
    SAFETENSORS = "safetensors"


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSource:
    """A model on the disk whose outside looks right.

    ``path`` is the file or the folder; ``elements`` is the number of weights; ``numbers`` says
    what sizing a cache needs, under the names of :mod:`core.models.memory`.
    """

    kind: SourceKind
    path: Path
    name: str
    elements: int
    numbers: dict[str, int]


def open_source(path_text: str) -> ModelSource:
    """Look over the model at a path, reading heads of files only.

    Raises UserError, with what to choose instead, for anything but a whole text-generating model
    in GGUF or safetensors.
    """
    path = Path(path_text).expanduser()
    try:
        if path.is_dir():
            return _open_folder(path)
        if path.is_file():
            return _open_file(path)
    except PermissionError as error:
        raise UserError(f"{path} may not be read.", "Change its permissions.") from error
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise UserError(f"{path} cannot be read ({reason}).", _ONLY) from error
    raise UserError(f"There is no model at {path}.", "Check the path, or choose another model.")


def _open_file(path: Path) -> ModelSource:
    suffix = path.suffix.lower()
    if suffix in PICKLE_SUFFIXES:
        raise UserError(
            f"{path.name} looks like a pickle checkpoint, which can run code when it is opened: "
            "Paceline loads safetensors and GGUF only.",
            _ONLY,
        )
    if suffix == ".safetensors":
        raise UserError(
            f"{path.name} holds only weights.", f"Choose the folder that it lies in: {path.parent}"
        )
    if suffix != ".gguf":
        raise UserError(f"{path.name} is not a model that Paceline can load.", _ONLY)
    header = read_gguf_header(path)
    _check_gguf(path, header)
    numbers = {
        "layers": header.number("block_count"),
        "hidden": header.number("embedding_length"),
        "heads": header.number("attention.head_count"),
        "kv_heads": header.number("attention.head_count_kv"),
        "head_dim": header.number("attention.key_length"),
        "context": header.number("context_length"),
    }
    return ModelSource(
        kind=SourceKind.GGUF,
        path=path,
        name=path.stem,
        elements=header.elements,
        numbers={key: value for key, value in numbers.items() if value is not None},
    )


def _check_gguf(path: Path, header: GgufHeader) -> None:
    if header.metadata.get("split.count", 1) > 1 or _SPLIT.search(path.stem):
        raise UserError(
            f"{path.name} is one piece of a model that was split into several files.",
            "Merge them with llama.cpp's gguf-split --merge, and choose the merged file.",
        )
    kind = str(header.metadata.get("general.type", "model"))
    names = {tensor.name for tensor in header.tensors}
    if kind == "adapter":
        raise UserError(f"{path.name} is an adapter, not a whole model.", _ONLY)
    if header.architecture in _ENCODERS or kind == "mmproj":
        raise UserError(
            f"{path.name} is a {header.architecture} model, which cannot write text.",
            "Choose a model made for chat or text generation.",
        )
    if _DRAFT_ONLY.search(header.architecture) or "token_embd.weight" not in names:
        raise _draft_only(path)
    if not header.metadata.get("tokenizer.ggml.tokens"):
        raise UserError(f"{path.name} carries no vocabulary.", "Get a file that has one.")


def _open_folder(path: Path) -> ModelSource:
    names = {entry.name for entry in path.iterdir()}
    if "config.json" not in names:
        raise _not_a_model_folder(path, names)
    config = _read_config(path / "config.json")
    _check_config(path, config)
    files = _weight_files(path, names)
    if not any(name in names for name in _TOKENIZERS):
        raise UserError(
            f"The folder {path} has no tokenizer.",
            "Put the model's tokenizer.json beside its weights.",
        )
    if _asks_for_code(path / "tokenizer_config.json"):
        raise _remote_code(path)
    elements = sum(read_safetensors_header(file).elements for file in files)
    return ModelSource(
        kind=SourceKind.SAFETENSORS,
        path=path,
        name=path.absolute().name,
        elements=elements,
        numbers=config_numbers(config),
    )


def config_numbers(config: dict[str, Any]) -> dict[str, int]:
    """Return what sizing a cache needs out of a ``config.json``, leaving out what is missing."""
    text = config.get("text_config")
    config = {**config, **text} if isinstance(text, dict) else config
    names = {
        "layers": ("num_hidden_layers", "n_layer"),
        "hidden": ("hidden_size", "n_embd"),
        "heads": ("num_attention_heads", "n_head"),
        "kv_heads": ("num_key_value_heads",),
        "head_dim": ("head_dim",),
        "context": ("max_position_embeddings", "n_positions", "n_ctx", "seq_length"),
    }
    found = {key: [config.get(name) for name in aliases] for key, aliases in names.items()}
    numbers = {
        key: next((v for v in values if isinstance(v, int)), None) for key, values in found.items()
    }
    return {key: value for key, value in numbers.items() if value is not None}


def _read_config(path: Path) -> dict[str, Any]:
    try:
        config = parse_json(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise UserError(f"{path} is damaged.", "Fetch the model again.") from error
    if not isinstance(config, dict) or not config.get("model_type"):
        raise UserError(f"{path} does not say what kind of model this is.", _ONLY)
    return config


def _check_config(path: Path, config: dict[str, Any]) -> None:
    if config.get("auto_map"):
        raise _remote_code(path)
    architectures = [str(name) for name in config.get("architectures") or ()]
    if any(_DRAFT_ONLY.search(name) for name in (*architectures, str(config["model_type"]))):
        raise _draft_only(path)
    if config.get("is_encoder_decoder"):
        raise UserError(
            f"{path.name} is a translation-style (encoder-decoder) model.",
            "Choose a model made for chat or text generation.",
        )
    if "vision_config" in config or "audio_config" in config:
        raise UserError(
            f"{path.name} takes pictures or sound as well as text, which Paceline cannot run.",
            "Choose a model made for text alone.",
        )
    if architectures and not any(_TEXT_MODEL.search(name) for name in architectures):
        raise UserError(
            f"{path.name} is a {architectures[0]}, which cannot write text.",
            "Choose a model made for chat or text generation.",
        )


def _asks_for_code(path: Path) -> bool:
    try:
        config = parse_json(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return isinstance(config, dict) and bool(config.get("auto_map"))


def _weight_files(path: Path, names: set[str]) -> list[Path]:
    if _WEIGHTS in names:
        return [path / _WEIGHTS]
    if _INDEX in names:
        try:
            index = parse_json((path / _INDEX).read_text(encoding="utf-8"))
            parts = sorted(set(index["weight_map"].values()))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise UserError(f"{path / _INDEX} is damaged.", "Fetch the model again.") from error
        missing = [part for part in parts if part not in names]
        if missing:
            raise UserError(
                f"The model in {path} is incomplete: {missing[0]} is missing.",
                "Fetch the model again.",
            )
        return [path / part for part in parts]
    raise _no_weights(path, names)


def _no_weights(path: Path, names: set[str]) -> UserError:
    if "adapter_model.safetensors" in names:
        return UserError(f"{path} holds an adapter, not a whole model.", _ONLY)
    if any(name.endswith(".safetensors") for name in names):
        return UserError(
            f"The model in {path} is incomplete: {_WEIGHTS} or {_INDEX} is missing.",
            "Fetch the model again.",
        )
    if any(Path(name).suffix.lower() in PICKLE_SUFFIXES for name in names):
        return UserError(
            f"The weights in {path} are a pickle checkpoint, which can run code when it is opened: "
            "Paceline loads safetensors and GGUF only.",
            "Get the model as safetensors or GGUF.",
        )
    return UserError(f"The folder {path} holds no weights.", _ONLY)


def _not_a_model_folder(path: Path, names: set[str]) -> UserError:
    ggufs = sorted(name for name in names if name.lower().endswith(".gguf"))
    if ggufs:
        return UserError(f"{path} is a folder.", f"Choose the file in it: {path / ggufs[0]}")
    if not names:
        return UserError(f"The folder {path} is empty.", _ONLY)
    if any(Path(name).suffix.lower() in PICKLE_SUFFIXES for name in names):
        return _no_weights(path, names)
    return UserError(f"The folder {path} holds no model: config.json is missing.", _ONLY)


def _draft_only(path: Path) -> UserError:
    return UserError(
        f"{path.name} is not a whole model: it looks like a draft-only checkpoint (such as EAGLE, "
        "Medusa or an MTP head), which works only beside the model it was made for.",
        "Choose the model itself.",
    )


def _remote_code(path: Path) -> UserError:
    return UserError(
        f"The model in {path} comes with program code of its own, which Paceline never runs.",
        "Choose a model whose kind is built into transformers.",
    )
