"""Where a series changes, at once or gradually, and by how much.

Least squares with a penalty for each segment (optimal partitioning: Jackson and others, An
algorithm for optimal partitioning of data on an interval, 2005) propose places. Of these the same
method, now with pieces that may slope, keeps the best by the long-run variance of the series, so
that correlated noise earns nothing. A t-test with each piece's own noise and a test for series that
run at two speeds then remove what noise explains. docs/comparing.md has what is found and what is
found wrongly; `python -m gemm_report.history.planted` measures it.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import median_filter
from scipy.special import stdtr, stdtrit

Floats = NDArray[np.float64]
Places = NDArray[np.int64]

# A level has at least so many records: one process that had a bad day is no change.
SHORTEST = 4
# A slope has at least so many.
GRADUAL = 20
# Smaller changes are not reported: machines drift that much.
SMALLEST = 0.01
# Of all places of a series together: how often noise alone may look like a change.
FALSE_ALARM = 1e-6
# The same of records that run at one of two speeds.
_BY_CHANCE = 4e-5
# What a further piece has to explain: in variances of neighbours to be proposed, in long-run
# variances to be kept. A slope costs as much as a piece.
_PROPOSED, _KEPT = 12.0, 36.0
_SPIKE = 4.0
# So many observations of the whole series' noise count as much as a segment's own.
_PRIOR = 10.0
# Relative: timers resolve no less; quantised times must not seem to be without noise.
_LEAST_NOISE = 1e-4

NOTHING = "nothing recorded"  # in place of a suspect


@dataclass(frozen=True)
class Segment:
    """From point `start` to before point `end`; seconds at its first and at its last point."""

    start: int
    end: int
    seconds: float
    last_seconds: float


@dataclass(frozen=True)
class Suspect:
    """What a change may be put down to: `what` was `before` up to it and `after` from it on."""

    what: str
    before: str
    after: str

    def __str__(self) -> str:
        return f"{self.what} {self.before} → {self.after}"


@dataclass(frozen=True)
class Change:
    """From point `start` on a level is left; from point `at` on the next one is there.

    A step has both at the same point. `before` is in seconds; `ratio` is new over old seconds, with
    its 95 % interval.
    """

    start: int
    at: int
    before: float
    ratio: float
    low: float
    high: float
    # Of a step: its place, and those beside it that fit hardly worse.
    places: tuple[int, ...] = ()
    suspects: tuple[Suspect, ...] = ()  # the likeliest first

    @property
    def gradual(self) -> bool:
        """Whether it is a slope, or a staircase of steps too small to tell apart."""
        return self.start < self.at

    @property
    def suspect(self) -> str:
        """The likeliest."""
        likeliest = str(self.suspects[0]) if self.suspects else NOTHING
        if not self.gradual:
            return likeliest
        during = f"gradual, over {self.at - self.start} records"
        return f"{during}: {likeliest}" if self.suspects else during


def find_changes(seconds: Floats) -> tuple[list[Segment], list[Change]]:
    """The segments of a series and its changes of SMALLEST or more, in the order of time."""
    logarithms = np.log(seconds)
    middle = float(np.median(logarithms))
    series = _Series(logarithms - middle)
    places = propose(series.clean)
    bounds, sloped = _best(series, places) if len(places) > 2 else (places, np.array([False]))
    pieces = _tested(series, bounds, sloped)
    if len(pieces.count) > 1:
        pieces = _tested(series, _relocated(series, pieces), pieces.slope != 0)
    levels = np.exp(np.stack([pieces.first, pieces.last], axis=1) + middle).tolist()
    edges = pairwise(pieces.bounds.tolist())
    segments = [Segment(*edge, *level) for edge, level in zip(edges, levels, strict=True)]
    return segments, _reported(_described(series, pieces, segments))


def propose(values: Floats) -> Places:
    """Bounds of levels, the ends of the series included: more than there are, not fewer."""
    if len(values) < 2 * SHORTEST:
        return np.array([0, len(values)])
    return _partitioned(values / _noise(values))


def _partitioned(signal: Floats) -> Places:
    """The bounds of the levels with the least sum of squares and penalties."""
    places = np.arange(len(signal) + 1)
    first = np.concatenate([[0.0], np.cumsum(signal)])
    second = np.concatenate([[0.0], np.cumsum(signal**2)])

    def costs(end: int) -> Floats:
        starts = max(end - SHORTEST + 1, 0)  # as many
        total = first[end] - first[:starts]
        level = second[end] - second[:starts] - total**2 / (end - places[:starts])
        return np.concatenate([level + _PROPOSED, np.full(end - starts, np.inf)])

    return _cheapest(len(signal), costs)


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


def without_spikes(values: Floats) -> Floats:
    """Up to three points in a row that stand out become like their neighbours; steps stay."""
    half = SHORTEST - 1
    if len(values) < 2 * half + 1:
        return values
    limit = _SPIKE * _noise(values)
    middles = median_filter(values, 2 * half + 1, mode="mirror")
    return np.where(np.abs(values - middles) > limit, middles, values)


def _noise(values: Floats) -> float:
    """Standard deviation, from differences, so that steps do not count."""
    differences = np.abs(np.diff(values))
    return max(1.4826 * np.median(differences) / np.sqrt(2), _LEAST_NOISE)


class _Series:
    """Logarithms near 0, and sums over any range of them for the price of a subtraction."""

    def __init__(self, values: Floats) -> None:
        self.raw = values
        self.clean = clean = without_spikes(values)
        self.count = len(values)
        summed = (clean, clean**2, np.arange(len(values)) * clean)
        self._sums = [np.concatenate([[0.0], np.cumsum(each)]) for each in summed]

    def fit(self, start: Places, end: Places) -> tuple[Places, Floats, Floats, Floats, Floats]:
        """Of ranges: points, mean, slope, and squares about the mean and about the line."""
        total, squares, moment = (sums[end] - sums[start] for sums in self._sums)
        count = np.maximum(end - start, 1)
        mean = total / count
        level = np.maximum(squares - count * mean**2, 0.0)
        spread = _spread(count)
        product = moment - (start + end - 1) / 2 * total
        slope = np.divide(product, spread, out=np.zeros_like(mean), where=count >= GRADUAL)
        return count, mean, slope, level, np.maximum(level - slope**2 * spread, 0.0)


def _spread(count: Places) -> Floats:
    """Squares of so many points' places about their middle."""
    return np.maximum(count * (count**2 - 1.0) / 12, 1e-300)


