"""Make records of the journals that runs left behind when they were killed.

A journal holds the rows that a run had finished; its record says complete: false. The journal of a
run that is still alive is not touched, and no record is replaced: where the name is taken, the new
one ends with -recovered.json. gemm_bench does the same for the folder that it writes to.

examples:
  gemm-report recover results
  gemm-report recover results/h200/20250131T120000Z-0123abc.json.journal

exit codes:
  0  done, or there was nothing to do
  3  bad input: one line on standard error says which file, and what to do; the rest was done, and
     of a damaged journal the rows that can be read are in the record
"""

import argparse
from pathlib import Path

from gemm_report.collection import Refusals
from gemm_report.document import InputError
from gemm_report.journal import HeldError, journal_paths, recover


def add(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "paths", type=Path, nargs="+", metavar="PATH", help="a journal, or a folder of records"
    )


def run(options: argparse.Namespace) -> int:
    refusals = Refusals()
    for path in options.paths:
        for journal in _journals(path):
            try:
                record = recover(journal, refusals.add)
                print(record or f"{journal}: removed, it has no row, or none that its record lacks")
            except HeldError as reason:
                print(reason)
            except InputError as error:
                refusals.add(error)
    return refusals.exit_code


def _journals(path: Path) -> list[Path]:
    if not path.is_dir():
        return [path]
    found = journal_paths(path)
    if not found:
        print(f"{path}: no journal, nothing to recover")
    return found
