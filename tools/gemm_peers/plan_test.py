"""The plan against a clock, a device and a card that a test moves."""

import itertools
import math
import random
from collections.abc import Callable, Iterator, Sequence

import pytest

from gemm_peers.card import Reading
from gemm_peers.device import BatchTime, DeviceError, Facts
from gemm_peers.plan import (
    Plan,
    batch_size,
    is_flat,
    median_interval,
    set_count,
    time_launches,
    try_out,
)
from gemm_peers.problem import Problem

PLAN = Plan()


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


class FakeBatch:
    def __init__(self, device: "FakeDevice", count: int, launch: str) -> None:
        self._device, self._count, self.launch = device, count, launch

    def time(self) -> BatchTime:
        device = self._device
        seconds = next(device.seconds) * self._count
        device.clock.now += seconds + 1e-5
        return BatchTime(seconds, device.sm_hz(), 1e-6 * self._count)

    def rewind(self) -> None:
        self._device.rewound += 1


class FakeDevice:
    """Its launches take what `seconds` says."""

    timer, index, stream = "CUDA events", 0, 7

    def __init__(
        self, seconds: Iterator[float], sm_hz: Callable[[], float | None] = lambda: 1.98e9
    ) -> None:
        self.facts = Facts("gpu", "Fake", 1 << 20)
        self.clock, self.seconds, self.sm_hz = Clock(), seconds, sm_hz
        self.batches: list[tuple[int, bool]] = []
        self.rewound = 0

    def batch(self, launches: Sequence[object], count: int, graph: bool) -> FakeBatch:
        self.batches.append((count, graph))
        return FakeBatch(self, count, "graph" if graph else "stream")

    def matrix(self, stored: object) -> object:
        raise DeviceError("no memory here")

    def free_bytes(self) -> None:
        return None

    def run(self, launch: object) -> None:
        self.clock.now += next(self.seconds)


class FakeWatch:
    """A card whose readings come every 20 ms, as functions of the time."""

    interval_seconds = 0.02

    def __init__(self, power: Callable[[float], float], reasons: int = 0) -> None:
        self._power, self._reasons = power, reasons

    def between(self, start: float, end: float) -> list[Reading]:
        times = [0.02 * i for i in range(math.ceil(start / 0.02), math.floor(end / 0.02) + 1)]
        return [Reading(t, 1.98e9, 3.2e9, self._power(t), 50.0, self._reasons) for t in times]


def steady(seconds: float, spread: float = 0.0) -> Iterator[float]:
    rng = random.Random(1)
    return (seconds * (1 + spread * rng.uniform(-1, 1)) for _ in itertools.count())


def timed(device: FakeDevice, watch: FakeWatch | None, plan: Plan = PLAN, sets: int = 3):
    launches = [lambda: None] * sets
    return time_launches(device, plan, launches, watch, device.clock)  # type: ignore[arg-type]


def test_operand_sets_go_past_twice_the_cache() -> None:
    p = Problem("f32", "nn", 1024, 1024, 1024)
    assert set_count(p, 60 << 20) == 16, "as gemm_bench has on an H200"
    assert set_count(p, 60 << 20) * p.bytes_minimum > 2 * (60 << 20)
    assert set_count(Problem("f32", "nn", 8192, 8192, 8192), 60 << 20) == 2
    assert set_count(Problem("f32", "nn", 1, 1, 1), 60 << 20) == 1024


def test_short_launches_go_out_as_graphs_of_whole_rounds() -> None:
    for seconds, size, graph in ((5e-6, 1002, True), (1e-4, 51, True), (2e-3, 3, False)):
        device = FakeDevice(steady(seconds))
        assert try_out(device, PLAN, [lambda: None] * 3) == (size, graph)  # type: ignore[arg-type]
    assert batch_size(PLAN, 1.0, 3, False) == 1


