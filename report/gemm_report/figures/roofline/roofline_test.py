import dataclasses
import math

import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from gemm_report.conftest import clocks
from gemm_report.figures.page import ROOF_COLOR
from gemm_report.figures.roofline.roofline import IDEAL, marks, table
from gemm_report.figures.roofline.roofs import (
    MEASURED,
    NOMINAL,
    SEEN,
    UNIT,
    compute_roofs,
    memory_roofs,
)
from gemm_report.figures.write import Choice
from gemm_report.figures.write_test import check_text, drawn, texts
from gemm_report.record import Record, Row, Traffic


def panel(figure: Figure, precision: str) -> Axes:
    (axes,) = (axes for axes in figure.axes if axes.get_title(loc="left") == precision)
    return axes


def slopes(axes: Axes) -> list[float]:
    """Bytes/s of the memory roofs that are drawn, each once."""
    grey = [line for line in axes.lines if line.get_color() == ROOF_COLOR]
    ends = [(line.get_xdata(), line.get_ydata()) for line in grey]
    return sorted(y[0] / x[0] for x, y in ends if y[0] != y[1])


def places(axes: Axes, label: str) -> dict[str, tuple[float, float]]:
    """Where the filled marks of a kernel stand, by their shape."""
    return {
        line.get_marker(): (float(line.get_xdata()[0]), float(line.get_ydata()[0]))
        for line in axes.lines
        if line.get_label() == label and line.get_markerfacecolor() != "white"
    }


def slower(record: Record, factor: float) -> Record:
    rows = tuple(
        dataclasses.replace(row, flop_per_second=row.flop_per_second / factor)
        if row.flop_per_second
        else row
        for row in record.rows
    )
    return dataclasses.replace(record, rows=rows, commit="fedcba9876543210")


def at_clock(record: Record, hertz: float) -> Record:
    rows = tuple(dataclasses.replace(row, clocks=clocks(hertz)) for row in record.rows)
    return dataclasses.replace(record, rows=rows)


def row_of(record: Record, label: str) -> Row:
    return next(r for r in record.rows if r.label == label and r.m == 4096 and r.status == "timed")


def test_every_memory_has_a_slope_and_its_name(ladder: Record) -> None:
    figure = drawn("roofline", ladder)
    found = slopes(panel(figure, "f32"))
    assert found == [
        pytest.approx(width, rel=0.01) for width in (4.59e12, 4.81e12, 9.89e12, 33.3e12)
    ]
    said = [text for text, _ in texts(figure)]
    for name in (
        "DRAM: 4.81 TB/s (queried)",
        "DRAM_read: 4.59 TB/s (measured)",
        "L2_read: 9.89 TB/s (measured at 1980 MHz)",
        "Shared_read: 33.3 TB/s (measured at 1980 MHz)",
    ):
        assert said.count(name) == 2, "once in each of two panels"


def test_a_kernel_has_a_mark_for_each_memory_at_one_height(ladder: Record) -> None:
    row = row_of(ladder, "Tiled/tile:16")
    assert row.traffic
    found = places(panel(drawn("roofline", ladder), "f32"), row.label)
    assert found == {
        "o": (pytest.approx(row.flop_per_byte), row.flop_per_second),
        "D": (pytest.approx(row.flop / row.traffic.l2_bytes), row.flop_per_second),
        "s": (pytest.approx(row.flop / row.traffic.shared_bytes), row.flop_per_second),
    }


def test_a_model_that_moves_more_than_the_ideal_has_a_mark_for_it(ladder: Record) -> None:
    row = row_of(ladder, "Naive")
    assert row.traffic
    assert [each.level for each in marks(row)] == [IDEAL, "L2"], "it uses no shared memory"
    twice = dataclasses.replace(row.traffic, dram_bytes=2 * row.flop / row.flop_per_byte)
    found = marks(dataclasses.replace(row, traffic=twice))
    assert [each.level for each in found] == [IDEAL, "DRAM", "L2"]
    assert found[1].flop_per_byte == pytest.approx(row.flop_per_byte / 2)


def test_the_roof_at_the_clock_seen_is_dashed_where_it_differs(gpu: Record) -> None:
    slow = [row for row in at_clock(gpu, 1464e6).rows if row.precision == "bf16"]
    found = {roof.how: roof for roof in compute_roofs(gpu, slow)}
    assert found[SEEN].rate == pytest.approx(0.8 * found[NOMINAL].rate)
    figure = drawn("roofline", at_clock(gpu, 1464e6))
    said = [text for text, _ in texts(figure)]
    assert "BF16 tensor core: 792 TFLOP/s (seen at 1464 MHz)" in said
    dashed = [line for line in panel(figure, "bf16").lines if line.is_dashed()]
    assert any(line.get_ydata()[0] == pytest.approx(0.8 * 989.4e12, rel=1e-3) for line in dashed)

    near = drawn("roofline", at_clock(gpu, 1.99e9))
    assert not [t for t, _ in texts(near) if t.startswith("FP32 FMA") and "seen" in t]


