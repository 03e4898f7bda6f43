"""Rate against size: a panel for each precision, a line for each kernel, the roof on top."""

from collections.abc import Mapping, Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from gemm_report.figures.marks import mark, notes
from gemm_report.figures.page import (
    ROOF_COLOR,
    Label,
    Page,
    column_height,
    column_width,
    label_column,
    roof_text,
    unknown_roof_text,
)
from gemm_report.figures.palette import Look
from gemm_report.ladder import drawn_rows, headlines, ladder_sizes, natural, precisions
from gemm_report.quantity import prefix_for, scaled, significant
from gemm_report.record import Record, Row

_PLOT_WIDTH = 3.5
_PLOT_HEIGHT = 2.9
_LEFT = 0.55  # for the ticks and the name of the y axis
_ABOVE = 0.42
_BELOW = 0.55


def table(record: Record) -> list[dict[str, object]]:
    """The plotted data."""
    rows = drawn_rows(record)
    sizes = ladder_sizes(rows)
    return [
        {
            "kernel": row.label,
            "precision": row.precision,
            "m": row.m,
            "n": row.n,
            "k": row.k,
            "size": _size(row),
            "on_line": row.is_cube and row.m in sizes,
            "flop_per_second": row.flop_per_second,
            "roof_flop_per_second": row.roof and row.roof.flop_per_second,
        }
        for row in rows
    ]


def draw(record: Record, looks: Mapping[str, Look]) -> Figure:
    """Every kernel's rate as the problem grows, and what the device could do."""
    rows = drawn_rows(record)
    panels = [[row for row in rows if row.precision == p] for p in precisions(rows)]
    prefix = prefix_for(_rates(record, rows))
    labels = [_labels(record, panel, looks, prefix) for panel in panels]

    columns = 1 if len(panels) < 2 else 2
    column_widths = [
        _LEFT + _PLOT_WIDTH + max((column_width(each) for each in labels[c::columns]), default=1)
        for c in range(columns)
    ]
    row_heights = [
        max(_PLOT_HEIGHT, *(column_height(each) for each in labels[first : first + columns]))
        for first in range(0, len(panels), columns)
    ] or [_PLOT_HEIGHT]
    page = Page(
        record,
        "GEMM throughput",
        _notes(record, rows),
        width=sum(column_widths) + 0.25 * (columns - 1),
        height=sum(row_heights) + len(row_heights) * (_ABOVE + _BELOW),
    )
    for i, (panel, its_labels) in enumerate(zip(panels, labels, strict=True)):
        line, column = divmod(i, columns)
        left = _LEFT + column * (column_widths[0] + 0.25)
        top = _ABOVE + sum(row_heights[:line]) + line * (_ABOVE + _BELOW)
        axes = page.axes(left, top, _PLOT_WIDTH, row_heights[line])
        _draw_panel(axes, record, panel, looks, prefix)
        label_column(axes, its_labels)
    if not panels:
        axes = page.axes(_LEFT, _ABOVE, _PLOT_WIDTH, _PLOT_HEIGHT)
        axes.set_axis_off()
        axes.text(0, 0.5, "No row of this record has a time.", transform=axes.transAxes)
    return page.figure


