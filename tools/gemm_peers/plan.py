"""The timing plan of bench/timing/timing.hpp: warm up until clock and power are flat, then sample until
the median is known as well as was asked, or until the budget is spent."""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from gemm_report.comparison.noise.within import effective_count

from gemm_peers.card import Reading, Watch
from gemm_peers.device import Batch, Device, Launch
from gemm_peers.problem import Problem

# Python needs up to 100 us for a launch where C++ needs three: graphs begin 20 times later here.
GRAPH_BELOW_SECONDS = 1e-3
_MOST_LAUNCHES = 1000
_MOST_SETS = 1024
_ENOUGH_SECONDS = 2e-3
_CHUNK_SECONDS = 0.02
_WINDOW_SECONDS = 0.4
_SWING_SECONDS = 1.0
_UNWATCHED_SECONDS = 0.25
_FEWEST_SAMPLES = 5
_LOOK_SECONDS = 0.05

Clock = Callable[[], float]


@dataclass(frozen=True)
class Plan:
    """The values that gemm_bench has by default."""

    warmup_seconds: float = 4.0
    flat: float = 0.01
    sample_seconds: float = 0.005
    target: float = 0.005
    sampling_seconds: float = 0.25
    longest_sampling_seconds: float = 3.0
    budget_seconds: float = 10.0


@dataclass(frozen=True)
class Warmup:
    """What it took until the card was settled."""

    seconds: float
    settled: bool
    watched: str
    throttled: bool
    kernel_seconds: float


@dataclass
class Timing:
    """What was timed, and the readings of exactly that time."""

    warmup: Warmup
    batch: int
    launch: str
    samples_seconds: list[float] = field(default_factory=list)
    samples_sm_hz: list[float] = field(default_factory=list)
    samples_throttled: list[bool] = field(default_factory=list)
    readings: list[Reading] = field(default_factory=list)
    host_seconds: float = 0.0  # in which the host enqueues one launch, the median
    kernel_seconds: float = 0.0

    @property
    def median_interval(self) -> float:
        """Of the samples."""
        return median_interval(self.samples_seconds)


def set_count(p: Problem, last_level_cache_bytes: int) -> int:
    """Operand sets: past twice the cache."""
    enough = 2.0 * last_level_cache_bytes / max(p.input_bytes, p.output_bytes)
    return min(max(int(enough) + 1, 2), _MOST_SETS)


def median_interval(samples: Sequence[float]) -> float:
    """Half of the medians of repeated samplings would fall into it; over the median."""
    if len(samples) < _FEWEST_SAMPLES:
        return math.inf
    values = np.asarray(samples, float)
    independent = effective_count(values / values.mean()) - 2
    if independent < 1:
        return math.inf
    n, middle = len(values), (len(values) - 1) / 2
    reach = 0.6745 / 2 * n / math.sqrt(independent)
    places = np.clip([middle - reach, middle, middle + reach], 0, n - 1)
    low, median, high = np.interp(places, np.arange(n), np.sort(values))
    return float((high - low) / median)


