"""Update the pictures and tables of README.md, kernels/README.md or a page of docs/.

Each page has the regions that lie between its lines <!-- gemm_report:begin NAME --> and
<!-- gemm_report:end NAME -->: picture, table, overview, and the figures over tokens:
grouped, batched, rows. A figure is of the first record that has it; each further record adds its
lines to the table.

examples:
  gemm-report readme results/nvidia-h200/20261122T190535Z-ffd85c8f2be2.json.gz
  gemm-report readme results/nvidia-h200/20261122T190535Z-ffd85c8f2be2.json.gz --check
  gemm-report readme record.json --readme kernels/README.md
  gemm-report readme moe.json fp8block.json --readme docs/precisions-and-layouts.md

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
    command.add_argument("records", type=Path, nargs="+", metavar="RECORD")
    command.add_argument("--readme", type=Path, default=Path("README.md"), metavar="FILE")
    command.add_argument("--pictures", type=Path, default=Path("results/readme"), metavar="DIR")
    said = "change nothing; exit 1 if the text would change"
    command.add_argument("--check", action="store_true", help=said)


def run(options: argparse.Namespace) -> int:
    from gemm_report.figures.write import write_figures
    from gemm_report.readme import read_text, renewed

    records, page = [read_record(path) for path in options.records], options.readme
    text, pictures = renewed(page, records, options.pictures)
    if options.check:
        if read_text(page) == text:
            return 0
        paths = ", ".join(str(record.path) for record in records)
        complain(f"{page} is not what {paths} gives: run the same command without --check")
        return CHECK_FAILED
    written: list[Path] = []
    for record, name in pictures:
        both = [name, f"{name}_dark"]
        written += write_figures(record, options.pictures, only=both, formats=["png"])
    page.write_text(text, encoding="utf-8")
    print(*written, page, sep="\n")
    return 0
