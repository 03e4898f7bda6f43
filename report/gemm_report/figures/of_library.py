"""Share of the fastest library against size."""

from matplotlib.figure import Figure

from gemm_report.figures.over_size import Panel, draw_panels, place
from gemm_report.figures.page import INK, Label
from gemm_report.record import Record, Row
from gemm_report.rows import by_precision, drawn_rows, facts
from gemm_report.text import percent, precision_name


def rows_of(record: Record) -> list[Row]:
    """Our kernels that have a library timed on the same problem."""
    return [row for row in drawn_rows(record) if row.of_library and not row.is_library]


def table(record: Record) -> list[dict[str, object]]:
    """The plotted data."""
    names = "precision", "shape", "of_library", "library"
    return [facts(row, *names, size=place(row)) for row in rows_of(record)]


def draw(record: Record) -> Figure:
    """Each kernel's speed as a share of the fastest library's on the same problem."""
    level = Label("library  100 %", 100, color=INK, bold=True)
    panels = []
    for precision, rows in by_precision(rows_of(record)).items():
        top = max(105, *(1.05 * _height(row) for row in rows))
        title = f"{precision_name(precision)}, %"
        panels.append(Panel(title, rows, _height, lambda row: percent(row.of_library), top, level))
    return draw_panels(record, "share of the fastest library", panels, [])


def _height(row: Row) -> float:
    return 100 * (row.of_library or 0)
