"""Tells where the level of a series changed, and what may have done it; writes pages of it."""

import argparse
import gc
from pathlib import Path

from gemm_report.collection import Refusals
from gemm_report.document import BAD_INPUT
from gemm_report.terminal import complain

HELP = "tell where the records of a folder became slower or faster, and what differs there"

EPILOG = """\
examples:
  gemm-report history results
  gemm-report history results -o build/history
  gemm-report history results/h200 --json changes.json

exit codes:
  0  done
  3  a record was bad (named; the rest is used), or there is none
"""


def add(command: argparse.ArgumentParser) -> None:
    """The options."""
    command.add_argument("folder", type=Path, metavar="DIR", help="with records, such as results")
    command.add_argument(
        "-o", "--output", type=Path, metavar="OUT", help="write pages for the browser into OUT"
    )
    command.add_argument("--json", type=Path, metavar="FILE", help="write what was found")
    command.add_argument(
        "--all", action="store_true", help="list all changes, not only the newest 20"
    )


def run(options: argparse.Namespace) -> int:
    """Does it; the exit code."""
    from gemm_report.history.pages import write_pages
    from gemm_report.history.series import read_history
    from gemm_report.history.trends import find_trends
    from gemm_report.history.words import as_json, told

    refusals = Refusals()
    gc.disable()  # of what a thousand records hold nothing is garbage: looking takes a tenth of it
    try:
        history = read_history(options.folder, refusals)
    finally:
        gc.enable()
    if not history.entries:
        complain(f"{options.folder}: holds no record to use")
        return BAD_INPUT
    trends = find_trends(history)
    print(told(history, trends, None if options.all else 20))
    if options.json:
        options.json.write_text(as_json(history, trends), encoding="utf-8")
        print(options.json)
    if options.output:
        print(write_pages(options.output, history, trends))
    return refusals.exit_code
