"""Reading weights and tokenizer through transformers: the only callers of its loaders.

Local files only, safetensors or GGUF only, never code that came with a model.
"""

import errno
import importlib
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError

from core.errors import PacelineError, UserError
from core.hub.files import unwrapped_write_error
from core.models.gguf_weights import GgufWeights, UnknownLayout
from core.models.memory import estimate, free_memory_bytes
from core.models.quiet import OnFraction, quiet
from core.models.source import ModelSource
from core.requests import Device, Precision

logger = logging.getLogger(__name__)

_SAFE: dict[str, Any] = {"local_files_only": True, "trust_remote_code": False}
_END_TEXTS = frozenset(
    {"<|endoftext|>", "<|im_end|>", "<|eot_id|>", "<|end_of_text|>", "<|eom_id|>", "<|end|>"}
    | {"<end_of_turn>", "<eos>", "</s>", "<|return|>", "<|end_of_turn|>", "[EOS]", "<EOT>", "<eot>"}
)
_DETAIL_CHARACTERS = 160


class OutOfMemory(UserError):
    """A model did not fit; the message says so in one sentence."""


class NotLean(UserError):
    """The int8 runner of the CPU is not made for this model."""


def torch_dtype(precision: Precision) -> torch.dtype:
    """Return the dtype of the weights that are not quantized."""
    return torch.float32 if precision is Precision.FLOAT32 else torch.bfloat16


def read_folder(
    source: ModelSource,
    folder: Path,
    *,
    precision: Precision,
    device: Device,
    on_fraction: OnFraction,
) -> tuple[Any, Any]:
    """Return model and tokenizer from a folder of safetensors, which is ``source`` or its copy.

    On a CPU the weights stay mapped where their format is the one asked for. ``on_fraction`` may
    raise to stop. Raises UserError when the folder is no whole text model, OutOfMemory.
    """
    from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer

    settings: dict[str, Any] = {**_SAFE, "use_safetensors": True, "output_loading_info": True}
    if device is Device.CUDA:
        settings["device_map"] = {"": "cuda:0"}
    elif precision is Precision.INT8:
        return _read_lean(source, folder, on_fraction)
    if precision in (Precision.INT8, Precision.NF4):
        from core.models.quant.bnb import quantization_config

        settings["quantization_config"] = quantization_config(precision)
    with quiet(on_fraction), _explained(source, precision, device):
        tokenizer = AutoTokenizer.from_pretrained(str(folder), **_SAFE)
        config = AutoConfig.from_pretrained(str(folder), **_SAFE)
        _check_text_model(source, config)
        loaded: Any = AutoModelForCausalLM.from_pretrained(
            str(folder), config=config, dtype=torch_dtype(precision), **settings
        )
    model, info = loaded
    _check_whole(source, info)
    return model, tokenizer


def _read_lean(source: ModelSource, folder: Path, on_fraction: OnFraction) -> tuple[Any, Any]:
    from transformers import AutoConfig, AutoTokenizer, GenerationConfig

    from core.models.lean.model import read_lean_model
    from core.models.lean.shape import lean_obstacle
    from core.models.lean.smoothing import TEXT

    with quiet(on_fraction), _explained(source, Precision.INT8, Device.CPU):
        config = AutoConfig.from_pretrained(str(folder), **_SAFE)
        _check_text_model(source, config)
        obstacle = lean_obstacle(config)
        if obstacle:
            raise NotLean(
                f"int8 on this CPU {obstacle}, so {source.name} cannot use it.",
                "Choose the precision auto, bfloat16 or float32.",
            )
        tokenizer = AutoTokenizer.from_pretrained(str(folder), **_SAFE)
        generation = None
        if (folder / "generation_config.json").is_file():
            generation = GenerationConfig.from_pretrained(str(folder))
        try:
            model = read_lean_model(
                folder, config, generation, on_fraction, text_ids=tokenizer.encode(TEXT)
            )
        except KeyError as error:
            raise _not_whole(source, [str(error.args[0])]) from error
    return model, tokenizer


