"""How far apart the medians of processes of equal code may be: a variance for every case.

It comes from what there is: the device's calibration, and the processes of BASE and of NEW where
there are several of either. A case's own variance is moderated (moderation.py) with the cases of
its group, since the few processes that told it may have been alike by chance. One that nobody has
seen gets a default, or the variance of the most similar calibrated row if that is larger.

Where one process is compared with one, and the calibration saw a case at several levels (modes.py),
the variance is that around a level, and the levels are given with it. Several processes of a side
are mixtures of levels: for them the variance is that of all.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import permutations
from typing import NamedTuple

from gemm_report.comparison.noise.calibration import Calibration, Noise, nearest
from gemm_report.comparison.noise.moderation import Variance, moderated, pooled, prior
from gemm_report.comparison.run import Timed

# Up to these products of a problem a launch takes microseconds, or leaves multiprocessors idle.
_SHORT, _MEDIUM = 512**3, 1024**3

# Of what nobody has seen. Wide, since it has to hold the levels of a case: with that of FP32 cases
# that were seen (0.1 to 0.2 %), one of 130 comparisons of equal code gave a false alarm on an H200.
# Among a hundred cases this calls slower what takes 13 % longer.
DEFAULT = Variance(0.008**2, 4)

# What the noise of a case that nobody has seen is said to come from.
_DEFAULT, _SIMILAR = GUESSED = ("default", "similar case")

# Fewer do not show how much variances scatter.
_FEWEST_CASES = 8


# Cases whose noise is alike, the narrowest first; another tool's case is in none.
Groups = tuple[str, ...]


class Offset(NamedTuple):
    """By which the log medians of two processes of equal code may differ, and its variance as a
    multiple of that between processes."""

    value: float
    factor: float


@dataclass(frozen=True)
class Between:
    """The variance of one process's log median, offsets of pairs, and whence that is known."""

    variance: Variance
    source: str
    offsets: tuple[Offset, ...] = ()


class Model:
    """Of seconds, or of cycles."""

    def __init__(
        self,
        calibration: Calibration | None,
        repeated: Mapping[str, Variance],
        groups: Mapping[str, Groups],
        at_clock: bool = False,
    ) -> None:
        """`repeated` is what equal processes of this comparison say, `groups` are its cases'."""
        self._at_clock = at_clock
        self._repeated = repeated
        rows = calibration.rows if calibration else ()
        self._rows = {row.name: row for row in rows if self._of(row)}
        known: defaultdict[str, list[Variance]] = defaultdict(list)
        for name in {**self._rows, **repeated}:
            row = self._rows.get(name)
            # In cycles levels are not told apart, and make the variance wide.
            if own := self._own(name) if not (at_clock and self._offsets(name)) else None:
                for group in _groups_of(row) if row else groups[name]:
                    known[group].append(own)
        self._priors = {
            group: prior(found) for group, found in known.items() if len(found) >= _FEWEST_CASES
        }

    def of(self, case: Timed, groups: Groups) -> Between:
        """Of a case, which the calibration or the other processes may or may not know."""
        own = self._own(case.name)
        if own:
            row = self._rows.get(case.name)
            calibrated = _groups_of(row) if row else groups
            groups = groups or calibrated
            priors = (self._priors[group] for group in groups if group in self._priors)
            variance = moderated(own, next(priors, DEFAULT))
            if calibrated != groups:
                # The device was in another state then.
                variance = Variance(max(variance.value, DEFAULT.value), DEFAULT.degrees)
            known = (("calibration", self._rows), ("processes", self._repeated))
            source = " and ".join(name for name, cases in known if case.name in cases)
            return Between(variance, source, () if self._at_clock else self._offsets(case.name))
        row = case.row and nearest(
            self._rows.values(), case.row.label, case.row.precision, case.row.volume
        )
        similar = row and self._of(row)
        if similar and similar.value > DEFAULT.value:
            return Between(Variance(similar.value, DEFAULT.degrees), _SIMILAR)
        return Between(DEFAULT, _DEFAULT)

    def _own(self, name: str) -> Variance | None:
        row, repeated = self._rows.get(name), self._repeated.get(name)
        calibrated = row and self._of(row)
        if row and calibrated and not repeated and not self._at_clock:
            calibrated = row.scatter.variance
        known = [variance for variance in (calibrated, repeated) if variance]
        return pooled(known) if known else None

    def _offsets(self, name: str) -> tuple[Offset, ...]:
        """Of pairs of different levels; none where processes are averaged."""
        row = self._rows.get(name)
        if row is None or name in self._repeated:
            return ()
        return tuple(
            Offset(new.value - base.value, 1 / new.processes + 1 / base.processes)
            for new, base in permutations(row.scatter.modes, 2)
        )

    def _of(self, row: Noise) -> Variance | None:
        return row.variance_at_clock if self._at_clock else row.variance


def groups_of(cases: Iterable[Timed]) -> Groups:
    """Of one case in several processes: throttled if it was in any."""
    rows = [case.row for case in cases if case.row]
    if not rows:
        return ()
    return _groups(any(row.throttled for row in rows), rows[0].precision, rows[0].volume)


def _groups_of(row: Noise) -> Groups:
    return _groups(row.throttled, row.precision, row.volume)


def _groups(throttled: bool, precision: str, volume: int) -> Groups:
    if throttled:
        return ("throttled",)
    size = "short" if volume <= _SHORT else "medium" if volume <= _MEDIUM else "large"
    return (f"{precision} {size}", size)
