"""Every series with its changes, and what differs at each: its suspects."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest

import numpy as np

from gemm_report.history.changes import (
    ENOUGH,
    SHORTEST,
    Change,
    Floats,
    Segment,
    detectable,
    find_changes,
)
from gemm_report.history.series import SETTINGS, Entry, History, Series
from gemm_report.text import megahertz

STEPS = (0.05, 0.2)  # sizes of which it is said whether they would be seen
NOTHING = "nothing recorded"  # in place of a suspect
_STRAYS, _RECENT = 4.0, 100
_KINDS = ("library", "fingerprint", *SETTINGS)
_OF_CLOCK = ("power limit", "driver", "GPU")
# For so many points on both sides, or as long as the level does, a value has to hold.
_HELD = 8


@dataclass(frozen=True)
class Suspect:
    """What a change may be put down to: `what` was `before` up to it and `after` from it on."""

    what: str
    before: str
    after: str

    def __str__(self) -> str:
        return f"{self.what} {self.before} → {self.after}"


@dataclass(frozen=True)
class Blamed:
    """A change with its suspects, the likeliest first."""

    change: Change
    suspects: tuple[Suspect, ...]

    @property
    def suspect(self) -> str:
        """The likeliest, and over how many records it goes."""
        likeliest = str(self.suspects[0]) if self.suspects else NOTHING
        during = f"gradual, over {self.change.at - self.change.start} records: "
        return (during if self.change.gradual else "") + likeliest


@dataclass(frozen=True)
class Trend:
    """A series of ENOUGH records: `seconds` are at its median clock where the clock is known."""

    series: Series
    seconds: Floats
    segments: Sequence[Segment]
    changes: Sequence[Blamed]
    strays: bool  # the newest point is far off its level
    shows: Sequence[float]  # of STEPS, which would be seen in its middle

    @property
    def since_first(self) -> float:
        """Time of the newest over that of the oldest: all changes together."""
        return math.prod(each.change.ratio for each in self.changes)


def find_trends(history: History) -> list[Trend]:
    """Of the series that have ENOUGH records, in their order."""
    return [_trend(s, history.entries) for s in history.series if len(s.record) >= ENOUGH]


def _trend(series: Series, entries: Sequence[Entry]) -> Trend:
    clocked = not np.isnan(series.sm_hz).any()
    clock = series.sm_hz / np.median(series.sm_hz) if clocked else 1.0
    gpus = [entries[i].gpu for i in series.record]
    seconds = series.seconds * clock
    segments, changes = find_changes(seconds, gpus)
    found = [
        Blamed(change, tuple(_suspects(series, change, segments, entries))) for change in changes
    ]
    if clocked:
        levels, of_time = find_changes(series.seconds, gpus)
        for change in of_time:
            near = (
                each.start - SHORTEST <= change.at and change.start <= each.at + SHORTEST
                for each in changes
            )
            if not any(near):
                first, end = _around(change, levels)
                sides = series.sm_hz[first : max(change.start, 1)], series.sm_hz[change.at : end]
                hertz = (megahertz(float(np.median(side))) for side in sides)
                others = _suspects(series, change, levels, entries)
                # No code makes a clock lower: what sets it comes first.
                said = sorted(others, key=lambda suspect: suspect.what not in _OF_CLOCK)
                found.append(Blamed(change, (Suspect("clock", *hertz), *said)))
        found.sort(key=lambda each: each.change.at)
    shows = [step for step in STEPS if detectable(seconds, gpus, step)]
    return Trend(series, seconds, segments, found, _strays(seconds, segments[-1]), shows)


def _around(change: Change, segments: Sequence[Segment]) -> tuple[int, int]:
    """Where the level before it begins and the one after it ends."""
    starts = [segment.start for segment in segments if segment.start < change.start]
    ends = [segment.end for segment in segments if segment.end > change.at]
    return max(starts, default=0), min(ends, default=segments[-1].end)


def _suspects(
    series: Series, change: Change, segments: Sequence[Segment], entries: Sequence[Entry]
) -> Iterator[Suspect]:
    """What changed there, or one record beside it, and held."""
    if change.gradual:
        return
    first, last = _around(change, segments)
    found: dict[str, Suspect] = {}
    for place in (change.at, change.at - 1, change.at + 1):
        start, end = max(first, place - _HELD), min(last, place + _HELD)
        if start < place < end:
            here = [entries[i] for i in series.record[start:end]]
            library = [entry.libraries.get(series.case.kernel) for entry in here]
            settings = zip(*(entry.setting for entry in here), strict=True)
            columns = library, series.fingerprint[start:end], *settings
            for name, column in zip(_KINDS, columns, strict=True):
                if name not in found and (suspect := _changed(name, column, place - start)):
                    found[name] = suspect
    yield from (found[name] for name in _KINDS if name in found)


def _changed(name: str, values: Sequence[str | None], place: int) -> Suspect | None:
    """If it is one value before `place` and another from there on; or any other, of code."""
    before, after = set(values[:place]), set(values[place:])
    # What was not recorded once is not known to have been another.
    if before & after or None in before | after:
        return None
    if name not in ("fingerprint", "commit") and (len(before) > 1 or len(after) > 1):
        return None
    old, new = str(values[place - 1]), str(values[place])
    pairs = list(zip_longest(old.split(", "), new.split(", ")))
    if not any(None in pair for pair in pairs):  # of lists of as many parts those that differ
        differing = [pair for pair in pairs if pair[0] != pair[1]]
        old, new = (", ".join(side) for side in zip(*differing, strict=True))
    return Suspect(name, old, new)


def _strays(seconds: Floats, segment: Segment) -> bool:
    """Whether the last is further from its segment than the others by far."""
    if segment.end - segment.start < 2 * SHORTEST:
        return False
    fit = np.geomspace(segment.first, segment.last, segment.end - segment.start)
    logs = np.log(seconds[segment.start :] / fit)[-_RECENT:]
    away = np.abs(logs - np.median(logs))
    return bool(away[-1] > max(_STRAYS * 1.4826 * np.median(away), 0.01))
