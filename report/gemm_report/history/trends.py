"""Every series with its segments, its changes and their suspects."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gemm_report.history.changes import Change, Floats, Segment, find_changes
from gemm_report.history.series import History, Series
from gemm_report.history.suspects import NOTHING, Suspect, suspects

_STRAYS = 4.0
_RECENT = 100


@dataclass(frozen=True)
class Turn:
    """A change of a series and what it may be put down to, the likeliest first."""

    change: Change
    suspects: tuple[Suspect, ...]

    @property
    def suspect(self) -> str:
        """The likeliest."""
        return str(self.suspects[0]) if self.suspects else NOTHING


@dataclass(frozen=True)
class Trend:
    """A series and what was found in it. `strays` if its newest point is far off its level."""

    series: Series
    segments: tuple[Segment, ...]
    turns: tuple[Turn, ...]
    strays: bool

    @property
    def newest(self) -> int:
        """The record of its newest point."""
        return int(self.series.record[-1])

    @property
    def since_first(self) -> float:
        """Seconds of the newest level over those of the first."""
        return self.segments[-1].seconds / self.segments[0].seconds


def find_trends(history: History, of: Sequence[Series] | None = None) -> list[Trend]:
    """In the order of the series; or `of` others that are made of them."""
    return [_trend(history, series) for series in (history.series if of is None else of)]


def _trend(history: History, series: Series) -> Trend:
    segments, changes = find_changes(series.seconds)
    bounds = [0, *(segment.end for segment in segments)]
    turns = tuple(
        Turn(change, suspects(series, change, (bounds[i], bounds[i + 2]), history.entries))
        for i, change in enumerate(changes)
    )
    newest = series.seconds[bounds[-2] :][-_RECENT:]
    return Trend(series, tuple(segments), turns, _strays(newest))


def _strays(seconds: Floats) -> bool:
    """Whether the last is further from the middle than the others by far."""
    if len(seconds) < 8:
        return False
    logarithms = np.log(seconds)
    away = np.abs(logarithms - np.median(logarithms))
    return bool(away[-1] > max(_STRAYS * 1.4826 * np.median(away), 0.01))
