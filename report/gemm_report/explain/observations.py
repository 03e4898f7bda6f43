"""What is known of one row: from the record, from the models in it, and from counters if any.

All that a diagnosis may know is in `Observations`; None is what was not observed.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from gemm_report.document import cut
from gemm_report.explain import energy, metrics
from gemm_report.explain.ncu import Instruction, Launch, base_name, kernels_of
from gemm_report.record import MEMORIES, DeviceCode, Record, Row, Traffic
from gemm_report.rows import arithmetic_roof
from gemm_report.terminal import printable
from gemm_report.text import percent

_MOST_FLOP = 2 * 16 * 8 * 32  # of an mma.sync, that of 8-bit numbers
_OF_ATOMIC = 8  # requests that an atomic counts for
_LOCAL = re.compile(r"\b(?:LDL|STL)\b[^;]*?\[([^\]]*)\]")
# Of the stack: its pointer and a constant. At run-time indices another register is the address.
_STACK = re.compile(
    r"\s*(?:R1(?:\.\w+)?(?:\s*\+\s*-?0x[0-9a-f]+)?|-?0x[0-9a-f]+)\s*", re.IGNORECASE
)
_OF_ROW = ("precision", "family", "flop", "sm_hz", "power_w", "throttled_share", "launch")


@dataclass(frozen=True)
class Level:
    """One memory: bytes of a launch, modelled and counted, and what the memory can do."""

    name: str
    modelled_bytes: float | None = None
    counted_bytes: float | None = None
    roof_bytes_per_second: float | None = None
    roof: str | None = None

    @property
    def bytes(self) -> float | None:
        """What was counted, else what was modelled."""
        return self.modelled_bytes if self.counted_bytes is None else self.counted_bytes

    @property
    def is_modelled(self) -> bool:
        """Whether it was not counted."""
        return self.counted_bytes is None


@dataclass(frozen=True)
class Observations:
    """Shares are 0 to 1; a stall is the warps that wait so, for each instruction issued."""

    kernel: str
    precision: str
    family: str = ""
    rung: int | None = None
    flop: float | None = None
    seconds: float | None = None
    # The device.
    device: str = ""
    sm_count: int | None = None
    sm_hz: float | None = None
    power_w: float | None = None
    power_limit_w: float | None = None
    energy: tuple[tuple[str, float], ...] = ()  # joules of a launch by what they go into
    throttled_share: float | None = None
    reasons: tuple[str, ...] = ()
    # Peaks.
    unit: str | None = None
    unit_flop_per_second: float | None = None
    unit_hz: float | None = None
    mma_flop_per_second: float | None = None  # what mma.sync was seen to reach
    levels: tuple[Level, ...] = ()
    # What was compiled and launched; of several kernels the longest, or the first.
    launches: int = 1
    launch: str | None = None  # graph or stream
    launch_seconds: float | None = None  # what the host needs for one launch
    registers: int | None = None
    threads: int | None = None
    blocks: int | None = None
    shared_bytes: int | None = None
    local_bytes: int | None = None
    occupancy: float | None = None  # the most that fits
    occupancy_limits: tuple[str, ...] = ()
    waves: float | None = None
    # Counters.
    counted_kernel: str | None = None
    kernel_seconds: float | None = None  # all kernels of a launch, at the clock of the row
    issue_active: float | None = None
    ffma_share: float | None = None
    tensor_share: float | None = None
    tensor_unit: str | None = None  # mma.sync or wgmma
    counted_flop: float | None = None
    warps_active: float | None = None
    idle_share: float | None = None  # of the multiprocessors, over the launch
    sectors_per_load: float | None = None
    sectors_per_store: float | None = None
    sector_use: float | None = None  # how much of each sector loads want
    requests_per_clock: float | None = None  # of a multiprocessor, to global and local memory
    l1_hits: float | None = None
    l2_hits: float | None = None
    conflict_share: float | None = None  # of the wavefronts of shared memory
    local_share: float | None = None  # of the requests to memory
    local_indexed: float | None = None  # of these, at run-time indices; the others are spills
    pipes: tuple[tuple[str, float], ...] = ()  # how busy, by name
    lanes: float | None = None  # of a warp, active for an instruction
    lanes_on: float | None = None  # of these, that no predicate switches off
    fp64_pace: float | None = None  # of the FP32 units' rate, for what is computed in FP64
    integers_per_product: float | None = None
    conversions_per_product: float | None = None
    conversion_share: float | None = None  # of the instructions
    integer_share: float | None = None
    atomic_share: float | None = None  # of the requests to memory
    hot_line: str | None = None  # the source line with the most stalls, with its share
    stalls: tuple[tuple[str, float], ...] = ()

    @property
    def has_counters(self) -> bool:
        """Whether ncu counted anything."""
        return self.counted_kernel is not None

    @property
    def flop_per_second(self) -> float | None:
        """As timed."""
        return self.flop / self.seconds if self.flop and self.seconds else None

    @property
    def counted_over_needed(self) -> float | None:
        """Counted FLOP over needed FLOP; None without counters."""
        return self.counted_flop / self.flop if self.counted_flop and self.flop else None

    @property
    def working(self) -> float:
        """The share of the launch in which SMs are not idle; 1 where that is unknown."""
        return 1 - (self.idle_share or 0)

    def used(self, level: Level) -> float | None:
        """The share of the time that the memory needs for its bytes at its roof."""
        if not (level.bytes and level.roof_bytes_per_second and self.seconds):
            return None
        return level.bytes / level.roof_bytes_per_second / self.seconds

    def flop_per_byte(self, level: Level) -> float | None:
        """Of what the memory moves."""
        return self.flop / level.bytes if self.flop and level.bytes else None

    def stall_share(self, *reasons: str) -> float | None:
        """The share of the warps' time that goes to these."""
        total = sum(value for _, value in self.stalls)
        return sum(v for r, v in self.stalls if r in reasons) / total if total else None


