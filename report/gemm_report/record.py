"""The record of gemm_bench, and how it is read.

The dataclasses say what a record holds: names, units, and which values may be null;
results/schema.json is made of them, and results/README.md tells what each is. SI units without
prefixes. What is not known is null. Some earlier records lack fields that have a default here.
"""

import contextlib
from collections.abc import Iterable
from dataclasses import dataclass, field, fields, replace
from datetime import UTC, datetime
from enum import Enum
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, get_args

from gemm_report.document import (
    Count,
    Fraction,
    Kind,
    Meta,
    Nonnegative,
    Number,
    Positive,
    RecordError,
    Text,
    Whole,
    check_schema,
    cut,
    decoded,
    read_json,
)

RECORD = Kind("record", "gemm_bench")
# Each with what its measured roof is called (`roof_of`).
MEMORIES = {"DRAM": "DRAM", "L2": "L2", "shared memory": "Shared"}
SCHEMA, OLDEST = 3, 2
_READINGS_OF_HALF_A_SECOND = 25  # NVML's, at the usual interval of 20 ms

Transfer = Literal["pageable", "pinned", "overlapped"]
TRANSFERS = get_args(Transfer)
DeviceParts = dict[str, str | None]
Hash = Annotated[str, Meta(pattern="^[0-9a-f]{16}$")]


class Part(Enum):
    """Which story a row tells; a figure tells one of them."""

    LADDER = "ladder"
    TUNING = "tuning"
    END_TO_END = "end to end"


@dataclass(frozen=True, kw_only=True)
class Device:
    """Where the record was made, as queried. A GPU has SMs, a CPU cores."""

    kind: Literal["gpu", "cpu"]
    name: Text
    uuid_hash: Text | None
    pci_bus_id: Text | None = None
    clock_hz: Positive | None
    driver: Text | None
    runtime: Text | None
    power_limit_w: Positive | None
    compute_capability: Annotated[str, Meta(pattern="^[0-9]+[.][0-9]$")] | None = None
    sm_count: Count | None = None
    cores: Count | None = None
    memory_clock_hz: Positive | None = None
    bus_width_bits: Count | None = None
    last_level_cache_bytes: Count | None = None  # the L2 of a GPU
    memory_bytes: Count | None = None
    cpu_id: Text | None = None  # vendor, family, model, stepping; of ARM the fields of MIDR_EL1
    cpu_quota: Positive | None = None  # cores whose time a cgroup grants
    l1_data_bytes: Count | None = None  # this and the next two of a CPU
    l2_bytes: Count | None = None
    l3_bytes: Count | None = None

    @property
    def model(self) -> DeviceParts:
        """What tells it from hardware of another speed, each part as a text.

        The memory of a GPU in GiB: drivers keep different small parts of it. A part that is not
        known is None, and fits any.
        """
        gpu = self.kind == "gpu"
        memory = self.memory_bytes if gpu else None
        caches = {"L1d": self.l1_data_bytes, "L2": self.l2_bytes, "L3": self.l3_bytes}
        return {
            "name": self.name,
            "SMs": f"{self.sm_count} SMs" if self.sm_count else None,
            "memory": f"{memory / 2**30:.0f} GiB" if memory else None,
            "CPU": self.cpu_id,
            **{n: f"{n} {size / 2**10:.0f} KiB" if size else None for n, size in caches.items()},
            "cores": f"{self.cores} cores" if self.cores else None,
        }


def told_apart(one: DeviceParts, other: DeviceParts) -> tuple[str, str] | None:
    """Each by its name and the parts that differ; None where these are of the same device."""
    differing = [part for part in one if None not in (one[part], other[part])]
    differing = [part for part in differing if one[part] != other[part]]
    if not differing:
        return None
    named = dict.fromkeys(["name", *differing])
    first, second = (", ".join(side[part] or "" for part in named) for side in (one, other))
    return first, second


@dataclass(frozen=True)
class Build:
    """How the program was compiled."""

    type: Text
    compiler: Text | None = None
    flags: Text | None = None  # of the CPU kernels
    cuda_compiler: Text | None = None
    cuda_architectures: Text | None = None
    cuda_flags: Text | None = None


