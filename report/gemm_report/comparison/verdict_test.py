"""What both sides timed, and how a comparison ends."""

import dataclasses
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gemm_report.comparison.rule import Verdict
from gemm_report.comparison.run import Run, Timed, run_of
from gemm_report.comparison.verdict import Comparison, Ending, common_lines, compare
from gemm_report.conftest import clocks
from gemm_report.document import RecordError
from gemm_report.record import DeviceCode, Plan, Record, Row


def name(i: int) -> str:
    return f"Kernel{i}/f32/2048x2048x2048"


def made(
    logs: Sequence[float],
    row: Row | None = None,
    cycles: Sequence[float] | None = None,
    record: Record | None = None,
) -> Run:
    """A process with these log medians."""
    cases = {}
    for i, value in enumerate(logs):
        at_clock = (math.exp(cycles[i]),) if cycles else ()
        cases[name(i)] = Timed(name(i), (math.exp(value),), row, at_clock)
    return Run(Path("made.json"), "Test GPU", cases, {}, record)


def processes(
    changes: Sequence[float], count: int = 3, seed: int = 1, **of_run: Any
) -> tuple[list[Run], list[Run]]:
    """Two sides of equal processes, but for these changes of NEW."""
    random = np.random.default_rng(seed)
    noise = random.normal(scale=0.001, size=(2, count, len(changes)))
    base = [made(logs, **of_run) for logs in noise[0]]
    return base, [made(logs, **of_run) for logs in noise[1] + np.array(changes)]


def timed_row(gpu: Record, **changes: Any) -> Row:
    row = next(row for row in gpu.rows if row.status == "timed" and row.precision == "f32")
    return dataclasses.replace(
        row, **{"clocks": clocks(1.9e9, 700.0, 0.0), **dict.fromkeys("mnk", 2048), **changes}
    )


CAPPED = clocks(1.7e9, 698.0, 1.0, "power cap")
CODE = DeviceCode("kernel", "c0de", 32, 0, 0, 256, 64, 0.5)


@pytest.mark.parametrize(
    ("changes", "count", "wanted", "ending"),
    [
        ([0.0] * 20, 3, 0.1, Ending.OK),
        ([0.05] * 20, 3, 0.1, Ending.REGRESSION),
        ([0.05] + [0.0] * 19, 3, 0.1, Ending.REGRESSION),
        ([-0.05] + [0.0] * 19, 3, 0.1, Ending.OK),
        ([0.0] * 20, 2, 0.1, Ending.NOT_ENOUGH),
        ([0.05] * 20, 1, 0.1, Ending.NOT_ENOUGH),
        ([0.0] * 20, 1, 0.3, Ending.OK),
        ([0.12] + [0.0] * 19, 1, 0.3, Ending.OK),
        ([math.log(10)] * 20, 1, 0.1, Ending.REGRESSION),
    ],
)
def test_endings(changes: list[float], count: int, wanted: float, ending: Ending) -> None:
    found = compare(*processes(changes, count), wanted=wanted)
    assert found.ending is ending
    assert found.regressed == (ending is Ending.REGRESSION)


def test_a_run_is_the_same_as_itself(gpu: Record) -> None:
    run = run_of(gpu)
    run = dataclasses.replace(run, failed=frozenset())
    found = compare([run] * 3, [run] * 3)
    assert len(found.cases) > 20
    assert all(case.ratio == 1 for case in found.cases)
    assert found.count(Verdict.SAME) > 15
    assert found.ending is Ending.OK
    assert not common_lines(found)
    assert not (found.missing or found.failed or found.added)


def test_the_worst_comes_first_and_the_threshold_decides_what_matters() -> None:
    both = processes([0.0, 0.02, 0.0, 0.06] + [0.0] * 16)
    found = compare(*both)
    assert [case.name for case in found.cases[:2]] == [name(3), name(1)]
    assert found.cases[0].interval[0] < math.exp(0.06) < found.cases[0].interval[1]
    assert compare(*both, threshold=0.03).count(Verdict.SLOWER) == 1
    assert compare(*both, threshold=0.1).count(Verdict.SAME) == 20


