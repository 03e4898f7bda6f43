"""The roofline: rate against FLOP for each byte if every matrix moves once, all in one panel."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from gemm_report.figures.page import (
    LABEL_SIZE,
    NARROW,
    Label,
    Page,
    column_width,
    in_points,
    label_column,
    say_empty,
    unknown_roofs,
)
from gemm_report.figures.palette import INK, PALE, PRECISIONS
from gemm_report.figures.roofs import (
    compute_roofs,
    draw_roofs,
    legend,
    memory_roofs,
    set_log_axes,
)
from gemm_report.figures.versus import run_name, versus_notes
from gemm_report.record import Ceiling, Record, Row, rate
from gemm_report.rows import by_precision, drawn_rows, fastest, ladder_sizes, precisions
from gemm_report.text import (
    operations,
    precision_name,
    prefix_for,
    quantity,
    roof_name,
    scaled,
    significant,
)

_HEIGHT = 4.3
_LEFT, _BELOW = 0.55, 0.55
_LEAST_SLOPE, _LEAST_RANGE = 15, 100
_MARKERS = ("o", "s", "^", "D", "v", "P", "X", "p", "<", ">", "h", "*")
OURS, THEIRS, OLD = "fastest of our kernels", "fastest library", "old"


def points(record: Record, versus: Record | None = None) -> dict[str, list[Row]]:
    """The fastest row of each precision and problem: of our kernels, and of the library or of our
    kernels in an older run."""
    rows = drawn_rows(record)
    ours = _fastest([row for row in rows if row.is_ours])
    if versus is None:
        return {OURS: ours, THEIRS: _fastest([row for row in rows if row.is_library])}
    problems = set(map(_problem, ours))
    old = _fastest([row for row in drawn_rows(versus) if row.is_ours])
    return {OURS: ours, OLD: [row for row in old if _problem(row) in problems]}


def table(record: Record, versus: Record | None = None) -> list[dict[str, object]]:
    """The plotted data: the rows, then the peaks and bandwidths."""
    found, of_row = points(record, versus), ("precision", "shape", "flop_per_byte")
    return [
        {"kind": "kernel", "what": what, "name": row.label}
        | {name: getattr(row, name) for name in of_row}
        | {"flop_per_second": rate(row), "of_roof": row.of_roof_nominal}
        for what, rows in found.items()
        for row in rows
    ] + [
        {"kind": "roof"} | {key: each for key, each in asdict(roof).items() if key != "source"}
        for roof in [*_roofs(record, _precisions(record, found)), *memory_roofs(record)]
    ]


def draw(record: Record, versus: Record | None = None) -> Figure:
    """The fastest kernel and library at every size, under the peak of their precision and DRAM."""
    found = points(record, versus)
    rows = [row for its in found.values() for row in its]
    names = _precisions(record, found)
    compute, memory = _roofs(record, names), memory_roofs(record)
    rates = [*map(rate, rows), *(roof.flop_per_second for roof in compute)]
    prefix = prefix_for(rates)
    groups = by_precision(rows)
    looks = {
        name: (PRECISIONS[i % len(PRECISIONS)], _MARKERS[i % len(_MARKERS)])
        for i, name in enumerate(groups)
    }
    labels = [_label(its, compute, *looks[name], prefix) for name, its in groups.items()]
    remarks = versus_notes(record, versus) if versus else []
    remarks += ["Peaks are those of the new run; an arrow leads to it."] if versus else []
    remarks += ["Numbers on the right: the peak of each precision."] if rows and compute else []
    entries = [*(_legend(record, versus, found) if rows else []), *legend([*compute, *memory])]
    page = Page(
        record,
        "roofline, two runs" if versus else "roofline",
        remarks + unknown_roofs(record, names),
        _HEIGHT + _BELOW,
        NARROW,
        legend=entries,
        part=None,
    )
    axes = page.axes(_LEFT, 0, NARROW - _LEFT - column_width(labels), _HEIGHT)
    if not rows:
        say_empty(axes)
        return page.figure
    scale, top = 1 / scaled(1, prefix), max(rates)
    ridges = [top / roof.bytes_per_second for roof in memory]
    # A slope must be long enough for its name.
    beginnings = [ridge / _LEAST_SLOPE for ridge in ridges]
    xs = [*(row.flop_per_byte for row in rows), *ridges, *beginnings]
    ys = [*rates, top / _LEAST_RANGE] if memory else rates
    set_log_axes(axes, xs, [each / scale for each in ys])
    integers = [precision_name(name) for name in groups if operations(name) == "OP/s"]
    unit = f"{prefix}FLOP/s" + (f" ({', '.join(integers)}: {prefix}OP/s)" if integers else "")
    axes.set_xlabel("Arithmetic intensity (FLOP/byte, each matrix moved once)")
    axes.set_ylabel(unit)
    draw_roofs(axes, compute, memory, scale)
    if memory:
        _name_slope(axes, memory, scale)
    for name in groups:
        its = {what: [r for r in each if r.precision == name] for what, each in found.items()}
        _draw_points(axes, its, *looks[name], scale)
    label_column(axes, labels)
    return page.figure


def _fastest(rows: Sequence[Row]) -> list[Row]:
    return [row for each in by_precision(rows).values() for row in fastest(each)]


def _problem(row: Row) -> tuple[str, str, str]:
    return row.precision, row.layout, row.shape


def _precisions(record: Record, found: Mapping[str, Sequence[Row]]) -> list[str]:
    """Those that are shown; of an empty figure all that were asked for."""
    return precisions(row for its in found.values() for row in its) or record.precision_names


def _roofs(record: Record, names: Sequence[str]) -> list[Ceiling]:
    return [roof for name in names for roof in compute_roofs(record, name)]


def _label(
    rows: Sequence[Row], compute: Sequence[Ceiling], color: str, marker: str, prefix: str
) -> Label:
    """Of a precision: at its peak, or where none is known at its fastest row."""
    name = rows[0].precision
    peak = next((roof.flop_per_second for roof in compute if roof.precision == name), None)
    y = scaled(peak or max(map(rate, rows)), prefix)
    text = precision_name(name) + (f"  {significant(y)}" if peak else "")
    return Label(text, y, None, color, marker)


def _draw_points(
    axes: Axes, found: Mapping[str, Sequence[Row]], color: str, marker: str, scale: float
) -> None:
    """Filled ones of ours, joined from cube to cube; hollow ones of what is next to them."""
    sizes = ladder_sizes(row for its in found.values() for row in its)
    line = [row for row in found[OURS] if row.is_cube and row.m in sizes]
    xs, ys = [row.flop_per_byte for row in line], [rate(row) / scale for row in line]
    axes.plot(xs, ys, color=color, linewidth=0.8, alpha=0.6, zorder=2)
    filled = {"markersize": 5.5, "markerfacecolor": color, "markeredgewidth": 0, "zorder": 4}
    hollow = {"markersize": 9, "markerfacecolor": "none", "markeredgewidth": 1.1, "zorder": 3}
    looks = {"marker": marker, "color": color, "markeredgecolor": color, "clip_on": False}
    for what, its in found.items():
        for row in its:
            style = filled if what == OURS else hollow
            axes.plot(row.flop_per_byte, rate(row) / scale, **style, **looks)
    new = {_problem(row): row for row in found[OURS]}
    for row in found.get(OLD, ()):
        x, y = row.flop_per_byte, rate(row) / scale
        end = x, rate(new[_problem(row)]) / scale
        if abs(in_points(axes, *end)[1] - in_points(axes, x, y)[1]) > 6:
            arrow = {"arrowstyle": "-|>,head_length=0.35,head_width=0.18", "color": color}
            axes.annotate("", end, (x, y), arrowprops=arrow, zorder=3)


def _name_slope(axes: Axes, memory: Sequence[Ceiling], scale: float) -> None:
    """The bandwidth of DRAM above its slope."""
    width, *measured = (roof.bytes_per_second for roof in memory)
    slope, prefix = width / scale, prefix_for([width])
    left = max(axes.get_xlim()[0], axes.get_ylim()[0] / slope)
    (x, y), (x10, y10) = (in_points(axes, each, each * slope) for each in (left, 10 * left))
    angle = math.atan2(y10 - y, x10 - x)
    text = f"{roof_name(memory[0].name)} {quantity(width, 'B/s')}"
    text += "".join(f" (measured {significant(scaled(each, prefix))})" for each in measured)
    looks = {"rotation": math.degrees(angle), "rotation_mode": "anchor", "size": LABEL_SIZE}
    place = {"xytext": (10, 10 * math.tan(angle) + 4), "textcoords": "offset points"}
    axes.annotate(text, (left, left * slope), va="bottom", color=INK, **place, **looks)


def _legend(
    record: Record, versus: Record | None, found: Mapping[str, Sequence[Row]]
) -> list[Line2D]:
    filled = {"linestyle": "none", "marker": "o", "color": PALE, "markersize": 5}
    hollow = {**filled, "markerfacecolor": "none", "markersize": 8}
    ours, beside = (
        (f"new: {run_name(record)}", f"old: {run_name(versus)}") if versus else (OURS, THEIRS)
    )
    entries = [Line2D([], [], label=ours, **filled), Line2D([], [], label=beside, **hollow)]
    return entries if versus or found[THEIRS] else entries[:1]
