"""What surrounded two runs, and what of it is told."""

from dataclasses import replace
from typing import Any

import pytest

from gemm_report.comparison.conditions import ACROSS, apart, differences, library_changes
from gemm_report.comparison.conftest import RECORD
from gemm_report.comparison.output import as_json
from gemm_report.comparison.rule import Verdict
from gemm_report.comparison.run import run_of
from gemm_report.comparison.verdict import Comparison, Ending, compare
from gemm_report.record import (
    BUSY_HOST,
    Departure,
    Environment,
    Health,
    Host,
    Library,
    Plan,
    Readings,
    Record,
    Row,
)

QUIET = Host(cpus=16, busy_share=0.001, steal_share=0.0)


def slowed(factor: float, share: float | None, index: int = 0) -> Record:
    """Every row takes so many times as long, while others had a share of the CPUs."""
    factor *= 1 + 0.001 * index
    rows: list[Row] = []
    for row in RECORD.rows_with("timed"):
        slow = replace(row, samples_seconds=tuple(factor * each for each in row.samples_seconds))
        rows.append(replace(slow, host=QUIET))
        if share:
            said = (Departure(BUSY_HOST, share, "a busy host"),)
            rows[-1] = replace(slow, host=replace(QUIET, busy_share=share), departures=said)
    return replace(RECORD, rows=tuple(rows), host=QUIET)


def with_environment(**variables: str) -> Record:
    return replace(RECORD, environment=Environment(recorded=variables))


def with_processes(count: int) -> Record:
    return replace(RECORD, health=Health(Readings(other_processes=count), Readings()))


def planned(*names: str | None) -> Record:
    rows = [row for row in RECORD.rows if row.status == "timed"][: len(names)]
    plans = [name and Plan(name, "tried") for name in names]
    changed = (replace(r, plan=p) for r, p in zip(rows, plans, strict=True))
    return replace(RECORD, rows=tuple(changed))


PLAN = planned("a", "b", "c", None)
THREADS = with_environment(OMP_NUM_THREADS="4")
REMOVED = replace(RECORD, environment=Environment(removed={"CUBLAS_LOGINFO_DBG": "1"}))
INJECTED = replace(RECORD, environment=Environment(injected=("libToolsInjection64.so",)))


@pytest.mark.parametrize(
    ("base", "new", "told"),
    [
        ([with_environment()], [with_environment()], []),
        (
            [with_environment()],
            [THREADS],
            ["environment: none in BASE, OMP_NUM_THREADS=4 in NEW"],
        ),
        ([with_environment()], [REMOVED], []),  # it had no effect
        (
            [with_environment()],
            [INJECTED],
            ["injected code: none in BASE, libToolsInjection64.so in NEW"],
        ),
        (
            [with_processes(0)],
            [with_processes(2)],
            ["other processes on the GPU: 0 in BASE, 2 in NEW"],
        ),
        ([RECORD], [replace(THREADS, host=QUIET)], []),  # earlier records do not say it
        ([slowed(1, None)], [slowed(1, 0.6)], ["host: quiet in BASE, busy in NEW"]),
        ([PLAN], [planned("a", "b", "c", "d")], []),  # what only one side chose
        (
            [PLAN, PLAN],
            [planned("a", "x", "y", None), PLAN],
            [f"plans of 2 cases, such as {PLAN.rows[1].identity}: b in BASE, x, b in NEW"],
        ),
    ],
)
def test_what_differs_is_told(base: list[Record], new: list[Record], told: list[str]) -> None:
    assert differences(base, new) == told


def test_only_releases_of_one_library_are_changes() -> None:
    cublas, later = (Library("cuBLAS", version) for version in ("13.0.2", "13.1.0"))
    openblas = [Library("OpenBLAS", "0.3.26", detail=core) for core in ("Haswell", "Prescott")]
    base = replace(RECORD, libraries=(cublas, openblas[0]))
    # A user's kernel brought another one along.
    own = replace(base, libraries=(*base.libraries, Library("cuBLAS", "12.8", detail="by mine.py")))
    for same in (base, RECORD, replace(base, libraries=(cublas,)), own):
        assert library_changes([base], [same]) == {}
    changed = library_changes([base], [replace(base, libraries=(later, openblas[1]))])
    assert list(changed) == ["cuBLAS", "OpenBLAS"]
    assert "Haswell" in changed["OpenBLAS"] and "Prescott" in changed["OpenBLAS"]
    mixed = library_changes([base, base], [base, replace(base, libraries=(later,))])
    assert "13.0.2 and 13.1.0 in NEW" in mixed["cuBLAS"]


KNOWN: dict[str, Any] = {"uuid_hash": "one", "power_limit_w": 700.0, "driver": "1.0"}
DEVICE = replace(RECORD.device, **KNOWN)
METHOD = replace(RECORD.method, cache="rotate", state="settled", test="fixed power")
BASE = replace(RECORD, device=DEVICE, method=METHOD, libraries=(Library("cuBLAS", "13.0"),))
CHANGES: dict[str, dict[str, Any]] = {
    "gpu": {"device": replace(DEVICE, uuid_hash="other")},
    "driver": {"device": replace(DEVICE, driver="9.9")},
    "library": {"libraries": (Library("cuBLAS", "13.1"),)},
    "power": {"device": replace(DEVICE, power_limit_w=350.0)},
    "clock": {"method": replace(METHOD, test="fixed frequency")},
    "build": {"build": replace(BASE.build, type="Debug")},
    "fill": {"method": replace(METHOD, fill="zeros")},
    "state": {"method": replace(METHOD, state="burst")},
    "cache": {"method": replace(METHOD, cache="hot")},
}


@pytest.mark.parametrize("what", ACROSS)
def test_what_must_be_equal_is_named_where_it_is_known_to_differ(what: str) -> None:
    new = replace(BASE, **CHANGES[what])
    assert apart([BASE, BASE], [BASE]) == {}
    assert list(apart([BASE], [new])) == [what]
    assert list(apart([BASE, new], [BASE, new])) == [what], "within a side, too"
    assert "in BASE" in apart([BASE], [new])[what]
    silent = replace(BASE, device=replace(DEVICE, driver=None, uuid_hash=None))
    assert apart([silent], [BASE]) == {}


def compared(factors: Any, shares: Any) -> Comparison:
    """Of two sides, each with so many processes as there are shares of it."""
    return compare(*(
        [run_of(slowed(factor, share, i)) for i, share in enumerate(its)]
        for factor, its in zip(factors, shares, strict=True)
    ))  # fmt: skip


@pytest.mark.parametrize("shares", [([None], [0.6]), ([None] * 3, [0.6] * 3)])
def test_a_busy_host_makes_no_regression(shares: Any) -> None:
    found = compared((1, 9.1), shares)
    assert {case.verdict for case in found.cases} == {Verdict.AMBIGUOUS}
    assert all("quiet host" in (case.needs or "") for case in found.cases)
    assert all("60 %" in (case.suspect or "") for case in found.cases)
    assert found.ending is Ending.NOT_ENOUGH
    assert '"regression": false' in as_json(found)


@pytest.mark.parametrize(
    "shares",
    [
        ([None], [None]),
        ([0.6], [None]),  # the load made BASE slower, if any
        ([0.5, 0.6, 0.7], [0.55, 0.6, 0.65]),  # it came to both alike
        ([None] * 3, [None, None, 0.6]),
    ],
)
def test_a_regression_is_one_where_load_explains_nothing(shares: Any) -> None:
    assert compared((1, 9.1), shares).regressed
