"""A trend as SVG, written by hand: matplotlib would take a second for each of hundreds."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from gemm_report.history.trends import Trend
from gemm_report.site.markup import Html, tag
from gemm_report.writing.quantity import prefix_for, scaled

_WIDTH, _HEIGHT = 1200.0, 380.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 76.0, 12.0, 46.0, 72.0
_PLOT = _WIDTH - _LEFT - _RIGHT
_FLOOR = _HEIGHT - _BOTTOM
_SPARK_WIDTH, _SPARK_HEIGHT, _SPARK_POINTS = 144.0, 24.0, 72

Floats = NDArray[np.float64]


def sparkline(trend: Trend) -> Html:
    """The rate over time, higher is faster: means of stretches, and the levels over them."""
    rates = trend.series.rates
    low, high = _range(trend)
    count = min(len(rates), _SPARK_POINTS)
    starts = np.arange(count) * len(rates) // count
    # What is clipped to the range pulls a mean little.
    clipped = np.clip(rates, low, high)
    middles = np.add.reduceat(clipped, starts) / np.diff(starts, append=len(rates))
    x = (np.arange(len(middles)) + 0.5) * _SPARK_WIDTH / len(middles)
    y = _heights(middles, low, high, 2.0, _SPARK_HEIGHT - 2.0)
    line = "M" + "L".join(f"{a:.1f} {b:.1f}" for a, b in zip(x, y, strict=True))
    per_point = _SPARK_WIDTH / len(rates)
    levels = _levels(trend, lambda i: i * per_point, low, high, 2.0, _SPARK_HEIGHT - 2.0)
    paths = (tag("path", d=line, class_="trace"), tag("path", d=levels, class_="level"))
    box = f"0 0 {_SPARK_WIDTH:g} {_SPARK_HEIGHT:g}"
    return tag("svg", *paths, class_="spark", viewBox=box, aria_hidden="true")


def chart(
    trend: Trend, commit: NDArray[np.int64], label: Callable[[int], tuple[str, Html]]
) -> Html:
    """The rate of every record, at even distances. `label` has the date and commit of a point."""
    rates = trend.series.rates
    low, high = _range(trend)
    x = _LEFT + (np.arange(len(rates)) + 0.5) * _PLOT / len(rates)
    y = _heights(rates, low, high, _TOP, _FLOOR)
    levels = _levels(trend, lambda i: _LEFT + i * _PLOT / len(rates), low, high, _TOP, _FLOOR)
    points = "".join(f"M{a:.1f} {b:.1f}h0" for a, b in zip(x, y, strict=True))
    parts = [
        _rate_axis(low, high, trend.series.unit),
        _date_axis(x, label),
        tag("path", d=points, class_="points"),
        tag("path", d=levels, class_="level"),
        *_changes(trend, x),
    ]
    changed, failed = x[1:][np.diff(commit) != 0], trend.series.failed
    if len(changed) < _PLOT / 3:  # a mark at every other place would tell nothing
        parts.append(_marks(changed, "commits"))
    if len(failed):
        beside = np.searchsorted(trend.series.record, failed)
        parts.append(_marks(x[np.minimum(beside, len(x) - 1)], "failed", 12.0))
    box, name = f"0 0 {_WIDTH:g} {_HEIGHT:g}", f"{trend.series.case}: rate over time"
    return tag("svg", *parts, class_="history", viewBox=box, role="group", aria_label=name)


def _range(trend: Trend) -> tuple[float, float]:
    """Of nearly all rates: a point outside is drawn at the edge, and must not flatten the rest."""
    ends = [(level.seconds, level.last_seconds) for level in trend.segments]
    levels = [trend.series.flop / seconds for pair in ends for seconds in pair]
    low, high = np.quantile(trend.series.rates, [0.005, 0.995]).tolist()
    low, high = min(low, *levels), max(high, *levels)
    # Noise of a tenth of a percent should look like what it is.
    margin = max(0.08 * (high - low), 0.01 * high)
    return low - margin, high + margin


def _heights(rates: Floats, low: float, high: float, top: float, floor: float) -> Floats:
    share = np.clip((rates - low) / (high - low), 0.0, 1.0)
    return floor - share * (floor - top)


def _levels(
    trend: Trend, x: Callable[[int], float], low: float, high: float, top: float, floor: float
) -> str:
    seconds = np.array([(level.seconds, level.last_seconds) for level in trend.segments])
    heights = _heights(trend.series.flop / seconds, low, high, top, floor)
    return "".join(
        f"M{x(level.start):.1f} {y:.1f}L{x(level.end):.1f} {last:.1f}"
        for level, (y, last) in zip(trend.segments, heights, strict=True)
    )


def _rate_axis(low: float, high: float, unit: str) -> Html:
    rough = (high - low) / 5
    power = 10.0 ** np.floor(np.log10(rough))
    step = next(s * power for s in (1, 2, 5, 10) if s * power >= rough)
    ticks = np.arange(np.ceil(low / step), np.floor(high / step) + 1) * step
    prefix = prefix_for([high])
    heights = _heights(ticks, low, high, _TOP, _FLOOR)
    lines = "".join(f"M{_LEFT:g} {y:.1f}H{_WIDTH - _RIGHT:g}" for y in heights)
    decimals = max(0, -int(np.floor(np.log10(scaled(step, prefix)))))
    labels = (
        tag("text", f"{scaled(tick, prefix):.{decimals}f}", x=_LEFT - 6, y=f"{y + 4:.1f}")
        for tick, y in zip(ticks.tolist(), heights.tolist(), strict=True)
    )
    name = tag("text", f"{prefix}{unit}", x=_LEFT - 6, y=_TOP - 14)
    return tag("g", tag("path", d=lines, class_="grid"), *labels, name, class_="rates")


def _date_axis(x: Floats, label: Callable[[int], tuple[str, Html]]) -> Html:
    shown = np.unique(np.linspace(0, len(x) - 1, min(len(x), 7)).round().astype(int))
    labels = []
    for i in shown.tolist():
        # What stands at an edge must not reach over it.
        edge = "first" if x[i] < _LEFT + 40 else "last" if x[i] > _WIDTH - 40 else None
        for y, said in zip((_HEIGHT - 20, _HEIGHT - 6), label(i), strict=True):
            labels.append(tag("text", said, x=f"{x[i]:.1f}", y=y, class_=edge))
    return tag("g", *labels, class_="dates")


def _changes(trend: Trend, x: Floats) -> list[Html]:
    marks = []
    ends: list[float] = []
    for number, change in enumerate(trend.changes, 1):
        at = float(x[max(change.start - 1, 0)] + x[change.at]) / 2
        # Numbers of changes that lie close stand above each other.
        row = next((i for i, end in enumerate(ends) if at - end > 16), len(ends))
        ends[row : row + 1] = [at]
        tone = "slower" if change.ratio > 1 else "faster"
        line = tag("path", d=f"M{at:.1f} {_TOP:g}V{_FLOOR:g}")
        label = tag("text", str(number), x=f"{at:.1f}", y=_TOP - 4 - 13 * (row % 3))
        marks.append(tag("g", line, label, class_=f"change {tone}"))
    return marks


def _marks(x: Floats, name: str, lower: float = 0.0) -> Html:
    top = _FLOOR + 12 + lower
    path = "".join(f"M{a} {top:g}v7" for a in np.flatnonzero(np.bincount(x.astype(int))).tolist())
    label = tag("text", name, x=_LEFT - 6, y=top + 7)
    return tag("g", tag("path", d=path), label, class_=name)
