"""Say which cases of NEW are slower or faster than in BASE by more than noise.

A folder of records counts as several processes of equal code: the noise between processes then
averages down, and is known better. That noise comes from --noise, else from the device's newest
calibration next to the records: tools/calibrate makes it, of ten processes. Without a calibration
of a case only large changes can be detected: 13 % where there are a hundred cases.

verdicts, by an interval that holds for all cases together with 95 %:
  same       the whole interval is within the threshold
  slower     the interval excludes no change, and the estimate is beyond the threshold
  faster     likewise
  ambiguous  anything else: the row says what is missing, more samples, more processes or a
             calibration; and what the GPU's clock, a level of equal code (processes of it were
             seen at two speeds) or one unlucky process may explain

In cycles: the change that is left when the SM clock is taken out. Where that is the same and the
time is not, the clock is the suspect.

--json: `cases` (worst first) have name, verdict, base_seconds, new_seconds, ratio (NEW over BASE),
time and cycles (ratio, low and high of the interval; after the `offset` of another level of equal
code), sd_within and sd_between (of the log ratio), noise (whence that is known), suspect, needs,
and kernel, parameters, precision, layout, m, n, k, throttled_share of the row. Beside them are
regression, counts, threshold, confidence, calibration, base, new, failed and otherwise_failed
(wrong results), no_longer_timed, newly_timed, only_base, only_new, remarks. What is not known is
null.

examples:
  gemm-report compare before.json after.json
  gemm-report compare before/ after/ --threshold=2 --markdown=comment.md --html=changes.html
  gemm-report compare before.json after.json --noise=noise.json --strict

exit codes:
  0  no regression
  1  regression: a case is slower, or its result is wrong now
  2  with --strict: nothing is slower, but some cases are ambiguous or have no time any more
  3  bad input, or a place that cannot be written: one line on standard error says which file, and
     what to do
"""

import argparse
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from gemm_report.collection import Refusals, record_paths
from gemm_report.document import InputError, RecordError
from gemm_report.terminal import width
from gemm_report.writing.whole_file import whole_file

if TYPE_CHECKING:
    from gemm_report.comparison.noise.calibration import Calibration
    from gemm_report.comparison.run import Run
REGRESSION, AMBIGUOUS = 1, 2


def add(command: argparse.ArgumentParser) -> None:
    command.add_argument("base", type=Path, metavar="BASE", help="a record, or a folder of them")
    command.add_argument("new", type=Path, metavar="NEW", help="the same, to be judged")
    add_comparison(command)


def add_comparison(command: argparse.ArgumentParser) -> None:
    """The options of every comparison."""
    command.add_argument(
        "--threshold",
        type=_percent,
        default=0.01,
        metavar="PERCENT",
        help="the smallest difference that matters (default 1)",
    )
    command.add_argument(
        "--noise",
        metavar="FILE",
        help="the calibration to take, or none (default: the device's newest next to the records)",
    )
    command.add_argument(
        "--across-devices", action="store_true", help="compare though the devices differ"
    )
    command.add_argument("--strict", action="store_true", help="end with 2 for ambiguous cases")
    command.add_argument("--all", action="store_true", help="name the cases that are the same, too")
    command.add_argument("--markdown", metavar="FILE", help="for a pull request (- is the console)")
    command.add_argument("--json", metavar="FILE", help="all there is to know (- is the console)")
    command.add_argument("--html", metavar="FILE", help="a page for the browser")


def run(options: argparse.Namespace) -> int:
    refusals = Refusals()
    base, new = runs_of(options.base, refusals), runs_of(options.new, refusals)
    return judged(options, base, new, refusals)


def runs_of(path: Path, refusals: Refusals) -> list["Run"]:
    """The processes of one side: a record's, or those of a folder but for what is none."""
    if not path.is_dir():
        return [_run(path)]
    runs = list(readable(record_paths(path), refusals))
    if not runs:
        raise RecordError(f"{path}: has no record: give one that gemm_bench wrote")
    return runs


def readable(paths: Iterable[Path], refusals: Refusals) -> Iterator["Run"]:
    """Those that can be read, each once; what is wrong with the others is told."""
    known: list[Run] = []
    for path in paths:
        try:
            run = _run(path)
        except InputError as error:
            refusals.add(error)
            continue
        same = next((each for each in known if each.timed and each.timed == run.timed), None)
        if same:
            refusals.add(RecordError(f"{path}: is the same run as {same.path}: it counts once"))
            continue
        known.append(run)
        yield run


def judged(
    options: argparse.Namespace, base: list["Run"], new: list["Run"], refusals: Refusals
) -> int:
    """Compares, tells as the options say, and gives the exit code."""
    import scipy.special  # noqa: F401 - at once, where it is missing

    from gemm_report.comparison import output, page
    from gemm_report.comparison.verdict import Verdict, compare, process

    _check_devices(base, new, options.across_devices)
    comparison = compare(
        [process(run) for run in base],
        [process(run) for run in new],
        _calibration(options.noise, base, new),
        options.threshold,
    )
    outputs = (
        (options.markdown, output.markdown),
        (options.json, output.as_json),
        (options.html, page.page),
    )
    if not any(to == "-" for to, _ in outputs):
        print(output.console(comparison, options.all, width()))
    for to, text in outputs:
        if to == "-":
            print(text(comparison), end="")
        elif to:
            with _writing(to, refusals), whole_file(Path(to)) as part:
                part.write_text(text(comparison), encoding="utf-8")
    if summary := getattr(options, "summary", None):
        with _writing(summary, refusals), Path(summary).open("a", encoding="utf-8") as file:
            file.write(output.markdown(comparison))
    if comparison.regressed:
        return REGRESSION
    if refusals.count:
        return refusals.exit_code
    gone = comparison.no_longer_timed or comparison.only_base
    unknown = comparison.count(Verdict.AMBIGUOUS) or gone
    return AMBIGUOUS if options.strict and unknown else 0


@contextmanager
def _writing(to: str, refusals: Refusals) -> Iterator[None]:
    """What cannot be written is told, and the rest goes on."""
    try:
        yield
    except OSError as error:
        why = error.strerror or type(error).__name__
        refusals.add(InputError(f"{to}: cannot be written ({why}): give another place"))
    except InputError as error:
        refusals.add(error)


def _run(path: Path) -> "Run":
    from gemm_report.exchange.foreign import read_run

    return read_run(path)


def _check_devices(base: list["Run"], new: list["Run"], across: bool) -> None:
    """Times of two devices say nothing about code."""
    if across:
        return
    first = base[0]
    for run in (*base, *new):
        if run.device != first.device:
            raise RecordError(
                f"{run.path}: was made on {run.device or 'an unknown device'}, {first.path} on "
                f"{first.device or 'an unknown device'}: give runs of one, or --across-devices"
            )


def _calibration(named: str | None, base: list["Run"], new: list["Run"]) -> "Calibration | None":
    """The one that was named, else the newest of the device next to the records."""
    from gemm_report.comparison.noise.calibration import newest_calibration, read_calibration

    if named == "none":
        return None
    if named:
        return read_calibration(Path(named))
    folders = dict.fromkeys(run.path.parent for run in (*reversed(new), *reversed(base)))
    path = newest_calibration(folders, new[-1].device)
    return path and read_calibration(path)


def _percent(text: str) -> float:
    with suppress(ValueError):
        value = float(text)
        if 0 < value <= 100:
            return value / 100
    raise argparse.ArgumentTypeError(f"{text!r} is no percentage above 0 and up to 100")
