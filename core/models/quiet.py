"""Keeping the libraries' own bars and warnings off the terminal, and hearing their progress."""

import logging
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

OnFraction = Callable[[float], None]


class _Bar:
    """Stands in for a tqdm bar; whatever else a bar can do is left undone."""

    def __init__(self, on_fraction: OnFraction, iterable: Iterable[Any] | None, total: Any) -> None:
        self._on_fraction = on_fraction
        self._iterable = iterable
        self._total = total if total is not None else getattr(iterable, "__len__", int)()
        self.n = 0

    def __iter__(self) -> Iterator[Any]:
        for item in self._iterable or ():
            yield item
            self.update()

    def __enter__(self) -> "_Bar":
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def __getattr__(self, name: str) -> Callable[..., None]:
        return lambda *_args, **_settings: None

    def update(self, count: int = 1) -> None:
        self.n += count
        if self._total:
            self._on_fraction(min(self.n / self._total, 1.0))


@contextmanager
def quiet(on_fraction: OnFraction, converter: ModuleType | None = None) -> Iterator[None]:
    """Silence transformers, and report its bars as fractions.

    ``on_fraction`` may raise to stop the work that a bar counts. ``converter`` is a module that
    takes its ``tqdm`` past transformers' own hook. Process-wide while it lasts, so for one thread
    at a time.
    """
    from transformers.utils import logging as their_logging

    def make_bar(*args: Any, **settings: Any) -> _Bar:
        iterable = args[0] if args else settings.get("iterable")
        return _Bar(on_fraction, iterable, settings.get("total"))

    verbosity = their_logging.get_verbosity()
    hook = their_logging.set_tqdm_hook(lambda _factory, args, settings: make_bar(*args, **settings))
    own_bar = getattr(converter, "tqdm", None)
    their_logging.set_verbosity(logging.CRITICAL)
    try:
        if own_bar is not None:
            setattr(converter, "tqdm", make_bar)  # noqa: B010 - the module has no typed name for it
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        if own_bar is not None:
            setattr(converter, "tqdm", own_bar)  # noqa: B010
        their_logging.set_verbosity(verbosity)
        their_logging.set_tqdm_hook(hook)
