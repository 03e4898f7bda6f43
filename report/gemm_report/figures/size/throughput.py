"""Rate against size: a panel for each precision, a line for each kernel, the roof on top."""

from collections.abc import Mapping, Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from gemm_report.figures.marks import notes
from gemm_report.figures.page import (
    ROOF_COLOR,
    Label,
    label_column,
    roof_text,
    unknown_roof_text,
)
from gemm_report.figures.palette import Look
from gemm_report.figures.panels import panels
from gemm_report.figures.size.over_size import PLOT, draw_lines, hollow_note, kernel_labels, place
from gemm_report.ladder.rows import drawn_rows, headlines, ladder_sizes, precisions
from gemm_report.record import Record, Row
from gemm_report.writing.quantity import prefix_for, scaled, significant


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
            "size": place(row),
            "on_line": row.is_cube and row.m in sizes,
            "flop_per_second": row.flop_per_second,
            "roof_flop_per_second": row.roof and row.roof.flop_per_second,
        }
        for row in rows
    ]


def draw(record: Record, looks: Mapping[str, Look]) -> Figure:
    """Every kernel's rate as the problem grows, and what the device could do."""
    rows = drawn_rows(record)
    groups = [[row for row in rows if row.precision == p] for p in precisions(rows)]
    prefix = prefix_for(_rates(record, rows))
    labels = [_labels(record, group, looks, prefix) for group in groups]
    page, plots = panels(record, "GEMM throughput", _notes(record, rows), labels, PLOT)
    for axes, group, its_labels in zip(plots, groups, labels, strict=True):
        _draw_panel(axes, record, group, looks, prefix)
        label_column(axes, its_labels)
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
    axes.set_ylim(0, roofs[0] if roofs and roofs[0] >= fastest else 1.08 * fastest)
    for roof in roofs:
        axes.axhline(roof, color=ROOF_COLOR, linewidth=2.2, clip_on=False, zorder=1)
    at_size = {row.m: row.roof.flop_per_second for row in rows if row.m in sizes and row.roof}
    if roofs and len(at_size) > 1 and scaled(min(at_size.values()), prefix) < 0.999 * min(roofs):
        xs = sorted(at_size)
        ys = [scaled(at_size[x], prefix) for x in xs]
        axes.plot(xs, ys, color=ROOF_COLOR, linewidth=1, linestyle=(0, (1, 1.5)), zorder=1)
    draw_lines(axes, rows, sizes, looks, lambda row: scaled(row.flop_per_second or 0, prefix))


def _labels(
    record: Record, rows: Sequence[Row], looks: Mapping[str, Look], prefix: str
) -> list[Label]:
    def height(row: Row) -> float:
        return scaled(row.flop_per_second or 0, prefix)

    kernels = kernel_labels(headlines(rows), looks, lambda row: significant(height(row)), height)
    roofs = [
        Label(roof_text([c]), None, scaled(c.flop_per_second or 0, prefix))
        for c in record.compute_roofs(rows[0].precision)
    ]
    return kernels + roofs


def _notes(record: Record, rows: Sequence[Row]) -> list[str]:
    remarks = notes(headlines(rows)) + hollow_note(rows)
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
