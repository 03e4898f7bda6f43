import dataclasses

from gemm_report.figures.roofline.roofs import compute_roofs, roof_labels
from gemm_report.record import Record


def test_a_roof_that_two_precisions_share_is_named_once(gpu: Record) -> None:
    (bf16, *_) = gpu.compute_roofs("bf16")
    fp8 = dataclasses.replace(bf16, name="FP8 tensor core", flop_per_second=1979e12)
    shared = [dataclasses.replace(fp8, precision=precision) for precision in ("e4m3", "e4m3fast")]
    rows = [dataclasses.replace(gpu.rows[0], precision=roof.precision or "") for roof in shared]
    record = dataclasses.replace(gpu, ceilings=tuple(shared), measured_ceilings=())
    texts = [label.text for label in roof_labels(compute_roofs(record, rows))]
    assert [text.count("FP8 tensor core") for text in texts] == [1], texts
