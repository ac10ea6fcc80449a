"""How runs end."""

import pytest
import torch

from core.errors import Cancelled, UserError
from core.training import distill_run, run
from core.training.events import Stage, Stopped


def _ending(monkeypatch, module, error):
    def work(_request, report):
        report.begin(Stage.GENERATE, "prompts")
        raise error

    monkeypatch.setattr(module, "_run", work)
    heard = []
    begin = {run: run.run_training, distill_run: distill_run.run_distillation}[module]
    return begin(None, heard.append, lambda: False), heard


@pytest.mark.parametrize("module", [run, distill_run])
@pytest.mark.parametrize("error", [MemoryError(), torch.OutOfMemoryError("CUDA, on purpose")])
def test_memory_that_runs_out_is_told_in_words(monkeypatch, module, error):
    with pytest.raises(UserError, match=r"Memory ran out .* --batch-tokens"):
        _ending(monkeypatch, module, error)


@pytest.mark.parametrize("module", [run, distill_run])
def test_a_run_that_is_stopped_says_where(monkeypatch, module):
    path, heard = _ending(monkeypatch, module, Cancelled())
    assert path is None
    assert heard[-1] == Stopped(stage="generate")
