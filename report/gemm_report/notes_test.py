import dataclasses

from gemm_report.conftest import clocks
from gemm_report.notes import mark, notes
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
    assert mark(row_with(gpu, 0.01)) == " †"
    assert mark(row_with(gpu, 0.0, "hot cache")) == " *"
    assert mark(row_with(gpu, 0.5, "hot cache")) == " *†"


def test_every_mark_is_explained_once(gpu: Record) -> None:
    assert notes([gpu.rows[0]]) == []
    throttled, deviates = notes([row_with(gpu, 1.0, "hot cache"), row_with(gpu, 1.0, "hot cache")])
    assert throttled == "† Clocks limited by: power cap."
    assert deviates == "* Deviates from NVIDIA's measurement guideline: hot cache."


def test_many_deviations_are_counted(gpu: Record) -> None:
    (note,) = notes([row_with(gpu, 0.0, *"abcde")])
    assert note.endswith("guideline: a; b; c; and 2 more.")


def test_how_uncertain_medians_are_is_one_deviation(gpu: Record) -> None:
    known = [
        Departure(UNCERTAIN, share, f"median known to {100 * share:.2g} % only")
        for share in (0.0054, 1.21, 0.02)
    ]
    (note,) = notes([row_with(gpu, 0.0, "hot cache", *known)])
    assert note.endswith("guideline: hot cache; 50 % interval of the median 0.54 to 120 % wide.")
    (note,) = notes([row_with(gpu, 0.0, known[0])])
    assert note.endswith("guideline: 50 % interval of the median 0.54 % wide.")
