import dataclasses
import re

from gemm_report.pages.answer import answer
from gemm_report.record import Record, Row


def of_rows(record: Record, *rows: Row) -> Record:
    return dataclasses.replace(record, rows=rows)


def timed(record: Record, precision: str, family: str, size: int = 4096) -> Row:
    return next(
        row
        for row in record.rows_with("timed")
        if (row.precision, row.family, row.m) == (precision, family, size) and row.is_cube
    )


def test_it_compares_our_best_with_the_library(gpu: Record) -> None:
    ours, library = timed(gpu, "f32", "simt"), timed(gpu, "f32", "library")
    half = dataclasses.replace(ours, of_library=0.5, library="cuBLASLt/algo:best")
    small = {"m": 512, "n": 512, "k": 512, "flop_per_second": 1e9}
    third = dataclasses.replace(half, **small, of_library=0.32)
    said, rest = answer(of_rows(gpu, half, third, library))
    assert said.startswith("Our best kernel reaches 50.0 % of cuBLASLt's rate in FP32 at 4096 (")
    assert "geometric mean over 2 problems: 40.0 %." in said
    assert rest == ""


def test_other_precisions_and_what_has_no_library_are_told(gpu: Record) -> None:
    row = dataclasses.replace(timed(gpu, "f32", "simt"), of_library=0.5, library="cuBLAS")
    others = [
        dataclasses.replace(row, precision="bf16", of_library=0.9),
        dataclasses.replace(row, precision="tf32", of_library=None, library=None),
        dataclasses.replace(row, precision="s8", of_library=8.49, library="cuBLASLt/algo:best"),
    ]
    said, rest = answer(of_rows(gpu, row, *others))
    assert "90.0 % of cuBLAS's rate in BF16" in said
    assert "Geometric means in other precisions: FP32 50.0 %." in rest
    assert "INT8: 849.0 % of cuBLASLt in layout nn, in which the library has no fast" in rest
    assert "No library was timed in TF32." in rest


def test_without_a_library_it_compares_with_the_peak(gpu: Record, cpu: Record) -> None:
    row = dataclasses.replace(
        timed(gpu, "f32", "simt"), of_library=None, library=None, of_roof_nominal=0.25
    )
    said, rest = answer(of_rows(gpu, row))
    assert said.startswith(f"Our fastest kernel in FP32 at 4096 is {row.label}: ")
    assert said.endswith("FLOP/s, 25.0 % of its peak.")
    assert rest == "No library was timed in FP32."
    unknown = dataclasses.replace(row, of_roof_nominal=None)
    assert "its peak is not known" in answer(of_rows(gpu, unknown))[0]
    assert re.search(r"in FP32 at \d+", answer(cpu)[0])


def test_without_a_kernel_of_ours_it_names_the_fastest(gpu: Record) -> None:
    library = timed(gpu, "f32", "library")
    assert answer(of_rows(gpu, library))[0].startswith(
        "The fastest timed in FP32 at 4096 is cuBLAS"
    )


def test_without_a_time_it_says_why(gpu: Record) -> None:
    failed, skipped = gpu.rows_with("failed"), gpu.rows_with("skipped")
    assert answer(of_rows(gpu, *failed, *skipped)) == (
        "Nothing was timed: 1 failed, 1 skipped.",
        "",
    )