def observe(record: Record, row: Row, launches: Sequence[Launch] = ()) -> Observations:
    """What record and counters say of a row; without launches that is the models' word alone."""
    launched = _launched(row, launches)
    values = {name: metrics.values(its.metrics) for name, its in launched.items()}
    counted_kernel = max(values, key=lambda name: values[name]["seconds"], default=None)
    its_metrics = launched[counted_kernel].metrics if counted_kernel else {}
    named = [code for code in row.device_code if base_name(code.name) == counted_kernel]
    # Next to transposes and sums of pieces the kernel that multiplies has the most registers.
    code = max(named or row.device_code, key=lambda code: code.registers or 0, default=None)
    unit = arithmetic_roof(record, row) or next(iter(record.compute_roofs(row.precision)), None)
    mma = [c for c in record.measured_compute_roofs(row.precision) if c.name.endswith("_mma")]
    of_code = ("registers", "threads", "blocks", "shared_bytes", "local_bytes", "occupancy")
    overheads = record.method.overheads
    fitting = {name: its_metrics[key] for name, key in metrics.LIMITS.items() if key in its_metrics}
    instructions = _sampled(row, launches)
    known: dict[str, Any] = {name: getattr(row, name) for name in _OF_ROW}
    known |= {name: getattr(code, name, None) for name in of_code}
    known |= _counters(values[counted_kernel], row, record) if counted_kernel else {}
    levels = _levels(record, row, counted_traffic(row, launches))
    seconds = row.seconds.median if row.seconds else None
    return Observations(
        kernel=row.kernel_label,
        rung=next((k.rung for k in record.kernels if k.name == row.kernel), None),
        seconds=seconds,
        device=record.device.name,
        sm_count=record.device.sm_count,
        power_limit_w=record.device.power_limit_w,
        reasons=row.held_by,
        unit=unit.name if unit else None,
        unit_flop_per_second=unit.flop_per_second if unit else None,
        unit_hz=unit.clock_hz if unit else None,
        mma_flop_per_second=mma[0].flop_per_second if mma else None,
        levels=levels,
        energy=energy.parts(
            record,
            row.precision,
            known.get("tensor_unit"),
            (row.flop, seconds, row.sm_hz),
            {level.name: level.bytes for level in levels},
        ),
        launches=len(row.device_kernels) or 1,
        launch_seconds=overheads.launch_seconds if overheads else None,
        occupancy_limits=tuple(n for n, count in fitting.items() if count == min(fitting.values())),
        waves=its_metrics.get(metrics.WAVES) or _waves(code, record.device.sm_count),
        counted_kernel=counted_kernel,
        kernel_seconds=_kernel_seconds(row, values),
        local_indexed=indexed_share(instructions),
        hot_line=hottest(instructions),
        **known,
    )