@pytest.mark.parametrize("scale", [1.0, 1e-30, 1e30])
def test_single_values_of_other_tools_are_compared(scale: float) -> None:
    def foreign(seconds: float) -> Run:
        return Run(Path("other.json"), None, {"other": Timed("other", (seconds * scale,))}, {})

    for factor, verdict in ((1.01, Verdict.AMBIGUOUS), (1.5, Verdict.SLOWER)):
        assert compare([foreign(1.0)], [foreign(factor)]).cases[0].verdict is verdict
    assert compare([foreign(1.0)], [foreign(1e40)]).cases[0].interval[1] > 1e40


@pytest.mark.parametrize(
    ("base", "new", "cycles", "suspect"),
    [
        ({}, {}, 0.03, "whether the machine code changed is not known"),
        ({}, {}, 0.0, "clock 1900 MHz to 1900 MHz; whether the machine code changed is not known"),
        ({"fingerprint": "a"}, {"fingerprint": "b"}, 0.03, "the machine code changed"),
        (
            {"fingerprint": "a"},
            {"fingerprint": "a"},
            0.03,
            "the machine code is the same: driver, clock, power limit or operands",
        ),
        (
            {"fingerprint": "a", "device_code": (CODE,)},
            {"fingerprint": "a", "device_code": (dataclasses.replace(CODE, blocks=128),)},
            0.03,
            "the machine code changed",
        ),
        (
            {"plan": Plan("small", "tried")},
            {"plan": Plan("large", "cached")},
            0.03,
            "another plan: small in BASE, large in NEW; "
            "whether the machine code changed is not known",
        ),
        (
            {"device_kernels": ("small",)},
            {"device_kernels": ("large",)},
            0.03,
            "another GPU kernel ran: large",
        ),
    ],
)
def test_machine_code_is_a_suspect_and_no_reason_to_be_silent(
    gpu: Record, base: dict[str, Any], new: dict[str, Any], cycles: float, suspect: str
) -> None:
    before = made([0.0] * 20, timed_row(gpu, **base), [0.0] * 20, gpu)
    after = made([0.03] * 20, timed_row(gpu, **new), [cycles] * 20, gpu)
    found = compare([before] * 3, [after] * 3)
    assert {case.verdict for case in found.cases} == {Verdict.SLOWER}
    assert {case.suspect for case in found.cases} == {suspect}
    (line,) = common_lines(found)
    assert line.startswith("common shift of the GPU cases: slower, +3.05 %")


@pytest.mark.parametrize("fingerprints", [("a", "a"), (None, None), ("a", "b")])
def test_everything_five_per_cent_slower_is_red_whatever_the_code(
    gpu: Record, fingerprints: tuple[str | None, str | None]
) -> None:
    """Among cases of which many run at two speeds."""
    rows = [timed_row(gpu, fingerprint=each) for each in fingerprints]
    base, new = processes([0.05] * 40)
    for side, row in ((base, rows[0]), (new, rows[1])):
        for p, run in enumerate(side):
            for i, case in enumerate(run.timed.values()):
                slow = 1.08 if i < 8 and (i + p) % 3 == 0 else 1.0
                seconds = (slow * case.samples_seconds[0],)
                changed = dataclasses.replace(case, row=row, samples_seconds=seconds)
                run.timed[case.name] = changed  # type: ignore[index]
    found = compare(base, new)
    assert found.two_speeds == 8
    assert found.ending is Ending.REGRESSION
    assert found.count(Verdict.SLOWER) >= 38


def test_a_card_that_was_held_down_is_the_suspect_and_not_green(gpu: Record) -> None:
    before = made([0.0] * 20, timed_row(gpu), [0.0] * 20, gpu)
    after = made([0.03] * 20, timed_row(gpu, clocks=CAPPED), [0.0] * 20, gpu)
    found = compare([before] * 3, [after] * 3)
    assert {case.verdict for case in found.cases} == {Verdict.CLOCK}
    assert (found.cases[0].suspect or "").startswith(
        "clock 1900 MHz to 1700 MHz (power cap at 698 W)"
    )
    assert found.ending is Ending.NOT_ENOUGH
    assert "clock, +3.05 %" in common_lines(found)[0]