def read_gguf(
    source: ModelSource,
    *,
    precision: Precision,
    on_fraction: OnFraction,
    between_steps: Callable[[], None],
) -> tuple[Any, Any]:
    """Return model and tokenizer from a GGUF file, its weights unpacked to the dtype asked for.

    Slow: seconds for a small model, minutes for a large one. ``between_steps`` and
    ``on_fraction`` may raise to stop. Raises UserError, OutOfMemory.
    """
    import transformers
    from transformers import (
        AutoConfig,
        AutoModelForCausalLM,
        AutoTokenizer,
        modeling_gguf_pytorch_utils,
    )

    where = (str(source.path.parent), source.path.name)
    settings: dict[str, Any] = {**_SAFE, "gguf_file": where[1]}
    weights: dict[str, Any] = {"output_loading_info": True}
    gguf_config = getattr(transformers, "GgufConfig", None)
    if gguf_config is not None:
        # Otherwise a release that knows packed kernels looks for them on a hub.
        weights["quantization_config"] = gguf_config(dequantize=True)
    with (
        quiet(on_fraction, modeling_gguf_pytorch_utils),
        _parsed_once(),
        _explained(source, precision, Device.CPU),
    ):
        config = AutoConfig.from_pretrained(where[0], **settings)
        _check_text_model(source, config)
        between_steps()
        tokenizer = AutoTokenizer.from_pretrained(where[0], config=config, **settings)
        between_steps()
        loaded: Any = AutoModelForCausalLM.from_pretrained(
            where[0], config=config, dtype=torch_dtype(precision), **settings, **weights
        )
    model, info = loaded
    _check_whole(source, info)
    _become_plain(model)
    model.generation_config.eos_token_id = _end_ids(tokenizer)
    return model, tokenizer


def unpack_gguf(
    source: ModelSource,
    folder: Path,
    *,
    precision: Precision,
    on_fraction: OnFraction,
    between_steps: Callable[[], None],
) -> bool:
    """Fill a folder with what :func:`save_folder` would write of the model in a GGUF file.

    Tensor by tensor, and so in a fraction of the memory and time of :func:`read_gguf`; False, with
    nothing written, where the file's layout is not known well enough for that. ``between_steps``
    and ``on_fraction`` may raise to stop. Raises UserError, OutOfMemory, OSError.
    """
    from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer

    where = (str(source.path.parent), source.path.name)
    settings: dict[str, Any] = {**_SAFE, "gguf_file": where[1]}
    dtype = torch_dtype(precision)
    with quiet(on_fraction), _parsed_once(), _explained(source, precision, Device.CPU):
        config = AutoConfig.from_pretrained(where[0], **settings)
        _check_text_model(source, config)
        between_steps()
        with torch.device("meta"):
            make: Any = AutoModelForCausalLM.from_config
            model = make(config, dtype=dtype)
        tied = set(model.all_tied_weights_keys)
        shapes = {
            name: tuple(weight.shape)
            for name, weight in model.state_dict().items()
            if name not in tied
        }
        try:
            weights = GgufWeights(source.path, config, shapes)
        except UnknownLayout:
            return False
        if weights.missing:
            raise _not_whole(source, weights.missing)
        tokenizer = AutoTokenizer.from_pretrained(where[0], config=config, **settings)
        between_steps()
    model.generation_config.eos_token_id = _end_ids(tokenizer)
    model.config.architectures = [type(model).__name__]
    with quiet(on_fraction):
        model.config.save_pretrained(str(folder))
        model.generation_config.save_pretrained(str(folder))
        tokenizer.save_pretrained(str(folder))
    with _explained(source, precision, Device.CPU, but=OSError):
        weights.save(folder / "model.safetensors", dtype, on_fraction)
    return True


def save_folder(model: Any, tokenizer: Any, folder: Path, on_fraction: OnFraction) -> None:
    """Write model and tokenizer as a folder of safetensors. Raises OSError."""
    try:
        with quiet(on_fraction):
            model.save_pretrained(str(folder))
            tokenizer.save_pretrained(str(folder))
    except SafetensorError as error:
        raise unwrapped_write_error(folder) from error


