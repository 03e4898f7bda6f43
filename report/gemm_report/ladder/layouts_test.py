import dataclasses

import pytest

from gemm_report.ladder.layouts import comparisons
from gemm_report.ladder.rows import drawn_rows
from gemm_report.ladder.rungs import rungs
from gemm_report.record import Record
from gemm_report.site.record_page import record_page
from gemm_report.texts.summary import summary

SPEED = {"nn": 1.0, "nt": 0.98, "tt": 1.25}


@pytest.fixture
def transposed(gpu: Record) -> Record:
    """The rows of Naive and cuBLAS in two more layouts."""
    rows = [row for row in gpu.rows if row.kernel in ("Naive", "cuBLAS")]
    others = [
        dataclasses.replace(row, layout=layout, flop_per_second=factor * row.flop_per_second)
        for layout, factor in SPEED.items()
        for row in rows
        if layout != "nn" and row.flop_per_second
    ]
    return dataclasses.replace(gpu, rows=(*gpu.rows, *others))


def test_figures_and_the_ladder_are_of_layout_nn(gpu: Record, transposed: Record) -> None:
    assert drawn_rows(transposed) == drawn_rows(gpu)
    rows = [rung.row for rung in rungs(gpu, "f32")]
    assert [rung.row for rung in rungs(transposed, "f32")] == rows


def test_a_record_of_other_layouts_alone_is_drawn(transposed: Record) -> None:
    rows = tuple(row for row in transposed.rows if row.layout == "tt")
    labels = {row.label for row in drawn_rows(dataclasses.replace(transposed, rows=rows))}
    assert {"Naive/layout:tt", "cuBLAS/math:default/layout:tt"} <= labels


def test_each_layout_is_compared_with_nn(gpu: Record, transposed: Record) -> None:
    found = comparisons(transposed)
    assert {each.plain.kernel for each in found} == {"Naive", "cuBLAS"}
    for each in found:
        assert each.over_plain("nt") == pytest.approx(0.98)
        assert each.over_plain("tt") == pytest.approx(1.25)
        assert each.over_plain("tn") is None
        assert each.evenness == pytest.approx(0.98 / 1.25)
    assert comparisons(gpu) == []


def test_both_pages_have_the_table(gpu: Record, transposed: Record) -> None:
    lines = summary(transposed).partition("## Layouts")[2].splitlines()
    naive = next(line for line in lines if line.startswith("| Naive | f32 | 4096x4096x4096 |"))
    assert naive.endswith("| 98.0 % | - | 125.0 % | 78.4 % |")
    assert 'id="layouts"' in record_page(transposed, [])
    for page in (summary(gpu), record_page(gpu, [])):
        assert "Layouts" not in page, "one layout is compared with nothing"


def test_rows_of_other_layouts_are_named_on_the_pages(transposed: Record) -> None:
    for page in (summary(transposed), record_page(transposed, [])):
        assert "cuBLAS/math:default/layout:tt" in page
