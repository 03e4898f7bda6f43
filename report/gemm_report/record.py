"""Reads a record of gemm_bench into plain data, or says in one line why it cannot.

The format is that of results/schema.json. What is checked here is what the reports rely on: the
schema has the whole of it, and the tests hold every stored record against it.
"""

import contextlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime
from enum import Enum
from pathlib import Path
from types import NoneType
from typing import Any, NamedTuple

from gemm_report.document import Kind, Object, RecordError, read_json

RECORD = Kind("record", "gemm_bench")
SCHEMA = 1
PRECISIONS = (
    *("f32", "tf32", "tf32x3", "bf16", "f16"),
    *("e4m3", "e4m3fast", "e5m2", "e5m2fast", "f64", "s32", "s8"),
)
# What a unit computes for one product of such a precision: how many products, of which arithmetic.
_PRODUCTS = {
    "tf32x3": (3, "tf32"),
    "e4m3fast": (1, "e4m3"),
    "e5m2": (1, "e4m3"),
    "e5m2fast": (1, "e4m3"),
}
TRANSFERS = ("pageable", "pinned", "overlapped")


class Part(Enum):
    """Which story a row tells; a figure tells one of them."""

    LADDER = "ladder"
    TUNING = "tuning"
    END_TO_END = "end to end"


@dataclass(frozen=True)
class Device:
    """Where the record was made."""

    kind: str
    name: str
    uuid_hash: str | None
    clock_hz: float | None
    driver: str | None
    runtime: str | None
    power_limit_w: float | None
    compute_capability: str | None = None
    sm_count: int | None = None


@dataclass(frozen=True)
class Ceiling:
    """A roof: of one precision's arithmetic, or of a memory; of neither where it is not known."""

    name: str
    precision: str | None
    flop_per_second: float | None
    bytes_per_second: float | None
    origin: str
    source: str
    clock_hz: float | None = None

    def for_products(self, count: int, precision: str) -> "Ceiling":
        """For a precision of whose products each takes so many of this arithmetic."""
        if self.flop_per_second is None:
            return self
        return replace(
            self,
            name=self.name if count == 1 else f"{self.name} / {count}",
            precision=precision,
            flop_per_second=self.flop_per_second / count,
        )


@dataclass(frozen=True)
class MeasuredCeiling:
    """What a probe reached that does one thing only, and at which clock and power."""

    name: str
    arithmetic: str | None
    fill: str | None
    what: str
    flop_per_second: float | None
    bytes_per_second: float | None
    of_nominal: float | None
    sm_hz: float | None
    power_w: float | None
    throttled_share: float | None

    @property
    def roof(self) -> Ceiling:
        """As a roof to draw."""
        return Ceiling(
            name=self.name,
            precision=self.arithmetic if self.arithmetic in PRECISIONS else None,
            flop_per_second=self.flop_per_second,
            bytes_per_second=self.bytes_per_second,
            origin="measured",
            source=self.what,
            # Neither DRAM nor the link to the host runs with the clock of the multiprocessors.
            clock_hz=None if self.name.startswith(("DRAM_", "PCIe_")) else self.sm_hz,
        )


@dataclass(frozen=True)
class Kernel:
    """A rung of the ladder."""

    name: str
    family: str
    rung: int
    idea: str
    tunable: bool = False


@dataclass(frozen=True)
class Method:
    """How it was measured."""

    timer: str
    fill: str
    test: str | None
    state: str | None
    cache: str | None
    target: float | None
    launch_seconds: float | None = None  # what the host needs for one


@dataclass(frozen=True)
class RunTime:
    """How long a run took, and how much of that the device ran kernels under test."""

    wall_seconds: float
    kernel_seconds: float


@dataclass(frozen=True)
class Clocks:
    """Medians of what the card said while it was timed, and what held it down."""

    sm_hz: float | None
    power_w: float | None
    throttled_share: float | None
    reasons: tuple[str, ...]


@dataclass(frozen=True)
class Versus:
    """Speed over that of another kernel that took turns with this one, with its interval."""

    kernel: str
    ratio: float
    low: float
    high: float


