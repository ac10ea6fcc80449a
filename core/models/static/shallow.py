"""A model's first layers and its head alone, for a drafter that exits early."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from torch import nn


class FirstLayers:
    """Lends a model its first decoder layers for the time of a pass, and gives the rest back."""

    def __init__(self, model: Any, layers: int) -> None:
        decoder = model.base_model
        whole = getattr(decoder, "layers", None)
        self._decoder: Any = decoder
        self.can_be_lent = isinstance(whole, nn.ModuleList) and len(whole) == layers

    @contextmanager
    def lent(self, count: int | None) -> Iterator[None]:
        """Leave ``count`` layers within the block; None leaves all."""
        if count is None:
            yield
            return
        whole = self._decoder.layers
        self._decoder.layers = nn.ModuleList(list(whole)[:count])
        try:
            yield
        finally:
            self._decoder.layers = whole
