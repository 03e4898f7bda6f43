import dataclasses

import pytest

from gemm_report.document import RecordError
from gemm_report.figures.versus import check_device, headline_pairs, versus_notes
from gemm_report.record import Record


def without(record: Record, *kernels: str, size: int | None = None) -> Record:
    rows = tuple(r for r in record.rows if r.kernel not in kernels and r.m != size)
    return dataclasses.replace(record, rows=rows)


def test_the_largest_size_that_both_have_is_compared(gpu: Record) -> None:
    assert {pair.new.m for pair in headline_pairs(gpu, gpu)} == {4096}
    old = without(without(gpu, size=4096), size=4092)
    pairs = headline_pairs(gpu, old)
    assert {pair.new.m for pair in pairs if pair.old} == {1024}
    assert all(pair.old and pair.old.identity == pair.new.identity for pair in pairs if pair.old)


def test_what_has_no_partner_is_drawn_and_named(gpu: Record) -> None:
    old = without(gpu, "Tiled", size=256)
    pairs = {pair.new.label: pair for pair in headline_pairs(gpu, old)}
    assert pairs["Tiled/tile:16"].old is None
    assert pairs["Tiled/tile:16"].ratio is None
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


def test_records_of_two_kinds_of_device_are_refused(gpu: Record, cpu: Record) -> None:
    check_device(gpu, gpu)
    with pytest.raises(RecordError, match="give two records of one device"):
        check_device(gpu, cpu)
