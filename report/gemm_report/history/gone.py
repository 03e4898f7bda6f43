"""Cases that had a time and have none any more: skipped now, renamed, or no longer there."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gemm_report.history.series import History, Series
from gemm_report.record import Identity

# Without machine code to compare, a renamed case keeps its time within this factor.
_SAME_TIME = 1.05


@dataclass(frozen=True)
class Gone:
    """A series without a time since record `since`, though that record has most of its neighbours.

    `why` says what became of it; `now` is its new name, if it has one.
    """

    series: Series
    since: int
    why: str
    now: Identity | None = None

    @property
    def last(self) -> int:
        """The last record with a time."""
        return int(self.series.record[-1])


def find_gone(history: History) -> list[Gone]:
    """The newest first. Failed cases have a verdict and are not gone."""
    timed: dict[int, set[Identity]] = defaultdict(set)
    seen: dict[int, set[Identity]] = defaultdict(set)
    for series in history.series:
        for record in series.record.tolist():
            timed[record].add(series.case)
        for record in (*series.record.tolist(), *series.failed.tolist()):
            seen[record].add(series.case)
    entries, found = history.entries, []
    for series in history.series:
        last = int(series.record[-1])
        lacking = (
            i
            for i in range(last + 1, len(entries))
            if entries[i].device == series.device
            and entries[i].complete  # an interrupted one lacks cases that are still there
            and series.case not in seen[i]
            # A run of a few kernels on purpose is no sign that the others are gone.
            and 2 * len(seen[i] & timed[last]) >= len(timed[last])
        )
        since = next(lacking, None)
        if since is not None and series.failed.max(initial=-1) < since:
            found.append(_told(series, since, history.series))
    return sorted(found, key=lambda gone: (-gone.since, str(gone.series.case)))


def _told(series: Series, since: int, others: Sequence[Series]) -> Gone:
    if since in series.skipped:
        return Gone(series, since, f"skipped: {series.skipped[since]}")
    new = [other for other in others if int(other.record[0]) == since and _same(series, other)]
    if len(new) != 1:
        return Gone(series, since, "not in the record")
    code = "same machine code" if series.fingerprint[-1] else "same problem and time"
    return Gone(series, since, f"renamed to {new[0].case} ({code})", new[0].case)


def _same(old: Series, new: Series) -> bool:
    """Whether these are one case under two names."""
    if old.case[2:] != new.case[2:]:
        return False
    if old.fingerprint[-1] or new.fingerprint[0]:
        return old.fingerprint[-1] == new.fingerprint[0]
    return bool(abs(np.log(new.seconds[0] / old.seconds[-1])) < np.log(_SAME_TIME))