def counted_traffic(row: Row, launches: Sequence[Launch]) -> Traffic | None:
    """The bytes of all kernels of a launch; None where one memory has no counter."""
    launched = _launched(row, launches)
    its = [
        metrics.values(launched[name].metrics)
        for name in kernels_of(row.device_kernels)
        if name in launched
    ]
    levels = ("dram_bytes", "l2_bytes", "shared_bytes")
    if not its or not all(values.keys() >= set(levels) for values in its):
        return None
    dram, l2, shared = (sum(values[level] for values in its) for level in levels)
    # Part of the plain count on some chips, next to it on others: the larger is never twice.
    gmma = sum(values.get("gmma_shared_bytes", 0.0) for values in its)
    # Operands in the cache may leave nothing to count: a record's bytes are positive.
    return Traffic(max(dram, 1.0), max(l2, 1.0), max(shared, gmma))


def _launched(row: Row, launches: Sequence[Launch]) -> dict[str, Launch]:
    """The longest launch of each kernel of the row: corners of the problem are launched too."""
    found: dict[str, tuple[float, Launch]] = {}
    for launch in launches:
        name = base_name(launch.kernel)
        seconds = metrics.values(launch.metrics).get("seconds")
        if seconds is not None and seconds > found.get(name, (0.0,))[0]:
            found[name] = seconds, launch
    return {name: found[name][1] for name in kernels_of(row.device_kernels) if name in found}


def _kernel_seconds(row: Row, chosen: Mapping[str, Mapping[str, float]]) -> float | None:
    """What the kernels of one launch take by themselves, at the clock of the row."""
    launched = kernels_of(row.device_kernels)
    if not launched or not chosen.keys() >= set(launched):
        return None
    its = [chosen[name] for name in launched]
    if row.sm_hz is None:
        return sum(values["seconds"] for values in its)
    return sum(each["seconds"] * (each.get("sm_hz", row.sm_hz) / row.sm_hz) for each in its)


def _counters(values: Mapping[str, float], row: Row, record: Record) -> dict[str, Any]:
    def ratio(above: str, below: str, factor: float = 1.0) -> float | None:
        over, under = values.get(above), values.get(below)
        return None if over is None or not under else factor * over / under

    def per_product(name: str) -> float | None:
        return values[name] / (row.flop / 2) if name in values else None

    def known(*names: str) -> dict[str, float | None]:
        return {name: values.get(name) for name in names}

    instructions, ffma = values.get("instructions"), values.get("ffma_threads")
    mma, wgmma = _tensor_instructions(values, row.flop)
    tensor_flop = values.get("mma_flop", 0.0) + values.get("wgmma_flop", 0.0)
    busy = ratio("cycles_active", "cycles_elapsed")
    local, others = values.get("local_requests"), values.get("memory_requests")
    requests = values.get("global_requests", 0.0) + (local or 0.0)
    cycles = values.get("cycles_elapsed", 0.0) * (record.device.sm_count or 0)
    # An atomic reads, computes and writes in the L2, where others have to wait for its sector.
    atomics = values.get("global_atomics", 0.0) + values.get("shared_atomics", 0.0)
    atomics *= _OF_ATOMIC
    # Nothing is wanted of nothing: loads that cp.async makes are not counted here.
    sectors = known("sectors_per_load", "sectors_per_store", "sector_use")
    fp32 = next((c for c in record.compute_roofs("f32") if "tensor" not in c.name), None)
    # Two FLOP a lane and cycle, of the whole GPU.
    lanes = None
    if fp32 and fp32.flop_per_second and fp32.clock_hz:
        lanes = fp32.flop_per_second / fp32.clock_hz / 2
    return {
        **known("issue_active", "warps_active", "l1_hits", "l2_hits"),
        **{name: value or None for name, value in sectors.items()},
        "ffma_share": ratio("ffma_threads", "instructions", 1 / 32),
        "tensor_share": (mma + wgmma) / instructions if instructions and mma + wgmma else None,
        "tensor_unit": "wgmma" if wgmma > mma else "mma.sync" if mma else None,
        "counted_flop": tensor_flop or (2 * ffma if ffma else None),
        "idle_share": None if busy is None else max(0.0, 1 - busy),
        "requests_per_clock": requests / cycles if requests and cycles else None,
        "conflict_share": ratio("conflicts", "shared_bytes", metrics.WAVEFRONT),
        "local_share": None
        if local is None or others is None or not local + others
        else local / (local + others),
        "pipes": tuple(
            (n.removeprefix("pipe_"), value) for n, value in values.items() if n.startswith("pipe_")
        ),
        "lanes": ratio("threads", "instructions"),
        "lanes_on": ratio("threads_on", "instructions"),
        "fp64_pace": ratio("fp64_threads", "cycles_elapsed", 1 / lanes) if lanes else None,
        "integers_per_product": per_product("integer_threads"),
        "conversions_per_product": per_product("conversion_threads"),
        "conversion_share": ratio("conversion_threads", "threads_on"),
        "integer_share": ratio("integer_threads", "threads_on"),
        "atomic_share": atomics / (atomics + requests + (others or 0.0)) if atomics else None,
        "stalls": tuple((n[6:], value) for n, value in values.items() if n.startswith("stall_")),
    }


