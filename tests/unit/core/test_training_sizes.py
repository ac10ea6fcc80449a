"""What a training will take of the disk, told before it begins and without torch."""

import subprocess
import sys

import pytest

from core.training.sizes import (
    DEFAULT_TOKENS,
    planned_tokens,
    states_kept,
    text_bytes,
    thirds,
)


def test_states_are_read_at_the_thirds_and_at_the_end():
    assert thirds(30) == (10, 20, 30)
    assert thirds(1) == (1,)
    assert states_kept("sequential", 30) == 3
    assert states_kept("sequential", 1) == 1
    assert states_kept("parallel", 30) == 1


def test_a_budget_makes_tokens():
    assert planned_tokens(None, None) == DEFAULT_TOKENS
    assert planned_tokens(500, 60) == 500
    assert planned_tokens(None, 2) == 2 * planned_tokens(None, 1)


def test_text_takes_two_bytes_for_each_number_of_a_state():
    one, two = text_bytes(1000, 1, 576), text_bytes(1000, 2, 576)
    assert two - one == pytest.approx(1800 * 2 * 576)


def test_the_sizes_need_no_torch():
    code = "import core.training.sizes, core.training.events, core.training.prompts, sys"
    code += "; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
