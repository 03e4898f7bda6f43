"""Update the figures of the kernels in kernels/README.md.

examples:
  gemm-report kernels results/nvidia-h200/20261122T190535Z-ffd85c8f2be2.json.gz
  gemm-report kernels results/nvidia-h200/20261122T190535Z-ffd85c8f2be2.json.gz --check

exit codes:
  0  done
  1  with --check: the file is not what the records give
  3  bad input or usage: one line on standard error
"""

import argparse
from pathlib import Path

from gemm_report.commands.readme import add_options, renew
from gemm_report.record import read_record


def add(command: argparse.ArgumentParser) -> None:
    command.add_argument("record", type=Path, metavar="RECORD", help="of a GPU")
    add_options(command, "kernels/README.md")


def run(options: argparse.Namespace) -> int:
    from gemm_report.readme import LADDER, kernels_page

    record = read_record(options.record)
    text = kernels_page(options.readme, record, options.pictures)
    return renew(options, record, {options.readme: text}, LADDER)
