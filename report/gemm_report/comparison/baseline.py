"""Which records of a folder are the baseline that a reference names."""

import re
import subprocess
from collections.abc import Sequence
from pathlib import Path

from gemm_report.comparison.conditions import alikeness
from gemm_report.comparison.run import Run
from gemm_report.document import RecordError

# results/README.md: what gemm_bench calls a record.
_NAME = re.compile(r"\d{8}T\d{6}Z-(?P<commit>.+?)\.json(\.gz)?")
_FEWEST_DIGITS = 4


def resolved(reference: str, folder: Path) -> str | None:
    """The commit that git has under this name in the repository that has `folder`."""
    # A reference never begins with a hyphen, and must not become an option.
    if reference.startswith("-"):
        return None
    command = ["git", "-C", str(folder), "rev-parse", "--verify", "--quiet"]
    try:
        done = subprocess.run(
            [*command, f"{reference}^{{commit}}"], capture_output=True, text=True, check=False
        )
    except (OSError, ValueError):
        return None
    return done.stdout.strip() or None if done.returncode == 0 else None


def is_of(commit: str, reference: str) -> bool:
    """Whether a record's commit is the one that digits name, of which either may have more.

    A build with uncommitted changes ends with -dirty and is of no commit.
    """
    shorter = min(len(commit), len(reference))
    return (
        shorter >= _FEWEST_DIGITS
        and commit[:shorter] == reference[:shorter]
        and ("-" not in commit or len(reference) >= len(commit))
    )


def may_be_of(path: Path, reference: str) -> bool:
    """Whether it is worth reading: most file names tell the commit."""
    named = _NAME.fullmatch(path.name)
    return named is None or is_of(named["commit"], reference)


def chosen(runs: Sequence[Run], new: Run, reference: str) -> list[Run]:
    """Of a baseline's runs those that were made most like NEW.

    RecordError where they are of several commits.
    """
    commits = sorted({run.record.commit for run in runs if run.record})
    if len(commits) > 1:
        raise RecordError(
            f"{reference}: is the beginning of several commits ({', '.join(commits)}): "
            "give more of it"
        )
    likeness = [
        alikeness(run.record, new.record) if run.record and new.record else 0 for run in runs
    ]
    return [run for run, like in zip(runs, likeness, strict=True) if like == max(likeness)]