def test_a_rung_below_the_tensor_cores_has_the_roof_of_its_unit(gpu: Record) -> None:
    naive = dataclasses.replace(row_of(gpu, "Naive"), precision="bf16")
    library = dataclasses.replace(naive, family="library")
    roofs = {roof.ceiling.name: roof.how for roof in compute_roofs(gpu, [naive])}
    assert roofs["BF16 tensor core"] == NOMINAL, "which the percentages are of"
    assert roofs["FP32 FMA"] == UNIT
    assert "FP32 FMA" not in [roof.ceiling.name for roof in compute_roofs(gpu, [library])]


def test_only_the_precisions_that_are_shown_have_roofs(gpu: Record) -> None:
    said = " ".join(text for text, _ in texts(drawn("roofline", gpu)))
    assert "FP16 tensor core" not in said
    roofs = {(row["precision"], row["name"]) for row in table(gpu) if row["kind"] == "roof"}
    assert (None, "DRAM") in roofs
    assert {precision for precision, _ in roofs} == {None, "f32", "tf32", "bf16"}


def test_a_memory_that_was_measured_already_has_one_slope(gpu: Record) -> None:
    assert [roof.how for roof in memory_roofs(gpu)] == [NOMINAL, MEASURED]
    seen = tuple(dataclasses.replace(each, origin="measured") for each in gpu.ceilings)
    assert len(memory_roofs(dataclasses.replace(gpu, ceilings=seen))) == 1


def test_names_of_slopes_stand_beside_marks_not_on_them(h200: Record) -> None:
    figure = drawn("roofline", h200)
    for axes in figure.axes:
        slanted = [text for text in axes.texts if text.get_rotation() % 90]
        assert len(slanted) == 4
        for text in slanted:
            box = text.get_window_extent()
            assert axes.get_window_extent().contains(box.x0, box.y0), text


@pytest.mark.parametrize("which", ["h200", "three", "tower", "crowd", "gpu", "epyc", "bare"])
def test_two_runs_are_readable(which: str, request: pytest.FixtureRequest) -> None:
    record = request.getfixturevalue(which)
    check_text(drawn("roofline", record, Choice(versus=slower(record, 1.7))))


def test_an_arrow_leads_from_the_old_mark_to_the_new_one(ladder: Record) -> None:
    old = slower(ladder, 2)
    axes = panel(drawn("roofline", ladder, Choice(versus=old)), "f32")
    row = row_of(ladder, "BlockTile1D")
    arrows = [text for text in axes.texts if getattr(text, "arrow_patch", None)]
    ends = {(round(a.xyann[1]), round(a.xy[1])) for a in arrows}
    rate = row.flop_per_second or 0
    assert (round(rate / 2), round(rate)) in ends
    hollow = [line for line in axes.lines if line.get_markerfacecolor() == "white"]
    assert len(hollow) == len([m for r in _shown(ladder) for m in marks(r)])
    labels = [text.get_text() for text in axes.texts]
    assert [text for text in labels if text.startswith("BlockTile1D") and "×2.00" in text]


def test_a_run_beside_itself_has_no_arrow(ladder: Record) -> None:
    figure = drawn("roofline", ladder, Choice(versus=ladder))
    assert not [t for axes in figure.axes for t in axes.texts if getattr(t, "arrow_patch", None)]


def test_arrows_of_one_intensity_stand_side_by_side(tower: Record) -> None:
    axes = drawn("roofline", tower, Choice(versus=slower(tower, 1.5))).axes[0]
    labels = {row.label for row in tower.rows if row.kernel.startswith("Kernel")}
    ideal = {
        line.get_label(): float(line.get_xdata()[0])
        for line in axes.lines
        if line.get_label() in labels and line.get_marker() == "o"
    }
    assert len({round(math.log(x), 6) for x in ideal.values()}) >= 24, "no two arrows on each other"


def test_both_runs_are_in_the_data(ladder: Record) -> None:
    rows = table(ladder, slower(ladder, 2))
    rates = {
        run: row["flop_per_second"]
        for row in rows
        for run in ("new", "old")
        if (row.get("run"), row.get("name"), row.get("level")) == (run, "BlockTile1D", IDEAL)
    }
    assert float(str(rates["new"])) == pytest.approx(2 * float(str(rates["old"])))


def _shown(record: Record) -> list[Row]:
    rows = {(r.label, r.precision): r for r in record.rows if r.status == "timed" and r.m == 4096}
    return [r for r in rows.values() if r.precision == "f32" and not (r.transfer or r.variant)]


def test_counted_bytes_have_marks_of_their_own(ladder: Record) -> None:
    row = next(r for r in ladder.rows if r.kernel == "Tiled" and r.traffic and r.is_cube)
    counted = dataclasses.replace(row, counted=Traffic(row.flop / 50, row.flop / 5, row.flop / 2))
    assert [each.level for each in marks(counted)][len(marks(row)) :] == [
        "DRAM, counted",
        "L2, counted",
        "shared memory, counted",
    ]
    alone = dataclasses.replace(ladder, rows=(counted,))
    by_ncu = [each["flop_per_byte"] for each in table(alone) if each.get("by") == "ncu"]
    assert by_ncu == pytest.approx([50, 5, 2])
    shown = places(panel(drawn("roofline", alone), "f32"), row.label)
    assert [shown[marker][0] for marker in "^XP"] == pytest.approx([50, 5, 2])
