"""Who wins at each size: the fastest of our kernels as one line, the fastest library as another."""

import re
import textwrap
from dataclasses import replace
from typing import Any

from matplotlib.figure import Figure

from gemm_report.figures.page import Sheet, sheet
from gemm_report.figures.palette import Colors
from gemm_report.record import Record, Row, rate
from gemm_report.standing import Pair, Standing, pair_facts, standings
from gemm_report.text import operations, precision_name, prefix_for, quantity, scaled

WIDTH, _HEIGHT = 4.9, 2.5
_CHARACTERS = 60  # of all names under the axis side by side


def pairs_of(each: Standing) -> list[Pair]:
    """The cubes, the smallest first; without a library that is on its slow path."""
    cubes = [pair for pair in each.pairs if pair.ours.is_cube]
    return [replace(pair, library=None) for pair in cubes] if each.slow_library else cubes


def _found(record: Record, precision: str) -> list[Pair]:
    return [p for each in standings(record) if each.precision == precision for p in pairs_of(each)]


def table(record: Record, precision: str) -> list[dict[str, object]]:
    """The plotted data."""
    return [*map(pair_facts, _found(record, precision))]


def draw(record: Record, colors: Colors, precision: str) -> Figure:
    """The fastest kernel at each size, the fastest library there, and the peak."""
    pairs = _found(record, precision)
    roof = next(iter(record.compute_roofs(precision)), None)
    peak = (roof.flop_per_second or 0) if roof else 0
    both = [row for pair in pairs for row in (pair.ours, pair.library) if row]
    prefix = prefix_for([peak, *map(rate, both)])
    unit = prefix + operations(precision)
    layout = pairs[0].ours.layout
    title = precision_name(precision)
    subtitle = f"{unit} of the fastest kernel at each size, layout {layout}, {record.device.name}"
    doubt = ["Hollow: in doubt."] if any(row.doubts for row in both) else []
    names = len(pairs) * max(3, max(len(pair.ours.kernel) for pair in pairs) // 12)
    made = sheet(record, colors, title, subtitle, doubt, _HEIGHT + 0.02 * names, WIDTH)
    axes = made.subplots()
    library = [row for pair in pairs for row in [pair.library] if row]
    top = scaled(max(peak, 1.05 * max(map(rate, both))), prefix)
    axes.set_ylim(0, top)
    xs = {pair.ours.size: x for x, pair in enumerate(pairs)}
    axes.set_xlim(-0.35, len(pairs) - 0.5)
    wide = max(6, _CHARACTERS // len(pairs))
    ticks = ["\n".join([pair.ours.size, *broken(pair.ours.kernel, wide)]) for pair in pairs]
    axes.set_xticks(range(len(pairs)), ticks, size=7.5)
    axes.grid(axis="x", visible=False)
    if peak:
        axes.axhline(scaled(peak, prefix), color=colors.soft, linewidth=1.6, clip_on=False)
    _line(made, library, xs, prefix, unit, colors.library, colors.paper)
    _line(made, [pair.ours for pair in pairs], xs, prefix, unit, colors.ours, colors.paper)
    ends = [(scaled(peak, prefix), "peak", colors.soft)] if peak else []
    ends += (
        [(scaled(rate(library[-1]), prefix), library[-1].kernel, colors.library)] if library else []
    )
    ends.append((scaled(rate(pairs[-1].ours), prefix), "ours", colors.ours))
    last = None
    for y, said, color in sorted(ends, reverse=True):
        place = y if last is None else min(y, last - 0.075 * top)
        last = place
        axes.annotate(
            said, (1, place), (4, 0), xycoords=axes.get_yaxis_transform(), size=8, color=color,
            textcoords="offset points", va="center", weight="bold", annotation_clip=False,
        )  # fmt: skip
    return made


def broken(name: str, wide: int) -> list[str]:
    """A name in lines of so many characters, new ones before a capital letter where possible."""
    lines = [""]
    for word in re.findall(r"[A-Z]+[^A-Z]*|[^A-Z]+", name):
        for part in textwrap.wrap(word, wide):
            if len(lines[-1] + part) > wide and lines[-1]:
                lines.append("")
            lines[-1] += part
    return lines


def _line(
    made: Sheet, rows: list[Row], xs: dict[str, int], prefix: str, unit: str, color: str, paper: str
) -> None:
    axes = made.axes[0]
    places = [xs[row.size] for row in rows]
    values = [scaled(rate(row), prefix) for row in rows]
    axes.plot(places, values, color=color, linewidth=2, zorder=3, clip_on=False)
    for x, y, row in zip(places, values, rows, strict=True):
        fill = paper if bool(row.doubts) else color
        looks: dict[str, Any] = {"markerfacecolor": fill, "markeredgecolor": color, "markersize": 6}
        axes.plot(x, y, "o", zorder=4, clip_on=False, **looks)
        share = (
            f", {100 * row.of_library:.0f} % of the library"
            if row.is_ours and row.of_library
            else ""
        )
        said = f"{row.label} at {row.size}: {quantity(rate(row), operations(row.precision))}{share}"
        made.tip(axes, x, y, said)