def _tensor_instructions(values: Mapping[str, float], flop: float) -> tuple[float, float]:
    """Those of mma.sync and of wgmma, where they can be what multiplies.

    The counter of the half precision pipe has wgmma in it on 9.0, and HFMA2, with which compilers
    make constants.
    """
    wgmma = values.get("wgmma_instructions", 0.0)
    mma = max(0.0, values.get("mma_instructions", 0.0) - wgmma)
    by_ffma = 2 * values.get("ffma_threads", 0.0) >= flop / 2
    return (0.0 if by_ffma or mma * _MOST_FLOP < flop / 2 else mma), wgmma


def _levels(record: Record, row: Row, counted: Traffic | None) -> tuple[Level, ...]:
    modelled, seen = (traffic.levels if traffic else {} for traffic in (row.traffic, counted))
    found = []
    for name in MEMORIES:
        roof = record.bandwidth(name)
        level = Level(name, modelled.get(name), seen.get(name))
        if roof:
            said = f"{roof.name}, {roof.origin}"
            level = replace(level, roof_bytes_per_second=roof.bytes_per_second, roof=said)
        found.append(level)
    return tuple(found)


def _waves(code: DeviceCode | None, sm_count: int | None) -> float | None:
    """How often the GPU is filled with blocks."""
    if not (code and code.blocks and code.blocks_per_sm and sm_count):
        return None
    return code.blocks / (code.blocks_per_sm * sm_count)


def _sampled(row: Row, launches: Sequence[Launch]) -> Sequence[Instruction]:
    """The code of the row's launch in which most stalls were sampled."""
    wanted = set(kernels_of(row.device_kernels))
    found = [launch.code for launch in launches if base_name(launch.kernel) in wanted]
    return max(found, key=lambda code: sum(each.samples for each in code), default=())


def hottest(code: Sequence[Instruction]) -> str | None:
    """The source line with most stalls, or the instruction, and its share of them."""
    lines: dict[tuple[str, str], float] = {}
    for each in code:
        key = (each.place, each.line) if each.place else ("", each.text)
        lines[key] = lines.get(key, 0.0) + each.samples
    total = sum(lines.values())
    if not total:
        return None
    key = max(lines, key=lambda key: lines[key])
    where = ": ".join(cut(printable(each), 100) for each in key if each)
    return f"{percent(lines[key] / total)} of the stalls are at {where}"


def indexed_share(code: Sequence[Instruction]) -> float | None:
    """Of the accesses to local memory those at run-time indices; None where there is none.

    Where nothing says how often each ran, one such access makes it 1.
    """
    accesses = [
        (not _STACK.fullmatch(address[1]), each.executed)
        for each in code
        if (address := _LOCAL.search(each.text))
    ]
    total = sum(executed for _, executed in accesses)
    if accesses and not total:
        return float(any(indexed for indexed, _ in accesses))
    return sum(executed for indexed, executed in accesses if indexed) / total if total else None
