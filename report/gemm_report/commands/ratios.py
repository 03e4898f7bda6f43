"""Draw the distribution of speeds relative to the library over shapes, and print a summary.

examples:
  gemm-report ratios random.json
  gemm-report ratios random.json --kernels '^WgmmaStreamK/bf16' -o build/ratios

Records with many shapes are made by gemm_bench --gemm_shapes=random:60:1 or layers, with
--benchmark_filter='^Best/' --gemm_versus=library.

exit codes:
  0  done
  3  bad input or usage: one line on standard error
"""

import argparse
from pathlib import Path

from gemm_report.commands.figures import folder_of
from gemm_report.document import InputError
from gemm_report.record import read_record


def add(command: argparse.ArgumentParser) -> None:
    command.add_argument("record", type=Path, metavar="RECORD", help="one with library results")
    command.add_argument("-o", "--output", type=Path, metavar="DIR", help="where to draw")
    said = "regular expression: rows by the names of their benchmarks (default: Best, where it has "
    said += "20 shapes or more)"
    command.add_argument("--kernels", metavar="FILTER", help=said)


def run(options: argparse.Namespace) -> int:
    from gemm_report.figures import ratios
    from gemm_report.figures.write import Choice, write_figures

    record = read_record(options.record)
    if not ratios.groups(record, options.kernels):
        raise InputError(
            f"{record.path}: Best has no 20 shapes with a library beside it: give --kernels, or "
            "run gemm_bench --gemm_shapes=random:60:1 --gemm_versus=library"
        )
    folder = folder_of(record, [record], options.output)
    paths = write_figures(record, folder, Choice(ratios=options.kernels), only=["ratios"])
    print(ratios.report(record, options.kernels), *paths, sep="\n")
    return 0
