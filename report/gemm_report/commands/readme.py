"""Update the pictures and the table of README.md.

examples:
  gemm-report readme results/nvidia-h200/20261122T190535Z-ffd85c8f2be2.json.gz
  gemm-report readme results/nvidia-h200/20261122T190535Z-ffd85c8f2be2.json.gz --check

exit codes:
  0  done
  1  with --check: a file is not what the record gives
  3  bad input or usage: one line on standard error
"""

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path

from gemm_report.record import Record, read_record
from gemm_report.terminal import complain

CHECK_FAILED = 1


def add(command: argparse.ArgumentParser) -> None:
    command.add_argument("record", type=Path, metavar="RECORD")
    add_options(command, "README.md")


def run(options: argparse.Namespace) -> int:
    from gemm_report.readme import front_page, front_pictures

    record = read_record(options.record)
    text = front_page(options.readme, record, options.pictures)
    return renew(options, record, {options.readme: text}, front_pictures(record))


def add_options(command: argparse.ArgumentParser, readme: str) -> None:
    """What every command has that renews a page."""
    command.add_argument("--readme", type=Path, default=Path(readme), metavar="FILE")
    command.add_argument("--pictures", type=Path, default=Path("results/readme"), metavar="DIR")
    said = "change nothing; exit 1 if a text would change"
    command.add_argument("--check", action="store_true", help=said)


def renew(
    options: argparse.Namespace, record: Record, texts: Mapping[Path, str], pictures: Sequence[str]
) -> int:
    """Writes pages and the pictures of a record, or with --check compares the pages."""
    from gemm_report.figures.write import write_figures

    if options.check:
        for path, text in texts.items():
            if path.read_text(encoding="utf-8") != text:
                complain(
                    f"{path} is not what {record.path} gives: run the same command without --check"
                )
                return CHECK_FAILED
        return 0
    both = [name + paper for name in pictures for paper in ("", "_dark")]
    written = write_figures(record, options.pictures, only=both, formats=["png"])
    for path, text in texts.items():
        path.write_text(text, encoding="utf-8")
    print(*written, *texts, sep="\n")
    return 0
