"""What is made of nvbench's results; nvbench itself runs on a GPU only."""

import argparse
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from gemm_peers import nvbench

ROW = {"m": 1024, "n": 1024, "k": 1024}
OURS = {"measured": {"seconds": {"median": 202e-6}}}
THEIRS = {"nvbench": {"cold": 210e-6, "batch": 200e-6}}


def state(**changes: Any) -> SimpleNamespace:
    summaries = {"nv/batch/time/gpu/mean": SimpleNamespace(value=2e-4)}
    usual = {"is_skipped": False, "samples": [3e-4, 1e-4, 2.1e-4], "summaries": summaries}
    return SimpleNamespace(**{**usual, **changes})


def test_the_median_of_cold_samples_and_the_mean_of_batches_are_taken() -> None:
    assert nvbench.figures(state()) == {"cold": 2.1e-4, "batch": 2e-4}


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"is_skipped": True, "skip_reason": "too hot"}, "nvbench skipped it: too hot"),
        ({"samples": None}, "no samples"),
        ({"summaries": {}}, "nv/batch/time/gpu/mean"),
    ],
)
def test_what_nvbench_does_not_say_is_an_error(changes: dict[str, Any], expected: str) -> None:
    with pytest.raises(RuntimeError, match=expected):
        nvbench.figures(state(**changes))


def test_medians_stand_side_by_side() -> None:
    lines = nvbench.table([(ROW, OURS, THEIRS), (ROW, OURS, {"failed": "no"})]).splitlines()
    assert lines[2] == "| 1024x1024x1024 | 202.00 | 210.00 | 200.00 | 1.0100 |"
    assert lines[3] == "| 1024x1024x1024 | 202.00 | - | - | - |"


def test_both_harnesses_are_asked_in_turns_and_a_cause_is_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    asked = []

    def outcomes(task: Any, rows: Any, patience: float) -> Any:
        asked.append((task["harness"], rows[0]["m"]))
        said = {"skipped": "cuda is not installed"} if rows[0]["m"] == 8 else THEIRS
        return iter([OURS if task["harness"] == "ours" else said])

    monkeypatch.setattr(nvbench, "outcomes", outcomes)
    options = argparse.Namespace(device="0", seed=1, row_budget=10.0, timeout=5.0)
    assert nvbench.compare([(4, 4, 4)], options, tmp_path) == 0
    assert nvbench.compare([(4, 4, 4), (8, 8, 8)], options, tmp_path) == nvbench.FAILED
    assert asked[2:] == [("ours", 4), ("nvbench", 4), ("ours", 8), ("nvbench", 8)]
    assert capsys.readouterr().err == "peers: 8x8x8: nvbench: cuda is not installed\n"
