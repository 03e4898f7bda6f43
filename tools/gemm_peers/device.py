"""Where a peer runs: what the plan needs of a device, and the CPU as the simplest one."""

import itertools
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

Launch = Callable[[], object]


class DeviceError(Exception):
    """The device refused or failed; the message is one line."""


@dataclass(frozen=True)
class Facts:
    """As results/schema.json has them; None for what is not reported."""

    kind: str
    name: str
    last_level_cache_bytes: int
    uuid_hash: str | None = None
    compute_capability: str | None = None
    sm_count: int | None = None
    cores: int | None = None
    clock_hz: float | None = None
    memory_clock_hz: float | None = None
    bus_width_bits: int | None = None
    memory_bytes: int | None = None
    driver: str | None = None
    runtime: str | None = None
    pci_bus_id: str | None = None


@dataclass(frozen=True)
class BatchTime:
    """Of a batch: how long it took, at which SM clock, and how long the host enqueued."""

    seconds: float
    sm_hz: float | None = None
    host_seconds: float | None = None


class Batch(Protocol):
    """Launches that can be timed again and again; each time goes on where the last one ended."""

    launch: str

    def time(self) -> BatchTime:
        """Runs them all once."""

    def rewind(self) -> None:
        """The next time begins with the first launch."""


class Matrix(Protocol):
    """A matrix of the device between guards: `array` is what a peer gets."""

    array: Any

    def poison(self) -> None:
        """NaN, or -1, into every element."""

    def fetch(self) -> NDArray:
        """The elements on the host."""

    def outside(self) -> str | None:
        """Where something was written outside it, if it was."""


class Device(Protocol):
    """What the plan is carried out on."""

    facts: Facts
    timer: str
    index: int
    stream: int  # a CUstream; 0 on the CPU

    def matrix(self, stored: NDArray) -> Matrix:
        """A copy of it on the device."""

    def free_bytes(self) -> float | None:
        """That can still be had; None where nobody knows."""

    def run(self, launch: Launch) -> None:
        """One launch to its end."""

    def batch(self, launches: Sequence[Launch], count: int, graph: bool) -> Batch:
        """`count` launches that take turns."""


GUARD_BYTES = 256
POISON = 0xFF


def outside_text(before: NDArray[np.uint8], after: NDArray[np.uint8]) -> str | None:
    """What the guards around a matrix tell."""
    if (after != POISON).any():
        return f"wrote outside C: byte {int(np.argmax(after != POISON)) + 1} past its end"
    if (before != POISON).any():
        distance = int(np.argmax(before[::-1] != POISON)) + 1
        return f"wrote outside C: byte {distance} before its beginning"
    return None


class HostMatrix:
    """In the memory of the host."""

    def __init__(self, stored: NDArray) -> None:
        self._memory = np.full(stored.nbytes + 2 * GUARD_BYTES, POISON, np.uint8)
        inside = self._memory[GUARD_BYTES:-GUARD_BYTES]
        self.array = inside.view(stored.dtype).reshape(stored.shape)
        self.array[:] = stored

    def poison(self) -> None:
        """Every byte 0xff, the guards too."""
        self._memory[:] = POISON

    def fetch(self) -> NDArray:
        """The matrix itself."""
        return self.array

    def outside(self) -> str | None:
        """By the guards."""
        return outside_text(self._memory[:GUARD_BYTES], self._memory[-GUARD_BYTES:])


class HostBatch:
    """Calls between two readings of a steady clock."""

    launch = "call"

    def __init__(self, launches: Sequence[Launch], count: int, clock: Callable[[], float]) -> None:
        self._launches, self._count, self._clock = launches, count, clock
        self.rewind()

    def time(self) -> BatchTime:
        """By the steady clock."""
        start = self._clock()
        for launch in itertools.islice(self._turns, self._count):
            launch()
        return BatchTime(self._clock() - start)

    def rewind(self) -> None:
        """From the first set on."""
        self._turns = itertools.cycle(self._launches)


class HostDevice:
    """The CPU. The clock can be a test's."""

    timer = "steady clock"
    index = 0
    stream = 0

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self.facts = _cpu()
        self._clock = clock

    def matrix(self, stored: NDArray) -> HostMatrix:
        """A copy of it."""
        return HostMatrix(stored)

    def free_bytes(self) -> float | None:
        """What the system could give without swapping."""
        try:
            return float(os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
        except (OSError, ValueError):
            return None

    def run(self, launch: Launch) -> None:
        """A call."""
        launch()

    def batch(self, launches: Sequence[Launch], count: int, graph: bool) -> HostBatch:
        """Never a graph."""
        return HostBatch(launches, count, self._clock)


def _cpu() -> Facts:
    return Facts(
        kind="cpu",
        name=_cpu_name(),
        last_level_cache_bytes=_largest_cache(),
        cores=len(os.sched_getaffinity(0)),
    )


def _cpu_name() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return next(filter(None, names), "CPU")


def _largest_cache() -> int:
    largest = 0
    for size in Path("/sys/devices/system/cpu/cpu0/cache").glob("index*/size"):
        text = size.read_text(encoding="utf-8").strip()
        if text.endswith("K") and text[:-1].isdigit():
            largest = max(largest, int(text[:-1]) * 1024)
    return largest or 32 << 20