@dataclass(frozen=True)
class Library:
    """A library that was loaded. A user's kernel may load another release of one that we use."""

    name: Text
    version: Text  # as it says itself
    file: Text | None = None  # without its folder
    detail: Text | None = None  # what else decides its speed, or who loaded it

    @property
    def release(self) -> str:
        """Its version and what else tells two apart: 0.3.26 (Haswell, 2 threads)."""
        return f"{self.version} ({self.detail})" if self.detail else self.version

    def __str__(self) -> str:
        """In a list of them."""
        return f"{self.name} {self.release}"


@dataclass(frozen=True)
class Environment:
    """Of the process: variables that change times, and code that others put into it."""

    recorded: dict[Text, str] = field(default_factory=dict)
    removed: dict[Text, str] = field(default_factory=dict)  # before anything was measured
    injected: tuple[Text, ...] = ()  # files of profilers and the like; "traced by gdb"

    @property
    def variables(self) -> str:
        """Those that counted: OMP_NUM_THREADS=4, ..."""
        return ", ".join(f"{name}={value}" for name, value in self.recorded.items())


@dataclass(frozen=True)
class Host:
    """What others had of the CPUs that the process could use, as shares of all their time."""

    cpus: Count | None = None
    busy_share: Fraction | None = None  # other processes
    steal_share: Fraction | None = None  # other virtual machines
    load_start: Nonnegative | None = None  # mean length of the run queue in the minute before
    load_end: Nonnegative | None = None

    @property
    def others_share(self) -> float:
        """Of both; 0 where that is not known."""
        return (self.busy_share or 0) + (self.steal_share or 0)


@dataclass(frozen=True)
class Precision:
    """A precision, and what its unit computes for one of its products."""

    name: Text
    arithmetic: Text  # precision whose products the unit computes
    products: Count  # how many of these make one


@dataclass(frozen=True)
class Ceiling:
    """A roof: of one precision's arithmetic, or of a memory; of neither where it is not known."""

    name: Text
    precision: Text | None
    flop_per_second: Positive | None
    bytes_per_second: Positive | None
    origin: Literal["queried", "table", "given", "measured", "unknown"]
    source: Text  # the arithmetic behind the figure, or why there is none
    clock_hz: Positive | None = None  # at which the figure is stated
    # What no result can exceed at that clock, where that is not the figure: block-scaled FP8, or
    # the larger one where the table and a probe contradict each other.
    limit_flop_per_second: Positive | None = None
    contradiction: Text | None = None  # between the table and a probe; the figure is the probe's


@dataclass(frozen=True)
class Seconds:
    """Time of one launch over the samples."""

    median: Positive
    q1: Positive
    q3: Positive
    min: Positive

    def __post_init__(self) -> None:
        """ValueError where these are not the quantiles of anything."""
        if not self.min <= self.q1 <= self.median <= self.q3:
            raise ValueError("the quartiles and the minimum are not in order")


@dataclass(frozen=True, kw_only=True)
class MeasuredCeiling:
    """What a probe reached that does one thing only, with its medians of clock and power."""

    name: Text  # FP32_FMA, BF16_wgmma, DRAM_read, ...
    arithmetic: Text | None  # type of the factors; null if nothing is computed
    fill: Literal["random", "zeros"] | None  # null where the values make no difference
    what: Text
    flop_per_second: Positive | None
    bytes_per_second: Positive | None
    of_nominal: Positive | None  # over the nominal ceiling at the observed clock
    sm_hz: Positive | None
    power_w: Positive | None
    throttled_share: Fraction | None
    utc: Text | None = None  # when; maybe in an earlier run on this device
    per_clock_per_sm: Positive | None = None
    seconds: Seconds | None = None
    samples: Count | None = None
    settled: bool | None = None
    memory_hz: Positive | None = None
    temperature_c: Positive | None = None
    roof_of: Text | None = None  # the memory whose measured roof this is: DRAM, L2, Shared

    @property
    def roof(self) -> Ceiling:
        """As a roof to draw."""
        return Ceiling(
            name=self.name,
            precision=self.arithmetic,
            flop_per_second=self.flop_per_second,
            bytes_per_second=self.bytes_per_second,
            origin="measured",
            source=self.what,
            # Neither DRAM nor the link to the host runs with the clock of the multiprocessors.
            clock_hz=None if self.name.startswith(("DRAM_", "PCIe_", "Peer_")) else self.sm_hz,
        )


