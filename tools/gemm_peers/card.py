"""The state of the card while it is timed, read through NVML in a thread: clocks, power,
temperature, and what holds the clocks down. bench/device/card.hpp in Python, and as careful: a card that
does not answer leaves values empty, and nothing is ever written to it."""

import bisect
import ctypes
import statistics
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from ctypes import byref, c_int, c_uint, c_ulonglong, c_void_p
from dataclasses import dataclass
from typing import Protocol

LIBRARY = "libnvidia-ml.so.1"
INTERVAL_SECONDS = 0.02
THROTTLED = 0x4 | 0x8 | 0x20 | 0x40 | 0x80
REASONS = {
    0x2: "clocks set by user",
    0x4: "power cap",
    0x8: "hardware slowdown",
    0x10: "sync boost",
    0x20: "thermal slowdown (software)",
    0x40: "thermal slowdown (hardware)",
    0x80: "power brake",
    0x100: "display",
}
_IDLE = 0x1
_SM_CLOCK, _MEMORY_CLOCK, _GPU_SENSOR = 1, 2, 0
_POWER_INSTANT, _UNSIGNED = 186, 1


@dataclass(frozen=True)
class Reading:
    """What the card says at one moment; None for what it does not."""

    when: float
    sm_hz: float | None = None
    memory_hz: float | None = None
    power_w: float | None = None
    temperature_c: float | None = None
    reasons: int | None = None

    @property
    def throttled(self) -> bool:
        """Whether something holds the clocks down."""
        return bool((self.reasons or 0) & THROTTLED)


class Card(Protocol):
    """Something to read."""

    driver: str | None
    power_limit_w: float | None
    sm_hz_max: float | None

    def read(self) -> Reading:
        """Never raises."""


class CardError(Exception):
    """Why nothing can be read."""


class _Field(ctypes.Structure):
    _fields_ = (
        ("field", c_uint),
        ("scope", c_uint),
        ("microseconds", ctypes.c_longlong),
        ("latency", ctypes.c_longlong),
        ("type", c_int),
        ("status", c_int),
        ("value", c_uint),
        ("rest", c_uint),
    )


class NvmlCard:
    """The card with a PCI bus id, never by index: CUDA_VISIBLE_DEVICES renumbers them."""

    def __init__(
        self,
        pci_bus_id: str,
        library: str = LIBRARY,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._clock = clock
        self._handle = c_void_p()
        try:
            self._nvml = ctypes.CDLL(library)
            status = self._nvml.nvmlInit_v2()
        except (OSError, AttributeError) as error:
            raise CardError(f"NVML is not installed ({library})") from error
        if status != 0:
            raise CardError(f"NVML: {self._text(status)}")
        find = self._nvml.nvmlDeviceGetHandleByPciBusId_v2
        if (status := find(pci_bus_id.encode(), byref(self._handle))) != 0:
            raise CardError(f"NVML does not know the card {pci_bus_id}: {self._text(status)}")
        version = ctypes.create_string_buffer(80)
        known = self._nvml.nvmlSystemGetDriverVersion(version, c_uint(80)) == 0
        self.driver = version.value.decode(errors="replace") if known else None
        self.power_limit_w = self._number("nvmlDeviceGetEnforcedPowerLimit", 1e-3)
        self.sm_hz_max = self._number("nvmlDeviceGetMaxClockInfo", 1e6, c_int(_SM_CLOCK))
        # Decided once, so that no row mixes power of the moment with the mean of a second.
        self._instant = self._instant_power() is not None
        names = ("nvmlDeviceGetCurrentClocksEventReasons",)
        names += ("nvmlDeviceGetCurrentClocksThrottleReasons",)
        self._reasons = next((name for name in names if hasattr(self._nvml, name)), None)

    def read(self) -> Reading:
        """All values at one moment."""
        start = self._clock()
        clock = "nvmlDeviceGetClockInfo"
        values = (
            self._number(clock, 1e6, c_int(_SM_CLOCK)),
            self._number(clock, 1e6, c_int(_MEMORY_CLOCK)),
            self._instant_power()
            if self._instant
            else self._number("nvmlDeviceGetPowerUsage", 1e-3),
            self._number("nvmlDeviceGetTemperature", 1.0, c_int(_GPU_SENSOR)),
        )
        bits = c_ulonglong()
        reasons = self._reasons and getattr(self._nvml, self._reasons)(self._handle, byref(bits))
        return Reading((start + self._clock()) / 2, *values, bits.value if reasons == 0 else None)

    def _number(self, name: str, unit: float, *arguments: c_int) -> float | None:
        value = c_uint()
        function = getattr(self._nvml, name, None)
        if function is None or function(self._handle, *arguments, byref(value)) != 0:
            return None
        return value.value * unit or None

    def _instant_power(self) -> float | None:
        field = _Field(field=_POWER_INSTANT)
        function = getattr(self._nvml, "nvmlDeviceGetFieldValues", None)
        if function is None or function(self._handle, c_int(1), byref(field)) != 0:
            return None
        if field.status != 0 or field.type != _UNSIGNED:
            return None
        return field.value * 1e-3 or None

    def _text(self, status: int) -> str:
        function = getattr(self._nvml, "nvmlErrorString", None)
        if function is None:
            return f"error {status}"
        function.restype = ctypes.c_char_p
        return (function(c_int(status)) or b"").decode(errors="replace")


class Watch:
    """Reads a card at an interval, for as long as it is entered."""

    def __init__(self, card: Card, interval_seconds: float = INTERVAL_SECONDS) -> None:
        self.card, self.interval_seconds = card, interval_seconds
        self._readings: list[Reading] = []
        self._durations: list[float] = []
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> "Watch":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    @property
    def read_seconds(self) -> float | None:
        """How long one reading takes, the median."""
        return statistics.median(self._durations) if self._durations else None

    def between(self, start: float, end: float) -> list[Reading]:
        """Readings with start <= when <= end."""
        readings = self._readings[:]
        first = bisect.bisect_left(readings, start, key=lambda each: each.when)
        return readings[first : bisect.bisect_right(readings, end, key=lambda each: each.when)]

    def _run(self) -> None:
        while not self._stop.wait(self.interval_seconds):
            began = time.perf_counter()
            reading = self.card.read()
            self._durations.append(time.perf_counter() - began)
            self._readings.append(reading)


def span(values: Iterable[float | None]) -> dict[str, float] | None:
    """Least, middle and most of the values that are known."""
    known = [value for value in values if value is not None]
    if not known:
        return None
    return {"min": min(known), "median": statistics.median(known), "max": max(known)}


def summary(readings: Sequence[Reading], by_timer: Sequence[float]) -> dict[str, object]:
    """The clocks of a row as results/schema.json has them."""
    telling = [reading.reasons for reading in readings if reading.reasons is not None]

    def share(bits: int) -> float:
        return sum(bool(reasons & bits) for reasons in telling) / len(telling)

    reasons = {name: share(bit) for bit, name in REASONS.items()} if telling else {}
    if telling:
        reasons["other"] = share(~(sum(REASONS) | _IDLE))
    shares = sorted(reasons.items(), key=lambda one: -one[1])
    return {
        "readings": len(readings),
        "sm_hz": span(reading.sm_hz for reading in readings),
        "memory_hz": span(reading.memory_hz for reading in readings),
        "power_w": span(reading.power_w for reading in readings),
        "temperature_c": span(reading.temperature_c for reading in readings),
        "sm_hz_by_timer": span(by_timer),
        "throttled_share": share(THROTTLED) if telling else None,
        "reasons": {name: value for name, value in shares if value > 0},
    }