@dataclass(frozen=True)
class Seconds:
    """Time of one launch over the samples."""

    median: float
    q1: float
    q3: float
    min: float


@dataclass(frozen=True)
class Roof:
    """The roof that counts for one row."""

    name: str
    flop_per_second: float


@dataclass(frozen=True)
class Verification:
    """How far the result is from the reference; None where that is not finite.

    `bound` is that of the element that comes closest to its own, and `of_bound` how close that is.
    """

    max_error: float | None
    bound: float | None
    passed: bool
    of_bound: float | None = None


@dataclass(frozen=True)
class Traffic:
    """Bytes of one launch, by a model or counted; shared memory's include bank conflicts."""

    dram_bytes: float
    l2_bytes: float
    shared_bytes: float


@dataclass(frozen=True)
class EndToEnd:
    """The parts of a row with transfers, each timed alone, and how much of them it hides."""

    to_device_bytes: float
    from_device_bytes: float
    to_device_seconds: float
    kernel_seconds: float
    from_device_seconds: float
    to_device_bytes_per_second: float
    from_device_bytes_per_second: float
    hidden_share: float


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

    def __str__(self) -> str:
        """As the benchmark is named."""
        transfer = f"EndToEnd/{self.transfer}/" if self.transfer else ""
        label = variant(self.kernel, self.parameters, self.layout)
        return f"{transfer}{label}/{self.precision}/{self.m}x{self.n}x{self.k}"


@dataclass(frozen=True)
class DeviceCode:
    """One GPU kernel that a launch runs: what was compiled, and how much of the card it takes."""

    name: str
    fingerprint: str | None
    registers: int | None
    shared_bytes: int | None
    local_bytes: int | None
    threads: int | None
    blocks: int | None
    occupancy: float | None


@dataclass(frozen=True)
class Row:
    """One kernel on one problem, one repetition."""

    kernel: str
    family: str
    parameters: tuple[tuple[str, str], ...]
    precision: str
    layout: str
    m: int
    n: int
    k: int
    repetition: int
    flop: float
    flop_per_byte: float
    samples_seconds: tuple[float, ...]
    seconds: Seconds | None
    flop_per_second: float | None
    roof: Roof | None
    of_roof_nominal: float | None
    of_roof_at_clock: float | None
    of_library: float | None
    library: str | None
    verification: Verification | None
    skipped: str | None
    failed: str | None
    clocks: Clocks | None
    versus: Versus | None
    departures: tuple[str, ...]
    traffic: Traffic | None = None
    is_variant: bool = False
    transfer: str | None = None
    end_to_end: EndToEnd | None = None
    fingerprint: str | None = None
    device_code: tuple[DeviceCode, ...] = ()
    samples_sm_hz: tuple[float, ...] = ()
    device_kernels: tuple[str, ...] = ()
    samples_throttled: tuple[bool, ...] = ()
    launch: str | None = None  # graph or stream
    counted: Traffic | None = None  # by ncu, where somebody asked it

    @property
    def identity(self) -> Identity:
        """By which it is found in another run."""
        return Identity(
            self.kernel,
            self.parameters,
            self.precision,
            self.layout,
            self.m,
            self.n,
            self.k,
            self.transfer,
        )

    @property
    def part(self) -> Part:
        """A point of a parameter grid, and what has transfers in its time, are no rungs."""
        if self.transfer is not None:
            return Part.END_TO_END
        return Part.TUNING if self.is_variant else Part.LADDER

    @property
    def kernel_label(self) -> str:
        """Names the variant, however its operands come to the device."""
        return variant(self.kernel, self.parameters, self.layout)

    @property
    def label(self) -> str:
        """Names the variant, as its benchmark is named."""
        label = self.kernel_label
        return label if self.transfer is None else f"EndToEnd/{self.transfer}/{label}"

    @property
    def shape(self) -> str:
        """As in the benchmark's name: 1024x1024x768."""
        return f"{self.m}x{self.n}x{self.k}"

    @property
    def size(self) -> str:
        """The shape, shorter for a cube: 4096."""
        return str(self.m) if self.is_cube else self.shape

    @property
    def volume(self) -> int:
        """Products in the problem, by which problems are larger or smaller."""
        return self.m * self.n * self.k

    @property
    def ordinal(self) -> str:
        """Behind its name, which repetition it is; nothing behind the first."""
        return f" (repetition {self.repetition + 1})" if self.repetition else ""

    @property
    def joules(self) -> float | None:
        """Of one launch: the median power of the board times the median time."""
        power = self.clocks and self.clocks.power_w
        return power * self.seconds.median if power and self.seconds else None

    @property
    def settings(self) -> str:
        """The parameters as in the benchmark's name: BM:128/BN:128."""
        return _settings(self.parameters)

    @property
    def is_library(self) -> bool:
        """Whether it is what rungs are compared with."""
        return self.family == "library"

    @property
    def is_peer(self) -> bool:
        """Whether it is what a user would pick instead, as tools/peers times it."""
        return self.family == "peer"

    @property
    def is_ours(self) -> bool:
        """Whether it is a kernel of the ladder."""
        return not self.is_library and not self.is_peer

    @property
    def is_cube(self) -> bool:
        """Whether the problem has one size."""
        return self.m == self.n == self.k

    @property
    def throttled(self) -> bool:
        """Whether something held the clocks down while it was timed."""
        return bool(self.clocks and self.clocks.throttled_share)

    @property
    def status(self) -> str:
        """timed, failed, skipped or untimed; a wrong result has no speed, whatever was written."""
        if self.failed is not None:
            return "failed"
        if self.skipped is not None:
            return "skipped"
        return "timed" if self.seconds and self.flop_per_second else "untimed"


