"""A page of panels in one or two columns, each with its labels beside it."""

from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from gemm_report.figures.page import (
    LEGEND_PITCH,
    POINTS,
    Label,
    Page,
    column_height,
    column_width,
    legend_lines,
)
from gemm_report.record import Record

NO_TIME = "No row of this record has a time."
_BETWEEN = 0.25
_ROOM_WITHOUT_LABELS = 1.0


@dataclass(frozen=True)
class Plot:
    """Inches of a plot, which is higher where its labels need it, and of what is around it."""

    width: float
    height: float
    left: float
    above: float
    below: float


def panels(
    record: Record,
    subject: str,
    notes: Sequence[str],
    labels: Sequence[Sequence[Label]],
    plot: Plot,
    legend: Sequence[Line2D] = (),
) -> tuple[Page, list[Axes]]:
    """A plot for each group of labels; without any group, a page that says why it is empty."""
    columns = 1 if len(labels) < 2 else 2
    widths = [
        plot.left
        + plot.width
        + max((column_width(each) for each in labels[c::columns]), default=_ROOM_WITHOUT_LABELS)
        for c in range(columns)
    ]
    heights = [
        max(plot.height, *(column_height(each) for each in labels[first : first + columns]))
        for first in range(0, len(labels), columns)
    ] or [plot.height]
    width = sum(widths) + _BETWEEN * (columns - 1)
    top = len(legend_lines(legend, width * POINTS)) * LEGEND_PITCH / POINTS
    page = Page(
        record,
        subject,
        notes,
        width=width,
        height=top + sum(heights) + len(heights) * (plot.above + plot.below),
    )
    page.legend(0, legend)
    found = []
    for i in range(len(labels)):
        line, column = divmod(i, columns)
        left = plot.left + column * (widths[0] + _BETWEEN)
        down = top + plot.above + sum(heights[:line]) + line * (plot.above + plot.below)
        found.append(page.axes(left, down, plot.width, heights[line]))
    if not found:
        axes = page.axes(plot.left, top + plot.above, plot.width, plot.height)
        axes.set_axis_off()
        axes.text(0, 0.5, NO_TIME, transform=axes.transAxes)
    return page, found
