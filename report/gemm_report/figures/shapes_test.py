import dataclasses

import pytest

from gemm_report.figures.shapes import maps, table
from gemm_report.figures.write import drawings
from gemm_report.figures.write_test import check_text, drawn, texts
from gemm_report.record import Record


@pytest.fixture(scope="module")
def weights(gpu: Record) -> Record:
    """Tokens through weights: 1 to 4096 lines, two k, three kernels, one combination missing."""
    base = next(row for row in gpu.rows if row.kernel == "Naive" and row.status == "timed")
    rows = [
        dataclasses.replace(
            base,
            kernel=kernel,
            family="library" if kernel == "cuBLAS" else "simt",
            m=m,
            n=n,
            k=k,
            flop_per_second=rate * m**0.3 * n**0.1,
            of_roof_nominal=rate * m**0.3 * n**0.1 / 66.9e12,
        )
        for kernel, rate in (("Naive", 3e12), ("RegisterDoubleBuffer", 2.5e12), ("cuBLAS", 4e12))
        for m in (1, 64, 4096)
        for n in (1024, 4096, 28672)
        for k in (4096, 14336)
        if not (m == 64 and n == 4096) and not (kernel == "Naive" and m == 4096)
    ]
    return dataclasses.replace(gpu, rows=tuple(rows))


def test_each_k_has_a_map_of_the_fastest_kernel_of_ours(weights: Record) -> None:
    found = maps(weights)
    assert list(found) == [("f32", 4096), ("f32", 14336)]
    cells = found["f32", 4096]
    assert {m for m, _ in cells} == {1, 64, 4096}
    assert {n for _, n in cells} == {1024, 4096, 28672}
    assert cells[1, 1024].kernel == "Naive"
    assert cells[4096, 1024].kernel == "RegisterDoubleBuffer"
    assert (64, 4096) not in cells
    assert len(table(weights)) == 2 * 8


def test_cells_say_rate_share_and_kernel(weights: Record) -> None:
    figure = drawn("shapes", weights)
    check_text(figure)
    said = [text for text, _ in texts(figure)]
    cell = maps(weights)["f32", 4096][1, 1024]
    rate = (cell.flop_per_second or 0) / 1e12
    assert [text for text in said if text.startswith(f"{rate:.3g}")]
    assert said.count("RegisterDoubleBuffer") == 6


def test_without_roofs_the_map_is_of_rates(weights: Record) -> None:
    rows = tuple(dataclasses.replace(row, of_roof_nominal=None) for row in weights.rows)
    figure = drawn("shapes", dataclasses.replace(weights, rows=rows, ceilings=()))
    check_text(figure)
    assert "rate over the best one of its map" in " ".join(text for text, _ in texts(figure))


def test_cubes_have_no_map(gpu: Record, h200: Record) -> None:
    assert not maps(gpu)
    assert "shapes" not in drawings(h200)
