"""Which counters are asked of which chip."""

import pytest

from gemm_report.explain.metrics import STALLS, names, quantities, select, values

CAPABILITIES = ["7.5", "8.0", "8.6", "8.7", "8.9", "9.0", "10.0", "10.3", "11.0", "12.0", "12.1"]


def everything(capability: str) -> set[str]:
    """All that could be asked for there."""
    return {name.partition(".")[0] for name in names(capability)}


def asked(capability: str) -> str:
    return " ".join(select(capability, everything(capability))[0])


@pytest.mark.parametrize(
    ("name", "there", "elsewhere"),
    [
        ("stalled_gmma_", ["9.0"], ["7.5", "8.0", "8.9", "10.0", "12.0"]),
        ("stalled_imc_miss_", ["7.5", "9.0"], ["10.0", "12.0"]),
        ("shared_op_ldgsts", ["8.0", "8.9", "9.0", "10.0"], ["7.5", "8.6"]),
        ("shared_op_gmma", ["9.0"], ["8.0", "10.0", "12.0"]),
        ("op_hgmma_src_bf16_dst_fp32_sparsity_off", ["9.0"], ["8.0", "10.0", "12.0"]),
        ("op_hmma_src_bf16", ["9.0", "10.0", "12.0"], ["7.5", "8.0", "8.9"]),
        ("src_fp16_bf16_tf32_dst_fp32", ["7.5"], ["8.0", "9.0"]),
        ("pipe_tensor_op_hmma", ["7.5", "8.0", "9.0"], ["10.0", "12.0"]),
        ("pipe_tensor_subpipe_hmma", ["10.0", "12.1"], ["8.0", "9.0"]),
        ("pipe_tc.sum", ["10.0", "10.3"], ["9.0", "12.0"]),
        ("dram__bytes", ["7.5", "8.0", "9.0", "10.0", "12.0"], ["8.7", "11.0", "12.1"]),
        ("op_ffma_pred_on", CAPABILITIES, []),
    ],
)
def test_names_follow_the_chip(name: str, there: list[str], elsewhere: list[str]) -> None:
    assert [c for c in there if name not in asked(c)] == []
    assert [c for c in elsewhere if name in asked(c)] == []


def test_where_a_sum_is_absent_its_parts_are_asked_for() -> None:
    present = everything("9.0") - {"dram__bytes"}
    asked_for, dropped = select("9.0", present)
    assert dropped == []
    assert {"dram__bytes_read.sum", "dram__bytes_write.sum"} <= set(asked_for)
    assert "dram__bytes.sum" not in asked_for
    assert "dram__bytes_op_read.sum" in select("12.0", everything("12.0") - {"dram__bytes"})[0]


def test_absent_names_are_dropped_and_told() -> None:
    asked_for, dropped = select("9.0", {"gpu__time_duration", "lts__t_sectors"})
    assert asked_for == ["gpu__time_duration.sum", "lts__t_sectors.sum"]
    assert {"dram_bytes", "stall_gmma", "issue_active"} <= set(dropped)
    assert "dram_bytes" in select("12.1", everything("12.1"))[1]


def test_nothing_is_asked_twice() -> None:
    for capability in CAPABILITIES:
        asked_for = select(capability, everything(capability))[0]
        assert len(asked_for) == len(set(asked_for))


def test_counts_become_quantities() -> None:
    found = values(
        "9.0",
        {
            "lts__t_sectors.sum": 10.0,
            "dram__bytes_read.sum": 3.0,
            "dram__bytes_write.sum": 4.0,
            "smsp__issue_active.avg.pct_of_peak_sustained_active": 73.0,
            "smsp__inst_executed_op_local_ld.sum": 1.0,
        },
    )
    assert found == pytest.approx({"l2_bytes": 320, "dram_bytes": 7, "issue_active": 0.73})


def test_every_stall_has_words() -> None:
    wanted = {q.removeprefix("stall_") for q in quantities("9.0") if "stall_" in q}
    assert wanted == STALLS.keys()
