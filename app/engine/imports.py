"""Imports the engine's heavy libraries without freezing the window.

Two things in ``import torch`` and ``import transformers`` hold the interpreter lock for 50 to
200 ms at a time: opening torch's shared libraries, and full garbage collections over the hundred
thousands of objects that the modules create. Both can be had without the lock or not at all.
"""

import ctypes
import gc
import importlib
import importlib.util
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_LIBRARIES = (
    "libtorch_global_deps.so",
    "libc10.so",
    "libtorch_cpu.so",
    "libc10_cuda.so",
    "libtorch_cuda.so",
    "libtorch.so",
    "libtorch_python.so",
)
_MODULES = (
    "torch",
    "transformers.models.auto.modeling_auto",
    "transformers.models.auto.tokenization_auto",
    "transformers.models.llama.modeling_llama",
    "transformers.models.qwen2.modeling_qwen2",
)
"""What every load needs; transformers would import it piece by piece while loading."""


def import_engine_libraries() -> None:
    """Import torch and transformers with the interpreter lock free most of the time.

    Call on the worker thread. Collections pause for the whole process meanwhile; what was created
    is then exempt from later collections, which would hold the window up again.
    """
    with collection_paused():
        _open_torch_libraries()
        for name in _MODULES:
            importlib.import_module(name)
        gc.freeze()


@contextmanager
def collection_paused() -> Iterator[None]:
    """Keep the garbage collector of the process from running inside the block."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()


def _open_torch_libraries() -> None:
    """Open torch's shared libraries ahead of the import; a failure is left to the import."""
    if not sys.platform.startswith("linux") or "torch" in sys.modules:
        return
    spec = importlib.util.find_spec("torch")
    if spec is None or spec.origin is None:
        return
    folder = Path(spec.origin).parent / "lib"
    # A foreign call gives up the interpreter lock; ctypes.CDLL and the import itself do not.
    dlopen = ctypes.CDLL(None).dlopen
    dlopen.argtypes = [ctypes.c_char_p, ctypes.c_int]
    dlopen.restype = ctypes.c_void_p
    for name in _LIBRARIES:
        path = folder / name
        if path.exists():
            mode = os.RTLD_NOW
            if name == "libtorch_global_deps.so":
                mode |= os.RTLD_GLOBAL
            dlopen(os.fsencode(path), mode)
