import dataclasses
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gemm_report.comparison.noise.calibration import Calibration, Noise
from gemm_report.comparison.noise.within import LogMedian
from gemm_report.comparison.run import Run, Timed, run_of
from gemm_report.comparison.verdict import Interval, Process, Verdict, compare, process
from gemm_report.conftest import clocks
from gemm_report.document import RecordError
from gemm_report.record import DeviceCode, Record, Row

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
) -> Process:
    """A process with these log medians."""
    names = [name(i) for i in range(len(logs))]

    def medians(values: Sequence[float]) -> dict[str, LogMedian]:
        pairs = zip(names, values, strict=True)
        return {each: dataclasses.replace(WITHIN, value=value) for each, value in pairs}

    timed = {each: Timed(each, (1.0,) * 50, row) for each in names}
    run = Run(Path("made.json"), "Test GPU", timed, {})
    return Process(run, medians(logs), medians(cycles) if cycles is not None else {})


def calibrated(logs: Mapping[str, Sequence[float]]) -> Calibration:
    """A calibration in which the cases had these log medians, one for each process."""
    rows = [
        Noise(
            label=each.split("/")[0],
            precision="f32",
            **dict.fromkeys("mnk", 2048),
            medians_seconds=tuple(math.exp(value) for value in values),
            medians_cycles=tuple(math.exp(value) for value in values),
            spread_at_clock=None,
            throttled_share=None,
        )
        for each, values in logs.items()
    ]
    return Calibration(Path("noise.json"), "Test GPU", None, None, None, "0123abc", 6, tuple(rows))


def noise_of(rng: np.random.Generator, sds: Sequence[float], processes: int = 6) -> Calibration:
    return calibrated({name(i): rng.normal(scale=sd, size=processes) for i, sd in enumerate(sds)})


def quiet(cases: int) -> Calibration:
    return noise_of(np.random.default_rng(7), [0.001] * cases)


def test_a_run_is_the_same_as_itself(gpu: Record) -> None:
    one = process(run_of(gpu))
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
    for change, verdict in ((1.05, Verdict.AMBIGUOUS), (1.3, Verdict.SLOWER)):
        logs = [math.log(change)] + [0.0] * 99
        found = {c.name: c for c in compare([made([0.0] * 100)], [made(logs)]).cases}
        assert found[name(0)].verdict is verdict
        assert found[name(0)].noise == "default"
        assert found[name(1)].needs == "a calibration (tools/calibrate), or 3 runs per side"


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
    def unsure(variance: float) -> Process:
        one = made([0.0] * 20)
        wide = {key: LogMedian(0.0, variance, 30) for key in one.seconds}
        return dataclasses.replace(one, seconds=wide)

    (case, *_) = compare([unsure(0.004**2)], [unsure(0.004**2)], quiet(20)).cases
    assert case.needs and "times the samples" in case.needs
    factor = int(case.needs.split()[0])
    assert f"{50 * factor} in each run" in case.needs
    better = [unsure(0.004**2 / factor)]
    assert compare(better, better, quiet(20)).count(Verdict.SAME) == 20


LEVELS = calibrated(
    {
        name(0): [0.0, 0.001, -0.001, 0.0, 0.114, 0.115],
        **{name(i): [0.0, 0.001, -0.001, 0.0005, -0.0005, 0.0] for i in range(1, 20)},
    }
)


@pytest.mark.parametrize(
    ("d", "verdict"),
    [
        (0.0, Verdict.SAME),
        (0.03, Verdict.SLOWER),
        (0.1145, Verdict.AMBIGUOUS),
        (-0.1145, Verdict.AMBIGUOUS),
        (0.15, Verdict.SLOWER),
        (-0.03, Verdict.FASTER),
        # As if from the slow level to the fast one, and slower: but the time is shorter.
        (-0.085, Verdict.AMBIGUOUS),
    ],
)
def test_another_level_of_equal_code_is_no_change(d: float, verdict: Verdict) -> None:
    found = compare([made([0.0] * 20)], [made([d] + [0.0] * 19)], LEVELS)
    (case,) = (each for each in found.cases if each.name == name(0))
    assert case.verdict is verdict
    assert (case.offset is None) == (abs(d) < 0.05)
    if case.offset and case.verdict is Verdict.AMBIGUOUS:
        assert case.suspect and "was seen at two speeds" in case.suspect
        assert case.needs == "another run of NEW, until one is at the level of BASE"


def test_several_processes_average_their_levels() -> None:
    slow, fast = made([0.1145] + [0.0] * 19), made([0.0] * 20)
    found = compare([slow, fast], [fast, fast, slow], LEVELS)
    (case,) = (each for each in found.cases if each.name == name(0))
    assert case.verdict is Verdict.AMBIGUOUS
    assert case.noise == "calibration and processes"


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
            Verdict.AMBIGUOUS,
            "not the machine code, which is the same",
        ),
        (
            {"fingerprint": "a"},
            {"fingerprint": "a"},
            0.03,
            3,
            Verdict.SLOWER,
            "not the machine code, which is the same",
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


def test_most_cases_that_shift_together_are_told_in_one_line() -> None:
    shifted = compare([made([0.0] * 20)], [made([0.02] * 18 + [0.0] * 2)], quiet(20))
    assert shifted.common_shift
    assert shifted.common_shift.startswith("common shift: 18 of 20 cases are slower, by +2.02 %")
    half = compare([made([0.0] * 20)], [made([0.02, -0.02] * 10)], quiet(20))
    assert half.common_shift is None


def with_(run: Run, **changes: Any) -> Process:
    return process(dataclasses.replace(run, **changes))


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
    found = compare([process(run)], [less])
    assert [(each.name, each.reason) for each in found.no_longer_timed] == [(first, "no memory")]
    assert [(each.name, each.reason) for each in found.failed] == [(second, "c[0] = nan")]
    assert found.only_base == (third,)
    assert found.regressed
    back = compare([less], [process(run)])
    assert set(back.newly_timed) == {first, second}
    assert back.only_new == (third,)
    assert not back.regressed
    assert not compare([less], [less]).regressed
    assert second in [each.name for each in compare([less], [less]).otherwise_failed]


def test_a_wrong_result_in_one_of_several_processes_is_a_regression(gpu: Record) -> None:
    run = run_of(gpu)
    first = next(iter(run.timed))
    rest = {key: case for key, case in run.timed.items() if key != first}
    wrong = with_(run, timed=rest, untimed={first: "wrong"}, failed=frozenset([first]))
    found = compare([process(run)], [process(run), wrong])
    assert [each.name for each in found.failed] == [first]
    assert first not in [case.name for case in found.cases]


def test_runs_without_a_common_case_are_refused() -> None:
    empty = Process(Run(Path("empty.json"), None, {}, {}), {}, {})
    with pytest.raises(RecordError, match=r"empty\.json: has no timed case that made\.json has"):
        compare([made([0.0])], [empty])


def test_single_values_of_other_tools_have_the_default_noise() -> None:
    def foreign(seconds: float) -> Process:
        timed = {"other": Timed("other", (seconds,))}
        return process(Run(Path("other.json"), None, timed, {}))

    assert compare([foreign(1.0)], [foreign(1.01)]).count(Verdict.AMBIGUOUS) == 1
    assert compare([foreign(1.0)], [foreign(1.5)]).count(Verdict.SLOWER) == 1
    assert compare([foreign(1.0)], [foreign(1e40)]).cases[0].time.high > 1e40
