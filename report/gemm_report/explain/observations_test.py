"""What record and counters say of a row."""

import dataclasses
from pathlib import Path

import pytest

from gemm_report.explain.metrics import LIMITS, WAVES
from gemm_report.explain.ncu import Instruction, Launch
from gemm_report.explain.observations import counted_traffic, hottest, indexed_share, observe
from gemm_report.record import DeviceCode, Record, Row, Traffic, read_record

H200 = Path(__file__).parents[3] / "results" / "nvidia-h200"


@pytest.fixture(scope="module")
def record() -> Record:
    return read_record(H200 / "20261121T131126Z-3c362ff3dc00.json.gz")


@pytest.fixture(scope="module")
def row(record: Record) -> Row:
    """Of one kernel, as ncu names it."""
    found = (r for r in record.rows if r.label == "Tiled/tile:32" and r.m == 4096 and r.is_cube)
    return dataclasses.replace(next(found), device_kernels=("tiled",))


def counted(seconds: float, name: str = "void ns::tiled<(int)1>(float)", **more: float) -> Launch:
    metrics = {"gpu__time_duration.sum": seconds, "sm__cycles_elapsed.avg.per_second": 0.99e9}
    return Launch(name, {**metrics, **more})


def test_every_gpu_kernel_of_a_record_can_be_observed(record: Record) -> None:
    rows = [row for row in record.rows if row.status == "timed" and row.transfer is None]
    assert len(rows) > 200
    for row in rows:
        seen = observe(record, row)
        assert seen.flop_per_second == pytest.approx(row.flop_per_second, rel=1e-6)
        assert not seen.has_counters


def test_limits_and_waves_are_those_of_ncu(record: Record, row: Row) -> None:
    fits = {"warps": 8.0, "registers": 3.0, "shared memory": 3.0}
    more = {LIMITS[name]: blocks for name, blocks in fits.items()} | {WAVES: 7.75}
    seen = observe(record, row, [counted(1e-6, "tiled", **more)])
    assert (seen.occupancy_limits, seen.waves) == (("registers", "shared memory"), 7.75)


def test_without_counters_waves_follow_from_the_blocks_that_fit(record: Record, row: Row) -> None:
    for fit, waves in ((8, pytest.approx(1 + 1 / (132 * 8))), (None, None), (0, None)):
        code = DeviceCode("tiled", None, 32, 0, 0, 256, 132 * 8 + 1, 1.0, fit)
        seen = observe(record, dataclasses.replace(row, device_code=(code,)))
        assert seen.waves == waves
        assert seen.occupancy_limits == ()


CODE = (
    Instruction("LDL R5, [R1+0x10] ;", 10, 1000, "my.cu:8", "sum += a[l];"),
    Instruction("FFMA R1, R2, R3, R1 ;", 5, 3000, "my.cu:9", "}"),
    Instruction("@P0 STL.64 [R7.X4+0x8], R5 ;", 85, 3000, "my.cu:8", "sum += a[l];"),
)


def test_the_line_with_most_stalls_is_named_with_its_file(record: Record, row: Row) -> None:
    few = dataclasses.replace(counted(9e-6, "tiled"), code=CODE[:1])
    launch = dataclasses.replace(counted(1e-6, "tiled"), code=CODE)
    seen = observe(record, row, [few, launch])
    assert seen.hot_line == "95.0 % of the stalls are at my.cu:8: sum += a[l];"
    assert seen.local_indexed == 0.75
    bare = [dataclasses.replace(each, place="", line="") for each in CODE]
    assert hottest(bare) == "85.0 % of the stalls are at @P0 STL.64 [R7.X4+0x8], R5 ;"
    assert (hottest([]), indexed_share([])) == (None, None)


@pytest.mark.parametrize(
    ("address", "indexed"),
    [("R1", 0), ("R1+0x10", 0), ("R1+-0x8", 0), ("R12", 1), ("R1.X4+UR4", 1), ("R7+0x10", 1)],
)
def test_a_run_time_index_is_another_register(address: str, indexed: int) -> None:
    for text in (f"LDL.128 R4, [{address}] ;", f"@!P1 STL [{address}], R4 ;"):
        for executed in (5, 0):
            assert indexed_share([Instruction(text, 0, executed)]) == indexed
    assert indexed_share([Instruction("LDS R4, [R7]", 0, 5)]) is None


