"""What a checkpoint keeps of an optimizer, and where it goes when it is put back."""

import torch

from core.training.optimizer_state import optimizer_tensors, restore_optimizer

SIZES = {"a": (2, 3), "b": (4,)}


def _weights(device="cpu"):
    weights = {n: torch.nn.Parameter(torch.ones(s, device=device)) for n, s in SIZES.items()}
    return list(weights.items())


def _optimizers(named):
    matrix, vector = (parameter for _, parameter in named)
    return [torch.optim.Muon([matrix], lr=0.1), torch.optim.AdamW([vector], lr=0.1)]


def _trained(steps=3):
    named = _weights()
    optimizers = _optimizers(named)
    for _ in range(steps):
        for _, parameter in named:
            parameter.grad = torch.full_like(parameter, 0.5)
        for optimizer in optimizers:
            optimizer.step()
    return optimizers, named


def test_before_the_first_step_there_is_nothing_to_keep():
    named = _weights()
    assert optimizer_tensors(_optimizers(named), named) == {}


def test_what_is_put_back_equals_what_was_kept_and_shares_nothing_with_it():
    optimizers, named = _trained()
    kept = optimizer_tensors(optimizers, named)
    wanted = {name: value.clone() for name, value in kept.items()}
    others = _weights()
    fresh = _optimizers(others)
    restore_optimizer(fresh, others, kept)
    found = optimizer_tensors(fresh, others)
    assert found.keys() == wanted.keys()
    assert all(torch.equal(found[name], value) for name, value in wanted.items())
    for _, parameter in others:
        parameter.grad = torch.full_like(parameter, 0.5)
    for optimizer in fresh:
        optimizer.step()
    assert all(torch.equal(kept[name], value) for name, value in wanted.items())


def test_moments_go_where_their_weights_are_and_the_count_of_steps_stays():
    """Read from a file they are on the CPU; the meta device stands for a GPU."""
    optimizers, named = _trained()
    elsewhere = _weights("meta")
    fresh = _optimizers(elsewhere)
    restore_optimizer(fresh, elsewhere, optimizer_tensors(optimizers, named))
    muon, adamw = ([*optimizer.state.values()] for optimizer in fresh)
    assert muon[0]["momentum_buffer"].device.type == "meta"
    assert {adamw[0][key].device.type for key in ("exp_avg", "exp_avg_sq")} == {"meta"}
    assert adamw[0]["step"].device.type == "cpu"
    assert float(adamw[0]["step"]) == 3.0
