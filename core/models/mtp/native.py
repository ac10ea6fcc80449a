"""Heads that came with a checkpoint: what transformers calls its MTP layers.

They are for the model they came with, cover its whole vocabulary and are found by the model's own
configuration. Where there are several, the first alone is used, applied again and again as a
sequential head is; so it is with one, which is what nearly all such checkpoints have.
"""

import contextlib
import importlib
from pathlib import Path
from typing import Any

import torch

from core.errors import UserError
from core.models.runner import Runner

_OTHER = "Choose another drafter."


class NativeVocabulary:
    """The tokens that the layer drafts: all that the pair uses."""

    def __init__(self, count: int, device: torch.device) -> None:
        self.ids = torch.arange(count, device=device)


class NativeRunner:
    """A checkpoint's own MTP layer with what it has read, behind a sequential head's interface.

    Runs in the model's own precision. Raises UserError where the layer cannot be read.
    """

    def __init__(self, model: Any, host: Runner, vocab_size: int) -> None:
        modeling = importlib.import_module("transformers.modeling_layers")
        self._caches: Any = importlib.import_module("transformers.cache_utils")
        self.length = self._shortest = 0
        self._dtype: torch.dtype = model.dtype
        self._width = min(vocab_size, host.width)
        self.state_layers = (host.layers,)
        self.vocabulary = NativeVocabulary(self._width, host.device)
        try:
            self._mtp: Any = modeling.MtpModel.from_pretrained(
                model, device_map={"": host.device}
            ).eval()
            self._config: Any = model.config.get_mtp_config()
            self._start()
            # A layer that cannot run is refused here and not in the middle of a reply.
            nothing = torch.zeros(1, host.hidden, device=host.device)
            self.logits(self.absorb(nothing, nothing))
            self._start()
        except torch.OutOfMemoryError as error:
            raise UserError("There is no memory for the model's MTP layers.", _OTHER) from error
        except (RuntimeError, ValueError, OSError, AttributeError, TypeError, LookupError) as error:
            raise UserError(
                "The MTP layers that belong to this model are not in its checkpoint, or of a kind "
                "that transformers does not read.",
                _OTHER,
            ) from error

    def crop(self, length: int) -> None:
        """Forget all but the first ``length`` entries, or all where they cannot be had any more."""
        if length >= self.length:
            return
        if length < self._shortest or length == 0:
            self._start()
            return
        self._cache.crop(length - self.length)
        self.length = length
        if self._has_window:  # what had left the window is dropped for good
            self._shortest = length

    @torch.inference_mode()
    def absorb(self, states: torch.Tensor, embeddings: torch.Tensor) -> torch.Tensor:
        """Append entries of true tokens; return the output [1, hidden] of the last one."""
        rows = len(states)
        # An entry stands where its newer token does.
        first = self.length + 1
        positions = torch.arange(first, first + rows, device=states.device)[None]
        output: torch.Tensor = self._mtp.forward_layer(
            0,
            states[None].to(self._dtype),
            positions,
            self._cache,
            inputs_embeds=embeddings[None].to(self._dtype),
        )
        self.length += rows
        return output[0, -1:]

    def advance(self, output: torch.Tensor, embedding: torch.Tensor) -> torch.Tensor:
        """Append an entry of the chain: an output and the token it led to, both [1, hidden]."""
        return self.absorb(output, embedding)

    @torch.inference_mode()
    def logits(self, output: torch.Tensor) -> torch.Tensor:
        """Return the logits [1, v] over all tokens."""
        logits: torch.Tensor = self._mtp._project_to_logits(output)
        return logits[:, : self._width].float()

    def _start(self) -> None:
        self._cache: Any = self._caches.MtpCache(config=self._config)
        with contextlib.suppress(AttributeError):  # not in every version, nor needed by each model
            self._cache.activate_past_recording()
        layers = self._cache.layers
        self._has_window = any(getattr(layer, "sliding_window", None) for layer in layers)
        self.length = self._shortest = 0


def has_native_layers(model: Any) -> bool:
    """Return whether a loaded transformers model says that MTP layers belong to it.

    Such a model must lie in a folder, as nothing is ever fetched here.
    """
    if not isinstance(model, torch.nn.Module):
        return False
    config: Any = model.config
    modeling = importlib.import_module("transformers.modeling_layers")
    return (
        bool(getattr(config.get_text_config(), "num_mtp_layers", None))
        and hasattr(modeling, "MtpModel")
        and Path(config.name_or_path or "-").is_dir()
    )
