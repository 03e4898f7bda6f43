"""Makes a calibration from records of equal runs: an A/A test, in which every difference is noise.

The spread between fresh processes is what makes false alarms; that inside one is far smaller.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean, median, stdev
from typing import Any

from gemm_report.comparison.conditions import CONDITIONS, options_of
from gemm_report.comparison.noise.calibration import SCHEMA
from gemm_report.comparison.run import cycles_of
from gemm_report.document import RecordError
from gemm_report.grouping import grouped
from gemm_report.ladder.rows import timed_rows
from gemm_report.record import Part, Record, Row, variant
from gemm_report.writing.tables import columns
from gemm_report.writing.whole_file import whole_file

_DEVICE = ("kind", "name", "uuid_hash", "driver", "runtime", "power_limit_w")
# Of what history has, fewer processes say too little.
_FEWEST = 3
_CASE = ("kernel", "parameters", "precision", "layout", "m", "n", "k")
_METHOD = ("timer", "fill", "test", "state", "cache", "target")


def calibration(records: Sequence[Record]) -> dict[str, Any]:
    """What results/calibration.schema.json describes; RecordError where runs are not equal."""
    _check_all(records)
    first = records[0]
    rows = [rows for rows in _by_problem(records) if len(rows) > 1]
    if not rows:
        raise RecordError(f"{first.path}: has no row with a time that another record has too")
    return _document(records, rows)


def from_history(records: Sequence[Record], like: Record) -> dict[str, Any] | None:
    """The same from records of any commit, of cases whose machine code is that of `like`.

    Conditions but for commit and command must be those of `like`; None where no case has enough
    processes.
    """
    conditions = [of for what, of in CONDITIONS.items() if what not in ("commit", "command")]
    whole = [each for each in records if each.complete and not each.commit.endswith("-dirty")]
    alike = [each for each in whole if all(of(each) == of(like) for of in conditions)]
    code = {row.identity: _code(row) for row in like.rows}
    rows = [
        [row for row in rows if _code(row) == code.get(row.identity)] for rows in _by_problem(alike)
    ]
    enough = [each for each in rows if len(each) >= _FEWEST]
    return _document(alike, enough) if enough else None


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
        "device": {key: getattr(first.device, key) for key in _DEVICE},
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


def write(document: Mapping[str, Any], path: Path) -> None:
    """All of it or nothing."""
    with whole_file(path) as part:
        part.write_text(json.dumps(document, indent=1, allow_nan=False) + "\n", encoding="utf-8")


def check_free(path: Path) -> None:
    """Refuses a name that is taken."""
    if path.exists():
        raise RecordError(f"{path}: exists, and results are only ever added: give another name")


def _check_all(records: Sequence[Record]) -> None:
    if len(records) < 2:
        given = records[0].path if records else "no record"
        raise RecordError(f"{given}: is not enough: give two or more records of equal runs")
    first = records[0]
    contents: dict[bytes, Path] = {}
    for record in records:
        path = record.path
        if not record.complete:
            raise RecordError(f"{path}: the run was interrupted: give complete records")
        other = contents.setdefault(path.read_bytes(), path)
        if other is not path:
            raise RecordError(f"{path}: is the same run as {other}: give each record once")
        for what, of in CONDITIONS.items():
            if of(record) != of(first):
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
