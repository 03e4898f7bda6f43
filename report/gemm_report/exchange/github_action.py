"""What github-action-benchmark reads as customBiggerIsBetter: a list of named figures."""

from typing import Any

from gemm_report.document import RecordError
from gemm_report.record import Record, Row
from gemm_report.writing.quantity import quantity

_GIGA = 1e9


def entries(record: Record) -> list[dict[str, Any]]:
    """One for each timed row, by its name; RecordError where none is, which the action refuses."""
    timed = record.rows_with("timed")
    if not timed:
        raise RecordError(f"{record.path}: has no row with a time: give another record")
    return [_entry(record, row) for row in timed]


def _entry(record: Record, row: Row) -> dict[str, Any]:
    assert row.seconds and row.flop_per_second  # what timed means
    # Half the interquartile range: the action knows a value and a plus-minus, not quartiles.
    spread = (row.flop / row.seconds.q1 - row.flop / row.seconds.q3) / 2 / _GIGA
    facts = [
        f"median of {len(row.samples_seconds)} samples, {quantity(row.seconds.median, 's')}",
        record.device.name,
        *([f"driver {record.device.driver}"] if record.device.driver else []),
        *map(str, row.departures),
    ]
    return {
        "name": f"{row.identity}{row.ordinal}",
        "unit": "GFLOP/s",
        "value": row.flop_per_second / _GIGA,
        "range": f"± {spread:.3g}",
        "extra": "\n".join(facts),
    }