@dataclass(frozen=True)
class _Pieces:
    """Levels and slopes, with the variances of both and the degrees of freedom of these."""

    bounds: Places
    count: Places
    mean: Floats
    slope: Floats
    of_mean: Floats
    of_slope: Floats
    freedom: Floats

    @property
    def first(self) -> Floats:
        return self.mean - self.slope * (self.count - 1) / 2

    @property
    def last(self) -> Floats:
        return self.mean + self.slope * (self.count - 1) / 2

    @property
    def jump(self) -> Floats:
        """Of each inner bound: how far the piece behind it begins from where the last ends."""
        return self.first[1:] - self.last[:-1]

    @property
    def jump_error(self) -> Floats:
        variance = self.of_mean + self.of_slope * ((self.count - 1) / 2) ** 2
        return np.sqrt(variance[:-1] + variance[1:])

    @property
    def jump_freedom(self) -> Floats:
        return self.freedom[:-1] + self.freedom[1:]


def _residuals(series: _Series, bounds: Places, sloped: NDArray[np.bool_]) -> tuple[Floats, Floats]:
    """Squares of each piece about its fit, and the products of neighbours there."""
    count, mean, slope, _, _ = series.fit(bounds[:-1], bounds[1:])
    piece = np.repeat(np.arange(len(count)), count)
    place = np.arange(series.count) - ((bounds[:-1] + bounds[1:] - 1) / 2)[piece]
    left = series.clean - mean[piece] - np.where(sloped, slope, 0.0)[piece] * place
    products = left[:-1] * left[1:] * (piece[:-1] == piece[1:])
    return np.add.reduceat(left**2, bounds[:-1]), np.add.reduceat([*products, 0.0], bounds[:-1])


