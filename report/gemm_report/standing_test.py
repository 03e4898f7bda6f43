import dataclasses

import pytest

from gemm_report.record import Record, Row
from gemm_report.rows import standings


def row_of(gpu: Record, label: str, **changes: object) -> Row:
    row = next(r for r in gpu.rows_with("timed") if r.label == label and r.m == 4096)
    return dataclasses.replace(row, **changes)


def of(gpu: Record, *rows: Row) -> Record:
    return dataclasses.replace(gpu, rows=rows)


def test_a_layout_and_size_that_the_library_has_goes_before_a_faster_one(gpu: Record) -> None:
    alone = row_of(gpu, "Naive", layout="tn", of_library=None, flop_per_second=9e13)
    both = row_of(gpu, "Naive", layout="tt", of_library=0.5, flop_per_second=1e13)
    (found,) = standings(of(gpu, alone, both))
    assert found.best == both
    assert found.library == pytest.approx(2e13)
    (found,) = standings(of(gpu, alone))
    assert (found.best, found.library, found.of_library, found.worst) == (alone, None, None, None)


def test_of_two_layouts_with_a_library_the_plain_one_is_shown(gpu: Record) -> None:
    plain = row_of(gpu, "Naive", precision="s8", layout="nt", of_library=0.9)
    other = dataclasses.replace(plain, layout="nn", of_library=9.0)
    record = dataclasses.replace(
        gpu,
        precisions=tuple(
            dataclasses.replace(each, name="s8") if each.name == "f16" else each
            for each in gpu.precisions
        ),
    )
    names = [each.name for each in record.precisions]
    assert "s8" in names
    (found,) = standings(of(record, other, plain))
    assert found.best == plain


def test_sizes_are_summed_up_by_mean_and_worst(gpu: Record) -> None:
    rows = [
        row_of(gpu, "Naive", m=size, n=size, k=size, of_library=share, flop_per_second=size * 1e9)
        for size, share in ((64, 0.5), (128, 2.0), (256, None))
    ]
    slower = dataclasses.replace(rows[0], kernel="Slow", of_library=0.1, flop_per_second=1e9)
    (found,) = standings(of(gpu, *rows, slower))
    assert [row.m for row in found.rows] == [64, 128, 256]
    assert found.of_library == pytest.approx(1.0)
    assert found.worst == rows[0]
    assert found.best == rows[1], "the largest that a library was timed on"


def test_a_library_on_its_slow_path_is_known_by_another_layout_alone(gpu: Record) -> None:
    ours = row_of(gpu, "Naive", of_library=9.0)
    slow = row_of(gpu, "cuBLAS/math:default", precision="f32", flop_per_second=1e12)
    fast = dataclasses.replace(slow, layout="nt", flop_per_second=9e12)
    assert [each.slow_library for each in standings(of(gpu, ours, slow))] == [False]
    assert [each.slow_library for each in standings(of(gpu, ours, slow, fast))] == [True]


def test_a_precision_of_libraries_alone_has_no_standing(gpu: Record) -> None:
    assert {each.best.precision for each in standings(gpu)} == {"f32"}
    assert standings(of(gpu)) == []
