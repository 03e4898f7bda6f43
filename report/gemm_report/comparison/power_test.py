import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from gemm_report.comparison import power
from gemm_report.comparison.run import Run, run_of
from gemm_report.comparison.trials import KINDS, Resampled, Simulated
from gemm_report.record import Record, read_record

Rewritten = Callable[..., Path]

# Equal code, but for what processes always differ in.
FACTORS = (1.0, 1.0004, 0.9997, 1.0002, 0.9998, 1.0001)


@pytest.fixture
def paths(rewritten: Rewritten) -> list[Path]:
    return [rewritten(f"{i}.json", factor) for i, factor in enumerate(FACTORS)]


@pytest.fixture
def processes(paths: list[Path]) -> list[Run]:
    return [run_of(read_record(path)) for path in paths]


@pytest.mark.parametrize("kind", KINDS)
def test_false_alarms_are_rare_in_every_noise(kind: str, gpu: Record) -> None:
    for processes in (1, 3):
        assert power.alarms(Simulated(gpu, kind, 7), power.ours, processes, 40) <= 0.05


@pytest.mark.parametrize("kind", KINDS)
def test_a_large_slowdown_is_found_in_every_noise(kind: str, gpu: Record) -> None:
    assert power.power(Simulated(gpu, kind, 7), power.ours, 3, 5, 0.2)["all"] > 0.97


def test_the_simulated_noise_is_what_it_says(gpu: Record) -> None:
    def medians(kind: str) -> np.ndarray:
        source = Simulated(gpu, kind, 3)
        sides = [source.trial(5).base for _ in range(30)]
        values = [
            [case.medians[0].value for case in run.timed.values()] for side in sides for run in side
        ]
        return np.array(values)

    throttled = [row.throttled for row in Simulated(gpu, KINDS[0], 3).rows.values()]
    assert len(throttled) > 20
    independent = np.std(medians("independent"))
    assert 0.0005 < independent < 0.02
    assert np.max(np.abs(medians("heavy tails"))) > np.max(np.abs(medians("independent")))
    assert np.quantile(medians("two speeds"), 0.995) > 0.02


def test_a_trial_can_be_drawn_again_slower(processes: list[Run], gpu: Record) -> None:
    for source in (Simulated(gpu, "independent", 1), Resampled(processes, 1)):
        state = source.rng.bit_generator.state
        equal = source.trial(3)
        source.rng.bit_generator.state = state
        slower = source.trial(3, 0.05)
        for name in source.rows:
            shifts = [
                after.timed[name].medians[0].value - before.timed[name].medians[0].value
                for side in ("base", "new")
                for before, after in zip(getattr(equal, side), getattr(slower, side), strict=True)
            ]
            assert shifts == pytest.approx([0.0] * 3 + [math.log(1.05)] * 3)
        codes = [slower.base[0].timed, slower.new[0].timed, equal.new[0].timed]
        prints = [{case.row.fingerprint for case in each.values() if case.row} for each in codes]
        assert prints == [{"code"}, {"other code"}, {"code"}]


def test_other_rules_are_as_their_tools_have_them(processes: list[Run]) -> None:
    source = Resampled(processes, 1)
    assert not any(power.five_percent(source.trial(1, 0.04)))
    assert all(power.five_percent(source.trial(1, 0.06)))
    assert all(power.mann_whitney(source.trial(3, 0.5)))
    assert all(power.nvbench(source.trial(3, 0.5)))


def test_it_prints_and_draws(
    paths: list[Path],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(power, "PROCESSES", (3,))
    figure = tmp_path / "power.png"
    power.main([*map(str, paths), "--runs=2", "--figure", str(figure)])
    said = capsys.readouterr().out
    assert "6 real processes" in said
    assert "true / stated" in said
    assert figure.stat().st_size > 10_000
    with pytest.raises(SystemExit):
        power.main([str(paths[0])])