@dataclass(frozen=True)
class Record:
    """One run of gemm_bench."""

    path: Path
    date: str
    complete: bool
    commit: str
    build_type: str
    command: tuple[str, ...]
    conformance: str | None
    time: RunTime | None
    device: Device
    ceilings: tuple[Ceiling, ...]
    measured_ceilings: tuple[MeasuredCeiling, ...]
    kernels: tuple[Kernel, ...]
    method: Method
    rows: tuple[Row, ...]
    aggregates: int

    @property
    def utc(self) -> datetime:
        """When the run began; RecordError where its date is none, or has no offset."""
        return utc(self.path, self.date)

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
        products, arithmetic = _PRODUCTS.get(precision, (1, precision))
        measured = [
            ceiling.roof.for_products(products, precision)
            for ceiling in self.measured_ceilings
            if ceiling.arithmetic == arithmetic and ceiling.flop_per_second
            # Zeros need less power: no kernel that is timed here could have that clock.
            if ceiling.fill != "zeros"
        ]
        return sorted(measured, key=lambda c: -(c.flop_per_second or 0))

    def measured_compute_roof(self, precision: str) -> Ceiling | None:
        """The highest of them."""
        return next(iter(self.measured_compute_roofs(precision)), None)

    def measured_memory_roof(self, level: str = "DRAM") -> Ceiling | None:
        """What reading a level was seen to reach; where it was not read, the best of the rest."""
        measured = [
            ceiling
            for ceiling in self.measured_ceilings
            if ceiling.name.startswith(f"{level}_") and ceiling.bytes_per_second
        ]

        def merit(ceiling: MeasuredCeiling) -> tuple[bool, float]:
            return ceiling.name == f"{level}_read", ceiling.bytes_per_second or 0

        best = max(measured, key=merit, default=None)
        return best and best.roof

    def measured_rate(self, name: str) -> float | None:
        """The bytes in a second of a probe of a memory or a link."""
        return next((c.bytes_per_second for c in self.measured_ceilings if c.name == name), None)

    def rows_with(self, status: str, part: Part | None = None) -> list[Row]:
        """Those that are timed, failed, skipped or untimed; all of them, or those of one part."""
        return [r for r in self.rows if r.status == status and part in (None, r.part)]

    def unknown_roofs(self) -> list[Ceiling]:
        """The roofs of which only the reason is known why they are not."""
        return [c for c in self.ceilings if not c.flop_per_second and not c.bytes_per_second]


