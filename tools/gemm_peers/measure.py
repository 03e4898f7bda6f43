"""One row: operand sets past twice the cache, verified, timed, and verified again."""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gemm_peers.card import Watch, summary
from gemm_peers.device import Device, Launch, Matrix
from gemm_peers.elements import STORAGE
from gemm_peers.peer import Peer, Setting, UnsupportedError
from gemm_peers.plan import Plan, Timing, set_count, time_launches
from gemm_peers.problem import Problem
from gemm_peers.verdict import REFERENCE, Operands, Verdict, judge, operands

_RESERVE_BYTES = 256 << 20  # left to handles and workspaces
# The host sets the rate of launches that it needs longer for than the device does.
_HOST_SHARE = 0.9


class WrongResultError(Exception):
    """With the verdict on it."""

    def __init__(self, complaint: str, verdict: Verdict | None) -> None:
        super().__init__(complaint)
        self.verdict = verdict


@dataclass(frozen=True)
class Bench:
    """What all rows of a process share."""

    device: Device
    plan: Plan
    seed: int = 1
    watch: Watch | None = None
    scratch: Path | None = None
    clock: Callable[[], float] = time.perf_counter


class Judged:
    """The verdict on the last C, which holds for the next one if that has the same bits: all sets
    hold the same values, and most kernels add in the same order each time."""

    def __init__(self, problem: Problem, which: Operands) -> None:
        self._problem, self._which = problem, which
        self._last: tuple[NDArray, Verdict] | None = None

    def verdict(self, results: Sequence[Matrix]) -> Verdict:
        """On every element of every C."""
        for c in results:
            value = c.fetch()
            if self._last is None or not np.array_equal(_bits(value), _bits(self._last[0])):
                self._last = value.copy(), judge(self._problem, value, self._which)
            verdict = self._last[1]
            if verdict.complaint:
                raise WrongResultError(verdict.complaint, verdict)
            if outside := c.outside():
                raise WrongResultError(outside, verdict)
        return verdict


@dataclass(frozen=True)
class Prepared:
    """Launches on operand sets of their own, whose results were right."""

    problem: Problem
    launches: Sequence[Launch]
    memory: Sequence[tuple[Matrix, Matrix, Matrix]]
    which: Operands
    judged: Judged

    def poison(self) -> None:
        """Every C."""
        for _, _, c in self.memory:
            c.poison()

    def verdict(self, launched: int) -> Verdict:
        """On the sets that so many launches wrote."""
        return self.judged.verdict([c for _, _, c in self.memory[:launched]])


def prepared(bench: Bench, peer: Peer, problem: Problem, variant: str) -> Prepared:
    """Raises UnsupportedError, WrongResultError, and whatever the peer raises."""
    if problem.k > problem.traits.longest_sum:
        raise UnsupportedError(
            f"sums of more than {problem.traits.longest_sum} products may leave 32 bits"
        )
    device = bench.device
    sets = set_count(problem, device.facts.last_level_cache_bytes)
    _require_memory(device, sets * problem.bytes_minimum)
    prepare = peer.prepare(Setting(problem, variant, device.stream))
    which = _operands(problem, bench.seed, bench.scratch)
    blank = np.zeros((problem.m, problem.n), STORAGE[problem.traits.output])
    memory = [
        (device.matrix(which.a), device.matrix(which.b), device.matrix(blank)) for _ in range(sets)
    ]
    launches = [prepare(a.array, b.array, c.array) for a, b, c in memory]
    found = Prepared(problem, launches, memory, which, Judged(problem, which))
    found.poison()
    _require_time(bench, launches)
    found.verdict(sets)
    return found


def measured(bench: Bench, ready: Prepared) -> dict[str, Any]:
    """What the record says of a row that has a time."""
    timing = time_launches(
        bench.device, bench.plan, ready.launches, bench.watch, bench.clock, ready.poison
    )
    verdict = ready.verdict(len(timing.samples_seconds) * timing.batch)
    return _as_record(bench, timing, verdict, len(ready.memory), ready.problem)


