"""Write the rows of records as CSV: a line a row, in SI units."""

import argparse
from collections.abc import Callable, Iterator, Sequence
from functools import reduce
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from gemm_report.collection import Refusals, records_given
from gemm_report.document import InputError
from gemm_report.guideline import sentence
from gemm_report.record import Record, Row
from gemm_report.terminal import printable
from gemm_report.text import whole_file, write_csv


class Column(NamedTuple):
    """One column: its name says the unit where the meaning does not; SI without prefixes.

    `of` is the path of its value in a row, by default its name, or a function of record and row.
    """

    name: str
    meaning: str
    of: str | Callable[[Record, Row], Any] | None = None

    def value(self, record: Record, row: Row) -> Any:
        """None where some part of the path is null."""
        if callable(self.of):
            return self.of(record, row)
        first, *rest = (self.of or self.name).split(".")
        start = record if first == "record" else getattr(row, first)
        return reduce(lambda each, name: each and getattr(each, name), rest, start)


COLUMNS: Sequence[Column] = (
    Column("record", "file name", lambda record, row: printable(record.path.name)),
    Column("date", "when the run began", "record.date"),
    Column("complete", "false if it was interrupted", "record.complete"),
    Column("commit", "what ran", "record.commit"),
    Column("device", "name", "record.device.name"),
    Column("uuid_hash", "which GPU it is", "record.device.uuid_hash"),
    Column("driver", "version", "record.device.driver"),
    Column("runtime", "version of CUDA", "record.device.runtime"),
    Column("power_limit_w", "of the device", "record.device.power_limit_w"),
    Column("name", "as the benchmark is named", lambda record, row: str(row.identity)),
    Column("kernel", "name"),
    Column("family", "library, simt, ..."),
    Column("parameters", "as in the name", "settings"),
    Column("precision", "of A and B"),
    Column("layout", "nn: neither is transposed"),
    Column("m", "rows of A and C"),
    Column("n", "columns of B and C"),
    Column("k", "columns of A, rows of B"),
    Column("batch_count", "products of this size"),
    Column("tokens", "of groups: how their rows are shared out"),
    Column("epilogue", "what is done to an element of C before it is stored"),
    Column("transfer", "how operands come to the device"),
    Column("variant", "a point of a parameter grid"),
    Column("repetition", "from 0"),
    Column("status", "timed, failed, skipped, untimed"),
    Column("reason", "why it has no time", lambda record, row: row.failed or row.skipped),
    Column("flop", "2 m n k, of all products of a batch"),
    Column("flop_per_byte", "ideal intensity"),
    Column("seconds", "median", "seconds.median"),
    Column("seconds_q1", "quartile", "seconds.q1"),
    Column("seconds_q3", "quartile", "seconds.q3"),
    Column("seconds_min", "smallest sample", "seconds.min"),
    Column("samples", "how many", lambda record, row: len(row.samples_seconds)),
    Column("flop_per_second", "of the median"),
    Column("roof", "name of the lower: compute or DRAM", "roof.name"),
    Column("roof_flop_per_second", "how high it is", "roof.flop_per_second"),
    Column("of_roof_nominal", "fraction"),
    Column("of_roof_at_clock", "fraction"),
    Column("of_library", "fraction"),
    Column("library", "the fastest one"),
    Column("max_error", "largest difference to the reference", "verification.max_error"),
    Column("error_bound", "what rounding allows", "verification.bound"),
    Column("sm_hz", "median clock"),
    Column("power_w", "median"),
    Column("throttled_share", "of the timed interval"),
    Column("throttle_reasons", "what limited the clocks",
           lambda record, row: "; ".join(row.held_by) if row.clocks else None),
    Column("departures", "from the measurement guideline",
           lambda record, row: "; ".join(map(sentence, row.departures))),
    Column("dram_bytes", "modelled", "traffic.dram_bytes"),
    Column("l2_bytes", "modelled", "traffic.l2_bytes"),
    Column("shared_bytes", "modelled, with bank conflicts", "traffic.shared_bytes"),
    Column("fingerprint", "hash of the machine code"),
)  # fmt: skip

EPILOG = """\
examples:
  gemm-report export results -o all.csv
  gemm-report export results/nvidia-h200 -o h200.csv

columns, in SI units; empty where a value is not known:
{}

exit codes:
  0  done
  3  bad input or usage: a line on standard error for each file that is left out
""".format("\n".join(f"  {column.name:20}  {column.meaning}" for column in COLUMNS))


def add(command: argparse.ArgumentParser) -> None:
    said = "a record, or a folder of them"
    command.add_argument("records", type=Path, nargs="+", metavar="RECORD", help=said)
    command.add_argument("-o", "--output", type=Path, required=True, metavar="FILE")


def run(options: argparse.Namespace) -> int:
    refusals = Refusals()
    records = _apart(records_given(options.records, refusals), options.output)
    first = next(records, None)
    if first is not None:  # else there is a message for each
        rows = (
            [column.value(record, row) for column in COLUMNS]
            for record in chain([first], records)
            for row in record.rows
        )
        with whole_file(options.output) as part:
            write_csv(part, (column.name for column in COLUMNS), rows)
        print(options.output)
    return refusals.exit_code


def _apart(records: Iterator[Record], output: Path) -> Iterator[Record]:
    """InputError for one that the output would replace."""
    for record in records:
        if output.exists() and output.samefile(record.path):
            raise InputError(f"{output}: is one of the records: give the output another name")
        yield record
