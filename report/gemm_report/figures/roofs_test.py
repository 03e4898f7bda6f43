import dataclasses

from gemm_report.figures.roofs import MEASURED, NOMINAL, compute_roofs, kind, memory_roofs
from gemm_report.record import Record


def test_a_precision_has_its_highest_nominal_and_its_highest_measured_peak(gpu: Record) -> None:
    found = compute_roofs(gpu, "bf16")
    assert [(kind(roof), roof.name) for roof in found] == [
        (NOMINAL, "BF16 tensor core"),
        (MEASURED, "BF16_wgmma"),
    ]
    assert found[1].flop_per_second == 700e12, "zeros are no peak for a kernel"
    assert [(kind(roof), roof.name) for roof in memory_roofs(gpu)] == [
        (NOMINAL, "DRAM"),
        (MEASURED, "DRAM_read"),
    ]


def test_a_peak_that_is_measured_already_has_no_second_one(gpu: Record, cpu: Record) -> None:
    seen = tuple(dataclasses.replace(each, origin="measured") for each in gpu.ceilings)
    record = dataclasses.replace(gpu, ceilings=seen)
    assert [kind(roof) for roof in compute_roofs(record, "f32")] == [MEASURED]
    assert [kind(roof) for roof in memory_roofs(record)] == [MEASURED]
    alone = dataclasses.replace(cpu, measured_ceilings=gpu.measured_ceilings)
    assert [roof.name for roof in compute_roofs(alone, "f32")] == ["FP32_FMA"]
