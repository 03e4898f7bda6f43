import dataclasses
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gemm_report.comparison.noise.calibration import Calibration, Device, Method, Noise
from gemm_report.comparison.noise.within import LogMedian
from gemm_report.comparison.run import Run, Timed, run_of
from gemm_report.comparison.trials import Known, Simulated
from gemm_report.comparison.verdict import Case, Interval, Verdict, compare
from gemm_report.conftest import clocks
from gemm_report.document import RecordError
from gemm_report.record import DeviceCode, Record, Row

UNKNOWN = dict.fromkeys(("uuid_hash", "driver", "runtime", "power_limit_w"))
WITHIN = LogMedian(0.0, 0.0003**2, 30)


@pytest.mark.parametrize(
    ("interval", "verdict"),
    [
        (Interval(1.000, 0.995, 1.005), Verdict.SAME),
        # Significant, but of no matter.
        (Interval(1.004, 1.001, 1.007), Verdict.SAME),
        (Interval(1.030, 1.020, 1.040), Verdict.SLOWER),
        (Interval(1.011, 1.001, 1.021), Verdict.SLOWER),
        (Interval(0.970, 0.960, 0.980), Verdict.FASTER),
        (Interval(1.000, 0.980, 1.020), Verdict.AMBIGUOUS),
        (Interval(1.030, 0.999, 1.061), Verdict.AMBIGUOUS),
        # Significant, below the threshold, and perhaps above it.
        (Interval(1.008, 1.002, 1.014), Verdict.AMBIGUOUS),
    ],
)
def test_verdicts(interval: Interval, verdict: Verdict) -> None:
    assert interval.verdict(0.01) is verdict
    mirrored = Interval(1 / interval.ratio, 1 / interval.high, 1 / interval.low)
    opposite = {Verdict.SLOWER: Verdict.FASTER, Verdict.FASTER: Verdict.SLOWER}
    assert mirrored.verdict(0.01) is opposite.get(verdict, verdict)


def name(i: int) -> str:
    return f"Kernel{i}/f32/2048x2048x2048"


def made(
    logs: Sequence[float], row: Row | None = None, cycles: Sequence[float] | None = None
) -> Run:
    """A process with these log medians."""

    def known(name: str, *values: float | None) -> Known:
        seconds, at_clock = (
            v if v is None else dataclasses.replace(WITHIN, value=v) for v in values
        )
        return Known(name, (1.0,) * 50, row, medians=(seconds, at_clock))

    pairs = zip(logs, cycles or [None] * len(logs), strict=True)
    timed = {name(i): known(name(i), *pair) for i, pair in enumerate(pairs)}
    return Run(Path("made.json"), "Test GPU", timed, {})


def calibrated(logs: Mapping[str, Sequence[float]]) -> Calibration:
    """A calibration in which the cases had these log medians, one for each process."""
    rows = [
        Noise(
            kernel=each.split("/")[0],
            parameters={},
            layout="nn",
            precision="f32",
            **dict.fromkeys("mnk", 2048),
            medians_seconds=tuple(math.exp(value) for value in values),
            medians_cycles=tuple(math.exp(value) for value in values),
            throttled_share=None,
        )
        for each, values in logs.items()
    ]
    device, method = Device(kind="gpu", name="Test GPU", **UNKNOWN), Method(None)
    return Calibration(1, "0123abc", 6, device, method, tuple(rows), "noise.json")


def noise_of(rng: np.random.Generator, sds: Sequence[float], processes: int = 6) -> Calibration:
    return calibrated({name(i): rng.normal(scale=sd, size=processes) for i, sd in enumerate(sds)})


def quiet(cases: int) -> Calibration:
    return noise_of(np.random.default_rng(7), [0.001] * cases)


def test_a_run_is_the_same_as_itself(gpu: Record) -> None:
    one = run_of(gpu)
    found = compare([one], [one])
    assert len(found.cases) > 20
    assert not found.regressed
    assert all(case.ratio == 1 for case in found.cases)
    assert found.common_shift is None
    assert not (found.only_base or found.only_new or found.failed or found.no_longer_timed)


def test_equal_processes_are_the_same_where_noise_is_known() -> None:
    found = compare([made([0.0] * 20)], [made([0.0] * 20)], quiet(20))
    assert found.count(Verdict.SAME) == 20