def utc(path: Path, date: str) -> datetime:
    """What the date of the record in `path` says; RecordError where it is none or has no offset."""
    with contextlib.suppress(ValueError, OverflowError):
        found = datetime.fromisoformat(date)
        if found.tzinfo is not None:
            return found.astimezone(UTC)
    raise RecordError(
        f"{path}: context.date is {date!r}, not a date with an offset: run gemm_bench again"
    )


def variant(kernel: str, parameters: Iterable[tuple[str, str]], layout: str) -> str:
    """As its benchmark is named: Tiled/tile:16, Tiled/tile:16/layout:nt if that is not nn."""
    parts = [kernel, _settings(parameters), "" if layout == "nn" else f"layout:{layout}"]
    return "/".join(filter(None, parts))


def _settings(parameters: Iterable[tuple[str, str]]) -> str:
    return "/".join(f"{name}:{value}" for name, value in parameters)


def read_record(path: Path) -> Record:
    """The record in `path`; RecordError where there is none that this version understands."""
    return record_of(path, read_json(path, RECORD))


def record_of(path: Path, document: Any) -> Record:
    """The same of what the JSON in `path` says."""
    context, benchmarks = outer_objects(path, document)
    # Earlier records lack what is given here.
    run = context.child("gemm").or_else(conformance=None, time=None, measured_ceilings=[])
    run.check_schema(SCHEMA)
    device = run.child("device").or_else(compute_capability=None, sm_count=None)
    method = run.child("method").or_else(cache=None, target=None, overheads=None)
    overheads = method.child_or_none("overheads")
    time = run.child_or_none("time")
    rows = [b for b in benchmarks if b.take("run_type", str) != "aggregate"]
    return Record(
        path=path,
        date=context.take("date", str),
        complete=run.take("complete", bool),
        commit=run.take("commit", str),
        build_type=run.child("build").take("type", str),
        command=run.texts("command"),
        conformance=run.take("conformance", str, NoneType),
        time=time and RunTime(time.positive("wall_seconds"), time.nonnegative("kernel_seconds")),
        device=Device(
            kind=device.take("kind", str),
            name=device.take("name", str),
            uuid_hash=device.take("uuid_hash", str, NoneType),
            clock_hz=device.positive_or_none("clock_hz"),
            driver=device.take("driver", str, NoneType),
            runtime=device.take("runtime", str, NoneType),
            power_limit_w=device.positive_or_none("power_limit_w"),
            compute_capability=device.take("compute_capability", str, NoneType),
            sm_count=None
            if device.take("sm_count", int, NoneType) is None
            else device.count("sm_count"),
        ),
        ceilings=tuple(_ceiling(ceiling) for ceiling in run.children("ceilings")),
        measured_ceilings=tuple(_measured(each) for each in run.children("measured_ceilings")),
        kernels=tuple(_kernel(kernel) for kernel in run.children("kernels")),
        method=Method(
            timer=method.take("timer", str),
            fill=method.take("fill", str),
            test=method.take("test", str, NoneType),
            state=method.take("state", str, NoneType),
            cache=method.take("cache", str, NoneType),
            target=method.nonnegative_or_none("target"),
            launch_seconds=overheads
            and overheads.or_else(launch_seconds=None).nonnegative_or_none("launch_seconds"),
        ),
        rows=_distinct(path, [_row(row) for row in rows]),
        aggregates=len(benchmarks) - len(rows),
    )


def outer_objects(path: Path, document: Any) -> tuple[Object, list[Object]]:
    """The context and the rows; RecordError where it is no record."""
    context = document.get("context") if isinstance(document, dict) else None
    if not isinstance(context, dict) or "gemm" not in context:
        kind = "plain Google Benchmark output" if isinstance(context, dict) else "other JSON"
        raise RecordError(
            f"{path}: is not a record of gemm_bench but {kind} (context.gemm is missing): "
            "give a file that gemm_bench wrote with --benchmark_out"
        )
    outer = Object(path, RECORD, "record", document)
    return Object(path, RECORD, "context", context), outer.children("benchmarks")


