"""Say which cases of NEW are slower or faster than in BASE by more than noise.

A folder of records counts as several processes of equal code: give three a side. The noise between
processes is estimated from these processes, from --noise or else the device's newest calibration
next to the records or in this repository (tools/calibrate makes one), else from other records next
to NEW that ran the same machine code on the same GPU, else from similar cases on GPUs of the same
compute capability. The second line says which slowdown the comparison detects with 90 % probability
in code that changed.

verdicts, by an interval that holds for all cases together with 95 %:
  same       the whole interval is within the threshold
  slower     the interval excludes no change, and the estimate is beyond the threshold
  faster     the same for a speed-up
  ambiguous  anything else: a line says what is missing (more samples, more processes or a
             calibration), or that two speeds of equal code may explain a change of up to 15 %

In cycles: the change in SM cycles. If the cycles are the same and the time is not, the clock is the
suspect.

--across-devices: speed of NEW over BASE by precision, per clock and per watt; no verdict.

A library of another release (cuBLAS 13.0 and 13.1) is named in the first line. Its own cases are no
code of yours and are not compared, unless --across-libraries asks for it.

--json: `cases` (worst first) have name, verdict, base_seconds, new_seconds, ratio (NEW over BASE),
time and cycles (ratio, low and high of the interval; only of the processes that are compared, if
equal ones ran at several speeds), detectable (a fraction), sd_within and sd_between (of the log
ratio), noise (its source), suspect, needs, and kernel, parameters, precision, layout, m, n, k,
throttled_share of the row. The other keys are ending (the exit code), regression, counts,
detectable, excluded, threshold, confidence, calibration, base, new, failed and otherwise_failed
(wrong results), no_longer_timed, newly_timed, only_base, only_new, libraries (of other releases),
other_library (their cases, not compared), remarks. Unknown values are
null.

examples:
  gemm-report compare before.json after.json
  gemm-report compare before/ after/ --threshold=2 --markdown=comment.md --html=changes.html
  gemm-report compare before/ after/ --require-power=5 --strict
  gemm-report compare h100.json h200.json --across-devices

exit codes:
  5  a result is wrong now, or its kernel fails
  1  regression: a case is slower
  3  bad input, or a place that cannot be written: one line on standard error says which file, and
     what to do
  6  cases are missing: skipped now, or gone (--allow-missing accepts them)
  2  not enough data: a slowdown of 10 % (--require-power) would not be found with 90 % probability,
     or a case seems that much slower and is ambiguous; with --strict: any case is ambiguous
  0  no regression
  7  the devices differ: nothing was compared
If several apply, the first of these counts.
"""

import argparse
import json
import shutil
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from gemm_report.collection import Refusals, record_paths
from gemm_report.comparison.conditions import library_changes
from gemm_report.comparison.devices import HEAD, ratios
from gemm_report.comparison.noise.calibration import (
    Calibration,
    from_history,
    newest_calibration,
    read_calibration,
)
from gemm_report.comparison.run import Run, run_of
from gemm_report.document import InputError, RecordError
from gemm_report.record import read_record
from gemm_report.terminal import complain
from gemm_report.writing.tables import columns, markdown_table
from gemm_report.writing.whole_file import whole_file

if TYPE_CHECKING:
    from gemm_report.comparison.verdict import Comparison

REGRESSION, NOT_ENOUGH, WRONG, MISSING, OTHER_DEVICE = 1, 2, 5, 6, 7
_REPOSITORY = Path(__file__).parents[3] / "results"


def add(command: argparse.ArgumentParser) -> None:
    command.add_argument("base", type=Path, metavar="BASE", help="a record, or a folder of them")
    command.add_argument("new", type=Path, metavar="NEW", help="the same, to be compared")
    add_comparison(command)


def add_comparison(command: argparse.ArgumentParser) -> None:
    """The options of every comparison."""
    option = command.add_argument
    said = "the smallest difference that matters (default 1)"
    option("--threshold", type=_percent, default=0.01, metavar="PERCENT", help=said)
    said = "the calibration to use, or none (default: the device's newest next to the records)"
    option("--noise", metavar="FILE", help=said)
    said = "exit with 2 unless such a slowdown would be found (default 10, or twice the threshold)"
    option("--require-power", type=_percent, metavar="PERCENT", help=said)
    for name, said in (
        ("--strict", "exit with 2 for ambiguous cases"),
        ("--allow-missing", "accept cases that no longer have a time"),
        ("--across-devices", "compare two devices, without a verdict"),
        ("--across-libraries", "compare the cases of a library whose release changed, too"),
        ("--all", "list the cases that are the same, too"),
    ):
        option(name, action="store_true", help=said)
    option("--markdown", metavar="FILE", help="write Markdown (- is the console)")
    option("--json", metavar="FILE", help="write everything as JSON (- is the console)")
    option("--html", metavar="FILE", help="write a page for the browser")


def run(options: argparse.Namespace) -> int:
    refusals = Refusals()
    base, new = runs_of(options.base, refusals), runs_of(options.new, refusals)
    return judged(options, base, new, refusals)


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
                if each.timed and each.timed == run.timed:
                    raise RecordError(f"{path}: is the same run as {each.path}: it counts once")
            known.append(run)
    return known


