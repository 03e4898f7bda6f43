"""Horizontal bars, their names on the left and columns of numbers on the right."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from gemm_report.figures.page import WIDTH, new_figure
from gemm_report.figures.palette import INK
from gemm_report.record import Part, Record

_SIZE, _CHARACTER, _GAP = 9.0, 5.9, 12.0  # points of a text, of one of its characters, and between
_NARROWEST = 2.6  # inches of a plot


@dataclass(frozen=True)
class Line:
    """What stands next to one bar."""

    name: str
    cells: Sequence[str]
    bold: bool = False


def bars(
    record: Record,
    subject: str,
    notes: Sequence[str],
    head: Sequence[str],
    panels: Sequence[Sequence[Line]],
    *,
    pitch: float = 0.2,
    above: float = 0.5,
    part: Part | None = Part.LADDER,
) -> tuple[Figure, list[Axes]]:
    """A plot a panel; bars stand at 0, 1, ... from the top, about `pitch` inches apart.

    `above` are inches for what a figure adds over its plots.
    """
    tall = sum(pitch * len(lines) + above + 0.5 for lines in panels)
    longest = max(len(line.name) for lines in panels for line in lines)
    beside = _CHARACTER * longest + max(_places(head, lines)[-1] for lines in panels)
    wide = max(WIDTH, _NARROWEST + beside / 72)
    figure = new_figure(record, subject, notes, tall, wide, part=part)
    ratios = [len(lines) for lines in panels]
    plots = figure.subplots(len(panels), squeeze=False, height_ratios=ratios)[:, 0]
    for axes, lines in zip(plots, panels, strict=True):
        axes.grid(axis="y", visible=False)
        axes.spines["left"].set_visible(False)
        axes.set_ylim(len(lines) - 0.5, -0.5)
        axes.set_yticks(range(len(lines)), [line.name for line in lines], size=_SIZE, color=INK)
        axes.tick_params(axis="y", length=0)
        for line, name in zip(lines, axes.get_yticklabels(), strict=True):
            name.set_weight("bold" if line.bold else "normal")
        _write_columns(axes, head, lines)
    return figure, list(plots)


def _write_columns(axes: Axes, head: Sequence[str], lines: Sequence[Line]) -> None:
    at: dict[str, Any] = {"xycoords": axes.get_yaxis_transform(), "textcoords": "offset points"}
    looks: dict[str, Any] = {"ha": "right", "size": _SIZE, "color": INK, "annotation_clip": False}
    for column, (title, right) in enumerate(zip(head, _places(head, lines), strict=True)):
        axes.annotate(title, (1, -0.5), (right, 7), va="bottom", weight="bold", **at, **looks)
        for y, line in enumerate(lines):
            weight = "bold" if line.bold else "normal"
            said = line.cells[column]
            axes.annotate(said, (1, y), (right, 0), va="center", weight=weight, **at, **looks)


def _places(head: Sequence[str], lines: Sequence[Line]) -> list[float]:
    """Where each column ends, in points from the plot."""
    columns = zip(head, *(line.cells for line in lines), strict=True)
    return list(accumulate(_GAP + _CHARACTER * max(map(len, column)) for column in columns))
