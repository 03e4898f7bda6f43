"""What a product costs: a bar for each kernel by the power that the card said it drew."""

from collections.abc import Mapping, Sequence

from matplotlib.figure import Figure

from gemm_report.figures.bars.bars import Line, bars
from gemm_report.figures.marks import mark, notes
from gemm_report.figures.palette import Look
from gemm_report.ladder.rows import drawn_rows, precisions
from gemm_report.ladder.rungs import ladder_size, rate
from gemm_report.record import Record, Row
from gemm_report.writing.quantity import significant

_HEAD = ["GFLOP/s per W", "J per product", "W", "ms"]


def groups(record: Record) -> list[list[Row]]:
    """The rows of each precision at the ladder's size whose power is known."""
    rows = drawn_rows(record)
    found = []
    for precision in precisions(rows):
        its_rows = [row for row in rows if row.precision == precision]
        size = ladder_size(its_rows)
        known = [r for r in its_rows if r.is_cube and r.m == size and power(r)]
        found += [known] if known else []
    return found


def power(row: Row) -> float:
    """W, the median while it was timed; 0 where the record does not say."""
    return row.power_w or 0


def flop_per_joule(row: Row) -> float:
    """The same number as FLOP/s for each W."""
    return rate(row) / power(row)


def table(record: Record) -> list[dict[str, object]]:
    """The plotted data."""
    return [
        {
            "kernel": row.label,
            "precision": row.precision,
            "size": row.size,
            "power_w": power(row),
            "seconds": row.seconds and row.seconds.median,
            "flop_per_joule": flop_per_joule(row),
            "joules": row.joules,
        }
        for rows in groups(record)
        for row in rows
    ]


def draw(record: Record, looks: Mapping[str, Look]) -> Figure:
    """A panel for each precision: they differ too much for one axis."""
    found = groups(record)
    remarks = _notes([row for rows in found for row in rows])
    lines = [[_line(row) for row in rows] for rows in found]
    page, plots = bars(record, "GEMM energy", remarks, _HEAD, lines, above=0.5, below=0.55)
    for rows, axes in zip(found, plots, strict=True):
        values = [flop_per_joule(row) / 1e9 for row in rows]
        axes.set_xlim(0, 1.03 * max(values))
        axes.set_xlabel("GFLOP/s per W")
        axes.set_title(f"{rows[0].precision} at {rows[0].size}")
        for y, (row, value) in enumerate(zip(rows, values, strict=True)):
            axes.barh(y, value, height=0.72, zorder=2, **looks[row.label].bar)
    return page.figure


def _line(row: Row) -> Line:
    cells = (
        significant(flop_per_joule(row) / 1e9) + mark(row),
        significant(row.joules or 0),
        f"{power(row):.0f}",
        significant(1e3 * (row.seconds.median if row.seconds else 0)),
    )
    return Line(row.label, cells, bold=row.is_library)


def _notes(rows: Sequence[Row]) -> list[str]:
    return [
        *notes(rows),
        "By the median power of the whole board while the row was timed; joules are that power "
        "times the median of one launch. More products for each joule is better.",
    ]
