"""The command gemm-report."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from gemm_report import calibrate
from gemm_report.document import InputError, RecordError
from gemm_report.record import Record, read_record

# What draws is imported where something is drawn: a calibration is made without matplotlib.

CHECK_FAILED = 1
BAD_INPUT = 3

_EPILOG = """\
examples:
  gemm-report figures results/h200/20250131T120000Z-0123abc.json
  gemm-report figures before.json after.json -o comparison
  gemm-report readme results/h200/20250131T120000Z-0123abc.json
  gemm-report readme results/h200/20250131T120000Z-0123abc.json --check
  gemm-report seeds results/h200/20250131T120000Z-0123abc.json results/cpu/...json
  gemm-report tune results/h200/tuning/20250131T120000Z-0123abc.json
  gemm-report kernels results/h200/20250131T120000Z-0123abc.json
  gemm-report calibrate 1.json 2.json 3.json -o noise.json

exit codes:
  0  done
  1  readme or kernels --check: the file is not what the record gives
  2  wrong usage
  3  bad input: one line on standard error says which file, and what to do
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command; the exit code."""
    options = _parser().parse_args(arguments)
    try:
        return options.run(options)
    except InputError as error:
        message = str(error)
    except OSError as error:
        message = f"{error.filename or 'output'}: {error.strerror or error}"
    print(f"gemm-report: {message}", file=sys.stderr)
    return BAD_INPUT


def _figures(options: argparse.Namespace) -> int:
    from gemm_report.figures import write_figures
    from gemm_report.palette import looks
    from gemm_report.summary import summary

    records = [read_record(path) for path in options.records]
    folders = [_folder(record, records, options.output) for record in records]
    looks_of_all = looks(records)
    for record, folder in zip(records, folders, strict=True):
        paths = write_figures(record, looks_of_all, folder)
        page = folder / "summary.md"
        page.write_text(summary(record), encoding="utf-8")
        for path in [*paths, page]:
            print(path)
    return 0


def _folder(record: Record, records: Sequence[Record], output: Path | None) -> Path:
    if output is None:
        return record.path.with_suffix("")
    if len(records) == 1:
        return output
    if sum(other.path.stem == record.path.stem for other in records) > 1:
        raise RecordError(f"{record.path}: given with another of this name: use -o for each alone")
    return output / record.path.stem


def _readme(options: argparse.Namespace) -> int:
    from gemm_report.readme import PICTURES, filled

    record = read_record(options.record)
    return _renew(options, record, filled(options.readme, record, options.pictures), PICTURES)


def _kernels(options: argparse.Namespace) -> int:
    from gemm_report import ladder_told

    records = [read_record(path) for path in options.records]
    told = ladder_told.filled(options.readme, records, options.pictures)
    if told.missing:
        names = ", ".join(told.missing)
        print(f"gemm-report: {options.readme}: not in the record: {names}", file=sys.stderr)
    return _renew(options, records[0], told.text, ladder_told.pictures(records[0]))


def _renew(options: argparse.Namespace, record: Record, text: str, pictures: Sequence[str]) -> int:
    from gemm_report.figures import write_figure
    from gemm_report.palette import looks

    if options.check:
        if options.readme.read_text(encoding="utf-8") == text:
            return 0
        print(
            f"gemm-report: {options.readme} is not what {record.path} gives: "
            "run the same command without --check",
            file=sys.stderr,
        )
        return CHECK_FAILED
    for name in pictures:
        print(write_figure(name, record, looks([record]), options.pictures, formats=["png"])[0])
    options.readme.write_text(text, encoding="utf-8")
    print(options.readme)
    return 0


def _calibrate(options: argparse.Namespace) -> int:
    calibrate.check_free(options.output)
    document = calibrate.calibration([read_record(path) for path in options.records])
    calibrate.write(document, options.output)
    print(calibrate.table(document))
    print(options.output)
    return 0


def _seeds(options: argparse.Namespace) -> int:
    from gemm_report.seeds import page

    text = page([read_record(path) for path in options.records], options.output)
    options.output.parent.mkdir(parents=True, exist_ok=True)
    options.output.write_text(text, encoding="utf-8")
    print(options.output)
    return 0


def _tune(options: argparse.Namespace) -> int:
    from gemm_report import tuned, tuning
    from gemm_report.figures import write_with_data
    from gemm_report.palette import looks

    record = read_record(options.record)
    found = tuning.report(record)
    text = tuned.merged(options.write, record) if options.write else None
    folder = _folder(record, [record], options.output)
    paths = write_with_data("tuning", record, looks([record]), folder)
    if text is not None:
        options.write.write_text(text, encoding="utf-8")
        paths.append(options.write)
    print(found)
    for path in paths:
        print(path)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="gemm-report",
        description="Figures, tables and noise from the records of gemm_bench.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    figures = commands.add_parser(
        "figures", help="write the figures of records (PNG, SVG, CSV) and summary.md"
    )
    figures.add_argument("records", type=Path, nargs="+", metavar="RECORD")
    figures.add_argument(
        "-o",
        "--output",
        type=Path,
        metavar="DIR",
        help="where to write; a folder in it for each record if there are several "
        "(default: a folder beside each record, named like it)",
    )
    figures.set_defaults(run=_figures)

    readme = commands.add_parser("readme", help="renew the README's table and pictures")
    readme.add_argument("record", type=Path, metavar="RECORD")
    _add_readme_options(readme, "README.md")
    readme.set_defaults(run=_readme)

    kernels = commands.add_parser(
        "kernels", help="renew the figures of the rungs in kernels/README.md"
    )
    kernels.add_argument(
        "records", type=Path, nargs="+", metavar="RECORD", help="of a GPU, and of a CPU beside it"
    )
    _add_readme_options(kernels, "kernels/README.md")
    kernels.set_defaults(run=_kernels)

    noise = commands.add_parser(
        "calibrate", help="write how far medians of equal runs are apart, and show it"
    )
    noise.add_argument(
        "records", type=Path, nargs="+", metavar="RECORD", help="of fresh processes, two or more"
    )
    noise.add_argument("-o", "--output", type=Path, required=True, metavar="FILE")
    noise.set_defaults(run=_calibrate)

    seeds = commands.add_parser(
        "seeds", help="write the seed documents' tables with our figures beside theirs"
    )
    seeds.add_argument(
        "records", type=Path, nargs="+", metavar="RECORD", help="of a GPU, and of a CPU beside it"
    )
    seeds.add_argument("-o", "--output", type=Path, default=Path("results/seeds.md"))
    seeds.set_defaults(run=_seeds)

    tune = commands.add_parser(
        "tune", help="show what is best of the parameter grids, draw them, and keep the winners"
    )
    tune.add_argument(
        "record", type=Path, metavar="RECORD", help="of gemm_bench --gemm_variants=all"
    )
    tune.add_argument("-o", "--output", type=Path, metavar="DIR", help="where to draw")
    tune.add_argument(
        "--write", type=Path, metavar="FILE", help="put the winners into this table for C++"
    )
    tune.set_defaults(run=_tune)
    return parser


def _add_readme_options(command: argparse.ArgumentParser, readme: str) -> None:
    command.add_argument("--readme", type=Path, default=Path(readme), metavar="FILE")
    command.add_argument("--pictures", type=Path, default=Path("results/readme"), metavar="DIR")
    command.add_argument(
        "--check", action="store_true", help="change nothing; exit 1 if the text would change"
    )
