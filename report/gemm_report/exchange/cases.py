"""The cases of records as a table, a row each: for spreadsheets (CSV) and data frames (Parquet)."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gemm_report.record import Record, Row
from gemm_report.terminal import printable
from gemm_report.writing import tables


@dataclass(frozen=True)
class Column:
    """One column: its name says the unit where the meaning does not; SI without prefixes."""

    name: str
    type: type
    meaning: str
    of: Callable[[Record, Row], Any]


COLUMNS: Sequence[Column] = (
    Column("record", str, "file name", lambda record, row: printable(record.path.name)),
    Column("date", str, "when the run began", lambda record, row: record.date),
    Column("complete", bool, "false if it was interrupted", lambda record, row: record.complete),
    Column("commit", str, "what ran", lambda record, row: record.commit),
    Column("device", str, "name", lambda record, row: record.device.name),
    Column("uuid_hash", str, "which GPU it is", lambda record, row: record.device.uuid_hash),
    Column("driver", str, "version", lambda record, row: record.device.driver),
    Column("runtime", str, "version of CUDA", lambda record, row: record.device.runtime),
    Column("power_limit_w", float, "of it", lambda record, row: record.device.power_limit_w),
    Column("name", str, "as the benchmark is named", lambda record, row: str(row.identity)),
    Column("kernel", str, "name", lambda record, row: row.kernel),
    Column("family", str, "library, simt, ...", lambda record, row: row.family),
    Column("parameters", str, "as in the name", lambda record, row: row.settings),
    Column("precision", str, "of A and B", lambda record, row: row.precision),
    Column("layout", str, "nn: neither is transposed", lambda record, row: row.layout),
    Column("m", int, "rows of A and C", lambda record, row: row.m),
    Column("n", int, "columns of B and C", lambda record, row: row.n),
    Column("k", int, "columns of A, rows of B", lambda record, row: row.k),
    Column("transfer", str, "how operands come to the device", lambda record, row: row.transfer),
    Column("variant", bool, "a point of a parameter grid", lambda record, row: row.variant),
    Column("repetition", int, "from 0", lambda record, row: row.repetition),
    Column("status", str, "timed, failed, skipped, untimed", lambda record, row: row.status),
    Column("reason", str, "why it has no time", lambda record, row: row.failed or row.skipped),
    Column("flop", float, "2 m n k", lambda record, row: row.flop),
    Column("flop_per_byte", float, "ideal intensity", lambda record, row: row.flop_per_byte),
    Column("seconds", float, "median", lambda record, row: row.seconds and row.seconds.median),
    Column("seconds_q1", float, "quartile", lambda record, row: row.seconds and row.seconds.q1),
    Column("seconds_q3", float, "quartile", lambda record, row: row.seconds and row.seconds.q3),
    Column(
        "seconds_min", float, "smallest sample", lambda record, row: row.seconds and row.seconds.min
    ),
    Column("samples", int, "how many", lambda record, row: len(row.samples_seconds)),
    Column("flop_per_second", float, "of the median", lambda record, row: row.flop_per_second),
    Column("roof", str, "which one counts", lambda record, row: row.roof and row.roof.name),
    Column(
        "roof_flop_per_second",
        float,
        "how high it is",
        lambda record, row: row.roof and row.roof.flop_per_second,
    ),
    Column("of_roof_nominal", float, "fraction", lambda record, row: row.of_roof_nominal),
    Column("of_roof_at_clock", float, "fraction", lambda record, row: row.of_roof_at_clock),
    Column("of_library", float, "fraction", lambda record, row: row.of_library),
    Column("library", str, "the fastest one", lambda record, row: row.library),
    Column(
        "max_error",
        float,
        "largest difference to the reference",
        lambda record, row: row.verification and row.verification.max_error,
    ),
    Column(
        "error_bound",
        float,
        "what rounding allows",
        lambda record, row: row.verification and row.verification.bound,
    ),
    Column("sm_hz", float, "median clock", lambda record, row: row.sm_hz),
    Column("power_w", float, "median", lambda record, row: row.power_w),
    Column(
        "throttled_share",
        float,
        "of the timed interval",
        lambda record, row: row.throttled_share,
    ),
    Column(
        "throttle_reasons",
        str,
        "what held the clocks down",
        lambda record, row: "; ".join(row.held_by) if row.clocks else None,
    ),
    Column(
        "departures",
        str,
        "from the measurement guideline",
        lambda record, row: "; ".join(map(str, row.departures)),
    ),
    Column(
        "dram_bytes", float, "modelled", lambda record, row: row.traffic and row.traffic.dram_bytes
    ),
    Column("l2_bytes", float, "modelled", lambda record, row: row.traffic and row.traffic.l2_bytes),
    Column(
        "shared_bytes",
        float,
        "modelled, with bank conflicts",
        lambda record, row: row.traffic and row.traffic.shared_bytes,
    ),
    Column("fingerprint", str, "hash of the machine code", lambda record, row: row.fingerprint),
)

SAMPLES = Column(
    "samples_seconds", list, "all of them", lambda record, row: list(row.samples_seconds)
)


def write_csv(records: Iterable[Record], path: Path) -> None:
    """A line for each row."""
    rows = (
        [column.of(record, row) for column in COLUMNS] for record in records for row in record.rows
    )
    tables.write_csv(path, (column.name for column in COLUMNS), rows)


def write_parquet(records: Iterable[Record], path: Path) -> None:
    """The same columns with their types, and a list of all samples; what is not known is null."""
    import pyarrow
    from pyarrow.parquet import ParquetWriter

    types = {
        str: pyarrow.string(),
        int: pyarrow.int64(),
        float: pyarrow.float64(),
        bool: pyarrow.bool_(),
        list: pyarrow.list_(pyarrow.float64()),
    }
    columns = (*COLUMNS, SAMPLES)
    schema = pyarrow.schema(
        pyarrow.field(column.name, types[column.type], metadata={"meaning": column.meaning})
        for column in columns
    )
    with path.open("wb") as file, ParquetWriter(file, schema) as writer:
        for record in records:
            cells = {
                column.name: [_typed(column, column.of(record, row)) for row in record.rows]
                for column in columns
            }
            writer.write_table(pyarrow.table(cells, schema))


def _typed(column: Column, value: Any) -> Any:
    return value if value is None else column.type(value)
