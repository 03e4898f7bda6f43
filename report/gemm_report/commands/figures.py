"""Write the figures of records (PNG, SVG, CSV).

examples:
  gemm-report figures results/nvidia-h200/20261122T190535Z-ffd85c8f2be2.json.gz
  gemm-report figures record.json --hierarchy 'Wgmma.*/bf16/4096x' --only hierarchy
  gemm-report figures layers.json --only roofline,roofline_dark

exit codes:
  0  done
  3  bad input or usage: a line on standard error for each file that cannot be used; the others
     have figures
"""

import argparse
from collections.abc import Sequence
from pathlib import Path

from gemm_report.collection import Refusals, records_given
from gemm_report.document import InputError, RecordError
from gemm_report.record import Record


def add(command: argparse.ArgumentParser) -> None:
    add_records(command)
    command.add_argument(
        "--only",
        metavar="NAMES",
        help="these figures, separated by commas; with _dark at the end on dark paper",
    )
    said = "regular expression: rows of one precision for the figure 'hierarchy' (default: those "
    said += "whose bytes were counted)"
    command.add_argument("--hierarchy", metavar="FILTER", help=said)


def add_records(command: argparse.ArgumentParser) -> None:
    """What every command has that draws records."""
    said = "a record, or a folder of them"
    command.add_argument("records", type=Path, nargs="+", metavar="RECORD", help=said)
    said = "where to write; a folder in it for each record if there are several (default: a folder "
    said += "next to each record, named like it)"
    command.add_argument("-o", "--output", type=Path, metavar="DIR", help=said)


def run(options: argparse.Namespace) -> int:
    from gemm_report.figures.write import drawings, write_figures

    refusals = Refusals()
    records = list(records_given(options.records, refusals))
    folders = [folder_of(record, records, options.output) for record in records]
    wanted = options.only and [name.strip() for name in options.only.split(",")]
    for record in records:
        names = drawings(record, options.hierarchy)
        for name in wanted or ():
            if name.removesuffix("_dark") not in names:
                raise InputError(
                    f"--only={name}: {record.path} has no such figure: choose among "
                    f"{', '.join(names)}"
                )
    for record, folder in zip(records, folders, strict=True):
        for path in write_figures(record, folder, options.hierarchy, wanted):
            print(path)
    return refusals.exit_code


def folder_of(record: Record, records: Sequence[Record], output: Path | None) -> Path:
    """The folder for the figures of `record`: next to it by default."""
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