@contextmanager
def _parsed_once() -> Iterator[None]:
    """Let the converter parse the file's head and build its table of names once.

    It does so for the configuration, the tokenizer, the weights and every module again, which is
    most of the time that a small model takes.
    """
    gguf: Any = importlib.import_module("gguf")
    reader, name_map = gguf.GGUFReader, gguf.get_tensor_name_map
    gguf.GGUFReader, gguf.get_tensor_name_map = cache(reader), cache(name_map)
    try:
        yield
    finally:
        gguf.GGUFReader, gguf.get_tensor_name_map = reader, name_map


def _become_plain(model: Any) -> None:
    """Drop the marks of a quantized checkpoint: the weights are dense now, and may be saved."""
    for name in ("hf_quantizer", "quantization_method"):
        if hasattr(model, name):
            setattr(model, name, None)
    model.is_quantized = False
    if hasattr(model.config, "quantization_config"):
        del model.config.quantization_config


def _end_ids(tokenizer: Any) -> list[int]:
    """Return every id that ends a text: a GGUF file names one, and the family knows more."""
    special = {
        token_id
        for token_id, token in tokenizer.added_tokens_decoder.items()
        if token.special and token.content in _END_TEXTS
    }
    own = tokenizer.eos_token_id
    return sorted(special if own is None else special | {own})


def _check_text_model(source: ModelSource, config: Any) -> None:
    from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING

    if type(config) not in MODEL_FOR_CAUSAL_LM_MAPPING or config.is_encoder_decoder:
        raise UserError(
            f"{source.name} is a {config.model_type} model, which cannot write text.",
            "Choose a model made for chat or text generation.",
        )


def _check_whole(source: ModelSource, info: dict[str, Any]) -> None:
    missing = sorted(info["missing_keys"])
    if missing:
        raise _not_whole(source, missing)
    if info.get("mismatched_keys"):
        raise UserError(
            f"The weights of {source.name} do not have the shapes that its config.json says.",
            "Fetch the model again.",
        )


def _not_whole(source: ModelSource, missing: list[str]) -> UserError:
    return UserError(
        f"{source.name} is not a whole model: {len(missing)} of its weights are missing, such as "
        f"{missing[0]}. It may be a draft-only checkpoint (such as EAGLE, Medusa or an MTP head) "
        "or an unfinished download.",
        "Choose the whole model, or fetch it again.",
    )


@contextmanager
def _explained(
    source: ModelSource,
    precision: Precision,
    device: Device,
    but: type[Exception] = PacelineError,
) -> Iterator[None]:
    """Turn whatever the libraries raise over a bad file, ``but`` this, into a sentence."""
    try:
        yield
    except (PacelineError, but):
        raise
    except Exception as error:
        if _is_out_of_memory(error, source, precision, device):
            raise OutOfMemory(
                f"There is not enough memory for {source.name}.",
                "Close other programs, or choose a smaller model.",
            ) from error
        logger.info("a model could not be loaded", exc_info=True)
        detail = (str(error).strip().splitlines() or [""])[0][:_DETAIL_CHARACTERS].rstrip(". ")
        raise UserError(
            f"{source.name} could not be loaded ({type(error).__name__}: {detail}).",
            "The file may be damaged or of a kind that the installed transformers does not know: "
            "fetch it again, or choose another model.",
        ) from error


def _is_out_of_memory(
    error: Exception, source: ModelSource, precision: Precision, device: Device
) -> bool:
    if isinstance(error, MemoryError | torch.OutOfMemoryError):
        return True
    if isinstance(error, OSError):
        return error.errno == errno.ENOMEM
    if type(error) is not RuntimeError:
        return False
    # torch's CPU allocator raises a plain RuntimeError: tell it by the numbers.
    free_bytes = free_memory_bytes(device)
    return free_bytes is not None and estimate(source, precision, 0).weights_bytes > free_bytes
