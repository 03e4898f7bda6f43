"""Print how speeds relative to the library are distributed over shapes.

A line for each precision and kernel: geometric mean, 10th percentile (interpolated between shapes)
and worst shape.

examples:
  gemm-report ratios random.json
  gemm-report ratios random.json --kernels '^WgmmaStreamK/bf16'

Records with many shapes are made by gemm_bench --gemm_shapes=random:60:1 or layers, with
--benchmark_filter='^Best/' --gemm_versus=library.

exit codes:
  0  done
  3  bad input or usage: one line on standard error
"""

import argparse
from pathlib import Path
from statistics import geometric_mean, quantiles

from gemm_report.document import InputError
from gemm_report.grouping import grouped
from gemm_report.record import Part, Row, read_record
from gemm_report.rows import named, timed_rows
from gemm_report.text import columns, precision_name

_FEWEST = 20  # shapes, without a filter
_HEAD = ["precision", "kernel", "shapes", "geometric mean", "10th percentile", "worst", "at"]


def add(command: argparse.ArgumentParser) -> None:
    command.add_argument("record", type=Path, metavar="RECORD", help="one with library results")
    said = "regular expression: rows by the names of their benchmarks (default: Best, where it has "
    said += "20 shapes or more)"
    command.add_argument("--kernels", metavar="FILTER", help=said)


def run(options: argparse.Namespace) -> int:
    record = read_record(options.record)
    timed = [row for part in (Part.LADDER, Part.TUNING) for row in timed_rows(record, part)]
    rows = [row for row in timed if row.of_library and not row.is_library]
    if options.kernels:
        rows = named(record, rows, "--kernels", options.kernels)
    else:
        rows = [row for row in rows if row.kernel == "Best"]
    found = grouped(rows, lambda row: (row.precision, row.label))
    lines = [
        summary(found[key])
        for key in sorted(found)
        if options.kernels or len(found[key]) >= _FEWEST
    ]
    if not lines:
        raise InputError(
            f"{record.path}: Best has no 20 shapes with a library beside it: give --kernels, or "
            "run gemm_bench --gemm_shapes=random:60:1 --gemm_versus=library"
        )
    print(columns([_HEAD, *lines], left=2))
    return 0


def summary(rows: list[Row]) -> list[str]:
    """The line of one precision and kernel."""
    values = sorted(row.of_library or 0 for row in rows)
    tenth = quantiles(values, n=10, method="inclusive")[0] if len(values) > 1 else values[0]
    worst = min(rows, key=lambda row: row.of_library or 0)
    cells = [precision_name(worst.precision), worst.label, str(len(rows))]
    numbers = geometric_mean(values), tenth, values[0]
    return [*cells, *(f"{value:.3f}" for value in numbers), worst.shape]
