"""The roofline of shapes that spread along it, and below it the share of that roof."""

from collections.abc import Sequence
from statistics import geometric_mean, median
from typing import Any

import numpy as np
from matplotlib.artist import Artist
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from gemm_report.figures.page import Sheet, sheet
from gemm_report.figures.palette import Colors
from gemm_report.figures.roofs import compute_roofs, memory_roofs, set_log_axes
from gemm_report.record import Ceiling, Record, rate
from gemm_report.standing import Pair, Standing, pair_facts, standings
from gemm_report.text import operations, percent, precision_name, prefix_for, quantity, scaled

_HEIGHTS = (2.3, 2.9)  # inches of the two plots
_FEWEST = 4  # shapes that are no cubes: cubes alone differ in their size only
_CLUSTER, _WIDE = 0.05, 0.16  # of logarithms of FLOP/byte: closer ones are spread so far


def subject(record: Record) -> Standing | None:
    """The precision with most shapes, where peak and bandwidth are known."""
    found = [
        each
        for each in standings(record)
        if each.kind == "plain"
        if sum(not pair.ours.is_cube for pair in each.pairs) >= _FEWEST
        if compute_roofs(record, each.precision) and memory_roofs(record)
    ]
    return max(found, key=lambda each: len(each.pairs), default=None)


def roofs(record: Record, precision: str) -> tuple[Ceiling, Ceiling, Ceiling]:
    """What was measured of arithmetic and of DRAM, else the data sheet's; and the data sheet's."""
    compute, memory = compute_roofs(record, precision), memory_roofs(record)
    return compute[-1], memory[-1], compute[0]


def share(pair: Pair, compute: Ceiling, memory: Ceiling) -> float:
    """Of the roof at the pair's FLOP/byte."""
    slope = pair.ours.flop_per_byte * (memory.bytes_per_second or 0)
    return rate(pair.ours) / min(compute.flop_per_second or 0, slope)


def table(record: Record) -> list[dict[str, object]]:
    """The plotted data: the shapes, then the roofs."""
    each = subject(record)
    if each is None:
        return []
    compute, memory, nominal = roofs(record, each.precision)
    rows: list[dict[str, object]] = [
        pair_facts(
            pair, flop_per_byte=pair.ours.flop_per_byte, of_roof=share(pair, compute, memory)
        )
        for pair in each.pairs
    ]
    names = "flop_per_second", "bytes_per_second", "origin"
    return rows + [
        {"kernel": f"roof: {roof.name}"} | {name: getattr(roof, name) for name in names}
        for roof in dict.fromkeys((compute, memory, nominal))
    ]


