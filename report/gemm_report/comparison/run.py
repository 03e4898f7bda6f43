"""What one process measured, as far as a comparison needs it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from gemm_report.grouping import grouped
from gemm_report.record import Record, Row
from gemm_report.rows import middle


@dataclass(frozen=True)
class Run:
    """One process. Its rows by the names of the cases, as they are found in another run.

    `untimed` has why a case has no time; `failed` are those that were wrong.
    """

    record: Record
    timed: Mapping[str, Row]
    untimed: Mapping[str, str]
    failed: frozenset[str] = frozenset()


def run_of(record: Record) -> Run:
    """A record's cases. Of several repetitions the middle one counts; it failed if any did."""
    timed: dict[str, Row] = {}
    untimed: dict[str, str] = {}
    failed: dict[str, str] = {}
    for name, rows in grouped(record.rows, lambda row: str(row.identity)).items():
        good = [row for row in rows if row.status == "timed" and row.samples_seconds]
        if wrong := [row.failed for row in rows if row.failed is not None]:
            failed[name] = untimed[name] = wrong[0]
        elif good:
            timed[name] = middle(good)
        else:
            reasons = (row.skipped for row in rows if row.skipped is not None)
            untimed[name] = next(reasons, "the record says neither a time nor a reason")
    return Run(record, timed, untimed, frozenset(failed))


def cycles_of(row: Row) -> tuple[float, ...]:
    """Of each sample; with the median clock where not each of them has its own."""
    hertz: Sequence[float | None] = row.samples_sm_hz
    if len(hertz) != len(row.samples_seconds):
        hertz = [row.sm_hz] * len(row.samples_seconds)
    return tuple(s * hz for s, hz in zip(row.samples_seconds, hertz, strict=True) if hz)
