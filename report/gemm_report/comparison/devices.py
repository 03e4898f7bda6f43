"""Two devices side by side: how fast NEW is over BASE, with no verdict, since no code is judged."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, geometric_mean, median

from gemm_report.comparison.run import Run, Timed
from gemm_report.text import precision_name, times

HEAD = ("precision", "cases", "speed", "per clock", "per watt", "slowest case", "fastest case")


@dataclass(frozen=True)
class Ratio:
    """NEW over BASE of all cases of a precision: geometric means, and the ends of the speeds.

    Of the clock and power those of the cases that have them, and None where none has.
    """

    precision: str
    cases: int
    speed: float
    per_clock: float | None
    per_watt: float | None
    slowest: float
    fastest: float

    def cells(self) -> tuple[str, ...]:
        """As texts, in the order of HEAD."""
        ratios = (self.speed, self.per_clock, self.per_watt, self.slowest, self.fastest)
        return (self.precision, str(self.cases), *(times(each) or "-" for each in ratios))


def ratios(base: Sequence[Run], new: Sequence[Run]) -> list[Ratio]:
    """By precision, in the order of NEW's cases; nothing where they share none."""
    groups: dict[str, list[tuple[float, float | None, float | None]]] = {}
    for name in dict.fromkeys(name for run in new for name in run.timed):
        sides = [[run.timed[name] for run in side if name in run.timed] for side in (base, new)]
        if all(sides):
            row = sides[1][0].row
            precision = precision_name(row.precision) if row else "all cases"
            groups.setdefault(precision, []).append(_ratio(*sides))
    found = []
    for precision, its in groups.items():
        known = [[each for each in column if each is not None] for column in zip(*its, strict=True)]
        means = [geometric_mean(column) if column else None for column in known]
        found.append(Ratio(precision, len(its), *means, min(known[0]), max(known[0])))
    return found


def _ratio(base: Sequence[Timed], new: Sequence[Timed]) -> tuple[float, float | None, float | None]:
    """The speed, and that over the clock and over the power."""
    times = (geometric_mean(median(e.samples_seconds) for e in side) for side in (base, new))
    speed = next(times) / next(times)

    def over(what: str) -> float | None:
        values = [[getattr(each.row, what, None) for each in side] for side in (base, new)]
        if not all(all(side) for side in values):
            return None
        return speed * fmean(values[0]) / fmean(values[1])

    return speed, over("sm_hz"), over("power_w")
