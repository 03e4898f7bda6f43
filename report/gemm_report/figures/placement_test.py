import itertools
import random

import pytest

from gemm_report.figures.placement import freest, lanes, spread


def test_labels_that_have_room_stay_where_they_want_to_be() -> None:
    assert spread([30.0, 10.0, 20.0], gap=10, low=0, high=100) == [30, 10, 20]


@pytest.mark.parametrize("wanted", [[50.0] * 25, [0.0] * 25, [100.0] * 25])
def test_25_labels_on_one_point_are_apart_and_inside(wanted: list[float]) -> None:
    places = sorted(spread(wanted, gap=4, low=0, high=100))
    assert all(b - a >= 4 - 1e-9 for a, b in itertools.pairwise(places))
    assert places[0] >= 0
    assert places[-1] <= 100


def test_labels_keep_their_order_and_take_the_nearest_places() -> None:
    chance = random.Random(1)
    wanted = [chance.gauss(50, 5) for _ in range(25)]
    places = spread(wanted, gap=3, low=0, high=100)
    order = sorted(range(25), key=lambda i: wanted[i])
    assert order == sorted(range(25), key=lambda i: places[i])
    assert all(places[b] - places[a] >= 3 - 1e-9 for a, b in itertools.pairwise(order))
    # No pool of labels comes nearer to its wishes by moving as one: it is centred on them.
    assert sum(places) == pytest.approx(sum(wanted))


def test_too_many_labels_are_refused() -> None:
    with pytest.raises(ValueError, match="need"):
        spread([1.0, 2.0, 3.0], gap=10, low=0, high=15)


def test_text_begins_where_nothing_is_hidden_and_else_where_least_is() -> None:
    first, late = (10.0, 5.0, 1.0), (90.0, 5.0, 1.0)
    assert freest(30, (0, 100), (2, 10), []) == 0
    assert 10 < freest(30, (0, 100), (2, 10), [first, late]) < 60
    assert freest(30, (0, 100), (2, 10), [(10.0, -50.0, 1.0)]) == 0, "on the other side"
    everywhere = [(float(x), 5.0, 1.0) for x in range(0, 80, 2)]
    assert freest(30, (0, 100), (2, 10), everywhere) == pytest.approx(66, abs=6)


def test_text_that_is_too_long_begins_at_the_beginning() -> None:
    assert freest(200, (5, 100), (2, 10), [(20.0, 5.0, 1.0)]) == 5


def test_spans_that_meet_get_lanes_of_their_own_and_others_share_the_first() -> None:
    spans = [(50.0, 0.0, 10.0), (50.0, 5.0, 20.0), (50.0, 60.0, 70.0), (200.0, 0.0, 10.0)]
    assert lanes(spans, apart=8) == [0, 1, 0, 0]
    crowd = [(50.0, 0.0, float(i)) for i in range(25)]
    assert sorted(lanes(crowd, apart=8)) == list(range(25))
    assert lanes([], apart=8) == []
