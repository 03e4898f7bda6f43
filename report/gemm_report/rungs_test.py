import dataclasses

import pytest

from gemm_report.record import Record
from gemm_report.rows import (
    arithmetic_roof,
    at_size,
    kernels_without_row,
    ladder_precisions,
    ladder_size,
    libraries,
    limits,
    rungs,
)


def test_the_ladder_stands_at_4096_if_most_kernels_have_it(gpu: Record) -> None:
    assert ladder_size(gpu.rows) == 4096
    row = gpu.rows[0]

    def at(**sizes: tuple[int, ...]) -> int | None:
        rows = [
            dataclasses.replace(row, kernel=kernel, m=size, n=size, k=size)
            for kernel, its_sizes in sizes.items()
            for size in its_sizes
        ]
        return ladder_size(rows)

    assert at(a=(1024, 4096), b=(1024, 8192), c=(1024,)) == 1024, "one of three is not most"
    assert at(a=(1024, 8192), b=(1024, 8192)) == 8192, "of two that all have, the larger one"
    assert at(a=(1024, 4096, 8192), b=(1024, 4096, 8192)) == 4096
    assert at() is None


def test_shapes_that_are_no_cubes_do_not_vote_and_libraries_only_among_themselves(
    gpu: Record,
) -> None:
    slab = next(row for row in gpu.rows if not row.is_cube)
    assert ladder_size([slab]) is None
    library = next(row for row in gpu.rows if row.family == "library" and row.is_cube)
    kernel = next(row for row in gpu.rows if not row.is_library and row.is_cube)
    large = dataclasses.replace(library, m=8192, n=8192, k=8192)
    assert ladder_size([slab, large, kernel]) == kernel.m
    assert ladder_size([slab, large]) == 8192


def test_a_step_is_over_the_fastest_variant_of_the_kernel_below(ladder: Record) -> None:
    found = {rung.row.label: rung for rung in rungs(ladder, "f32")}
    assert list(found)[:3] == ["NaiveUncoalesced", "Naive", "NaiveTransposed/transpose:timed"]
    assert found["NaiveUncoalesced"].step is None
    assert found["Naive"].step == pytest.approx(6.08 / 0.496)
    for tile in (16, 32):
        below = found[f"Tiled/tile:{tile}"].below
        assert below
        assert below.label == "TiledTransposedStore"
    assert found["BlockTile1D"].below == found["Tiled/tile:32"].row
    assert [row.label for row in libraries(ladder, "f32")] == ["cuBLAS/math:pedantic"]


def test_a_kernel_without_a_row_at_the_size_is_named(ladder: Record) -> None:
    rows = tuple(row for row in ladder.rows if (row.kernel, row.m) != ("Naive", 4096))
    record = dataclasses.replace(ladder, rows=rows)
    assert kernels_without_row(record, "f32") == ["Naive"]
    assert kernels_without_row(ladder, "f32") == []


def test_f32_has_a_ladder_with_two_kernels_and_the_others_with_four(ladder: Record) -> None:
    assert ladder_precisions(ladder) == ["f32"], "s32 has two kernels"
    more = [dataclasses.replace(row, precision="s32") for row in ladder.rows]
    both = dataclasses.replace(ladder, rows=(*ladder.rows, *more))
    assert ladder_precisions(both) == ["f32", "s32"]
    one = tuple(row for row in ladder.rows if row.kernel == "Naive")
    assert ladder_precisions(dataclasses.replace(ladder, rows=one)) == []


def test_limits_come_lowest_first_and_bank_conflicts_count(ladder: Record, gpu: Record) -> None:
    found = {rung.row.label: limits(ladder, rung.row) for rung in rungs(ladder, "f32")}
    assert [limit.resource for limit in found["Naive"]] == ["L2", "FP32 FMA", "DRAM"]
    assert found["Naive"][0].flop_per_second == pytest.approx(0.4 * 9.89e12, rel=1e-5)
    conflicted = found["TiledTransposedStore"][0]
    assert conflicted.resource == "shared memory"
    assert conflicted.flop_per_byte == pytest.approx(0.0155, rel=1e-5)
    assert limits(gpu, gpu.rows[0]) == [], "no model, no limit"


def test_our_own_kernels_have_the_roof_of_the_unit_that_computes(gpu: Record) -> None:
    row = next(row for row in gpu.rows if row.kernel == "Naive")
    for precision, name in (("f32", "FP32 FMA"), ("bf16", "FP32 FMA"), ("f16", "FP32 FMA")):
        roof = arithmetic_roof(gpu, dataclasses.replace(row, precision=precision))
        assert roof
        assert roof.name == name
    assert arithmetic_roof(gpu, dataclasses.replace(row, precision="f64")) is None
    for family in ("tensor", "user"):
        tensor = arithmetic_roof(gpu, dataclasses.replace(row, precision="bf16", family=family))
        assert tensor
        assert tensor.name == "BF16 tensor core"
    for ran, name in (("tensor", "BF16 tensor core"), ("simt", "FP32 FMA")):
        launched = (f"void gemm::{ran}::(anonymous namespace)::one<8>(int)",)
        picks = dataclasses.replace(row, precision="bf16", device_kernels=launched)
        roof = arithmetic_roof(gpu, picks)
        assert roof
        assert roof.name == name


def test_other_implementations_are_no_rungs_and_no_libraries(ladder: Record) -> None:
    rows = [
        dataclasses.replace(row, kernel="Numba", family="peer")
        for row in ladder.rows
        if row.kernel == "Naive"
    ]
    both = dataclasses.replace(ladder, rows=(*ladder.rows, *rows))
    assert [row.kernel for row in at_size(both, "f32") if row.is_peer] == ["Numba"]
    assert rungs(both, "f32") == rungs(ladder, "f32")
    assert libraries(both, "f32") == libraries(ladder, "f32")
    assert kernels_without_row(both, "f32") == kernels_without_row(ladder, "f32")
