"""Loading a pair: look over, decide on device and precision, read, and keep what can be kept."""

import gc
import logging
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from core.cancel import CancelToken
from core.errors import Cancelled, UserError
from core.events import LoadProgress
from core.hub.files import explain_write_error
from core.models.checkpoint import (
    NotLean,
    OutOfMemory,
    read_folder,
    read_gguf,
    save_folder,
    unpack_gguf,
)
from core.models.gguf_header import read_gguf_vocabulary
from core.models.memory import free_memory_bytes, judge_fit, weights_room_bytes
from core.models.pairing import compare_vocabularies
from core.models.precision import (
    choose_device,
    choose_precision,
    dense_cpu_precision,
    draft_precision,
)
from core.models.prepared import PreparedCopy
from core.models.quiet import OnFraction
from core.models.source import ModelSource, SourceKind, config_numbers, open_source
from core.requests import Device, LoadRequest, Precision

logger = logging.getLogger(__name__)

FALLBACK_CONTEXT = 2048
"""The context of a model whose configuration names none, in tokens."""

OnProgress = Callable[[LoadProgress], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedModel:
    """A model that is ready to run, and how it was loaded.

    ``model`` is a transformers causal LM in evaluation mode, or a LeanModel for int8 on the CPU;
    ``vocab_size`` is the width of its
    logits; ``context_limit`` is in tokens. Stays inside the engine: it holds tensors.
    """

    model: Any
    tokenizer: Any
    name: str
    path: str
    device: Device
    precision: Precision
    context_limit: int
    vocab_size: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedPair:
    """A target and its draft; ``notices`` are sentences, such as why a draft was left out."""

    target: LoadedModel
    draft: LoadedModel | None
    notices: tuple[str, ...]


def load_pair(
    request: LoadRequest, *, prepared_dir: Path, on_progress: OnProgress, cancel: CancelToken
) -> LoadedPair:
    """Load a target and, where one is asked for and fits, a draft.

    A GGUF file is unpacked once into ``prepared_dir`` and mapped from there afterwards. Everything
    that can be judged without loading is judged first, for both models. A draft that fails after
    that is left out with a notice; its memory is given back. Never touches the network.

    Blocks; ``on_progress`` is called on this thread. Raises UserError with what to do, and
    Cancelled between steps once ``cancel`` is set.
    """
    on_progress(LoadProgress(stage="Looking the models over"))
    target = open_source(request.target)
    draft = None if request.draft is None else open_source(request.draft)
    device = choose_device(request.device)
    free_bytes = free_memory_bytes(device)
    room_bytes = weights_room_bytes(target, device, request.context_limit, free_bytes)
    precision = choose_precision(request.precision, device, target.elements, room_bytes)
    fit = judge_fit(
        target,
        draft,
        precision=precision,
        device=device,
        context_tokens=request.context_limit,
        free_bytes=free_bytes,
    )
    if not fit.target_fits:
        raise OutOfMemory(
            f"There is not enough memory for {target.name}. {fit.reason}",
            _what_to_do(device, precision),
        )
    loader = _Loader(request, prepared_dir, device, on_progress, cancel)
    loaded = loader.load(target, precision, "target")
    if draft is None:
        return LoadedPair(target=loaded, draft=None, notices=tuple(loader.notices))
    if not fit.fits:
        loader.notices.append(
            f"The draft model {draft.name} was left out: there is not enough memory for both. "
            f"{fit.reason}"
        )
        return LoadedPair(target=loaded, draft=None, notices=tuple(loader.notices))
    mismatch = _mismatch(target, draft)
    if mismatch:
        loader.notices.append(f"The draft model was left out: {mismatch}")
        return LoadedPair(target=loaded, draft=None, notices=tuple(loader.notices))
    loaded_draft = loader.load_draft(draft, draft_precision(precision, device))
    return LoadedPair(target=loaded, draft=loaded_draft, notices=tuple(loader.notices))


def _what_to_do(device: Device, precision: Precision) -> str:
    if device is Device.CUDA and precision is not Precision.NF4:
        return "Choose the precision nf4 or a smaller model, or close other programs."
    return "Close other programs, or choose a smaller model."


def _mismatch(target: ModelSource, draft: ModelSource) -> str:
    """Return how two GGUF files' vocabularies differ, before minutes go into unpacking the draft.

    Where one is a folder, its tokenizer tells after loading, which takes seconds there.
    """
    if target.kind is not SourceKind.GGUF or draft.kind is not SourceKind.GGUF:
        return ""
    ours, theirs = read_gguf_vocabulary(target.path), read_gguf_vocabulary(draft.path)
    verdict = compare_vocabularies(ours, theirs, len(ours), len(theirs))
    return "" if verdict.compatible else verdict.reason


class _Loader:
    def __init__(
        self,
        request: LoadRequest,
        prepared_dir: Path,
        device: Device,
        on_progress: OnProgress,
        cancel: CancelToken,
    ) -> None:
        self._request = request
        self._prepared_dir = prepared_dir
        self._device = device
        self._on_progress = on_progress
        self._cancel = cancel
        self.notices: list[str] = []

    def load_draft(self, source: ModelSource, precision: Precision) -> LoadedModel | None:
        """Load the draft, or say in a notice why the target goes on alone."""
        try:
            return self.load(source, precision, "draft")
        except UserError as error:
            self.notices.append(f"The draft model was left out: {error.message}")
        # Here the error and the frames that it held are gone, and with them the half-loaded model.
        gc.collect()
        if self._device is Device.CUDA:
            torch.cuda.empty_cache()
        return None

    def load(self, source: ModelSource, precision: Precision, role: str) -> LoadedModel:
        """Load one model. Raises UserError and Cancelled."""
        try:
            return self._load(source, precision, role)
        except NotLean:
            if self._request.precision != Precision.AUTO:
                raise
        # Here the error is gone, and with it what was loaded so far.
        return self._load(source, dense_cpu_precision(), role)

    def _load(self, source: ModelSource, precision: Precision, role: str) -> LoadedModel:
        if source.kind is SourceKind.GGUF:
            model, tokenizer = self._load_gguf(source, precision, role)
        else:
            model, tokenizer = self._read(source, source.path, precision, role)
        self._check_cancel()
        text_config = model.config.get_text_config()
        limit = config_numbers(text_config.to_dict()).get("context", FALLBACK_CONTEXT)
        return LoadedModel(
            model=model,
            tokenizer=tokenizer,
            name=source.name,
            path=str(source.path),
            device=self._device,
            precision=precision,
            context_limit=min(limit, self._request.context_limit or limit),
            vocab_size=text_config.vocab_size,
        )

    def _load_gguf(self, source: ModelSource, precision: Precision, role: str) -> tuple[Any, Any]:
        copy = PreparedCopy(self._prepared_dir, source, precision)
        if copy.is_whole:
            try:
                return self._read(source, copy.folder, precision, role)
            except (OutOfMemory, NotLean):
                raise
            except UserError:
                logger.warning("a prepared copy is damaged and is made anew")
                shutil.rmtree(copy.folder, ignore_errors=True)
        report = self._reporter(f"Preparing the {role}", f"{source.name}, only once")
        obstacle = self._obstacle(copy)
        if obstacle is None:
            try:
                if self._unpack(copy, source, report):
                    return self._read(source, copy.folder, precision, role)
            except OSError as error:
                logger.info("no prepared copy could be written", exc_info=True)
                obstacle = explain_write_error(error, self._prepared_dir)
        model, tokenizer = read_gguf(
            source,
            precision=copy.precision,
            on_fraction=report,
            between_steps=self._check_cancel,
        )
        self._check_cancel()
        if obstacle is None:
            obstacle = self._keep(copy, model, tokenizer, f"Keeping the prepared {role}")
        if obstacle is None:
            # Mapped from the copy, the weights need no memory of their own and are what every
            # later start will run.
            del model
            gc.collect()
            return self._read(source, copy.folder, precision, role)
        if precision is not copy.precision:
            raise UserError(
                f"Loading {source.name} in {precision} needs a prepared copy. {obstacle.message}",
                obstacle.action,
            )
        self.notices.append(
            f"{obstacle.message} Therefore {source.name} takes as long to load the next time."
        )
        return model.to("cuda:0" if self._device is Device.CUDA else "cpu"), tokenizer

    def _obstacle(self, copy: PreparedCopy) -> UserError | None:
        try:
            copy.check_disk()
        except UserError as error:
            return error
        return None

    def _unpack(self, copy: PreparedCopy, source: ModelSource, report: OnFraction) -> bool:
        """Make the copy without holding the model; False where it cannot be made that way."""
        return copy.write(
            lambda folder: unpack_gguf(
                source,
                folder,
                precision=copy.precision,
                on_fraction=report,
                between_steps=self._check_cancel,
            )
        )

    def _keep(self, copy: PreparedCopy, model: Any, tokenizer: Any, stage: str) -> UserError | None:
        report = self._reporter(stage, "")
        try:
            copy.write(lambda folder: save_folder(model, tokenizer, folder, report))
        except OSError as error:
            logger.info("no prepared copy could be written", exc_info=True)
            return explain_write_error(error, self._prepared_dir)
        return None

    def _read(
        self, source: ModelSource, folder: Path, precision: Precision, role: str
    ) -> tuple[Any, Any]:
        self._check_cancel()
        return read_folder(
            source,
            folder,
            precision=precision,
            device=self._device,
            on_fraction=self._reporter(f"Loading the {role}", source.name),
        )

    def _reporter(self, stage: str, detail: str) -> Callable[[float], None]:
        self._on_progress(LoadProgress(stage=stage, detail=detail))

        def report(fraction: float) -> None:
            self._check_cancel()
            self._on_progress(LoadProgress(stage=stage, detail=detail, fraction=fraction))

        return report

    def _check_cancel(self) -> None:
        if self._cancel.cancelled:
            raise Cancelled