@dataclass(frozen=True)
class Kernel:
    """A rung of the ladder."""

    name: Text
    family: Text  # the folder of its file: cpu, simt, tensor, library; or user, "peer"
    rung: Whole
    idea: Annotated[str, Meta(max_length=1000)]
    tunable: bool = False  # whether its parameters have a grid to try
    source: Text | None = None


@dataclass(frozen=True)
class Watch:
    """What read clocks and power."""

    source: Literal["NVML"] | None
    why_not: Text | None  # why there is no source
    interval_seconds: Positive | None
    read_seconds: Positive | None  # how long a reading takes, the median


@dataclass(frozen=True)
class Overheads:
    """What the method itself costs, as measured before the first row."""

    event_pair_seconds: Nonnegative | None = None
    graph_node_seconds: Nonnegative | None = None
    launch_seconds: Nonnegative | None = None  # what the host needs for one


@dataclass(frozen=True, kw_only=True)
class Method:
    """How it was measured."""

    timer: Literal["CUDA events", "steady clock"]
    fill: Literal["uniform[-1,1]", "normal", "zeros", "integers"]
    test: Literal["fixed power", "fixed frequency"] | None
    # After the warm-up, from an idle GPU, or in blocks at the power limit.
    state: Literal["settled", "burst", "limit"] | None
    seed: Whole = 0
    warmup_seconds: Nonnegative | None = None  # longest warm-up of a row
    sample_seconds: Positive | None = None  # shortest batch that makes one sample
    row_budget_seconds: Positive | None = None
    run_budget_seconds: Positive | None = None
    cache: Literal["rotate", "hot"] | None = None  # operand sets in turn, or one that stays cached
    target: Nonnegative | None = None  # sampling ends when median_interval is within this
    confidence: Fraction = 0.5  # of median_interval and target; records before 95 % lack it
    flat: Nonnegative | None = None  # settled: the halves of a window agree within this fraction
    sampling_seconds: Nonnegative | None = None  # shortest time of samples
    longest_sampling_seconds: Positive | None = None
    cooldown_seconds: Nonnegative | None = None  # rest before a row or a burst
    burst_launches: Count | None = None  # of one burst; null where rows are settled
    rounds: Count | None = None  # at the power limit: each has two blocks of a kernel
    block_seconds: Positive | None = None  # shortest
    versus: Text | None = None  # kernels of which the fastest was interleaved with every row
    variants: Literal["default", "all"] = "default"
    ceilings: Literal["measure", "cached", "stored", "queried"] | None = None
    watch: Watch | None = None
    overheads: Overheads | None = None


@dataclass(frozen=True, kw_only=True)
class Readings:
    """Of the GPU at one moment, with counters that NVML keeps; null where it does not say."""

    sm_hz: Positive | None = None
    memory_hz: Positive | None = None
    power_w: Positive | None = None
    temperature_c: Number | None = None
    reasons: tuple[Text, ...] = ()  # that lower the clocks
    ecc_corrected: Whole | None = None  # since the driver was loaded
    ecc_uncorrected: Whole | None = None
    rows_remapped: Whole | None = None  # of the memory, for good
    remapping_pending: bool | None = None  # until a reset
    remapping_failed: bool | None = None
    xids: tuple[Whole, ...] = ()  # errors that the driver told since the run began
    other_processes: Whole | None = None  # that compute on the GPU


@dataclass(frozen=True)
class Health:
    """Of the GPU before the first row, and after the last one."""

    before: Readings
    after: Readings


@dataclass(frozen=True)
class RunTime:
    """How long a run took, and how much of that the device ran kernels under test."""

    wall_seconds: Positive
    kernel_seconds: Nonnegative


@dataclass(frozen=True)
class Range:
    """Of the readings in the timed interval."""

    min: Positive
    median: Positive
    max: Positive


@dataclass(frozen=True, kw_only=True)
class Clocks:
    """Readings of the GPU while a row was timed, and why it was throttled; null where not read."""

    readings: Whole = 0
    sm_hz: Range | None = None
    sm_hz_by_timer: Range | None = None  # of samples_sm_hz
    memory_hz: Range | None = None
    power_w: Range | None = None
    temperature_c: Range | None = None
    throttled_share: Fraction | None = None  # of the readings that say
    reasons: dict[Text, Fraction] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Energy:
    """Of the row's launches alone, in steady state and without a pause."""

    watts: Positive | None  # mean; null where it was not measured
    seconds: Nonnegative  # of that stretch
    changes: Whole  # of NVML's energy counter in it
    why_not: Text | None  # it was not measured


