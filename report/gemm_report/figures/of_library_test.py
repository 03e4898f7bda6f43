import dataclasses

from gemm_report.figures.of_library import rows_of, table
from gemm_report.figures.write import drawings
from gemm_report.figures.write_test import drawn, texts
from gemm_report.record import Record


def test_lines_are_shares_of_the_library_and_libraries_have_none(gpu: Record) -> None:
    rows = rows_of(gpu)
    assert rows
    assert not [row for row in rows if row.is_library]
    (axes,) = drawn("of_library", gpu).axes
    named = {row.label for row in rows}
    lines = [line for line in axes.lines if line.get_label() in named]
    drawn_heights = sorted({round(float(y), 6) for line in lines for y in line.get_ydata()})
    expected = {round(100 * float(str(row["of_library"])), 6) for row in table(gpu)}
    assert drawn_heights == sorted(expected)


def test_a_kernel_that_beats_the_library_is_inside_the_plot(gpu: Record) -> None:
    rows = tuple(
        dataclasses.replace(row, of_library=1.7) if row.kernel == "Tiled" else row
        for row in gpu.rows
    )
    figure = drawn("of_library", dataclasses.replace(gpu, rows=rows))
    assert figure.axes[0].get_ylim()[1] > 170
    assert "library  100 %" in [text for text, _ in texts(figure)]


def test_without_a_library_there_is_no_figure(cpu: Record) -> None:
    assert "of_library" not in drawings(cpu)
