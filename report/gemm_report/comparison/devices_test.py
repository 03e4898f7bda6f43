from pathlib import Path

import pytest

from gemm_report.comparison.devices import HEAD, ratios
from gemm_report.comparison.run import Run, Timed, run_of
from gemm_report.record import Record


def run(**seconds: float) -> Run:
    timed = {name: Timed(name, (each,)) for name, each in seconds.items()}
    return Run(Path("made.json"), None, timed, {})


def test_speeds_are_geometric_means_of_shared_cases() -> None:
    (found,) = ratios([run(a=1.0, b=1.0, only_base=1.0)], [run(a=0.5, b=2.0, only_new=1.0)])
    assert (found.precision, found.cases) == ("all cases", 2)
    assert (found.speed, found.slowest, found.fastest) == (pytest.approx(1.0), 0.5, 2.0)
    assert found.per_clock is found.per_watt is None, "another tool's file has neither"
    assert len(found.cells()) == len(HEAD)
    assert ratios([run(a=1.0)], [run(b=1.0)]) == []


def test_clock_and_power_are_taken_out_where_they_are_known(gpu: Record) -> None:
    one = run_of(gpu)
    for found in ratios([one], [one]):
        assert found.speed == pytest.approx(1.0)
        assert found.per_clock in (None, pytest.approx(1.0))
    assert any(found.per_watt for found in ratios([one], [one]))
