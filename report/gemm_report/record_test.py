import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest

from gemm_report.document import RecordError
from gemm_report.record import Part, Record, read_record, told_apart


def test_reads_what_the_record_says(gpu: Record, cpu: Record) -> None:
    assert gpu.complete and not cpu.complete
    assert [c.name for c in gpu.memory_roofs()] == ["DRAM"]
    assert gpu.compute_roofs("bf16")[0].flop_per_second == 989.4e12
    assert not cpu.compute_roofs("f32") and not cpu.memory_roofs(), "not known"
    assert [row.label for row in gpu.rows_with("failed")] == ["Tiled/tile:32"]
    assert [row.size for row in gpu.rows_with("skipped")] == ["8192"]
    slabs = {row.size for row in gpu.rows if row.m == row.n != row.k}
    assert all(size.count("x") == 2 for size in slabs)


def test_a_case_is_named_as_its_benchmark_is(gpu: Record) -> None:
    row = next(row for row in gpu.rows if row.label == "Tiled/tile:16")
    for changes, name in (
        ({}, "Tiled/tile:16/f32/256x256x256"),
        ({"layout": "nt"}, "Tiled/tile:16/layout:nt/f32/256x256x256"),
        ({"transfer": "pinned"}, "EndToEnd/pinned/Tiled/tile:16/f32/256x256x256"),
        ({"batch_count": 8}, "Tiled/tile:16/f32/batched:8x256x256x256"),
        ({"epilogue": "bias-gelu"}, "Tiled/tile:16/epilogue:bias-gelu/f32/256x256x256"),
        (
            {"batch_count": 8, "tokens": "zipf:3"},
            "Tiled/tile:16/f32/grouped:8x256x256x256/zipf:3",
        ),
    ):
        assert str(dataclasses.replace(row, **changes).identity) == name
    assert dataclasses.replace(row, k=128).size == "256x256x128"


@pytest.mark.parametrize(
    ("which", "changes", "is_other"),
    [
        ("cpu", {}, False),
        ("cpu", {"cpu_id": None, "l1_data_bytes": None}, False),  # earlier records do not say
        ("cpu", {"memory_bytes": 1, "last_level_cache_bytes": 1, "driver": "x"}, False),
        ("cpu", {"cpu_id": "AuthenticAMD 25.1.1"}, True),
        *(("cpu", {each: 12 << 10}, True) for each in ("l1_data_bytes", "l2_bytes", "l3_bytes")),
        ("cpu", {"cores": 3}, True),
        ("gpu", {"sm_count": 16}, True),
        ("gpu", {"memory_bytes": 40 << 30}, True),
        ("gpu", {"memory_bytes": (80 << 30) - (64 << 20), "uuid_hash": "f" * 16}, False),
    ],
)
def test_hardware_is_told_from_slower_hardware_of_its_name(
    which: str, changes: dict[str, Any], is_other: bool, request: pytest.FixtureRequest
) -> None:
    known: dict[str, Any] = {"memory_bytes": 80 << 30}
    if which == "cpu":
        known = {"cpu_id": "AuthenticAMD 25.17.1", "l1_data_bytes": 32 << 10, "l2_bytes": 1 << 20}
        known["l3_bytes"] = 32 << 20
    device = dataclasses.replace(request.getfixturevalue(which).device, **known)
    told = told_apart(device.model, dataclasses.replace(device, **changes).model)
    assert bool(told) == is_other
    assert not told or (told[0] != told[1] and told[0].startswith(device.name))


def test_a_row_belongs_to_one_part(ladder: Record) -> None:
    counts = {part: len([row for row in ladder.rows if row.part is part]) for part in Part}
    assert (counts[Part.TUNING], counts[Part.END_TO_END]) == (9, 6)
    assert not ladder.rows_with("skipped", Part.LADDER) and len(ladder.rows_with("skipped")) == 1
    row = next(row for row in ladder.rows if row.variant)
    assert dataclasses.replace(row, transfer="pinned").part is Part.END_TO_END
    row = next(row for row in ladder.rows if row.end_to_end)
    assert row.kernel_label == row.label.partition("EndToEnd/pageable/")[2] and row.roof is None


def test_bytes_are_modelled_and_probes_are_roofs_of_memories(ladder: Record, gpu: Record) -> None:
    row = next(row for row in ladder.rows if row.label == "Naive" and row.m == 4096)
    assert row.traffic and row.traffic.levels["L2"] == pytest.approx(row.flop / 0.4, rel=1e-5)
    roof = ladder.measured_memory_roof("Shared")
    assert roof and roof.name == "Shared_read"
    assert gpu.measured_memory_roof("L2") is None


@pytest.mark.parametrize("wrong", [None, [True], [0, 1]])
def test_samples_that_were_watched_are_as_many_as_samples(
    wrong: list[object] | None, gpu_path: Path, tmp_path: Path
) -> None:
    document = json.loads(gpu_path.read_text(encoding="utf-8"))
    row = next(b["gemm"] for b in document["benchmarks"] if b.get("gemm", {}).get("seconds"))
    path, count = tmp_path / "record.json", len(row["samples_seconds"])
    row["samples_throttled"] = [True] * count if wrong is None else wrong
    path.write_text(json.dumps(document), encoding="utf-8")
    if wrong is None:
        watched = next(r for r in read_record(path).rows if r.seconds)
        assert watched.samples_throttled == (True,) * count
    else:
        with pytest.raises(RecordError, match="samples_throttled"):
            read_record(path)


def test_power_is_the_mean_or_of_earlier_records_that_of_half_a_second(gpu: Record) -> None:
    row = next(row for row in gpu.rows if row.clocks and row.clocks.power_w)
    assert row.clocks and row.clocks.power_w

    def power(readings: int) -> float | None:
        clocks = dataclasses.replace(row.clocks, readings=readings)  # type: ignore[type-var]
        return dataclasses.replace(row, clocks=clocks, energy=None).power_w

    assert (power(24), power(25)) == (None, row.clocks.power_w.median)


@pytest.mark.parametrize(
    ("precision", "name", "rate"),
    [
        ("tf32x3", "TF32_wgmma / 3", 1 / 3),
        *((fp8, "TF32_wgmma", 1.0) for fp8 in ("e4m3", "e4m3fast", "e5m2", "e5m2fast")),
    ],
)
def test_a_measured_roof_is_that_of_the_unit(
    precision: str, name: str, rate: float, gpu: Record
) -> None:
    arithmetic = "e4m3" if precision.startswith("e") else "tf32"
    probe = dataclasses.replace(gpu.measured_ceilings[0], name="TF32_wgmma", arithmetic=arithmetic)
    probe = dataclasses.replace(probe, flop_per_second=1.0, fill="random")
    zeros = dataclasses.replace(probe, flop_per_second=2.0, fill="zeros")
    record = dataclasses.replace(gpu, measured_ceilings=(zeros, probe))
    (roof,) = record.measured_compute_roofs(precision)
    assert (roof.name, roof.precision, roof.flop_per_second) == (name, precision, rate)
