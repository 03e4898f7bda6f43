import dataclasses

import pytest

from gemm_report.document import RecordError
from gemm_report.figures.versus import check_device, pairs, versus_notes
from gemm_report.record import Library, Record


def without(record: Record, *kernels: str, size: int | None = None) -> Record:
    rows = tuple(r for r in record.rows if r.kernel not in kernels and r.m != size)
    return dataclasses.replace(record, rows=rows)


def test_pairs_are_the_cases_that_both_have(gpu: Record) -> None:
    old = without(gpu, "Tiled", size=4096)
    found = pairs(gpu, old)
    assert found
    assert all(new.identity == its_old.identity for new, its_old in found)
    assert not [new for new, _ in found if new.kernel == "Tiled" or new.m == 4096]


def test_what_is_in_one_run_only_is_named(gpu: Record) -> None:
    old = without(gpu, "Tiled", size=256)
    said = versus_notes(gpu, old)
    (only_new,) = (note for note in said if note.startswith("Only in the new run"))
    assert "Tiled/tile:8 f32, Tiled/tile:16 f32" in only_new
    assert only_new.endswith("of the others the problems 256.")
    (only_old,) = (n for n in versus_notes(old, gpu) if n.startswith("Only in the old run"))
    assert only_old.removeprefix("Only in the old") == only_new.removeprefix("Only in the new")


def test_conditions_that_differ_are_named(gpu: Record) -> None:
    device = dataclasses.replace(gpu.device, driver="1.2.3", uuid_hash="another")
    method = dataclasses.replace(gpu.method, state="burst")
    old = dataclasses.replace(gpu, device=device, method=method)
    assert "The two runs differ in: GPU, driver, state." in versus_notes(gpu, old)
    assert not [note for note in versus_notes(gpu, gpu) if "differ" in note]
    records = [
        dataclasses.replace(gpu, libraries=(Library("cuBLAS", version),))
        for version in ("13", "14")
    ]
    assert "The two runs differ in: cuBLAS." in versus_notes(*records)


def test_records_of_two_kinds_of_device_are_refused(gpu: Record, cpu: Record) -> None:
    check_device(gpu, gpu)
    with pytest.raises(RecordError, match="give two records of one device"):
        check_device(gpu, cpu)
