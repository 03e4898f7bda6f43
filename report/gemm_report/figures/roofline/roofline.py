"""The roofline: rate against FLOP for each byte if every matrix moves once, all in one panel."""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass

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
from gemm_report.figures.roofline.roofs import (
    Roof,
    compute_roofs,
    draw_roofs,
    legend,
    memory_roofs,
    set_log_axes,
)
from gemm_report.figures.versus import run_name, versus_notes
from gemm_report.ladder.rows import by_precision, drawn_rows, ladder_sizes
from gemm_report.ladder.rungs import rate
from gemm_report.ladder.standing import fastest
from gemm_report.record import Record, Row
from gemm_report.writing.names import operations, precision_name, roof_name
from gemm_report.writing.quantity import prefix_for, quantity, scaled, significant

_HEIGHT = 4.3
_LEFT, _BELOW = 0.55, 0.55
_LEAST_SLOPE, _LEAST_RANGE = 15, 100
_MARKERS = ("o", "s", "^", "D", "v", "P", "X", "p", "<", ">", "h", "*")
OURS, THEIRS, OLD = "fastest of our kernels", "fastest library", "old"


@dataclass(frozen=True)
class Point:
    """The fastest row of one precision and problem, of our kernels or of something else."""

    row: Row
    what: str


def points(record: Record, versus: Record | None = None) -> list[Point]:
    """Ours at every size, next to the library, or to our kernels of an older run."""
    rows = drawn_rows(record)
    found = [Point(row, OURS) for row in _fastest([r for r in rows if r.is_ours])]
    if versus is None:
        return found + [Point(row, THEIRS) for row in _fastest([r for r in rows if r.is_library])]
    problems = {_problem(point.row) for point in found}
    old = _fastest([row for row in drawn_rows(versus) if row.is_ours])
    return found + [Point(row, OLD) for row in old if _problem(row) in problems]


def table(record: Record, versus: Record | None = None) -> list[dict[str, object]]:
    """The plotted data: the rows, then the peaks and bandwidths."""
    found, of_row = points(record, versus), ("precision", "shape", "flop_per_byte")
    return [
        {"kind": "kernel", "what": point.what, "name": point.row.label}
        | {name: getattr(point.row, name) for name in of_row}
        | {"flop_per_second": rate(point.row), "of_roof": point.row.of_roof_nominal}
        for point in found
    ] + [
        {"kind": "roof"}
        | {key: each for key, each in asdict(roof.ceiling).items() if key != "source"}
        for roof in [*_roofs(record, found), *memory_roofs(record)]
    ]


def draw(record: Record, versus: Record | None = None) -> Figure:
    """The fastest kernel and library at every size, under the peak of their precision and DRAM."""
    found = points(record, versus)
    names = list(by_precision(point.row for point in found))
    compute, memory = _roofs(record, found), memory_roofs(record)
    prefix = prefix_for([*(rate(p.row) for p in found), *(roof.rate for roof in compute)])
    looks = {
        name: (PRECISIONS[i % len(PRECISIONS)], _MARKERS[i % len(_MARKERS)])
        for i, name in enumerate(names)
    }
    labels = [_label(name, found, compute, looks, prefix) for name in names]
    title, remarks = (
        "roofline" if versus is None else "roofline, two runs",
        _notes(record, versus, found),
    )
    entries = [*_legend(record, versus, found), *legend([*compute, *memory])]
    size = _HEIGHT + _BELOW, NARROW
    page = Page(record, title, remarks, *size, legend=entries, part=None)
    axes = page.axes(_LEFT, 0, NARROW - _LEFT - column_width(labels), _HEIGHT)
    if not found:
        say_empty(axes)
        return page.figure
    scale = 1 / scaled(1, prefix)
    rates = [*(rate(point.row) for point in found), *(roof.rate for roof in compute)]
    top = max(rates)
    ridges = [top / roof.width for roof in memory]
    # A slope must be long enough for its name.
    beginnings = [ridge / _LEAST_SLOPE for ridge in ridges]
    xs = [*(point.row.flop_per_byte for point in found), *ridges, *beginnings]
    ys = [*rates, top / _LEAST_RANGE] if memory else rates
    set_log_axes(axes, xs, [each / scale for each in ys])
    integers = [precision_name(name) for name in names if operations(name) == "OP/s"]
    unit = f"{prefix}FLOP/s" + (f" ({', '.join(integers)}: {prefix}OP/s)" if integers else "")
    axes.set_xlabel("Arithmetic intensity (FLOP/byte, each matrix moved once)")
    axes.set_ylabel(unit)
    draw_roofs(axes, compute, memory, scale)
    if memory:
        _name_slope(axes, memory, scale)
    for name in names:
        its = [point for point in found if point.row.precision == name]
        _draw_points(axes, its, *looks[name], scale)
    label_column(axes, labels)
    return page.figure


