"""The hierarchical roofline: rate against FLOP for each byte of every memory, under all roofs.

A panel for each precision. A kernel is a level line of marks: one where it would be if each matrix
moved once, and one for each memory that the model of its bytes knows.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patheffects import withStroke
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

from gemm_report.figures.marks import mark, notes
from gemm_report.figures.page import (
    INK,
    LABEL_SIZE,
    ROOF_COLOR,
    Label,
    label_column,
    size_in_points,
    text_width,
    unknown_roof_text,
)
from gemm_report.figures.palette import PEER_MARKERS, Look
from gemm_report.figures.panels import Plot, panels
from gemm_report.figures.placement import freest, lanes
from gemm_report.figures.roofline.levels import DRAM, L2, SHARED, above_notes
from gemm_report.figures.roofline.roofs import (
    LINES,
    MEASURED,
    NOMINAL,
    SEEN,
    UNIT,
    Roof,
    compute_roofs,
    memory_roofs,
    roof_labels,
)
from gemm_report.figures.roofline.versus import Pair, headline_pairs, run_name, versus_notes
from gemm_report.ladder.rows import drawn_rows, headlines, precisions
from gemm_report.ladder.rungs import rate
from gemm_report.record import Record, Row
from gemm_report.writing.quantity import percent, prefix_for, scaled, significant, times

IDEAL = "each matrix once"
_IDEAL_MARKER = "o"
_LEVELS = (DRAM, L2, SHARED)
_COUNTED = {level: f"{level.name}, counted" for level in _LEVELS}
_MARKERS = {
    IDEAL: _IDEAL_MARKER,
    **{level.name: level.marker for level in _LEVELS},
    **{name: level.counted_marker for level, name in _COUNTED.items()},
}
_PLOT = Plot(width=4.2, height=3.2, left=0.55, above=0.42, below=0.58)
# A slope must be long enough for its name.
_LEAST_RANGE = 100.0
_LEAST_SLOPE = 60.0
# What the DRAM moves beyond the ideal is worth a mark of its own from here on.
_BEYOND_IDEAL = 0.03
_ARROW_FROM = 6.0  # points: a shorter one would be all head
_LANE = 8.0
_LANES = 72.0  # points for all of them
_CLEAR = 3.0


@dataclass(frozen=True)
class Mark:
    """Where a row stands by the bytes of one memory."""

    level: str
    flop_per_byte: float


def marks(row: Row) -> list[Mark]:
    """Of one row: the ideal one, then what its model knows, then what was counted."""
    found = [Mark(IDEAL, row.flop_per_byte)]
    for level in _LEVELS:
        intensity = level.flop_per_byte(row)
        if intensity is None:
            continue
        if level is not DRAM or abs(intensity / row.flop_per_byte - 1) > _BEYOND_IDEAL:
            found.append(Mark(level.name, intensity))
    counted = [(name, level.counted_flop_per_byte(row)) for level, name in _COUNTED.items()]
    return found + [Mark(name, intensity) for name, intensity in counted if intensity]


def table(record: Record, versus: Record | None = None) -> list[dict[str, object]]:
    """The plotted data: each row at each memory, of both runs, then the roofs of each panel."""
    pairs = _pairs(record, versus)
    runs = [("new", pair.new) for pair in pairs]
    runs += [("old", pair.old) for pair in pairs if pair.old]
    points = [
        {
            "kind": "kernel",
            "run": run,
            "name": row.label,
            "precision": row.precision,
            "shape": row.shape,
            "level": each.level,
            "by": _by(each.level),
            "flop_per_byte": each.flop_per_byte,
            "flop_per_second": rate(row),
            "of_roof": row.of_roof_nominal,
        }
        for run, row in runs
        for each in marks(row)
    ]
    panels_of_roofs = [
        (precision, roof)
        for precision, rows in _groups(pairs)
        for roof in compute_roofs(record, rows)
    ] + [(None, roof) for roof in memory_roofs(record)]
    roofs = [
        {
            "kind": "roof",
            "name": roof.ceiling.name,
            "precision": precision,
            "flop_per_second": roof.ceiling.flop_per_second,
            "bytes_per_second": roof.ceiling.bytes_per_second,
            "how": roof.how,
            "origin": roof.ceiling.origin,
            "clock_hz": roof.ceiling.clock_hz,
        }
        for precision, roof in panels_of_roofs
    ]
    return points + roofs


def _by(level: str) -> str:
    if level == IDEAL:
        return "ideal"
    return "ncu" if level in _COUNTED.values() else "model"


def draw(record: Record, looks: Mapping[str, Look], versus: Record | None = None) -> Figure:
    """Every kernel at its largest cube, under the roofs of its precision and of each memory."""
    pairs = _pairs(record, versus)
    groups = _groups(pairs)
    memory = memory_roofs(record)
    by_precision = {p: [pair for pair in pairs if pair.new.precision == p] for p, _ in groups}
    roofs = {p: compute_roofs(record, rows) for p, rows in groups}
    prefixes = {p: prefix_for(map(rate, rows)) for p, rows in groups}
    labels = [
        [
            *(_kernel_label(pair, rows, looks, prefixes[p]) for pair in by_precision[p]),
            *roof_labels(roofs[p]),
        ]
        for p, rows in groups
    ]
    shown = [*memory, *(roof for each in roofs.values() for roof in each)]
    page, plots = panels(
        record,
        "GEMM roofline" if versus is None else "GEMM roofline, two runs",
        _notes(record, versus, pairs, roofs, memory),
        labels,
        _PLOT,
        _legend(record, versus, pairs, shown),
    )
    for axes, (precision, _), its_labels in zip(plots, groups, labels, strict=True):
        its_pairs = by_precision[precision]
        _set_axes(axes, its_pairs, roofs[precision], memory, prefixes[precision])
        axes.set_title(precision)
        _draw_roofs(axes, roofs[precision], memory)
        shift = _shifts(axes, its_pairs)
        for pair in its_pairs:
            _draw_pair(axes, pair, looks[pair.new.label].color, shift.get(pair.new.label, 1.0))
        _name_slopes(axes, its_pairs, roofs[precision], memory)
        moved = [shift.get(pair.new.label, 1.0) for pair in its_pairs]
        label_column(axes, [*map(_aside, its_labels, moved), *its_labels[len(moved) :]])
    return page.figure


def _pairs(record: Record, versus: Record | None) -> list[Pair]:
    if versus is not None:
        return headline_pairs(record, versus)
    return [Pair(row, None) for row in headlines(drawn_rows(record))]


def _groups(pairs: Sequence[Pair]) -> list[tuple[str, list[Row]]]:
    rows = [pair.new for pair in pairs]
    return [(p, [row for row in rows if row.precision == p]) for p in precisions(rows)]


def _kernel_label(pair: Pair, rows: Sequence[Row], looks: Mapping[str, Look], prefix: str) -> Label:
    row = pair.new
    largest = max(other.volume for other in rows)
    facts = [
        f"{row.label}  {significant(scaled(rate(row), prefix))}",
        "" if row.of_roof_nominal is None else f", {percent(row.of_roof_nominal)}",
        "" if pair.ratio is None else f", {times(pair.ratio)}",
        "" if row.volume == largest else f", at {row.size}",
        mark(row),
    ]
    look = looks[row.label]
    return Label("".join(facts), row.flop_per_byte, rate(row), look.color, _marker(row, IDEAL))


def _aside(label: Label, shift: float) -> Label:
    return replace(label, x=label.x and label.x * shift)


def _set_axes(
    axes: Axes, pairs: Sequence[Pair], roofs: Sequence[Roof], memory: Sequence[Roof], prefix: str
) -> None:
    rows = _rows(pairs)
    rates = [rate(row) for row in rows]
    xs = [each.flop_per_byte for row in rows for each in marks(row)]
    top = max([*rates, *(roof.rate for roof in roofs)])
    widths = [roof.width for roof in memory]
    bottom = min([*(each / 1.5 for each in rates), top / _LEAST_RANGE])
    left = min(min(xs) / 1.6, top / max(widths) / _LEAST_SLOPE if widths else math.inf)
    right = 1.6 * max([*xs, *(top / width for width in widths)])
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlim(left, right)
    axes.set_ylim(bottom, 1.3 * top)
    of_what = " of the memory that a mark stands for" if any(row.traffic for row in rows) else ""
    axes.set_xlabel(f"arithmetic intensity [FLOP/byte{of_what}]", size=8)
    axes.set_ylabel(f"{prefix}FLOP/s")
    decades = math.log10(1.3 * top / bottom) * _PLOT.height / (size_in_points(axes)[1] / 72)
    y_ticks = (1.0, 2.0, 5.0) if decades < 2.6 else (1.0,)
    x_ticks = (1.0, 2.0, 5.0) if right / left < 200 else (1.0,)
    for axis, ticks in ((axes.xaxis, x_ticks), (axes.yaxis, y_ticks)):
        axis.set_major_locator(LogLocator(subs=ticks, numticks=20))
        axis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:g}"))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda y, _: f"{scaled(y, prefix):g}"))


def _rows(pairs: Sequence[Pair]) -> list[Row]:
    return [row for pair in pairs for row in (pair.new, pair.old) if row]


def _draw_roofs(axes: Axes, roofs: Sequence[Roof], memory: Sequence[Roof]) -> None:
    low, high = axes.get_xlim()
    widest = max((roof.width for roof in memory), default=0)
    top = max((roof.rate for roof in roofs), default=axes.get_ylim()[1])
    looks = {"color": ROOF_COLOR, "zorder": 1, "solid_capstyle": "butt"}
    for roof in roofs:
        start = max(low, roof.rate / widest) if widest else low
        axes.plot([start, high], [roof.rate] * 2, **LINES[roof.how], **looks)
    for roof in memory:
        xs = [low, top / roof.width]
        axes.plot(xs, [x * roof.width for x in xs], **LINES[roof.how], **looks)


def _draw_pair(axes: Axes, pair: Pair, color: str, shift: float) -> None:
    """Marks joined at one height; hollow ones and arrows where there is an older run."""
    new = {each.level: each.flop_per_byte for each in marks(pair.new)}
    new[IDEAL] *= shift
    joined = {"color": color, "linewidth": 0.8, "alpha": 0.55, "zorder": 2}
    axes.plot(sorted(new.values()), [rate(pair.new)] * len(new), **joined)
    if pair.old:
        old = {each.level: each.flop_per_byte for each in marks(pair.old)}
        old[IDEAL] *= shift
        for level in old.keys() & new.keys():
            _draw_mark(axes, pair.old, level, old[level], color, hollow=True)
            begin, end = (old[level], rate(pair.old)), (new[level], rate(pair.new))
            if _distance(axes, begin, end) >= _ARROW_FROM:
                look = {"color": color, "linewidth": 1.0, "shrinkA": 2.5, "shrinkB": 2.5}
                style = {"arrowstyle": "-|>,head_length=0.35,head_width=0.18", **look}
                axes.annotate("", end, begin, arrowprops=style, zorder=3)
    for level, x in new.items():
        _draw_mark(axes, pair.new, level, x, color)


def _draw_mark(
    axes: Axes, row: Row, level: str, x: float, color: str, hollow: bool = False
) -> None:
    axes.plot(
        x,
        rate(row),
        label=row.label,
        color=color,
        linestyle="none",
        marker=_marker(row, level),
        markersize=_size(level),
        markerfacecolor="white" if hollow else color,
        markeredgecolor=color if hollow or row.is_peer else "white",
        markeredgewidth=1.0 if hollow or row.is_peer else 0.6,
        clip_on=False,
        zorder=3.5 if hollow else 4,
    )


def _marker(row: Row, level: str) -> str:
    """By the memory level; a peer has one mark, since nobody models its bytes."""
    return PEER_MARKERS[0] if row.is_peer else _MARKERS[level]


def _size(level: str) -> float:
    """Of areas that look alike."""
    return {IDEAL: 6.0, SHARED.name: 4.6, L2.name: 4.6}.get(level, 5.4)


def _distance(axes: Axes, begin: tuple[float, float], end: tuple[float, float]) -> float:
    (x0, y0), (x1, y1) = (_point(axes, *place) for place in (begin, end))
    return math.hypot(x1 - x0, y1 - y0)


def _point(axes: Axes, x: float, y: float) -> tuple[float, float]:
    """In points from the corner of the plot."""
    across, up = (axes.transScale + axes.transLimits).transform((x, y))
    width, height = size_in_points(axes)
    return across * width, up * height


def _shifts(axes: Axes, pairs: Sequence[Pair]) -> dict[str, float]:
    """By which factor an ideal mark steps aside, so that arrows of one intensity do not hide."""
    moved = []
    for pair in pairs:
        if pair.old:
            x, new = _point(axes, pair.new.flop_per_byte, rate(pair.new))
            _, old = _point(axes, pair.new.flop_per_byte, rate(pair.old))
            if abs(new - old) >= _ARROW_FROM:
                moved.append((pair.new.label, (x, min(new, old), max(new, old))))
    found = lanes([span for _, span in moved], _LANE)
    low, high = axes.get_xlim()
    step = min(_LANE, _LANES / (max(found, default=0) + 1))
    point = math.log10(high / low) / size_in_points(axes)[0]
    return {
        label: 10 ** (-lane * step * point) for (label, _), lane in zip(moved, found, strict=True)
    }


def _name_slopes(
    axes: Axes, pairs: Sequence[Pair], roofs: Sequence[Roof], memory: Sequence[Roof]
) -> None:
    """Writes along each slope what it is, where the fewest marks are."""
    low, bottom = axes.get_xlim()[0], axes.get_ylim()[0]
    top = max((roof.rate for roof in roofs), default=axes.get_ylim()[1])
    across, up = _point(axes, low * 10, bottom * 10)
    angle = math.atan2(up, across)
    taken = _obstacles(axes, pairs, roofs)
    for roof in sorted(memory, key=lambda roof: roof.width):
        text = roof.text
        weight = "bold" if roof.how == NOMINAL else "normal"
        length = text_width(text, LABEL_SIZE, weight)
        first, last = max(low, bottom / roof.width), top / roof.width
        origin = _point(axes, first, first * roof.width)
        end = _point(axes, last, last * roof.width)
        turned = [(*_turned(x, y, origin, angle), weight) for x, y, weight in taken]
        # The DRAM's two lie on each other: the lower one has its name below.
        below = roof.how == MEASURED and roof.ceiling.name.startswith("DRAM") and len(memory) > 1
        low_side, high_side = side = (-12.0, -3.0) if below else (3.0, 12.0)
        # No letter may touch an axis.
        first_place = max(
            (_CLEAR - origin[0] + high_side * math.sin(angle)) / math.cos(angle),
            (_CLEAR - origin[1] - low_side * math.cos(angle)) / math.sin(angle),
        )
        last_place = math.hypot(end[0] - origin[0], end[1] - origin[1])
        start = freest(length, (first_place, last_place), side, turned)
        place = (
            origin[0] + start * math.cos(angle) - low_side * math.sin(angle),
            origin[1] + start * math.sin(angle) + low_side * math.cos(angle),
        )
        axes.annotate(
            text,
            place,
            xycoords="axes points",
            rotation=math.degrees(angle),
            rotation_mode="anchor",
            ha="left",
            va="bottom",
            size=LABEL_SIZE,
            weight=weight,
            color=INK,
            # Over the lines, under the marks.
            zorder=2.5,
            path_effects=[withStroke(linewidth=2, foreground="white")],
        )


def _obstacles(
    axes: Axes, pairs: Sequence[Pair], roofs: Sequence[Roof]
) -> list[tuple[float, float, float]]:
    """Marks, which must stay seen, and points of the level lines, which should."""
    width, _ = size_in_points(axes)
    levels = [_point(axes, axes.get_xlim()[0], roof.rate)[1] for roof in roofs]
    found = [(float(x), y, 0.02) for y in levels for x in range(0, int(width), 6)]
    for row in _rows(pairs):
        places = [_point(axes, each.flop_per_byte, rate(row)) for each in marks(row)]
        found += [(x, y, 2.0) for x, y in places]
        left, right = min(places)[0], max(places)[0]
        found += [(left + 6 * i, places[0][1], 0.02) for i in range(int((right - left) / 6))]
    return found


def _turned(x: float, y: float, origin: tuple[float, float], angle: float) -> tuple[float, float]:
    """Along a slope from its origin, and away from it to the upper left."""
    x, y = x - origin[0], y - origin[1]
    along = x * math.cos(angle) + y * math.sin(angle)
    return along, y * math.cos(angle) - x * math.sin(angle)


def _legend(
    record: Record, versus: Record | None, pairs: Sequence[Pair], roofs: Sequence[Roof]
) -> list[Line2D]:
    grey = {"linestyle": "none", "color": "#555555", "markeredgecolor": "#555555"}
    used = {each.level for row in _rows(pairs) for each in marks(row)}
    names = {
        IDEAL: "A and B read once, C written once",
        L2.name: "asked of the L2, by model",
        SHARED.name: "of shared memory, by model",
        DRAM.name: "of DRAM, by model",
        _COUNTED[L2]: "asked of the L2, counted by ncu",
        _COUNTED[SHARED]: "of shared memory, counted by ncu",
        _COUNTED[DRAM]: "of DRAM, counted by ncu",
    }
    entries = [
        Line2D([], [], marker=_MARKERS[level], markersize=_size(level), label=label, **grey)
        for level, label in names.items()
        if level in used
    ]
    if versus is not None:
        looks = {"marker": _IDEAL_MARKER, "markersize": _size(IDEAL), **grey}
        entries += [
            Line2D([], [], label=f"new: {run_name(record)}", **looks),
            Line2D([], [], label=f"old: {run_name(versus)}", **looks, markerfacecolor="white"),
        ]
    words = {
        NOMINAL: "roof that percentages are of",
        UNIT: "roof: of another unit that computes",
        MEASURED: "roof: measured by a probe",
        SEEN: "roof: at the median clock of the kernels that it is for",
    }
    hows = {roof.how for roof in roofs}
    return entries + [
        Line2D([], [], color=ROOF_COLOR, label=words[how], **LINES[how])
        for how in words
        if how in hows
    ]


def _notes(
    record: Record,
    versus: Record | None,
    pairs: Sequence[Pair],
    roofs: Mapping[str, Sequence[Roof]],
    memory: Sequence[Roof],
) -> list[str]:
    rows = [pair.new for pair in pairs]
    remarks = notes(rows)
    if versus is not None:
        remarks += versus_notes(record, versus)
        remarks.append(
            "Roofs and percentages are those of the new run; an arrow leads to it. Round marks of "
            "one intensity step aside to the left, so that each arrow is seen."
        )
    cubes = {row.m for row in rows if row.is_cube}
    if len(cubes) == 1:
        remarks.append(f"Each kernel at its largest cube: {cubes.pop()}.")
    nominal = any(roof.how == NOMINAL for each in roofs.values() for roof in each)
    if nominal and any(row.of_roof_nominal for row in rows):
        remarks.append(
            "Percentages are of the thick roof over the round mark: the lower of arithmetic and "
            "DRAM."
        )
    for level in (SHARED, L2, DRAM):
        remarks += above_notes(record, level, rows)
    without = dict.fromkeys(row.label for row in rows if not row.traffic)
    if any(row.traffic for row in rows) and without:
        remarks.append(f"Without a model of their bytes: {', '.join(without)}.")
    shown = {*roofs, None}
    return remarks + [
        unknown_roof_text(c) for c in record.unknown_roofs() if c.precision in shown or not roofs
    ]
