"""What every figure shares: title, subtitle, legend and notes, and labels beside a plot.

matplotlib's constrained layout gives each part its room; a figure says only how tall its plots are.
"""

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.transforms import ScaledTranslation

from gemm_report.figures.palette import Colors
from gemm_report.record import Record

WIDTH = 7.4  # inches
_TITLE, _SUBTITLE, _NOTE = 13.0, 8.5, 7.5  # points
_LEFT = 0.1  # inches
_PITCH, _GUTTER = 13.0, 24.0  # points between labels, and from the plot to them


class Sheet(Figure):
    """A figure. `tips` are places in data with what they show."""

    tips: list[tuple[Axes, float, float, str]]

    def tip(self, axes: Axes, x: float, y: float, said: str) -> None:
        """What a page shows when a reader points there."""
        self.tips.append((axes, x, y, said))


@dataclass(frozen=True)
class Label:
    """Names what lies at the height y, in data."""

    text: str
    y: float
    color: str
    bold: bool = False


def sheet(
    record: Record,
    colors: Colors,
    title: str,
    subtitle: str,
    notes: Sequence[str],
    height: float,
    width: float = WIDTH,
    legend: Sequence[Artist] = (),
) -> Sheet:
    """Plots of `height` inches between title and notes, of which the last is where it is from."""
    source = f"gemm_bench {record.commit_name[:7]} · {record.date[:10]}"
    source += "" if record.complete else " · incomplete run"
    titles, subtitles = _wrapped([title], width, _TITLE), _wrapped([subtitle], width, _SUBTITLE)
    lines = _wrapped([*notes, source], width, _NOTE)
    above = 0.1 + len(titles) * 1.3 * _TITLE / 72 + len(subtitles) * 1.3 * _SUBTITLE / 72 + 0.08
    below = 0.08 + len(lines) * 1.35 * _NOTE / 72
    row = 0.26 if legend else 0.0
    tall = above + height + row + below
    layout = ConstrainedLayoutEngine(
        w_pad=0.08, h_pad=0.04, rect=(0, (below + row) / tall, 1, height / tall)
    )
    made = Sheet((width, tall), layout=layout)
    made.tips = []
    left: dict[str, Any] = {"ha": "left", "va": "top"}
    made.text(_LEFT / width, 1 - 0.08 / tall, "\n".join(titles), size=_TITLE, weight="bold", **left)
    y = 1 - (0.1 + len(titles) * 1.3 * _TITLE / 72) / tall
    soft: dict[str, Any] = {"color": colors.soft, "linespacing": 1.3}
    made.text(_LEFT / width, y, "\n".join(subtitles), size=_SUBTITLE, **left, **soft)
    made.text(
        _LEFT / width, 0.05 / tall, "\n".join(lines), size=_NOTE, ha="left", va="bottom", **soft
    )
    if legend:
        place: dict[str, Any] = {
            "loc": "lower left",
            "bbox_to_anchor": (_LEFT / width, below / tall),
        }
        looks: dict[str, Any] = {
            "fontsize": 8,
            "labelcolor": colors.soft,
            "handlelength": 1.2,
            "columnspacing": 1.4,
        }
        key = made.legend(
            handles=legend, ncols=len(legend), borderaxespad=0, borderpad=0.2, **place, **looks
        )
        key.set_in_layout(False)
    return made


def column_height(labels: Sequence[Label]) -> float:
    """Inches that a plot must have for `labels` beside it."""
    return (len(labels) + 2) * _PITCH / 72


def label_column(axes: Axes, labels: Sequence[Label], ink: str) -> None:
    """Writes `labels` to the right of a plot whose limits are final, with leader lines."""
    figure = axes.get_figure(root=True)
    assert figure is not None
    figure.draw_without_rendering()  # which makes the layout, and so the height known
    tall = axes.get_window_extent().height * 72 / figure.dpi
    heights = axes.get_yaxis_transform().transform([(1, label.y) for label in labels])[:, 1]
    wanted = axes.transAxes.inverted().transform([(0, each) for each in heights])[:, 1]
    beside = axes.transAxes + ScaledTranslation(_GUTTER / 72, 0, figure.dpi_scale_trans)
    places = spread([float(each) for each in wanted], _PITCH / tall)
    for label, place in zip(labels, places, strict=True):
        looks: dict[str, Any] = {"color": ink, "weight": "bold" if label.bold else "normal"}
        leader = {"arrowstyle": "-", "color": label.color, "linewidth": 0.8}
        leader |= {"shrinkB": 0, "shrinkA": 0, "relpos": (0, 0.5)}
        ends: dict[str, Any] = {"xycoords": axes.get_yaxis_transform(), "textcoords": beside}
        looks |= {"va": "center", "size": 8.5, "arrowprops": leader, **ends}
        axes.annotate(label.text, (1, label.y), (1, place), **looks)


def spread(wanted: Sequence[float], gap: float) -> list[float]:
    """Positions up to 1, at least `gap` apart and in the order of `wanted`."""
    places, order = list(wanted), sorted(range(len(wanted)), key=lambda i: wanted[i])
    for below, above in pairwise(order):
        places[above] = max(places[above], places[below] + gap)
    top = 1.0
    for i in reversed(order):
        places[i] = min(places[i], top)
        top = places[i] - gap
    return places


def _wrapped(lines: Sequence[str], inches: float, size: float) -> list[str]:
    wide = int((inches - 2 * _LEFT) * 72 / size / (0.62 if size == _TITLE else 0.53))
    return [part for line in lines for part in textwrap.wrap(line, wide)]
