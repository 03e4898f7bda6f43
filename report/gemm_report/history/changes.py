"""Where a series changes, at once or gradually, and by how much.

Least squares with a penalty for each piece propose levels (optimal partitioning: Jackson and
others, 2005). Among their bounds the same method keeps levels and slopes, now by the long-run
variance of the series, so that correlated noise earns nothing. A t-test and a test for two speeds
drop what noise explains. The newest records are judged once more, by the noise of the level before
them alone. `studies/history.py` measures what is found.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import median_filter
from scipy.special import stdtr, stdtrit

Floats = NDArray[np.float64]
Places = NDArray[np.int64]
Flags = NDArray[np.bool_]

# Records of a level; a newest level of FEWEST is one if it is LARGE.
SHORTEST, FEWEST, LARGE = 4, 2, 0.1
GRADUAL = 20  # records of a slope
ENOUGH = 5  # records of a series that can show a change
SMALLEST = 0.01  # machines drift that much
FALSE_ALARM = 1e-6  # of all places of a series together
_BY_CHANCE = 4e-5  # the same of records at two speeds
# What a further piece explains: in variances of neighbours to be proposed, in long-run variances to
# be kept.
_PROPOSED, _KEPT = 12.0, 36.0
_SPIKE = 4.0
# How far the newest level is from the one before, in standard deviations of single records.
_FAR, _FAR_OF_MANY = 6.0, 4.5
_SUDDEN = 4.0  # and in those of neighbours
_STRAY = 0.02  # share of the level before that is as far
_NEWEST = 12  # records that are the newest
_SHOWN = 60  # records of which it is said what they could show
# Of a case between processes; it counts as much as so many records.
_USUAL, _FREEDOM = 0.005, 4
_PRIOR = 10.0  # records of the whole series, which count for each piece
_LEAST = 1e-4  # quantised times are not without noise


@dataclass(frozen=True)
class Segment:
    """From point `start` to before point `end`; the value at its first and at its last point."""

    start: int
    end: int
    first: float
    last: float


@dataclass(frozen=True)
class Change:
    """From point `start` on a level is left, from point `at` on the next is there.

    `ratio` is new over old value, with its 95 % interval.
    """

    start: int
    at: int
    ratio: float
    low: float
    high: float

    @property
    def gradual(self) -> bool:
        """Whether it is a slope, or a staircase of steps too small to tell apart."""
        return self.start < self.at


def find_changes(
    values: Floats, gpus: Sequence[str | None] = ()
) -> tuple[list[Segment], list[Change]]:
    """Segments and changes of SMALLEST or more. `gpus` made the values: each has its own level."""
    logs = np.log(values)
    middle = np.median(logs)
    logs, own = logs - middle, np.zeros(len(logs))
    for _ in range(3):
        pieces = _pieces_of(logs - own)
        before, own = own, _own_levels(logs - pieces.fitted, gpus)
        if np.allclose(before, own, atol=_LEAST):
            break
    ends = np.exp(np.stack([pieces.first, pieces.last], axis=1) + middle).tolist()
    edges = pairwise(pieces.bounds.tolist())
    return [Segment(*e, *v) for e, v in zip(edges, ends, strict=True)], _changes(pieces)


def detectable(values: Floats, gpus: Sequence[str | None], step: float) -> bool:
    """Whether a step in the middle of the newest values would be found, if they were unchanged."""
    values, gpus = values[-_SHOWN:], gpus[-_SHOWN:]
    if len(values) < ENOUGH:
        return False
    half = len(values) // 2
    planted = without_changes(values, gpus) * np.where(np.arange(len(values)) < half, 1, 1 + step)
    return any(abs(change.at - half) <= 1 for change in find_changes(planted, gpus)[1])


def without_changes(values: Floats, gpus: Sequence[str | None]) -> Floats:
    """The values over their segments."""
    segments, _ = find_changes(values, gpus)
    fits = [np.geomspace(each.first, each.last, each.end - each.start) for each in segments]
    return values / np.concatenate(fits)


def _own_levels(residuals: Floats, gpus: Sequence[str | None]) -> Floats:
    """Of each point how far its GPU is from the others, where three records or more tell."""
    own = np.zeros(len(residuals))
    names = np.array([gpu or "" for gpu in gpus])
    for name in set(names.tolist()) - {""} if len(set(gpus)) > 1 else ():
        of = names == name
        if of.sum() >= 3:
            own[of] = np.median(residuals[of]) * of.sum() / (of.sum() + 1)
    return own


@dataclass(frozen=True)
class _Pieces:
    """Levels and slopes, and the variances of both."""

    values: Floats
    bounds: Places
    mean: Floats
    slope: Floats
    variance: Floats  # long-run, of a record
    freedom: Floats

    @property
    def count(self) -> Places:
        return np.diff(self.bounds)

    @property
    def first(self) -> Floats:
        return self.mean - self.slope * (self.count - 1) / 2

    @property
    def last(self) -> Floats:
        return self.mean + self.slope * (self.count - 1) / 2

    @property
    def fitted(self) -> Floats:
        piece = np.repeat(np.arange(len(self.mean)), self.count)
        return self.first[piece] + self.slope[piece] * (
            np.arange(len(self.values)) - self.bounds[piece]
        )

    @property
    def of_end(self) -> Floats:
        """The variance of an end."""
        return self.variance / self.count * np.where(self.slope != 0, 4, 1)


def _pieces_of(values: Floats) -> _Pieces:
    clean = _without_spikes(values)
    bounds, sloped = np.array([0, len(values)]), np.array([False])
    if len(values) >= 2 * SHORTEST:
        bounds, sloped = _tested(clean, values, *_best(clean, _proposed(clean)))
        bounds = _relocated(values, _fit(clean, bounds, sloped))
    start = int(bounds[-2])
    if late := _late(values, start):
        bounds, sloped = np.insert(bounds, -1, late), np.append(sloped, False)
        clean = np.append(clean[:start], values[start:])
    return _fit(clean, bounds, sloped)


def _noise(values: Floats) -> float:
    """Standard deviation, from differences, so that steps do not count."""
    return max(1.4826 * float(np.median(np.abs(np.diff(values)))) / math.sqrt(2), _LEAST)


def _without_spikes(values: Floats) -> Floats:
    """Up to three points in a row that stand out become like their neighbours; steps stay."""
    half = SHORTEST - 1
    if len(values) < 2 * SHORTEST:
        return values
    middles = median_filter(values, 2 * half + 1, mode="mirror")
    return np.where(np.abs(values - middles) > _SPIKE * _noise(values), middles, values)


def _cheapest(last: int, costs: Callable[[int], Floats]) -> Places:
    """Places from 0 to `last`; `costs` of an end are those of the pieces from each place before."""
    least, previous = np.zeros(last + 1), np.zeros(last + 1, int)
    for end in range(1, last + 1):
        sums = least[:end] + costs(end)
        previous[end] = best = int(np.argmin(sums))
        least[end] = sums[best]
    found = [last]
    while found[-1] > 0:
        found.append(int(previous[found[-1]]))
    return np.array(found[::-1])


def _sums(values: Floats, start: Places, end: Places) -> tuple[Floats, Floats, Floats, Floats]:
    """Of ranges: mean, slope, and squares about the mean and about the line."""
    columns = values, values**2, np.arange(len(values)) * values
    sums = (np.concatenate([[0.0], np.cumsum(each)]) for each in columns)
    total, squares, moment = (each[end] - each[start] for each in sums)
    count = np.maximum(end - start, 1)
    level = np.maximum(squares - total**2 / count, 0.0)
    product = moment - (start + end - 1) / 2 * total
    slope = np.where(count >= GRADUAL, product / _spread(count), 0.0)
    return total / count, slope, level, np.maximum(level - slope**2 * _spread(count), 0.0)


def _spread(count: Places) -> Floats:
    """Squares of so many points' places about their middle."""
    return np.maximum(count * (count**2 - 1.0) / 12, 1e-300)