def batch_size(plan: Plan, seconds_per_launch: float, sets: int, graph: bool) -> int:
    """Launches in a sample; whole rounds of the sets in a graph."""
    size = math.ceil(plan.sample_seconds / max(seconds_per_launch, 1e-7))
    size = min(max(size, 1), _MOST_LAUNCHES)
    return -(-size // sets) * sets if graph else size


def try_out(device: Device, plan: Plan, launches: Sequence[Launch]) -> tuple[int, bool]:
    """How launches are gathered, after a few have shown how long they take."""
    per_launch = device.batch(launches, 1, False).time().seconds
    if per_launch < _ENOUGH_SECONDS:
        count = max(1, int(_ENOUGH_SECONDS / max(per_launch, 1e-5)))
        per_launch = device.batch(launches, count, False).time().seconds / count
    graph = device.facts.kind == "gpu" and per_launch < GRAPH_BELOW_SECONDS
    return batch_size(plan, per_launch, len(launches), graph), graph


def warm_up(plan: Plan, batch: Batch, watch: Watch | None, deadline: float, clock: Clock) -> Warmup:
    """Until the halves of a window agree in clock and in power; without either a quarter of a
    second. Half of the time until the deadline is left to the samples."""
    start, kernel_seconds, longest_batch = clock(), 0.0, 0.0
    cap = min(plan.warmup_seconds, (deadline - start) / 2)
    clocks: list[tuple[float, float]] = []
    while True:
        chunk = 0.0
        while chunk < _CHUNK_SECONDS:
            one = batch.time()
            chunk += one.seconds
            longest_batch = max(longest_batch, one.seconds)
            if one.sm_hz:
                clocks.append((clock(), one.sm_hz))
            if clock() - start >= cap:
                break
        now = clock()
        kernel_seconds += chunk
        readings = watch.between(max(start, now - 3 * _SWING_SECONDS), now) if watch else []
        throttled = any(r.throttled for r in readings if r.when > now - _WINDOW_SECONDS)
        power = [(r.when, r.power_w) for r in readings if r.power_w]
        seen = clocks or [(r.when, r.sm_hz) for r in readings if r.sm_hz]
        watched = " and ".join(
            name for name, values in (("SM clock", seen), ("power", power)) if values
        )
        # Each half has a batch and a reading in it.
        window = max(
            2 * _SWING_SECONDS if throttled else _WINDOW_SECONDS,
            2.2 * longest_batch,
            2.2 * watch.interval_seconds if watch else 0.0,
        )
        level = all(is_flat(values, now, window, plan.flat) for values in (seen, power) if values)
        seconds = now - start
        settled = bool(watched) and seconds >= window and level
        longest = cap if watched else min(cap, _UNWATCHED_SECONDS)
        if settled or seconds >= longest:
            return Warmup(seconds, settled, watched, throttled, kernel_seconds)


def is_flat(
    seen: Sequence[tuple[float, float]], now: float, window: float, tolerance: float
) -> bool:
    """Whether the means of the halves of the last window agree; not if one half is empty."""
    halves: tuple[list[float], list[float]] = ([], [])
    for when, value in seen:
        if when > now - window:
            halves[when > now - window / 2].append(value)
    if not all(halves):
        return False
    before, after = (sum(half) / len(half) for half in halves)
    return abs(after - before) <= tolerance * before


def sample(
    plan: Plan,
    batch: Batch,
    size: int,
    warmup: Warmup,
    watch: Watch | None,
    deadline: float,
    clock: Clock,
) -> Timing:
    """Samples until they are enough; of a throttled card for whole periods of its swings."""
    timing = Timing(warmup, size, batch.launch, kernel_seconds=warmup.kernel_seconds)
    started, looked = clock(), 0.0
    longest = max(plan.sampling_seconds, plan.longest_sampling_seconds)
    shortest = plan.sampling_seconds
    if warmup.throttled:
        shortest = min(max(2 * _SWING_SECONDS, shortest), longest)
    deadline = min(deadline, started + longest)
    spans: list[tuple[float, float]] = []
    hosts: list[float] = []
    while True:
        begin = clock()
        one = batch.time()
        now = clock()
        spans.append((begin, now))
        if not one.seconds > 0:
            raise RuntimeError("a batch of launches took no time: nothing ran")
        timing.samples_seconds.append(one.seconds / size)
        timing.kernel_seconds += one.seconds
        if one.sm_hz:
            timing.samples_sm_hz.append(one.sm_hz)
        hosts.append((one.host_seconds or 0.0) / size)
        if now >= deadline:
            break
        if len(spans) < _FEWEST_SAMPLES or now - started < shortest:
            continue
        if now - looked >= _LOOK_SECONDS:
            looked = now
            if timing.median_interval <= plan.target:
                break
    if len(timing.samples_sm_hz) != len(spans):
        timing.samples_sm_hz = []
    timing.host_seconds = sorted(hosts)[len(hosts) // 2]
    if watch:
        _add_readings(timing, watch, spans)
    return timing


def _add_readings(timing: Timing, watch: Watch, spans: Sequence[tuple[float, float]]) -> None:
    timing.readings = watch.between(spans[0][0], spans[-1][1])
    near = watch.between(spans[0][0] - 1, spans[-1][1] + 1)
    telling = [reading for reading in near if reading.reasons is not None]
    if telling:
        middles = [(begin + end) / 2 for begin, end in spans]
        nearest = [min(telling, key=lambda r: abs(r.when - middle)) for middle in middles]
        timing.samples_throttled = [reading.throttled for reading in nearest]


def time_launches(
    device: Device,
    plan: Plan,
    launches: Sequence[Launch],
    watch: Watch | None = None,
    clock: Clock = time.perf_counter,
    before_sampling: Callable[[], None] = lambda: None,
) -> Timing:
    """A row: try out, warm up, sample. `before_sampling` may poison what is judged afterwards."""
    deadline = clock() + plan.budget_seconds
    size, graph = try_out(device, plan, launches)
    batch = device.batch(launches, size, graph)
    warmup = warm_up(plan, batch, watch, deadline, clock)
    batch.rewind()
    before_sampling()
    return sample(plan, batch, size, warmup, watch, deadline, clock)