def _best(series: _Series, places: Places) -> tuple[Places, NDArray[np.bool_]]:
    """Of the proposed bounds those of the best pieces, and which of these slope."""
    *_, level, line = series.fit(places[:, None], places[None, :])
    bounds, sloped = places, np.zeros(len(places) - 1, bool)
    for _ in range(4):
        squares, products = (each.sum() for each in _residuals(series, bounds, sloped))
        fitted = len(sloped) + sloped.sum()
        variance = max(squares / max(series.count - fitted, 1), _LEAST_NOISE**2)
        correlation = products / max(squares, 1e-300)
        correlation = _unbiased(correlation, fitted / series.count)
        penalty = _KEPT * variance * (1 + correlation) / (1 - correlation)
        costs = np.minimum(level, line + penalty) + penalty
        kept = _cheapest(len(places) - 1, lambda end, costs=costs: costs[:end, end])
        settled = len(kept) == len(bounds)
        bounds = places[kept]
        sloped = (line + penalty < level)[kept[:-1], kept[1:]]
        if settled:
            break
    return bounds, sloped


def _unbiased(correlation: Floats, fitted: Floats) -> Floats:
    """An estimate from n points is low by about (1 + 3 r) / n; negative ones earn nothing."""
    return np.clip(correlation + (1 + 3 * correlation) * fitted, 0.0, 0.95)


def _pieces(series: _Series, bounds: Places, sloped: NDArray[np.bool_]) -> _Pieces:
    """With a slope where it is `sloped` and noise does not explain the slope."""
    while True:
        count, mean, slope, _, _ = series.fit(bounds[:-1], bounds[1:])
        squares, products = _residuals(series, bounds, sloped)
        left = max(series.count - len(count) - sloped.sum(), 1)
        common = max(squares.sum() / left, _LEAST_NOISE**2)
        shared = products.sum() / max(squares.sum(), 1e-300)
        variance = (squares + _PRIOR * common) / (count - 1 - sloped + _PRIOR)
        correlation = (products + _PRIOR * common * shared) / (squares + _PRIOR * common)
        correlation = _unbiased(correlation, (1 + sloped) / (count + _PRIOR))
        variance *= (1 + correlation) / (1 - correlation)
        freedom = (count - 1) * (1 - correlation) / (1 + correlation) + _PRIOR
        of_slope = variance / _spread(count)
        chance = _chance(slope, np.sqrt(of_slope), freedom) * series.count
        weak = sloped & ((chance > FALSE_ALARM) | (np.abs(slope) * count < np.log1p(SMALLEST)))
        if not weak.any():
            slope, of_slope = np.where(sloped, slope, 0.0), np.where(sloped, of_slope, 0.0)
            return _Pieces(bounds, count, mean, slope, variance / count, of_slope, freedom)
        sloped = sloped & ~weak


def _chance(value: Floats, error: Floats, freedom: Floats) -> Floats:
    """That noise alone is so far from 0."""
    return 2 * stdtr(freedom, -np.abs(value) / np.maximum(error, 1e-300))