@dataclass(frozen=True, kw_only=True)
class Block:
    """Seconds in which one kernel ran without a pause, at the power limit."""

    seconds: Positive
    launch_seconds: Positive  # of one launch, the mean
    launches: Count
    energy: Energy  # by the energy counter
    power_w: Positive | None = None  # means of the readings
    sm_hz: Positive | None = None  # by the timers on the GPU, if they have it
    temperature_c: Number | None = None


@dataclass(frozen=True)
class Estimate:
    """The geometric mean over blocks, with Student's 95 % interval of their logarithms."""

    value: Positive
    low: Positive
    high: Positive


@dataclass(frozen=True)
class Versus:
    """Speed over that of another kernel, interleaved with it, with its interval."""

    kernel: Text  # its label; its precision before it where that is another
    ratio: Positive
    low: Positive
    high: Positive
    library: bool = False  # whether it is one, on the same problem
    shared_process: bool = False  # though a side is code of a user, which could slow down the other
    confidence: Fraction = 0.95
    seconds: Positive | None = None  # median of the other
    samples: Count | None = None
    blocks: tuple[Block, ...] = ()  # of the other, each next to one of the row
    energy_ratio: Estimate | None = None  # of a launch, over that of the other


@dataclass(frozen=True)
class Checks:
    """Of the timed launches, each on new values."""

    passes: Count  # samples, and others that only added checks
    launches: Count  # timed ones
    checked: Count  # of these
    uses: Count  # of an operand set in a pass; 1: each launch has values of its own
    lead_ratio: Number  # time of a launch before the timed ones over that of these; 0: none
    launch_share: Fraction  # of the time of a pass, which launches took


@dataclass(frozen=True)
class Roof:
    """The roof that counts for one row."""

    name: Text
    flop_per_second: Positive


@dataclass(frozen=True)
class Verification:
    """How far the result is from the reference; None where that is not finite."""

    max_error: Nonnegative | None
    bound: Nonnegative | None  # of the element that comes closest to its own
    passed: bool
    of_bound: Nonnegative | None = None  # largest error / bound of all elements
    error_squares: Nonnegative | None = None  # sum over the elements
    error_squares_limit: Nonnegative | None = None  # of that; 0: no limit
    reference: Text | None = None
    inputs_changed: bool = False  # whether A or B was no longer what the kernel was given
    by_rows: bool = False  # whether it is by Freivalds' check
    wrong_rows: Whole | None = None  # by that check
    wrong: Whole | None = None  # elements that do not pass
    outside_bytes: int | None = None  # where it wrote outside C: > 0 behind it, < 0 before it


@dataclass(frozen=True)
class Traffic:
    """Bytes of one launch, by a model or counted; shared memory's include bank conflicts."""

    dram_bytes: Positive
    l2_bytes: Positive  # in sectors of 32 bytes; L1 hits are not taken off
    shared_bytes: Nonnegative  # 128 bytes for each wavefront

    @property
    def levels(self) -> dict[str, float]:
        """The same by the name of the memory."""
        return dict(zip(MEMORIES, (self.dram_bytes, self.l2_bytes, self.shared_bytes), strict=True))


@dataclass(frozen=True)
class EndToEnd:
    """The parts of a row with transfers, each timed alone, and how much of them it hides."""

    to_device_bytes: Positive
    from_device_bytes: Positive
    to_device_seconds: Positive
    kernel_seconds: Positive
    from_device_seconds: Positive
    to_device_bytes_per_second: Positive
    from_device_bytes_per_second: Positive
    hidden_share: Annotated[float, Meta(ge=-1e6, le=1e6)]


UNCERTAIN = "median-uncertain"
BUSY_HOST = "busy-host"


@dataclass(frozen=True)
class Departure:
    """A point in which a row deviates from NVIDIA's guideline for measurements."""

    code: Annotated[str, Meta(pattern="^[a-z-]+$", max_length=100)]
    value: Number | None  # in the unit of the code: bytes, seconds, a number or a fraction
    limit: Number | None = None  # that it had to keep
    doubt: bool = False  # whether the row's own figure is in doubt; else a setting of the run


@dataclass(frozen=True)
class Plan:
    """Which of its plans a kernel ran, and where that comes from."""

    name: Text
    source: Literal["tried", "cached", "nearest", "model"]


