"""How far apart the medians of processes of equal code may be: a variance for every case.

It comes from what there is: the processes of BASE and of NEW where a side has several, the device's
calibration, and the table that comes with the tool (table.py). A case's own variance is moderated
(moderation.py) with those of its group, since the few processes that told it may have been alike by
chance; where its own is larger, it stays. All variances are around levels (levels.py).
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from gemm_report.comparison.noise.calibration import Calibration, Noise
from gemm_report.comparison.noise.levels import levels, scatter
from gemm_report.comparison.noise.moderation import Variance, moderated, prior
from gemm_report.comparison.run import Timed

# Up to these products of a problem a launch takes microseconds, or leaves multiprocessors idle.
_SHORT, _MEDIUM = 512**3, 1024**3

# Of what neither a calibration nor the processes tell. Wide: a single process may be anything, and
# among a hundred cases this calls slower only what takes 20 % longer.
DEFAULT = Variance(0.008**2, 3)

# Fewer do not show how much variances scatter.
FEWEST_CASES = 8

# Whence noise may be known; the last two are of similar cases or none.
PROCESSES, CALIBRATION, TABLE, ASSUMED = "processes", "calibration", "similar cases", "default"
GUESSED = (TABLE, ASSUMED)


# Cases whose noise is alike, the narrowest first. Another tool's have a group of their own.
Groups = tuple[str, ...]
_UNKNOWN: Groups = ("unknown",)

# Log medians of processes that should be alike, such as those of each side.
Sides = Sequence[Sequence[float]]


@dataclass(frozen=True)
class Between:
    """The variance of one process's log median, whence it is known, and the usual one of such."""

    variance: Variance
    source: str
    usual: float


class Model:
    """Of seconds, or of cycles."""

    def __init__(
        self,
        calibration: Calibration | None,
        cases: Mapping[str, Sides],
        groups: Mapping[str, Groups],
        table: Mapping[str, Variance],
        at_clock: bool = False,
    ) -> None:
        """`cases` and `groups` are those of this comparison."""
        rows = calibration.rows if calibration else ()
        # In another power state a case has another noise.
        self._rows = {
            row.name: row for row in rows if groups.get(row.name, ()) in ((), of_row(row))
        }
        self._groups = {name: each or _UNKNOWN for name, each in groups.items()}
        self._groups |= {name: of_row(row) for name, row in self._rows.items()}
        self._at_clock, self._cases, self._table = at_clock, cases, table
        self._priors: dict[str, Variance] = {}
        # `own` is what a case's own processes say. What a level is depends on the usual scatter.
        for _ in range(2):
            self.own = {name: self._scatter(name) for name in {**self._rows, **cases}}
            self._priors = priors(
                (self._groups[name], own) for name, own in self.own.items() if own
            )

        self._apart = [
            max(logs) - min(logs)
            for name, row in self._rows.items()
            if (logs := row.logs(at_clock=False))
            and len(levels(logs, (self._usual(name) or DEFAULT).value)) > 1
        ]

    def of(self, name: str) -> Between:
        """Of a case of this comparison."""
        own, usual = self.own.get(name), self._usual(name)
        known = [PROCESSES] if any(len(side) > 1 for side in self._cases[name]) else []
        if not known and name in self._rows:
            # One process may be at any level.
            own = scatter([self._rows[name].logs(self._at_clock)], math.inf)
        if own:
            source = " and ".join([*([CALIBRATION] if name in self._rows else []), *known])
            return Between(moderated(own, usual or DEFAULT), source, (usual or DEFAULT).value)
        # How similar it is nobody knows: at least as wide as what is assumed of any case.
        wide = Variance(max(DEFAULT.value, usual.value if usual else 0.0), DEFAULT.degrees)
        return Between(wide, TABLE if usual else ASSUMED, (usual or DEFAULT).value)

    def calibrated(self, name: str) -> int:
        """By how many processes."""
        return len(self._rows[name].medians_seconds) if name in self._rows else 0

    def far_apart(self, distance: float) -> int:
        """How many calibrated cases have levels about so far apart, or farther."""
        return sum(apart > 0.8 * distance for apart in self._apart)

    def _usual(self, name: str) -> Variance | None:
        found = (
            known[group] for group in self._groups[name]
            for known in (self._priors, self._table) if group in known
        )  # fmt: skip
        return next(found, None)

    def _scatter(self, name: str) -> Variance | None:
        sides = list(self._cases.get(name, ()))
        if name in self._rows:
            sides.append(self._rows[name].logs(self._at_clock))
        return scatter(sides, (self._usual(name) or DEFAULT).value)


def priors(found: Iterable[tuple[Groups, Variance]]) -> dict[str, Variance]:
    """Of each group that has enough cases."""
    known: defaultdict[str, list[Variance]] = defaultdict(list)
    for groups, own in found:
        for group in groups:
            known[group].append(own)
    return {group: prior(each) for group, each in known.items() if len(each) >= FEWEST_CASES}


def groups_of(cases: Iterable[Timed]) -> Groups:
    """Of one case in several processes: throttled if it was in any."""
    rows = [case.row for case in cases if case.row]
    if not rows:
        return ()
    return _groups(any(row.throttled for row in rows), rows[0].precision, rows[0].volume)


def of_row(row: Noise) -> Groups:
    """Of a calibrated case."""
    return _groups(row.throttled, row.precision, row.volume)


def _groups(throttled: bool, precision: str, volume: int) -> Groups:
    if throttled:
        return (f"{precision} throttled", "throttled")
    size = "short" if volume <= _SHORT else "medium" if volume <= _MEDIUM else "large"
    return (f"{precision} {size}", size)