def _fastest(rows: Sequence[Row]) -> list[Row]:
    return [row for each in by_precision(rows).values() for row in fastest(each)]


def _problem(row: Row) -> tuple[str, str, str]:
    return row.precision, row.layout, row.shape


def _roofs(record: Record, found: Sequence[Point]) -> list[Roof]:
    names = by_precision(point.row for point in found) or dict.fromkeys(record.precision_names)
    return [roof for name in names for roof in compute_roofs(record, name)]


def _label(
    name: str,
    found: Sequence[Point],
    compute: Sequence[Roof],
    looks: dict[str, tuple[str, str]],
    prefix: str,
) -> Label:
    """Of a precision: at its peak, or where none is known at its fastest row."""
    roof = next((roof for roof in compute if roof.ceiling.precision == name), None)
    best = max(rate(p.row) for p in found if p.row.precision == name)
    peak = f"  {significant(scaled(roof.rate, prefix))}" if roof else ""
    y = scaled(roof.rate if roof else best, prefix)
    color, marker = looks[name]
    return Label(precision_name(name) + peak, y, None, color, marker)


def _draw_points(axes: Axes, its: Sequence[Point], color: str, marker: str, scale: float) -> None:
    """Filled ones of ours, joined from cube to cube; hollow ones of what is next to them."""
    sizes = ladder_sizes(point.row for point in its)
    ours = [point.row for point in its if point.what == OURS]
    line = [row for row in ours if row.is_cube and row.m in sizes]
    xs, ys = [row.flop_per_byte for row in line], [rate(row) / scale for row in line]
    axes.plot(xs, ys, color=color, linewidth=0.8, alpha=0.6, zorder=2)
    there = {_problem(row): row for row in ours}
    for point in its:
        x, y = point.row.flop_per_byte, rate(point.row) / scale
        is_ours = point.what == OURS
        style = {"markersize": 5.5, "markerfacecolor": color, "markeredgewidth": 0, "zorder": 4}
        if not is_ours:
            style = {
                "markersize": 9,
                "markerfacecolor": "none",
                "markeredgewidth": 1.1,
                "zorder": 3,
            }
        style |= {"marker": marker, "color": color, "markeredgecolor": color}
        axes.plot(x, y, clip_on=False, **style)
        if point.what == OLD:
            end = x, rate(there[_problem(point.row)]) / scale
            if abs(in_points(axes, *end)[1] - in_points(axes, x, y)[1]) > 6:
                style = {"arrowstyle": "-|>,head_length=0.35,head_width=0.18", "color": color}
                axes.annotate("", end, (x, y), arrowprops=style, zorder=3)


def _name_slope(axes: Axes, memory: Sequence[Roof], scale: float) -> None:
    """The bandwidth of DRAM above its slope."""
    slope, prefix = memory[0].width / scale, prefix_for([memory[0].width])
    left = max(axes.get_xlim()[0], axes.get_ylim()[0] / slope)
    (x, y), (x10, y10) = (in_points(axes, each, each * slope) for each in (left, 10 * left))
    angle = math.atan2(y10 - y, x10 - x)
    measured = f" (measured {significant(scaled(memory[1].width, prefix))})" if memory[1:] else ""
    text = f"{roof_name(memory[0].ceiling.name)} {quantity(memory[0].width, 'B/s')}{measured}"
    looks = {"rotation": math.degrees(angle), "rotation_mode": "anchor", "size": LABEL_SIZE}
    place = {"xytext": (10, 10 * math.tan(angle) + 4), "textcoords": "offset points"}
    axes.annotate(text, (left, left * slope), va="bottom", color=INK, **place, **looks)


def _legend(record: Record, versus: Record | None, found: Sequence[Point]) -> list[Line2D]:
    if not found:
        return []
    filled = {"linestyle": "none", "marker": "o", "color": PALE, "markersize": 5}
    hollow = {**filled, "markerfacecolor": "none", "markersize": 8}
    if versus is not None:
        return [
            Line2D([], [], label=f"new: {run_name(record)}", **filled),
            Line2D([], [], label=f"old: {run_name(versus)}", **hollow),
        ]
    entries = [Line2D([], [], label=OURS, **filled)]
    if any(point.what == THEIRS for point in found):
        entries.append(Line2D([], [], label=THEIRS, **hollow))
    return entries


def _notes(record: Record, versus: Record | None, found: Sequence[Point]) -> list[str]:
    remarks = versus_notes(record, versus) if versus else []
    if versus:
        remarks.append("Peaks are those of the new run; an arrow leads to it.")
    names = list(by_precision(point.row for point in found))
    if any(compute_roofs(record, name) for name in names):
        remarks.append("Numbers on the right: the peak of each precision.")
    return remarks + unknown_roofs(record, names or record.precision_names)
