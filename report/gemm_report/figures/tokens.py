"""Rate and share of the roof over tokens: groups, batches, and FP8 with scales of blocks."""

from itertools import accumulate
from statistics import mean, median
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from gemm_report.figures.headline import library_name, score
from gemm_report.figures.page import sheet
from gemm_report.figures.palette import Colors
from gemm_report.figures.roofline import pair_told, verdict_legend, verdict_mark
from gemm_report.figures.roofs import set_log_ticks
from gemm_report.grouping import grouped
from gemm_report.record import Record, rate
from gemm_report.standing import Pair, Standing, pair_facts, standings
from gemm_report.text import operations, percent, prefix_for, scaled

# Of a figure's name and its horizontal axis, by the kind of problem.
_KINDS = {
    "plain": ("rows", "m (tokens); below n x k"),
    "grouped": ("grouped", "tokens per expert, the mean; below experts, n x k, distribution"),
    "batched": ("batched", "m of one product; below number of products, n x k"),
}
_HEIGHT = 1.7  # inches of a plot
# Widths over the distance of points in a line: of a figure at most, of the name of a line, and
# between lines.
_MOST, _NAME, _GAP = 34, 3, 0.5


def subjects(record: Record) -> dict[str, Standing]:
    """What is drawn, by the figure's name: each has several problems."""
    return {
        f"{_KINDS[each.kind][0]}_{each.precision}": each
        for each in standings(record)
        if each.kind != "plain" or each.precision == "e4m3block"
        if len(each.pairs) > 1 and not all(pair.ours.is_cube for pair in each.pairs)
    }


def lines(each: Standing) -> dict[str, list[Pair]]:
    """Problems that differ in m alone, or in the size of a cube, by what they share; the first."""

    def name(pair: Pair) -> str:
        row = pair.ours
        count = f"{row.batch_count} of\n" if row.batch_count > 1 else ""
        if row.m == row.n == row.k and not row.tokens:
            return f"{count}cubes"
        return f"{count}{row.n}x{row.k}" + (f"\n{row.tokens}" if row.tokens else "")

    its = sorted(each.pairs, key=lambda pair: (pair.ours.m, pair.ours.n * pair.ours.k))
    found = grouped(its, name)
    ends = accumulate(_width(its) + _GAP for its in found.values())
    fit = {label for label, end in zip(found, ends, strict=True) if end <= _MOST}
    return {label: its[:_MOST] for label, its in found.items() if label in (fit or found)}


def _width(its: list[Pair]) -> float:
    return max(len(its), _NAME)


def table(record: Record, name: str) -> list[dict[str, object]]:
    """The plotted data."""
    found = lines(subjects(record)[name]).values()
    return [pair_facts(p, of_roof=p.ours.of_roof_nominal) for its in found for p in its]


def draw(record: Record, colors: Colors, name: str) -> Figure:
    """Rate and share of the roof over tokens or sizes, the library beside ours, the interval."""
    each = subjects(record)[name]
    found = lines(each)
    pairs = [pair for its in found.values() for pair in its]
    shares = [pair.ours.of_roof_nominal for pair in pairs if pair.ours.of_roof_nominal]
    said, library = score([each]), library_name([each])
    title = each.name + (f": {said} against {library}" if said else "")
    kernels = {pair.ours.kernel for pair in pairs}
    subtitle = kernels.pop() if len(kernels) == 1 else "Our fastest kernel"
    subtitle += f" on {record.device.name}"
    subtitle += f": {percent(median(shares))} of the roof (median)" if shares else ""
    if each.mean:
        subtitle += f", {each.mean:.2f} times {library} (geometric mean)"
    notes = []
    legend = verdict_legend(pairs, colors)
    if library:
        notes.append(f"Vertical lines: 95 % interval of our speed over that of {library}.")
        dash = {**_dash(colors), "linestyle": "none", "label": library}
        legend.append(Line2D([], [], **dash))
    if shares:
        legend.append(Line2D([], [], color=colors.soft, label="roof"))
    if len(pairs) < len(each.pairs):
        notes.append(f"The first {len(pairs)} of {len(each.pairs)} problems.")
    count = 2 if shares else 1
    made = sheet(record, colors, title, subtitle, notes, _HEIGHT * count + 0.6, legend=legend)
    plots = made.subplots(count, 1, sharex=True, squeeze=False)[:, 0]
    roofs = [pair.ours.roof.flop_per_second for pair in pairs if pair.ours.roof]
    prefix = prefix_for([*roofs, *(rate(pair.ours) for pair in pairs)])
    begin = 0.0
    ticks: dict[float, str] = {}
    for label, its in found.items():
        wide = _width(its)
        xs = [begin + (i + 0.5) * wide / len(its) for i in range(len(its))]
        ticks |= {x: str(pair.ours.m) for x, pair in zip(xs, its, strict=True)}
        ticks[mean(xs)] = ticks.get(mean(xs), "") + f"\n{label}"
        begin += wide + _GAP
        half = 0.45 * wide / len(its)
        heights = [_heights(pair, prefix) for pair in its]
        for axes, ys in zip(plots, zip(*heights, strict=True), strict=False):
            axes.plot(xs, [y for y, _ in ys], color=colors.ours, linewidth=1.2)
            for x, (y, roof), pair in zip(xs, ys, its, strict=True):
                axes.plot([x - half, x + half], [roof, roof], color=colors.soft)
                if y:
                    _draw_pair(axes, x, y, pair, library, colors)
                    made.tip(axes, x, y, pair_told(pair, pair.ours.of_roof_nominal))
    plots[0].set(title=prefix + operations(each.precision), yscale="log")
    set_log_ticks(plots[0].yaxis, (1, 2, 5))
    if shares:
        plots[1].set_title("% of the roof")
    for axes in plots:
        axes.grid(axis="x", visible=False)
    plots[-1].set_xlim(0, begin - _GAP)
    plots[-1].set_xlabel(_KINDS[each.kind][1], size=8)
    plots[-1].set_xticks(list(ticks), list(ticks.values()), size=7 if begin > _MOST * 0.7 else 8)
    return made


def _heights(pair: Pair, prefix: str) -> list[tuple[float | None, float | None]]:
    """Rate and share, each with its roof."""
    row = pair.ours
    roof = scaled(row.roof.flop_per_second, prefix) if row.roof else None
    share = 100 * row.of_roof_nominal if row.of_roof_nominal else None
    return [(scaled(rate(row), prefix), roof), (share, 100.0)]


def _draw_pair(axes: Axes, x: float, y: float, pair: Pair, library: str, colors: Colors) -> None:
    """Ours with the interval, in units of the library's height."""
    look = verdict_mark(pair.verdict, colors)
    if pair.ratio and library:
        axes.plot(x, y / pair.ratio, zorder=3, **_dash(colors))
        ends = [y * end / pair.ratio for end in pair.interval]
        axes.plot([x, x], ends, color=look["color"], zorder=3)
    axes.plot(x, y, zorder=4, **look)


def _dash(colors: Colors) -> dict[str, Any]:
    return {"color": colors.library, "marker": "_", "markeredgewidth": 2, "markersize": 9}
