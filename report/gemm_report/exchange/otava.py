"""What Apache Otava reads: a CSV with a line per record, and the configuration that names it."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from statistics import median
from typing import Any

from gemm_report.record import Record
from gemm_report.terminal import printable
from gemm_report.writing import tables

_TIME = "time"
# Not `branch`: where Otava finds such a column it wants to be told which one to read.
_ATTRIBUTES = ("commit", "driver", "runtime", "record")


@dataclass(frozen=True)
class Point:
    """A record: when and of what it is, and FLOP/s by case."""

    time: datetime
    attributes: Mapping[str, str]
    rates: Mapping[str, float]


def point(record: Record) -> Point:
    """RecordError where its date is none."""
    repetitions: dict[str, list[float]] = {}
    for row in record.rows_with("timed"):
        repetitions.setdefault(str(row.identity), []).append(row.flop_per_second or 0)
    return Point(
        time=record.utc,
        attributes={
            "commit": record.commit,
            "driver": record.device.driver or "",
            "runtime": record.device.runtime or "",
            "record": printable(record.path.name),
        },
        rates={name: median(rates) for name, rates in repetitions.items()},
    )


def write_csv(points: Sequence[Point], path: Path) -> None:
    """The points, oldest first.

    Otava cannot read a gap, and is blind in a series with a NaN. So gaps are filled as it fills
    those of its other sources: with the value before, at the start with the first one.
    """
    names = metrics(points)
    ordered = sorted(points, key=lambda each: each.time)
    last = {name: next(p.rates[name] for p in ordered if name in p.rates) for name in names}
    rows = []
    for each in ordered:
        last |= each.rates
        attributes = [each.attributes[name] for name in _ATTRIBUTES]
        rows.append([each.time.isoformat(), *attributes, *(last[name] for name in names)])
    tables.write_csv(path, [_TIME, *_ATTRIBUTES, *names], rows)


def metrics(points: Iterable[Point]) -> list[str]:
    """The cases that have a time in at least one record."""
    return list(dict.fromkeys(name for each in points for name in each.rates))


def configuration(table: Path, names: Iterable[str]) -> str:
    """For otava --config-file: YAML, of which JSON is a part."""
    test: dict[str, Any] = {
        "type": "csv",
        "file": str(table),
        "time_column": _TIME,
        "attributes": _ATTRIBUTES,
        "metrics": {name: {"column": tables.cell(name), "direction": 1} for name in names},
    }
    return json.dumps({"tests": {table.stem: test}}, indent=1, ensure_ascii=False) + "\n"
