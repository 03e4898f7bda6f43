"""Maps in shades of blue, each cell with a text."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

from gemm_report.figures.palette import LIGHT

_SIZE = 9.0
_CHARACTER, _LINE = 0.085, 0.17  # inches of a character and of a line in a cell
_AROUND = 1.0, 1.3  # inches of titles and ticks
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
        """Inches that the map needs with its titles."""
        texts = [line for cell in self.cells.values() for line in cell.lines]
        lines = max(len(cell.lines) for cell in self.cells.values())
        cell = _CHARACTER * max(map(len, texts)) + 0.1, 0.12 + _LINE * lines
        titles = _CHARACTER * max(1.15 * len(self.title), len(self.subtitle))
        width = max(cell[0] * len(self.x[1]), titles)
        return width + _AROUND[0], cell[1] * len(self.y[1]) + _AROUND[1]


def draw_map(axes: Axes, each: HeatMap) -> None:
    """With its texts."""
    (x, xs), (y, ys) = each.x, each.y
    shades = [
        [each.cells[v, h].shade if (v, h) in each.cells else math.nan for h in xs] for v in ys
    ]
    axes.imshow(shades, cmap="Blues", vmin=0, vmax=1.05, aspect="auto", zorder=1)
    axes.set(xlabel=x, ylabel=y)
    axes.set_xticks(range(len(xs)), [*map(str, xs)])
    axes.set_yticks(range(len(ys)), [*map(str, ys)])
    axes.tick_params(length=0)
    axes.grid(visible=False)
    axes.spines[:].set_visible(False)
    axes.set_title(each.title, pad=20)
    looks: dict[str, Any] = {"size": _SIZE, "color": LIGHT.ink}
    axes.annotate(each.subtitle, (0, 1), (0, 7), "axes fraction", "offset points", **looks)
    for (v, h), cell in each.cells.items():
        i, j = xs.index(h), ys.index(v)
        looks["color"] = "white" if cell.shade > _DARK else LIGHT.ink
        looks["weight"] = "bold" if cell.framed else "normal"
        axes.text(i, j, "\n".join(cell.lines), ha="center", va="center", **looks)
        if cell.framed:
            edge: dict[str, Any] = {"fill": False, "edgecolor": LIGHT.worse, "linewidth": 2}
            axes.add_patch(Rectangle((i - 0.5, j - 0.5), 1, 1, clip_on=False, zorder=3, **edge))
