"""What both sides timed, and how a comparison ends."""

import dataclasses
import math
from typing import Any

import pytest

from gemm_report.comparison.conftest import name, processes, side
from gemm_report.comparison.rule import Verdict
from gemm_report.comparison.run import Run
from gemm_report.comparison.verdict import Ending, common_lines, compare
from gemm_report.conftest import clocks
from gemm_report.document import RecordError
from gemm_report.record import DeviceCode, Plan


def test_the_worst_comes_first_and_the_threshold_decides_what_matters() -> None:
    both = processes([0.0, 0.02, 0.0, 0.06] + [0.0] * 16)
    found = compare(*both)
    assert [case.name for case in found.cases[:2]] == [name(3), name(1)]
    assert found.cases[0].interval[0] < math.exp(0.06) < found.cases[0].interval[1]
    assert compare(*both, threshold=0.03).count(Verdict.SLOWER) == 1
    assert compare(*both, threshold=0.1).count(Verdict.SAME) == 20


CODE = DeviceCode("kernel", "c0de", 32, 0, 0, 256, 64, 0.5)
OTHER_CODE = dataclasses.replace(CODE, blocks=128)
UNKNOWN = "whether the machine code changed is not known"
CHANGED = "the machine code changed"
CLOCKS = {"clocks": clocks(1.9e9, 700.0, 0.0)}
CAPPED = {"clocks": clocks(1.7e9, 698.0, 1.0, "power cap")}


@pytest.mark.parametrize(
    ("base", "new", "cycles", "suspect"),
    [
        ({}, {}, 0.03, UNKNOWN),
        (CLOCKS, CLOCKS, 0.0, f"clock 1900 MHz to 1900 MHz; {UNKNOWN}"),
        (CLOCKS, CAPPED, 0.0, f"clock 1900 MHz to 1700 MHz (power cap at 698 W); {UNKNOWN}"),
        ({"fingerprint": "a"}, {"fingerprint": "b"}, 0.03, CHANGED),
        (
            {"fingerprint": "a"},
            {"fingerprint": "a"},
            0.03,
            "the machine code is the same: driver, clock, power limit or operands",
        ),
        (
            {"fingerprint": "a", "device_code": (CODE,)},
            {"fingerprint": "a", "device_code": (OTHER_CODE,)},
            0.03,
            CHANGED,
        ),
        (
            {"plan": Plan("small", "tried")},
            {"plan": Plan("large", "cached")},
            0.03,
            f"another plan: small in BASE, large in NEW; {UNKNOWN}",
        ),
        ({"device_kernels": ("s",)}, {"device_kernels": ("l",)}, 0.03, "another GPU kernel ran: l"),
    ],
)
def test_machine_code_is_a_suspect_and_no_reason_to_be_silent(
    base: dict[str, Any], new: dict[str, Any], cycles: float, suspect: str
) -> None:
    names = [name(i) for i in range(20)]
    before = side(dict.fromkeys(names, 0.0), cycles=0.0, **base)
    after = side(dict.fromkeys(names, 0.03), cycles=cycles, **new)
    found = compare([before] * 3, [after] * 3)
    # At the power limit the time that the clock took is no slower kernel, and not green.
    verdict = Verdict.CLOCK if new is CAPPED else Verdict.SLOWER
    assert {case.verdict for case in found.cases} == {verdict}
    assert {case.suspect for case in found.cases} == {suspect}
    assert found.ending is (Ending.NOT_ENOUGH if new is CAPPED else Ending.REGRESSION)
    kind = "throttled" if new is CAPPED else "GPU"
    (line,) = common_lines(found)
    assert line.startswith(f"common shift of the {kind} cases: {verdict.value}, +3.05 %")


def test_everything_five_per_cent_slower_is_red_among_cases_at_two_speeds() -> None:
    both = processes([0.05] * 40)
    for its in both:
        for p, run in enumerate(its):
            for i in range(8):
                row = run.timed[name(i)]
                slow = 1.08 if (i + p) % 3 == 0 else 1.0
                seconds = (slow * row.samples_seconds[0],)
                run.timed[name(i)] = dataclasses.replace(  # type: ignore[index]
                    row, samples_seconds=seconds
                )
    found = compare(*both)
    assert (found.two_speeds, found.ending) == (8, Ending.REGRESSION)
    assert found.count(Verdict.SLOWER) >= 38


WRONG, SKIPPED = "c[0] = nan", "no memory"


def without(run: Run, why: str | None) -> Run:
    """The same in which a case has no time: wrong, skipped, or gone."""
    case = name(4)
    timed = {key: each for key, each in run.timed.items() if key != case}
    failed = frozenset([case]) if why == WRONG else frozenset()
    return dataclasses.replace(run, timed=timed, untimed={case: why} if why else {}, failed=failed)


@pytest.mark.parametrize(
    ("base", "new", "ending"),
    [
        # Why the case has no time in one process of BASE or of NEW, or in all of them.
        ([], [WRONG], Ending.WRONG),
        ([WRONG] * 3, [WRONG] * 3, Ending.WRONG),
        ([SKIPPED] * 3, [WRONG] * 3, Ending.WRONG),
        ([None] * 3, [WRONG], Ending.WRONG),  # a new kernel
        ([], [SKIPPED], Ending.MISSING),
        ([], [SKIPPED] * 3, Ending.MISSING),
        ([], [None], Ending.MISSING),
        ([SKIPPED] * 3, [SKIPPED] * 3, Ending.OK),
        ([WRONG] * 3, [], Ending.OK),
        ([None] * 3, [], Ending.OK),
    ],
)
def test_wrong_and_lost_cases(
    base: list[str | None], new: list[str | None], ending: Ending
) -> None:
    sides = [
        [without(run, lost[i]) if i < len(lost) else run for i, run in enumerate(its)]
        for its, lost in zip(processes([0.0] * 20), (base, new), strict=True)
    ]
    found = compare(*sides)
    assert found.ending is ending
    told = {**found.failed, **found.missing}
    assert bool(told) == (ending is not Ending.OK)
    if told:
        assert told[name(4)].endswith(new[0] or "it is gone")
        assert ("processes" in told[name(4)]) == (ending is Ending.MISSING)
    assert found.added == ([name(4)] if base and not new else [])
    allowed = compare(*sides, allow_missing=True).ending
    assert allowed is (Ending.OK if ending is Ending.MISSING else ending)


def test_an_ambiguous_case_is_green_unless_it_seems_much_slower_or_any_counts() -> None:
    both = processes([0.0] * 40)
    for its, values in zip(both, ((0.0, 0.1, 0.2), (0.0, 0.1, 0.27)), strict=True):
        for run, value in zip(its, values, strict=True):
            run.timed.update(side({name(7): value}).timed)  # type: ignore[attr-defined]
    found = compare(*both)
    (case,) = (each for each in found.cases if each.name == name(7))
    assert case.verdict is Verdict.AMBIGUOUS
    assert case.needs and case.needs.endswith("runs per side")
    assert (found.ending, found.unseen) == (Ending.OK, 1)
    assert compare(*both, strict=True).ending is Ending.NOT_ENOUGH
    assert compare(*both, wanted=0.02).ending is Ending.NOT_ENOUGH


def test_runs_without_a_common_case_are_refused() -> None:
    with pytest.raises(RecordError, match=r"gpu\.json: has no timed case that .*gpu\.json has"):
        compare([side({})], [side({"other": 0.0})])