def test_a_planted_slowdown_is_found_and_nothing_else() -> None:
    logs = [0.0] * 20
    logs[3], logs[5] = math.log(1.03), math.log(0.95)
    found = compare([made([0.0] * 20)], [made(logs)], quiet(20))
    assert found.regressed
    verdicts = {case.name: case.verdict for case in found.cases}
    assert verdicts.pop(name(3)) is Verdict.SLOWER
    assert verdicts.pop(name(5)) is Verdict.FASTER
    assert set(verdicts.values()) == {Verdict.SAME}
    assert found.cases[0].name == name(3), "the worst first"
    assert found.cases[0].time.low < 1.03 < found.cases[0].time.high


def test_the_threshold_decides_what_matters() -> None:
    pair = [made([0.0] * 20)], [made([math.log(1.02)] + [0.0] * 19)]
    assert compare(*pair, quiet(20), threshold=0.01).count(Verdict.SLOWER) == 1
    assert compare(*pair, quiet(20), threshold=0.05).count(Verdict.SAME) == 20


def test_equal_code_is_called_slower_in_less_than_one_case_of_a_thousand() -> None:
    rng = np.random.default_rng(3)
    alarms = comparisons_with_one = cases = 0
    for _ in range(40):
        # Noise of cases scatters like that of a GPU, 0.1 to 1 %.
        sds = 0.003 / np.sqrt(rng.chisquare(3, 100) / 3)
        calibration = noise_of(rng, sds)
        found = compare([made(rng.normal(scale=sds))], [made(rng.normal(scale=sds))], calibration)
        wrong = found.count(Verdict.SLOWER) + found.count(Verdict.FASTER)
        alarms, cases = alarms + wrong, cases + len(found.cases)
        comparisons_with_one += wrong > 0
    assert cases == 4000
    assert alarms <= 4, "of 4,000 two-sided: slower in less than 1 of 1,000"
    assert comparisons_with_one <= 4


def test_intervals_widen_with_the_number_of_cases() -> None:
    few = compare([made([0.0] * 10)], [made([0.0] * 10)], quiet(300))
    many = compare([made([0.0] * 300)], [made([0.0] * 300)], quiet(300))
    width = {len(each.cases): each.cases[0].time.high for each in (few, many)}
    assert width[300] > width[10]


def test_what_nobody_calibrated_needs_a_large_change() -> None:
    for change, verdict in ((1.14, Verdict.AMBIGUOUS), (1.3, Verdict.SLOWER)):
        logs = [math.log(change)] + [0.0] * 99
        found = {c.name: c for c in compare([made([0.0] * 100)], [made(logs)]).cases}
        assert found[name(0)].verdict is verdict
        assert found[name(0)].noise == "default"
        assert found[name(1)].needs == "3 runs per side, or a calibration (tools/calibrate)"
        assert found[name(1)].detectable > 0.15


def test_ambiguous_cases_say_what_they_need() -> None:
    noisy = noise_of(np.random.default_rng(5), [0.003] * 20)
    (case, *_) = compare([made([0.0] * 20)], [made([0.0] * 20)], noisy).cases
    assert case.verdict is Verdict.AMBIGUOUS
    assert case.needs and case.needs.endswith("runs per side")
    processes = int(case.needs.split()[0])
    sides = [[made([0.0] * 20) for _ in range(processes)] for _ in range(2)]
    after = {each.name: each for each in compare(*sides, noisy).cases}
    assert after[case.name].verdict is Verdict.SAME


def test_more_samples_are_asked_for_where_samples_are_the_noise() -> None:
    def unsure(variance: float) -> Run:
        one = made([0.0] * 20)
        wide = LogMedian(0.0, variance, 30)
        timed = {key: dataclasses.replace(c, medians=(wide, None)) for key, c in one.timed.items()}
        return dataclasses.replace(one, timed=timed)

    (case, *_) = compare([unsure(0.004**2)], [unsure(0.004**2)], quiet(20)).cases
    assert case.needs and "times the samples" in case.needs
    factor = int(case.needs.split()[0])
    assert f"{50 * factor} in each run" in case.needs
    better = [unsure(0.004**2 / factor)]
    assert compare(better, better, quiet(20)).count(Verdict.SAME) == 20


