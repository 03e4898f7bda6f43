from gemm_report.record import Record


def test_reads_what_the_record_says(gpu: Record) -> None:
    assert gpu.complete
    assert gpu.device.name == "Test GPU"
    assert [c.name for c in gpu.memory_roofs()] == ["DRAM"]
    assert gpu.compute_roofs("bf16")[0].flop_per_second == 989.4e12
    labels = {row.label for row in gpu.rows}
    assert {"NaiveUncoalesced", "Tiled/tile:8", "Tiled/tile:16", "cuBLAS/math:default"} <= labels
    assert [row.label for row in gpu.rows_with("failed")] == ["Tiled/tile:32"]
    assert [row.shape for row in gpu.rows_with("skipped")] == ["8192x8192x8192"]
    assert gpu.aggregates == 3


def test_unknown_roofs_come_with_their_reason(cpu: Record) -> None:
    assert not cpu.complete
    assert not cpu.compute_roofs("f32")
    assert not cpu.memory_roofs()
    assert [c.source for c in cpu.unknown_roofs()][1] == "not measured in this run"
