"""Say where the records of a folder became slower or faster, and what differs there.

examples:
  gemm-report history results
  gemm-report history results -o build/history
  gemm-report history results/nvidia-h200 --all

exit codes:
  0  done
  3  a record was bad (named; the rest is used), or there is none
"""

import argparse
from pathlib import Path

from gemm_report.collection import Refusals
from gemm_report.document import BAD_INPUT
from gemm_report.terminal import complain


def add(command: argparse.ArgumentParser) -> None:
    option = command.add_argument
    option("folder", type=Path, metavar="DIR", help="with records, such as results")
    said = "write pages for the browser into OUT"
    option("-o", "--output", type=Path, metavar="OUT", help=said)
    option("--all", action="store_true", help="list all changes, not only the newest 20")


def run(options: argparse.Namespace) -> int:
    from gemm_report.history.output import as_text
    from gemm_report.history.pages import write_pages
    from gemm_report.history.series import read_history
    from gemm_report.history.trends import find_trends

    refusals = Refusals()
    history = read_history(options.folder, refusals)
    if not history.entries:
        complain(f"{options.folder}: has no record to use")
        return BAD_INPUT
    trends = find_trends(history)
    print(as_text(history, trends, None if options.all else 20))
    if options.output:
        print(write_pages(options.output, history, trends))
    return refusals.exit_code
