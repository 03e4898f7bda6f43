"""Horizontal bars, their names on the left and columns of figures on the right: a table to see."""

from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes

from gemm_report.figures.page import INK, LABEL_SIZE, POINTS, size_in_points, text_width

_GAP = 10.0  # points between two columns


@dataclass(frozen=True)
class Line:
    """What stands beside one bar."""

    name: str
    cells: Sequence[str]
    bold: bool = False

    @property
    def weight(self) -> str:
        """Of its letters."""
        return "bold" if self.bold else "normal"


def names_width(lines: Sequence[Line]) -> float:
    """Inches that the names need on the left."""
    widths = [text_width(line.name, LABEL_SIZE, line.weight) for line in lines]
    return (max(widths, default=0) + 8) / POINTS


def cells_width(head: Sequence[str], lines: Sequence[Line]) -> float:
    """Inches that the columns need on the right."""
    return sum(_GAP + width for width in _widths(head, lines)) / POINTS


def height(lines: Sequence[Line], pitch: float = 0.2) -> float:
    """Inches that a plot must have for its bars, which are `pitch` apart."""
    return pitch * len(lines)


def write_lines(axes: Axes, head: Sequence[str], lines: Sequence[Line]) -> None:
    """Names and columns of the bars, which stand at 0, 1, ... from the top."""
    axes.set_ylim(len(lines) - 0.5, -0.5)
    axes.set_yticks([])
    width, tall = size_in_points(axes)
    levels = [1 - (i + 0.5) / len(lines) for i in range(len(lines))]
    for line, y in zip(lines, levels, strict=True):
        _write(axes, -6 / width, y, line.name, line.weight)
    right = 1.0
    for column, its_width in enumerate(_widths(head, lines)):
        right += (_GAP + its_width) / width
        _write(axes, right, 1 + 7.5 / tall, head[column], "bold")
        for line, y in zip(lines, levels, strict=True):
            _write(axes, right, y, line.cells[column], line.weight)


def _widths(head: Sequence[str], lines: Sequence[Line]) -> list[float]:
    def texts(column: int) -> list[tuple[str, str]]:
        return [(head[column], "bold"), *((line.cells[column], line.weight) for line in lines)]

    return [
        max(text_width(text, LABEL_SIZE, weight) for text, weight in texts(column))
        for column in range(len(head))
    ]


def _write(axes: Axes, x: float, y: float, text: str, weight: str) -> None:
    axes.text(
        x,
        y,
        text,
        transform=axes.transAxes,
        ha="right",
        va="center_baseline",
        size=LABEL_SIZE,
        color=INK,
        weight=weight,
    )
