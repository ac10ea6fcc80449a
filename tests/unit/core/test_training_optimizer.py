"""What a checkpoint keeps of an optimizer, and where it goes when it is put back."""

import torch

from core.training.optimizer_state import optimizer_tensors, restore_optimizer

SIZES = {"a": (2, 3), "b": (4,)}


def _weights(device="cpu"):
    weights = {n: torch.nn.Parameter(torch.ones(s, device=device)) for n, s in SIZES.items()}
    return list(weights.items())


def _optimizer(named):
    return torch.optim.AdamW([parameter for _, parameter in named], lr=0.1)


def _trained(steps=3):
    named = _weights()
    optimizer = _optimizer(named)
    for _ in range(steps):
        for _, parameter in named:
            parameter.grad = torch.full_like(parameter, 0.5)
        optimizer.step()
    return optimizer, named


def test_before_the_first_step_there_is_nothing_to_keep():
    named = _weights()
    assert optimizer_tensors(_optimizer(named), named) == {}


def test_what_is_put_back_equals_what_was_kept_and_shares_nothing_with_it():
    optimizer, named = _trained()
    kept = optimizer_tensors(optimizer, named)
    wanted = {name: value.clone() for name, value in kept.items()}
    others = _weights()
    other = _optimizer(others)
    restore_optimizer(other, others, kept)
    found = optimizer_tensors(other, others)
    assert found.keys() == wanted.keys()
    assert all(torch.equal(found[name], value) for name, value in wanted.items())
    for _, parameter in others:
        parameter.grad = torch.full_like(parameter, 0.5)
    other.step()
    assert all(torch.equal(kept[name], value) for name, value in wanted.items())


def test_moments_go_where_their_weights_are_and_the_count_of_steps_stays():
    """Read from a file they are on the CPU; the meta device stands for a GPU."""
    optimizer, named = _trained()
    elsewhere = _weights("meta")
    other = _optimizer(elsewhere)
    restore_optimizer(other, elsewhere, optimizer_tensors(optimizer, named))
    states = list(other.state.values())
    assert len(states) == len(SIZES)
    for state in states:
        assert {state[key].device.type for key in ("exp_avg", "exp_avg_sq")} == {"meta"}
        assert state["step"].device.type == "cpu"
        assert float(state["step"]) == 3.0
