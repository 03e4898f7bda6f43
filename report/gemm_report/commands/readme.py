"""Update the pictures and tables of README.md or kernels/README.md.

Each page has the regions that lie between its lines <!-- gemm_report:begin NAME --> and
<!-- gemm_report:end NAME -->: picture, table, overview.

examples:
  gemm-report readme results/nvidia-h200/20261122T190535Z-ffd85c8f2be2.json.gz
  gemm-report readme results/nvidia-h200/20261122T190535Z-ffd85c8f2be2.json.gz --check
  gemm-report readme record.json --readme kernels/README.md

exit codes:
  0  done
  1  with --check: the file is not what the record gives
  3  bad input or usage: one line on standard error
"""

import argparse
from pathlib import Path

from gemm_report.record import read_record
from gemm_report.terminal import complain

CHECK_FAILED = 1


def add(command: argparse.ArgumentParser) -> None:
    command.add_argument("record", type=Path, metavar="RECORD")
    command.add_argument("--readme", type=Path, default=Path("README.md"), metavar="FILE")
    command.add_argument("--pictures", type=Path, default=Path("results/readme"), metavar="DIR")
    said = "change nothing; exit 1 if the text would change"
    command.add_argument("--check", action="store_true", help=said)


def run(options: argparse.Namespace) -> int:
    from gemm_report.figures.write import write_figures
    from gemm_report.readme import read_text, renewed

    record, page = read_record(options.record), options.readme
    text, pictures = renewed(page, record, options.pictures)
    if options.check:
        if read_text(page) == text:
            return 0
        complain(f"{page} is not what {record.path} gives: run the same command without --check")
        return CHECK_FAILED
    both = [name + paper for name in pictures for paper in ("", "_dark")]
    written = write_figures(record, options.pictures, only=both, formats=["png"])
    page.write_text(text, encoding="utf-8")
    print(*written, page, sep="\n")
    return 0
