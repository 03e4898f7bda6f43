"""Every series with its segments, its changes and their suspects."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from gemm_report.history.changes import Change, Floats, Segment, find_changes
from gemm_report.history.series import History, Series
from gemm_report.history.suspects import suspects

_STRAYS = 4.0
_RECENT = 100


@dataclass(frozen=True)
class Trend:
    """A series and what was found in it. `strays` if its newest point is far off its level."""

    series: Series
    segments: tuple[Segment, ...]
    changes: tuple[Change, ...]
    strays: bool

    @property
    def newest(self) -> int:
        """The record of its newest point."""
        return int(self.series.record[-1])

    @property
    def since_first(self) -> float:
        """Seconds of the newest over those of the oldest: all changes together."""
        return math.prod(change.ratio for change in self.changes)


def find_trends(history: History, of: Sequence[Series] | None = None) -> list[Trend]:
    """In the order of the series; or `of` others that are made of them."""
    found = []
    for series in history.series if of is None else of:
        segments, changes = find_changes(series.seconds)
        for i, change in enumerate(changes):
            its = suspects(series, change, _around(segments, change), history.entries)
            changes[i] = replace(change, suspects=its)
        strays = _strays(series.seconds, segments[-1])
        found.append(Trend(series, tuple(segments), tuple(changes), strays))
    return found


def _around(segments: Sequence[Segment], change: Change) -> tuple[int, int]:
    """Where the level before it begins and the one after it ends."""
    starts = [segment.start for segment in segments if segment.start < change.start]
    ends = [segment.end for segment in segments if segment.end > change.at]
    return max(starts, default=0), min(ends, default=segments[-1].end)


def _strays(seconds: Floats, segment: Segment) -> bool:
    """Whether the last is further from its segment than the others by far."""
    if segment.end - segment.start < 8:
        return False
    fit = np.geomspace(segment.seconds, segment.last_seconds, segment.end - segment.start)
    logarithms = np.log(seconds[segment.start :] / fit)[-_RECENT:]
    away = np.abs(logarithms - np.median(logarithms))
    return bool(away[-1] > max(_STRAYS * 1.4826 * np.median(away), 0.01))
