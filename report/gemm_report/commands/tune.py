"""Show the best point of each parameter grid, draw the grids, and store the best points.

examples:
  gemm-report tune results/nvidia-h200/tuning/RECORD.json
  gemm-report tune grid.json -o build/grid --write kernels/tuned.inc

exit codes:
  0  done
  3  bad input or usage: one line on standard error
"""

import argparse
from pathlib import Path

from gemm_report.commands.figures import folder_of
from gemm_report.record import read_record


def add(command: argparse.ArgumentParser) -> None:
    option, said = command.add_argument, "write the best points into this table for C++"
    option("record", type=Path, metavar="RECORD", help="a record of gemm_bench --gemm_variants=all")
    option("-o", "--output", type=Path, metavar="DIR", help="where to draw")
    option("--write", type=Path, metavar="FILE", help=said)


def run(options: argparse.Namespace) -> int:
    from gemm_report.figures import tuning
    from gemm_report.figures.write import write_figures
    from gemm_report.texts import tuned

    record = read_record(options.record)
    found = tuning.report(record)
    text = tuned.merged(options.write, record) if options.write else None
    folder = folder_of(record, [record], options.output)
    paths = write_figures(record, folder, only=["tuning"])
    if text is not None:
        options.write.write_text(text, encoding="utf-8")
        paths.append(options.write)
    print(found, *paths, sep="\n")
    return 0
