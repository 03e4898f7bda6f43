import itertools
import random

import pytest

from gemm_report.figures.page import Page, spread
from gemm_report.record import Record


def test_labels_that_have_room_stay_where_they_want_to_be() -> None:
    assert spread([30.0, 10.0, 20.0], gap=10, high=100) == [30, 10, 20]


@pytest.mark.parametrize("wanted", [[50.0] * 25, [0.0] * 25, [100.0] * 25])
def test_25_labels_on_one_point_are_apart_and_inside(wanted: list[float]) -> None:
    places = sorted(spread(wanted, gap=4, high=100))
    assert all(b - a >= 4 - 1e-9 for a, b in itertools.pairwise(places))
    assert places[0] >= 0
    assert places[-1] <= 100


def test_labels_keep_their_order_and_take_the_nearest_places() -> None:
    chance = random.Random(1)
    wanted = [chance.gauss(50, 5) for _ in range(25)]
    places = spread(wanted, gap=3, high=100)
    order = sorted(range(25), key=lambda i: wanted[i])
    assert order == sorted(range(25), key=lambda i: places[i])
    assert all(places[b] - places[a] >= 3 - 1e-9 for a, b in itertools.pairwise(order))
    # No pool of labels comes nearer to its wishes by moving as one: it is centred on them.
    assert sum(places) == pytest.approx(sum(wanted))


def test_too_many_labels_are_refused() -> None:
    with pytest.raises(ValueError, match="need"):
        spread([1.0, 2.0, 3.0], gap=10, high=15)


def test_a_page_grows_with_its_notes_and_its_legend(gpu: Record) -> None:
    plain = Page(gpu, "figure", [], 3.0).figure.get_size_inches()
    noted = Page(gpu, "figure", ["a note", "another"], 3.0).figure.get_size_inches()
    assert noted[0] == plain[0]
    assert noted[1] > plain[1]
