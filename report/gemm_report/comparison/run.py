"""What one process measured, as far as a comparison needs it: ours, or another tool's."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from gemm_report.record import Record, Row


@dataclass(frozen=True)
class Timed:
    """One case with a time. `name` is its benchmark's, by which it is found in another run.

    Seconds of one launch. A tool that keeps no samples leaves one, its central value. `row` is None
    for other tools' rows.
    """

    name: str
    samples_seconds: tuple[float, ...]
    row: Row | None = None


@dataclass(frozen=True)
class Run:
    """One process. `untimed` has the reason for each case without a time."""

    path: Path
    device: str | None
    timed: Mapping[str, Timed]
    untimed: Mapping[str, str]
    record: Record | None = None
