"""The script of the GPU check runs from end to end, with tiny shapes on a CPU."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from benchmarks import gpu_check
from benchmarks.gpu import document, memory, window
from benchmarks.gpu.correctness import same_text
from benchmarks.gpu.models import BF16, build, synthetic_pair, weights_read_bytes
from benchmarks.gpu.report import Budget, Part, lines
from benchmarks.gpu.setting import full, tiny
from core.engine import Engine
from core.events import Failed
from core.models.runner import EagerRunner
from core.requests import Precision
from tests.helpers.tiny import tiny_llama

ROOT = Path(__file__).resolve().parents[3]
CPU = torch.device("cpu")
QUESTIONS = [
    "1 correctness",
    "2 verification",
    "3 draft step",
    "4 end to end",
    "5 memory",
    "6 window",
]


@pytest.fixture(autouse=True)
def same_path(monkeypatch):
    monkeypatch.setattr(sys, "path", list(sys.path))


def run(tmp_path, *options):
    out = tmp_path / "made" / "check.json"
    code = gpu_check.main(["--device", "cpu", "--tiny", "--out", str(out), *options])
    return code, json.loads(out.read_text(encoding="utf-8"))


def test_every_question_is_answered_in_order(tmp_path, capsys):
    code, found = run(tmp_path)
    assert code == 0
    assert [part["name"] for part in found["parts"]] == QUESTIONS
    assert {part["state"] for part in found["parts"]} == {"done"}
    assert found["about"]["tiny"] is True
    assert found["about"]["transformers"]
    correctness, verification, _, end_to_end, memory, _ = found["parts"]
    assert len(correctness["checks"]) == 2 * (1 + 2 + 1)
    assert all(check["ok"] for check in correctness["checks"] + memory["checks"])
    (table,) = [rows for name, rows in verification["tables"].items() if name.startswith("V(M)")]
    assert [row["rows"] for row in table] == list(range(1, 18))
    (table,) = end_to_end["tables"].values()
    assert [row["run"] for row in table] == [
        "transformers plain",
        "transformers assisted",
        "ours eager, plain",
        "ours, plain",
        "ours, gamma 2",
        "ours, gamma auto",
    ]
    assert all(row["tokens/s"] > 0 for row in table)
    # What it lacks is said, and it does not stop over it.
    assert any("bitsandbytes" in reason for reason in verification["not_checked"])
    shown = capsys.readouterr().out
    assert "== 6 window: done" in shown
    assert "checks passed" in shown


def test_where_the_result_goes_is_said_on_the_command_line_alone(monkeypatch, tmp_path):
    monkeypatch.setenv("OUT", str(tmp_path))
    assert gpu_check._parser().parse_args([]).out == ROOT / "build" / "gpu-check.json"


def test_what_fails_in_a_part_is_told_and_the_rest_of_the_part_goes_on(capsys):
    part = Part("question")
    with part.attempt("nf4"):
        raise ImportError("No module named 'bitsandbytes'")
    assert part.ok
    assert part.not_checked == ["nf4: No module named 'bitsandbytes'"]
    with part.attempt("int8"):
        raise RuntimeError("an illegal memory access")
    assert not part.ok
    shown = "\n".join(lines(part))
    assert "WRONG int8: ran to its end: RuntimeError: an illegal memory access" in shown
    assert "Traceback" in capsys.readouterr().err


def test_when_the_time_is_up_the_rest_is_left_out_and_said(tmp_path):
    code, found = run(tmp_path, "--limit-s", "0")
    assert code == 0
    assert [part["name"] for part in found["parts"]] == QUESTIONS
    assert {part["state"] for part in found["parts"]} == {"left out"}
    assert all("no time" in part["not_checked"][0] for part in found["parts"])


def test_a_part_that_breaks_is_told_and_the_exit_code_says_so(tmp_path, monkeypatch, capsys):
    def fail(*_):
        raise RuntimeError("an illegal memory access")

    monkeypatch.setattr("benchmarks.gpu.correctness.run", fail)
    for name in ("costs.run_verify", "costs.run_draft", "end_to_end.run", "memory.run"):
        monkeypatch.setattr(f"benchmarks.gpu.{name}", lambda *_: None)
    monkeypatch.setattr(window, "run", lambda *_: None)
    code, found = run(tmp_path)
    assert code == 1
    assert [part["state"] for part in found["parts"]] == ["failed"] + ["done"] * 5
    assert "an illegal memory access" in capsys.readouterr().out


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is an NVIDIA GPU here")
def test_without_a_gpu_it_says_how_to_try_it(tmp_path, capsys):
    assert gpu_check.main(["--out", str(tmp_path / "check.json")]) == 2
    assert "--device cpu --tiny" in capsys.readouterr().out


def test_it_needs_nothing_of_the_window_and_nothing_that_a_gpu_machine_lacks():
    script = """
