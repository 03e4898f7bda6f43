import dataclasses

from gemm_report.figures.palette import LIBRARY_LINE, looks
from gemm_report.record import Kernel, Record


def with_kernels(record: Record, kernels: list[Kernel]) -> Record:
    row = record.rows[0]
    rows = tuple(dataclasses.replace(row, kernel=k.name, family=k.family) for k in kernels)
    return dataclasses.replace(record, kernels=tuple(kernels), rows=rows)


def test_variants_share_the_colour_and_differ_in_the_marker(gpu: Record) -> None:
    looked = looks([gpu])
    variants = [looked[f"Tiled/tile:{tile}"] for tile in (8, 16, 32)]
    assert len({look.color for look in variants}) == 1
    assert [look.marker for look in variants] == ["o", "s", "^"]


def test_kernels_differ_in_colour_or_line_even_when_there_are_many(gpu: Record) -> None:
    kernels = [Kernel(f"Kernel{i}", "simt", 7 * i, "") for i in range(25)]
    looked = looks([with_kernels(gpu, kernels)])
    assert len({(look.color, look.line) for look in looked.values()}) == 25


def test_a_kernel_keeps_its_colour_in_a_record_that_holds_others(gpu: Record) -> None:
    alone = tuple(row for row in gpu.rows if row.kernel == "Tiled")
    kernels = tuple(kernel for kernel in gpu.kernels if kernel.name == "Tiled")
    filtered = looks([dataclasses.replace(gpu, kernels=kernels, rows=alone)])
    assert filtered.items() <= looks([gpu]).items()
    assert len(filtered) == 3


def test_libraries_are_dashed_and_nothing_else_is(gpu: Record) -> None:
    dashed = {label for label, look in looks([gpu]).items() if look.line == LIBRARY_LINE}
    assert dashed == {"cuBLAS/math:default"}
