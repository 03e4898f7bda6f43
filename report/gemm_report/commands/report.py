"""Write a page for the browser (index.html) for each record, with its figures next to it.

The page is one file: its figures are in it, and it asks no network. Next to it are the figures as
PNG and SVG, and their data as CSV; those of one precision in a folder of its name.

examples:
  gemm-report report results/nvidia-h200/20261122T190535Z-ffd85c8f2be2.json
  gemm-report report results -o site

exit codes:
  0  done
  3  bad input: a line on standard error for each file that cannot be used; the others have pages
"""

import argparse
import re
from collections.abc import Collection
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from gemm_report.collection import Refusals, records_given
from gemm_report.commands.figures import add_records, folder_of
from gemm_report.ladder.rows import precisions
from gemm_report.record import Record

if TYPE_CHECKING:
    from gemm_report.site.picture import Picture

# The page has these for each precision alone, if there are several.
OF_ONE_PRECISION = ("throughput", "of_library")


def add(command: argparse.ArgumentParser) -> None:
    add_records(command)


def run(options: argparse.Namespace) -> int:
    refusals = Refusals()
    records = list(records_given(options.records, refusals))
    folders = [folder_of(record, records, options.output) for record in records]
    for record, folder in zip(records, folders, strict=True):
        print(write_page(record, folder))
    return refusals.exit_code


def write_page(record: Record, folder: Path) -> Path:
    """The page of one record, and the figures that it shows and links; the page's path."""
    from gemm_report.site.record_page import record_page

    pictures = _pictures(record, folder)
    names = precisions(record.rows_with("timed"))
    for name in names if len(names) > 1 else ():
        if not re.fullmatch(r"\w+", name, re.ASCII):  # somebody else's record: no folder of that
            continue
        rows = tuple(row for row in record.rows if row.precision == name)
        part = replace(record, rows=rows)
        pictures += _pictures(part, folder / name, OF_ONE_PRECISION)
    page = folder / "index.html"
    page.write_text(record_page(record, pictures), encoding="utf-8")
    return page


def _pictures(record: Record, folder: Path, only: Collection[str] | None = None) -> list["Picture"]:
    from gemm_report.figures.write import FORMATS, drawings, write_figure
    from gemm_report.site.picture import Picture, spots

    pictures = []
    for name, drawing in drawings(record).items():
        if not only or name in only:
            paths = {end: folder / f"{name}.{end}" for end in FORMATS}
            marks = spots(write_figure(drawing, record, list(paths.values())))
            where = f"{folder.name}/{name}" if only else name
            svg = paths["svg"].read_text(encoding="utf-8")
            pictures.append(Picture(where, drawing.caption, svg, marks))
    return pictures
