"""Which counters tell of what, and what they are called on which chip.

The names were read from the tables of Nsight Compute (libnvperf of CUDA 13.0) for each compute
capability. Each quantity is a sum of metrics; the first of its ways of which the chip has all is
the one that is asked for.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

PERCENT = 0.01
SECTOR = 32.0
WAVEFRONT = 128.0

STALLS = {
    "barrier": "wait at a barrier for other warps of their block",
    "branch_resolving": "wait for the target of a branch",
    "dispatch_stall": "are held back at dispatch, as by conflicts of register banks",
    "drain": "wait for their last stores before they end",
    "gmma": "wait for the tensor cores (wgmma)",
    "imc_miss": "wait for constants that the cache does not hold",
    "lg_throttle": "wait since the queue for global and local memory is full",
    "long_scoreboard": "wait for data from global or local memory",
    "math_pipe_throttle": "wait for an arithmetic unit that is busy",
    "membar": "wait for a memory fence",
    "mio_throttle": "wait since the queue for shared memory is full",
    "misc": "wait for something that has no name",
    "no_instruction": "wait for instructions that the cache does not hold",
    "not_selected": "could issue, but another warp does",
    "selected": "issue",
    "short_scoreboard": "wait for data from shared memory",
    "sleeping": "sleep",
    "tex_throttle": "wait since the queue of the texture unit is full",
    "wait": "wait the fixed time that the instruction before takes",
}

_SHARED = "l1tex__data_pipe_lsu_wavefronts_mem_shared"
_CONFLICTS = "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op"
_SECTORS = "l1tex__average_t_sectors_per_request_pipe_lsu_mem_global_op"
_OPS = "sm__ops_path_tensor"


@dataclass(frozen=True)
class Quantity:
    """What is wanted, the ways to it in order of preference, and what one count stands for."""

    name: str
    ways: tuple[tuple[str, ...], ...]
    unit: float = 1.0


def quantities(capability: str) -> list[Quantity]:
    """All that is wanted of a card of this compute capability."""
    chip = _number(capability)
    wanted = [
        Quantity("seconds", (("gpu__time_duration.sum",),)),
        Quantity("sm_hz", (("sm__cycles_elapsed.avg.per_second",),)),
        Quantity("dram_bytes", _dram(chip)),
        Quantity(
            "l2_bytes",
            (("lts__t_sectors_srcunit_tex.sum",), ("lts__t_sectors.sum",)),
            unit=SECTOR,
        ),
        Quantity("shared_bytes", ((f"{_SHARED}.sum",),), unit=WAVEFRONT),
        Quantity("conflicts", _conflicts(chip)),
        Quantity("sectors_per_load", ((f"{_SECTORS}_ld.ratio",),)),
        Quantity("sectors_per_store", ((f"{_SECTORS}_st.ratio",),)),
        Quantity(
            "sector_use",
            (("smsp__sass_average_data_bytes_per_sector_mem_global_op_ld.pct",),),
            unit=PERCENT,
        ),
        Quantity("l1_hits", (("l1tex__t_sector_hit_rate.pct",),), unit=PERCENT),
        Quantity("l2_hits", (("lts__t_sector_hit_rate.pct",),), unit=PERCENT),
        Quantity("instructions", (("smsp__inst_executed.sum",),)),
        Quantity("ffma_threads", (("smsp__sass_thread_inst_executed_op_ffma_pred_on.sum",),)),
        Quantity(
            "issue_active",
            (("smsp__issue_active.avg.pct_of_peak_sustained_active",),),
            unit=PERCENT,
        ),
        Quantity(
            "warps_active",
            (("sm__warps_active.avg.pct_of_peak_sustained_active",),),
            unit=PERCENT,
        ),
        Quantity("cycles_active", (("sm__cycles_active.avg",),)),
        Quantity("cycles_elapsed", (("sm__cycles_elapsed.avg",),)),
        Quantity(
            "local_requests",
            (("smsp__inst_executed_op_local_ld.sum", "smsp__inst_executed_op_local_st.sum"),),
        ),
        Quantity(
            "global_requests",
            (("smsp__inst_executed_op_global_ld.sum", "smsp__inst_executed_op_global_st.sum"),),
        ),
        Quantity(
            "memory_requests",
            (
                (
                    "smsp__inst_executed_op_global_ld.sum",
                    "smsp__inst_executed_op_global_st.sum",
                    "smsp__inst_executed_op_shared_ld.sum",
                    "smsp__inst_executed_op_shared_st.sum",
                ),
            ),
        ),
        *_tensor(chip),
    ]
    if chip == 90:
        # wgmma reads its operands past the load and store unit.
        gmma = f"{_SHARED}_op_gmma.sum"
        wanted.append(Quantity("gmma_shared_bytes", ((gmma,),), unit=WAVEFRONT))
    return wanted + [
        Quantity(
            f"stall_{reason}",
            ((f"smsp__average_warps_issue_stalled_{reason}_per_issue_active.ratio",),),
        )
        for reason in STALLS
        if not (reason == "gmma" and chip != 90)
        and not (reason == "imc_miss" and chip in (100, 120))
    ]


def select(capability: str, present: Collection[str]) -> tuple[list[str], list[str]]:
    """The metrics to ask for, and the quantities of which the chip has no way."""
    names: list[str] = []
    dropped: list[str] = []
    for quantity in quantities(capability):
        way = _first(quantity, {_base(name) for name in present})
        if way is None:
            dropped.append(quantity.name)
        else:
            names += way
    return list(dict.fromkeys(names)), dropped


def names(capability: str) -> frozenset[str]:
    """All that may be asked for there, whichever way the chip has."""
    return frozenset(n for q in quantities(capability) for way in q.ways for n in way)


def values(capability: str, metrics: Mapping[str, float]) -> dict[str, float]:
    """The quantities that follow from what was counted."""
    found = {}
    for quantity in quantities(capability):
        way = next((way for way in quantity.ways if all(name in metrics for name in way)), None)
        if way is not None:
            found[quantity.name] = quantity.unit * sum(metrics[name] for name in way)
    return found


def _dram(chip: int) -> tuple[tuple[str, ...], ...]:
    if chip in (87, 110, 121):
        return ()  # memory that the processor shares has no such counter
    parts = ("op_read", "op_write") if chip == 120 else ("read", "write")
    first, second = (f"dram__bytes_{part}.sum" for part in parts)
    return (("dram__bytes.sum",), (first, second))


def _conflicts(chip: int) -> tuple[tuple[str, ...], ...]:
    plain = (f"{_CONFLICTS}_ld.sum", f"{_CONFLICTS}_st.sum")
    more = ("sm__sass_l1tex_data_bank_conflicts_pipe_lsu_mem_shared_op_ldsm.sum",)
    if chip not in (75, 86):
        more += (f"{_CONFLICTS}_ldgsts.sum",)
    if chip == 90:
        more += (f"{_CONFLICTS}_gmma.sum",)
    return (plain + more, plain + more[:1], plain)


def _tensor(chip: int) -> list[Quantity]:
    """Warp instructions of tensor cores, and what they computed: mma.sync apart from wgmma."""
    if chip == 75:
        kinds = ("src_fp16_bf16_tf32_dst_fp32", "src_fp16_dst_fp16")
    elif chip < 90:
        kinds = ("src_fp16_dst_fp32", "src_bf16_dst_fp32_sparsity_off")
    else:
        kinds = ("op_hmma_src_bf16_dst_fp32_sparsity_off",)
    pipe = "sm__inst_executed_pipe_tensor"
    mma = f"{pipe}_op_hmma.sum" if chip <= 90 else f"{pipe}_subpipe_hmma.sum"
    found = [
        Quantity("mma_flop", (tuple(f"{_OPS}_{kind}.sum" for kind in kinds),)),
        Quantity("mma_instructions", ((mma,),)),
    ]
    if chip == 90:
        hgmma = ("bf16_dst_fp32", "fp16", "tf32_dst_fp32")
        names = tuple(f"{_OPS}_op_hgmma_src_{kind}_sparsity_off.sum" for kind in hgmma)
        found.append(Quantity("wgmma_flop", (names,)))
        found.append(Quantity("wgmma_instructions", ((f"{pipe}_op_gmma.sum",),)))
    elif chip in (100, 103):
        found.append(Quantity("wgmma_instructions", (("sm__inst_executed_pipe_tc.sum",),)))
    return found


def _first(quantity: Quantity, present: Collection[str]) -> tuple[str, ...] | None:
    return next((w for w in quantity.ways if all(_base(n) in present for n in w)), None)


def _base(name: str) -> str:
    return name.partition(".")[0]


def _number(capability: str) -> int:
    major, _, minor = capability.partition(".")
    return 10 * int(major) + int(minor or 0)
