"""Show the best point of each parameter grid and draw the grids.

examples:
  gemm-report tune grid.json.gz
  gemm-report tune grid.json -o build/grid

exit codes:
  0  done
  3  bad input or usage: one line on standard error
"""

import argparse
from pathlib import Path

from gemm_report.commands.figures import folder_of
from gemm_report.record import read_record


def add(command: argparse.ArgumentParser) -> None:
    option = command.add_argument
    option("record", type=Path, metavar="RECORD", help="a record of gemm_bench --gemm_variants=all")
    option("-o", "--output", type=Path, metavar="DIR", help="where to draw")


def run(options: argparse.Namespace) -> int:
    from gemm_report.figures import tuning
    from gemm_report.figures.write import write_figures

    record = read_record(options.record)
    found = tuning.report(record)
    folder = folder_of(record, [record], options.output)
    paths = write_figures(record, folder, only=["tuning"])
    print(found, *paths, sep="\n")
    return 0
