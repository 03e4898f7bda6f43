import dataclasses

from gemm_report.conftest import clocks
from gemm_report.figures.marks import PEERS, mark, notes
from gemm_report.record import UNCERTAIN, Departure, Record, Row


def row_with(gpu: Record, share: float | None, *departures: str | Departure) -> Row:
    found = tuple(
        d if isinstance(d, Departure) else Departure("a-code", None, d) for d in departures
    )
    held = clocks(None, None, share, "power cap")
    return dataclasses.replace(gpu.rows[0], clocks=held, departures=found)


def test_a_row_is_marked_for_what_was_seen(gpu: Record) -> None:
    assert mark(gpu.rows[0]) == ""
    assert mark(row_with(gpu, 0.0)) == ""
    assert mark(row_with(gpu, None)) == ""
    assert mark(row_with(gpu, 0.01)) == " *"
    assert mark(row_with(gpu, 0.0, "hot cache")) == " †"
    assert mark(row_with(gpu, 0.5, "hot cache")) == " *†"


def test_every_mark_is_explained_once(gpu: Record) -> None:
    assert notes([gpu.rows[0]]) == []
    throttled, departs = notes([row_with(gpu, 1.0, "hot cache"), row_with(gpu, 1.0, "hot cache")])
    assert throttled == "* Something held the clocks down: power cap."
    assert departs == "† Departs from the measurement guideline: hot cache."


def test_many_departures_are_counted(gpu: Record) -> None:
    (note,) = notes([row_with(gpu, 0.0, *"abcde")])
    assert note.endswith("guideline: a; b; c; and 2 more.")


def test_how_well_medians_are_known_is_one_departure(gpu: Record) -> None:
    known = [
        Departure(UNCERTAIN, share, f"median known to {100 * share:.2g} % only")
        for share in (0.0054, 1.21, 0.02)
    ]
    (note,) = notes([row_with(gpu, 0.0, "hot cache", *known)])
    assert note.endswith("guideline: hot cache; medians known to 0.54 to 120 % only.")
    (note,) = notes([row_with(gpu, 0.0, known[0])])
    assert note.endswith("guideline: median known to 0.54 % only.")


def test_peers_are_explained_where_there_are_any(gpu: Record) -> None:
    peer = dataclasses.replace(gpu.rows[0], family="peer")
    assert notes([peer, gpu.rows[0], peer]) == [PEERS]
    assert notes([gpu.rows[0]]) == []
