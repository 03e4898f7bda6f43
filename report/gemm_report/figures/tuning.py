"""What the parameter grid of a tunable kernel is worth: the best of it, and a map of its rates."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from matplotlib.figure import Figure

from gemm_report.document import RecordError
from gemm_report.figures.heat_map import Cell, HeatMap, draw_map
from gemm_report.figures.page import WIDTH, sheet
from gemm_report.figures.palette import LIGHT, Colors
from gemm_report.grouping import grouped
from gemm_report.notes import mark, notes
from gemm_report.record import Part, Record, Row, rate
from gemm_report.rows import best_of, drawn_rows, facts, natural
from gemm_report.text import (
    columns,
    operations,
    precision_name,
    prefix_for,
    scaled,
    significant,
    times,
)


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
        return self.over(rate(self.default) if self.default else None)


def sweeps(record: Record) -> list[Sweep]:
    """One for each kernel, precision and problem."""

    def problem(row: Row) -> tuple[object, ...]:
        return row.precision, row.kernel, row.layout, row.m, row.n, row.k

    defaults = {problem(row): row for row in drawn_rows(record)}
    rows = grouped(drawn_rows(record, Part.TUNING), problem)
    return [
        Sweep(tuple(sorted(its_rows, key=rate, reverse=True)), defaults.get(its_problem))
        for its_problem, its_rows in rows.items()
    ]


def report(record: Record) -> str:
    """The best variant of each sweep, and how much it is better, as lines of text."""
    found = sweeps(record)
    if not found:
        raise RecordError(
            f"{record.path}: has no timed row of a parameter grid: "
            "give a record of gemm_bench --gemm_variants=all"
        )
    prefix = prefix_for(rate(sweep.best) for sweep in found)
    head = ("kernel", "precision", "size", "best", "variants", f"{prefix}FLOP/s")
    lines = [(*head, "of default", "of median", "of worst")]
    for sweep in found:
        best, rates = sweep.best, [*map(rate, sweep.rows)]
        speed = str(len(rates)), significant(scaled(rates[0], prefix)), sweep.over_default
        what = best.kernel, best.precision, best.size, best.settings
        lines.append((*what, *speed, sweep.over(median(rates)), sweep.over(rates[-1])))
    return columns(lines, left=4)


def table(record: Record) -> list[dict[str, object]]:
    """The plotted data: every variant."""
    return [
        facts(row, "kernel", "precision", "size", parameters=row.settings)
        | {"flop_per_second": rate(row), "of_best": rate(row) / rate(sweep.best)}
        for sweep in sweeps(record)
        for row in sweep.rows
    ]


def has_grid(record: Record) -> bool:
    """Whether there is something to compare."""
    return any(len(sweep.rows) > 1 for sweep in sweeps(record))


def draw(record: Record, colors: Colors = LIGHT) -> Figure:
    """Throughput over the two parameters that matter most, for each kernel and problem."""
    found = [sweep for sweep in sweeps(record) if len(sweep.rows) > 1]
    prefix = prefix_for(rate(sweep.best) for sweep in found)
    maps = []
    for sweep in found:
        of = sweep.best.kernel, sweep.best.precision
        kin = [r for other in found for r in other.rows if (r.kernel, r.precision) == of]
        maps.append(_heat_map(sweep, leading_parameters(kin), kin, prefix))
    remarks = [
        *notes([sweep.best for sweep in found]),
        "Each cell has the best rate over the parameters that are not on its axes; these are the "
        "two that the best rate depends on most. The frame is around the best of all. White: not "
        "timed.",
    ]
    wide, tall = zip(*(each.size for each in maps), strict=True)
    size = sum(tall), max(WIDTH, *wide)
    figure = sheet(record, colors, "Parameter grids", record.device.name, remarks, *size)
    plots = figure.subplots(len(maps), squeeze=False, height_ratios=tall)[:, 0]
    for axes, each in zip(plots, maps, strict=True):
        draw_map(axes, each)
    return figure


def leading_parameters(rows: Sequence[Row]) -> tuple[str, str]:
    """The two on whose values the best rate depends most, in the order of the label.

    Of each parameter: how far the best rates of its values are apart, over the problems. An empty
    name stands for a second parameter where there is only one.
    """
    problems = {(row.m, row.n, row.k) for row in rows}

    def influence(parameter: str) -> float:
        total = 0.0
        for problem in problems:
            its = [row for row in rows if (row.m, row.n, row.k) == problem]
            best = [*map(rate, best_of(its, lambda row: row.parameters.get(parameter, ""), rate))]
            total += math.log(max(best) / min(best))
        return total

    names = list(dict.fromkeys(name for row in rows for name in row.parameters))
    leading = sorted(names, key=influence, reverse=True)[:2]
    first, *rest = sorted(leading, key=names.index) or [""]
    return first, rest[0] if rest else ""


def _heat_map(
    sweep: Sweep, parameters: tuple[str, str], kin: Sequence[Row], prefix: str
) -> HeatMap:
    """`kin` are the rows of all problems, so that their maps have the same values."""
    y, x = parameters
    best = rate(sweep.best)
    rates: dict[tuple[object, object], float] = {}
    for row in sweep.rows:  # the fastest first
        rates.setdefault((row.parameters.get(y, ""), row.parameters.get(x, "")), rate(row))
    # Not to the ends of the colours, so that the slowest is no white and the fastest no black.
    low = min(rates.values()) / best - 0.01
    cells = {
        place: Cell(
            (value / best - low) / (1.05 - low), [significant(scaled(value, prefix))], value == best
        )
        for place, value in rates.items()
    }

    def values(name: str) -> list[str]:
        return sorted({row.parameters.get(name, "") for row in kin}, key=natural)

    row = sweep.best
    unit = f"{prefix}{operations(row.precision)}"
    default = f", {sweep.over_default} of the default" if sweep.default else ""
    return HeatMap(
        f"{row.kernel}, {precision_name(row.precision)}, {row.size}",
        f"{row.settings}: {significant(scaled(best, prefix))} {unit}{mark(row)}{default}",
        (x, values(x)),
        (y, values(y)),
        cells,
    )