def _draw_panel(
    axes: Axes, record: Record, rows: Sequence[Row], looks: Mapping[str, Look], prefix: str
) -> None:
    precision = rows[0].precision
    sizes = ladder_sizes(drawn_rows(record))
    roofs = [scaled(c.flop_per_second or 0, prefix) for c in record.compute_roofs(precision)]
    fastest = max(scaled(rate, prefix) for rate in _rates(record, rows, roofs=False))
    axes.set_title(precision)
    axes.set_ylabel(f"{prefix}FLOP/s")
    axes.set_xlabel("m = n = k")
    axes.set_ylim(0, roofs[0] if roofs and roofs[0] >= fastest else 1.08 * fastest)
    _set_size_axis(axes, [_size(row) for row in rows])

    for roof in roofs:
        axes.axhline(roof, color=ROOF_COLOR, linewidth=2.2, clip_on=False, zorder=1)
    at_size = {row.m: row.roof.flop_per_second for row in rows if row.m in sizes and row.roof}
    if roofs and len(at_size) > 1 and scaled(min(at_size.values()), prefix) < 0.999 * min(roofs):
        xs = sorted(at_size)
        ys = [scaled(at_size[x], prefix) for x in xs]
        axes.plot(xs, ys, color=ROOF_COLOR, linewidth=1, linestyle=(0, (1, 1.5)), zorder=1)

    for label in sorted({row.label for row in rows}, key=natural):
        look = looks[label]
        line = [row for row in rows if row.label == label and row.is_cube and row.m in sizes]
        rest = [row for row in rows if row.label == label and row not in line]
        marks = {
            "label": label,
            "color": look.color,
            "marker": look.marker,
            "clip_on": False,
            "zorder": 3,
        }
        axes.plot(*_points(line, prefix), linestyle=look.line, **marks)
        axes.plot(*_points(rest, prefix), linestyle="none", markerfacecolor="white", **marks)


def _labels(
    record: Record, rows: Sequence[Row], looks: Mapping[str, Look], prefix: str
) -> list[Label]:
    largest = max(row.volume for row in headlines(rows))
    kernels = [
        Label(
            f"{row.label}  {significant(scaled(row.flop_per_second or 0, prefix))}"
            + ("" if row.volume == largest else f" at {row.size}")
            + mark(row),
            _size(row),
            scaled(row.flop_per_second or 0, prefix),
            looks[row.label].color,
            looks[row.label].marker,
        )
        for row in headlines(rows)
    ]
    roofs = [
        Label(roof_text([c]), None, scaled(c.flop_per_second or 0, prefix))
        for c in record.compute_roofs(rows[0].precision)
    ]
    return kernels + roofs


def _notes(record: Record, rows: Sequence[Row]) -> list[str]:
    sizes = ladder_sizes(rows)
    others = sorted(
        {(row.m, row.n, row.k) for row in rows if not row.is_cube or row.m not in sizes}
    )
    remarks = notes(headlines(rows))
    if others:
        names = ", ".join("x".join(map(str, shape)) for shape in others)
        remarks.append(f"Hollow: {names}; what is not a cube stands at the cube root of m·n·k.")
    if any(row.roof and row.roof.name in {c.name for c in record.memory_roofs()} for row in rows):
        remarks.append("Dotted grey: the roof at that size, where the memory's is the lower one.")
    shown = {row.precision for row in rows} | {None}
    return remarks + [unknown_roof_text(c) for c in record.unknown_roofs() if c.precision in shown]


def _rates(record: Record, rows: Sequence[Row], roofs: bool = True) -> list[float]:
    rates = [row.flop_per_second or 0 for row in rows]
    if roofs:
        for precision in precisions(rows):
            rates += [c.flop_per_second or 0 for c in record.compute_roofs(precision)]
    return rates


def _points(rows: Sequence[Row], prefix: str) -> tuple[list[float], list[float]]:
    rows = sorted(rows, key=_size)
    return [_size(row) for row in rows], [scaled(r.flop_per_second or 0, prefix) for r in rows]


def _size(row: Row) -> float:
    return row.m if row.is_cube else row.volume ** (1 / 3)


def _set_size_axis(axes: Axes, sizes: Sequence[float]) -> None:
    axes.set_xscale("log", base=2)
    low, high = min(sizes) / 1.12, max(sizes) * 1.12
    powers = [2.0**i for i in range(64) if low <= 2**i <= high]
    axes.set_xlim(low, high)
    axes.xaxis.set_major_locator(FixedLocator(powers if len(powers) > 1 else sorted(set(sizes))))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda size, _: f"{size:.0f}"))
