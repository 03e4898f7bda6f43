import dataclasses
import re

import pytest

from gemm_report.pages.record_page import record_page
from gemm_report.record import Record
from gemm_report.rows import drawn_rows, rungs

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
    page = record_page(transposed, [])
    _, _, table = page.partition('id="layouts"')
    naive = re.search(r"<tr><td>Naive</td><td>f32</td><td>4096x4096x4096</td>.*?</tr>", table)
    assert naive
    shares = re.findall(r">([^<]+)</td>", naive[0])[4:]
    assert shares == ["98.0 %", "-", "125.0 %", "78.4 %"]
    assert "cuBLAS/math:default/layout:tt" in page
    assert "Layouts" not in record_page(gpu, []), "one layout is compared with nothing"
