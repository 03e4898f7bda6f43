"""Writes the figures of records (PNG, SVG, CSV) and summary.md."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from gemm_report.document import RecordError
from gemm_report.record import Record, read_record

HELP = "write the figures of records (PNG, SVG, CSV) and summary.md"


def add(command: argparse.ArgumentParser) -> None:
    """The options."""
    command.add_argument("records", type=Path, nargs="+", metavar="RECORD")
    command.add_argument(
        "-o",
        "--output",
        type=Path,
        metavar="DIR",
        help="where to write; a folder in it for each record if there are several "
        "(default: a folder beside each record, named like it)",
    )


def run(options: argparse.Namespace) -> int:
    """Does it; the exit code."""
    from gemm_report.figures.palette import looks
    from gemm_report.figures.write import write_figures
    from gemm_report.texts.summary import summary

    records = [read_record(path) for path in options.records]
    folders = [folder_of(record, records, options.output) for record in records]
    looks_of_all = looks(records)
    for record, folder in zip(records, folders, strict=True):
        paths = write_figures(record, looks_of_all, folder)
        page = folder / "summary.md"
        page.write_text(summary(record), encoding="utf-8")
        for path in [*paths, page]:
            print(path)
    return 0


def folder_of(record: Record, records: Sequence[Record], output: Path | None) -> Path:
    """Where what is made of `record` goes: beside it, unless told."""
    name = _name(record)
    if output is None:
        return record.path.with_name(name)
    if len(records) == 1:
        return output
    if sum(_name(other) == name for other in records) > 1:
        raise RecordError(f"{record.path}: given with another of this name: use -o for each alone")
    return output / name


def _name(record: Record) -> str:
    name = record.path.name.removesuffix(".gz").removesuffix(".json")
    # A record in "...json" must not be written into the folder above.
    return name if name.strip(".") else "record"
