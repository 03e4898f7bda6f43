"""Show the best point of each parameter grid, and what the grid is worth.

examples:
  gemm-report tune grid.json.gz

exit codes:
  0  done
  3  bad input or usage: one line on standard error
"""

import argparse
from pathlib import Path
from statistics import median

from gemm_report.document import RecordError
from gemm_report.grouping import grouped
from gemm_report.record import Part, Record, Row, rate, read_record
from gemm_report.rows import drawn_rows
from gemm_report.text import columns, prefix_for, scaled, significant, times

_HEAD = ("kernel", "precision", "size", "best", "variants")


def add(command: argparse.ArgumentParser) -> None:
    said = "a record of gemm_bench --gemm_variants=all"
    command.add_argument("record", type=Path, metavar="RECORD", help=said)


def run(options: argparse.Namespace) -> int:
    print(best_points(read_record(options.record)))
    return 0


def best_points(record: Record) -> str:
    """A line for each kernel, precision and problem: its best variant, and by how much it is."""
    defaults = {_problem(row): row for row in drawn_rows(record)}
    sweeps = [
        sorted(rows, key=rate, reverse=True)
        for rows in grouped(drawn_rows(record, Part.TUNING), _problem).values()
    ]
    if not sweeps:
        raise RecordError(
            f"{record.path}: has no timed row of a parameter grid: "
            "give a record of gemm_bench --gemm_variants=all"
        )
    prefix = prefix_for(rate(rows[0]) for rows in sweeps)
    lines = [[*_HEAD, f"{prefix}FLOP/s", "of default", "of median", "of worst"]]
    for rows in sweeps:
        best, rates = rows[0], [*map(rate, rows)]
        default = defaults.get(_problem(best))
        others = default and rate(default), median(rates), rates[-1]
        what = best.kernel, best.precision, best.size, best.settings, str(len(rows))
        over = (times(rates[0] / each) if each else "-" for each in others)
        lines.append([*what, significant(scaled(rates[0], prefix)), *over])
    return columns(lines, left=4)


def _problem(row: Row) -> tuple[object, ...]:
    return row.precision, row.kernel, row.layout, row.m, row.n, row.k
