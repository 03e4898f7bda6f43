"""Write a site of the records in a folder: an index of devices, their newest pages, and history.

The index has a line for each device and precision: the rate of the newest record, the speed
relative to the library over all records, and a link to the page of the record.

examples:
  gemm-report site results -o site

exit codes:
  0  done
  3  a record was bad (named; the rest is used), or there is none
"""

import argparse
from pathlib import Path

from gemm_report.collection import Refusals


def add(command: argparse.ArgumentParser) -> None:
    command.add_argument("folder", type=Path, metavar="DIR", help="with records, such as results")
    said = "where to write"
    command.add_argument("-o", "--output", type=Path, metavar="OUT", required=True, help=said)


def run(options: argparse.Namespace) -> int:
    from gemm_report.pages.site import write_site

    refusals = Refusals()
    print(write_site(options.folder, options.output, refusals))
    return refusals.exit_code
