"""How far apart the medians of processes of equal code may be: a variance for every case.

It comes from what there is: the processes of BASE and of NEW where a side has several, the device's
calibration, and the table that comes with the tool (table.py). A case's own variance is moderated
(moderation.py) with those of its group, since the few processes that told it may have been alike by
chance; where its own is larger, it stays. All variances are around levels (levels.py).
"""

import math
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from gemm_report.comparison.noise.calibration import Calibration, Noise
from gemm_report.comparison.noise.levels import RAREST, levels, scatter
from gemm_report.comparison.noise.moderation import Variance, moderated, prior
from gemm_report.record import Row

# Up to these products of a problem a launch takes microseconds, or leaves multiprocessors idle.
_SHORT, _MEDIUM = 512**3, 1024**3
_SIZES = ("short", "medium", "large")

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
        fitting = [row for row in rows if groups.get(row.name, ()) in ((), groups_of([row]))]
        self._cases = cases
        self._calibrated = {row.name: row.logs(at_clock) for row in fitting}
        self._groups = {name: each or _UNKNOWN for name, each in groups.items()}
        self._groups |= {row.name: groups_of([row]) for row in fitting}
        self._known = table
        # `own` is what a case's own processes say. What a level is depends on the usual scatter.
        for _ in range(2):
            self.own = {name: self._scatter(name) for name in {**self._calibrated, **cases}}
            found = ((self._groups[name], own) for name, own in self.own.items() if own)
            self._known = {**table, **priors(found)}

        self._apart = [
            max(logs) - min(logs)
            for name, logs in self._calibrated.items()
            if logs and len(levels(logs, self.usual(name).value)) > 1
        ]

    def of(self, name: str) -> tuple[Variance, str]:
        """Of one process's log median of a case of this comparison, and whence it is known."""
        own, usual = self.own[name], self.usual(name)
        known = [PROCESSES] if any(len(side) > 1 for side in self._cases[name]) else []
        if not known and name in self._calibrated:
            # One process may be at any level.
            own = scatter([self._calibrated[name]], math.inf)
        if own:
            source = " and ".join([*([CALIBRATION] if name in self._calibrated else []), *known])
            return moderated(own, usual), source
        # How similar it is nobody knows: at least as wide as what is assumed of any case.
        wide = Variance(max(DEFAULT.value, usual.value), DEFAULT.degrees)
        return wide, ASSUMED if usual is DEFAULT else TABLE

    def parted(self, name: str, distance: float) -> float:
        """By the calibration: how many cases of equal code have sides that only levels part, by
        about `distance` or more. 1 where this case is not calibrated."""
        processes = len(self._calibrated.get(name, ()))
        if not processes:
            return 1.0
        far = sum(apart > 0.8 * distance for apart in self._apart)
        # All calibrated processes had one level, and BASE and NEW have both.
        return far * (1 - RAREST) ** processes * RAREST * (1 - RAREST)

    def usual(self, name: str) -> Variance:
        """Of such cases."""
        found = (self._known[group] for group in self._groups[name] if group in self._known)
        return next(found, DEFAULT)

    def _scatter(self, name: str) -> Variance | None:
        sides = [*self._cases.get(name, ()), self._calibrated.get(name, ())]
        return scatter(sides, self.usual(name).value)


def priors(found: Iterable[tuple[Groups, Variance]]) -> dict[str, Variance]:
    """Of each group that has enough cases."""
    known: defaultdict[str, list[Variance]] = defaultdict(list)
    for groups, own in found:
        for group in groups:
            known[group].append(own)
    return {group: prior(each) for group, each in known.items() if len(each) >= FEWEST_CASES}


def groups_of(rows: Sequence[Row | Noise]) -> Groups:
    """Of one case in several processes: throttled if it was in any. None without a row of ours."""
    if not rows:
        return ()
    size = bisect_left((_SHORT, _MEDIUM), rows[0].volume)
    kind = "throttled" if any(row.throttled for row in rows) else _SIZES[size]
    return (f"{rows[0].precision} {kind}", kind)
