import dataclasses

import pytest

from gemm_report.document import InputError
from gemm_report.figures.hierarchy import chosen, table
from gemm_report.figures.roofs import ROOF_COLOR
from gemm_report.figures.write import Choice, drawings
from gemm_report.figures.write_test import check_text, drawn, texts
from gemm_report.record import Record, Traffic


def test_each_memory_is_a_panel_with_its_measured_roof(ladder: Record) -> None:
    figure = drawn("ladder_roofline", ladder)
    titles = [axes.get_title(loc="left") for axes in figure.axes]
    assert titles == ["Shared memory", "L2", "DRAM"]
    said = [text for text, _ in texts(figure)]
    assert {"33.3 TB/s, measured", "9.89 TB/s, measured", "4.59 TB/s, measured"} <= set(said)
    grey = [line for line in figure.axes[1].lines if line.get_color() == ROOF_COLOR]
    ends = [(line.get_xdata(), line.get_ydata()) for line in grey]
    (slope,) = (y[0] / x[0] for x, y in ends if y[0] != y[1])
    assert slope == pytest.approx(9.89, rel=1e-3), "TFLOP/s for each FLOP/byte"


def test_every_unit_that_a_rung_uses_has_its_roof(h200: Record) -> None:
    for axes in drawn("ladder_roofline_bf16", h200).axes:
        grey = [line for line in axes.lines if line.get_color() == ROOF_COLOR]
        ends = [line.get_ydata() for line in grey if len(line.get_ydata()) == 2]
        levels = [low for low, high in ends if low == high]
        assert sorted(levels) == [pytest.approx(66.9, abs=0.1), pytest.approx(989.4, abs=0.1)]


def test_a_kernel_stands_at_its_modelled_and_its_ideal_intensity(ladder: Record) -> None:
    rows = table(ladder, precision="f32")
    at = {(row["memory"], row["kernel"]): row["flop_per_byte"] for row in rows}
    assert at["L2", "Tiled/tile:16"] == pytest.approx(4, rel=1e-4)
    assert at["Shared memory", "Tiled/tile:16"] == pytest.approx(0.24, rel=1e-4)
    assert at["DRAM", "Tiled/tile:16"] == pytest.approx(682.667, rel=1e-4)
    assert ("Shared memory", "Naive") not in at, "it uses none"
    assert ("L2", "cuBLAS/math:pedantic") not in at
    assert ("DRAM", "cuBLAS/math:pedantic") in at


def test_the_path_goes_from_rung_to_rung(ladder: Record) -> None:
    axes = drawn("ladder_roofline", ladder).axes[1]
    (path,) = (line for line in axes.lines if len(line.get_xdata()) == 7)
    assert list(path.get_ydata()[:2]) == [pytest.approx(0.496, 0.02), pytest.approx(6.08, 0.02)]


def test_marks_above_a_roof_are_explained(ladder: Record) -> None:
    said = " ".join(text for text, _ in texts(drawn("ladder_roofline", ladder)))
    assert (
        "Above the L2 roof because L1 hits are counted as L2 traffic: NaiveUncoalesced, Naive"
        in said
    )
    bare = dataclasses.replace(ladder, measured_ceilings=())
    said = " ".join(text for text, _ in texts(drawn("ladder_roofline", bare)))
    assert "Above the" not in said
    assert "Bandwidth not measured: Shared memory, L2." in said


def test_a_rung_without_a_model_is_named_and_a_ladder_without_any_is_not_drawn(
    ladder: Record, gpu: Record
) -> None:
    rows = tuple(
        dataclasses.replace(row, traffic=None) if row.kernel == "Naive" else row
        for row in ladder.rows
    )
    said = [t for t, _ in texts(drawn("ladder_roofline", dataclasses.replace(ladder, rows=rows)))]
    assert "No traffic model: Naive, cuBLAS/math:pedantic." in said
    assert "ladder_roofline" not in drawings(gpu)


def test_a_ladder_of_few_rungs_is_left_to_the_roofline(ladder: Record) -> None:
    few = ("NaiveUncoalesced", "Naive", "Tiled")
    rows = tuple(row for row in ladder.rows if row.kernel in few)
    found = drawings(dataclasses.replace(ladder, rows=rows))
    assert "ladder" in found
    assert "ladder_roofline" not in found


def test_counted_bytes_have_hollow_marks_next_to_the_modelled_ones(ladder: Record) -> None:
    row = next(r for r in ladder.rows if r.kernel == "Tiled" and r.traffic and r.is_cube)
    counted = dataclasses.replace(row, counted=Traffic(row.flop / 50, row.flop / 5, row.flop / 2))
    alone = dataclasses.replace(ladder, rows=(counted,))
    rows = [row for row in table(alone, None) if row["bytes"] == "counted by ncu"]
    by_ncu = {str(row["memory"]): row["flop_per_byte"] for row in rows}
    assert by_ncu == {"DRAM": 50, "L2": 5, "Shared memory": 2}
    figure = drawn("hierarchy", alone)
    check_text(figure)
    said = [text for text, _ in texts(figure)]
    assert "bytes counted by ncu" in said and "FLOP/byte, modelled" in said
    for axes in figure.axes:
        hollow = [line for line in axes.lines if line.get_markerfacecolor() == "white"]
        (x,) = (float(line.get_xdata()[0]) for line in hollow)
        assert x == pytest.approx(by_ncu[axes.get_title(loc="left")])


def test_the_hierarchy_is_of_chosen_rows_of_one_precision(h200: Record) -> None:
    assert "hierarchy" not in drawings(h200), "nothing is counted"
    found = chosen(h200, "Wgmma.*/4096x")
    assert {row.precision for row in found} == {"tf32"}, "the first that matches"
    assert len(chosen(h200, "Wgmma.*/bf16/4096x")) > 3
    check_text(drawn("hierarchy", h200, Choice(hierarchy="Wgmma.*/bf16/")))
    with pytest.raises(InputError, match="--hierarchy=None: matches no such row"):
        drawings(h200, Choice(hierarchy="None"))
