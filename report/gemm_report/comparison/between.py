"""How far apart the medians of processes of equal code may be: a variance for every case.

It comes from what there is: the card's calibration, and the processes of BASE and of NEW where
there are several of either. A case's own variance is moderated (moderation.py) with the cases of
its class. One that nobody has seen has at least the variance of the most similar calibrated row.
Where nothing of its class is known, a default is assumed.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum

from gemm_report.comparison.moderation import Variance, moderated, pooled, prior
from gemm_report.comparison.noise import Calibration, Noise, nearest
from gemm_report.comparison.run import Timed


class Class(Enum):
    """Cases whose noise is alike."""

    CAPPED = "held down"
    SHORT = "short"
    OTHER = "other"


# Products of a problem; up to here a launch takes microseconds.
_SHORT = 1024**3

DEFAULT: Mapping[Class, Variance] = {
    Class.CAPPED: Variance(0.006**2, 8),
    Class.SHORT: Variance(0.006**2, 8),
    Class.OTHER: Variance(0.003**2, 8),
}

# Fewer do not show how much variances scatter.
_FEWEST_CASES = 6


@dataclass(frozen=True)
class Between:
    """The variance of one process's log median, and whence that is known."""

    variance: Variance
    source: str


class Model:
    """Of seconds, or of cycles."""

    def __init__(
        self,
        calibration: Calibration | None,
        repeated: Mapping[str, Variance],
        classes: Mapping[str, Class],
        at_clock: bool = False,
    ) -> None:
        """`repeated` is what equal processes of this comparison say, `classes` are its cases'."""
        self._at_clock = at_clock
        self._rows = calibration.rows if calibration else ()
        self._calibrated = {row.name: found for row in self._rows if (found := self._of(row))}
        self._repeated = repeated
        its_class = {row.name: _class(row.throttled, row.volume) for row in self._rows}
        known = {
            name: (its_class.get(name) or classes[name], pooled(found))
            for name in {**self._calibrated, **repeated}
            if (found := self._own(name))
        }
        self._priors = {}
        for each in Class:
            variances = [variance for of, variance in known.values() if of is each]
            if len(variances) >= _FEWEST_CASES:
                self._priors[each] = prior(variances)

    def of(self, case: Timed, its_class: Class) -> Between:
        """Of a case, which the calibration or the other processes may or may not know."""
        found = self._own(case.name)
        expected = self._priors.get(its_class)
        level = expected or DEFAULT[its_class]
        if found:
            source = " and ".join(
                source
                for source, known in (
                    ("calibration", self._calibrated),
                    ("processes", self._repeated),
                )
                if case.name in known
            )
            return Between(moderated(pooled(found), level), source)
        row = case.row and nearest(self._rows, case.row.label, case.row.precision, case.row.volume)
        similar = row and self._of(row)
        if similar:
            value = max(moderated(similar, level).value, level.value)
            return Between(Variance(value, level.degrees), "similar rows")
        return Between(level, "class" if expected else "default")

    def _own(self, name: str) -> list[Variance]:
        both = (self._calibrated.get(name), self._repeated.get(name))
        return [variance for variance in both if variance]

    def _of(self, row: Noise) -> Variance | None:
        return row.variance_at_clock if self._at_clock else row.variance


def class_of(cases: Iterable[Timed]) -> Class:
    """Of one case in several processes: held down if it was in any."""
    rows = [case.row for case in cases if case.row]
    if not rows:
        return Class.OTHER
    return _class(any(row.throttled for row in rows), rows[0].volume)


def _class(throttled: bool, volume: int) -> Class:
    if throttled:
        return Class.CAPPED
    return Class.SHORT if volume <= _SHORT else Class.OTHER
