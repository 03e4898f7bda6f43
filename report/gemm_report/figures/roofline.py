"""The roofline: rate against FLOP for each byte if every matrix moves once, all in one panel."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from gemm_report.figures.page import Label, label_column, legend_above, new_figure
from gemm_report.figures.palette import PALE, PRECISIONS
from gemm_report.figures.roofs import (
    compute_roofs,
    draw_roofs,
    legend,
    memory_roofs,
    set_log_axes,
)
from gemm_report.figures.versus import run_name, versus_notes
from gemm_report.notes import unknown_roofs
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

_HEIGHT = 5.2
_LEAST_SLOPE, _LEAST_RANGE = 15, 100
_FEWEST = 4  # shapes that are no cubes: cubes alone differ in their size only
_MARKERS = ("o", "s", "^", "D", "v", "P", "X", "p", "<", ">", "h", "*")
OURS, THEIRS, OLD = "fastest of our kernels", "fastest library", "old"


def has_shapes(record: Record) -> bool:
    """Whether its problems differ in what bounds them."""
    return len({row.shape for row in drawn_rows(record) if not row.is_cube}) >= _FEWEST


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
    rows: list[dict[str, object]] = [
        {"kind": "kernel", "what": what, "name": row.label}
        | {name: getattr(row, name) for name in of_row}
        | {"flop_per_second": rate(row), "of_roof": row.of_roof_nominal}
        for what, its in found.items()
        for row in its
    ]
    return rows + [
        {"kind": "roof"} | {key: each for key, each in asdict(roof).items() if key != "source"}
        for roof in [*_roofs(record, _precisions(found)), *memory_roofs(record)]
    ]


def draw(record: Record, versus: Record | None = None) -> Figure:
    """The fastest kernel and library at every size, under the peak of their precision and DRAM."""
    found = points(record, versus)
    rows = [row for its in found.values() for row in its]
    names = _precisions(found)
    compute, memory = _roofs(record, names), memory_roofs(record)
    rates = [*map(rate, rows), *(roof.flop_per_second or 0 for roof in compute)]
    prefix = prefix_for(rates)
    scale, top = 1 / scaled(1, prefix), max(rates)
    groups = by_precision(rows)
    looks = {
        name: (PRECISIONS[i % len(PRECISIONS)], _MARKERS[i % len(_MARKERS)])
        for i, name in enumerate(groups)
    }
    remarks = versus_notes(record, versus) if versus else []
    remarks += ["Peaks are those of the new run; an arrow leads to it."] if versus else []
    remarks += ["Numbers on the right: the peak of each precision."] if compute else []
    remarks += [f"Bandwidth: {_bandwidths(memory)}."] if memory else []
    remarks += unknown_roofs(record, names)
    title = "roofline, two runs" if versus else "roofline"
    figure = new_figure(record, title, remarks, _HEIGHT, part=None)
    axes = figure.subplots()
    ridges = [top / (roof.bytes_per_second or 1) for roof in memory]
    beginnings = [ridge / _LEAST_SLOPE for ridge in ridges]
    xs = [*(row.flop_per_byte for row in rows), *ridges, *beginnings]
    ys = [*rates, top / _LEAST_RANGE] if memory else rates
    set_log_axes(axes, xs, [each / scale for each in ys])
    integers = [precision_name(name) for name in groups if operations(name) == "OP/s"]
    unit = f"{prefix}FLOP/s" + (f" ({', '.join(integers)}: {prefix}OP/s)" if integers else "")
    axes.set_xlabel("Arithmetic intensity (FLOP/byte, each matrix moved once)")
    axes.set_ylabel(unit)
    draw_roofs(axes, compute, memory, scale)
    for name in groups:
        its = {what: [r for r in each if r.precision == name] for what, each in found.items()}
        _draw_points(axes, its, *looks[name], scale)
    handles = [*_legend(record, versus, found), *legend([*compute, *memory])]
    legend_above(axes, handles, columns=2, lines=0)
    label_column(axes, [_label(its, compute, looks[n][0], prefix) for n, its in groups.items()])
    return figure


def _fastest(rows: Sequence[Row]) -> list[Row]:
    return [row for each in by_precision(rows).values() for row in fastest(each)]


def _problem(row: Row) -> tuple[str, str, str]:
    return row.precision, row.layout, row.shape


def _precisions(found: Mapping[str, Sequence[Row]]) -> list[str]:
    return precisions(row for its in found.values() for row in its)


def _roofs(record: Record, names: Sequence[str]) -> list[Ceiling]:
    return [roof for name in names for roof in compute_roofs(record, name)]


def _bandwidths(memory: Sequence[Ceiling]) -> str:
    said = (f"{quantity(roof.bytes_per_second or 0, 'B/s')} ({roof.origin})" for roof in memory)
    return f"{roof_name(memory[0].name)} {', '.join(said)}"


def _label(rows: Sequence[Row], compute: Sequence[Ceiling], color: str, prefix: str) -> Label:
    """Of a precision: at its peak, or where none is known at its fastest row."""
    name = rows[0].precision
    peak = next((roof.flop_per_second for roof in compute if roof.precision == name), None)
    y = scaled(peak or max(map(rate, rows)), prefix)
    return Label(precision_name(name) + (f"  {significant(y)}" if peak else ""), y, color)


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
    looks: dict[str, Any] = {"marker": marker, "color": color, "clip_on": False}
    for what, its in found.items():
        for row in its:
            style: dict[str, Any] = filled if what == OURS else hollow
            x, y = row.flop_per_byte, rate(row) / scale
            axes.plot(x, y, label=f"{row.label} {row.size}", **style, **looks)
    new = {_problem(row): row for row in found[OURS]}
    for row in found.get(OLD, ()):
        begin, end = rate(row) / scale, rate(new[_problem(row)]) / scale
        if not 0.9 < end / begin < 1.1:  # a shorter one would lie under the marks
            arrow = {"arrowstyle": "-|>", "color": color}
            x = row.flop_per_byte
            axes.annotate("", (x, end), (x, begin), arrowprops=arrow, zorder=3)


def _legend(
    record: Record, versus: Record | None, found: Mapping[str, Sequence[Row]]
) -> list[Line2D]:
    filled: dict[str, Any] = {"linestyle": "none", "marker": "o", "color": PALE, "markersize": 5}
    hollow = {**filled, "markerfacecolor": "none", "markersize": 8}
    ours, beside = (
        (f"new: {run_name(record)}", f"old: {run_name(versus)}") if versus else (OURS, THEIRS)
    )
    entries = [Line2D([], [], label=ours, **filled), Line2D([], [], label=beside, **hollow)]
    return entries if versus or found[THEIRS] else entries[:1]
