"""Update the figures of the kernels in kernels/README.md.

examples:
  gemm-report kernels results/nvidia-h200/20261122T190535Z-ffd85c8f2be2.json \\
    results/cpu/20250131T130000Z-0123abc.json
  gemm-report kernels results/nvidia-h200/20261122T190535Z-ffd85c8f2be2.json --check

A rung that is in no record is named, and left without numbers.

exit codes:
  0  done
  1  with --check: the file is not what the records give
  3  bad input or usage: one line on standard error
"""

import argparse
from pathlib import Path

from gemm_report.commands.readme import add_options, renew
from gemm_report.record import read_record
from gemm_report.terminal import complain


def add(command: argparse.ArgumentParser) -> None:
    said = "of a GPU, then of a CPU"
    command.add_argument("records", type=Path, nargs="+", metavar="RECORD", help=said)
    add_options(command, "kernels/README.md")


def run(options: argparse.Namespace) -> int:
    from gemm_report.readme import LADDER, kernels_page

    records = [read_record(path) for path in options.records]
    text, missing = kernels_page(options.readme, records, options.pictures)
    if missing:
        complain(f"{options.readme}: not in the record: {', '.join(missing)}")
    return renew(options, records[0], {options.readme: text}, LADDER)
