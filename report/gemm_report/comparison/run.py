"""What one process measured, as far as a comparison needs it: ours, or another tool's."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from gemm_report.grouping import grouped
from gemm_report.record import Record, Row, told_apart
from gemm_report.rows import middle


@dataclass(frozen=True)
class Timed:
    """One case with a time. `name` is its benchmark's, by which it is found in another run.

    Seconds of one launch. A tool that keeps no samples leaves one, its central value. `row` is None
    for other tools' rows, and `samples_cycles` (of the SM clock) is empty where no clock is known.
    """

    name: str
    samples_seconds: tuple[float, ...]
    row: Row | None = None
    samples_cycles: tuple[float, ...] = ()


@dataclass(frozen=True)
class Run:
    """One process. `untimed` has why a case has no time; `failed` are those that were wrong."""

    path: Path
    device: str | None
    timed: Mapping[str, Timed]
    untimed: Mapping[str, str]
    record: Record | None = None
    failed: frozenset[str] = frozenset()

    def unlike(self, other: "Run") -> tuple[str, str] | None:
        """What the devices of the two are; None where it is the same one."""
        if self.record and other.record:
            return told_apart(self.record.device.model, other.record.device.model)
        if self.device == other.device:
            return None
        return self.device or "an unknown device", other.device or "an unknown device"


def run_of(record: Record) -> Run:
    """A record's cases. Of several repetitions the middle one counts; it failed if any did."""
    timed: dict[str, Timed] = {}
    untimed: dict[str, str] = {}
    failed: dict[str, str] = {}
    for name, rows in grouped(record.rows, lambda row: str(row.identity)).items():
        good = [row for row in rows if row.status == "timed" and row.samples_seconds]
        if wrong := [row.failed for row in rows if row.failed is not None]:
            failed[name] = untimed[name] = wrong[0]
        elif good:
            row = middle(good)
            timed[name] = Timed(name, row.samples_seconds, row, cycles_of(row))
        else:
            reasons = (row.skipped for row in rows if row.skipped is not None)
            untimed[name] = next(reasons, "the record says neither a time nor a reason")
    return Run(record.path, record.device.name, timed, untimed, record, frozenset(failed))


def cycles_of(row: Row) -> tuple[float, ...]:
    """Of each sample; with the median clock where not each of them has its own."""
    hertz: Sequence[float | None] = row.samples_sm_hz
    if len(hertz) != len(row.samples_seconds):
        hertz = [row.sm_hz] * len(row.samples_seconds)
    return tuple(s * hz for s, hz in zip(row.samples_seconds, hertz, strict=True) if hz)