@dataclass(frozen=True)
class DeviceCode:
    """One GPU kernel that a launch runs: its resources and its occupancy."""

    name: Text
    fingerprint: Hash | None  # of its instructions and constants
    registers: Whole | None  # of a thread
    shared_bytes: Whole | None  # of a block: static and dynamic
    local_bytes: Whole | None  # of a thread
    threads: Count | None  # in a block
    blocks: Count | None  # in the grid
    occupancy: Fraction | None  # warps that fit at once, of those there is room for
    blocks_per_sm: Whole | None = None  # that fit at once


@dataclass(frozen=True)
class File:
    """A user's kernel: its file, and a hash of what was in it."""

    name: Text
    hash: Hash


@dataclass(frozen=True)
class Warmup:
    """What went before the samples."""

    seconds: Nonnegative
    settled: bool
    watched: Text | None  # what was looked at; null if nothing could be
    sm_hz: Positive | None = None  # mean of its last, settled part


class Identity(NamedTuple):
    """What makes two rows of different runs the same case."""

    kernel: str
    parameters: tuple[tuple[str, str], ...]
    precision: str
    layout: str
    m: int
    n: int
    k: int
    transfer: str | None
    batch_count: int = 1
    tokens: str | None = None
    epilogue: str = "none"

    @property
    def label(self) -> str:
        """The part of the benchmark's name that tells the variant."""
        transfer = f"EndToEnd/{self.transfer}/" if self.transfer else ""
        return transfer + variant(self.kernel, self.parameters, self.layout, self.epilogue)

    @property
    def shape(self) -> str:
        """As in the benchmark's name: 1024x1024x768, batched:16x512x512x512 of a batch, of groups
        grouped:8x512x512x512/zipf."""
        kind = "grouped" if self.tokens else "batched"
        batch = f"{kind}:{self.batch_count}x" if self.batch_count > 1 else ""
        return f"{batch}{self.m}x{self.n}x{self.k}" + (f"/{self.tokens}" if self.tokens else "")

    def __str__(self) -> str:
        """As the benchmark is named."""
        return f"{self.label}/{self.precision}/{self.shape}"


