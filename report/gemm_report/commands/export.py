"""Write the rows of records as CSV or as Parquet."""

import argparse
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

from gemm_report.collection import Refusals, records_given
from gemm_report.document import InputError
from gemm_report.exchange import cases
from gemm_report.record import Record
from gemm_report.writing.whole_file import whole_file

_COLUMNS = "\n".join(
    f"  {column.name:20}  {column.meaning}" for column in (*cases.COLUMNS, cases.SAMPLES)
)

EPILOG = f"""\
formats:
  csv      a line per row of the records, with the columns below
  parquet  the same with types, and all samples; needs pyarrow

examples:
  gemm-report export results --format csv -o all.csv
  gemm-report export results/nvidia-h200 --format parquet -o h200.parquet

columns of csv and parquet, in SI units; samples_seconds only in parquet:
{_COLUMNS}

exit codes:
  0  done
  3  bad input or usage: a line on standard error for each file that is left out
"""


def add(command: argparse.ArgumentParser) -> None:
    said = "a record, or a folder of them"
    command.add_argument("records", type=Path, nargs="+", metavar="RECORD", help=said)
    command.add_argument("--format", choices=("csv", "parquet"), required=True)
    command.add_argument("-o", "--output", type=Path, required=True, metavar="FILE")


def run(options: argparse.Namespace) -> int:
    refusals = Refusals()
    records = _apart(records_given(options.records, refusals), options.output)
    first = next(records, None)
    if first is not None:  # else there is a message for each
        with whole_file(options.output) as part:
            write = cases.write_csv if options.format == "csv" else cases.write_parquet
            write(chain([first], records), part)
        print(options.output)
    return refusals.exit_code


def _apart(records: Iterator[Record], output: Path) -> Iterator[Record]:
    """InputError for one that the output would replace."""
    for record in records:
        if output.exists() and output.samefile(record.path):
            raise InputError(f"{output}: is one of the records: give the output another name")
        yield record
