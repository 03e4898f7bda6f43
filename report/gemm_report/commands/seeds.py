"""Writes the seed documents' tables with our figures beside theirs."""

import argparse
from pathlib import Path

from gemm_report.record import read_record

HELP = "write the seed documents' tables with our figures beside theirs"

EPILOG = """\
examples:
  gemm-report seeds results/h200/20250131T120000Z-0123abc.json
  gemm-report seeds results/h200/20250131T120000Z-0123abc.json \\
    results/cpu/20250131T130000Z-0123abc.json -o seeds.md

The rows are those of gemm_bench --gemm_shapes=seeds.

exit codes:
  0  done
  3  bad input or usage: one line on standard error
"""


def add(command: argparse.ArgumentParser) -> None:
    """The options."""
    command.add_argument(
        "records", type=Path, nargs="+", metavar="RECORD", help="of a GPU, and of a CPU beside it"
    )
    command.add_argument("-o", "--output", type=Path, default=Path("results/seeds.md"))


def run(options: argparse.Namespace) -> int:
    """Does it; the exit code."""
    from gemm_report.texts.seeds import page

    text = page([read_record(path) for path in options.records], options.output)
    options.output.parent.mkdir(parents=True, exist_ok=True)
    options.output.write_text(text, encoding="utf-8")
    print(options.output)
    return 0
