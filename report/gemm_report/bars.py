"""Horizontal bars, their names on the left and columns of figures on the right: a table to see."""

from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes

from gemm_report.page import INK, LABEL_SIZE, POINTS, size_in_points, text_width

PITCH = 0.2  # inches from bar to bar
_GAP = 10.0  # points between two columns


@dataclass(frozen=True)
class Line:
    """What stands beside one bar; an empty name keeps a line free."""

    name: str
    cells: Sequence[str] = ()
    bold: bool = False


def names_width(lines: Sequence[Line]) -> float:
    """Inches that the names need on the left."""
    widths = [text_width(line.name, LABEL_SIZE, _weight(line)) for line in lines]
    return (max(widths, default=0) + 8) / POINTS


def cells_width(head: Sequence[str], lines: Sequence[Line]) -> float:
    """Inches that the columns need on the right."""
    return sum(_GAP + width for width in _widths(head, lines)) / POINTS


def height(lines: Sequence[Line]) -> float:
    """Inches that a plot must have for its bars."""
    return PITCH * max(len(lines), 1)


def write_lines(axes: Axes, head: Sequence[str], lines: Sequence[Line]) -> None:
    """Names and columns of bars at 0, 1, ... from the top; the limits must be final."""
    axes.set_ylim(len(lines) - 0.5, -0.5)
    axes.set_yticks([])
    width, _ = size_in_points(axes)
    for y, line in enumerate(lines):
        _write(axes, -6 / width, y, line.name, "right", _weight(line))
    right = 1.0
    for column, its_width in enumerate(_widths(head, lines)):
        right += (_GAP + its_width) / width
        _write(axes, right, -1, head[column], "right", "bold")
        for y, line in enumerate(lines):
            if line.cells:
                _write(axes, right, y, line.cells[column], "right", _weight(line))


def _widths(head: Sequence[str], lines: Sequence[Line]) -> list[float]:
    return [
        max(
            text_width(head[column], LABEL_SIZE, "bold"),
            *(text_width(each.cells[column], LABEL_SIZE, _weight(each)) for each in full),
        )
        if (full := [line for line in lines if line.cells])
        else text_width(head[column], LABEL_SIZE, "bold")
        for column in range(len(head))
    ]


def _write(axes: Axes, x: float, y: float, text: str, side: str, weight: str) -> None:
    if not text:
        return
    axes.text(
        x,
        y,
        text,
        transform=axes.get_yaxis_transform(),
        ha=side,
        va="center_baseline",
        size=LABEL_SIZE,
        color=INK,
        weight=weight,
    )


def _weight(line: Line) -> str:
    return "bold" if line.bold else "normal"