def test_a_settled_card_is_sampled_until_the_median_is_known() -> None:
    device = FakeDevice(steady(1e-3, 0.01))
    timing = timed(device, FakeWatch(lambda t: 500.0))
    assert timing.warmup.settled
    assert timing.warmup.watched == "SM clock and power"
    assert timing.warmup.seconds == pytest.approx(0.4, abs=0.05)
    assert timing.median_interval <= PLAN.target
    assert sorted(timing.samples_seconds)[len(timing.samples_seconds) // 2] == pytest.approx(
        1e-3, rel=0.01
    )
    assert len(timing.samples_sm_hz) == len(timing.samples_seconds)
    assert timing.samples_throttled == [False] * len(timing.samples_seconds)
    assert device.rewound == 1


def test_a_card_whose_power_still_rises_is_waited_for() -> None:
    rising = FakeWatch(lambda t: 300.0 + 100 * min(t - 100, 1.5))
    timing = timed(FakeDevice(steady(1e-3)), rising)
    assert timing.warmup.settled
    assert 1.5 < timing.warmup.seconds < 2.2
    never = FakeWatch(lambda t: 300.0 + 100 * (t - 100))
    timing = timed(FakeDevice(steady(1e-3)), never)
    assert not timing.warmup.settled
    assert timing.warmup.seconds == pytest.approx(PLAN.warmup_seconds, abs=0.1)


def test_half_of_a_small_budget_is_left_to_the_samples() -> None:
    never = FakeWatch(lambda t: 300.0 + 100 * (t - 100))
    timing = timed(FakeDevice(steady(1e-3)), never, Plan(budget_seconds=3))
    assert not timing.warmup.settled
    assert timing.warmup.seconds == pytest.approx(1.5, abs=0.1)
    assert len(timing.samples_seconds) >= 5


def test_a_throttled_card_is_sampled_for_whole_swings() -> None:
    timing = timed(FakeDevice(steady(1e-3)), FakeWatch(lambda t: 700.0, reasons=0x4))
    assert timing.warmup.throttled
    assert timing.warmup.seconds >= 2.0
    assert sum(timing.samples_seconds) * timing.batch >= 1.9
    assert all(timing.samples_throttled)


def test_without_anything_to_watch_the_warm_up_is_short_and_says_so() -> None:
    timing = timed(FakeDevice(steady(1e-3), lambda: None), None)
    assert timing.warmup.watched == ""
    assert not timing.warmup.settled
    assert timing.warmup.seconds == pytest.approx(0.25, abs=0.05)
    assert timing.samples_sm_hz == []
    assert timing.samples_throttled == []


def test_sampling_ends_with_its_longest_time_and_with_the_budget() -> None:
    wild = FakeDevice(steady(1e-3, 0.9))
    timing = timed(wild, FakeWatch(lambda t: 500.0))
    assert timing.median_interval > PLAN.target
    assert sum(timing.samples_seconds) * timing.batch == pytest.approx(3, rel=0.05)
    slow = FakeDevice(steady(4.0))
    timing = timed(slow, None, Plan(budget_seconds=9))
    assert len(timing.samples_seconds) == 1
    assert slow.clock.now < 100 + 9 + 3 * 4


def test_a_batch_that_takes_no_time_is_no_sample() -> None:
    device = FakeDevice(itertools.chain([1e-3] * 10, itertools.repeat(0.0)))
    with pytest.raises(RuntimeError, match="nothing ran"):
        timed(device, None, Plan(warmup_seconds=0.01))


def test_the_interval_of_a_median_shrinks_with_samples_and_grows_when_they_hang_together() -> None:
    rng = random.Random(2)
    independent = [1 + 0.1 * rng.gauss(0, 1) for _ in range(400)]
    assert median_interval(independent[:4]) == math.inf
    assert median_interval(independent) < median_interval(independent[:40])
    drifting = sorted(independent)
    assert median_interval(drifting) > 3 * median_interval(independent)
    assert median_interval([2.0] * 10) == 0


def test_halves_of_a_window_must_agree_and_both_exist() -> None:
    level = [(0.1 * i, 100.0) for i in range(11)]
    assert is_flat(level, 1.0, 1.0, 0.01)
    assert not is_flat(level[6:], 1.0, 1.0, 0.01), "the first half is empty"
    assert not is_flat([(t, v + 3 * (t > 0.5)) for t, v in level], 1.0, 1.0, 0.01)
    assert is_flat([(t, v + 3 * (t > 0.5)) for t, v in level], 1.0, 1.0, 0.05)