@dataclass(frozen=True, kw_only=True)
class Row:
    """One kernel on one problem, one repetition. C (m x n) = A (m x k) * B (k x n)."""

    kernel: Text
    family: Text  # the folder of its file: cpu, simt, tensor, library; or user, "peer"
    parameters: dict[Text, str]
    variant: bool = False  # one point of a tunable kernel's grid
    file: File | None = None
    transfer: Transfer | None = None
    precision: Text
    layout: Literal["nn", "nt", "tn", "tt"]  # of A and B: n row-major, t transposed row-major
    m: Count
    n: Count
    k: Count
    batch_count: Count = 1  # products of this size, whose matrices are one after another
    tokens: str | None = None  # how the rows of groups are shared out, with a seed if not 0
    group_rows: tuple[Whole, ...] = ()  # of each group; m is their mean
    epilogue: Literal["none", "bias", "bias-gelu", "residual"] = "none"  # before C is stored
    repetition: Whole = 0
    flop: Positive  # 2 m n k, of all products of a batch; operations on integers in s32 and s8
    bytes_minimum: Positive | None = None  # a and B read once, C written once
    flop_per_byte: Positive  # flop / bytes_minimum
    traffic: Traffic | None = None  # by a model
    counted: Traffic | None = None  # by ncu, in a record that explain wrote
    rotation_sets: Count | None = None  # operand sets that launches rotate through
    batch: Count | None = None  # launches in one sample
    launch: Literal["stream", "graph", "call"] | None = None  # how a batch reaches the device
    plan: Plan | None = None  # of a kernel that chooses
    device_kernels: tuple[Text, ...] = ()  # GPU kernels of one launch
    fingerprint: Hash | None = None  # of all of these; null if one is not ours
    device_code: tuple[DeviceCode, ...] = ()
    warmup: Warmup | None = None
    samples_seconds: tuple[Positive, ...] = ()
    samples_sm_hz: tuple[Positive, ...] = ()
    samples_throttled: tuple[bool, ...] = ()  # of each, by the nearest reading, or empty
    seconds: Seconds | None = None
    median_interval: Nonnegative | None = None  # width of the interval of the median, over it
    memory_kept_bytes: Nonnegative | None = None  # by which the GPU's memory in use grew meanwhile
    converged: bool | None = None  # median_interval came within the target
    flop_per_second: Positive | None = None  # flop / median seconds
    roof: Roof | None  # lower of the compute roof and flop_per_byte times the memory roof
    of_roof_nominal: Positive | None = None
    roof_at_clock: Roof | None = None  # the same at the median clock
    of_roof_at_clock: Positive | None = None
    of_library: Positive | None = None  # speed over that of the fastest library on the same problem
    library: Text | None = None
    verification: Verification | None
    clocks: Clocks | None = None
    energy: Energy | None = None
    versus: Versus | None = None
    blocks: tuple[Block, ...] = ()  # at the power limit
    joules_per_launch: Estimate | None = None  # over these
    checks: Checks | None = None  # null: a single sample, which has no rate; or end to end
    host: Host | None = None
    end_to_end: EndToEnd | None = None
    departures: tuple[Departure, ...] = ()
    skipped: str | None  # why it was not run
    failed: str | None  # what is wrong with the kernel: it has no time
    suspect: bool = False  # failed: the result is right, but the time is not that of the work

    def __post_init__(self) -> None:
        """Cuts reasons, which others worded. ValueError where there are not as many as samples."""
        object.__setattr__(self, "skipped", self.skipped and cut(self.skipped))
        object.__setattr__(self, "failed", self.failed and cut(self.failed))
        if len(self.samples_throttled) not in (0, len(self.samples_seconds)):
            raise ValueError("samples_throttled is not as long as samples_seconds")

    @cached_property
    def identity(self) -> Identity:
        """By which it is found in another run."""
        problem = self.precision, self.layout, self.m, self.n, self.k, self.transfer
        parts = self.batch_count, self.tokens, self.epilogue
        return Identity(self.kernel, tuple(self.parameters.items()), *problem, *parts)

    @property
    def part(self) -> Part:
        """A point of a parameter grid, and what has transfers in its time, are no rungs."""
        if self.transfer is not None:
            return Part.END_TO_END
        return Part.TUNING if self.variant else Part.LADDER

    @property
    def kernel_label(self) -> str:
        """Names the variant, however its operands come to the device."""
        return variant(self.kernel, self.parameters.items(), self.layout, self.epilogue)

    @property
    def label(self) -> str:
        """Names the variant, as its benchmark is named."""
        return self.identity.label

    @property
    def shape(self) -> str:
        """As in the benchmark's name: 1024x1024x768."""
        return self.identity.shape

    @property
    def size(self) -> str:
        """The shape, shorter for a cube: 4096."""
        return str(self.m) if self.is_cube else self.shape

    @property
    def kind(self) -> str:
        """As the name of its problem begins: grouped, batched; plain is one product."""
        return "grouped" if self.tokens else "batched" if self.batch_count > 1 else "plain"

    @property
    def is_plain(self) -> bool:
        """Whether it is one product and nothing else: figures over sizes are of these."""
        return self.kind == "plain" and self.epilogue == "none"

    @property
    def volume(self) -> int:
        """Multiplications in the problem, by which problems are larger or smaller."""
        return self.batch_count * self.m * self.n * self.k

    @property
    def joules(self) -> float | None:
        """Of one launch: over blocks, or the power of the board times the median time."""
        if self.joules_per_launch:
            return self.joules_per_launch.value
        power = self.power_w
        return power * self.seconds.median if power and self.seconds else None

    @property
    def sm_hz(self) -> float | None:
        """Median; the timers saw every sample, the readings only what lay at their moments."""
        range_ = (self.clocks.sm_hz_by_timer or self.clocks.sm_hz) if self.clocks else None
        return range_.median if range_ else None

    @property
    def power_w(self) -> float | None:
        """Mean in steady state; of earlier records the median, where that is of half a second."""
        if self.energy is not None:
            return self.energy.watts
        clocks = self.clocks
        if not clocks or not clocks.power_w or clocks.readings < _READINGS_OF_HALF_A_SECOND:
            return None
        return clocks.power_w.median

    @property
    def throttled_share(self) -> float | None:
        """Of the readings."""
        return self.clocks.throttled_share if self.clocks else None

    @property
    def doubts(self) -> tuple[Departure, ...]:
        """Why its own figure is less certain than it should be."""
        return tuple(each for each in self.departures if each.doubt)

    @property
    def disturbed(self) -> bool:
        """Whether others took so much of the host's CPUs that the time is doubtful."""
        return any(each.code == BUSY_HOST for each in self.departures)

    @property
    def held_by(self) -> tuple[str, ...]:
        """What held the clocks down, most of the time first."""
        reasons = self.clocks.reasons if self.clocks else {}
        return tuple(sorted(reasons, key=lambda reason: -reasons[reason]))

    @property
    def settings(self) -> str:
        """The parameters as in the benchmark's name: BM:128/BN:128."""
        return _settings(self.parameters.items())

    @property
    def is_library(self) -> bool:
        """Whether it is what rungs are compared with."""
        return self.family == "library"

    @property
    def is_peer(self) -> bool:
        """Whether it is what a user would pick instead, as tools/other_implementations times it."""
        return self.family == "peer"

    @property
    def is_ours(self) -> bool:
        """Whether it is a kernel of the ladder."""
        return not self.is_library and not self.is_peer

    @property
    def is_cube(self) -> bool:
        """Whether the problem has one size."""
        return self.m == self.n == self.k and self.is_plain

    @property
    def throttled(self) -> bool:
        """Whether something held the clocks down while it was timed."""
        return bool(self.throttled_share)

    @property
    def status(self) -> str:
        """timed, failed, skipped or untimed; a wrong result has no speed, whatever was written."""
        if self.failed is not None:
            return "failed"
        if self.skipped is not None:
            return "skipped"
        return "timed" if self.seconds and self.flop_per_second else "untimed"


