"""Every series with its segments and changes, and what differs at each: its suspects."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest

import numpy as np

from gemm_report.history.changes import SHORTEST, Change, Floats, Segment, Suspect, find_changes
from gemm_report.history.series import SETTINGS, Entry, History, Series
from gemm_report.writing.quantity import megahertz

_STRAYS = 4.0
_RECENT = 100

# The likeliest first. Where the step is not there in cycles of the clock, code explains nothing.
_IN_CYCLES = ("library", "fingerprint", *SETTINGS)
_OF_CLOCK = ("power limit", "clock", "driver", "library", "toolkit", "build", "fingerprint")
_OF_CLOCK += ("commit",)
# On both sides of a change a value has to hold for so many points, or as long as the level does.
_HELD = 8
# For the clock: more points of a level know its clock no better.
_NEAR = 64
# The share of a step, in logarithms, that may be left of it in cycles.
_LEFT = 1 / 3


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
            its = _suspects(series, change, _around(segments, change), history.entries)
            changes[i] = replace(change, suspects=its)
        strays = _strays(series.seconds, segments[-1])
        found.append(Trend(series, tuple(segments), tuple(changes), strays))
    return found


def _around(segments: Sequence[Segment], change: Change) -> tuple[int, int]:
    """Where the level before it begins and the one after it ends."""
    starts = [segment.start for segment in segments if segment.start < change.start]
    ends = [segment.end for segment in segments if segment.end > change.at]
    return max(starts, default=0), min(ends, default=segments[-1].end)


def _suspects(
    series: Series, change: Change, level: tuple[int, int], entries: Sequence[Entry]
) -> tuple[Suspect, ...]:
    """The likeliest first. `level` is where the level before begins and the one after ends."""
    of_clock = _clock(series, change, level)
    found = {} if of_clock is None else {"clock": of_clock}
    for place in (each for each in change.places if level[0] < each < level[1]):
        start, end = max(level[0], place - _HELD), min(level[1], place + _HELD)
        here = [entries[i] for i in series.record[start:end].tolist()]
        columns = series.fingerprint[start:end], *zip(*(e.setting for e in here), strict=True)
        library = [dict(entry.libraries).get(series.case.kernel) for entry in here]
        for name, column in zip(_IN_CYCLES, (library, *columns), strict=True):
            if name not in found and (suspect := _changed(name, column, place - start)):
                found[name] = suspect
    order = _IN_CYCLES if of_clock is None else _OF_CLOCK
    return tuple(found[name] for name in order if name in found)


def _changed(name: str, values: Sequence[str | None], place: int) -> Suspect | None:
    """If it is one value before `place` and another from there on."""
    # A commit need not hold: each record may have its own.
    before, after = (
        ({values[place - 1]}, {values[place]})
        if name == "commit"
        else (set(values[:place]), set(values[place:]))
    )
    if len(before) != 1 or len(after) != 1 or before == after:
        return None
    (old,), (new,) = before, after
    # What was not recorded once is not known to have been another.
    return None if old is None or new is None else Suspect(name, *_differing(old, new))


def _differing(old: str, new: str) -> tuple[str, str]:
    """Of lists of as many parts those that differ."""
    parts = list(zip_longest(old.split(", "), new.split(", ")))
    if any(None in pair for pair in parts):
        return old, new
    before, after = zip(*(pair for pair in parts if pair[0] != pair[1]), strict=True)
    return ", ".join(before), ", ".join(after)


def _clock(series: Series, change: Change, level: tuple[int, int]) -> Suspect | None:
    # A slope from the first record or to the newest has a few of its own as its ends.
    start, at = max(change.start, level[0] + SHORTEST), min(change.at, level[1] - SHORTEST)
    before = series.sm_hz[max(level[0], start - _NEAR) : start]
    after = series.sm_hz[at : min(level[1], at + _NEAR)]
    before, after = before[~np.isnan(before)], after[~np.isnan(after)]
    if not len(before) or not len(after):
        return None
    old, new = np.median(before), np.median(after)
    step = np.log(change.ratio)
    if abs(step + np.log(new / old)) > _LEFT * abs(step):
        return None
    return Suspect("clock", megahertz(old), megahertz(new))


def _strays(seconds: Floats, segment: Segment) -> bool:
    """Whether the last is further from its segment than the others by far."""
    if segment.end - segment.start < 8:
        return False
    fit = np.geomspace(segment.seconds, segment.last_seconds, segment.end - segment.start)
    logarithms = np.log(seconds[segment.start :] / fit)[-_RECENT:]
    away = np.abs(logarithms - np.median(logarithms))
    return bool(away[-1] > max(_STRAYS * 1.4826 * np.median(away), 0.01))
