"""Energy efficiency: a bar for each kernel, by the power that the driver reported."""

from matplotlib.figure import Figure

from gemm_report.figures.bars import Line, bars
from gemm_report.figures.marks import mark, notes
from gemm_report.figures.palette import legend_text, looks
from gemm_report.record import Record, Row, rate
from gemm_report.rows import by_precision, drawn_rows, facts, ladder_size
from gemm_report.text import operations, precision_name, significant

_HEAD = ["GFLOP/J", "J per GEMM", "W", "ms"]


def groups(record: Record) -> list[list[Row]]:
    """The rows of each precision at the ladder's size whose power is known."""
    found = []
    for its_rows in by_precision(drawn_rows(record)).values():
        size = ladder_size(its_rows)
        known = [r for r in its_rows if r.is_cube and r.m == size and r.power_w]
        found += [known] if known else []
    return found


def flop_per_joule(row: Row) -> float:
    """The same number as FLOP/s for each W."""
    return rate(row) / row.power_w


def table(record: Record) -> list[dict[str, object]]:
    """The plotted data."""
    return [
        facts(row, "precision", "size", "power_w", seconds=row.seconds.median)
        | {"flop_per_joule": flop_per_joule(row), "joules": row.joules}
        for rows in groups(record)
        for row in rows
    ]


def draw(record: Record) -> Figure:
    """Energy efficiency of each kernel, by precision."""
    found = groups(record)
    shown = [looks(rows) for rows in found]
    remarks = [
        legend_text(*shown),
        *notes(row for rows in found for row in rows),
        "By the median power of the whole board while a row was timed. J per GEMM is that power "
        "times the median time. Higher GFLOP/J is better.",
    ]
    lines = [[_line(row) for row in rows] for rows in found]
    page, plots = bars(record, "energy efficiency", remarks, _HEAD, lines)
    for rows, its, axes in zip(found, shown, plots, strict=True):
        values = [flop_per_joule(row) / 1e9 for row in rows]
        axes.set_xlim(0, 1.03 * max(values))
        axes.set_xlabel(f"G{operations(rows[0].precision)[:-2]}/J")
        axes.set_title(f"{precision_name(rows[0].precision)} at {rows[0].size}")
        for y, (row, value) in enumerate(zip(rows, values, strict=True)):
            axes.barh(y, value, height=0.72, zorder=2, **its[row.label].bar)
    return page.figure


def _line(row: Row) -> Line:
    cells = (
        significant(flop_per_joule(row) / 1e9) + mark(row),
        significant(row.joules),
        f"{row.power_w:.0f}",
        significant(1e3 * row.seconds.median),
    )
    return Line(row.label, cells, bold=row.is_library)