@dataclass(frozen=True, kw_only=True)
class Run:
    """What ran, where, and how: context.gemm."""

    schema: Annotated[int, Meta(ge=OLDEST, le=SCHEMA)]
    complete: bool  # false if the run was interrupted or killed, or goes on
    commit: Text
    build: Build
    command: tuple[Annotated[str, Meta(max_length=1000)], ...]
    conformance: Text | None = None  # how all of it was measured, in one line
    node: Text | None = None  # the host, as --gemm_node names it
    environment: Environment | None = None
    host: Host | None = None
    health: Health | None = None
    time: RunTime | None = None
    device: Device
    libraries: tuple[Library, ...] = ()  # that kernels called; earlier records lack them
    precisions: tuple[Precision, ...]
    ceilings: tuple[Ceiling, ...]
    measured_ceilings: tuple[MeasuredCeiling, ...] = ()
    kernels: tuple[Kernel, ...]  # those with a row, by rung
    method: Method

    @property
    def releases(self) -> dict[str, str]:
        """Of the libraries, by name; not of another one that a user's kernel brought along."""
        found: dict[str, str] = {}
        for each in self.libraries:
            found.setdefault(each.name, each.release)
        return found


@dataclass(frozen=True)
class Context:
    """Google Benchmark's, with ours in it."""

    date: Text
    gemm: Run
    executable: Annotated[str, Meta(pattern="^[^/]*$")] = ""  # without its folder


@dataclass(frozen=True)
class Benchmark:
    """Google Benchmark's entry for a row, with ours in it, or for an aggregate of rows."""

    run_type: Text
    gemm: Row | None = None
    repetition_index: Whole = 0


@dataclass(frozen=True)
class Document:
    """Google Benchmark's JSON with an object `gemm` in the context and in every row."""

    context: Context
    benchmarks: tuple[Benchmark, ...]