def _tested(series: _Series, bounds: Places, sloped: NDArray[np.bool_]) -> _Pieces:
    """Drops bounds, the weakest of each neighbourhood first, until noise explains none."""
    while True:
        pieces = _pieces(series, bounds, sloped)
        if len(bounds) == 2:
            return pieces
        jump, error, freedom = pieces.jump, pieces.jump_error, pieces.jump_freedom
        shorter = np.minimum(pieces.count[:-1], pieces.count[1:])
        # Steps of half the size are kept until it is known whether they are part of a staircase.
        step = _chance(jump, error, freedom) * series.count <= FALSE_ALARM
        step &= np.abs(jump) >= np.log1p(SMALLEST) / 2
        step[step] = [_by_chance(series, pieces, i) <= _BY_CHANCE for i in np.flatnonzero(step)]
        bend = np.diff(pieces.slope)
        of_bend = np.sqrt(pieces.of_slope[:-1] + pieces.of_slope[1:])
        bent = _chance(bend, of_bend, freedom) * series.count <= FALSE_ALARM
        bent &= np.abs(bend) * shorter >= np.log1p(SMALLEST) / 2
        weak = ~(step | bent) | (shorter < SHORTEST)
        if not weak.any():
            return pieces
        merit = np.maximum(np.abs(jump) / error, np.abs(bend) / np.maximum(of_bend, 1e-300))
        merit = np.where(shorter < SHORTEST, merit * 1e-6, merit)
        merit = np.where(weak, merit, np.inf)
        beside = np.concatenate([[np.inf], merit, [np.inf]])
        # Both of two neighbours must not go at once: what lies between decides about the other.
        stays = np.append(True, ~(weak & (merit < beside[:-2]) & (merit <= beside[2:])))
        # What is merged may slope.
        merged = ~stays | np.append(~stays[1:], False)
        sloped = ((pieces.slope != 0) | merged)[stays]
        bounds = np.append(bounds[:-1][stays], series.count)
        sloped &= np.diff(bounds) >= GRADUAL


def _by_chance(series: _Series, pieces: _Pieces, which: int) -> float:
    """Whether records that take one of two speeds at random explain this inner bound.

    How often they would be on these sides of its middle for so long before and after it, at the
    rates of the other records, spikes included.
    """
    from scipy.stats import betabinom

    old, new = pieces.last[which], pieces.first[which + 1]
    middle, sign = (old + new) / 2, np.sign(new - old)
    beyond = sign * (series.raw - middle) > 0
    level = sign * (pieces.mean - middle) > 0
    # As long as the levels stay on their side.
    returns, left = np.flatnonzero(~level[which + 1 :]), np.flatnonzero(level[: which + 1])
    start = int(pieces.bounds[left[-1] + 1]) if len(left) else 0
    end = int(pieces.bounds[which + 1 + returns[0]]) if len(returns) else series.count
    at = int(pieces.bounds[which + 1])

    def chance(there: NDArray[np.bool_], elsewhere: int) -> float:
        """That so many or more are there, by the rate of the others, which few know badly."""
        count = len(there)
        prior = elsewhere + 0.5, series.count - count - elsewhere + 0.5
        return betabinom.sf(there.sum() - 1, count, *prior)

    before, after = ~beyond[start:at], beyond[at:end]
    return (
        chance(before, int((~beyond).sum() - before.sum()))
        * chance(after, int(beyond.sum() - after.sum()))
        * series.count
    )


def _relocated(series: _Series, pieces: _Pieces) -> Places:
    """Each inner bound where its pieces fit best, not beyond the middle of either."""
    bounds = pieces.bounds
    moved = bounds.copy()
    for i in range(1, len(bounds) - 1):
        low, high = (bounds[i - 1] + bounds[i] + 1) // 2, (bounds[i] + bounds[i + 1]) // 2
        moved[i] = low + int(np.argmin(_losses(series, pieces, i, low, high)))
    return moved


def _losses(series: _Series, pieces: _Pieces, bound: int, low: int, high: int) -> Floats:
    """Of each place to put a bound from `low` to `high`, up to a constant."""
    place = np.arange(low, high) - pieces.bounds[bound]
    before = pieces.last[bound - 1] + pieces.slope[bound - 1] * (place + 1)
    after = pieces.first[bound] + pieces.slope[bound] * place
    # A spike is as likely on either side of a step; at a bend there is no jump to compare it with.
    is_step = not pieces.slope[bound - 1 : bound + 1].any()
    values = (series.raw if is_step else series.clean)[low:high]
    limit = (pieces.first[bound] - pieces.last[bound - 1]) ** 2 if is_step else np.inf
    off = [np.minimum((values - fit) ** 2, limit) for fit in (before, after)]
    return np.concatenate([[0.0], np.cumsum(off[0] - off[1])])


