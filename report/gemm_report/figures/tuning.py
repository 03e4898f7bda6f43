"""What the parameter grid of a tunable kernel is worth: the best of it, and a map of its rates."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from statistics import median

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from gemm_report.document import RecordError
from gemm_report.figures.heat_map import heat_map
from gemm_report.figures.marks import mark, notes
from gemm_report.figures.page import INK, LABEL_SIZE, POINTS, Page, text_width, write_above
from gemm_report.figures.palette import Look
from gemm_report.ladder.rows import drawn_rows, natural
from gemm_report.ladder.rungs import rate
from gemm_report.record import Part, Record, Row
from gemm_report.writing.quantity import prefix_for, scaled, significant, times
from gemm_report.writing.tables import columns

_CELL_WIDTH, _CELL_HEIGHT = 0.62, 0.3
_LEFT = 0.85  # for the ticks and the name of the y axis
_ABOVE = 0.62  # for the title and what is best
_BELOW = 0.62
_BETWEEN = 0.3


@dataclass(frozen=True)
class Sweep:
    """The variants of a kernel on one problem, the fastest first, and what it does untold."""

    rows: tuple[Row, ...]
    default: Row | None

    @property
    def best(self) -> Row:
        """The winner."""
        return self.rows[0]

    def over(self, other: float | None) -> str:
        """How many times as fast as `other` the winner is."""
        return times(rate(self.best) / other) if other else "-"

    @property
    def over_default(self) -> str:
        """How much the grid was worth."""
        return self.over(self.default and rate(self.default))


def sweeps(record: Record) -> list[Sweep]:
    """One for each kernel, precision and problem; RecordError where there is none."""

    def problem(row: Row) -> tuple[object, ...]:
        return row.precision, row.kernel, row.layout, row.m, row.n, row.k

    defaults = {problem(row): row for row in drawn_rows(record)}
    rows: dict[tuple[object, ...], list[Row]] = {}
    for row in drawn_rows(record, Part.TUNING):
        rows.setdefault(problem(row), []).append(row)
    if not rows:
        raise RecordError(
            f"{record.path}: has no timed row of a parameter grid: "
            "give a record of gemm_bench --gemm_variants=all"
        )
    return [
        Sweep(tuple(sorted(its_rows, key=rate, reverse=True)), defaults.get(its_problem))
        for its_problem, its_rows in rows.items()
    ]


def report(record: Record) -> str:
    """The best variant of each sweep, and how much it is better, as lines of text."""
    found = sweeps(record)
    prefix = prefix_for(rate(sweep.best) for sweep in found)
    head = ("kernel", "precision", "size", "best", "variants", f"{prefix}FLOP/s")
    lines = [(*head, "of default", "of median", "of worst")]
    lines += [
        (
            sweep.best.kernel,
            sweep.best.precision,
            sweep.best.size,
            sweep.best.settings,
            str(len(sweep.rows)),
            significant(scaled(rate(sweep.best), prefix)),
            sweep.over_default,
            sweep.over(median(rate(row) for row in sweep.rows)),
            sweep.over(rate(sweep.rows[-1])),
        )
        for sweep in found
    ]
    return columns(lines, left=4)


def table(record: Record) -> list[dict[str, object]]:
    """The plotted data: every variant."""
    return [
        {
            "kernel": row.kernel,
            "precision": row.precision,
            "size": row.size,
            "parameters": row.settings,
            "flop_per_second": rate(row),
            "of_best": rate(row) / rate(sweep.best),
        }
        for sweep in sweeps(record)
        for row in sweep.rows
    ]


def draw(record: Record, looks: Mapping[str, Look]) -> Figure:
    """A map of the rates for each kernel and problem, over the two parameters that matter most."""
    found = sweeps(record)
    lines = [
        list(group) for _, group in groupby(found, key=lambda s: (s.best.precision, s.best.kernel))
    ]
    prefix = prefix_for(rate(sweep.best) for sweep in found)
    axes_of = [leading_parameters([row for sweep in line for row in sweep.rows]) for line in lines]
    heights = [
        len(_values(line, y)) * _CELL_HEIGHT for line, (y, _) in zip(lines, axes_of, strict=True)
    ]
    widths = [
        max(
            _panel_width(line[column], _values(line, x), prefix)
            for line, (_, x) in zip(lines, axes_of, strict=True)
            if column < len(line)
        )
        for column in range(max(map(len, lines)))
    ]
    page = Page(
        record,
        "GEMM tuning",
        _notes(found),
        width=_LEFT + sum(widths) + (len(widths) - 1) * (_BETWEEN + _LEFT),
        height=sum(heights) + len(heights) * (_ABOVE + _BELOW),
        part=Part.TUNING,
    )
    top = _ABOVE
    for line, (y, x), height in zip(lines, axes_of, heights, strict=True):
        for column, sweep in enumerate(line):
            left = _LEFT + sum(widths[:column]) + column * (_BETWEEN + _LEFT)
            ys, xs = _values(line, y), _values(line, x)
            axes = page.axes(left, top, len(xs) * _CELL_WIDTH, height)
            _draw_map(axes, sweep, (y, ys), (x, xs), prefix)
        top += height + _ABOVE + _BELOW
    return page.figure


def leading_parameters(rows: Sequence[Row]) -> tuple[str, str]:
    """The two on whose values the best rate depends most, in the order of the label.

    Of each parameter: how far the best rates of its values are apart, over the problems. An empty
    name stands for a second parameter where there is only one.
    """
    problems = {(row.m, row.n, row.k) for row in rows}

    def influence(parameter: str) -> float:
        total = 0.0
        for problem in problems:
            best: dict[str, float] = {}
            for row in rows:
                if (row.m, row.n, row.k) == problem:
                    value = row.parameters.get(parameter, "")
                    best[value] = max(best.get(value, 0), rate(row))
            total += math.log(max(best.values()) / min(best.values()))
        return total

    names = list(dict.fromkeys(name for row in rows for name in row.parameters))
    leading = sorted(names, key=influence, reverse=True)[:2]
    first, *rest = sorted(leading, key=names.index) or [""]
    return first, rest[0] if rest else ""


def _values(sweeps: Sequence[Sweep], parameter: str) -> list[str]:
    """Of a parameter, in all panels of a line."""
    values = {_value(row, parameter) for sweep in sweeps for row in sweep.rows}
    return sorted(values, key=natural)


def _value(row: Row, parameter: str) -> str:
    return row.parameters.get(parameter, "")


def _title(sweep: Sweep) -> str:
    return f"{sweep.best.kernel}, {sweep.best.precision}, {sweep.best.size}"


def _subtitle(sweep: Sweep, prefix: str) -> str:
    best = f"{significant(scaled(rate(sweep.best), prefix))} {prefix}FLOP/s{mark(sweep.best)}"
    default = f", {sweep.over_default} of the default" if sweep.default else ""
    return f"{sweep.best.settings}: {best}{default}"


def _panel_width(sweep: Sweep, values: Sequence[str], prefix: str) -> float:
    texts = text_width(_title(sweep), 10, "bold"), text_width(_subtitle(sweep, prefix))
    return max(len(values) * _CELL_WIDTH, *(width / POINTS for width in texts))


def _draw_map(
    axes: Axes,
    sweep: Sweep,
    vertical: tuple[str, list[str]],
    horizontal: tuple[str, list[str]],
    prefix: str,
) -> None:
    (y, ys), (x, xs) = vertical, horizontal
    cells: dict[tuple[int, int], float] = {}
    for row in sweep.rows:
        cell = ys.index(_value(row, y)), xs.index(_value(row, x))
        cells[cell] = max(cells.get(cell, 0), rate(row))
    best = rate(sweep.best)
    shades = [[cells.get((i, j), math.nan) / best for j in range(len(xs))] for i in range(len(ys))]
    # Not to the ends of the colours, so that the slowest is no white and the fastest no black.
    low, high = min(cells.values()) / best - 0.01, 1.05
    heat_map(axes, shades, (low, high), (x, xs), (y, ys))
    for (i, j), value in cells.items():
        is_best, is_dark = value == best, (value / best - low) / (high - low) > 0.55
        color = "white" if is_dark else INK
        weight = "bold" if is_best else "normal"
        text = significant(scaled(value, prefix))
        middle = {"ha": "center", "va": "center_baseline"}
        axes.text(j, i, text, size=LABEL_SIZE, color=color, weight=weight, **middle)
        if is_best:
            edge = {"fill": False, "edgecolor": "#D55E00", "linewidth": 2, "clip_on": False}
            axes.add_patch(Rectangle((j - 0.5, i - 0.5), 1, 1, zorder=3, **edge))
    axes.set_title(_title(sweep), pad=20)
    write_above(axes, _subtitle(sweep, prefix), 7)


def _notes(found: Sequence[Sweep]) -> list[str]:
    best = [sweep.best for sweep in found]
    return [
        *notes(best),
        "Each cell has the best rate over the parameters that are not on its axes, which are the "
        "two that the best rate depends on most; the frame is around the best of all. White: no "
        "time.",
    ]