def _distinct(path: Path, rows: Sequence[Row]) -> tuple[Row, ...]:
    seen: set[tuple[Identity, int]] = set()
    for row in rows:
        if (row.identity, row.repetition) in seen:
            raise RecordError(f"{path}: has {row.identity} twice: {RECORD.advice}")
        seen.add((row.identity, row.repetition))
    return tuple(rows)


def _ceiling(ceiling: Object) -> Ceiling:
    return Ceiling(
        name=ceiling.take("name", str),
        precision=_precision_or_none(ceiling),
        flop_per_second=ceiling.positive_or_none("flop_per_second"),
        bytes_per_second=ceiling.positive_or_none("bytes_per_second"),
        origin=ceiling.take("origin", str),
        source=ceiling.take("source", str),
        clock_hz=ceiling.or_else(clock_hz=None).positive_or_none("clock_hz"),
    )


def _measured(ceiling: Object) -> MeasuredCeiling:
    return MeasuredCeiling(
        name=ceiling.take("name", str),
        arithmetic=ceiling.take("arithmetic", str, NoneType),
        fill=ceiling.take("fill", str, NoneType),
        what=ceiling.take("what", str),
        flop_per_second=ceiling.positive_or_none("flop_per_second"),
        bytes_per_second=ceiling.positive_or_none("bytes_per_second"),
        of_nominal=ceiling.positive_or_none("of_nominal"),
        sm_hz=ceiling.positive_or_none("sm_hz"),
        power_w=ceiling.positive_or_none("power_w"),
        throttled_share=ceiling.nonnegative_or_none("throttled_share"),
    )


def _precision_or_none(holder: Object) -> str | None:
    if holder.take("precision", str, NoneType) is None:
        return None
    return holder.one_of("precision", PRECISIONS)


def _kernel(kernel: Object) -> Kernel:
    kernel = kernel.or_else(tunable=False)  # earlier records lack it
    return Kernel(
        name=kernel.take("name", str),
        family=kernel.take("family", str),
        rung=kernel.take("rung", int),
        idea=kernel.take("idea", str),
        tunable=kernel.take("tunable", bool),
    )


def _row(benchmark: Object) -> Row:
    # Earlier records lack what is given here.
    row = benchmark.child("gemm").or_else(
        versus=None,
        departures=[],
        variant=False,
        transfer=None,
        end_to_end=None,
        fingerprint=None,
        device_code=[],
        samples_sm_hz=[],
        device_kernels=[],
        samples_throttled=[],
        launch=None,
        counted=None,
    )
    parameters = row.child("parameters")
    seconds = row.child_or_none("seconds")
    roof = row.child_or_none("roof")
    verification = row.child_or_none("verification")
    clocks = row.child_or_none("clocks")
    versus = row.child_or_none("versus")
    traffic = row.child_or_none("traffic")
    counted = row.child_or_none("counted")
    end_to_end = row.child_or_none("end_to_end")
    return Row(
        kernel=row.take("kernel", str),
        family=row.take("family", str),
        parameters=tuple((name, parameters.take(name, str)) for name in parameters.values),
        precision=row.one_of("precision", PRECISIONS),
        layout=row.take("layout", str),
        m=row.count("m"),
        n=row.count("n"),
        k=row.count("k"),
        repetition=benchmark.take("repetition_index", int)
        if "repetition_index" in benchmark.values
        else 0,
        flop=row.positive("flop"),
        flop_per_byte=row.positive("flop_per_byte"),
        samples_seconds=row.positives("samples_seconds"),
        seconds=seconds and _seconds(seconds),
        flop_per_second=row.positive_or_none("flop_per_second"),
        roof=roof and Roof(roof.take("name", str), roof.positive("flop_per_second")),
        of_roof_nominal=row.positive_or_none("of_roof_nominal"),
        of_roof_at_clock=row.positive_or_none("of_roof_at_clock"),
        of_library=row.positive_or_none("of_library"),
        library=row.take("library", str, NoneType),
        verification=verification
        and Verification(
            max_error=verification.finite_or_none("max_error"),
            bound=verification.finite_or_none("bound"),
            passed=verification.take("passed", bool),
            of_bound=verification.or_else(of_bound=None).nonnegative_or_none("of_bound"),
        ),
        skipped=row.reason_or_none("skipped"),
        failed=row.reason_or_none("failed"),
        clocks=clocks and _clocks(clocks),
        versus=versus
        and Versus(
            kernel=versus.take("kernel", str),
            ratio=versus.positive("ratio"),
            low=versus.positive("low"),
            high=versus.positive("high"),
        ),
        departures=row.texts("departures"),
        traffic=traffic and _traffic(traffic),
        is_variant=row.take("variant", bool),
        transfer=None
        if row.take("transfer", str, NoneType) is None
        else row.one_of("transfer", TRANSFERS),
        end_to_end=end_to_end and _end_to_end(end_to_end),
        fingerprint=row.take("fingerprint", str, NoneType),
        device_code=tuple(_device_code(code) for code in row.children("device_code")),
        samples_sm_hz=row.positives("samples_sm_hz"),
        device_kernels=row.texts("device_kernels"),
        samples_throttled=_throttled(row),
        launch=row.take("launch", str, NoneType),
        counted=counted and _traffic(counted),
    )