def _proposed(clean: Floats) -> Places:
    """Bounds of levels: more than there are, not fewer."""
    signal, starts = clean / _noise(clean), np.arange(len(clean) + 1)
    first, second = (np.concatenate([[0.0], np.cumsum(signal**power)]) for power in (1, 2))

    def costs(end: int) -> Floats:
        few = max(end - SHORTEST + 1, 0)
        total = first[end] - first[:few]
        level = second[end] - second[:few] - total**2 / (end - starts[:few])
        return np.concatenate([level + _PROPOSED, np.full(end - few, np.inf)])

    return _cheapest(len(clean), costs)


def _best(clean: Floats, places: Places) -> tuple[Places, Flags]:
    """Of the proposed bounds those of the best pieces, and which of these slope."""
    *_, level, line = _sums(clean, places[:, None], places[None, :])
    bounds, sloped = places, np.zeros(len(places) - 1, bool)
    for _ in range(4):
        squares, products = (each.sum() for each in _residuals(clean, bounds, sloped))
        fitted = len(sloped) + sloped.sum()
        variance = max(squares / max(len(clean) - fitted, 1), _LEAST**2)
        correlation = _unbiased(products / max(squares, 1e-300), fitted / len(clean))
        penalty = _KEPT * variance * (1 + correlation) / (1 - correlation)
        costs = np.minimum(level, line + penalty) + penalty
        kept = _cheapest(len(places) - 1, partial(_column, costs))
        settled = len(kept) == len(bounds)
        bounds, sloped = places[kept], (line + penalty < level)[kept[:-1], kept[1:]]
        if settled:
            break
    return bounds, sloped