WRONG, SKIPPED = "c[0] = nan", "no memory"


def without(run: Run, case: str, why: str | None) -> Run:
    """The same in which a case has no time: wrong, skipped, or gone."""
    timed = {key: each for key, each in run.timed.items() if key != case}
    untimed = {case: why} if why else {}
    failed = frozenset([case]) if why == WRONG else frozenset()
    return dataclasses.replace(run, timed=timed, untimed=untimed, failed=failed)


@pytest.mark.parametrize(
    ("base", "new", "ending"),
    [
        # Why the case has no time in one process of BASE or of NEW, or in all of them.
        ([], [WRONG], Ending.WRONG),
        ([], [WRONG] * 3, Ending.WRONG),
        ([WRONG], [WRONG], Ending.WRONG),
        ([WRONG] * 3, [WRONG] * 3, Ending.WRONG),
        ([SKIPPED] * 3, [WRONG] * 3, Ending.WRONG),
        ([None] * 3, [WRONG], Ending.WRONG),  # a new kernel
        ([], [SKIPPED], Ending.MISSING),
        ([], [SKIPPED] * 2, Ending.MISSING),
        ([], [SKIPPED] * 3, Ending.MISSING),
        ([], [None], Ending.MISSING),
        ([], [None] * 3, Ending.MISSING),
        ([SKIPPED] * 3, [SKIPPED] * 3, Ending.OK),
        ([WRONG] * 3, [], Ending.OK),
        ([None] * 3, [], Ending.OK),
    ],
)
def test_wrong_and_lost_cases(
    base: list[str | None], new: list[str | None], ending: Ending
) -> None:
    whole = processes([0.0] * 20)
    sides = [
        [without(run, name(4), lost[i]) if i < len(lost) else run for i, run in enumerate(side)]
        for side, lost in zip(whole, (base, new), strict=True)
    ]
    found = compare(*sides)
    assert found.ending is ending
    told = {**found.failed, **found.missing}
    if ending is Ending.OK:
        assert not told
    else:
        reason = new[0] or "it is gone"
        assert told[name(4)].endswith(reason)
        assert ("processes" in told[name(4)]) == (ending is Ending.MISSING)
    allowed = compare(*sides, allow_missing=True).ending
    assert allowed is (Ending.OK if ending is Ending.MISSING else ending)


def test_cases_of_new_alone_are_told() -> None:
    base, new = processes([0.0] * 20)
    assert compare([without(run, name(4), None) for run in base], new).added == [name(4)]


def test_an_ambiguous_case_is_green_unless_it_seems_much_slower_or_any_counts() -> None:
    base, new = processes([0.0] * 40)
    for i, (first, second) in enumerate(zip((0.0, 0.1, 0.2), (0.0, 0.1, 0.27), strict=True)):
        for side, value in ((base, first), (new, second)):
            case = Timed(name(7), (math.exp(value),))
            side[i].timed[name(7)] = case  # type: ignore[index]
    found = compare(base, new)
    (case,) = (each for each in found.cases if each.name == name(7))
    assert case.verdict is Verdict.AMBIGUOUS
    assert case.needs and case.needs.endswith("runs per side")
    assert found.ending is Ending.OK
    assert found.unseen == 1
    assert compare(base, new, strict=True).ending is Ending.NOT_ENOUGH
    assert compare(base, new, wanted=0.02).ending is Ending.NOT_ENOUGH


def test_what_could_be_seen_counts_the_cases() -> None:
    found: Comparison = compare(*processes([0.0] * 20))
    assert 0.01 < found.detectable < 0.03
    few = compare(*processes([0.0] * 20, 1))
    assert few.detectable > 0.14
    assert few.unseen == 20


def test_runs_without_a_common_case_are_refused() -> None:
    empty = Run(Path("empty.json"), None, {}, {})
    other = Run(Path("other.json"), None, {"other": Timed("other", (1.0,))}, {})
    with pytest.raises(RecordError, match=r"other\.json: has no timed case that empty\.json has"):
        compare([empty], [other])
