"""The one rule for "slower", on log medians of processes; docs/comparing.md has it in a paragraph.

A process has one value for each case: the logarithm of its median time. Of each kind of case
(`SPREAD`) the median over all cases moves from process to process: that movement is taken out, and
its change between the sides, the common shift, is judged like a case of its own. What is left of a
case is compared between the sides: by the means of its values, and by Student's t for their spread
around each side's level. That spread is drawn towards the spread of the other cases of its kind.

A side may show two levels (`levels`): fresh processes of equal code run at one of two speeds, 3 to
12 % apart on an H200. Then the levels that are closest are compared. Two speeds can also part the
sides by chance: where a share f of the processes takes the rarer speed, with a chance of
(f (1 - f))^n for n processes a side and each direction. Times the number of cases that show two
levels, so many cases are parted: as many as that explains with 98 % are ambiguous, those that
changed least.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum
from itertools import pairwise, product
from statistics import fmean, median
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import fdtri, pdtrc, stdtrit

Floats = NDArray[np.float64]

THRESHOLD = 0.01
ERROR_RATE = 0.05  # of all cases together
_COMMON_ERROR_RATE = 0.015  # of all common shifts together: few processes tell of their spread
POWER = 0.9  # slowdowns of the size `detectable` are found with this probability
ENOUGH = 3  # processes of a side: fewer do not show which of them is unusual

# Kinds of cases, and the standard deviation of fresh processes that is assumed of each: as if that
# had been seen with 3 degrees of freedom. Throttled cases move with the clock of the power limit.
SPREAD = {"GPU": 0.0015, "throttled": 0.004, "CPU": 0.01}
_ASSUMED_DEGREES = 3.0
# The same of a common shift; so many cases of a kind have one.
_COMMON_SPREAD, _COMMON_DEGREES, _FEWEST_COMMON = 0.0005, 2.0, 8
# From so many cases on, their spreads tell what is usual, with no more degrees of freedom than.
_FEWEST_ALIKE, _FEWEST_DEGREES, _MOST_DEGREES = 8, 0.5, 12.0

# Of logarithms. A gap between two levels is as wide as this and as so many usual deviations.
_GAP, _COMMON_GAP, _DEVIATIONS = 0.015, 0.03, 5.0
WIDEST = math.log(1.15)  # more than two speeds of equal code differ
_BY_CHANCE = 0.02

# Why something is ambiguous that seems to have changed.
FEW, TWO_SPEEDS, APART = "few processes", "two speeds", "a whole process apart"


class Verdict(Enum):
    """Of a case. The order is that of attention."""

    SLOWER = "slower"
    CLOCK = "clock"  # another time with equal cycles at the power limit
    AMBIGUOUS = "ambiguous"
    FASTER = "faster"
    SAME = "same"


class Spread(NamedTuple):
    """A variance, and its degrees of freedom."""

    variance: float
    degrees: float


@dataclass(frozen=True)
class Change:
    """NEW over BASE, in logarithms: the 95 % interval of all together is d +- reach.

    `base` and `new` are the processes whose levels are compared. `gap` is the distance of the two
    levels of a side, or 0, and `rarer` the share of processes at the rarer one. `perhaps` says why
    it is ambiguous though it seems to have changed.
    """

    d: float
    sd: float
    degrees: float
    reach: float
    base: tuple[int, ...]
    new: tuple[int, ...]
    gap: float
    rarer: float
    processes: int
    verdict: Verdict = Verdict.AMBIGUOUS
    perhaps: str | None = None
    shifted: bool = False  # the common shift of its kind is part of d
    detectable: float = math.inf  # a slowdown so large is called slower with 90 % probability
    noticed: float = math.inf  # or is ambiguous, and named: in neither case green


class Judgement(NamedTuple):
    """Of all cases, in their order; `common` by kind, and how many may part by two speeds."""

    cases: list[Change]
    common: dict[str, Change]
    by_chance: int

    @property
    def doubtful(self) -> bool:
        """Whether something seems slower and is not called so: that is not green."""
        seem = any(
            (each.perhaps == TWO_SPEEDS or each.verdict is Verdict.CLOCK) and each.d > 0
            for each in self.cases
        )
        return seem or any(each.perhaps == APART for each in self.common.values())

    def unseen(self, wanted: float) -> int:
        """In how many cases a slowdown of `wanted`, a fraction, might have passed as green."""
        return sum(bool(case.noticed > math.log1p(wanted)) for case in self.cases)


def judge(
    base: Floats,
    new: Floats,
    kinds: Sequence[str],
    threshold: float = THRESHOLD,
    cycles: tuple[Floats, Floats] | None = None,
) -> Judgement:
    """Arrays of log medians [process, case], NaN where a process has none."""
    relevant, of = math.log1p(threshold), np.asarray(kinds)
    cases: dict[int, Change] = {}
    common: dict[str, Change] = {}
    rate = ERROR_RATE / max(len(kinds), 1)
    shifting = [kind for kind in dict.fromkeys(kinds) if sum(of == kind) >= _FEWEST_COMMON]
    for kind in dict.fromkeys(kinds):
        own = np.flatnonzero(of == kind)
        first, second = base[:, own], new[:, own]
        if kind in shifting:
            moved = _movements(first, second)
            first, second = first - moved[0][:, None], second - moved[1][:, None]
            assumed = Spread(_COMMON_SPREAD**2, _COMMON_DEGREES)
            shift = _change(*moved, assumed, _COMMON_ERROR_RATE / len(shifting), _COMMON_GAP)
            shift = _judged(shift, relevant)
            common[kind] = replace(shift, perhaps=APART) if shift.gap else shift
        assumed = Spread(SPREAD[kind] ** 2, _ASSUMED_DEGREES)
        pairs = list(zip(first.T, second.T, strict=True))
        for _ in range(2):  # what a level is depends on the usual spread, and that on the levels
            known = [spread_of(pair, assumed.variance) for pair in pairs]
            assumed = _usual([each for each in known if each.degrees]) or assumed
        for i, pair in zip(own.tolist(), pairs, strict=True):
            cases[i] = _with_common(_change(*pair, assumed, rate), common.get(kind), relevant)
    ordered = [cases[i] for i in range(len(kinds))]
    fewest = min(len(base), len(new))
    rarer = [case.rarer for case in ordered if case.gap]
    by_chance = parted(rarer, fewest) if fewest >= ENOUGH else 0
    ordered = _excused(ordered, by_chance)
    if cycles is not None:
        first, second = cycles
        by = [_moved(case, first[:, i], second[:, i]) for i, case in enumerate(ordered)]
        for i in np.flatnonzero(of == "throttled").tolist():
            ordered[i] = _clocked(ordered[i], by[i], relevant)
        sure = [m for m, k in zip(by, kinds, strict=True) if k == "throttled" and not math.isnan(m)]
        if sure and "throttled" in common:
            common["throttled"] = _clocked(common["throttled"], median(sure), relevant)
    return Judgement(ordered, common, by_chance)


def levels(values: Floats, variance: float, least: float = _GAP) -> list[list[int]]:
    """Which of one side's values belong together, the fastest first, as their indices.

    `variance` is the usual one, and NaN is at no level. More than two levels are none, but a case
    that scatters widely.
    """
    order = sorted(np.flatnonzero(~np.isnan(values)).tolist(), key=values.__getitem__)
    gap = max(least, _DEVIATIONS * math.sqrt(variance))
    found = [order[:1]]
    for before, after in pairwise(order):
        if values[after] - values[before] > gap:
            found.append([])
        found[-1].append(after)
    return found if len(found) <= 2 else [order]


def spread_of(sides: Sequence[Floats], usual: float, least: float = _GAP) -> Spread:
    """Around the levels of each side; with no degrees of freedom where nothing tells it."""
    groups = [side[level] for side in sides for level in levels(side, usual, least)]
    degrees = sum(len(group) - 1 for group in groups)
    squares = sum(float(np.sum((group - group.mean()) ** 2)) for group in groups)
    return Spread(squares / max(degrees, 1), degrees)


def parted(rarer: Sequence[float], processes: int) -> int:
    """As many cases two speeds part by chance, with 98 %.

    `rarer` is, of each case that shows two levels, the share of its processes at the rarer one.
    """
    if not rarer:
        return 0
    share = fmean(rarer)
    expected = len(rarer) * (share * (1 - share)) ** processes
    return next(n for n in range(len(rarer) + 1) if pdtrc(n, expected) <= _BY_CHANCE)


def _movements(base: Floats, new: Floats) -> tuple[Floats, Floats]:
    """Of each process, over all its cases, from the middle of both sides."""
    both = np.nanmedian(base, axis=0), np.nanmedian(new, axis=0)
    middle = (both[0] + both[1]) / 2
    return np.nanmedian(base - middle, axis=1), np.nanmedian(new - middle, axis=1)


def _usual(known: Sequence[Spread]) -> Spread | None:
    """What is usual among cases, after Smyth (2004), as limma has it for genes.

    Their true variances scatter like s0^2 d0 / chi^2(d0), and those over s0^2 like F with their
    degrees and d0: by quantiles, so that a few wild cases do not make all others wide.
    """
    if len(known) < _FEWEST_ALIKE:
        return None
    degrees = float(np.median([each.degrees for each in known]))
    values = np.array([each.variance for each in known])
    # Medians that a coarse timer made equal have no logarithm.
    values = np.maximum(values, max(1e-5 * float(np.median(values)), 1e-14))
    low, middle, high = np.quantile(values, [0.1, 0.5, 0.9])
    fewest, most = _FEWEST_DEGREES, _MOST_DEGREES
    while most > 1.001 * fewest:
        d0 = (fewest * most) ** 0.5
        too_wide = fdtri(degrees, d0, 0.9) / fdtri(degrees, d0, 0.1) > high / low
        fewest, most = (d0, most) if too_wide else (fewest, d0)
    return Spread(float(middle / fdtri(degrees, most, 0.5)), most)


def _change(base: Floats, new: Floats, usual: Spread, rate: float, least: float = _GAP) -> Change:
    """Of the levels that are closest, not judged yet."""
    found = [levels(side, usual.variance, least) for side in (base, new)]
    marked = ((side[0], side[-1], max(side, key=len)) for side in found)
    candidates = zip(*marked, strict=True) if min(map(len, found)) > 1 else product(*found)
    first, second = min(candidates, key=lambda c: abs(new[c[1]].mean() - base[c[0]].mean()))
    both = [(v, side) for v, side in zip((base, new), found, strict=True) if len(side) > 1]
    gap = max((float(v[s[1]].mean() - v[s[0]].mean()) for v, s in both), default=0.0)
    # A side of one level is at that of the other which is closest.
    at = len(found[0][0]) + len(found[1][0]) if len(both) > 1 else len(first) + len(second)
    counts = [sum(map(len, side)) for side in found]
    total = sum(counts)
    rarer = min(at, total - at) / total
    own = spread_of((base, new), usual.variance, least)
    degrees = own.degrees + usual.degrees
    drawn = (own.variance * own.degrees + usual.variance * usual.degrees) / degrees
    # A case that scatters more than others keeps its own spread: it may be another kind of case.
    variance = max(drawn, own.variance if own.degrees else 0.0)
    sd = math.sqrt(variance * (1 / len(first) + 1 / len(second)))
    reach = sd * float(stdtrit(degrees, 1 - rate / 2))
    d = float(new[second].mean() - base[first].mean())
    levels_ = tuple(first), tuple(second)
    return Change(d, sd, degrees, reach, *levels_, gap, rarer, processes=min(counts))


def _judged(change: Change, relevant: float, also: float = 0.0) -> Change:
    """With a verdict of its interval; `also` is how far it may be off for another reason."""
    d, reach = abs(change.d), math.hypot(change.reach, also)
    verdict, perhaps = Verdict.AMBIGUOUS, None
    if d > max(reach, relevant):
        verdict = Verdict.SLOWER if change.d > 0 else Verdict.FASTER
    elif d + reach <= relevant and not change.gap:
        verdict = Verdict.SAME
    seen = max(relevant, reach) + change.sd * float(stdtrit(change.degrees, POWER)) + change.gap
    if change.processes < ENOUGH:  # one process, or two, may be at any speed
        seen = max(seen, WIDEST)
        if d <= WIDEST:
            verdict, perhaps = Verdict.AMBIGUOUS, FEW
    return replace(change, verdict=verdict, perhaps=perhaps, reach=reach, detectable=seen,
                   noticed=seen)  # fmt: skip


def _with_common(own: Change, common: Change | None, relevant: float) -> Change:
    """A case with the common shift of its kind, where there is one."""
    if common is None:
        return _judged(own, relevant)
    if common.processes < ENOUGH:  # what is common to all cases cannot be told from their changes
        return _judged(replace(own, d=own.d + common.d, shifted=True), relevant, common.reach)
    if common.verdict not in (Verdict.SLOWER, Verdict.FASTER):
        found = _judged(own, relevant)
        # That all have moved a little is not excluded.
        unsure = found.verdict is Verdict.SAME and common.verdict is not Verdict.SAME
        unseen = max(found.detectable, common.detectable)
        found = replace(found, detectable=unseen, noticed=unseen)
        return replace(found, verdict=Verdict.AMBIGUOUS) if unsure else found
    found = _judged(replace(own, d=own.d + common.d, shifted=True), relevant, common.reach)
    follows = abs(own.d) <= own.reach and found.d * common.d > 0 and abs(found.d) > relevant
    return replace(found, verdict=common.verdict, perhaps=None) if follows else found


def _excused(cases: Sequence[Change], by_chance: int) -> list[Change]:
    """Of the changes of each direction, so many may come from two speeds."""
    found = list(cases)
    for way in (Verdict.SLOWER, Verdict.FASTER):
        changed = [i for i, case in enumerate(cases) if case.verdict is way]
        changed = [i for i in changed if abs(cases[i].d) <= WIDEST and not cases[i].shifted]
        for i in sorted(changed, key=lambda i: abs(cases[i].d))[:by_chance]:
            found[i] = replace(found[i], verdict=Verdict.AMBIGUOUS, perhaps=TWO_SPEEDS)
    if by_chance:
        found = [replace(case, detectable=max(case.detectable, WIDEST)) for case in found]
    return found


def _moved(case: Change, base: Floats, new: Floats) -> float:
    """In cycles, of the processes that are compared."""
    return float(new[list(case.new)].mean() - base[list(case.base)].mean())


def _clocked(change: Change, cycles: float, relevant: float) -> Change:
    """The power limit changes the clock, and with it the time, of equal code too."""
    clock = abs(cycles) < min(relevant, abs(change.d) / 2)
    changed = change.verdict in (Verdict.SLOWER, Verdict.FASTER) or change.perhaps == TWO_SPEEDS
    return replace(change, verdict=Verdict.CLOCK) if clock and changed else change
