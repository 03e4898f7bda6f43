"""Every series with its levels, its changes and their suspects; found anew only where points are.

Each series is cut into windows of changes.WINDOW points, from its first point on, that overlap by
half. What ruptures proposes for a window depends on its points alone, and is kept under a hash of
them. With one more record therefore one window a series is looked at again, the one that has the
new point; the test, which weighs all proposals of a series against each other, takes a millisecond
and is always made in full. So what is found in steps is what is found at once. A record that comes
later than others which are newer moves all windows behind it: those are looked at again.
"""

import gc
import os
import signal
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from gemm_report.history.changes import (
    Change,
    Floats,
    Level,
    find_changes,
    median,
    propose,
    searching,
)
from gemm_report.history.index import Content, forked, window_key
from gemm_report.history.series import Series
from gemm_report.history.suspects import NOTHING, Suspect, suspects

Findings = Mapping[bytes, Sequence[int]]
# Fewer records are not worth a process.
_MANY = 500
# Series that a process takes at once.
_STRETCH = 8
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
    levels: tuple[Level, ...]
    turns: tuple[Turn, ...]
    strays: bool

    @property
    def newest(self) -> int:
        """The record of its newest point."""
        return int(self.series.record[-1])

    @property
    def since_first(self) -> float:
        """Seconds of the newest level over those of the first."""
        return self.levels[-1].seconds / self.levels[0].seconds


@dataclass(frozen=True)
class Memory:
    """What was proposed for windows: all that was used, and what of it is new."""

    used: frozenset[bytes]
    new: Findings


Finish = Callable[[Trend], Any]


def find_trends(
    content: Content,
    series: Sequence[Series],
    known: Findings,
    finish: Finish | None = None,
) -> tuple[list[Trend], Memory, list[Any]]:
    """The trends in the order of `series`, and what `finish`, in other processes, made of each."""
    load_libraries()
    # The points are those of the series: where they are copied, once is enough.
    background = replace(content, points=content.points[:0], record=content.record[:0])
    find = partial(_part, background, known=known, finish=finish)
    workers = len(os.sched_getaffinity(0))
    if workers == 1 or len(content.entries) < _MANY:
        parts = [find(series)]
    else:
        # Processes that are forked have all that is in memory, libraries included; what the
        # collector of garbage looks at would be copied.
        gc.freeze()
        with ProcessPoolExecutor(workers, forked(), _begin, (find, series)) as pool:
            parts = list(pool.map(_continue, range(0, len(series), _STRETCH)))
        gc.unfreeze()
    found: list[tuple[Any, ...]] = []
    used: set[bytes] = set()
    new: dict[bytes, Sequence[int]] = {}
    for results, part_used, part_new in parts:
        found += results
        used |= part_used
        new |= part_new
    trends = [Trend(s, *rest) for s, (*rest, _) in zip(series, found, strict=True)]
    return trends, Memory(frozenset(used), new), [finished for *_, finished in found]


_work: list[Any] = []


def _begin(find: Callable[[Sequence[Series]], Any], series: Sequence[Series]) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # as those that read the records
    _work[:] = find, series


def _continue(start: int) -> Any:
    find, series = _work
    return find(series[start : start + _STRETCH])


def load_libraries() -> None:
    """Those that are slow to load."""
    import scipy.special  # noqa: F401

    searching()


def _part(
    content: Content, series: Sequence[Series], known: Findings, finish: Finish | None
) -> tuple[list[tuple[Any, ...]], set[bytes], dict[bytes, Sequence[int]]]:
    used: set[bytes] = set()
    new: dict[bytes, Sequence[int]] = {}

    def remembered(window: Floats) -> Sequence[int]:
        key = window_key(window)
        used.add(key)
        if key not in known and key not in new:
            new[key] = propose(window)
        return known[key] if key in known else new[key]

    results = []
    for each in series:
        trend = find_trend(content, each, remembered)
        finished = finish and finish(trend)
        # The series itself stays where it is.
        results.append((trend.levels, trend.turns, trend.strays, finished))
    return results, used, new


def find_trend(
    content: Content, series: Series, propose: Callable[[Floats], Sequence[int]] = propose
) -> Trend:
    """What is found in one series."""
    levels, changes = find_changes(series.seconds, propose)
    bounds = [0, *(level.end for level in levels)]
    turns = [
        Turn(
            change,
            suspects(
                series, change, (bounds[i], bounds[i + 2]), content.entries, content.fingerprints
            ),
        )
        for i, change in enumerate(changes)
    ]
    return Trend(
        series, tuple(levels), tuple(turns), _strays(series.seconds[bounds[-2] :][-_RECENT:])
    )


def _strays(seconds: Floats) -> bool:
    """Whether the last is further from the middle than the others by far."""
    if len(seconds) < 8:
        return False
    logarithms = np.log(seconds)
    away = np.abs(logarithms - median(logarithms))
    return bool(away[-1] > max(_STRAYS * 1.4826 * median(away), 0.01))
