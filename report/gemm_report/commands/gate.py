"""Compare the newest records of a folder with a baseline's, and exit with 1 for a regression.

NEW are the newest record in DIR and those of its commit, BASE those of one other commit: fresh
processes of equal code, of the same device and measured alike, three or more of each.
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
import re
import subprocess
from collections.abc import Sequence
from pathlib import Path

from gemm_report.collection import Refusals, record_paths
from gemm_report.commands import compare
from gemm_report.commands.compare import add_comparison, judged, readable, runs_of
from gemm_report.comparison.conditions import apart
from gemm_report.comparison.run import Run, run_of
from gemm_report.document import RecordError
from gemm_report.record import read_record

# results/README.md: what gemm_bench calls a record.
_NAME = re.compile(r"\d{8}T\d{6}Z-(?P<commit>.+?)\.json(\.gz)?")
_FEWEST_DIGITS = 4

_OWN = (__doc__ or "").partition("\n")[2].lstrip()
# 3 also where the baseline has no record.
EPILOG = f"{_OWN}\nexit codes:{(compare.__doc__ or '').rpartition('exit codes:')[2]}"


def add(command: argparse.ArgumentParser) -> None:
    command.add_argument("folder", type=Path, metavar="DIR", help="results, or results/<device>")
    command.add_argument("--baseline", required=True, metavar="REF", help="commit, ref or path")
    said = "the record or folder to be judged (default: the newest of DIR, and those of its commit)"
    command.add_argument("--new", type=Path, metavar="FILE", help=said)
    add_comparison(command)


def run(options: argparse.Namespace) -> int:
    refusals = Refusals()
    new = runs_of(options.new, refusals) if options.new else _newest(options.folder, refusals)
    base = _baseline(options, new, refusals)
    if not options.markdown:
        options.summary = os.environ.get("GITHUB_STEP_SUMMARY")
    return judged(options, base, new, refusals)


def _newest(folder: Path, refusals: Refusals) -> list[Run]:
    """The newest record, and those of its commit; RecordError where there is none."""
    paths = record_paths(folder)
    for path in reversed(paths):
        with refusals:
            newest = run_of(read_record(path))
            commit = newest.record.commit if newest.record else ""
            others = [each for each in paths if each != path and _may_be_of(each, commit)]
            runs = [newest, *readable(others, refusals)]
            return _alike([run for run in runs if _is_of(run, commit) or run is newest], newest)
    raise RecordError(f"{folder}: has no record: run gemm_bench, or give another folder")


def _alike(runs: Sequence[Run], like: Run) -> list[Run]:
    """Those on the same device that were measured alike."""
    own = [like.record] if like.record else []
    return [
        run
        for run in runs
        if run is like or (run.record and not run.unlike(like) and not apart([run.record], own))
    ]


def _baseline(options: argparse.Namespace, new: list[Run], refusals: Refusals) -> list[Run]:
    """The baseline's processes; RecordError where there are none."""
    reference, judged_paths = options.baseline, {run.path.resolve() for run in new}
    names = [reference, *filter(None, [_resolved(reference, options.folder)])]
    paths = [
        path
        for path in record_paths(options.folder)
        if path.resolve() not in judged_paths and any(_may_be_of(path, name) for name in names)
    ]
    found = [
        run
        for run in readable(paths, refusals)
        if any(_is_of(run, name) for name in names)
        if "device" in options.across or not run.unlike(new[-1])
    ]
    commits = sorted({run.record.commit for run in found if run.record})
    if len(commits) > 1:
        raise RecordError(
            f"{reference}: is the beginning of several commits ({', '.join(commits)}): "
            "give more of it"
        )
    if found:
        # Where none was measured alike, compare says what differs.
        return _alike(found, new[0]) or found
    if Path(reference).exists():
        return runs_of(Path(reference), refusals)
    raise RecordError(
        f"{options.folder}: has no other record of {reference} "
        f"{f'(commit {names[1][:12]}) ' if names[1:] else ''}on {new[-1].device}: "
        "run gemm_bench there, or give another --baseline"
    )


def _resolved(reference: str, folder: Path) -> str | None:
    """The commit that git has under this name in the repository that has `folder`."""
    # A reference never begins with a hyphen, and must not become an option.
    if reference.startswith("-"):
        return None
    command = ["git", "-C", str(folder), "rev-parse", "--verify", "--quiet"]
    command.append(f"{reference}^{{commit}}")
    # GIT_DIR, which a hook sets, may name another repository.
    environment = {name: it for name, it in os.environ.items() if not name.startswith("GIT_")}
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    except (OSError, ValueError):
        return None
    return done.stdout.strip() or None if done.returncode == 0 else None


def _is_of(run: Run, reference: str) -> bool:
    return run.record is not None and _named(run.record.commit, reference)


def _named(commit: str, reference: str) -> bool:
    """Whether a record's commit is the one that digits name, of which either may have more.

    A build with uncommitted changes ends with -dirty and is of no commit.
    """
    shorter = min(len(commit), len(reference))
    return (
        shorter >= _FEWEST_DIGITS
        and commit[:shorter] == reference[:shorter]
        and ("-" not in commit or len(reference) >= len(commit))
    )


def _may_be_of(path: Path, reference: str) -> bool:
    # Most file names tell the commit: others are worth reading.
    named = _NAME.fullmatch(path.name)
    return named is None or _named(named["commit"], reference)
