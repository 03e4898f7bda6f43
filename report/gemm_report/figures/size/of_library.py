"""Share of the fastest library against size."""

from matplotlib.figure import Figure

from gemm_report.figures.marks import notes
from gemm_report.figures.page import INK, Label, label_column, panels
from gemm_report.figures.palette import legend_text, looks
from gemm_report.figures.size.over_size import (
    HEIGHT,
    draw_lines,
    hollow_note,
    kernel_labels,
    place,
    standouts,
)
from gemm_report.ladder.rows import by_precision, drawn_rows, headlines
from gemm_report.record import Record, Row
from gemm_report.writing.names import precision_name
from gemm_report.writing.quantity import percent


def rows_of(record: Record) -> list[Row]:
    """Our kernels that have a library timed on the same problem."""
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


def draw(record: Record) -> Figure:
    """Each kernel's speed as a share of the fastest library's on the same problem."""
    groups = list(by_precision(rows_of(record)).values())
    named = [headlines(rows) for rows in groups]
    shown = [looks(rows) for rows in named]
    labels = [
        [
            *kernel_labels(rows, its, lambda row: percent(row.of_library), _height),
            Label("library  100 %", 100, bold=True),
        ]
        for rows, its in zip(named, shown, strict=True)
    ]
    remarks = [
        legend_text(*shown),
        *notes(standouts(named, shown)),
        *hollow_note(rows_of(record)),
    ]
    page, plots = panels(record, "share of the fastest library", remarks, labels, HEIGHT)
    for axes, group, its, its_labels in zip(plots, groups, shown, labels, strict=True):
        axes.set_title(f"{precision_name(group[0].precision)}, %")
        axes.set_ylim(0, max(105, *(1.05 * _height(row) for row in group)))
        axes.axhline(100, color=INK, linewidth=1, linestyle="--", zorder=1)
        draw_lines(axes, group, its, _height)
        label_column(axes, its_labels)
    return page.figure


def _height(row: Row) -> float:
    return 100 * (row.of_library or 0)