@lru_cache(maxsize=1)
def _operands(problem: Problem, seed: int, scratch: Path | None) -> Operands:
    return operands(problem, seed, scratch)


def _require_memory(device: Device, needed: float) -> None:
    free = device.free_bytes()
    if free is not None and needed + _RESERVE_BYTES > free:
        raise UnsupportedError(
            f"needs {needed * 1e-9:.3g} GB of memory, {free * 1e-9:.3g} GB are free"
        )


def _require_time(bench: Bench, launches: Sequence[Launch]) -> None:
    """Runs each once; the second one, which compiles nothing, tells how long a row would take."""
    device = bench.device
    device.run(launches[0])
    seconds = device.batch(launches[1:2], 1, False).time().seconds
    row = seconds * (len(launches) + 4)  # verify; try out, warm up, sample twice
    if row > bench.plan.budget_seconds:
        raise UnsupportedError(
            f"predicted to take {row:.3g} s, the row budget is {bench.plan.budget_seconds:g} s "
            "(--row-budget)"
        )
    for launch in launches[2:]:
        device.run(launch)


def _bits(matrix: NDArray) -> NDArray[np.uint8]:
    return matrix.reshape(-1).view(np.uint8)


def verification(verdict: Verdict) -> dict[str, Any]:
    """As results/schema.json has it."""
    return {
        "max_error": _finite(verdict.max_error),
        "bound": _finite(verdict.bound_at_max),
        "of_bound": _finite(verdict.max_of_bound),
        "reference": REFERENCE,
        "passed": verdict.passed,
    }


def _as_record(
    bench: Bench, timing: Timing, verdict: Verdict, sets: int, problem: Problem
) -> dict[str, Any]:
    q = np.quantile(timing.samples_seconds, [0.5, 0.25, 0.75, 0.0])
    interval = timing.median_interval
    megabytes = sets * problem.bytes_minimum * 1e-6
    cache_bytes = bench.device.facts.last_level_cache_bytes
    converged = interval <= bench.plan.target
    warmup = timing.warmup
    departures = []
    if 1e6 * megabytes <= 2 * cache_bytes:
        departures.append(
            f"operand sets of {megabytes:.0f} MB do not exceed twice the cache "
            f"({2e-6 * cache_bytes:.0f} MB)"
        )
    if not warmup.watched:
        departures.append("clock and power not watched")
    elif not warmup.settled:
        departures.append(f"clock and power not flat after {warmup.seconds:.2g} s")
    elif not timing.readings:
        departures.append("power not watched")
    if not converged:
        known = f"median known to {100 * interval:.2g} % only"
        departures.append(
            known if math.isfinite(interval) else "too few samples to know the median"
        )
    if timing.launch == "stream" and timing.host_seconds > _HOST_SHARE * q[0]:
        departures.append("the host launches no faster than the device computes")
    clocks = summary(timing.readings, timing.samples_sm_hz)
    departures += [
        f"{name} in {100 * share:.0f} % of the readings"
        for name, share in clocks["reasons"].items()  # type: ignore[union-attr]
        if "slowdown" in name or "brake" in name
    ]
    return {
        "rotation_sets": sets,
        "batch": timing.batch,
        "launch": timing.launch,
        "warmup": {
            "seconds": warmup.seconds,
            "settled": warmup.settled,
            "watched": warmup.watched or None,
        },
        "samples_seconds": timing.samples_seconds,
        "samples_sm_hz": timing.samples_sm_hz,
        "samples_throttled": timing.samples_throttled,
        "seconds": dict(zip(("median", "q1", "q3", "min"), map(float, q), strict=True)),
        "median_interval": _finite(interval),
        "converged": bool(converged),
        "verification": verification(verdict),
        "clocks": clocks,
        "departures": departures,
        "kernel_seconds": timing.kernel_seconds,
    }


def _finite(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None


def facts_of(device: Device) -> dict[str, Any]:
    """What a process says of its device."""
    return asdict(device.facts)
