"""Which shapes suit: a map over m and n for each k, of the best kernel or of chosen ones."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from gemm_report.document import InputError
from gemm_report.figures.bars.distribution import expression
from gemm_report.figures.heat_map import heat_map
from gemm_report.figures.page import INK, LABEL_SIZE, POINTS, Page, text_width
from gemm_report.figures.palette import Look
from gemm_report.ladder.rows import drawn_rows, precisions
from gemm_report.ladder.rungs import rate
from gemm_report.record import Record, Row
from gemm_report.writing.quantity import percent, prefix_for, scaled, significant

_CELL_HEIGHT = 0.42
_LEFT = 0.75
_ABOVE = 0.4
_BELOW = 0.6
_SMALL = 6.0
# A map of fewer cells, or of one line, says nothing that a table would not.
_FEWEST_CELLS = 4


@dataclass(frozen=True)
class Map:
    """The fastest row of each (m, n) at one precision and k."""

    precision: str
    k: int
    who: str
    cells: Mapping[tuple[int, int], Row]

    @property
    def ms(self) -> list[int]:
        """Lines of the map."""
        return sorted({m for m, _ in self.cells})

    @property
    def ns(self) -> list[int]:
        """Columns of the map."""
        return sorted({n for _, n in self.cells})


def maps(record: Record, pattern: str | None = None) -> list[Map]:
    """Of our kernels, or of the rows whose names match; none where there are too few shapes.

    InputError where the pattern is none, or what matches has no map.
    """
    rows = drawn_rows(record)
    if pattern is None:
        rows, who = [row for row in rows if row.is_ours], "the fastest of our kernels"
    else:
        wanted, who = expression("--shapes", pattern), f"the fastest of {pattern}"
        rows = [row for row in rows if wanted.search(str(row.identity))]
    found = []
    for precision in precisions(rows):
        for k in sorted({row.k for row in rows if row.precision == precision}):
            cells: dict[tuple[int, int], Row] = {}
            for row in rows:
                if (row.precision, row.k) == (precision, k):
                    best = cells.get((row.m, row.n))
                    cells[row.m, row.n] = row if best is None else max(best, row, key=rate)
            candidate = Map(precision, k, who, cells)
            if min(len(candidate.ms), len(candidate.ns)) > 1 and len(cells) >= _FEWEST_CELLS:
                found.append(candidate)
    if pattern is not None and not found:
        raise InputError(
            f"--shapes={pattern}: what matches in {record.path} has no k with two m and two n: "
            "run gemm_bench --gemm_shapes with such shapes"
        )
    return found


def table(record: Record, pattern: str | None) -> list[dict[str, object]]:
    """The plotted data."""
    return [
        {
            "precision": each.precision,
            "m": m,
            "n": n,
            "k": each.k,
            "kernel": row.label,
            "flop_per_second": rate(row),
            "of_roof": row.of_roof_nominal,
        }
        for each in maps(record, pattern)
        for (m, n), row in sorted(each.cells.items())
    ]


def draw(record: Record, looks: Mapping[str, Look], pattern: str | None) -> Figure:
    """Shaded by the share of the roof over that shape, or by the rate where no roof is known."""
    found = maps(record, pattern)
    has_roofs = all(row.of_roof_nominal for each in found for row in each.cells.values())
    prefix = prefix_for(rate(row) for each in found for row in each.cells.values())
    widths = [_cell_width(each, prefix) for each in found]
    heights = [_CELL_HEIGHT * len(each.ms) for each in found]
    body = max(
        max(width * len(each.ns), text_width(_title(each), 10, "bold") / POINTS)
        for width, each in zip(widths, found, strict=True)
    )
    shade = "% of the roof over that shape" if has_roofs else "rate over the best one of its map"
    page = Page(
        record,
        "GEMM by shape",
        [
            f"Cells: {prefix}FLOP/s, {'percent of roof, ' if has_roofs else ''}and the kernel.",
            f"Darker: higher {shade}. White: not run.",
        ],
        width=_LEFT + body,
        height=sum(heights) + len(found) * (_ABOVE + _BELOW),
    )
    top = _ABOVE
    for each, width, tall in zip(found, widths, heights, strict=True):
        axes = page.axes(_LEFT, top, width * len(each.ns), tall)
        _draw_map(axes, each, prefix, has_roofs)
        top += tall + _ABOVE + _BELOW
    return page.figure


def _title(each: Map) -> str:
    return f"{each.precision}, k = {each.k}: {each.who}"


def _texts(row: Row, prefix: str) -> tuple[str, str]:
    value = significant(scaled(rate(row), prefix))
    share = "" if row.of_roof_nominal is None else f", {percent(row.of_roof_nominal)}"
    return value + share, row.label


def _cell_width(each: Map, prefix: str) -> float:
    texts = [_texts(row, prefix) for row in each.cells.values()]
    widths = [text_width(value) for value, _ in texts]
    widths += [text_width(name, _SMALL) for _, name in texts]
    return (max(widths) + 8) / POINTS


def _draw_map(axes: Axes, each: Map, prefix: str, has_roofs: bool) -> None:
    best = max(map(rate, each.cells.values()))

    def value(row: Row) -> float:
        return (row.of_roof_nominal or 0) if has_roofs else rate(row) / best

    shades = [
        [value(each.cells[m, n]) if (m, n) in each.cells else math.nan for n in each.ns]
        for m in each.ms
    ]
    high = max(map(value, each.cells.values())) * 1.1
    heat_map(axes, shades, (-0.05 * high, high), ("n", each.ns), ("m", each.ms))
    for (m, n), row in each.cells.items():
        color = "white" if value(row) / high > 0.6 else INK
        place = {"ha": "center", "va": "center_baseline", "color": color}
        x, y = each.ns.index(n), each.ms.index(m)
        number, name = _texts(row, prefix)
        axes.text(x, y - 0.18, number, size=LABEL_SIZE, **place)
        axes.text(x, y + 0.22, name, size=_SMALL, **place)
    axes.set_title(_title(each))
