"""Say which cases of NEW are slower or faster than in BASE by more than noise.

BASE and NEW are folders of records: fresh processes of equal code, three a side or more. Of fewer,
and of a single record, only changes of more than 15 % are told, and the exit code is 2.

verdicts, by intervals that hold for all cases together with 95 %:
  slower     the interval excludes no change, and the estimate is beyond the threshold; or the case
             moved with a common shift of all cases that is so
  faster     the same for a speed-up
  same       the whole interval is within the threshold
  clock      the time changed and the SM cycles did not, on a GPU at its power limit
  ambiguous  anything else; a line says what is missing

Machine code that is the same, another or not known is a suspect that is named, no reason for a
verdict. --across names conditions that may differ between the sides: gpu, driver, library, power
(limit), clock (setting), build (type), fill, state, cache. They are named in the second line.

--json: `cases` (worst first) have name, verdict, base_seconds, new_seconds, ratio (NEW over BASE),
cycles (ratio), time (ratio of the processes that are compared, low and high of its interval), sd,
detectable (a fraction, of what is called slower), suspect, needs, and kernel, parameters,
precision, layout, m, n, k, throttled_share of the row. The other keys are ending (the exit code),
regression, counts, detectable, unseen (cases in which --require-power might pass), threshold,
confidence, base, new, failed (wrong in NEW), missing, added, across, remarks. Unknown values are
null.

examples:
  gemm-report compare before/ after/ --threshold=2 --markdown=comment.md --html=changes.html
  gemm-report compare before/ after/ --require-power=5 --strict
  gemm-report compare cuda-13.0/ cuda-13.1/ --across=driver,library

exit codes:
  7  conditions differ that --across does not name, or the devices: nothing was compared
  5  a result of NEW is wrong, or its kernel fails
  1  regression: a case is slower
  3  bad input, or a place that cannot be written: one line on standard error says which file, and
     what to do
  6  cases are missing: skipped in NEW, or gone from some of its processes (--allow-missing accepts
     them)
  2  not enough data: in more than 5 % of the cases a slowdown of 10 % (--require-power) might pass;
     or a case seems slower and is ambiguous, or is slower by its clock; with --strict: any case
  0  no regression
If several apply, the first of these counts.
"""

import argparse
import shutil
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from gemm_report.collection import Refusals, record_paths
from gemm_report.comparison.conditions import ACROSS, apart
from gemm_report.comparison.run import Run, run_of
from gemm_report.document import InputError, RecordError
from gemm_report.record import read_record, told_apart
from gemm_report.terminal import complain
from gemm_report.text import whole_file

if TYPE_CHECKING:
    from gemm_report.comparison.verdict import Comparison


def add(command: argparse.ArgumentParser) -> None:
    option = command.add_argument
    option("base", type=Path, metavar="BASE", help="a record, or a folder of them")
    option("new", type=Path, metavar="NEW", help="the same, to be compared")
    said = "the smallest difference that matters (default 1)"
    option("--threshold", type=percentage, default=0.01, metavar="PERCENT", help=said)
    said = "exit with 2 unless such a slowdown would be found (default 10, or twice the threshold)"
    option("--require-power", type=percentage, metavar="PERCENT", help=said)
    for name, said in (
        ("--strict", "exit with 2 for ambiguous cases"),
        ("--allow-missing", "accept cases that no longer have a time"),
        ("--all", "list the cases that are the same, too"),
    ):
        option(name, action="store_true", help=said)
    said = "conditions that may differ, such as driver,library"
    option("--across", type=_conditions, default=(), metavar="NAMES", help=said)
    option("--markdown", metavar="FILE", help="write Markdown (- is the console)")
    option("--json", metavar="FILE", help="write everything as JSON (- is the console)")
    option("--html", metavar="FILE", help="write a page for the browser")


