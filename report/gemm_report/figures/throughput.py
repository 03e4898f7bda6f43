"""Rate against size: a panel for each precision, a line for each kernel, the peak on top."""

from matplotlib.figure import Figure

from gemm_report.figures.over_size import Panel, draw_panels, place
from gemm_report.figures.page import Label, unknown_roofs
from gemm_report.figures.roofs import ROOF_COLOR
from gemm_report.record import Record, Row, rate
from gemm_report.rows import by_precision, drawn_rows, facts, ladder_sizes
from gemm_report.text import operations, precision_name, prefix_for, scaled, significant


def table(record: Record) -> list[dict[str, object]]:
    """The plotted data."""
    rows = drawn_rows(record)
    sizes = ladder_sizes(rows)
    return [
        facts(row, "precision", "m", "n", "k", "flop_per_second", size=place(row))
        | {"on_line": row.is_cube and row.m in sizes}
        | {"roof_flop_per_second": row.roof and row.roof.flop_per_second}
        for row in rows
    ]


def draw(record: Record) -> Figure:
    """Throughput against problem size, with the device's peak."""
    groups = by_precision(drawn_rows(record))
    panels = [_panel(record, precision, rows) for precision, rows in groups.items()]
    remarks = unknown_roofs(record, list(groups))
    if any(panel.dotted for panel in panels):
        remarks.insert(0, "Dotted: the roofline at that size, where DRAM limits it.")
    return draw_panels(record, "throughput", panels, remarks)


def _panel(record: Record, precision: str, rows: list[Row]) -> Panel:
    roofs = record.compute_roofs(precision)
    peak = (roofs[0].flop_per_second or 0) if roofs else 0
    fastest = max(map(rate, rows))
    prefix = prefix_for([fastest, peak])

    def height(row: Row) -> float:
        return scaled(rate(row), prefix)

    level = scaled(peak, prefix)
    sizes = ladder_sizes(rows)
    at_size = {row.m: row.roof.flop_per_second for row in rows if row.m in sizes and row.roof}
    is_memory_bound = len(at_size) > 1 and min(at_size.values()) < 0.999 * peak
    return Panel(
        f"{precision_name(precision)}, {prefix}{operations(precision)}",
        rows,
        height,
        lambda row: significant(height(row)),
        max(level, 1.08 * scaled(fastest, prefix) if fastest > 0.98 * peak else 0),
        Label(f"peak  {significant(level)}", level, color=ROOF_COLOR, bold=True) if peak else None,
        {m: scaled(value, prefix) for m, value in at_size.items()} if is_memory_bound else {},
    )
