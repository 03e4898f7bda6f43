"""What is known of one row: from the record, from the models in it, and from counters if any.

All that a diagnosis may know is in `Observations`; None is what was not observed.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter

from gemm_report.explain import metrics
from gemm_report.explain.ncu import Launch, base_name, kernels_of
from gemm_report.ladder.rungs import arithmetic_roof
from gemm_report.record import MEMORIES, Device, DeviceCode, Record, Row, Traffic

# Of a multiprocessor, by compute capability: warps, blocks, bytes of shared memory, as in the
# table of compute capabilities in the CUDA programming guide.
_ROOM = {
    "7.5": (32, 16, 64 << 10),
    "8.0": (64, 32, 164 << 10),
    "8.6": (48, 16, 100 << 10),
    "8.7": (48, 16, 164 << 10),
    "8.9": (48, 24, 100 << 10),
    "9.0": (64, 32, 228 << 10),
    "10.0": (64, 32, 228 << 10),
    "10.3": (64, 32, 228 << 10),
    "11.0": (48, 24, 228 << 10),
    "12.0": (48, 24, 100 << 10),
    "12.1": (48, 24, 100 << 10),
}
_REGISTERS = 65536
_REGISTERS_AT_ONCE = 256  # a warp gets them in such pieces
_MOST_FLOP = 2 * 16 * 8 * 32  # of an mma.sync, that of 8-bit numbers
_RESERVED_SHARED = 1 << 10  # of each block, from 8.0 on
_FP32_LANES = {"7.5": 64, "8.0": 64}  # of an SM; of others 128
_OF_ATOMIC = 8  # requests that an atomic counts for
_OF_ROW = ("precision", "family", "size", "flop", "sm_hz", "power_w", "throttled_share", "launch")


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
    size: str = ""
    flop: float | None = None
    seconds: float | None = None
    # The device.
    device: str = ""
    sm_count: int | None = None
    sm_hz: float | None = None
    power_w: float | None = None
    power_limit_w: float | None = None
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
    capability = record.device.compute_capability or ""
    chosen = _longest(row, launches, capability)
    counted_kernel = max(chosen, key=lambda name: chosen[name]["seconds"], default=None)
    named = [code for code in row.device_code if base_name(code.name) == counted_kernel]
    # Next to transposes and sums of pieces the kernel that multiplies has the most registers.
    code = max(named or row.device_code, key=lambda code: code.registers or 0, default=None)
    unit = arithmetic_roof(record, row) or next(iter(record.compute_roofs(row.precision)), None)
    mma = [c for c in record.measured_compute_roofs(row.precision) if c.name.endswith("_mma")]
    of_code = ("registers", "threads", "blocks", "shared_bytes", "local_bytes", "occupancy")
    overheads, fitting = record.method.overheads, _blocks_by_resource(code, capability)
    return Observations(
        kernel=row.kernel_label,
        rung=next((k.rung for k in record.kernels if k.name == row.kernel), None),
        seconds=row.seconds and row.seconds.median,
        device=record.device.name,
        sm_count=record.device.sm_count,
        power_limit_w=record.device.power_limit_w,
        reasons=row.held_by,
        unit=unit and unit.name,
        unit_flop_per_second=unit and unit.flop_per_second,
        unit_hz=unit and unit.clock_hz,
        mma_flop_per_second=mma[0].flop_per_second if mma else None,
        levels=_levels(record, row, counted_traffic(row, launches, capability)),
        launches=len(row.device_kernels) or 1,
        launch_seconds=overheads and overheads.launch_seconds,
        occupancy_limits=tuple(n for n, count in fitting.items() if count == min(fitting.values())),
        waves=_waves(code, capability, record.device.sm_count) if code else None,
        counted_kernel=counted_kernel,
        kernel_seconds=_kernel_seconds(row, chosen),
        **{name: getattr(row, name) for name in _OF_ROW},
        **{name: code and getattr(code, name) for name in of_code},
        **(_counters(chosen[counted_kernel], row, record.device) if counted_kernel else {}),
    )


def counted_traffic(row: Row, launches: Sequence[Launch], capability: str) -> Traffic | None:
    """The bytes of all kernels of a launch; None where one memory has no counter."""
    chosen = _longest(row, launches, capability)
    launched = [chosen[name] for name in kernels_of(row.device_kernels) if name in chosen]
    levels = ("dram_bytes", "l2_bytes", "shared_bytes")
    if not launched or not all(values.keys() >= set(levels) for values in launched):
        return None
    dram, l2, shared = (sum(values[level] for values in launched) for level in levels)
    # Part of the plain count on some chips, next to it on others: the larger is never twice.
    gmma = sum(values.get("gmma_shared_bytes", 0.0) for values in launched)
    # Operands in the cache may leave nothing to count: a record's bytes are positive.
    return Traffic(max(dram, 1.0), max(l2, 1.0), max(shared, gmma))


def _longest(
    row: Row, launches: Sequence[Launch], capability: str
) -> dict[str, Mapping[str, float]]:
    """The longest launch of each kernel of the row: corners of the problem are launched too."""
    wanted = kernels_of(row.device_kernels)
    found: dict[str, Mapping[str, float]] = {}
    for launch in launches:
        name, values = base_name(launch.kernel), metrics.values(capability, launch.metrics)
        if name in wanted and "seconds" in values:
            found[name] = max(found.get(name, values), values, key=itemgetter("seconds"))
    return found


def _kernel_seconds(row: Row, chosen: Mapping[str, Mapping[str, float]]) -> float | None:
    """What the kernels of one launch take by themselves, at the clock of the row."""
    launched = kernels_of(row.device_kernels)
    if not launched or not chosen.keys() >= set(launched):
        return None
    its = [chosen[name] for name in launched]
    if row.sm_hz is None:
        return sum(values["seconds"] for values in its)
    return sum(each["seconds"] * (each.get("sm_hz", row.sm_hz) / row.sm_hz) for each in its)


def _counters(values: Mapping[str, float], row: Row, device: Device) -> dict[str, object]:
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
    cycles = values.get("cycles_elapsed", 0.0) * (device.sm_count or 0)
    # An atomic reads, computes and writes in the L2, where others have to wait for its sector.
    atomics = values.get("global_atomics", 0.0) + values.get("shared_atomics", 0.0)
    atomics *= _OF_ATOMIC
    # Nothing is wanted of nothing: loads that cp.async makes are not counted here.
    sectors = known("sectors_per_load", "sectors_per_store", "sector_use")
    pace = ratio(
        "fp64_threads", "cycles_elapsed", 1 / _FP32_LANES.get(device.compute_capability, 128)
    )
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
        "pipes": tuple((n, values[f"pipe_{n}"]) for n in metrics.PIPES if f"pipe_{n}" in values),
        "lanes": ratio("threads", "instructions"),
        "lanes_on": ratio("threads_on", "instructions"),
        "fp64_pace": pace / device.sm_count if pace is not None and device.sm_count else None,
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
        known = roof and roof.bytes_per_second, roof and f"{roof.name}, {roof.origin}"
        found.append(Level(name, modelled.get(name), seen.get(name), *known))
    return tuple(found)


def _blocks_by_resource(code: DeviceCode | None, capability: str) -> dict[str, int]:
    """How many blocks fit on a multiprocessor, by what they take of it."""
    room = _ROOM.get(capability)
    if not room or not code or not code.threads:
        return {}
    warps = math.ceil(code.threads / 32)
    found = {"warps": room[0] // warps, "blocks": room[1]}
    if code.registers:
        # Shared out to the four schedulers, each its own quarter.
        of_warp = math.ceil(32 * code.registers / _REGISTERS_AT_ONCE) * _REGISTERS_AT_ONCE
        found["registers"] = 4 * (_REGISTERS // 4 // of_warp) // warps
    if code.shared_bytes:
        reserved = 0 if capability == "7.5" else _RESERVED_SHARED
        found["shared memory"] = room[2] // (code.shared_bytes + reserved)
    return found


def _waves(code: DeviceCode, capability: str, sm_count: int | None) -> float | None:
    """How often the GPU is filled with blocks."""
    room = _ROOM.get(capability)
    if not (room and code.threads and code.blocks and code.occupancy and sm_count):
        return None
    resident = round(code.occupancy * room[0] / math.ceil(code.threads / 32))
    return code.blocks / (max(resident, 1) * sm_count)
