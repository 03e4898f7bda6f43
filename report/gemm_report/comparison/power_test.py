import json
import math
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from gemm_report.comparison import power
from gemm_report.comparison.noise.calibrate import calibration
from gemm_report.comparison.noise.calibration import read_calibration
from gemm_report.comparison.run import run_of
from gemm_report.comparison.verdict import Process, Verdict, process
from gemm_report.record import read_record

Rewritten = Callable[..., Path]

# Equal code, but for what processes always differ in.
FACTORS = (1.0, 1.0004, 0.9997, 1.0002, 0.9998, 1.0001)


@pytest.fixture
def paths(rewritten: Rewritten) -> list[Path]:
    return [
        rewritten(
            f"{i}.json",
            factor,
            lambda document, i=i: document["context"].update(date=f"2025-01-31T13:0{i}:00Z"),
        )
        for i, factor in enumerate(FACTORS)
    ]


@pytest.fixture
def processes(paths: list[Path]) -> list[Process]:
    return [process(run_of(read_record(path))) for path in paths]


def test_a_calibration_is_the_one_that_calibrate_would_write(
    paths: list[Path], processes: list[Process], tmp_path: Path
) -> None:

    written = tmp_path / "noise.json"
    document = calibration([read_record(path) for path in paths])
    written.write_text(json.dumps(document), encoding="utf-8")
    expected = {row.name: row for row in read_calibration(written).rows}
    made = power.calibrated(processes)
    assert made and made.processes == len(paths)
    assert {row.name for row in made.rows} == set(expected)
    for row in made.rows:
        assert row.variance.value == pytest.approx(expected[row.name].variance.value, rel=1e-6)
        assert row.throttled == expected[row.name].throttled
        at_clock, expected_at_clock = row.variance_at_clock, expected[row.name].variance_at_clock
        assert (at_clock is None) == (expected_at_clock is None)
        if at_clock and expected_at_clock:
            assert at_clock.value == pytest.approx(expected_at_clock.value, rel=1e-6, abs=1e-12)
    assert power.calibrated(processes[:1]) is None


def test_a_planted_slowdown_is_that_of_all_samples(
    rewritten: Rewritten, processes: list[Process]
) -> None:
    planted = power.slowed(processes[0], 0.05)
    measured = process(run_of(read_record(rewritten("slow.json", 1.05))))
    for name, median in measured.seconds.items():
        assert planted.seconds[name].value == pytest.approx(median.value)
        assert planted.seconds[name].variance == pytest.approx(median.variance, rel=1e-6)


def test_every_pair_is_compared_without_its_own_records(processes: list[Process]) -> None:
    found = list(power.comparisons(processes))
    assert len(found) == math.comb(len(FACTORS), 2)
    for each in found:
        assert each.calibration and each.calibration.processes == len(FACTORS) - 2
        assert not each.count(Verdict.SLOWER)
    (one, *_) = power.comparisons(processes, others=0)
    assert one.calibration is None


def test_prints_false_alarms_and_power(
    paths: list[Path], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["power", *map(str, paths[:4])])
    power.main()
    said = capsys.readouterr().out.splitlines()
    head = next(line for line in said if line.startswith("calibrated"))
    assert head.split() == [
        "calibrated",
        "pairs",
        "cases",
        *(v.value for v in Verdict),
        "slower",
        "of",
    ]
    alarms = said[said.index(head) + 1].split()
    assert alarms[:2] == ["0", "6"]
    shares = [line for line in said if line.startswith("f32") and "4096 " in line]
    assert len(shares) == 2, "with the noise of the others, and with the default"
    assert shares[0].rstrip().endswith("100.0 %")