def _traffic(traffic: Object) -> Traffic:
    return Traffic(
        dram_bytes=traffic.positive("dram_bytes"),
        l2_bytes=traffic.positive("l2_bytes"),
        shared_bytes=traffic.nonnegative("shared_bytes"),
    )


def _throttled(row: Object) -> tuple[bool, ...]:
    """Of each sample, or empty where nobody watched."""
    values = row.take("samples_throttled", list)
    if not all(isinstance(value, bool) for value in values):
        row.complain("samples_throttled", "has something other than true and false")
    if values and len(values) != len(row.take("samples_seconds", list)):
        row.complain("samples_throttled", "is not as long as samples_seconds")
    return tuple(values)


def _device_code(code: Object) -> DeviceCode:
    return DeviceCode(
        name=code.take("name", str),
        fingerprint=code.take("fingerprint", str, NoneType),
        registers=code.take("registers", int, NoneType),
        shared_bytes=code.take("shared_bytes", int, NoneType),
        local_bytes=code.take("local_bytes", int, NoneType),
        threads=code.take("threads", int, NoneType),
        blocks=code.take("blocks", int, NoneType),
        occupancy=code.nonnegative_or_none("occupancy"),
    )


def _end_to_end(parts: Object) -> EndToEnd:
    hidden_share = parts.take("hidden_share", int, float)
    if not abs(hidden_share) <= 1e6:
        parts.complain("hidden_share", "is not a share")
    positive = [field.name for field in fields(EndToEnd) if field.name != "hidden_share"]
    return EndToEnd(**{name: parts.positive(name) for name in positive}, hidden_share=hidden_share)


def _seconds(seconds: Object) -> Seconds:
    found = Seconds(*(seconds.positive(key) for key in ("median", "q1", "q3", "min")))
    if not found.min <= found.q1 <= found.median <= found.q3:
        seconds.complain("median", "is not between the quartiles, or they are below the minimum")
    return found


def _clocks(clocks: Object) -> Clocks:
    def median(key: str) -> float | None:
        values = clocks.child_or_none(key)
        return values and values.positive("median")

    reasons = clocks.child("reasons")
    return Clocks(
        # The timers saw every sample, the readings only what lay at their moments.
        sm_hz=median("sm_hz_by_timer") or median("sm_hz"),
        power_w=median("power_w"),
        throttled_share=clocks.nonnegative_or_none("throttled_share"),
        reasons=tuple(sorted(reasons.values, key=reasons.nonnegative, reverse=True)),
    )
