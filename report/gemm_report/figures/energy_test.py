import dataclasses

import pytest

from gemm_report.conftest import clocks
from gemm_report.figures.energy import flop_per_joule, groups, table
from gemm_report.figures.write import drawings
from gemm_report.figures.write_test import drawn, texts
from gemm_report.record import Energy, Record, Row, Seconds


def test_a_gemm_costs_power_times_time(gpu: Record) -> None:
    row = dataclasses.replace(
        gpu.rows[0],
        flop_per_second=70e12,
        seconds=Seconds(2e-3, 2e-3, 2e-3, 2e-3),
        clocks=clocks(power_w=700.0),
    )
    assert row.joules == pytest.approx(1.4)
    assert flop_per_joule(row) == pytest.approx(1e11)


def test_power_is_that_of_a_settled_stretch(gpu: Record) -> None:
    def row(energy: Energy | None, readings: int) -> Row:
        slow_sensor = dataclasses.replace(clocks(power_w=442.0), readings=readings)
        return dataclasses.replace(gpu.rows[0], clocks=slow_sensor, energy=energy)

    measured = Energy(watts=700.0, seconds=0.6, changes=6, why_not=None)
    assert row(measured, 5).power_w == 700.0
    short = Energy(watts=None, seconds=0.1, changes=0, why_not="too short")
    assert row(short, 100).power_w is None
    assert row(short, 100).joules is None
    # Earlier records.
    assert row(None, 5).power_w is None
    assert row(None, 100).power_w == 442.0


def test_bars_are_those_of_the_ladders_size(h200: Record) -> None:
    assert {row["size"] for row in table(h200)} == {"4096"}
    found = [[row.precision for row in rows] for rows in groups(h200)]
    assert [len(set(precisions)) for precisions in found] == [1] * len(found)
    figure = drawn("energy", h200)
    titles = [axes.get_title(loc="left") for axes in figure.axes]
    assert titles[:3] == ["FP32 at 4096", "TF32 at 4096", "FP32 as 3×TF32 at 4096"]
    rows = [row for row in table(h200) if row["precision"] == "f32"]
    lengths = [patch.get_width() for patch in figure.axes[0].patches]
    assert lengths == [pytest.approx(float(str(row["flop_per_joule"])) / 1e9) for row in rows]
    said = [text for text, _ in texts(figure)]
    assert "J per GEMM" in said


def test_a_precision_of_libraries_alone_has_its_bars(h200: Record) -> None:
    rows = [row for row in table(h200) if row["precision"] == "tf32"]
    assert {row["kernel"] for row in rows} >= {"cuBLAS/math:default"}


def test_without_power_there_is_no_figure(cpu: Record, epyc: Record, h200: Record) -> None:
    assert "energy" not in {*drawings(cpu), *drawings(epyc)}
    rows = tuple(dataclasses.replace(row, clocks=None) for row in h200.rows)
    assert "energy" not in drawings(dataclasses.replace(h200, rows=rows))
    assert "energy" in drawings(h200)
