"""Write a page for the browser (index.html) for each record, with its figures next to it.

The page is one file: its figures are in it, and it asks no network. Next to it are the figures as
PNG and SVG, and their data as CSV; those of one precision in a folder of its name.

examples:
  gemm-report report results/nvidia-h200/20261122T190535Z-ffd85c8f2be2.json.gz
  gemm-report report results -o site

exit codes:
  0  done
  3  bad input: a line on standard error for each file that cannot be used; the others have pages
"""

import argparse

from gemm_report.collection import Refusals, records_given
from gemm_report.commands.figures import add_records, folder_of


def add(command: argparse.ArgumentParser) -> None:
    add_records(command)


def run(options: argparse.Namespace) -> int:
    from gemm_report.pages.record_page import write_page

    refusals = Refusals()
    records = list(records_given(options.records, refusals))
    folders = [folder_of(record, records, options.output) for record in records]
    for record, folder in zip(records, folders, strict=True):
        print(write_page(record, folder))
    return refusals.exit_code
