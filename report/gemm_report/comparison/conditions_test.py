"""What surrounded two runs, and what of it is told."""

from dataclasses import replace
from typing import Any

import pytest

from gemm_report.comparison.conditions import (
    ACROSS,
    apart,
    differences,
    library_changes,
)
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


def told(base: Record, new: Record) -> str:
    return "\n".join(differences([base], [new]))


def with_environment(record: Record, **variables: str) -> Record:
    return replace(record, environment=Environment(recorded=variables))


def test_a_variable_that_changed_is_told(gpu: Record) -> None:
    base, new = with_environment(gpu), with_environment(gpu, OMP_NUM_THREADS="4")
    assert told(base, base) == ""
    assert told(base, new) == "environment: none in BASE, OMP_NUM_THREADS=4 in NEW"
    removed = replace(gpu, environment=Environment(removed={"CUBLAS_LOGINFO_DBG": "1"}))
    assert told(base, removed) == "", "it had no effect"


def test_a_profiler_is_told(gpu: Record) -> None:
    new = replace(gpu, environment=Environment(injected=("libToolsInjection64.so",)))
    assert "none in BASE, libToolsInjection64.so in NEW" in told(with_environment(gpu), new)


def test_other_processes_on_the_gpu_are_told(gpu: Record) -> None:
    def record(count: int) -> Record:
        return replace(gpu, health=Health(Readings(other_processes=count), Readings()))

    assert "other processes on the GPU: 0 in BASE, 2 in NEW" in told(record(0), record(2))


def test_what_earlier_records_lack_is_no_difference(gpu: Record) -> None:
    new = replace(with_environment(gpu, OMP_NUM_THREADS="4"), host=QUIET)
    assert told(gpu, new) == ""


def test_only_releases_of_one_library_are_changes(gpu: Record) -> None:
    cublas, later = (Library("cuBLAS", version) for version in ("13.0.2", "13.1.0"))
    openblas = [Library("OpenBLAS", "0.3.26", detail=core) for core in ("Haswell", "Prescott")]
    base = replace(gpu, libraries=(cublas, openblas[0]))
    assert library_changes([base], [base]) == {}
    assert library_changes([base], [gpu]) == {}
    assert library_changes([base], [replace(gpu, libraries=(cublas,))]) == {}
    changed = library_changes([base], [replace(gpu, libraries=(later, openblas[1]))])
    assert list(changed) == ["cuBLAS", "OpenBLAS"]
    assert "Haswell" in changed["OpenBLAS"]
    assert "Prescott" in changed["OpenBLAS"]
    mixed = library_changes([base, base], [base, replace(gpu, libraries=(later,))])
    assert "13.0.2 and 13.1.0 in NEW" in mixed["cuBLAS"]
    # A user's kernel brought another one along.
    own = replace(gpu, libraries=(*base.libraries, Library("cuBLAS", "12.8", detail="by mine.py")))
    assert library_changes([base], [own]) == {}


CHANGES = {
    "gpu": lambda record: replace(record, device=replace(record.device, uuid_hash="other")),
    "driver": lambda record: replace(record, device=replace(record.device, driver="9.9")),
    "library": lambda record: replace(record, libraries=(Library("cuBLAS", "13.1"),)),
    "power": lambda record: replace(record, device=replace(record.device, power_limit_w=350.0)),
    "clock": lambda record: replace(record, method=replace(record.method, test="fixed frequency")),
    "build": lambda record: replace(record, build=replace(record.build, type="Debug")),
    "fill": lambda record: replace(record, method=replace(record.method, fill="zeros")),
    "state": lambda record: replace(record, method=replace(record.method, state="burst")),
    "cache": lambda record: replace(record, method=replace(record.method, cache="hot")),
}


@pytest.mark.parametrize("what", CHANGES)
def test_what_must_be_equal_is_named_where_it_is_known_to_differ(gpu: Record, what: str) -> None:
    known = replace(gpu.device, uuid_hash="one", power_limit_w=700.0, driver="1.0")
    method = replace(gpu.method, cache="rotate", state="settled", test="fixed power")
    base = replace(gpu, device=known, method=method, libraries=(Library("cuBLAS", "13.0"),))
    new = CHANGES[what](base)
    assert apart([base, base], [base]) == {}
    assert list(apart([base, base], [new])) == [what]
    assert list(apart([base, new], [base, new])) == [what], "within a side, too"
    assert "in BASE" in apart([base], [new])[what]
    assert set(CHANGES) == set(ACROSS)


def test_what_a_record_does_not_say_is_not_known_to_differ(gpu: Record) -> None:
    silent = replace(gpu, device=replace(gpu.device, driver=None, uuid_hash=None))
    known = replace(gpu, device=replace(gpu.device, driver="9.9", uuid_hash="one"))
    assert apart([silent], [known]) == {}


def disturbed(row: Row, share: float) -> Row:
    host = Host(cpus=16, busy_share=share, steal_share=0.0)
    return replace(row, host=host, departures=(Departure(BUSY_HOST, share, "a busy host"),))


def slowed(record: Record, factor: float, share: float | None, index: int = 0) -> Record:
    """Every row takes so many times as long, while others had a share of the CPUs."""
    factor *= 1 + 0.001 * index
    changed: list[Row] = []
    for row in record.rows_with("timed"):
        slow = replace(row, samples_seconds=tuple(factor * each for each in row.samples_seconds))
        changed.append(disturbed(slow, share) if share else replace(slow, host=QUIET))
    return replace(record, rows=tuple(changed), host=QUIET, path=record.path.with_name(f"{index}"))


def compared(record: Record, factors: Any, shares: Any) -> Comparison:
    """Of two sides, each with so many processes as there are shares of it."""
    return compare(*(
        [run_of(slowed(record, factor, share, i)) for i, share in enumerate(its)]
        for factor, its in zip(factors, shares, strict=True)
    ))  # fmt: skip


@pytest.mark.parametrize("shares", [([None], [0.6]), ([None] * 3, [0.6] * 3)])
def test_a_busy_host_makes_no_regression(gpu: Record, shares: Any) -> None:
    found = compared(gpu, (1, 9.1), shares)
    assert found.cases
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
def test_a_regression_is_one_where_load_explains_nothing(gpu: Record, shares: Any) -> None:
    assert compared(gpu, (1, 9.1), shares).regressed


def test_a_busy_host_is_told(gpu: Record) -> None:
    assert "host: quiet in BASE, busy in NEW" in told(slowed(gpu, 1, None), slowed(gpu, 1, 0.6))


def test_plans_that_changed_are_counted_and_one_is_named(gpu: Record) -> None:
    def planned(*names: str | None) -> Record:
        rows = [row for row in gpu.rows if row.status == "timed"][: len(names)]
        plans = [name and Plan(name, "tried") for name in names]
        changed = (replace(r, plan=p) for r, p in zip(rows, plans, strict=True))
        return replace(gpu, rows=tuple(changed))

    base = planned("a", "b", "c", None)
    assert differences([base], [planned("a", "b", "c", "d")]) == [], "what only one side chose"
    (told,) = differences([base, base], [planned("a", "x", "y", None), base])
    name = str(base.rows[1].identity)
    assert told == f"plans of 2 cases, such as {name}: b in BASE, x, b in NEW"