def draw(record: Record, colors: Colors) -> Figure:
    """Shapes under DRAM and arithmetic, and the share of that roof that each of them reaches."""
    each = subject(record)
    assert each is not None
    compute, memory, nominal = roofs(record, each.precision)
    pairs = sorted(each.pairs, key=lambda pair: pair.ours.flop_per_byte)
    shares = [100 * share(pair, compute, memory) for pair in pairs]
    ratios = [pair.ratio for pair in each.compared if pair.ratio]
    names = [pair.opponent for pair in each.compared]
    library = max(set(names), key=names.count) if names else "the library"
    of = f", {100 * geometric_mean(ratios):.0f} % of {library}" if ratios else ""
    title = f"{len(pairs)} shapes: {median(shares):.0f} % of the roof{of}"
    kernels = dict.fromkeys(pair.ours.kernel for pair in pairs)
    who = next(iter(kernels)) if len(kernels) == 1 else "Our fastest kernel"
    subtitle = (
        f"{who} in {precision_name(each.precision)} on {record.device.name}: median share of "
    )
    subtitle += "the roof" + ("; geometric mean of the speeds" if ratios else "")
    where = f" (the line ends where {library} is)"
    legend = verdict_legend(pairs, colors, f" than {library}", where)
    made = sheet(record, colors, title, subtitle, [], sum(_HEIGHTS), legend=legend)
    above, below = made.subplots(2, 1, sharex=True, height_ratios=_HEIGHTS)
    peak, slope = compute.flop_per_second or 0, memory.bytes_per_second or 0
    prefix = prefix_for([peak])
    xs, ys = [pair.ours.flop_per_byte for pair in pairs], [rate(pair.ours) for pair in pairs]
    ridge, top = peak / slope, nominal.flop_per_second or 0
    tallest = [scaled(y, prefix) for y in [*ys, top, min(xs) * slope]]
    set_log_axes(above, [*xs, ridge], tallest)
    low, high = above.get_xlim()
    for axes in (above, below):
        axes.axvspan(ridge, high, color=colors.track, linewidth=0, zorder=-2)
    line = np.geomspace(low, high, 400)
    above.plot(
        line, scaled(1, prefix) * np.minimum(peak, slope * line), color=colors.ink, linewidth=2
    )
    if nominal is not compute:
        flat = [max(ridge, top / slope), high]
        above.plot(flat, [scaled(top, prefix)] * 2, color=colors.soft, linewidth=1, linestyle="--")
    unit = prefix + operations(each.precision)
    above.set_title(unit)
    below.set_title("share of the roof")
    below.set_xlabel("FLOP per byte, each matrix moved once", size=8.5)
    least = min([*shares, *(s / r for s, p in zip(shares, pairs, strict=True) if (r := p.ratio))])
    below.set_ylim(max(0, 10 * (min(least, 95) // 10) - 5), max(104, 1.02 * max(shares)))
    ticks = [tick for tick in range(0, 101, 20) if tick >= below.get_ylim()[0]]
    below.set_yticks(ticks, [f"{tick} %" for tick in ticks])
    below.axhline(100, color=colors.ink, linewidth=2, clip_on=False)
    _draw_pairs(made, pairs, shares, prefix, colors)
    limit = record.device.power_limit_w
    where = f"arithmetic{f' at {limit:.0f} W' if limit and nominal is not compute else ''}"
    left, right, bottom = ridge / 1.1, high / 1.1, above.get_ylim()[0] * 1.15
    bold: dict[str, Any] = {"size": 8, "weight": "bold", "va": "top"}
    light: dict[str, Any] = {"size": 8, "va": "bottom"}
    soft = light | {"color": colors.soft}
    said = f"{where}: {quantity(peak, unit[1:])}"
    above.text(right, scaled(peak, prefix) * 0.55, said, ha="right", **bold)
    if nominal is not compute:
        said = f"data sheet: {quantity(top, unit[1:])}"
        above.text(right, scaled(top, prefix) * 1.04, said, ha="right", **light)
    said = f"bound by memory: {quantity(slope, 'B/s')}"
    above.text(left, bottom, said, ha="right", **soft)
    above.text(ridge * 1.1, bottom, "bound by arithmetic", ha="left", **soft)
    return made


def _draw_pairs(
    made: Sheet, pairs: list[Pair], shares: list[float], prefix: str, colors: Colors
) -> None:
    above, below = made.axes
    places = _spread([pair.ours.flop_per_byte for pair in pairs], shares)
    for pair, place, value in zip(pairs, places, shares, strict=True):
        row, dot = pair.ours, verdict_mark(pair.verdict, colors)
        dot["zorder"] = 3 if pair.verdict in ("tie", "doubt") else 4
        y = scaled(rate(row), prefix)
        above.plot(row.flop_per_byte, y, markersize=3.6, markeredgewidth=0.6, **dot)
        below.plot(place, value, markersize=4.8, markeredgewidth=0.8, **dot)
        if pair.ratio and pair.verdict in ("win", "loss"):
            ends = [value, value / pair.ratio]
            looks: dict[str, Any] = {"linewidth": 1.1, "alpha": 0.6, "zorder": 2.5}
            below.plot([place, place], ends, color=dot["color"], **looks)
        said = pair_told(pair, value / 100)
        made.tip(above, row.flop_per_byte, y, said)
        made.tip(below, place, value, said)


def pair_told(pair: Pair, share: float | None) -> str:
    """What a page shows where a reader points at a pair; `share` is that of the roof."""
    row, (low, high) = pair.ours, pair.interval
    said = f"{row.size}, {row.label}: {quantity(rate(row), operations(row.precision))}"
    said += f", {percent(share)} of the roof" if share else ""
    ratio = f", {pair.ratio:.2f} ({low:.2f} to {high:.2f}) of {pair.opponent}" if pair.ratio else ""
    return said + ratio


def _spread(xs: list[float], shares: list[float]) -> list[float]:
    """Apart from each other where several have one FLOP/byte, in the order of their shares."""
    logs = np.log(xs)
    clusters = np.concatenate([[0], np.cumsum(np.diff(logs) > _CLUSTER)])
    for cluster in range(int(clusters[-1]) + 1):
        its = np.flatnonzero(clusters == cluster)
        if len(its) > 2:
            its = its[np.argsort(np.array(shares)[its])]
            logs[its] = logs[its].mean() + np.linspace(-_WIDE, _WIDE, len(its))
    return [float(x) for x in np.exp(logs)]


def verdict_mark(verdict: str, colors: Colors) -> dict[str, Any]:
    """The dot of a pair, hollow in doubt."""
    sure = {"win": colors.ours, "loss": colors.worse, "none": colors.middle}
    color = sure.get(verdict, colors.tie)
    fill = colors.paper if verdict == "doubt" else color
    return {"marker": "o", "color": color, "markerfacecolor": fill}


def verdict_legend(
    pairs: Sequence[Pair], colors: Colors, than: str = "", where: str = ""
) -> list[Artist]:
    """How many pairs have which verdict; `than` and `where` are added to faster and slower."""
    words = {
        "win": f"faster{than}",
        "tie": "within the noise",
        "loss": f"slower{where}",
        "doubt": "in doubt",
        "none": "no library timed",
    }
    counts = {verdict: sum(pair.verdict == verdict for pair in pairs) for verdict in words}
    return [
        Line2D([], [], linestyle="none", label=f"{counts[v]} {said}", **verdict_mark(v, colors))
        for v, said in words.items()
        if counts[v]
    ]