import sys
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {"PySide6", "pyqtgraph", "platformdirs", "gguf", "keyring"}:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Absent())
from benchmarks.gpu import correctness, costs, end_to_end, memory, window
"""
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def found(**about):
    known = {"date": "2027-01-02", "commit": "abc123", "python": "3.12.3", "torch": "2.11.0"}
    known |= {"cuda": "13.0", "transformers": "5.17.0", "bitsandbytes": "0.50.2"}
    part = {
        "name": "2 verification",
        "state": "done",
        "seconds": 61.4,
        "checks": [
            {"name": "one", "ok": True, "detail": ""},
            {"name": "other", "ok": False, "detail": "off by 3"},
        ],
        "tables": {"V(M)": [{"rows": 1, "ms": 4.5}, {"rows": 2, "ms": None}]},
        "not_checked": ["int8 captured"],
    }
    return {"about": {**known, "device": "A Card", "tiny": False, **about}, "parts": [part]}


def test_results_of_a_card_become_a_page_with_what_was_wrong_and_what_was_left_out(tmp_path):
    (tmp_path / "found.json").write_text(json.dumps(found()), encoding="utf-8")
    page = tmp_path / "page.md"
    assert document.main([str(tmp_path / "found.json"), str(page)]) == 0
    text = page.read_text(encoding="utf-8")
    for line in (
        "| device | A Card |",
        "| commit | abc123 |",
        "Done, 61 s; 1 of 2 checks passed.",
        "- **Wrong:** other: off by 3",
        "- Not checked: int8 captured",
        "| rows | ms |",
        "| 1 | 4.5 |",
        "| 2 |  |",
    ):
        assert line in text.splitlines()
    assert "synthetic" in text


@pytest.mark.parametrize("about", [{"tiny": True}, {"device": "cpu"}])
def test_a_trial_run_becomes_no_page(tmp_path, about):
    (tmp_path / "found.json").write_text(json.dumps(found(**about)), encoding="utf-8")
    assert document.main([str(tmp_path / "found.json"), str(tmp_path / "page.md")]) == 1
    assert not (tmp_path / "page.md").exists()


def test_a_reply_that_fails_is_no_measure_of_memory(monkeypatch):
    failed = Failed(kind="user", message="Memory ran out during this reply.")
    monkeypatch.setattr(Engine, "generate", lambda *_: iter([failed]))
    setting = tiny(CPU, Budget(60))
    part = Part("5 memory")
    with part.attempt("all"):
        memory.run(setting, part)
    assert not part.ok
    assert any("Memory ran out" in check["detail"] for check in part.checks)


def test_a_folder_of_wheels_is_looked_in_first(tmp_path):
    (tmp_path / "wheels").mkdir()
    run(tmp_path, "--limit-s", "0", "--wheels", str(tmp_path / "wheels"))
    assert sys.path[0] == str(tmp_path / "wheels")


@pytest.mark.parametrize("wanted", [0.7, 0.9])
def test_a_synthetic_pair_agrees_as_wanted(wanted):
    setting = tiny(CPU, Budget(60.0))
    pair = synthetic_pair(setting.target, 1, wanted, CPU, torch.bfloat16)
    assert pair.agreement == pytest.approx(wanted, abs=0.05)
    assert pair.draft.model.layers[0] is pair.target.model.layers[0]
    assert len(pair.draft.model.layers) == 1


def test_what_a_pass_reads_leaves_out_an_embedding_that_is_not_the_head():
    setting = tiny(CPU, Budget(60.0))
    for shape in (setting.target, setting.draft):
        model = build(shape, CPU, torch.bfloat16)
        table = 0 if shape.tied else 2 * shape.vocab * shape.hidden
        assert weights_read_bytes(model) == model.get_memory_footprint() - table


def test_shapes_are_those_of_a_7b_and_a_half_billion_model():
    setting = full(CPU, Budget(60.0))
    sizes = {}
    for shape in (setting.target, setting.draft):
        model = build(shape, torch.device("meta"), torch.bfloat16)
        sizes[shape.name] = sum(p.numel() for p in model.parameters()) / 1e9
    assert sizes["7B-like"] == pytest.approx(7.6, abs=0.1)
    assert sizes["0.5B-like"] == pytest.approx(0.49, abs=0.01)


def test_texts_may_differ_at_near_ties_only_and_in_float32_not_even_there():
    runner = EagerRunner(tiny_llama())
    prompt = [1, 2, 3]
    logits = runner.forward(prompt, 1)[0]
    best, second = logits.topk(2).indices.tolist()
    worst = int(logits.argmin())

    def verdict(got, precision):
        runner.crop(0)
        return same_text(runner, prompt, [best, 5], [got, 5], precision)

    assert verdict(best, Precision.FLOAT32) == ""
    assert "token 0 is another one" in verdict(second, Precision.FLOAT32)
    assert "token 0 is another one" in verdict(worst, BF16)