def runs_of(path: Path, refusals: Refusals) -> list[Run]:
    """The processes of one side: a record's, or those of a folder but for what is none."""
    if not path.is_dir():
        return [run_of(read_record(path))]
    if runs := readable(record_paths(path), refusals):
        return runs
    raise RecordError(f"{path}: has no record: give one that gemm_bench wrote")


def readable(paths: Iterable[Path], refusals: Refusals) -> list[Run]:
    """Those that can be read, each once; what is wrong with the others is told."""
    known: list[Run] = []
    for path in paths:
        with refusals:
            run = run_of(read_record(path))
            for each in known:
                if _same(each, run):
                    raise RecordError(
                        f"{path}: is the same run as {each.record.path}: it counts once"
                    )
            known.append(run)
    return known


def _same(one: Run, other: Run) -> bool:
    return bool(one.timed) and one.timed == other.timed


def run(options: argparse.Namespace) -> int:
    from gemm_report.comparison import output, page
    from gemm_report.comparison.verdict import Ending, compare

    refusals = Refusals()
    base, new = runs_of(options.base, refusals), runs_of(options.new, refusals)
    other = _other_device(base, new)
    differing = apart(*([run.record for run in side] for side in (base, new)))
    refused = [(name, told) for name, told in differing.items() if name not in options.across]
    if other or refused:
        names = ",".join(name for name, _ in refused)
        told = "; ".join(told for _, told in refused)
        complain(other or f"{told}: give runs that are alike, or --across={names}")
        return Ending.REFUSED
    for run in base:
        if any(_same(run, each) for each in new):
            raise RecordError(f"{run.record.path}: is in BASE and in NEW: give two sides")
    comparison = compare(
        base,
        new,
        options.threshold,
        differing,
        options.require_power,
        options.strict,
        options.allow_missing,
    )
    code = _ending(comparison, refusals)
    if "-" not in (options.markdown, options.json, options.html):
        width = shutil.get_terminal_size((80, 24)).columns
        print(output.console(comparison, options.all, width))
    _write(options.markdown, lambda: output.markdown(comparison), refusals)
    _write(options.json, lambda: output.as_json(comparison, code), refusals)
    _write(options.html, lambda: page.page(comparison), refusals)
    return _ending(comparison, refusals)


def _ending(comparison: "Comparison", refusals: Refusals) -> int:
    """The exit code; input that could not be read counts less than a regression."""
    from gemm_report.comparison.verdict import Ending

    found = comparison.ending
    sure = found in (Ending.WRONG, Ending.REGRESSION)
    return int(found) if sure or not refusals.count else refusals.exit_code


def _write(to: str | None, made: Callable[[], str], refusals: Refusals) -> None:
    """What is wanted is made. What cannot be written is told, and the rest goes on."""
    if not to:
        return
    text = made()
    with refusals:
        try:
            if to == "-":
                print(text, end="")
            else:
                with whole_file(Path(to)) as part:
                    part.write_text(text, encoding="utf-8")
        except OSError as error:
            why = error.strerror or type(error).__name__
            raise InputError(f"{to}: cannot be written ({why}): give another place") from None


def _other_device(base: list[Run], new: list[Run]) -> str | None:
    """Why times say nothing about code; None where all runs are of one device."""
    first = base[0].record
    for record in (run.record for run in (*base, *new)):
        if devices := told_apart(record.device.model, first.device.model):
            return (
                f"{record.path}: was made on {devices[0]}, {first.path} on {devices[1]}: "
                "give runs of one device"
            )
    return None


def _conditions(text: str) -> tuple[str, ...]:
    names = tuple(filter(None, text.split(",")))
    if unknown := [name for name in names if name not in ACROSS]:
        raise argparse.ArgumentTypeError(f"{unknown[0]!r} is none of {', '.join(ACROSS)}")
    return names


def percentage(text: str) -> float:
    """As a fraction."""
    with suppress(ValueError):
        value = float(text)
        if 0 < value <= 100:
            return value / 100
    raise argparse.ArgumentTypeError(f"{text!r} is no percentage above 0 and up to 100")
