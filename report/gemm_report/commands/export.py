"""Write records as CSV, as Parquet, for github-action-benchmark or for Apache Otava."""

import argparse
import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from gemm_report.collection import Refusals, of_one_device, records_given
from gemm_report.document import InputError
from gemm_report.exchange import cases, github_action, otava
from gemm_report.record import Record
from gemm_report.writing.whole_file import whole_file

_COLUMNS = "\n".join(
    f"  {column.name:20}  {column.meaning}" for column in (*cases.COLUMNS, cases.SAMPLES)
)

EPILOG = f"""\
formats:
  csv                      a line per row of the records, with the columns below
  parquet                  the same with types, and all samples; needs pyarrow
  github-action-benchmark  customBiggerIsBetter: GFLOP/s of each timed row of one record
  otava                    a line per record, a column of FLOP/s per case, and next to FILE its
                           configuration, FILE.otava.yaml; gaps are filled with the value before

examples:
  gemm-report export results --format csv -o all.csv
  gemm-report export results/h200 --format parquet -o h200.parquet
  gemm-report export new.json --format github-action-benchmark -o benchmark.json
  gemm-report export results/h200 --format otava -o h200.csv \\
    && otava analyze h200 --config-file h200.csv.otava.yaml

columns of csv and parquet, in SI units; samples_seconds only in parquet:
{_COLUMNS}

exit codes:
  0  done
  3  bad input or usage: a line on standard error for each file that is left out
"""


def add(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "records", type=Path, nargs="+", metavar="RECORD", help="a record, or a folder of them"
    )
    command.add_argument("--format", choices=list(_WRITERS), required=True)
    command.add_argument("-o", "--output", type=Path, required=True, metavar="FILE")


def run(options: argparse.Namespace) -> int:
    refusals = Refusals()
    records = _apart(records_given(options.records, refusals), options.output)
    try:
        for path in _WRITERS[options.format](records, options.output, refusals):
            print(path)
    except _NothingLeftError:
        pass
    return refusals.exit_code


class _NothingLeftError(Exception):
    """Every record was refused, with a message for each: there is nothing to write."""


def _apart(records: Iterator[Record], output: Path) -> Iterator[Record]:
    """At least one record, and none that the output would replace."""
    record = None
    for record in records:
        if output.exists() and output.samefile(record.path):
            raise InputError(f"{output}: is one of the records: give the output another name")
        yield record
    if record is None:
        raise _NothingLeftError


_Writer = Callable[[Iterator[Record], Path, Refusals], list[Path]]


def _of_rows(write: Callable[[Iterator[Record], Path], None]) -> _Writer:
    def written(records: Iterator[Record], output: Path, refusals: Refusals) -> list[Path]:
        with whole_file(output) as part:
            write(records, part)
        return [output]

    return written


def _github_action(records: Iterator[Record], output: Path, refusals: Refusals) -> list[Path]:
    record, *others = records
    if others:
        raise InputError(
            f"{others[0].path}: is one record too many: the format holds one, give them one by one"
        )
    text = json.dumps(github_action.entries(record), indent=1, allow_nan=False)
    with whole_file(output) as part:
        part.write_text(f"{text}\n", encoding="utf-8")
    return [output]


def _otava(records: Iterator[Record], output: Path, refusals: Refusals) -> list[Path]:
    points = []
    for record in of_one_device(records, refusals):
        try:
            points.append(otava.point(record))
        except InputError as error:
            refusals.add(error)
    if not points:
        raise _NothingLeftError
    configuration = output.with_name(f"{output.name}.otava.yaml")
    with whole_file(output) as part:
        otava.write_csv(points, part)
    with whole_file(configuration) as part:
        text = otava.configuration(output, otava.metrics(points))
        part.write_text(text, encoding="utf-8", errors="surrogateescape")
    return [output, configuration]


_WRITERS: Mapping[str, _Writer] = {
    "csv": _of_rows(cases.write_csv),
    "parquet": _of_rows(cases.write_parquet),
    "github-action-benchmark": _github_action,
    "otava": _otava,
}