def _described(series: _Series, pieces: _Pieces, segments: list[Segment]) -> list[Change]:
    """A change for each jump, and for each slope, of any size."""
    inner = len(segments) - 1
    jump, sloped = pieces.jump, pieces.slope != 0
    squares, _ = _residuals(series, pieces.bounds, sloped)
    variance = max(squares.sum() / max(series.count - len(squares), 1), _LEAST_NOISE**2)
    # Where a slope ends, a jump that noise explains is a part of the slope.
    chance = _chance(jump, pieces.jump_error, pieces.jump_freedom) * series.count
    step = (chance <= FALSE_ALARM) & (np.abs(jump) >= np.log1p(SMALLEST) / 2)
    changes = []
    for i, segment in enumerate(segments):
        if sloped[i]:
            first, last = pieces.first[i], pieces.last[i]
            # A line through a level and a ramp is steeper than both: the ends of the series count.
            few = max(SHORTEST, pieces.count[i] // 10)
            if i == 0:
                first = series.clean[:few].mean()
            elif not step[i - 1]:
                first -= jump[i - 1] / (2 if sloped[i - 1] else 1)
            if i == inner:
                last = series.clean[-few:].mean()
            elif not step[i]:
                last += jump[i] / (2 if sloped[i + 1] else 1)
            total, before = last - first, segment.seconds * np.exp(first - pieces.first[i])
            error = np.sqrt(pieces.of_slope[i]) * (pieces.count[i] - 1)
            ratios = _ratios(total, stdtrit(pieces.freedom[i], 0.975) * error)
            at = min(segment.end, series.count - 1)
            changes.append(Change(segment.start, at, float(before), *ratios))
        if i < inner and step[i]:
            at = segment.end
            low, high = max(at - SHORTEST, segment.start), min(at + SHORTEST, segments[i + 1].end)
            loss = _losses(series, pieces, i + 1, low, high)
            # Less likely by a factor of e^2 at most.
            near = low + np.flatnonzero(loss <= loss.min() + 4 * variance)
            beside = [each for each in (at - 1, at + 1) if near.min() <= each <= near.max()]
            quantile = stdtrit(pieces.jump_freedom[i], 0.975)
            ratios = _ratios(jump[i], quantile * pieces.jump_error[i])
            changes.append(Change(at, at, segment.last_seconds, *ratios, (at, *beside)))
    return changes


def _reported(changes: list[Change]) -> list[Change]:
    """Neighbours of one direction that are small are one gradual change; lone ones are left out."""
    small = np.log1p(SMALLEST)
    chains: list[list[Change]] = []
    for change in changes:
        size = np.log(change.ratio)
        last = np.log(chains[-1][-1].ratio) if chains else 0.0
        if size * last > 0 and max(abs(size), abs(last)) < 2 * small:
            chains[-1].append(change)
        else:
            chains.append([change])
    found = []
    for chain in chains:
        sizes = np.abs(np.log([change.ratio for change in chain]))
        if len(chain) > 2 or (len(chain) > 1 and min(sizes) < small <= sum(sizes)):
            found.append(_joined(chain))
        else:
            found += [each for each, size in zip(chain, sizes, strict=True) if size >= small]
    return found


def _joined(chain: list[Change]) -> Change:
    ratios, highs = np.log([[each.ratio, each.high] for each in chain]).T
    ratio, low, high = _ratios(ratios.sum(), np.sqrt(((highs - ratios) ** 2).sum()))
    return replace(chain[0], at=chain[-1].at, ratio=ratio, low=low, high=high, places=())


def _ratios(size: float, margin: float) -> list[float]:
    """Of a change in logarithms, with the ends of its interval."""
    return np.exp([size, size - margin, size + margin]).tolist()