def _residuals(clean: Floats, bounds: Places, sloped: Flags) -> tuple[Floats, Floats]:
    """Squares of each piece about its fit, and the products of neighbours there."""
    mean, slope, *_ = _sums(clean, bounds[:-1], bounds[1:])
    piece = np.repeat(np.arange(len(mean)), np.diff(bounds))
    place = np.arange(len(clean)) - ((bounds[:-1] + bounds[1:] - 1) / 2)[piece]
    left = clean - mean[piece] - np.where(sloped, slope, 0.0)[piece] * place
    products = left[:-1] * left[1:] * (piece[:-1] == piece[1:])
    return np.add.reduceat(left**2, bounds[:-1]), np.add.reduceat([*products, 0.0], bounds[:-1])


def _unbiased(correlation: Floats, fitted: Floats) -> Floats:
    """An estimate from n points is low by about (1 + 3 r) / n; negative ones earn nothing."""
    return np.clip(correlation + (1 + 3 * correlation) * fitted, 0.0, 0.95)


def _fit(clean: Floats, bounds: Places, sloped: Flags) -> _Pieces:
    """Noise of a piece: its own, that of the whole series, and what is usual."""
    count = np.diff(bounds)
    mean, slope, *_ = _sums(clean, bounds[:-1], bounds[1:])
    squares, products = _residuals(clean, bounds, sloped)
    left = max(len(clean) - len(count) - sloped.sum(), 0)
    common = (squares.sum() + _FREEDOM * _USUAL**2) / (left + _FREEDOM)
    shared = products.sum() / (squares.sum() + _PRIOR * common)  # a few records know it badly
    variance = (squares + _PRIOR * common) / (count - 1 - sloped + _PRIOR)
    correlation = (products + _PRIOR * common * shared) / (squares + _PRIOR * common)
    correlation = _unbiased(correlation, (1 + sloped) / (count + _PRIOR))
    longer = (1 + correlation) / (1 - correlation)
    freedom = (count - 1) / longer + _PRIOR
    return _Pieces(clean, bounds, mean, np.where(sloped, slope, 0.0), variance * longer, freedom)


def _column(costs: Floats, end: int) -> Floats:
    return costs[:end, end]


def _chance(value: Floats, variance: Floats, freedom: Floats) -> Floats:
    """That noise alone is so far from 0."""
    return np.asarray(2 * stdtr(freedom, -np.abs(value) / np.sqrt(variance)))


def _tested(clean: Floats, raw: Floats, bounds: Places, sloped: Flags) -> tuple[Places, Flags]:
    """Drops bounds and slopes, the weakest first, until noise explains none."""
    least, alarm = np.log1p(SMALLEST), FALSE_ALARM / len(clean)
    while True:
        pieces = _fit(clean, bounds, sloped)
        count, slope = pieces.count, pieces.slope
        of_slope = pieces.variance / _spread(count)
        flat = _chance(slope, of_slope, pieces.freedom) > alarm
        flat |= np.abs(slope) * count < least
        if (sloped & flat).any():
            sloped = sloped & ~flat
            continue
        if len(bounds) == 2:
            return bounds, sloped
        jump, bend = pieces.first[1:] - pieces.last[:-1], np.diff(slope)
        shorter = np.minimum(count[:-1], count[1:])
        variance = pieces.of_end[:-1] + pieces.of_end[1:]
        of_bend = of_slope[:-1] + of_slope[1:]
        freedom = pieces.freedom[:-1] + pieces.freedom[1:]
        # Smaller steps may be part of a staircase, which is a slope in the end.
        step = (_chance(jump, variance, freedom) <= alarm) & (np.abs(jump) >= least / 2)
        step[step] = [not _by_chance(raw, pieces, i) for i in np.flatnonzero(step).tolist()]
        bent = (_chance(bend, of_bend, freedom) <= alarm) & (np.abs(bend) * shorter >= least / 2)
        weak = ~(step | bent)
        if not weak.any():
            return bounds, sloped
        merit = np.maximum(np.abs(jump) / np.sqrt(variance), np.abs(bend) / np.sqrt(of_bend))
        worst = int(np.argmin(np.where(weak, merit, np.inf)))
        bounds = np.delete(bounds, worst + 1)
        # What is merged may slope.
        sloped = np.delete(sloped, worst)
        sloped[worst] = bounds[worst + 1] - bounds[worst] >= GRADUAL