def judged(options: argparse.Namespace, base: list[Run], new: list[Run], refusals: Refusals) -> int:
    """Compares, tells as the options say, and gives the exit code."""
    from gemm_report.comparison import output, page
    from gemm_report.comparison.verdict import compare

    if other := _other_device(base, new):
        if options.across_devices:
            return _across(options, base, new, refusals)
        complain(other)
        return OTHER_DEVICE
    noise = _calibration(options.noise, base, new)
    comparison = compare(base, new, noise, options.threshold, options.across_libraries)
    code = _ending(comparison, options, refusals)
    if "-" not in (options.markdown, options.json, options.html):
        width = shutil.get_terminal_size((80, 24)).columns
        print(output.console(comparison, options.all, width))
        if code == NOT_ENOUGH:
            print(
                "not enough data: give 3 runs per side or more (tools/gate REF -n 5), a "
                "calibration (tools/calibrate), or --require-power=PERCENT"
            )
    _write(options.markdown, lambda: output.markdown(comparison), refusals)
    _write(options.json, lambda: output.as_json(comparison, code), refusals)
    _write(options.html, lambda: page.page(comparison), refusals)
    summary = getattr(options, "summary", None)
    _write(summary, lambda: output.markdown(comparison), refusals, append=True)
    return _ending(comparison, options, refusals)


def _ending(comparison: "Comparison", options: argparse.Namespace, refusals: Refusals) -> int:
    """The exit code."""
    from gemm_report.comparison.verdict import Verdict

    ambiguous = comparison.count(Verdict.AMBIGUOUS)
    wanted = options.require_power or max(0.1, 2 * options.threshold)
    endings = (
        (WRONG, comparison.failed),
        (REGRESSION, comparison.count(Verdict.SLOWER)),
        (refusals.exit_code, refusals.count),
        (MISSING, comparison.missing and not options.allow_missing),
        (NOT_ENOUGH, comparison.unsure(wanted) or (options.strict and ambiguous)),
    )
    return next((code for code, applies in endings if applies), 0)


def _across(
    options: argparse.Namespace, base: list[Run], new: list[Run], refusals: Refusals
) -> int:
    """Tells how two devices differ."""
    found = ratios(base, new)
    if not found:
        raise RecordError(f"{new[0].path}: has no case of {base[0].path}: give runs of the same")
    said = f"{new[0].device} over {base[0].device}: geometric means, no verdict on code"
    records = ([run.record for run in side if run.record] for side in (base, new))
    changed = [f"{name}: {told}" for name, told in library_changes(*records).items()]
    said = "; ".join((*changed, said))
    cells = [each.cells() for each in found]
    with refusals:
        if options.html:
            raise InputError("--html: has no page for two devices: give --markdown or --json")
    if "-" not in (options.markdown, options.json):
        print(f"{said}\n\n{columns([HEAD, *cells], left=1)}")
    document = [asdict(each) for each in found]
    _write(options.markdown, lambda: f"### {said}\n\n{markdown_table(HEAD, cells)}\n", refusals)
    _write(options.json, lambda: json.dumps(document, indent=1) + "\n", refusals)
    return refusals.exit_code


def _write(
    to: str | None, made: Callable[[], str], refusals: Refusals, append: bool = False
) -> None:
    """What is wanted is made. What cannot be written is told, and the rest goes on."""
    if not to:
        return
    text = made()
    with refusals:
        try:
            if to == "-":
                print(text, end="")
            elif append:
                with Path(to).open("a", encoding="utf-8") as file:
                    file.write(text)
            else:
                with whole_file(Path(to)) as part:
                    part.write_text(text, encoding="utf-8")
        except OSError as error:
            why = error.strerror or type(error).__name__
            raise InputError(f"{to}: cannot be written ({why}): give another place") from None


def _other_device(base: list[Run], new: list[Run]) -> str | None:
    """Why times say nothing about code; None where all runs are of one device."""
    first = base[0]
    for run in (*base, *new):
        if devices := run.unlike(first):
            return (
                f"{run.path}: was made on {devices[0]}, {first.path} on {devices[1]}: "
                "give runs of one, or --across-devices"
            )
    return None


def _calibration(named: str | None, base: list[Run], new: list[Run]) -> Calibration | None:
    """The one that was named, else the newest of the device, next to the records or stored.

    Else from other records next to NEW, unless these say nothing, or several processes do.
    """
    from gemm_report.comparison.verdict import ENOUGH_PROCESSES

    if named:
        return None if named == "none" else read_calibration(Path(named))
    folders = dict.fromkeys(run.path.parent for run in (*reversed(new), *reversed(base)))
    folder, like = next(iter(folders)), new[-1].record
    folders |= dict.fromkeys(sorted(_REPOSITORY.glob("*/")))
    if found := newest_calibration(folders, new[-1].device, like and like.device):
        return found
    if like is None or min(len(base), len(new)) >= ENOUGH_PROCESSES:
        return None
    records, known = [], {run.path.resolve() for run in (*base, *new)}
    for path in record_paths(folder):
        if path.resolve() not in known:
            with suppress(InputError):
                records.append(read_record(path))
    return from_history(records, like)


def _percent(text: str) -> float:
    with suppress(ValueError):
        value = float(text)
        if 0 < value <= 100:
            return value / 100
    raise argparse.ArgumentTypeError(f"{text!r} is no percentage above 0 and up to 100")
