import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from gemm_report.figures.bars.bars import Line, cells_width, height, names_width, write_lines

HEAD = ("rate", "of all the rest")
LINES = [Line("one", ("1.00", "10 %")), Line("another, with a long name", ("22.5", "100 %"), True)]


def test_names_and_figures_stand_level_with_their_bars() -> None:
    figure = Figure(figsize=(8, 4))
    FigureCanvasAgg(figure)
    axes = figure.add_axes((0.3, 0.2, 0.4, 0.6))
    write_lines(axes, HEAD, LINES)
    at = {text.get_text(): text.get_position() for text in axes.texts}
    for line in LINES:
        assert {at[each][1] for each in line.cells} == {at[line.name][1]}
        assert at[line.name][0] < 0 < 1 < at[line.cells[0]][0] < at[line.cells[1]][0]
    middle = axes.transLimits.transform((0, 1))[1]
    assert at[LINES[1].name][1] == pytest.approx(middle)
    assert at["rate"][1] > 1


def test_room_is_for_the_longest() -> None:
    assert names_width(LINES) > names_width(LINES[:1]) > 0
    assert cells_width(HEAD, LINES) > cells_width(("", ""), LINES) > 0
    assert height(LINES, pitch=0.3) == pytest.approx(0.6)
