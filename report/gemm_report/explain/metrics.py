"""Which counters tell of what, and what they are called on which chip.

The names were read from the tables of Nsight Compute (libnvperf of CUDA 13.0) for each compute
capability. Each quantity is a sum of metrics; the first of its ways of which the chip has all is
the one that is asked for.
"""

import tomllib
from collections.abc import Collection, Mapping
from pathlib import Path

WAVEFRONT = 128.0  # bytes
_SECTOR = 32.0  # bytes

# By ncu's names: the words for stalls, and the steps for each finding.
WORDS = tomllib.loads(Path(__file__).with_name("words.toml").read_text(encoding="utf-8"))
STALLS: dict[str, str] = WORDS["stalls"]

# Of an SM, by what they compute; each with the part of its metric's name.
PIPES = {
    "FMA": "pipe_fma_cycles_active",
    "ALU": "pipe_alu_cycles_active",
    "FP64": "pipe_fp64_cycles_active",
    "XU": "inst_executed_pipe_xu",
    "tensor": "pipe_tensor_cycles_active",
}

_SHARED = "l1tex__data_pipe_lsu_wavefronts_mem_shared"
_CONFLICTS = "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op"
_SECTORS = "l1tex__average_t_sectors_per_request_pipe_lsu_mem_global_op"
_OPS = "sm__ops_path_tensor"
_ATOMIC = "l1tex__t_requests_pipe_lsu_mem_global_op"


_INSTRUCTIONS = "smsp__inst_executed"
_BY_THREAD = "smsp__sass_thread_inst_executed_op"
_STALLED = "smsp__average_warps_issue_stalled_{}_per_issue_active.ratio"
_GLOBAL = tuple(f"{_INSTRUCTIONS}_op_global_{way}.sum" for way in ("ld", "st"))
_ON_CHIP = tuple(f"{_INSTRUCTIONS}_op_shared_{way}.sum" for way in ("ld", "st"))

# What ncu has of every launch, asked for or not: blocks that fit on an SM, by what they take of it.
LIMITS = {
    "warps": "launch__occupancy_limit_warps",
    "blocks": "launch__occupancy_limit_blocks",
    "registers": "launch__occupancy_limit_registers",
    "shared memory": "launch__occupancy_limit_shared_mem",
}
WAVES = "launch__waves_per_multiprocessor"

# A way to a quantity: the metrics whose sum it is.
Ways = tuple[tuple[str, ...], ...]

# Of these one count stands for so many bytes; what ncu has in per cent is a share here.
_UNITS = {"l2_bytes": _SECTOR, "shared_bytes": WAVEFRONT, "gmma_shared_bytes": WAVEFRONT}
_EVERYWHERE: dict[str, Ways] = {
    "l2_bytes": (("lts__t_sectors_srcunit_tex.sum",), ("lts__t_sectors.sum",)),
    "local_requests": ((f"{_INSTRUCTIONS}_op_local_ld.sum", f"{_INSTRUCTIONS}_op_local_st.sum"),),
    "global_requests": (_GLOBAL,),
    "memory_requests": (_GLOBAL + _ON_CHIP,),
    "global_atomics": (tuple(f"{_ATOMIC}_{way}.sum" for way in ("atom", "red")),),
}
_ALONE = {
    "seconds": "gpu__time_duration.sum",
    "sm_hz": "sm__cycles_elapsed.avg.per_second",
    "shared_bytes": f"{_SHARED}.sum",
    "sectors_per_load": f"{_SECTORS}_ld.ratio",
    "sectors_per_store": f"{_SECTORS}_st.ratio",
    "sector_use": "smsp__sass_average_data_bytes_per_sector_mem_global_op_ld.pct",
    "l1_hits": "l1tex__t_sector_hit_rate.pct",
    "l2_hits": "lts__t_sector_hit_rate.pct",
    "instructions": f"{_INSTRUCTIONS}.sum",
    "ffma_threads": f"{_BY_THREAD}_ffma_pred_on.sum",
    "issue_active": "smsp__issue_active.avg.pct_of_peak_sustained_active",
    "warps_active": "sm__warps_active.avg.pct_of_peak_sustained_active",
    "cycles_active": "sm__cycles_active.avg",
    "cycles_elapsed": "sm__cycles_elapsed.avg",
    "threads": "smsp__thread_inst_executed.sum",
    "threads_on": "smsp__thread_inst_executed_pred_on.sum",
    "fp64_threads": f"{_BY_THREAD}_fp64_pred_on.sum",
    "integer_threads": f"{_BY_THREAD}_integer_pred_on.sum",
    "conversion_threads": f"{_BY_THREAD}_conversion_pred_on.sum",
    "shared_atomics": f"{_INSTRUCTIONS}_op_shared_atom.sum",
} | {
    f"pipe_{name}": f"sm__{metric}.avg.pct_of_peak_sustained_active"
    for name, metric in PIPES.items()
}


