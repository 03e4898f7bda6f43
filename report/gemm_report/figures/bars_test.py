import pytest

from gemm_report.figures.bars import Line, bars
from gemm_report.record import Record

HEAD = ("rate", "of all the rest")
LINES = [Line("one", ("1.00", "10 %")), Line("another, with a long name", ("22.5", "100 %"), True)]


def test_names_and_figures_stand_level_with_their_bars(gpu: Record) -> None:
    _, (axes,) = bars(gpu, "bars", [], HEAD, [LINES])
    at = {text.get_text(): text.get_position() for text in axes.texts}
    for line in LINES:
        assert {at[each][1] for each in line.cells} == {at[line.name][1]}
        assert at[line.name][0] < 0 < 1 < at[line.cells[0]][0] < at[line.cells[1]][0]
    middle = axes.transLimits.transform((0, 1))[1]
    assert at[LINES[1].name][1] == pytest.approx(middle)
    assert at["rate"][1] > 1


def test_room_is_for_the_longest_and_panels_stand_above_each_other(gpu: Record) -> None:
    def size(head: tuple[str, str], panels: list[list[Line]]) -> tuple[float, float]:
        width, height = bars(gpu, "bars", [], head, panels, pitch=0.3)[0].figure.bbox.size
        return width, height

    one, both = size(HEAD, [LINES[:1]]), size(HEAD, [LINES])
    assert one[0] == pytest.approx(both[0]), "a page is as wide as it always is"
    assert size(("rate", "of all the rest" * 9), [LINES])[0] > both[0], "unless there is no room"
    assert both[1] - one[1] == pytest.approx(0.3 * 100, abs=1)
    _, (above, below) = bars(gpu, "bars", [], HEAD, [LINES, LINES])
    assert above.get_position().y0 > below.get_position().y1
