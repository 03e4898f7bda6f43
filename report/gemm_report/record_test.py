import dataclasses
import json
from pathlib import Path

import pytest

from gemm_report.document import RecordError, decoded
from gemm_report.record import RECORD, EndToEnd, Part, Record, read_record, told_apart


def test_reads_what_the_record_says(gpu: Record) -> None:
    assert gpu.complete
    assert gpu.device.name == "Test GPU"
    assert [c.name for c in gpu.memory_roofs()] == ["DRAM"]
    assert gpu.compute_roofs("bf16")[0].flop_per_second == 989.4e12
    labels = {row.label for row in gpu.rows}
    assert {"NaiveUncoalesced", "Tiled/tile:8", "Tiled/tile:16", "cuBLAS/math:default"} <= labels
    assert [row.label for row in gpu.rows_with("failed")] == ["Tiled/tile:32"]
    assert [row.shape for row in gpu.rows_with("skipped")] == ["8192x8192x8192"]


def test_a_case_is_named_as_its_benchmark_is(gpu: Record) -> None:
    row = next(row for row in gpu.rows if row.label == "Tiled/tile:16")
    transposed = dataclasses.replace(row, layout="nt")
    assert str(row.identity) == f"Tiled/tile:16/{row.precision}/{row.shape}"
    assert str(transposed.identity) == f"Tiled/tile:16/layout:nt/{row.precision}/{row.shape}"
    assert transposed.identity != row.identity


def test_a_cpu_is_told_from_another_of_its_name(cpu: Record) -> None:
    known = {"cpu_id": "AuthenticAMD 25.17.1", "l1_data_bytes": 32 << 10, "l2_bytes": 1 << 20}
    device = dataclasses.replace(cpu.device, **known, l3_bytes=32 << 20)
    assert told_apart(device.model, device.model) is None
    assert told_apart(device.model, cpu.device.model) is None, "earlier records do not say"
    for changed in ("cpu_id", "l1_data_bytes", "l2_bytes", "l3_bytes", "cores"):
        value = "AuthenticAMD 25.1.1" if changed == "cpu_id" else 12 << 10
        other = dataclasses.replace(device, **{changed: value})
        told = told_apart(device.model, other.model)
        assert told and told[0] != told[1] and told[0].startswith("Test CPU, "), changed
    other = dataclasses.replace(device, memory_bytes=1, last_level_cache_bytes=1, driver="x")
    assert told_apart(device.model, other.model) is None


def test_a_gpu_is_told_from_a_part_of_it_and_from_a_slower_one(gpu: Record) -> None:
    device, memory = gpu.device, gpu.device.memory_bytes or 0
    for changes in ({"sm_count": 16}, {"memory_bytes": memory // 2}):
        assert told_apart(device.model, dataclasses.replace(device, **changes).model), changes
    for changes in ({"memory_bytes": memory - (64 << 20)}, {"uuid_hash": "f" * 16}):
        other = dataclasses.replace(device, **changes)
        assert told_apart(device.model, other.model) is None, changes


def test_what_is_not_known_of_a_cpu_is_none(cpu: Record) -> None:
    assert not cpu.complete
    assert not cpu.compute_roofs("f32")
    assert not cpu.memory_roofs()


def test_a_row_belongs_to_one_part(ladder: Record) -> None:
    counts = {part: len([row for row in ladder.rows if row.part is part]) for part in Part}
    assert counts[Part.TUNING] == 9
    assert counts[Part.END_TO_END] == 6
    assert sum(counts.values()) == len(ladder.rows)
    assert len(ladder.rows_with("skipped")) == 1
    assert not ladder.rows_with("skipped", Part.LADDER)
    row = next(row for row in ladder.rows if row.variant)
    assert dataclasses.replace(row, transfer="pinned").part is Part.END_TO_END


def test_reads_modelled_bytes_and_what_the_card_can_do(ladder: Record, gpu: Record) -> None:
    row = next(row for row in ladder.rows if row.label == "Naive" and row.m == 4096)
    assert row.flop == 2 * 4096**3
    assert row.traffic
    assert row.traffic.l2_bytes == pytest.approx(row.flop / 0.4, rel=1e-5)
    assert row.traffic.shared_bytes == 0
    assert ladder.device.compute_capability == "9.0"
    assert [k.name for k in ladder.kernels if k.tunable] == ["BlockTile1D"]
    roof = ladder.measured_memory_roof("Shared")
    assert roof
    assert roof.name == "Shared_read"
    assert gpu.measured_memory_roof("L2") is None
    assert not any(row.traffic for row in gpu.rows), "earlier records have no model"


def test_a_row_with_transfers_has_its_parts(ladder: Record) -> None:
    row = next(row for row in ladder.rows if row.label == "EndToEnd/pinned/Tiled/tile:32")
    assert row.kernel_label == "Tiled/tile:32"
    parts = row.end_to_end
    assert parts
    assert parts.to_device_bytes == 8 * 1024**2
    assert -0.02 < parts.hidden_share < 0
    assert row.roof is None


@pytest.mark.parametrize("value", [float("nan"), 1e300, "much", True])
def test_a_hidden_share_is_a_number(value: object, ladder: Record) -> None:
    parts = next(row.end_to_end for row in ladder.rows if row.end_to_end)
    values = {**dataclasses.asdict(parts), "hidden_share": value}
    with pytest.raises(RecordError, match="hidden_share"):
        decoded(ladder.path, RECORD, values, EndToEnd)


@pytest.mark.parametrize(
    ("throttled", "complaint"),
    [([True], "is not as long as samples_seconds"), ([0, 1], "expected `bool`, got `int`")],
)
def test_samples_that_were_watched_are_as_many_as_samples(
    throttled: list[object], complaint: str, gpu_path: Path, tmp_path: Path
) -> None:
    document = json.loads(gpu_path.read_text(encoding="utf-8"))
    row = next(b["gemm"] for b in document["benchmarks"] if b.get("gemm", {}).get("seconds"))
    path = tmp_path / "record.json"
    row["samples_throttled"] = [True] * len(row["samples_seconds"])
    path.write_text(json.dumps(document), encoding="utf-8")
    watched = next(r for r in read_record(path).rows if r.seconds)
    assert watched.samples_throttled == (True,) * len(watched.samples_seconds)
    row["samples_throttled"] = throttled
    path.write_text(json.dumps(document), encoding="utf-8")
    with pytest.raises(RecordError, match=complaint):
        read_record(path)


def test_the_measured_roof_of_3xtf32_is_a_third_of_tf32s(gpu: Record) -> None:
    (tf32,) = gpu.measured_compute_roofs("tf32")
    (third,) = gpu.measured_compute_roofs("tf32x3")
    assert third.flop_per_second == (tf32.flop_per_second or 0) / 3
    assert (third.name, third.precision) == (f"{tf32.name} / 3", "tf32x3")
    assert third.clock_hz == tf32.clock_hz


@pytest.mark.parametrize("precision", ["e4m3", "e4m3fast", "e5m2", "e5m2fast"])
def test_all_of_fp8_has_the_measured_roof_of_its_unit(precision: str, gpu: Record) -> None:
    wgmma = dataclasses.replace(gpu.measured_ceilings[0], name="FP8_wgmma", arithmetic="e4m3")
    wgmma = dataclasses.replace(wgmma, flop_per_second=1.4e15, fill="random")
    (roof,) = dataclasses.replace(gpu, measured_ceilings=(wgmma,)).measured_compute_roofs(precision)
    assert (roof.name, roof.precision, roof.flop_per_second) == ("FP8_wgmma", precision, 1.4e15)
