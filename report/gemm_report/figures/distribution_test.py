import dataclasses

import pytest

from gemm_report.figures.distribution import chosen, table
from gemm_report.figures.write import drawings
from gemm_report.figures.write_test import check_text, drawn, texts
from gemm_report.record import Record


def with_samples(record: Record, *seconds: float, held: tuple[bool, ...] = ()) -> Record:
    row = next(row for row in record.rows if row.status == "timed")
    row = dataclasses.replace(row, samples_seconds=seconds, samples_throttled=held)
    return dataclasses.replace(record, rows=(row,))


def test_quartiles_are_those_of_the_samples(gpu: Record) -> None:
    (samples,) = chosen(with_samples(gpu, 9.0, 10.0, 8.0, 12.0, 11.0))
    assert (samples.low, samples.high) == (pytest.approx(-0.1), pytest.approx(0.1))
    assert min(samples.away) == pytest.approx(-0.2)


def test_the_rows_that_vary_most_are_shown(h200: Record) -> None:
    shown = chosen(h200)
    assert len(shown) == 12
    rows = [s.row for s in shown]
    rest = dataclasses.replace(h200, rows=tuple(row for row in h200.rows if row not in rows))
    least = min(samples.spread for samples in shown)
    others = [s for s in chosen(rest) if s.row.m == 4096]
    assert others
    assert all(samples.spread <= least for samples in others)


def test_throttled_samples_are_crosses(gpu: Record) -> None:
    held = (False, True, True, False, False)
    record = with_samples(gpu, 9.0, 10.0, 10.5, 9.5, 10.0, held=held)
    (axes,) = drawn("distribution", record).axes
    crosses = [line for line in axes.lines if line.get_marker() == "x"]
    assert sorted(float(x) for line in crosses for x in line.get_xdata()) == [0, pytest.approx(5)]
    assert [row["throttled"] for row in table(record)] == list(held)
    unwatched = with_samples(gpu, 9.0, 10.0, 10.5, 9.5, 10.0)
    assert {row["throttled"] for row in table(unwatched)} == {None}
    said = " ".join(text for text, _ in texts(drawn("distribution", unwatched)))
    assert "Throttling was not observed." in said


def test_a_sample_far_away_is_marked_at_the_edge_and_counted(gpu: Record) -> None:
    record = with_samples(gpu, *[10.0, 10.1, 9.9, 10.05, 9.95] * 4, 40.0)
    figure = drawn("distribution", record)
    (axes,) = figure.axes
    assert axes.get_xlim()[1] < 20
    (outside,) = [line for line in axes.lines if line.get_marker() == ">"]
    assert float(outside.get_xdata()[0]) == pytest.approx(axes.get_xlim()[1])
    assert "1" in [text for text, _ in texts(figure)]


def test_equal_samples_can_be_drawn(gpu: Record) -> None:
    check_text(drawn("distribution", with_samples(gpu, *[1e-3] * 7)))


def test_few_samples_have_no_distribution(gpu: Record) -> None:
    assert "distribution" not in drawings(with_samples(gpu, 1.0, 2.0, 3.0, 4.0))
