"""Write a page for the browser (index.html) for each record, with its figures beside it.

The page is one file: its figures are in it, and it asks no network. Beside it lie the figures as
PNG and SVG, and the data that they show as CSV. With -o and several records there is a page
that lists them as well.

examples:
  gemm-report report results/h200/20250131T120000Z-0123abc.json
  gemm-report report results -o site

exit codes:
  0  done
  3  bad input: a line on standard error for each file that cannot be used; the others have pages
"""

import argparse
from pathlib import Path

from gemm_report.collection import Refusals, records_given
from gemm_report.commands.figures import add_records, folder_of
from gemm_report.record import Record


def add(command: argparse.ArgumentParser) -> None:
    add_records(command)


def run(options: argparse.Namespace) -> int:
    from gemm_report.site.index_page import index_page

    refusals = Refusals()
    records = list(records_given(options.records, refusals))
    folders = [folder_of(record, records, options.output) for record in records]
    for record, folder in zip(records, folders, strict=True):
        print(write_page(record, folder))
    if options.output and len(records) > 1:
        page = options.output / "index.html"
        pages = {folder.name: record for folder, record in zip(folders, records, strict=True)}
        page.write_text(index_page(pages), encoding="utf-8")
        print(page)
    return refusals.exit_code


def write_page(record: Record, folder: Path) -> Path:
    """The page of one record, and the figures that it shows and links; the page's path."""
    from gemm_report.figures.palette import colors
    from gemm_report.figures.write import drawings, write_figures
    from gemm_report.site.picture import Picture
    from gemm_report.site.record_page import record_page

    palette = frozenset(color.lower() for color in colors())
    pictures = []
    write_figures(record, folder)
    for name, drawing in drawings(record).items():
        svg = (folder / f"{name}.svg").read_text(encoding="utf-8")
        pictures.append(Picture(name, drawing.caption, svg, palette))
    page = folder / "index.html"
    page.write_text(record_page(record, pictures), encoding="utf-8")
    return page