@dataclass(frozen=True, kw_only=True)
class Record(Run):
    """One run of gemm_bench."""

    path: Path
    date: str
    rows: tuple[Row, ...]

    @property
    def utc(self) -> datetime:
        """When the run began; RecordError where its date is none, or has no offset."""
        with contextlib.suppress(ValueError, OverflowError):
            found = datetime.fromisoformat(self.date)
            if found.tzinfo is not None:
                return found.astimezone(UTC)
        raise RecordError(
            f"{self.path}: context.date is {self.date!r}, not a date with an offset: run "
            "gemm_bench again"
        )

    @property
    def commit_name(self) -> str:
        """The commit with 12 digits, and whether the sources differed from it."""
        clean = self.commit.removesuffix("-dirty")
        return clean[:12] + self.commit[len(clean) :]

    def compute_roofs(self, precision: str) -> list[Ceiling]:
        """The known compute roofs of a precision, highest first."""
        known = [c for c in self.ceilings if c.precision == precision and c.flop_per_second]
        return sorted(known, key=lambda c: -(c.flop_per_second or 0))

    def memory_roofs(self) -> list[Ceiling]:
        """The known memory roofs, highest first."""
        known = [c for c in self.ceilings if c.bytes_per_second]
        return sorted(known, key=lambda c: -(c.bytes_per_second or 0))

    def measured_compute_roofs(self, precision: str) -> list[Ceiling]:
        """What was measured on values like those of the kernels, highest first."""
        unit = next(each for each in self.precisions if each.name == precision)
        measured = [
            replace(
                ceiling.roof,
                name=ceiling.name + (f" / {unit.products}" if unit.products > 1 else ""),
                precision=precision,
                flop_per_second=ceiling.flop_per_second / unit.products,
            )
            for ceiling in self.measured_ceilings
            if ceiling.arithmetic == unit.arithmetic and ceiling.flop_per_second
            # Zeros need less power: no kernel that is timed here could have that clock.
            if ceiling.fill != "zeros"
        ]
        return sorted(measured, key=lambda c: -(c.flop_per_second or 0))

    def measured_memory_roof(self, level: str = "DRAM") -> Ceiling | None:
        """What a memory was seen to reach."""
        return next((c.roof for c in self.measured_ceilings if c.roof_of == level), None)

    def bandwidth(self, memory: str) -> Ceiling | None:
        """The measured roof of one of MEMORIES; of DRAM else the nominal one."""
        nominal = self.memory_roofs() if memory == "DRAM" else []
        return self.measured_memory_roof(MEMORIES[memory]) or next(iter(nominal), None)

    def rows_with(self, status: str, part: Part | None = None) -> list[Row]:
        """Those that are timed, failed, skipped or untimed; all of them, or those of one part."""
        return [r for r in self.rows if r.status == status and part in (None, r.part)]


def rate(row: Row) -> float:
    """FLOP/s of a row that has a time."""
    return row.flop_per_second or 0


def variant(
    kernel: str, parameters: Iterable[tuple[str, str]], layout: str, epilogue: str = "none"
) -> str:
    """As its benchmark is named: Tiled/tile:16, Tiled/tile:16/layout:nt if that is not nn."""
    of_layout = "" if layout == "nn" else f"layout:{layout}"
    of_epilogue = "" if epilogue == "none" else f"epilogue:{epilogue}"
    return "/".join(filter(None, (kernel, _settings(parameters), of_layout, of_epilogue)))


def _settings(parameters: Iterable[tuple[str, str]]) -> str:
    return "/".join(f"{name}:{value}" for name, value in parameters)


def read_record(path: Path) -> Record:
    """The record in `path`; RecordError where there is none that this version understands."""
    return record_of(path, read_json(path, RECORD))


def record_of(path: Path, document: Any) -> Record:
    """The same of what the JSON in `path` says."""
    context = document.get("context") if isinstance(document, dict) else None
    if not isinstance(context, dict) or "gemm" not in context:
        kind = "plain Google Benchmark output" if isinstance(context, dict) else "other JSON"
        raise RecordError(
            f"{path}: is not a record of gemm_bench but {kind} (context.gemm is missing): "
            "give a file that gemm_bench wrote with --benchmark_out"
        )
    check_schema(path, RECORD, context["gemm"], OLDEST, SCHEMA)
    whole = decoded(path, RECORD, document, Document)
    run = whole.context.gemm
    known = [precision.name for precision in run.precisions]
    rows: dict[tuple[Identity, int], Row] = {}
    for entry in whole.benchmarks:
        if entry.run_type == "aggregate":
            continue
        row = entry.gemm
        if row is None:
            raise RecordError(f"{path}: has a row without its object gemm: {RECORD.advice}")
        if row.precision not in known:
            raise RecordError(
                f"{path}: has a row in {cut(row.precision, 40)!r}, not one of "
                f"{', '.join(known)}: {RECORD.advice}"
            )
        if entry.repetition_index:
            row = replace(row, repetition=entry.repetition_index)
        if (row.identity, row.repetition) in rows:
            raise RecordError(f"{path}: has {row.identity} twice: {RECORD.advice}")
        rows[row.identity, row.repetition] = row
    said = {each.name: getattr(run, each.name) for each in fields(Run)}
    return Record(**said, path=path, date=whole.context.date, rows=tuple(rows.values()))