LEVELS = calibrated(
    {
        **{name(i): [0.0, 0.001, -0.001, 0.0, 0.114, 0.115] for i in range(3)},
        **{name(i): [0.0, 0.001, -0.001, 0.0005, -0.0005, 0.0] for i in range(3, 20)},
    }
)


@pytest.mark.parametrize(
    ("d", "verdict"),
    [
        (0.0, Verdict.SAME),
        # Three of twenty calibrated cases have a level so far away: this one may, too.
        (0.03, Verdict.AMBIGUOUS),
        (-0.11, Verdict.AMBIGUOUS),
        (0.139, Verdict.AMBIGUOUS),
        # Farther than two speeds may be.
        (0.16, Verdict.SLOWER),
        (math.log(10), Verdict.SLOWER),
    ],
)
def test_one_process_cannot_tell_two_speeds_from_a_change(d: float, verdict: Verdict) -> None:
    found = compare([made([0.0] * 20)], [made([0.0] * 10 + [d] + [0.0] * 9)], LEVELS)
    (case,) = (each for each in found.cases if each.name == name(10))
    assert case.verdict is verdict
    if verdict is Verdict.AMBIGUOUS:
        assert case.needs == "3 runs per side, or a calibration (tools/calibrate)"


def sides(base: Sequence[float], new: Sequence[float]) -> tuple[list[Run], list[Run]]:
    """Runes of twenty cases, of which the first has these log medians."""
    rng = np.random.default_rng(11)
    first, second = (
        [made([each, *rng.normal(scale=0.001, size=19)]) for each in side] for side in (base, new)
    )
    return first, second


def case_of(base: Sequence[float], new: Sequence[float]) -> Case:
    found = compare(*sides(base, new)).cases
    return next(each for each in found if each.name == name(0))


@pytest.mark.parametrize(
    ("base", "new", "change", "verdict"),
    [
        ([0, 0.001, 0.11], [0.11, 0.109, 0], 0.0, Verdict.AMBIGUOUS),
        ([0, 0.001, 0.11], [0.11, 0.109, 0.111], 0.0, Verdict.AMBIGUOUS),
        ([0, 0.001, 0.11], [0.03, 0.031, 0.14], 0.03, Verdict.SLOWER),
        ([0, 0.001, 0.002], [0.03, 0.031, 0.14], 0.03, Verdict.SLOWER),
        ([0, 0.001, 0.002], [0.03, 0.031, 0.032], 0.03, Verdict.SLOWER),
    ],
)
def test_levels_of_several_processes_are_compared(
    base: list[float], new: list[float], change: float, verdict: Verdict
) -> None:
    case = case_of(base, new)
    assert case.verdict is verdict
    assert math.log(case.time.ratio) == pytest.approx(change, abs=0.002)
    assert case.time.low < case.time.ratio < case.time.high


def test_where_many_cases_have_levels_two_of_them_part_by_chance() -> None:
    def run(values: Sequence[float], processes: int) -> list[Run]:
        rng = np.random.default_rng(2)
        return [made([*values, *rng.normal(scale=0.001, size=14)]) for _ in range(processes)]

    slow, fast = [0.08] * 6, [0.0] * 6
    for processes, verdict in ((3, Verdict.AMBIGUOUS), (5, Verdict.SLOWER)):
        base = [*run(fast, processes - 1), *run([0.0, *slow[1:]], 1)]
        new = run([0.08, *fast[1:]], processes)
        case = next(c for c in compare(base, new).cases if c.name == name(0))
        assert case.verdict is verdict
        assert (case.needs is None) == (processes == 5)
    assert case.detectable < 0.02


def test_processes_that_ran_the_same_kernel_are_compared(gpu: Record) -> None:
    rows = [timed_row(gpu, device_kernels=(kernel,)) for kernel in ("one", "other")]
    one, other = (made([d] + [0.0] * 19, row) for d, row in zip((0.0, 0.04), rows, strict=True))
    found = compare([one, one, other], [other, other, one])
    assert found.cases[0].time.ratio == pytest.approx(1.0)
    assert not found.regressed