def _by_chance(raw: Floats, pieces: _Pieces, which: int) -> bool:
    """Whether records that take one of two speeds at random explain this inner bound.

    How often they would be on these sides of its middle for so long before and after it, at the
    rates of the other records.
    """
    from scipy.stats import betabinom

    middle = (pieces.last[which] + pieces.first[which + 1]) / 2
    sign = np.sign(pieces.first[which + 1] - middle)
    beyond, level = sign * (raw - middle) > 0, sign * (pieces.mean - middle) > 0
    # As long as the levels stay on their side.
    returns, left = np.flatnonzero(~level[which + 1 :]), np.flatnonzero(level[: which + 1])
    start = pieces.bounds[left[-1] + 1] if len(left) else 0
    end = pieces.bounds[which + 1 + returns[0]] if len(returns) else len(raw)
    at, chance = pieces.bounds[which + 1], float(len(raw))
    for there, everywhere in ((~beyond[start:at], ~beyond), (beyond[at:end], beyond)):
        elsewhere = everywhere.sum() - there.sum()
        prior = elsewhere + 0.5, len(raw) - len(there) - elsewhere + 0.5
        chance *= betabinom.sf(there.sum() - 1, len(there), *prior)
    return chance > _BY_CHANCE


def _relocated(raw: Floats, pieces: _Pieces) -> Places:
    """Each step where its levels fit best; a spike is as likely on either side of it."""
    bounds = pieces.bounds.copy()
    for i in range(1, len(bounds) - 1):
        if not pieces.slope[i - 1 : i + 1].any():
            low, high = (bounds[i - 1] + bounds[i] + 1) // 2, (bounds[i] + bounds[i + 1]) // 2
            levels = pieces.mean[i - 1 : i + 1, None]
            off = np.minimum((raw[low:high] - levels) ** 2, (levels[1] - levels[0]) ** 2)
            bounds[i] = low + np.argmin(np.append(0.0, np.cumsum(off[0] - off[1])))
    return bounds


def _late(values: Floats, start: int) -> int | None:
    """Where the newest records leave the level that begins at `start`, if they do.

    The noise of single records decides, and of a long series that of neighbours as well: how far
    they are correlated does not matter.
    """
    count = len(values) - start
    if count < ENOUGH:
        return None
    long = count >= 2 * SHORTEST
    earliest = max(start + FEWEST, len(values) - _NEWEST)
    places = np.arange(earliest, len(values) - FEWEST + 1)
    beside = np.add(values[1:], values[:-1]) / 2
    local = beside[places] - beside[places - 2]
    at = int(places[np.argmax(np.abs(local))])
    old, new = values[start:at], values[at:]
    jump = new.mean() - old.mean()
    squares = len(old) * old.var() + len(new) * new.var() + _FREEDOM * _USUAL**2
    far = np.sqrt(squares / (count - 2 + _FREEDOM)) * (_FAR_OF_MANY if long else _FAR)
    few = min(len(old), len(new)) < SHORTEST
    beyond = np.sign(jump) * (values[start:] - (new.mean() + old.mean()) / 2) > 0
    apart = beyond[at - start :].all() and beyond[: at - start].mean() <= _STRAY
    sudden = not long or np.abs(local).max() >= _SUDDEN * _noise(values[start:])
    large = abs(jump) >= max(far, np.log1p(LARGE if few else SMALLEST))
    return at if large and apart and sudden else None


def _changes(pieces: _Pieces) -> list[Change]:
    """A step between two levels, a gradual change for slopes and what joins them."""
    small, found = np.log1p(SMALLEST), []
    first, last, bounds = pieces.first.copy(), pieces.last.copy(), pieces.bounds.tolist()
    # A line through a level and a ramp is steeper than both: the ends of the series count.
    few = max(SHORTEST, len(pieces.values) // 20)
    first[0], last[-1] = (
        np.where(pieces.slope[i] != 0, pieces.values[part].mean(), end)
        for i, part, end in ((0, slice(few), first[0]), (-1, slice(-few, None), last[-1]))
    )
    i = 0
    while i < len(first):
        end = i
        while end < len(first) and pieces.slope[end] != 0:
            end += 1
        old, new = (i - 1, last[i - 1]) if i else (0, first[0]), None
        if end < len(first):
            new = (end, first[end])
        elif end > i:
            new = (end - 1, last[end - 1])
        if new and (i or end > i):
            error = np.sqrt(pieces.of_end[old[0]] + pieces.of_end[new[0]])
            margin = stdtrit(pieces.freedom[old[0]] + pieces.freedom[new[0]], 0.975) * error
            at = min(bounds[end], len(pieces.values) - 1)
            found.append((bounds[i], at, new[1] - old[1], margin))
        i = end + 1
    return [
        Change(start, at, *np.exp([size, size - margin, size + margin]).tolist())
        for start, at, size, margin in found
        if abs(size) >= small
    ]
