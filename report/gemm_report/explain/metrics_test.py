"""Which counters are asked for, and what follows from them."""

import pytest

from gemm_report.explain.metrics import QUANTITIES, names, select, values

ALL = {name.partition(".")[0] for name in names()}
SHARED = "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op"


@pytest.mark.parametrize(
    ("lacking", "asked", "dropped"),
    [
        ((), ["dram__bytes.sum", "sm__inst_executed_pipe_tensor_op_gmma.sum"], []),
        (("dram__bytes",), ["dram__bytes_read.sum", "dram__bytes_write.sum"], []),
        (("dram__bytes", "dram__bytes_read"), ["dram__bytes_op_read.sum"], []),
        (("dram__bytes", "dram__bytes_read", "dram__bytes_op_read"), [], ["dram_bytes"]),
        ((f"{SHARED}_gmma",), [f"{SHARED}_ldgsts.sum"], []),  # of Hopper alone
        (("smsp__average_warps_issue_stalled_gmma_per_issue_active",), [], []),
        (("smsp__issue_active",), [], ["issue_active"]),
    ],
)
def test_what_a_gpu_lacks_is_counted_otherwise_or_dropped(
    lacking: tuple[str, ...], asked: list[str], dropped: list[str]
) -> None:
    found, told = select(ALL - set(lacking))
    assert set(asked) <= set(found)
    assert told == dropped
    assert len(found) == len(set(found))
    assert not {name.partition(".")[0] for name in found} & set(lacking)


def test_counts_become_quantities() -> None:
    counts = {
        "lts__t_sectors.sum": 10.0,
        "dram__bytes_read.sum": 3.0,
        "dram__bytes_write.sum": 4.0,
        "smsp__issue_active.avg.pct_of_peak_sustained_active": 73.0,
        "smsp__inst_executed_op_local_ld.sum": 1.0,
    }
    found = {"l2_bytes": 320, "dram_bytes": 7, "issue_active": 0.73}
    assert values(counts) == pytest.approx(found)
    assert found.keys() < QUANTITIES.keys()
