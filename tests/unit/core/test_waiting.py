"""How long threads spin for each other is settled before torch reads it."""

import os
import subprocess
import sys

import pytest

SHOW = "import core, sys, os; print(os.environ.get('GOMP_SPINCOUNT'), 'torch' in sys.modules)"


@pytest.mark.parametrize(
    ("chosen", "shown"),
    [
        ({}, "30000 False"),
        ({"GOMP_SPINCOUNT": "77"}, "77 False"),
        ({"OMP_WAIT_POLICY": "active"}, "None False"),
    ],
    ids=str,
)
def test_threads_spin_briefly_unless_the_person_chose_otherwise(
    chosen: dict[str, str], shown: str
) -> None:
    names = ("GOMP_SPINCOUNT", "OMP_WAIT_POLICY")
    environment = {name: value for name, value in os.environ.items() if name not in names}
    command = [sys.executable, "-c", SHOW]
    ran = subprocess.run(
        command, env={**environment, **chosen}, capture_output=True, text=True, check=True
    )
    assert ran.stdout.strip() == shown
