"""How the samples of chosen rows lie around their median: every one a dot, the quartiles a box."""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median, quantiles

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle

from gemm_report.figures.bars import Line, bars
from gemm_report.figures.palette import INK, REST, color_of
from gemm_report.record import Record, Row
from gemm_report.rows import drawn_rows, headlines
from gemm_report.text import precision_name, quantity

_SHOWN = 12  # rows
_FEWEST_SAMPLES = 5
# A sample farther out than this many distances from median to quartile is off-axis.
_REACH = 6.0
_HEAD = ["median", "interquartile range", "samples", "throttled", "off-axis"]


@dataclass(frozen=True)
class Samples:
    """Of one row: how far each is from the median, as a share of it."""

    row: Row
    away: tuple[float, ...]
    low: float
    high: float

    @property
    def spread(self) -> float:
        """Between the quartiles."""
        return self.high - self.low

    @property
    def throttled(self) -> tuple[bool, ...]:
        """Of each sample; of none if it was not observed."""
        return self.row.samples_throttled or (False,) * len(self.away)


def chosen(record: Record) -> list[Samples]:
    """Of the largest size of each kernel the noisiest."""
    found = []
    for row in headlines(drawn_rows(record)):
        if len(row.samples_seconds) >= _FEWEST_SAMPLES:
            middle = median(row.samples_seconds)
            away = tuple(seconds / middle - 1 for seconds in row.samples_seconds)
            low, _, high = quantiles(away, n=4, method="inclusive")
            found.append(Samples(row, away, low, high))
    widest = sorted(found, key=lambda samples: -samples.spread)[:_SHOWN]
    return [samples for samples in found if samples in widest]


def table(record: Record) -> list[dict[str, object]]:
    """The plotted data: every sample."""
    return [
        {"name": str(each.row.identity), "repetition": each.row.repetition, "sample": i}
        | {"seconds": seconds, "over_median": 1 + away}
        | {"throttled": held if each.row.samples_throttled else None}
        for each in chosen(record)
        for i, (seconds, away, held) in enumerate(
            zip(each.row.samples_seconds, each.away, each.throttled, strict=True)
        )
    ]


def draw(record: Record) -> Figure:
    """Run-to-run spread of the samples of chosen rows, relative to their medians."""
    found = chosen(record)
    reach = _reach(found)
    lines = [_line(samples, reach) for samples in found]
    remarks = [f"The {len(found)} noisiest rows at each kernel's largest size."]
    if not any(samples.row.samples_throttled for samples in found):
        remarks.append("Throttling was not observed.")
    title = "spread of the samples"
    page, (axes,) = bars(record, title, remarks, _HEAD, [lines], pitch=0.3, legend=_legend())
    axes.set_xlim(-100 * reach[0], 100 * reach[1])
    axes.set_xlabel("Time of a launch, % above the median")
    axes.axvline(0, color="#9a9a9a", linewidth=0.8, zorder=1)
    for y, samples in enumerate(found):
        _draw_samples(axes, y, samples, color_of(samples.row), reach)
    return page.figure


def _reach(found: Sequence[Samples]) -> tuple[float, float]:
    """How far the axis goes to either side."""
    widest = max(max(-each.low, each.high) for each in found)
    below = min(_REACH * widest, max(-min(each.away) for each in found))
    above = min(_REACH * widest, max(max(each.away) for each in found))
    least = max(0.2 * below, 0.2 * above, 1e-4)
    return 1.05 * max(below, least), 1.05 * max(above, least)


def _draw_samples(
    axes: Axes, y: int, samples: Samples, color: str, reach: tuple[float, float]
) -> None:
    # The same dots at every drawing.
    chance = random.Random(str(samples.row.identity))
    heights = [y + chance.uniform(-0.3, 0.3) for _ in samples.away]
    box = (100 * samples.low, y - 0.38), 100 * samples.spread, 0.76
    axes.add_patch(Rectangle(*box, facecolor=color, alpha=0.15, edgecolor="none", zorder=1.5))
    for x, width in ((samples.low, 0.8), (0, 1.8), (samples.high, 0.8)):
        axes.plot([100 * x] * 2, [y - 0.38, y + 0.38], color=INK, linewidth=width, zorder=4)
    marks = list(zip(samples.away, heights, samples.throttled, strict=True))
    inside = [mark for mark in marks if -reach[0] <= mark[0] <= reach[1]]
    for throttled, look in (
        (False, {"marker": "o", "markersize": 2.6, "markeredgewidth": 0}),
        (True, {"marker": "x", "markersize": 3.2, "markeredgewidth": 0.7}),
    ):
        xs = [100 * away for away, _, held in inside if held == throttled]
        ys = [height for _, height, held in inside if held == throttled]
        axes.plot(xs, ys, linestyle="none", color=color, alpha=0.55, zorder=3, **look)
    beyond = {"color": color, "markersize": 5, "clip_on": False, "zorder": 5}
    for away in samples.away:
        if away < -reach[0]:
            axes.plot(-100 * reach[0], y, marker="<", **beyond)
        elif away > reach[1]:
            axes.plot(100 * reach[1], y, marker=">", **beyond)


def _line(samples: Samples, reach: tuple[float, float]) -> Line:
    row = samples.row
    held = sum(row.samples_throttled)
    beyond = sum(not -reach[0] <= away <= reach[1] for away in samples.away)
    cells = (
        quantity(median(row.samples_seconds), "s"),
        f"{100 * samples.spread:.2f} %",
        str(len(samples.away)),
        str(held) if row.samples_throttled else "-",
        str(beyond) if beyond else "",
    )
    return Line(f"{row.label}  {precision_name(row.precision)}  {row.size}{row.ordinal}", cells)


def _legend() -> list[Line2D]:
    grey = {"linestyle": "none", "color": REST}
    band = {"color": REST, "solid_capstyle": "butt"}
    return [
        Line2D([], [], marker="o", markersize=3.5, label="a sample", **grey),
        Line2D([], [], marker="x", markersize=4, label="throttled", **grey),
        Line2D([], [], linewidth=7, alpha=0.4, label="interquartile range", **band),
        Line2D([], [], color=INK, linewidth=1.4, label="median"),
        Line2D([], [], marker=">", markersize=5, label="off-axis", **grey),
    ]
