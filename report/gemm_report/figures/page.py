"""What every figure shares: its title, its notes, and labels beside a plot.

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

from gemm_report.figures.palette import INK, PALE, REST
from gemm_report.notes import conditions, missing_rows
from gemm_report.record import Part, Record

WIDTH = 8.4  # inches
_SIZE, _TITLE_SIZE, _LINE = 9.0, 14.0, 0.18  # points, points, inches of a line of notes
_PITCH, _GUTTER = 13.0, 24.0  # points between labels, and from the plot to them
_LONGEST = 64  # characters of a label


@dataclass(frozen=True)
class Label:
    """Names what lies at the height y, in data."""

    text: str
    y: float
    color: str = REST
    bold: bool = False


def new_figure(
    record: Record,
    subject: str,
    notes: Sequence[str],
    height: float,
    width: float = WIDTH,
    part: Part | None = Part.LADDER,
) -> Figure:
    """With the device in its title, and below plots of `height` inches the notes and conditions."""
    title = f"{record.device.name}: {subject}{'' if record.complete else ' (incomplete run)'}"
    missing = part and missing_rows(record, part)
    said = [*notes, *([f"Not shown: {missing} (the record has the reasons)."] if missing else [])]
    lines = _wrapped([*said, *conditions(record)], width, _SIZE)
    titles = _wrapped([title], width, 1.15 * _TITLE_SIZE)
    tall = height + 0.3 * len(titles) + _LINE * len(lines) + 0.2
    figure = Figure((width, tall), layout=ConstrainedLayoutEngine(w_pad=0.12, h_pad=0.06))
    looks: dict[str, Any] = {"x": 0.01, "ha": "left"}
    figure.suptitle("\n".join(titles), size=_TITLE_SIZE, weight="bold", **looks)
    figure.supxlabel("\n".join(lines), size=_SIZE, color=PALE, **looks)
    return figure


def legend_above(axes: Axes, handles: Sequence[Artist], columns: int = 2, lines: float = 0) -> None:
    """Of `axes`, so many lines of text above them."""
    place: dict[str, Any] = {"loc": "lower left", "bbox_to_anchor": (0, 1)}
    axes.legend(handles=handles, ncols=columns, borderaxespad=0.5 + 1.6 * lines, **place)


def column_height(labels: Sequence[Label]) -> float:
    """Inches that a plot must have for `labels` beside it."""
    return (len(labels) + 2) * _PITCH / 72


def label_column(axes: Axes, labels: Sequence[Label]) -> None:
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
        looks: dict[str, Any] = {"color": INK, "weight": "bold" if label.bold else "normal"}
        leader = {"arrowstyle": "-", "color": label.color, "linewidth": 0.8}
        leader |= {"shrinkB": 0, "shrinkA": 0, "relpos": (0, 0.5)}
        ends: dict[str, Any] = {"xycoords": axes.get_yaxis_transform(), "textcoords": beside}
        looks |= {"va": "center", "size": _SIZE, "arrowprops": leader, **ends}
        text = label.text if len(label.text) <= _LONGEST else _cut(label.text)
        axes.annotate(text, (1, label.y), (1, place), **looks)


def _cut(text: str) -> str:
    """Without its middle."""
    return f"{text[: _LONGEST // 2]}…{text[-_LONGEST // 2 + 1 :]}"


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
    return [part for line in lines for part in textwrap.wrap(line, int(inches * 72 / size / 0.55))]
