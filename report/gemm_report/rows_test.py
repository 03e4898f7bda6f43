import dataclasses

from gemm_report.record import Part, Record
from gemm_report.rows import drawn_rows, headlines, ladder_sizes, natural


def test_an_odd_size_beside_a_rounder_one_is_not_on_the_line(gpu: Record) -> None:
    assert ladder_sizes(gpu.rows_with("timed")) == {256, 1024, 4096}


def test_odd_sizes_alone_are_on_the_line(gpu: Record) -> None:
    rows = [dataclasses.replace(gpu.rows[0], m=n, n=n, k=n) for n in (100, 200, 999)]
    assert ladder_sizes(rows) == {100, 200, 999}


def test_of_repetitions_the_middle_one_is_drawn(gpu: Record) -> None:
    def naive(rows: list) -> list[float]:
        return [row.flop_per_second for row in rows if (row.label, row.m) == ("Naive", 1024)]

    assert naive(drawn_rows(gpu)) == [sorted(naive(list(gpu.rows)))[1]]


def test_rows_without_a_time_are_not_drawn(gpu: Record) -> None:
    assert not any(row.label == "Tiled/tile:32" for row in drawn_rows(gpu))


def test_a_kernel_is_named_by_its_largest_cube(gpu: Record) -> None:
    named = {(row.label, row.precision): row.shape for row in headlines(drawn_rows(gpu))}
    assert set(named.values()) == {"4096x4096x4096"}
    assert len(named) == 7


def test_a_kernel_without_a_cube_is_named_by_its_largest_problem(gpu: Record) -> None:
    rows = [dataclasses.replace(gpu.rows[0], m=m, n=8, k=8) for m in (16, 64, 32)]
    assert [row.m for row in headlines(rows)] == [64]


def test_grids_and_transfers_are_no_rungs(ladder: Record) -> None:
    drawn = drawn_rows(ladder)
    assert {row.part for row in drawn} == {Part.LADDER}
    assert "BlockTile1D" in {row.label for row in drawn}, "the default of a tunable kernel is one"
    assert {row.kernel for row in drawn_rows(ladder, Part.TUNING)} == {"BlockTile1D"}
    labels = [row.label for row in drawn_rows(ladder, Part.END_TO_END)]
    assert labels[:3] == [f"EndToEnd/{t}/Naive" for t in ("pageable", "pinned", "overlapped")]
    assert len(labels) == 6


def test_operands_of_one_byte_are_drawn_where_none_is_transposed(gpu: Record) -> None:
    plain = [row for row in drawn_rows(gpu) if row.precision == "bf16"]
    transposed = [dataclasses.replace(row, layout="nt") for row in plain]

    def drawn(precision: str, rows: list) -> set[str]:
        found = tuple(dataclasses.replace(row, precision=precision) for row in rows)
        return {row.layout for row in drawn_rows(dataclasses.replace(gpu, rows=found))}

    assert drawn("bf16", plain + transposed) == {"nn"}
    for precision in ("e4m3", "e5m2fast", "s8"):
        assert drawn(precision, plain + transposed) == {"nt"}
        assert drawn(precision, plain) == {"nn"}, "there is nothing else"


def test_a_precision_of_another_layout_alone_is_drawn_beside_others(gpu: Record) -> None:
    rows = drawn_rows(gpu)
    transposed = [dataclasses.replace(row, layout="tn", precision="s8") for row in rows]
    assert drawn_rows(dataclasses.replace(gpu, rows=(*rows, *transposed[:3]))) == [
        *rows,
        *transposed[:3],
    ]


def test_numbers_in_labels_sort_as_numbers() -> None:
    assert sorted(["a:16", "a:8", "a"], key=natural) == ["a", "a:8", "a:16"]
