"""Renew the README's table and pictures.

examples:
  gemm-report readme results/h200/20250131T120000Z-0123abc.json
  gemm-report readme results/h200/20250131T120000Z-0123abc.json --check

exit codes:
  0  done
  1  with --check: the file is not what the record gives
  3  bad input or usage: one line on standard error
"""

import argparse
from collections.abc import Sequence
from pathlib import Path

from gemm_report.record import Record, read_record
from gemm_report.terminal import complain

CHECK_FAILED = 1


def add(command: argparse.ArgumentParser) -> None:
    command.add_argument("record", type=Path, metavar="RECORD")
    add_options(command, "README.md")


def run(options: argparse.Namespace) -> int:
    from gemm_report.texts.readme import PICTURES, filled, main_ladder

    record = read_record(options.record)
    text = filled(options.readme, record, options.pictures)
    return renew(options, record, text, PICTURES, drawn=main_ladder(record))


def add_options(command: argparse.ArgumentParser, readme: str) -> None:
    """What every command has that renews a page."""
    command.add_argument("--readme", type=Path, default=Path(readme), metavar="FILE")
    command.add_argument("--pictures", type=Path, default=Path("results/readme"), metavar="DIR")
    command.add_argument(
        "--check", action="store_true", help="change nothing; exit 1 if the text would change"
    )


def renew(
    options: argparse.Namespace,
    record: Record,
    text: str,
    pictures: Sequence[str],
    drawn: Record | None = None,
) -> int:
    """Writes a page and its pictures, of `drawn` if given, or with --check compares the page."""
    from gemm_report.figures.palette import looks
    from gemm_report.figures.write import write_figures

    if options.check:
        if options.readme.read_text(encoding="utf-8") == text:
            return 0
        complain(
            f"{options.readme} is not what {record.path} gives: "
            "run the same command without --check"
        )
        return CHECK_FAILED
    drawn = drawn or record
    written = write_figures(
        drawn, looks([record]), options.pictures, only=pictures, formats=["png"]
    )
    for path in written:
        print(path)
    options.readme.write_text(text, encoding="utf-8")
    print(options.readme)
    return 0
