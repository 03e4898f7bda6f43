import dataclasses
from typing import Any

import pytest

from gemm_report.record import Part, Record, Row
from gemm_report.rows import (
    arithmetic_roof,
    at_size,
    drawn_rows,
    ladder_precisions,
    ladder_size,
    libraries,
    natural,
    rungs,
    timed_rows,
)
from gemm_report.standing import standings


def of(record: Record, *rows: Row) -> Record:
    return dataclasses.replace(record, rows=rows)


def changed(row: Row, **changes: Any) -> Row:
    return dataclasses.replace(row, **changes)


def cubes(row: Row, **sizes: tuple[int, ...]) -> list[Row]:
    """A row for each kernel and size."""
    return [
        changed(
            row,
            kernel=kernel,
            family="library" if kernel == "cuBLAS" else "simt",
            **dict.fromkeys("mnk", size),
        )
        for kernel, its in sizes.items()
        for size in its
    ]


def row_of(record: Record, label: str, **changes: Any) -> Row:
    row = next(r for r in record.rows_with("timed") if r.label == label and r.m == 4096)
    return changed(row, **changes)


def test_one_row_a_case_is_drawn_and_only_if_it_has_a_time(gpu: Record) -> None:
    def naive(rows: Any) -> list[float]:
        return [row.flop_per_second for row in rows if (row.label, row.m) == ("Naive", 1024)]

    assert naive(drawn_rows(gpu)) == [sorted(naive(gpu.rows))[1]], "of repetitions the middle one"
    assert not any(row.label == "Tiled/tile:32" for row in drawn_rows(gpu))


def test_batches_and_groups_are_no_rungs_and_have_standings_of_their_own(gpu: Record) -> None:
    one = row_of(gpu, "Tiled/tile:16")
    batches = [changed(one, batch_count=8), changed(one, batch_count=16)]
    groups = [
        changed(one, batch_count=8, tokens=tokens, repetition=i)
        for i in range(3)
        for tokens in ("band", "zipf")
    ]
    record = of(gpu, *groups, one, *batches)
    assert [row.batch_count for row in timed_rows(record) if not row.tokens] == [1, 8, 16]
    assert drawn_rows(record) == [one]
    found = [(each.name, [pair.ours.size for pair in each.pairs]) for each in standings(record)]
    assert found == [
        ("FP32", ["4096"]),
        ("FP32, grouped", [f"grouped:8x4096x4096x4096/{each}" for each in ("band", "zipf")]),
        ("FP32, batched", ["batched:8x4096x4096x4096", "batched:16x4096x4096x4096"]),
    ]
    assert ladder_size(changed(one, batch_count=8) for _ in "12") is None


def test_epilogues_are_rows_of_their_own_that_no_figure_draws(gpu: Record) -> None:
    one = row_of(gpu, "Tiled/tile:16")
    record = of(gpu, one, changed(one, epilogue="bias"), changed(one, epilogue="residual"))
    assert [row.epilogue for row in timed_rows(record)] == ["none", "bias", "residual"]
    assert drawn_rows(record) == [one]
    assert [pair.ours for each in standings(record) for pair in each.pairs] == [one]
    assert standings(of(gpu, changed(one, epilogue="bias"))) == []


def test_grids_and_transfers_are_no_rungs(ladder: Record) -> None:
    assert {row.part for row in drawn_rows(ladder)} == {Part.LADDER}
    assert "BlockTile1D" in {row.label for row in drawn_rows(ladder)}, (
        "the default of a grid is one"
    )
    assert {row.kernel for row in drawn_rows(ladder, Part.TUNING)} == {"BlockTile1D"}
    labels = [row.label for row in drawn_rows(ladder, Part.END_TO_END)]
    assert labels[:3] == [f"EndToEnd/{t}/Naive" for t in ("pageable", "pinned", "overlapped")]


@pytest.mark.parametrize(
    ("precision", "plain"), [("bf16", "nn"), ("e4m3", "nt"), ("e5m2fast", "nt"), ("s8", "nt")]
)
def test_the_plain_layout_is_drawn_if_there_is_one(gpu: Record, precision: str, plain: str) -> None:
    rows = [row for row in drawn_rows(gpu) if row.precision == "bf16"]
    for layouts, drawn in ((("nn", "nt"), plain), (("nn",), "nn"), (("tn",), "tn")):
        found = [
            changed(row, layout=layout, precision=precision) for layout in layouts for row in rows
        ]
        assert {row.layout for row in drawn_rows(of(gpu, *found))} == {drawn}


def test_numbers_in_labels_sort_as_numbers() -> None:
    assert sorted(["a:16", "a:8", "a"], key=natural) == ["a", "a:8", "a:16"]


@pytest.mark.parametrize(
    ("sizes", "expected"),
    [
        ({"a": (1024, 4096), "b": (1024, 8192), "c": (1024,)}, 1024),  # one of three is not most
        ({"a": (1024, 8192), "b": (1024, 8192)}, 8192),  # of two that all have, the larger one
        ({"a": (1024, 4096, 8192), "b": (1024, 4096, 8192)}, 4096),
        ({"a": (512,), "cuBLAS": (8192,)}, 512),  # libraries have no vote
        ({"cuBLAS": (8192,)}, 8192),  # but among themselves
        ({}, None),
    ],
)
def test_the_ladder_stands_at_4096_or_where_most_kernels_are(
    gpu: Record, sizes: dict[str, tuple[int, ...]], expected: int | None
) -> None:
    slab = next(row for row in gpu.rows if not row.is_cube)
    assert ladder_size([slab, *cubes(gpu.rows[0], **sizes)]) == expected


def test_f32_has_a_ladder_with_two_kernels_and_the_others_with_four(ladder: Record) -> None:
    assert ladder_precisions(ladder) == ["f32"], "s32 has two kernels"
    more = [dataclasses.replace(row, precision="s32") for row in ladder.rows]
    assert ladder_precisions(of(ladder, *ladder.rows, *more)) == ["f32", "s32"]
    one = [row for row in ladder.rows if row.kernel == "Naive"]
    assert ladder_precisions(of(ladder, *one)) == []


def test_other_implementations_are_no_rungs_and_no_libraries(ladder: Record) -> None:
    rows = [row for row in ladder.rows if row.kernel == "Naive"]
    others = [dataclasses.replace(row, kernel="Numba", family="peer") for row in rows]
    both = of(ladder, *ladder.rows, *others)
    assert [row.kernel for row in at_size(both, "f32") if row.is_peer] == ["Numba"]
    for each in (rungs, libraries):
        assert each(both, "f32") == each(ladder, "f32")


@pytest.mark.parametrize(
    ("changes", "name"),
    [
        ({"precision": "f32"}, "FP32 FMA"),
        ({"precision": "f16"}, "FP32 FMA"),
        ({"precision": "bf16"}, "FP32 FMA"),
        ({"precision": "f64"}, None),
        ({"precision": "bf16", "family": "tensor"}, "BF16 tensor core"),
        ({"precision": "bf16", "family": "user"}, "BF16 tensor core"),
        (
            {"precision": "bf16", "device_kernels": ("void gemm::tensor::x<8>()",)},
            "BF16 tensor core",
        ),
        ({"precision": "bf16", "device_kernels": ("void gemm::simt::x<8>()",)}, "FP32 FMA"),
    ],
)
def test_a_kernel_has_the_roof_of_the_unit_that_computes(
    gpu: Record, changes: dict[str, Any], name: str | None
) -> None:
    roof = arithmetic_roof(gpu, row_of(gpu, "Naive", **changes))
    assert (roof and roof.name) == name