def test_a_case_that_scatters_keeps_its_own_variance() -> None:
    rng = np.random.default_rng(4)
    quiet = rng.normal(scale=0.001, size=(6, 40))
    quiet[:, 0] = [0.0, 0.012, 0.025, 0.02, 0.035, 0.047]
    found = compare([made(each) for each in quiet[:3]], [made(each) for each in quiet[3:]])
    case = next(each for each in found.cases if each.name == name(0))
    assert case.verdict is Verdict.AMBIGUOUS
    assert case.estimate.between > 0.008**2


@pytest.mark.parametrize("processes", [1, 3])
def test_ten_times_slower_is_a_regression_whatever_the_code(processes: int, gpu: Record) -> None:
    row = timed_row(gpu, fingerprint="equal")
    base, new = (made([d] * 28, row) for d in (0.0, math.log(10)))
    found = compare([base] * processes, [new] * processes)
    assert found.count(Verdict.SLOWER) == 28
    assert "driver" in (found.cases[0].suspect or "")


@pytest.mark.parametrize("processes", [3, 5])
def test_what_is_detectable_is_found_in_nine_of_ten_cases(processes: int, gpu: Record) -> None:
    source = Simulated(gpu, "independent", 1)
    rows = list(source.rows.values())
    found = []
    for _ in range(60):
        state = source.rng.bit_generator.state
        trial = source.trial(processes)
        stated = compare(trial.base, trial.new).detectable
        source.rng.bit_generator.state = state
        trial = source.trial(processes, stated)
        found.append(compare(trial.base, trial.new).count(Verdict.SLOWER) / len(rows))
    assert np.mean(found) == pytest.approx(0.9, abs=0.03)


def timed_row(gpu: Record, **changes: Any) -> Row:
    row = next(row for row in gpu.rows if row.status == "timed" and row.precision == "f32")
    return dataclasses.replace(
        row, **{"clocks": clocks(1.9e9, 700.0, 0.0), **dict.fromkeys("mnk", 2048), **changes}
    )


CAPPED = clocks(1.7e9, 698.0, 1.0, "power cap")
CODE = DeviceCode("kernel", "c0de", 32, 0, 0, 256, 64, 0.5)


@pytest.mark.parametrize(
    ("base", "new", "cycles", "processes", "verdict", "suspect"),
    [
        ({}, {}, 0.03, 1, Verdict.SLOWER, None),
        ({}, {}, 0.0, 1, Verdict.SLOWER, "clock 1900 MHz to 1900 MHz"),
        (
            {"fingerprint": "a"},
            {"fingerprint": "b"},
            0.03,
            1,
            Verdict.SLOWER,
            "the machine code changed",
        ),
        (
            {"fingerprint": "a"},
            {"fingerprint": "a"},
            0.03,
            1,
            Verdict.SLOWER,
            "the machine code is the same: driver, clock, power limit or operands",
        ),
        (
            {"fingerprint": "a"},
            {"fingerprint": "a"},
            0.03,
            3,
            Verdict.SLOWER,
            "the machine code is the same: driver, clock, power limit or operands",
        ),
        (
            {"fingerprint": "a", "device_code": (CODE,)},
            {"fingerprint": "a", "device_code": (dataclasses.replace(CODE, blocks=128),)},
            0.03,
            1,
            Verdict.SLOWER,
            "the machine code changed",
        ),
        (
            {"device_kernels": ("small",)},
            {"device_kernels": ("large",)},
            0.03,
            1,
            Verdict.SLOWER,
            "another GPU kernel ran: large",
        ),
    ],
)
def test_suspects(
    gpu: Record,
    base: dict[str, Any],
    new: dict[str, Any],
    cycles: float,
    processes: int,
    verdict: Verdict,
    suspect: str | None,
) -> None:
    before = made([0.0] * 20, timed_row(gpu, **base), [0.0] * 20)
    after = made([0.03] * 20, timed_row(gpu, **new), [cycles] * 20)
    found = compare([before] * processes, [after] * processes, quiet(20))
    assert {case.verdict for case in found.cases} == {verdict}
    assert {case.suspect for case in found.cases} == {suspect}


@pytest.mark.parametrize("share", [0.2, 0.6])
def test_a_clock_that_explains_less_than_half_is_no_suspect(share: float, gpu: Record) -> None:
    before = made([0.0] * 20, timed_row(gpu), [0.0] * 20)
    after = made([0.015] * 20, timed_row(gpu, clocks=CAPPED), [0.015 * share] * 20)
    found = compare([before], [after], quiet(20))
    assert {case.suspect is None for case in found.cases} == {share > 0.5}


