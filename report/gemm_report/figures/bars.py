"""Horizontal bars, their names on the left and columns of numbers on the right."""

from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes

from gemm_report.figures.page import LABEL_SIZE, POINTS, WIDTH, Page, size_in_points, text_width
from gemm_report.figures.palette import INK
from gemm_report.record import Part, Record

_GAP = 10.0  # points between two columns
_NARROWEST, _BELOW = 2.4, 0.5  # inches


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
    legend: Sequence[object] = (),
    part: Part = Part.LADDER,
) -> tuple[Page, list[Axes]]:
    """A page with a plot a panel; bars stand at 0, 1, ... from the top, `pitch` inches apart."""
    left = max(text_width(line.name, bold=line.bold) for each in panels for line in each)
    left = (left + 8) / POINTS
    right = max(sum(_GAP + width for width in _widths(head, each)) for each in panels) / POINTS
    width = max(_NARROWEST, WIDTH - left - right)
    heights = [pitch * len(lines) for lines in panels]
    page = Page(
        record,
        subject,
        notes,
        height=sum(heights) + len(panels) * (above + _BELOW),
        width=left + width + right,
        legend=legend,
        part=part,
    )
    plots, top = [], 0.0
    for lines, height in zip(panels, heights, strict=True):
        axes = page.axes(left, top + above, width, height)
        axes.grid(axis="y", visible=False)
        axes.spines["left"].set_visible(False)
        _write_lines(axes, head, lines)
        plots.append(axes)
        top += above + height + _BELOW
    return page, plots


def _write_lines(axes: Axes, head: Sequence[str], lines: Sequence[Line]) -> None:
    axes.set_ylim(len(lines) - 0.5, -0.5)
    axes.set_yticks([])
    width, tall = size_in_points(axes)
    levels = [1 - (i + 0.5) / len(lines) for i in range(len(lines))]
    for line, y in zip(lines, levels, strict=True):
        _write(axes, -6 / width, y, line.name, line.bold)
    right = 1.0
    for column, its_width in enumerate(_widths(head, lines)):
        right += (_GAP + its_width) / width
        _write(axes, right, 1 + 7.5 / tall, head[column], True)
        for line, y in zip(lines, levels, strict=True):
            _write(axes, right, y, line.cells[column], line.bold)


def _widths(head: Sequence[str], lines: Sequence[Line]) -> list[float]:
    def width(column: int) -> float:
        cells = (text_width(line.cells[column], bold=line.bold) for line in lines)
        return max(text_width(head[column], bold=True), *cells)

    return [width(column) for column in range(len(head))]


def _write(axes: Axes, x: float, y: float, text: str, bold: bool) -> None:
    looks = {"ha": "right", "va": "center_baseline", "size": LABEL_SIZE, "color": INK}
    looks["weight"] = "bold" if bold else "normal"
    axes.text(x, y, text, transform=axes.transAxes, **looks)
