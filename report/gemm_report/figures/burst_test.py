import dataclasses

import pytest

from gemm_report.figures.burst import pairs_of, table
from gemm_report.figures.conftest import RESULTS
from gemm_report.figures.write import Choice, drawings
from gemm_report.figures.write_test import check_text, drawn, texts
from gemm_report.record import Record, read_record

FOLDER = RESULTS / "nvidia-h200"


@pytest.fixture(scope="module")
def settled() -> Record:
    return read_record(FOLDER / "20261121T073701Z-e00744316788.json")


@pytest.fixture(scope="module")
def burst() -> Record:
    return read_record(FOLDER / "20261121T074230Z-e00744316788.json")


def test_either_record_may_be_the_burst(settled: Record, burst: Record) -> None:
    cases = pairs_of(settled, burst)
    assert len(cases) == 4
    assert [case.kept for case in pairs_of(burst, settled)] == [case.kept for case in cases]
    assert {case.burst.shape for case in cases} == {"8192x8192x8192"}
    assert all(0.8 < case.kept < 1 for case in cases), "an H200 at its power cap"


def test_two_records_of_one_state_have_no_figure(settled: Record, burst: Record) -> None:
    assert "burst" in drawings(settled, Choice(versus=burst))
    assert "burst" not in drawings(settled, Choice(versus=settled))
    assert "burst" not in drawings(settled)


def test_marks_stand_at_the_shares_of_the_roof(settled: Record, burst: Record) -> None:
    figure = drawn("burst", settled, Choice(versus=burst))
    check_text(figure)
    (axes,) = figure.axes
    marks = [line for line in axes.lines if line.get_marker() == "o"]
    hollow = [float(m.get_xdata()[0]) for m in marks if m.get_markerfacecolor() == "white"]
    rows = table(settled, burst)
    assert hollow == [pytest.approx(100 * float(str(row["burst_of_roof"]))) for row in rows]
    assert len(marks) == 2 * len(rows)
    said = [text for text, _ in texts(figure)]
    assert "e00744316788, 2026-11-21 07:42, burst" in said
    assert "83.8 %" in said


def test_without_roofs_the_burst_is_100_percent(settled: Record, burst: Record) -> None:
    def bare(record: Record) -> Record:
        rows = tuple(dataclasses.replace(row, of_roof_nominal=None) for row in record.rows)
        return dataclasses.replace(record, rows=rows)

    (axes,) = drawn("burst", bare(settled), Choice(versus=bare(burst))).axes
    marks = [line for line in axes.lines if line.get_marker() == "o"]
    hollow = {float(m.get_xdata()[0]) for m in marks if m.get_markerfacecolor() == "white"}
    assert hollow == {100.0}