def test_a_card_that_was_held_down_is_the_suspect(gpu: Record) -> None:
    calibration = quiet(20)
    held = dataclasses.replace(
        calibration,
        rows=tuple(dataclasses.replace(row, throttled_share=1.0) for row in calibration.rows),
    )
    before = made([0.0] * 20, timed_row(gpu), [0.0] * 20)
    after = made([0.03] * 20, timed_row(gpu, clocks=CAPPED), [0.0] * 20)
    for processes, verdict in ((1, Verdict.AMBIGUOUS), (3, Verdict.SLOWER)):
        found = compare([before] * processes, [after] * processes, held)
        assert {case.verdict for case in found.cases} == {verdict}
        assert found.cases[0].suspect == "clock 1900 MHz to 1700 MHz (power cap at 698 W)"
    capped = made([0.0] * 20, timed_row(gpu, clocks=CAPPED), [0.0] * 20)
    for slowdown, verdict in ((0.03, Verdict.AMBIGUOUS), (0.2, Verdict.SLOWER)):
        slower = made([slowdown] * 20, timed_row(gpu, clocks=CAPPED), [0.0] * 20)
        for case in compare([capped] * 5, [slower] * 5, held).cases:
            assert case.verdict == verdict
            assert verdict is Verdict.SLOWER or "a fixed clock" in (case.needs or "")


def test_most_cases_that_shift_together_are_told_in_one_line() -> None:
    shifted = compare([made([0.0] * 20)], [made([0.02] * 18 + [0.0] * 2)], quiet(20))
    assert shifted.common_shift
    assert shifted.common_shift.startswith("common shift: 18 of 20 cases are slower, by +2.02 %")
    half = compare([made([0.0] * 20)], [made([0.02, -0.02] * 10)], quiet(20))
    assert half.common_shift is None


def with_(run: Run, **changes: Any) -> Run:
    return dataclasses.replace(run, **changes)


def test_cases_that_one_side_lacks_are_named(gpu: Record) -> None:
    run = run_of(gpu)
    first, second, third, *_ = run.timed
    reduced = {key: case for key, case in run.timed.items() if key not in (first, second, third)}
    less = with_(
        run,
        timed=reduced,
        untimed={**run.untimed, first: "no memory", second: "c[0] = nan"},
        failed=run.failed | {second},
    )
    found = compare([run], [less])
    assert found.no_longer_timed == {first: "no memory"}
    assert found.failed == {second: "c[0] = nan"}
    assert found.only_base == [third]
    assert found.regressed
    assert set(found.missing) == {first, third}
    back = compare([less], [run])
    assert set(back.newly_timed) == {first, second}
    assert back.only_new == [third]
    assert not back.regressed
    assert not compare([less], [less]).regressed
    assert second in compare([less], [less]).otherwise_failed


def test_a_wrong_result_in_one_of_several_processes_is_a_regression(gpu: Record) -> None:
    run = run_of(gpu)
    first = next(iter(run.timed))
    rest = {key: case for key, case in run.timed.items() if key != first}
    wrong = with_(run, timed=rest, untimed={first: "wrong"}, failed=frozenset([first]))
    found = compare([run], [run, wrong])
    assert list(found.failed) == [first]
    assert first not in [case.name for case in found.cases]


def test_runs_without_a_common_case_are_refused() -> None:
    empty = Run(Path("empty.json"), None, {}, {})
    with pytest.raises(RecordError, match=r"empty\.json: has no timed case that made\.json has"):
        compare([made([0.0])], [empty])


def test_single_values_of_other_tools_have_the_default_noise() -> None:
    def foreign(seconds: float) -> Run:
        timed = {"other": Timed("other", (seconds,))}
        return Run(Path("other.json"), None, timed, {})

    assert compare([foreign(1.0)], [foreign(1.01)]).count(Verdict.AMBIGUOUS) == 1
    assert compare([foreign(1.0)], [foreign(1.04)]).count(Verdict.AMBIGUOUS) == 1
    assert compare([foreign(1.0)], [foreign(1.5)]).count(Verdict.SLOWER) == 1
    assert compare([foreign(1.0)], [foreign(1e40)]).cases[0].time.high > 1e40
