"""The records of a fleet run, one a GPU, and the lists of the GPUs that each node has."""

from collections.abc import Collection, Iterator
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field
from datetime import datetime
from math import sqrt
from operator import attrgetter
from pathlib import Path
from statistics import NormalDist, fmean, median
from typing import NamedTuple

from gemm_report.collection import Refusals, record_paths
from gemm_report.document import RecordError, cut, require_no_pipe
from gemm_report.grouping import grouped
from gemm_report.record import MeasuredCeiling, Record, Row, rate, read_record
from gemm_report.terminal import complain, printable

# Worst first. unclear: its group cannot be judged; alone: nothing to compare it with.
STATES = ("wrong", "faulty", "missing", "slow", "throttled", "unclear", "alone", "good")
BAD = STATES[:5]

LINKS = "Peer_"
COPIES = "Peer_copies"  # the median over the links of a GPU
_METHOD = ("fill", "state", "cache", "test")
_OF_ONE_GPU = ("--benchmark_out=", "--gemm_node=", "--gemm_device=")  # options
_OFTEN = 0.05  # share of the readings from which on a reason for a lower clock counts
# Standard error of a sample's median over that of its mean, and the interquartile range in sigmas.
_OF_MEDIAN, _QUARTILES = 1.2533, 1.349


class Group(NamedTuple):
    """GPUs that should be equally fast, measured alike."""

    device: str
    driver: str | None
    power_limit_w: float | None
    libraries: str = ""
    commit: str = ""
    method: str = ""
    options: tuple[str, ...] = ()

    def __str__(self) -> str:
        """For a heading."""
        power = "power limit unknown" if not self.power_limit_w else f"{self.power_limit_w:.0f} W"
        said = self.device, f"driver {self.driver or 'unknown'}", power, self.libraries
        return ", ".join(filter(None, (*said, self.commit and f"commit {self.commit}")))

    def differing(self, other: "Group") -> str:
        """In what it is not the other group."""
        parts = []
        for name, one, two in zip(self._fields, self, other, strict=True):
            if isinstance(one, tuple) and isinstance(two, tuple):
                apart = [each for each in (*one, *two) if (each in one) != (each in two)]
                parts += [f"options {' '.join(apart)}"] if apart else []
            elif one != two:
                parts.append(f"{name.removesuffix('_w').replace('_', ' ')} {one}, not {two}")
        return "; ".join(parts) or "the order of options"


class Finding(NamedTuple):
    """What is the matter with a GPU; `change` of the rate is a fraction, None if unknown."""

    state: str
    case: str | None
    text: str
    change: float | None = None


@dataclass(frozen=True, kw_only=True)
class Rate:
    """What a GPU reached in a case, and its state meanwhile, in SI units."""

    value: float  # FLOP or bytes in a second
    mean: float | None = None  # over the mean of the samples, where `value` is over their median
    error: float = 0  # standard error of the median, as a fraction
    sm_hz: float | None = None  # None too where the case does not run with the SM clock
    power_w: float | None = None
    temperature_c: float | None = None
    reasons: tuple[str, ...] = ()  # that lowered the clocks

    @property
    def per_cycle(self) -> float | None:
        """What the GPU did in a cycle of its SMs."""
        return self.value / self.sm_hz if self.sm_hz else None


@dataclass(frozen=True, kw_only=True)
class Gpu:
    """One GPU of a node; without a record it has no group."""

    node: str
    bus: str
    uuid: str | None = None
    path: Path | None = None
    utc: datetime | None = None
    group: Group | None = None
    rates: dict[str, Rate] = field(default_factory=dict)
    skipped: dict[str, str] = field(default_factory=dict)  # cases, with why
    findings: tuple[Finding, ...] = ()

    @property
    def key(self) -> str:
        """By which it is found in another run."""
        return self.uuid or f"{self.node} {self.bus}"


def read_fleet(folder: Path, refusals: Refusals, nodes: Collection[str], count: int) -> list[Gpu]:
    """The GPUs of a run by node and bus; one that should be there and has no record is missing.

    That is known from `<node>.gpus` (a PCI bus id a line), from `nodes`, and from `count`, how many
    GPUs each node has (0: unknown); where no bus id is known, one of bus `?` stands for all that a
    node lacks. RecordError where there is no folder, or nothing in it.
    """
    found: dict[str, Gpu] = {}
    lists = sorted(folder.glob("*.gpus"))
    with suppress(RecordError) if lists else nullcontext():
        for path in record_paths(folder):
            with refusals:
                gpu = gpu_of(read_record(path))
                if other := found.get(gpu.key):
                    complain(f"{gpu.path}: {gpu.node} {gpu.bus} is in {other.path}, too: the later")
                    gpu = max(gpu, other, key=attrgetter("utc"))
                found[gpu.key] = gpu
    gpus, known = list(found.values()), {(gpu.node, gpu.bus) for gpu in found.values()}
    for path in lists:
        node = cut(printable(path.stem), 40)
        with refusals:
            require_no_pipe(path)
            for bus in map(short_bus, path.read_text(encoding="utf-8", errors="replace").split()):
                if (node, bus) not in known:
                    gpus.append(_missing(node, printable(bus), "no record"))
    for node in dict.fromkeys((*nodes, *(gpu.node for gpu in gpus))):
        has = sum(gpu.node == node for gpu in gpus)
        if has < max(count, 1):
            text = f"{has} GPUs of {count} are listed" if has else "no record of this node"
            gpus.append(_missing(node, "?", text))
    return sorted(gpus, key=lambda gpu: (gpu.node, gpu.bus))


