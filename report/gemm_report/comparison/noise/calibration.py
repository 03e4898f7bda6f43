"""How far medians of equal code were apart on a device, by an A/A test: every difference is noise.

Makes calibrations from records of equal runs, and reads what tools/calibrate wrote. The spread
between fresh processes is what makes false alarms; that inside one is far smaller.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, median, stdev
from typing import Annotated, Any

from gemm_report.comparison.conditions import (
    CONDITIONS,
    OF_THE_MOMENT,
    compatible,
    options_of,
)
from gemm_report.comparison.run import cycles_of
from gemm_report.document import (
    Count,
    Kind,
    Meta,
    Positive,
    RecordError,
    Text,
    check_schema,
    decoded,
    read_json,
)
from gemm_report.grouping import grouped
from gemm_report.ladder.rows import timed_rows
from gemm_report.record import Device as AnyDevice
from gemm_report.record import Identity, Part, Record, Row, told_apart, variant
from gemm_report.writing.tables import columns

CALIBRATION = Kind("calibration", "tools/calibrate")
SCHEMA = 1

_DEVICE = ("kind", "name", "uuid_hash", "driver", "runtime", "power_limit_w")
_MODEL = ("sm_count", "memory_bytes", "cpu_id", "l1_data_bytes", "l2_bytes", "l3_bytes", "cores")
# Of what history has, fewer processes say too little.
_FEWEST = 3
_CASE = ("kernel", "parameters", "precision", "layout", "m", "n", "k")
_METHOD = ("timer", "fill", "test", "state", "cache", "target")


@dataclass(frozen=True)
class Noise:
    """Of one kernel on one problem."""

    kernel: Text
    parameters: dict[Text, str]
    precision: Text
    layout: Text
    m: Count
    n: Count
    k: Count
    medians_seconds: Annotated[tuple[Positive, ...], Meta(min_length=2)]  # of each process
    throttled_share: Annotated[float, Meta(ge=0)] | None
    medians_cycles: tuple[Positive | None, ...] = ()  # earlier calibrations lack them

    @property
    def name(self) -> str:
        """As the benchmark is named."""
        problem = self.precision, self.layout, self.m, self.n, self.k, None
        return str(Identity(self.kernel, tuple(self.parameters.items()), *problem))

    @property
    def volume(self) -> int:
        """Products in the problem."""
        return self.m * self.n * self.k

    @property
    def throttled(self) -> bool:
        """Whether something limited the clocks."""
        return bool(self.throttled_share)

    def logs(self, at_clock: bool) -> list[float]:
        """Logarithms of the medians, in seconds or in cycles of those whose clock is known."""
        medians = self.medians_cycles if at_clock else self.medians_seconds
        return [math.log(each) for each in medians if each is not None]


@dataclass(frozen=True, kw_only=True)
class Device(AnyDevice):
    """On which it was measured, as far as a calibration says; earlier ones say less."""

    clock_hz: Positive | None = None


@dataclass(frozen=True)
class Method:
    """How it was measured."""

    state: Text | None


@dataclass(frozen=True)
class Calibration:
    """What several processes of the same program measured on one device."""

    schema: Count
    commit: Text
    processes: Count
    device: Device
    method: Method
    rows: tuple[Noise, ...]
    path: str = ""  # for messages


def newest_calibration(
    folders: Iterable[Path], name: str | None, device: AnyDevice | None = None
) -> Calibration | None:
    """The newest one of the device that can be read, in the first of these folders that has any."""
    for folder in folders:
        for path in sorted((folder / "calibration").glob("*.json"), reverse=True):
            with suppress(RecordError):
                found = read_calibration(path)
                if device and told_apart(found.device.model, device.model):
                    continue
                if found.device.name == name:
                    return found
    return None


def read_calibration(path: Path) -> Calibration:
    """The calibration in `path`; RecordError where there is none that this version understands."""
    return calibration_of(path, read_json(path, CALIBRATION))


def calibration_of(path: Path, values: object) -> Calibration:
    """The same of JSON that is not there as a file; `path` is what errors name."""
    if not isinstance(values, dict) or not {"schema", "processes", "rows"} <= values.keys():
        raise RecordError(f"{path}: is not a calibration: give a file that tools/calibrate wrote")
    check_schema(path, CALIBRATION, values, SCHEMA)
    return decoded(path, CALIBRATION, {**values, "path": str(path)}, Calibration)


def calibrated(records: Sequence[Record]) -> dict[str, Any]:
    """What results/calibration.schema.json describes; RecordError where runs are not equal."""
    _check_all(records)
    first = records[0]
    rows = [rows for rows in _by_problem(records) if len(rows) > 1]
    if not rows:
        raise RecordError(f"{first.path}: has no row with a time that another record has too")
    return _document(records, rows)


def from_history(records: Sequence[Record], like: Record) -> Calibration | None:
    """One from records of any commit, of cases whose machine code is that of `like`.

    Conditions but for commit and command must be those of `like`; None where no case has enough
    processes.
    """
    whole = [each for each in records if each.complete and not each.commit.endswith("-dirty")]
    alike = [each for each in whole if compatible(each, like, ("commit", "command"))]
    code = {row.identity: _code(row) for row in like.rows}
    rows = [
        [row for row in rows if _code(row) == code.get(row.identity)] for rows in _by_problem(alike)
    ]
    enough = [each for each in rows if len(each) >= _FEWEST]
    return calibration_of(like.path.parent, _document(alike, enough)) if enough else None


def _code(row: Row) -> tuple[object, ...]:
    return row.fingerprint, row.device_code, row.device_kernels


def _document(records: Sequence[Record], rows: Sequence[Sequence[Row]]) -> dict[str, Any]:
    first = records[0]
    utc = sorted(record.utc.strftime("%Y-%m-%dT%H:%M:%SZ") for record in records)
    return {
        "schema": SCHEMA,
        "commit": first.commit,
        "build_type": first.build.type,
        "command": options_of(first),
        "device": {key: getattr(first.device, key) for key in (*_DEVICE, *_MODEL)},
        "utc": {"first": utc[0], "last": utc[-1]},
        "processes": len(records),
        "method": {key: getattr(first.method, key) for key in _METHOD},
        "rows": [_row(its_rows) for its_rows in rows],
    }


def table(document: Mapping[str, Any]) -> str:
    """The rows as columns of text, those with the largest spread first."""
    rows = sorted(document["rows"], key=lambda row: -row["spread"])
    lines = [["kernel", "precision", "size", "processes", "spread", "at clock", "within"]]
    for row in rows:
        shares = (row[key] for key in ("spread", "spread_at_clock", "median_within"))
        name = variant(row["kernel"], row["parameters"].items(), row["layout"])
        cells = [name, row["precision"], "x".join(str(row[key]) for key in "mnk")]
        cells.append(str(row["processes"]))
        lines.append(cells + ["-" if s is None else f"{100 * s:.2f} %" for s in shares])
    return columns(lines, left=3)


def _check_all(records: Sequence[Record]) -> None:
    first = records[0]
    if len(records) < 2:
        raise RecordError(f"{first.path}: is not enough: give two or more records of equal runs")
    contents: dict[bytes, Path] = {}
    for record in records:
        path = record.path
        if not record.complete:
            raise RecordError(f"{path}: the run was interrupted: give complete records")
        other = contents.setdefault(path.read_bytes(), path)
        if other is not path:
            raise RecordError(f"{path}: is the same run as {other}: give each record once")
        for what, of in CONDITIONS.items():
            if what not in OF_THE_MOMENT and of(record) != of(first):
                raise RecordError(
                    f"{path}: its {what} is {of(record)}, that of {first.path} is {of(first)}: "
                    "give records of equal runs"
                )


def _by_problem(records: Sequence[Record]) -> list[list[Row]]:
    """The rows of every kernel and problem, one of each process that has a time for it."""
    # Transfers have no part in a calibration: their noise is that of the host.
    parts = (Part.LADDER, Part.TUNING)
    rows = (row for record in records for part in parts for row in timed_rows(record, part))
    return list(grouped(rows, lambda row: row.identity).values())


def _row(rows: Sequence[Row]) -> dict[str, Any]:
    first = rows[0]
    seconds = [row.seconds for row in rows if row.seconds]
    medians = [each.median for each in seconds]
    cycles = [median(samples) if samples else None for samples in map(cycles_of, rows)]
    known = [each for each in cycles if each is not None]
    shares = [row.throttled_share for row in rows if row.throttled_share is not None]
    return {
        **{key: getattr(first, key) for key in _CASE},
        "processes": len(rows),
        "medians_seconds": medians,
        "spread": _spread(medians),
        "sd": stdev(medians) / fmean(medians),
        "medians_cycles": cycles,
        "spread_at_clock": _spread(known) if len(known) == len(rows) else None,
        "median_within": median((each.q3 - each.q1) / each.median for each in seconds),
        "throttled_share": median(shares) if shares else None,
    }


def _spread(values: Sequence[float]) -> float:
    return (max(values) - min(values)) / median(values)
