import dataclasses

import pytest

from gemm_report.conftest import clocks
from gemm_report.guideline import sentence
from gemm_report.notes import mark, notes, settings, slowed
from gemm_report.record import UNCERTAIN, Departure, Record, Row

DRIFT = Departure("clock-drift", 0.0116, 0.005, doubt=True)
FEW = Departure("few-launches", 162.0, 1000.0)


def row_with(gpu: Record, share: float | None, *departures: Departure) -> Row:
    held = clocks(None, None, share, "power cap")
    return dataclasses.replace(gpu.rows[0], clocks=held, departures=departures)


def test_a_row_is_marked_for_what_was_seen(gpu: Record) -> None:
    marks = [mark(row_with(gpu, share, *found)) for share in (None, 0.0, 0.5) for found in
             ((), (FEW,), (FEW, DRIFT))]  # fmt: skip
    assert marks == ["", "", " *", "", "", " *", " †", " †", " *†"]


WIDE = [Departure(UNCERTAIN, share, doubt=True) for share in (0.0054, 1.21, 0.02)]
FIVE = [Departure(f"some-{each}", None, doubt=True) for each in "abcde"]
DRIFTED = "* In doubt: the SM clock changed by 1.2 % during the samples"


@pytest.mark.parametrize(
    ("share", "departures", "said"),
    [
        (0.0, [FEW], []),
        (1.0, [DRIFT, FEW], ["† Clocks limited by: power cap.", f"{DRIFTED}."]),
        (0.0, FIVE, ["* In doubt: some a; some b; some c; and 2 more."]),
        (0.0, [DRIFT, *WIDE], [f"{DRIFTED}; the interval of the median is 0.54 to 120 % wide."]),
        (0.0, WIDE[:1], ["* In doubt: the interval of the median is 0.54 % wide."]),
    ],
)
def test_every_mark_is_explained_once(
    gpu: Record, share: float, departures: list[Departure], said: list[str]
) -> None:
    assert notes([row_with(gpu, share, *departures)] * 2) == said


def test_settings_are_said_once_a_run(gpu: Record) -> None:
    timed = gpu.rows_with("timed")
    rows = [dataclasses.replace(row, departures=(FEW,)) for row in timed]
    said = "timed for 162 launches only (of at least 1,000)"
    assert settings(dataclasses.replace(gpu, rows=tuple(rows))) == said
    rows[0] = dataclasses.replace(rows[0], departures=(DRIFT,))
    told = settings(dataclasses.replace(gpu, rows=tuple(rows)))
    assert told == f"{said} ({len(rows) - 1} of {len(rows)} results)"


def test_a_stale_reason_is_no_throttling(gpu: Record) -> None:
    row = dataclasses.replace(gpu.rows[0], clocks=clocks(1.3e9, None, 0.9, "power cap"))
    assert slowed(gpu, row)
    for hertz, share in ((1.3e9, 0.3), (2.5e9, 0.9)):
        held = clocks(hertz, None, share, "power cap")
        assert not slowed(gpu, dataclasses.replace(row, clocks=held))


@pytest.mark.parametrize(
    ("departure", "said"),
    [
        (FEW, "timed for 162 launches only (of at least 1,000)"),
        (Departure("few-launches", 162.0), "timed for 162 launches only"),
        (Departure("short-warm-up", 2.0, 3.0), "may oscillate longer (for 3 s)"),
        (Departure("cached-operands", 49e6, 105e6), "sets of 49 MB do not exceed twice the"),
        (Departure(UNCERTAIN, 0.018, 0.002), "is 1.8 % wide, the target 0.2 %"),
        (Departure("other-clock", -0.012), "samples is -1.2 % from that"),
        (Departure("few-launches", None), "few launches"),
        (Departure("of-another-program", 3.0, 4.0), "of another program"),
    ],
    ids=lambda each: each.code if isinstance(each, Departure) else None,
)
def test_a_deviation_is_a_sentence(departure: Departure, said: str) -> None:
    assert said in sentence(departure)
