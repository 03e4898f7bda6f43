import dataclasses

import pytest

from gemm_report.figures.page import ROOF_COLOR
from gemm_report.figures.roofline.ladder_roofline import table
from gemm_report.figures.write import drawings
from gemm_report.figures.write_test import drawn, texts
from gemm_report.record import Record


def test_each_memory_is_a_panel_with_its_measured_roof(ladder: Record) -> None:
    figure = drawn("ladder_roofline", ladder)
    titles = [axes.get_title(loc="left") for axes in figure.axes]
    assert titles == ["Shared memory", "L2", "DRAM, ideal"]
    said = [text for text, _ in texts(figure)]
    for roof in ("Shared_read: 33.3 TB/s (measured at", "L2_read: 9.89 TB/s (measured at"):
        assert f"{roof} 1980 MHz)" in said
    assert "DRAM_read: 4.59 TB/s (measured)" in said, "it does not run with that clock"
    slope = next(line for line in figure.axes[1].lines if line.get_color() == ROOF_COLOR)
    (x, _), (y, _) = slope.get_xdata(), slope.get_ydata()
    assert y / x == pytest.approx(9.89), "TFLOP/s for each FLOP/byte"


def test_a_kernel_stands_at_its_modelled_and_its_ideal_intensity(ladder: Record) -> None:
    at = {(row["memory"], row["kernel"]): row["flop_per_byte"] for row in table(ladder, "f32")}
    assert at["L2", "Tiled/tile:16"] == pytest.approx(4, rel=1e-4)
    assert at["Shared memory", "Tiled/tile:16"] == pytest.approx(0.24, rel=1e-4)
    assert at["DRAM, ideal", "Tiled/tile:16"] == pytest.approx(682.667, rel=1e-4)
    assert ("Shared memory", "Naive") not in at, "it uses none"
    assert ("L2", "cuBLAS/math:pedantic") not in at
    assert ("DRAM, ideal", "cuBLAS/math:pedantic") in at


def test_the_path_goes_from_rung_to_rung(ladder: Record) -> None:
    axes = drawn("ladder_roofline", ladder).axes[1]
    (path,) = (line for line in axes.lines if len(line.get_xdata()) == 7)
    assert list(path.get_ydata()[:2]) == [pytest.approx(0.496, 0.02), pytest.approx(6.08, 0.02)]


def test_marks_above_a_roof_are_explained(ladder: Record) -> None:
    said = " ".join(text for text, _ in texts(drawn("ladder_roofline", ladder)))
    assert "L2, above its roof since the L1 answers for it: NaiveUncoalesced, Naive" in said
    bare = dataclasses.replace(ladder, measured_ceilings=())
    said = " ".join(text for text, _ in texts(drawn("ladder_roofline", bare)))
    assert "above its roof" not in said
    assert "Roof not measured: Shared memory, L2." in said


def test_a_rung_without_a_model_is_named_and_a_ladder_without_any_is_not_drawn(
    ladder: Record, gpu: Record
) -> None:
    rows = tuple(
        dataclasses.replace(row, traffic=None) if row.kernel == "Naive" else row
        for row in ladder.rows
    )
    said = [t for t, _ in texts(drawn("ladder_roofline", dataclasses.replace(ladder, rows=rows)))]
    assert "Without a model of their bytes: Naive." in said
    assert "ladder_roofline" not in drawings(gpu)


def test_a_ladder_of_few_rungs_is_left_to_the_roofline(ladder: Record) -> None:
    few = ("NaiveUncoalesced", "Naive", "Tiled")
    rows = tuple(row for row in ladder.rows if row.kernel in few)
    found = drawings(dataclasses.replace(ladder, rows=rows))
    assert "ladder" in found
    assert "ladder_roofline" not in found
