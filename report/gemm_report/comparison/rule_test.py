"""The rule on made log medians: [process, case]; studies/compare.py measures its rates."""

import math

import numpy as np
import pytest

from gemm_report.comparison.rule import Judgement, Verdict, judge, levels, parted

CASES = 100
Sides = tuple[np.ndarray, np.ndarray]


def sides(processes: int = 3, sd: float = 0.001, seed: int = 1) -> Sides:
    """Equal processes."""
    random = np.random.default_rng(seed)
    base, new = (random.normal(scale=sd, size=(processes, CASES)) for _ in range(2))
    return base, new


def judged(both: Sides, kind: str = "GPU", cycles: Sides | None = None) -> Judgement:
    return judge(*both, [kind] * both[0].shape[1], cycles=cycles)


def verdicts(found: Judgement) -> list[Verdict]:
    return [case.verdict for case in found.cases]


def test_equal_processes_are_the_same() -> None:
    found = judged(sides())
    assert verdicts(found).count(Verdict.SAME) > 90
    assert Verdict.SLOWER not in verdicts(found)
    assert not found.doubtful
    assert found.unseen(0.1) == 0


@pytest.mark.parametrize("kind", ["GPU", "throttled", "CPU"])
@pytest.mark.parametrize("slower", [1, 10, 50, 60, 100])
def test_slower_cases_are_found_however_many_they_are(kind: str, slower: int) -> None:
    base, new = sides()
    new[:, :slower] += math.log(1.05)
    found = judged((base, new), kind)
    assert set(verdicts(found)[:slower]) == {Verdict.SLOWER}
    assert Verdict.SLOWER not in verdicts(found)[slower:]
    assert found.cases[0].d == pytest.approx(math.log(1.05), abs=0.005)
    faster = judged((new, base), kind)
    assert set(verdicts(faster)[:slower]) == {Verdict.FASTER}


def test_a_process_that_moves_as_a_whole_hides_no_single_case() -> None:
    base, new = sides()
    base += np.array([[0.0], [0.01], [0.005]])
    new += np.array([[0.012], [0.0], [0.004]])
    new[:, 3] += 0.03
    found = judged((base, new))
    assert verdicts(found)[3] is Verdict.SLOWER
    assert verdicts(found).count(Verdict.SLOWER) == 1
    assert Verdict.SAME not in verdicts(found), "that all moved by 1 % is not excluded"


def test_a_whole_process_apart_is_not_green() -> None:
    base, new = sides()
    base[0] += 0.06
    new += 0.05
    assert judged((base, new)).doubtful


@pytest.mark.parametrize(
    ("base", "new", "verdict"),
    [
        ([0, 0.001, 0.11], [0.11, 0.109, 0], Verdict.AMBIGUOUS),
        ([0, 0.001, 0.11], [0.11, 0.109, 0.111], Verdict.AMBIGUOUS),
        ([0, 0.001, 0.11], [0.16, 0.161, 0.159], Verdict.SLOWER),
        ([0, 0.001, 0.002], [0.18, 0.181, 0.182], Verdict.SLOWER),
        # Three levels are none, but a case that scatters widely.
        ([0, 0.03, 0.06], [0.07, 0.10, 0.13], Verdict.AMBIGUOUS),
    ],
)
def test_levels_that_are_closest_are_compared(
    base: list[float], new: list[float], verdict: Verdict
) -> None:
    both = sides()
    both[0][:, 0], both[1][:, 0] = base, new
    case = judged(both).cases[0]
    assert case.verdict is verdict
    if base[-1] == 0.11:
        assert case.noticed > 0.11, "a slowdown up to the other level hides"


@pytest.mark.parametrize(("processes", "verdict"), [(3, Verdict.AMBIGUOUS), (6, Verdict.SLOWER)])
def test_as_many_changes_as_chance_parts_are_ambiguous(processes: int, verdict: Verdict) -> None:
    base, new = sides(processes)
    base[0, :6] += 0.08
    new[0, :6] += 0.08
    new[1, :6] += 0.08
    new[:, 50] += 0.05
    found = judged((base, new))
    assert found.cases[50].verdict is verdict
    assert found.doubtful == (verdict is Verdict.AMBIGUOUS), "and not green"
    new[:, 51:60] += 0.06
    assert verdicts(judged((base, new))).count(Verdict.SLOWER) >= 9
    assert parted([1 / 3] * 6, 3) == 1
    assert parted([], 3) == 0


