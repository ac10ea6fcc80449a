"""Moving outliers from activations into weights, so that one int8 term is enough for a row.

A channel that is large behind a norm takes the levels that its neighbours need. Dividing the
norm's weight by a scale a channel and multiplying the next weight's columns by it changes nothing
in the product and costs nothing later. Source: SmoothQuant, arXiv 2211.10438, with alpha 0.5;
scales are powers of two, so that nothing is rounded by it. A short text is run through the layers
while they are made, and shows which channels are large.
"""

from dataclasses import replace

import torch
import torch.nn.functional as F

from core.models.lean.attention import KeyValueCache, Plan
from core.models.lean.linear import Int8Linear
from core.models.lean.network import LeanLayer, project_heads, turns_of
from core.models.lean.shape import LeanShape

TEXT = """The mill by the river was built in 1784 and has been restored twice. On Sundays it grinds
a little wheat for visitors: "Is it still working?" they ask, and it is.

```python
def mean(values: list[float]) -> float:
    \"\"\"Return the arithmetic mean.\"\"\"
    if not values:
        raise ValueError("mean of nothing")
    return sum(values) / len(values)
```

1. Boil 2 litres of water. 2. Add salt. 3. Wait; then serve. Grüße aus München!
"""
"""What is run through the layers: prose, code, numbers and signs."""
TOKENS = 96
_SMALL = 1e-5


class Smoother:
    """Follows a text through a model's layers, each as soon as its parts are made."""

    def __init__(self, shape: LeanShape, embedded: torch.Tensor, rotations: torch.Tensor) -> None:
        """``embedded`` [rows, hidden] float32 is the text; ``rotations`` as in LeanWeights."""
        rows = len(embedded)
        self._shape = shape
        self._state = embedded
        self._cache = KeyValueCache(replace(shape, layers=1), rows)
        self._plan: Plan = self._cache.plan(rows)
        self._turns = turns_of(rotations, shape, 0, rows)

    def fold(self, norm: torch.Tensor, weight: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return a norm's weight [hidden] and the next layer's [out, hidden], evened out."""
        inputs = self._norm(norm).abs().amax(dim=0).clamp_(min=_SMALL)
        columns = torch.maximum(weight.amax(dim=0), -weight.amin(dim=0)).float()
        scale = torch.exp2(torch.round(torch.log2(inputs / columns.clamp_(min=_SMALL)) / 2))
        return norm / scale, weight * scale.to(weight.dtype)

    def attend(
        self,
        norm: torch.Tensor,
        query_key_value: Int8Linear,
        head_norms: tuple[torch.Tensor | None, torch.Tensor | None],
        output: Int8Linear,
    ) -> None:
        """Go through the first half of a layer."""
        fused = query_key_value(self._norm(norm))
        turned = project_heads(self._shape, fused, *head_norms, self._turns)
        self._state = self._state + output(self._cache.attend(0, turned, self._plan))

    def feed_forward(self, layer: LeanLayer) -> None:
        """Go through the second half."""
        gate, up = layer.gate_up(self._norm(layer.post_norm)).chunk(2, dim=1)
        self._state = self._state + layer.down(F.silu(gate).mul_(up))

    def _norm(self, weight: torch.Tensor) -> torch.Tensor:
        return F.rms_norm(self._state, (self._shape.hidden,), weight, self._shape.norm_eps)
