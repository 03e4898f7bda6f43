"""Writes how far medians of equal runs are apart, and shows it."""

import argparse
from pathlib import Path

from gemm_report.comparison import calibrate
from gemm_report.record import read_record

HELP = "write how far medians of equal runs are apart, and show it"


def add(command: argparse.ArgumentParser) -> None:
    """The options."""
    command.add_argument(
        "records", type=Path, nargs="+", metavar="RECORD", help="of fresh processes, two or more"
    )
    command.add_argument("-o", "--output", type=Path, required=True, metavar="FILE")


def run(options: argparse.Namespace) -> int:
    """Does it; the exit code."""
    calibrate.check_free(options.output)
    document = calibrate.calibration([read_record(path) for path in options.records])
    calibrate.write(document, options.output)
    print(calibrate.table(document))
    print(options.output)
    return 0
