"""Write a calibration: how much the medians of equal runs differ.

The records are complete, and of one commit, command, GPU and driver. FILE must not be there yet;
compare and gate find it in results/<device>/calibration/.

examples:
  gemm-report calibrate 1.json 2.json 3.json -o noise.json
  gemm-report calibrate runs/*.json -o results/nvidia-h200/calibration/20250131T120000Z-0123abc.json

exit codes:
  0  done
  3  bad input or usage: one line on standard error says which record differs, and in what
"""

import argparse
from pathlib import Path

from gemm_report.comparison.noise import calibrate
from gemm_report.record import read_record


def add(command: argparse.ArgumentParser) -> None:
    said = "records of fresh processes, two or more"
    command.add_argument("records", type=Path, nargs="+", metavar="RECORD", help=said)
    command.add_argument("-o", "--output", type=Path, required=True, metavar="FILE")


def run(options: argparse.Namespace) -> int:
    calibrate.check_free(options.output)
    document = calibrate.calibration([read_record(path) for path in options.records])
    calibrate.write(document, options.output)
    print(calibrate.table(document))
    print(options.output)
    return 0