def gpu_of(record: Record) -> Gpu:
    """What one record says; RecordError where it is not of a GPU."""
    device = record.device
    its = (f"{k} {v}" for k, v in record.releases.items() if k.startswith("cuBLAS"))
    if device.kind != "gpu":
        raise RecordError(f"{record.path}: is of a CPU: give records of GPUs")
    cases = grouped(record.rows_with("timed"), lambda row: str(row.identity))
    rates = {case: _of_row(sorted(rows, key=rate)[len(rows) // 2]) for case, rows in cases.items()}
    if record.method.ceilings in ("stored", "measure"):  # cached ones may be of any day
        rates |= {c.name: _of_probe(c) for c in record.measured_ceilings if c.fill != "zeros"}
    copies = [rate.value for name, rate in rates.items() if name.startswith(LINKS)]
    if copies:
        rates[COPIES] = Rate(value=median(copies))
    return Gpu(
        node=cut(printable(record.node or record.path.name.partition(".")[0]), 40),
        bus=short_bus(device.pci_bus_id or "?"),
        uuid=device.uuid_hash,
        path=record.path,
        utc=record.utc,
        group=Group(
            device.name,
            device.driver,
            device.power_limit_w,
            ", ".join(its),
            record.commit_name,
            ", ".join(str(getattr(record.method, name)) for name in _METHOD),
            tuple(each for each in record.command[1:] if not each.startswith(_OF_ONE_GPU)),
        ),
        rates=rates,
        skipped={str(row.identity): row.skipped or "" for row in record.rows_with("skipped")},
        findings=tuple(_faults(record)),
    )


def short_bus(text: str) -> str:
    """The PCI bus id as CUDA has it; nvidia-smi's domain has eight digits."""
    return text.upper()[-12:]


def _of_row(row: Row) -> Rate:
    temperature = row.clocks and row.clocks.temperature_c
    shares = row.clocks.reasons if row.clocks else {}
    error = (row.median_interval or 0) / 2 / NormalDist().inv_cdf(0.975)
    return Rate(
        value=row.flop_per_second or 0,
        mean=row.flop / fmean(row.samples_seconds) if row.samples_seconds else None,
        error=error,
        sm_hz=row.sm_hz,
        power_w=row.power_w,
        temperature_c=temperature.median if temperature else None,
        reasons=tuple(reason for reason, share in shares.items() if share >= _OFTEN),
    )


def _of_probe(probe: MeasuredCeiling) -> Rate:
    error = 0.0
    if probe.seconds and probe.samples:
        sigma = (probe.seconds.q3 - probe.seconds.q1) / _QUARTILES / probe.seconds.median
        error = _OF_MEDIAN * sigma / sqrt(probe.samples)
    return Rate(
        value=probe.flop_per_second or probe.bytes_per_second or 0,
        error=error,
        sm_hz=probe.roof.clock_hz,
        power_w=probe.power_w,
        temperature_c=probe.temperature_c,
    )


def _faults(record: Record) -> Iterator[Finding]:
    """What the record says without any other."""
    if not record.complete:
        yield Finding("missing", None, "the record is incomplete: the run was killed")
    for row in record.rows:
        if row.failed is not None:
            wrong = row.verification and not row.verification.passed
            yield Finding("wrong" if wrong else "missing", str(row.identity), row.failed)
    if not record.health:
        return
    before, after = record.health.before, record.health.after
    errors = (after.ecc_uncorrected or 0) - (before.ecc_uncorrected or 0)
    said = {
        f"{errors} uncorrected ECC errors during the run": errors > 0,
        f"XID {', '.join(map(str, after.xids))} during the run": bool(after.xids),
        "the memory needs a row remapped: reset the GPU": after.remapping_pending,
        "remapping a row of the memory failed: replace the GPU": after.remapping_failed,
    }
    yield from (Finding("faulty", None, text) for text, holds in said.items() if holds)


def _missing(node: str, bus: str, why: str) -> Gpu:
    return Gpu(node=node, bus=bus, findings=(Finding("missing", None, why),))


def state_of(gpu: Gpu) -> str:
    """The worst of what was found."""
    return gpu.findings[0].state if gpu.findings else "good"
