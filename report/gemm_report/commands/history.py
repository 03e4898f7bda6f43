"""Tells where the level of a series changed, and what may have done it; writes pages of it."""

import argparse
import gc
from contextlib import suppress
from pathlib import Path
from threading import Thread

from gemm_report.collection import Refusals
from gemm_report.document import BAD_INPUT
from gemm_report.terminal import complain

HELP = "tell where the records of a folder became slower or faster, and what differs there"

EPILOG = """\
examples:
  gemm-report history results
  gemm-report history results -o build/history
  gemm-report history results/h200 --json changes.json

What was read is kept in DIR/.gemm_report (in the cache of the user where DIR cannot be written):
the next time only new records are read. The folder can be deleted at any time.

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
    # Of ten thousand records and what is made of them nothing is garbage: not looking for any saves
    # a tenth of the time.
    gc.disable()
    try:
        return _run(options)
    finally:
        gc.enable()


def _run(options: argparse.Namespace) -> int:
    from gemm_report.history.index import Index
    from gemm_report.history.pages import Pages
    from gemm_report.history.series import series_of
    from gemm_report.history.trends import find_trends, load_libraries
    from gemm_report.history.words import as_json, told

    def load_early() -> None:
        # What is missing is told when it is needed.
        with suppress(ImportError):
            load_libraries()

    refusals = Refusals()
    with Index(options.folder) as index:
        loading = Thread(target=load_early)
        loading.start()
        index.update(refusals)
        for remark in index.remarks:
            complain(remark)
        content = index.content()
        if not content.entries:
            complain(f"{options.folder}: holds no record to use")
            return BAD_INPUT
        known = index.findings()
        pages = Pages.into(options.output, content.entries) if options.output else None
        finish = pages.write_series if pages else None
        loading.join()  # before processes are forked
        trends, memory, lines = find_trends(content, series_of(content), known, finish)
        index.keep_findings(memory.new, known.keys() - memory.used)
    print(told(content, trends, None if options.all else 20))
    if options.json:
        options.json.write_text(as_json(content, trends), encoding="utf-8")
        print(options.json)
    if pages:
        print(pages.write_overview(trends, lines))
    return refusals.exit_code