def quantities(capability: str) -> dict[str, Ways]:
    """All that is wanted of a GPU of this compute capability, each with the ways to it."""
    chip = round(10 * float(capability))
    absent = {"imc_miss"} if chip in (100, 120) else set()
    alone = dict(_ALONE)
    if chip == 90:
        # wgmma reads its operands past the load and store unit.
        alone["gmma_shared_bytes"] = f"{_SHARED}_op_gmma.sum"
    else:
        absent.add("gmma")
    alone |= {f"stall_{each}": _STALLED.format(each) for each in STALLS if each not in absent}
    of_chip = {"dram_bytes": _dram(chip), "conflicts": _conflicts(chip), **_tensor(chip)}
    return {name: ((metric,),) for name, metric in alone.items()} | _EVERYWHERE | of_chip


def select(capability: str, present: Collection[str]) -> tuple[list[str], list[str]]:
    """The metrics to ask for, and the quantities of which the chip has no way."""
    bases = {_base(name) for name in present}
    asked: list[str] = []
    dropped: list[str] = []
    for name, ways in quantities(capability).items():
        way = next((way for way in ways if {_base(metric) for metric in way} <= bases), None)
        asked += way or ()
        dropped += [] if way else [name]
    return list(dict.fromkeys(asked)), dropped


def names(capability: str) -> frozenset[str]:
    """All that is read there: whichever way the chip has, and what every launch has."""
    asked = (n for ways in quantities(capability).values() for way in ways for n in way)
    return frozenset((*asked, *LIMITS.values(), WAVES))


def values(capability: str, metrics: Mapping[str, float]) -> dict[str, float]:
    """The quantities that follow from what was counted: bytes, shares, or counts."""
    found = {}
    for name, ways in quantities(capability).items():
        way = next((way for way in ways if metrics.keys() >= set(way)), None)
        if way:
            unit = 0.01 if ".pct" in way[0] else _UNITS.get(name, 1.0)
            found[name] = unit * sum(metrics[metric] for metric in way)
    return found


def _dram(chip: int) -> Ways:
    if chip in (87, 110, 121):
        return ()  # memory that the processor shares has no such counter
    parts = ("op_read", "op_write") if chip == 120 else ("read", "write")
    first, second = (f"dram__bytes_{part}.sum" for part in parts)
    return (("dram__bytes.sum",), (first, second))


def _conflicts(chip: int) -> Ways:
    plain = (f"{_CONFLICTS}_ld.sum", f"{_CONFLICTS}_st.sum")
    more: tuple[str, ...] = ("sm__sass_l1tex_data_bank_conflicts_pipe_lsu_mem_shared_op_ldsm.sum",)
    if chip not in (75, 86):
        more += (f"{_CONFLICTS}_ldgsts.sum",)
    if chip == 90:
        more += (f"{_CONFLICTS}_gmma.sum",)
    return (plain + more, plain + more[:1], plain)


def _tensor(chip: int) -> dict[str, Ways]:
    """Warp instructions of tensor cores, and what they computed: mma.sync apart from wgmma."""
    kinds: tuple[str, ...]
    if chip == 75:
        kinds = ("src_fp16_bf16_tf32_dst_fp32", "src_fp16_dst_fp16")
    elif chip < 90:
        kinds = ("src_fp16_dst_fp32", "src_bf16_dst_fp32_sparsity_off")
    else:
        kinds = ("op_hmma_src_bf16_dst_fp32_sparsity_off",)
    pipe = "sm__inst_executed_pipe_tensor"
    mma = f"{pipe}_op_hmma.sum" if chip <= 90 else f"{pipe}_subpipe_hmma.sum"
    found: dict[str, Ways] = {
        "mma_flop": (tuple(f"{_OPS}_{kind}.sum" for kind in kinds),),
        "mma_instructions": ((mma,),),
    }
    if chip == 90:
        hgmma = ("bf16_dst_fp32", "fp16", "tf32_dst_fp32")
        found["wgmma_flop"] = (tuple(f"{_OPS}_op_hgmma_src_{k}_sparsity_off.sum" for k in hgmma),)
        found["wgmma_instructions"] = ((f"{pipe}_op_gmma.sum",),)
    elif chip in (100, 103):
        found["wgmma_instructions"] = (("sm__inst_executed_pipe_tc.sum",),)
    return found


def _base(name: str) -> str:
    return name.partition(".")[0]