@pytest.mark.parametrize("processes", [1, 2])
def test_fewer_than_three_processes_tell_only_large_changes(processes: int) -> None:
    base, new = sides(processes)
    new[:, 0] += math.log(1.14)
    new[:, 1] += math.log(1.5)
    found = judged((base, new))
    assert verdicts(found).count(Verdict.SLOWER) == 1
    assert found.cases[1].verdict is Verdict.SLOWER
    assert found.unseen(0.1) == CASES
    assert found.unseen(0.3) == 0


def test_two_processes_show_the_change_of_a_case_with_what_is_common() -> None:
    base, new = sides(processes=2)
    new[:, :50] -= 0.05
    new[:, 50:90] -= 0.03
    found = judged((base, new))
    assert found.cases[0].d == pytest.approx(-0.05, abs=0.005)
    assert found.cases[95].d == pytest.approx(0, abs=0.005)


def test_a_case_that_scatters_keeps_its_own_spread() -> None:
    base, new = sides()
    base[:, 0], new[:, 0] = [0.0, 0.012, 0.025], [0.03, 0.042, 0.055]
    found = judged((base, new))
    assert found.cases[0].verdict is Verdict.AMBIGUOUS
    assert found.cases[0].sd > 5 * found.cases[1].sd
    assert found.unseen(0.05) == 1
    base[:, 0] = new[:, 0] = [0.0, 0.02, 0.045]
    assert judged((base, new + 0.05)).cases[0].verdict is Verdict.SLOWER, "with all others"


@pytest.mark.parametrize(
    ("kind", "cycles", "verdict"),
    [
        ("throttled", 0.0, Verdict.CLOCK),
        ("throttled", 0.05, Verdict.SLOWER),
        ("GPU", 0.0, Verdict.SLOWER),
        ("throttled", math.nan, Verdict.SLOWER),
    ],
)
@pytest.mark.parametrize("slower", [5, 100])
def test_another_time_with_equal_cycles_at_the_power_limit_is_the_clock(
    kind: str, cycles: float, verdict: Verdict, slower: int
) -> None:
    both, at_clock = sides(), sides()
    both[1][:, :slower] += 0.05
    at_clock[1][:, :slower] += cycles
    found = judged(both, kind, at_clock)
    assert set(verdicts(found)[:slower]) == {verdict}
    assert found.doubtful == (verdict is Verdict.CLOCK)


def test_processes_that_lack_a_case_do_not_count() -> None:
    base, new = sides(4)
    new[0, 2] = math.nan
    new[1:, 2] += 0.05
    case = judged((base, new)).cases[2]
    assert case.verdict is Verdict.SLOWER
    assert set(case.new) == {1, 2, 3}
    assert case.processes == 3


def test_few_cases_have_no_common_shift() -> None:
    base, new = sides()
    found = judged((base[:, :4], new[:, :4] + 0.05))
    assert not found.common
    assert set(verdicts(found)) == {Verdict.SLOWER}


def test_what_is_detectable_is_found_in_nine_of_ten_cases() -> None:
    found = []
    for seed in range(40):
        base, new = sides(seed=seed)
        stated = np.array([case.detectable for case in judged((base, new)).cases])
        new[:, ::10] += stated[::10]
        found += [v is Verdict.SLOWER for v in verdicts(judged((base, new)))[::10]]
    assert np.mean(found) > 0.85


def test_levels_are_far_apart() -> None:
    assert levels(np.array([0.0, 0.001, 0.1]), 1e-6) == [[0, 1], [2]]
    assert levels(np.array([0.1, math.nan, 0.0]), 1e-6) == [[2], [0]]
    assert levels(np.array([0.0, 0.01, 0.02]), 1e-6) == [[0, 1, 2]], "a gap of 1.5 %"
    assert levels(np.array([0.0, 0.1]), 0.03**2) == [[0, 1]], "and of five deviations"