def test_bytes_of_all_kernels_of_a_launch_are_added(record: Record, row: Row) -> None:
    row = dataclasses.replace(row, device_kernels=("ns::tiled<1>", "memset", "sum"))
    names = ("dram__bytes.sum", "lts__t_sectors.sum")
    names += ("l1tex__data_pipe_lsu_wavefronts_mem_shared.sum",)
    launches = [
        counted(1e-6, **dict.fromkeys(names, 1000.0)),
        counted(9e-6, **dict.fromkeys(names, 10.0)),
        counted(2e-6, "sum", **dict.fromkeys(names, 1.0)),
        counted(99e-6, "stranger", **dict.fromkeys(names, 5000.0)),
    ]
    assert counted_traffic(row, launches) == Traffic(11, 11 * 32, 11 * 128)
    assert counted_traffic(row, [counted(9e-6)]) is None
    seen = observe(record, row, launches)
    assert seen.counted_kernel == "tiled", "the longest"
    assert seen.sm_hz
    assert seen.kernel_seconds == pytest.approx(11e-6 * 0.99e9 / seen.sm_hz)
    assert observe(record, row, launches[:2]).kernel_seconds is None, "one was not seen"
    twice = dataclasses.replace(row, device_kernels=("ns::tiled<1>", "sum", "ns::tiled<1>"))
    found = counted_traffic(twice, launches)
    assert found and found.dram_bytes == 21, "a kernel that runs twice counts twice"


def test_what_wgmma_reads_is_not_counted_twice(record: Record, row: Row) -> None:
    shared = "l1tex__data_pipe_lsu_wavefronts_mem_shared"
    more = {"dram__bytes.sum": 1.0, "lts__t_sectors.sum": 1.0, f"{shared}.sum": 5.0}
    for gmma, wavefronts in ((3.0, 5), (8.0, 8)):
        launch = counted(1e-6, "tiled", **more, **{f"{shared}_op_gmma.sum": gmma})
        assert counted_traffic(row, [launch]) == Traffic(1, 32, wavefronts * 128)


BY_THREAD = "smsp__sass_thread_inst_executed_op"
REQUESTS = "l1tex__t_requests_pipe_lsu_mem_global_op"
REQUESTED = {f"smsp__inst_executed_op_global_{way}.sum": 16.0 for way in ("ld", "st")}


@pytest.mark.parametrize(
    ("counts", "found"),
    [
        (REQUESTED, {"requests_per_clock": pytest.approx(0.32)}),
        (
            {
                "smsp__inst_executed.sum": 100.0,
                "smsp__thread_inst_executed.sum": 2400.0,
                "smsp__thread_inst_executed_pred_on.sum": 1600.0,
            },
            {"lanes": 24, "lanes_on": 16},
        ),
        ({f"{BY_THREAD}_fp64_pred_on.sum": 64.0 * 100 * 132}, {"fp64_pace": pytest.approx(0.5)}),
        ({f"{BY_THREAD}_integer_pred_on.sum": 2 * 2 * 4096.0**3}, {"integers_per_product": 4}),
        ({f"{BY_THREAD}_conversion_pred_on.sum": 4096.0**3}, {"conversions_per_product": 1}),
        (
            {f"{REQUESTS}_atom.sum": 1.0, f"{REQUESTS}_red.sum": 1.0, **REQUESTED},
            {"atomic_share": pytest.approx(16 / 48)},
        ),
        (
            {
                "sm__pipe_alu_cycles_active.avg.pct_of_peak_sustained_active": 25.0,
                "sm__inst_executed_pipe_xu.avg.pct_of_peak_sustained_active": 75.0,
            },
            {"pipes": (("ALU", 0.25), ("XU", 0.75))},
        ),
    ],
)
def test_shares_follow_from_counts(
    record: Record, row: Row, counts: dict[str, float], found: dict[str, object]
) -> None:
    one_sm = dataclasses.replace(record, device=dataclasses.replace(record.device, sm_count=1))
    launch = counted(1e-6, "tiled", **{"sm__cycles_elapsed.avg": 100.0, **counts})
    seen = observe(one_sm, row, [launch])
    assert {name: getattr(seen, name) for name in found} == found


@pytest.mark.parametrize(
    ("counts", "unit"),
    [
        # Naive's constants are made by HFMA2, which the half precision pipe executes.
        ({"ffma": 4096.0**3, "hmma": 1048576.0}, None),
        ({"hmma": 1048576.0}, None),
        # Where k is small they would suffice.
        ({"ffma": 4096.0**3, "hmma": 4096.0**3 / 2048}, None),
        ({"hmma": 4096.0**3 / 2048}, "mma.sync"),
        ({"hmma": 1048576.0, "gmma": 1048576.0}, "wgmma"),
    ],
)
def test_the_tensor_cores_multiply_where_their_instructions_suffice(
    record: Record, row: Row, counts: dict[str, float], unit: str | None
) -> None:
    pipe = "sm__inst_executed_pipe_tensor_op"
    launch = counted(
        1e-3,
        "tiled",
        **{
            "smsp__inst_executed.sum": 1e9,
            "smsp__sass_thread_inst_executed_op_ffma_pred_on.sum": counts.get("ffma", 0.0),
            f"{pipe}_hmma.sum": counts["hmma"],
            f"{pipe}_gmma.sum": counts.get("gmma", 0.0),
            "smsp__sass_average_data_bytes_per_sector_mem_global_op_ld.pct": 0.0,
        },
    )
    seen = observe(record, row, [launch])
    assert seen.tensor_unit == unit
    assert (seen.tensor_share is None) == (unit is None)
    assert seen.sector_use is None, "no load was counted"
