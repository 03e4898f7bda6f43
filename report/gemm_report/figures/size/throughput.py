"""Rate against size: a panel for each precision, a line for each kernel, the peak on top."""

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from gemm_report.figures.marks import notes
from gemm_report.figures.page import Label, label_column, panels, unknown_roofs
from gemm_report.figures.palette import Look, legend_text, looks
from gemm_report.figures.roofline.roofs import ROOF_COLOR
from gemm_report.figures.size.over_size import (
    HEIGHT,
    draw_lines,
    hollow_note,
    kernel_labels,
    place,
    standouts,
)
from gemm_report.ladder.rows import by_precision, drawn_rows, headlines, ladder_sizes
from gemm_report.ladder.rungs import rate
from gemm_report.record import Record, Row
from gemm_report.writing.names import operations, precision_name
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


def draw(record: Record) -> Figure:
    """Throughput against problem size, with the device's peak."""
    groups = list(by_precision(drawn_rows(record)).values())
    named = [headlines(rows) for rows in groups]
    shown = [looks(rows) for rows in named]
    prefixes = [prefix_for([*map(rate, rows), _peak(record, rows)]) for rows in groups]
    labels = [_labels(record, *each) for each in zip(named, shown, prefixes, strict=True)]
    remarks = [
        legend_text(*shown),
        *notes(standouts(named, shown)),
        *hollow_note(drawn_rows(record)),
    ]
    if any(_memory_bound(record, group) for group in groups):
        remarks.append("Dotted: the roofline at that size, where DRAM limits it.")
    remarks += unknown_roofs(record, [rows[0].precision for rows in groups])
    page, plots = panels(record, "throughput", remarks if groups else [], labels, HEIGHT)
    for axes, group, its, prefix, its_labels in zip(
        plots, groups, shown, prefixes, labels, strict=True
    ):
        _draw_panel(axes, record, group, its, prefix)
        label_column(axes, its_labels)
    return page.figure


def _draw_panel(
    axes: Axes, record: Record, rows: list[Row], its: dict[str, Look], prefix: str
) -> None:
    precision = rows[0].precision
    peak = scaled(_peak(record, rows), prefix)
    fastest = max(scaled(rate(row), prefix) for row in rows)
    axes.set_title(f"{precision_name(precision)}, {prefix}{operations(precision)}")
    axes.set_ylim(0, max(peak, 1.08 * fastest if fastest > 0.98 * peak else 0))
    if peak:
        axes.axhline(peak, color=ROOF_COLOR, linewidth=1.8, clip_on=False, zorder=1)
    if at_size := _memory_bound(record, rows):
        xs = sorted(at_size)
        ys = [scaled(at_size[x], prefix) for x in xs]
        axes.plot(xs, ys, color=ROOF_COLOR, linewidth=1, linestyle=(0, (1, 1.5)), zorder=1)
    draw_lines(axes, rows, its, lambda row: scaled(rate(row), prefix))


def _labels(record: Record, rows: list[Row], its: dict[str, Look], prefix: str) -> list[Label]:
    def height(row: Row) -> float:
        return scaled(rate(row), prefix)

    found = kernel_labels(rows, its, lambda row: significant(height(row)), height)
    for roof in record.compute_roofs(rows[0].precision)[:1]:
        y = scaled(roof.flop_per_second or 0, prefix)
        found.append(Label(f"peak  {significant(y)}", y, color=ROOF_COLOR, bold=True))
    return found


def _peak(record: Record, rows: Sequence[Row]) -> float:
    roofs = record.compute_roofs(rows[0].precision)
    return (roofs[0].flop_per_second or 0) if roofs else 0


def _memory_bound(record: Record, rows: Sequence[Row]) -> dict[int, float]:
    """The roofline at each size of the line, where DRAM limits one of them."""
    sizes = ladder_sizes(rows)
    found = {row.m: row.roof.flop_per_second for row in rows if row.m in sizes and row.roof}
    is_bound = len(found) > 1 and min(found.values()) < 0.999 * _peak(record, rows)
    return found if is_bound else {}
