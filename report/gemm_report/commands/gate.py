"""Compare the newest record of a folder with a baseline's, and end with 1 for a regression.

The baseline's records are those in DIR of one commit and device that were made most like the new
one (options, method, driver). They count as processes of equal code.
--baseline is the beginning of a commit, whatever git calls a commit where DIR is in a repository
(main, v1.2, HEAD~3), or the path of a record or of a folder of records.

Verdicts and options are those of compare. In GitHub Actions the Markdown goes to the job's summary,
unless --markdown says where.

examples:
  gemm-report gate results --baseline main
  gemm-report gate results/nvidia-h200 --baseline 937303dac991 --require-power=5
  gemm-report gate results --new build/new --baseline 937303dac991 --markdown=comment.md
"""

import argparse
import os
from pathlib import Path
from typing import TYPE_CHECKING

from gemm_report.collection import Refusals, record_paths
from gemm_report.commands import compare
from gemm_report.commands.compare import add_comparison, judged, readable, runs_of
from gemm_report.document import InputError, RecordError

if TYPE_CHECKING:
    from gemm_report.comparison.run import Run

_OWN = (__doc__ or "").partition("\n")[2].lstrip()
# 3 also where the baseline has no record.
EPILOG = f"{_OWN}\nexit codes:{(compare.__doc__ or '').rpartition('exit codes:')[2]}"


def add(command: argparse.ArgumentParser) -> None:
    command.add_argument("folder", type=Path, metavar="DIR", help="results, or results/<device>")
    command.add_argument("--baseline", required=True, metavar="REF", help="commit, ref or path")
    command.add_argument(
        "--new",
        type=Path,
        metavar="FILE",
        help="the record, or folder of records, to be judged (default: the newest of DIR)",
    )
    add_comparison(command)


def run(options: argparse.Namespace) -> int:
    refusals = Refusals()
    new = runs_of(options.new, refusals) if options.new else [_newest(options.folder, refusals)]
    base = _baseline(options, new, refusals)
    if not options.markdown:
        options.summary = os.environ.get("GITHUB_STEP_SUMMARY")
    return judged(options, base, new, refusals)


def _newest(folder: Path, refusals: Refusals) -> "Run":
    """That can be read."""
    for path in reversed(record_paths(folder)):
        try:
            return runs_of(path, refusals)[0]
        except InputError as error:
            refusals.add(error)
    raise RecordError(f"{folder}: has no record: run gemm_bench, or give another folder")


def _baseline(options: argparse.Namespace, new: list["Run"], refusals: Refusals) -> list["Run"]:
    """The baseline's processes; RecordError where there are none."""
    from gemm_report.comparison.baseline import chosen, is_of, may_be_of, resolved

    reference, judged_paths = options.baseline, {run.path.resolve() for run in new}
    names = [reference, *filter(None, [resolved(reference, options.folder)])]
    paths = [
        path
        for path in record_paths(options.folder)
        if path.resolve() not in judged_paths and any(may_be_of(path, name) for name in names)
    ]
    found = [
        run
        for run in readable(paths, refusals)
        if run.record and any(is_of(run.record.commit, name) for name in names)
        if options.across_devices or run.device == new[-1].device
    ]
    if found:
        return chosen(found, new[-1], reference)
    if Path(reference).exists():
        return runs_of(Path(reference), refusals)
    raise RecordError(
        f"{options.folder}: has no other record of {reference} "
        f"{f'(commit {names[1][:12]}) ' if names[1:] else ''}on {new[-1].device}: "
        "run gemm_bench there, or give another --baseline"
    )
