import dataclasses

import pytest
from matplotlib.axes import Axes

from gemm_report.figures import OLD, OURS, THEIRS, points, table
from gemm_report.figures.roofs import ROOF_COLOR
from gemm_report.figures.write import Choice
from gemm_report.figures.write_test import check_text, drawn, texts
from gemm_report.record import Record, rate


def slower(record: Record, factor: float) -> Record:
    rows = tuple(
        dataclasses.replace(row, flop_per_second=row.flop_per_second / factor)
        if row.flop_per_second
        else row
        for row in record.rows
    )
    return dataclasses.replace(record, rows=rows, commit="fedcba9876543210")


def marks(axes: Axes, hollow: bool) -> set[tuple[float, float]]:
    return {
        (round(float(line.get_xdata()[0]), 3), round(float(line.get_ydata()[0]), 3))
        for line in axes.lines
        if line.get_marker() != "None" and (line.get_markerfacecolor() == "none") == hollow
    }


def test_there_is_one_slope_and_a_roof_for_each_precision(h200: Record) -> None:
    (axes,) = drawn("roofline", h200).axes
    grey = [line for line in axes.lines if line.get_color() == ROOF_COLOR]
    ends = [(line.get_xdata(), line.get_ydata(), line.get_linewidth()) for line in grey]
    slopes = {(round(y[0] / x[0], 2), width > 1) for x, y, width in ends if y[0] != y[1]}
    assert slopes == {(4.81, True), (4.71, False)}, "the nominal one is thick, in TB/s"
    roofs = {(round(y[0], 1), width > 1) for x, y, width in ends if y[0] == y[1]}
    thick = {y for y, is_thick in roofs if is_thick}
    assert thick == {33.5, 66.9, 164.9, 494.7, 989.4, 1978.9}
    assert (864.5, False) in roofs
    labels = [text.get_text() for text in axes.texts]
    assert {"FP32  66.9", "INT8  1979", "BF16  989"} <= set(labels)


def test_the_fastest_of_ours_and_of_the_libraries_stand_at_every_size(h200: Record) -> None:
    found = points(h200)
    for precision in ("f32", "bf16"):
        for what in (OURS, THEIRS):
            its = [row for row in found[what] if row.precision == precision]
            assert [row.m for row in its] == [512, 1020, 2048, 4096]
    best = next(row for row in found[OURS] if (row.precision, row.m) == ("f32", 4096))
    others = [r for r in h200.rows_with("timed") if (r.precision, r.m) == ("f32", 4096)]
    assert rate(best) == max(rate(row) for row in others if row.is_ours)
    (axes,) = drawn("roofline", h200).axes
    assert (round(best.flop_per_byte, 3), round(rate(best) / 1e12, 3)) in marks(axes, hollow=False)
    assert not [row for row in found[THEIRS] if row.precision == "e4m3"]


def test_only_the_precisions_that_are_shown_have_roofs(gpu: Record) -> None:
    roofs = {(row["precision"], row["name"]) for row in table(gpu) if row["kind"] == "roof"}
    assert (None, "DRAM") in roofs
    assert {precision for precision, _ in roofs} == {None, "f32", "tf32", "bf16"}


@pytest.mark.parametrize("which", ["h200", "three", "tower", "crowd", "gpu", "epyc", "bare"])
def test_two_runs_are_readable(which: str, request: pytest.FixtureRequest) -> None:
    record = request.getfixturevalue(which)
    check_text(drawn("roofline", record, Choice(versus=slower(record, 1.7))))


def test_an_arrow_leads_from_the_old_mark_to_the_new_one(ladder: Record) -> None:
    old = slower(ladder, 2)
    (axes,) = drawn("roofline", ladder, Choice(versus=old)).axes
    arrows = [text for text in axes.texts if getattr(text, "arrow_patch", None)]
    ours = points(ladder, old)[OURS]
    ends = {(round(arrow.xyann[1], 3), round(arrow.xy[1], 3)) for arrow in arrows}
    assert ends == {(round(rate(r) / 2e12, 3), round(rate(r) / 1e12, 3)) for r in ours}
    assert {y for _, y in marks(axes, hollow=True)} == {begin for begin, _ in ends}
    rates = {
        what: [row["flop_per_second"] for row in table(ladder, old) if row.get("what") == what]
        for what in (OURS, OLD)
    }
    assert [2 * float(str(each)) for each in rates[OLD]] == pytest.approx(rates[OURS])


def test_a_run_next_to_itself_has_no_arrow(ladder: Record) -> None:
    (axes,) = drawn("roofline", ladder, Choice(versus=ladder)).axes
    assert not [text for text in axes.texts if getattr(text, "arrow_patch", None)]


def test_measured_peaks_are_drawn_where_nothing_else_is_known(gpu: Record, cpu: Record) -> None:
    record = dataclasses.replace(cpu, measured_ceilings=gpu.measured_ceilings)
    said = [text for text, _ in texts(drawn("roofline", record))]
    assert "FP32  65.6" in said
    assert "DRAM 4.59 TB/s" in said
