"""Every command that CONTRIBUTING.md names exists, and CI runs it."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
COMMAND = re.compile(r"^(?:[^#\n]*\| )?make ([a-z-]+)", re.MULTILINE)


def _documented() -> set[str]:
    return set(COMMAND.findall((ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")))


def _rules() -> dict[str, list[str]]:
    """The Makefile's targets with what each needs."""
    text = (ROOT / "Makefile").read_text(encoding="utf-8")
    rules = re.findall(r"^([a-z-]+):([^=#\n]*)", text, re.MULTILINE)
    return {target: needs.split() for target, needs in rules}


def _reached(targets: set[str], rules: dict[str, list[str]]) -> set[str]:
    found = set()
    while targets:
        target = targets.pop()
        found.add(target)
        targets.update(rules[target])
    return found


def test_ci_runs_every_documented_command() -> None:
    documented = _documented()
    assert len(documented) >= 8
    run_by_ci = set(COMMAND.findall((ROOT / ".ci" / "run").read_text(encoding="utf-8")))
    assert documented <= _reached(run_by_ci, _rules())


@pytest.mark.skipif(shutil.which("make") is None, reason="needs make to read the Makefile")
@pytest.mark.parametrize("target", sorted(_documented()))
def test_every_documented_command_is_a_target_that_make_can_plan(target: str) -> None:
    # Without the outer make's variables, which would have it wait for that make's jobs.
    environ = {k: v for k, v in os.environ.items() if not k.startswith(("MAKE", "MFLAGS"))}
    result = subprocess.run(
        ["make", "-n", target], cwd=ROOT, env=environ, capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stderr


def test_ci_is_executable() -> None:
    assert os.access(ROOT / ".ci" / "run", os.X_OK)
