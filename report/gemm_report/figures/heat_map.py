"""A page of maps in shades of blue, one below the other or side by side, each cell with a text."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from gemm_report.figures.page import LABEL_SIZE, POINTS, WIDTH, Page, text_width, write_above
from gemm_report.figures.palette import INK, NAIVE
from gemm_report.record import Part, Record

_LINE = 0.17  # inches of a line in a cell
_LEFT, _ABOVE, _BELOW = 0.75, 0.62, 0.55
_DARK = 0.62  # of the shades, from which on letters are white


@dataclass(frozen=True)
class Cell:
    """How dark it is, from 0 to 1, and what is written in it."""

    shade: float
    lines: Sequence[str]
    framed: bool = False


@dataclass(frozen=True)
class HeatMap:
    """Cells by their place: first the value of y, then that of x."""

    title: str
    subtitle: str
    x: tuple[str, Sequence[object]]
    y: tuple[str, Sequence[object]]
    cells: Mapping[tuple[object, object], Cell]

    @property
    def size(self) -> tuple[float, float]:
        """Inches of the map."""
        texts = [line for cell in self.cells.values() for line in cell.lines]
        width = (max(map(text_width, texts)) + 6) / POINTS
        lines = max(len(cell.lines) for cell in self.cells.values())
        return width * len(self.x[1]), (0.12 + _LINE * lines) * len(self.y[1])

    @property
    def width(self) -> float:
        """With its titles."""
        titles = text_width(self.title, 10.5, bold=True), text_width(self.subtitle)
        return _LEFT + max(self.size[0], *(width / POINTS for width in titles))


def draw_maps(
    record: Record,
    subject: str,
    notes: Sequence[str],
    maps: Sequence[HeatMap],
    part: Part = Part.LADDER,
) -> Figure:
    """As many in a line as there is room for."""
    lines: list[list[HeatMap]] = []
    for each in maps:
        if not lines or sum(one.width for one in (*lines[-1], each)) > WIDTH:
            lines.append([])
        lines[-1].append(each)
    heights = [_ABOVE + max(each.size[1] for each in line) + _BELOW for line in lines]
    width = max([WIDTH, *(each.width for each in maps)])
    page = Page(record, subject, notes, sum(heights), width, part=part)
    for i, line in enumerate(lines):
        left = 0.0
        for each in line:
            axes = page.axes(left + _LEFT, sum(heights[:i]) + _ABOVE, *each.size)
            draw_map(axes, each)
            left += each.width
    return page.figure


def draw_map(axes: Axes, each: HeatMap) -> None:
    """Into axes of its size."""
    (x, xs), (y, ys) = each.x, each.y
    shades = [
        [each.cells[v, h].shade if (v, h) in each.cells else math.nan for h in xs] for v in ys
    ]
    axes.imshow(shades, cmap="Blues", vmin=0, vmax=1.05, aspect="auto", zorder=1)
    axes.set(xlabel=x, ylabel=y)
    axes.set_xticks(range(len(xs)), map(str, xs))
    axes.set_yticks(range(len(ys)), map(str, ys))
    axes.tick_params(length=0)
    axes.grid(visible=False)
    axes.spines[:].set_visible(False)
    axes.set_title(each.title, pad=20)
    write_above(axes, each.subtitle, 7)
    cell_height = each.size[1] / len(ys)
    for (v, h), cell in each.cells.items():
        at = xs.index(h), ys.index(v)
        looks = {"size": LABEL_SIZE, "color": "white" if cell.shade > _DARK else INK}
        looks |= {"weight": "bold" if cell.framed else "normal"}
        for i, line in enumerate(cell.lines):
            y = at[1] + (i - (len(cell.lines) - 1) / 2) * _LINE / cell_height
            axes.text(at[0], y, line, ha="center", va="center_baseline", **looks)
        if cell.framed:
            edge = {"fill": False, "edgecolor": NAIVE, "linewidth": 2, "clip_on": False}
            axes.add_patch(Rectangle((at[0] - 0.5, at[1] - 0.5), 1, 1, zorder=3, **edge))
