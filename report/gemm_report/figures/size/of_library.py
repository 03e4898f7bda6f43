"""Share of the fastest library against size: how far each rung is from what one would install."""

from collections.abc import Mapping

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from gemm_report.figures.marks import notes
from gemm_report.figures.page import INK, Label, label_column
from gemm_report.figures.palette import Look
from gemm_report.figures.panels import panels
from gemm_report.figures.size.over_size import PLOT, draw_lines, hollow_note, kernel_labels, place
from gemm_report.ladder.rows import drawn_rows, headlines, ladder_sizes, precisions
from gemm_report.record import Record, Row
from gemm_report.writing.quantity import percent


def rows_of(record: Record) -> list[Row]:
    """Our kernels that have a library beside them."""
    return [row for row in drawn_rows(record) if row.of_library and not row.is_library]


def table(record: Record) -> list[dict[str, object]]:
    """The plotted data."""
    return [
        {
            "kernel": row.label,
            "precision": row.precision,
            "shape": row.shape,
            "size": place(row),
            "of_library": row.of_library,
            "library": row.library,
        }
        for row in rows_of(record)
    ]


def draw(record: Record, looks: Mapping[str, Look]) -> Figure:
    """A panel for each precision; at 100 % a kernel is as fast as the fastest library there."""
    rows = rows_of(record)
    groups = [[row for row in rows if row.precision == p] for p in precisions(rows)]
    labels = [_labels(group, looks) for group in groups]
    remarks = [
        *notes(headlines(rows)),
        *hollow_note(rows),
        "100 % is the fastest library on each problem.",
    ]
    page, plots = panels(record, "GEMM, percent of library", remarks, labels, PLOT)
    for axes, group, its_labels in zip(plots, groups, labels, strict=True):
        _draw_panel(axes, group, looks)
        label_column(axes, its_labels)
    return page.figure


def _draw_panel(axes: Axes, rows: list[Row], looks: Mapping[str, Look]) -> None:
    axes.set_title(rows[0].precision)
    axes.set_ylabel("% of the fastest library")
    axes.set_ylim(0, max(105, *(1.05 * _height(row) for row in rows)))
    axes.axhline(100, color=INK, linewidth=1, linestyle="--", zorder=1)
    draw_lines(axes, rows, ladder_sizes(rows), looks, _height)


def _labels(rows: list[Row], looks: Mapping[str, Look]) -> list[Label]:
    named = headlines(rows)
    libraries = ", ".join(dict.fromkeys(filter(None, (row.library for row in named))))
    kernels = kernel_labels(named, looks, lambda row: percent(row.of_library), _height)
    return [*kernels, Label(libraries, None, 100, INK)]


def _height(row: Row) -> float:
    return 100 * (row.of_library or 0)
