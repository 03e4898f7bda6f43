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
import json
from pathlib import Path

from gemm_report.comparison.noise.calibration import calibrated, table
from gemm_report.document import RecordError
from gemm_report.record import read_record
from gemm_report.writing.whole_file import whole_file


def add(command: argparse.ArgumentParser) -> None:
    said = "records of fresh processes, two or more"
    command.add_argument("records", type=Path, nargs="+", metavar="RECORD", help=said)
    command.add_argument("-o", "--output", type=Path, required=True, metavar="FILE")


def run(options: argparse.Namespace) -> int:
    if options.output.exists():
        raise RecordError(
            f"{options.output}: exists, and results are only ever added: give another name"
        )
    document = calibrated([read_record(path) for path in options.records])
    with whole_file(options.output) as part:
        part.write_text(json.dumps(document, indent=1, allow_nan=False) + "\n", encoding="utf-8")
    print(table(document))
    print(options.output)
    return 0
