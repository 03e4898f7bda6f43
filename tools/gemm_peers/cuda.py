"""One GPU through the driver alone (libcuda by ctypes), so that every peer is timed by the same
events on the same stream, whatever it brings along.

Memory is ours, too: peers see it through __cuda_array_interface__. Contexts are the device's
primary one, which PyTorch, CuPy, Numba and Triton use as well.
"""

import ctypes
import math
import time
from collections.abc import Sequence
from ctypes import byref, c_char_p, c_float, c_int, c_size_t, c_uint, c_uint64, c_void_p
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gemm_peers.device import (
    GUARD_BYTES,
    POISON,
    BatchTime,
    DeviceError,
    Facts,
    Launch,
    outside_text,
)

LIBRARY = "libcuda.so.1"
_NON_BLOCKING = 1
_RELAXED = 2
_MAPPED = 2
_SHORTEST_NANOSECONDS = 200e3  # between two stamps: the timer advances by up to a microsecond
_HOST_NANOSECONDS = 20_000  # in which an event and a graph are enqueued
_MOST_WAITED_NANOSECONDS = 2_000_000

# Attributes of a device, by their numbers in cuda.h.
_CLOCK_KHZ, _SM_COUNT, _MEMORY_KHZ, _BUS_BITS, _L2_BYTES, _MAJOR, _MINOR = (
    13,
    16,
    36,
    37,
    38,
    75,
    76,
)

# Both clocks of one SM at the same moment, after a wait: nanoseconds, and cycles. Cycles are
# counted by each SM for itself, so that it is always SM 0 that writes: of two blocks for each SM,
# one is there.
STAMP = b"""
.version 6.4
.target sm_70
.address_size 64
.visible .entry stamp(.param .u64 to, .param .u64 wait)
{
  .reg .pred %p;
  .reg .u32 %sm;
  .reg .u64 %at, %start, %now, %wait, %past, %cycles;
  mov.u32 %sm, %smid;
  setp.ne.u32 %p, %sm, 0;
  @%p ret;
  ld.param.u64 %at, [to];
  ld.param.u64 %wait, [wait];
  mov.u64 %start, %globaltimer;
WAITING:
  mov.u64 %now, %globaltimer;
  sub.u64 %past, %now, %start;
  setp.lt.u64 %p, %past, %wait;
  @%p bra WAITING;
  mov.u64 %cycles, %clock64;
  st.global.u64 [%at], %now;
  st.global.u64 [%at+8], %cycles;
  ret;
}
\0"""


class Driver:
    """The driver's functions; a call that fails raises DeviceError with the driver's words."""

    def __init__(self, library: str = LIBRARY) -> None:
        try:
            self._library = ctypes.CDLL(library)
        except OSError as error:
            raise DeviceError(f"no NVIDIA driver is installed ({library})") from error
        self("cuInit", c_uint(0))

    def status(self, name: str, *arguments: Any) -> int:
        """What the function returns."""
        return getattr(self._library, name)(*arguments)

    def __call__(self, name: str, *arguments: Any) -> None:
        """The same, for what must succeed."""
        status = self.status(name, *arguments)
        if status != 0:
            raise DeviceError(f"{name}: {self.text(status)}")

    def text(self, status: int) -> str:
        """The driver's words for a status."""
        said = c_char_p()
        if self.status("cuGetErrorString", c_int(status), byref(said)) != 0 or not said.value:
            return f"error {status}"
        return said.value.decode(errors="replace")


class CudaArray:
    """Memory of the device as peers take it."""

    def __init__(self, pointer: int, shape: tuple[int, ...], dtype: np.dtype) -> None:
        self.__cuda_array_interface__ = {
            "shape": shape,
            "typestr": dtype.str,
            "data": (pointer, False),
            "strides": None,
            "version": 3,
        }


class CudaMatrix:
    """A matrix in memory of its own, between guards."""

    def __init__(self, device: "CudaDevice", stored: NDArray) -> None:
        self._device, self._driver = device, device.driver
        self._shape, self._dtype = stored.shape, stored.dtype
        self._bytes = stored.nbytes
        base = c_uint64()
        self._driver("cuMemAlloc_v2", byref(base), c_size_t(self._bytes + 2 * GUARD_BYTES))
        self._base = base.value
        self._inside = self._base + GUARD_BYTES
        self.poison()
        source = np.ascontiguousarray(stored)
        self._driver(
            "cuMemcpyHtoD_v2",
            c_uint64(self._inside),
            c_void_p(source.ctypes.data),
            c_size_t(self._bytes),
        )
        self.array = CudaArray(self._inside, self._shape, self._dtype)

    def __del__(self) -> None:
        if getattr(self, "_base", 0):
            self._driver.status("cuMemFree_v2", c_uint64(self._base))

    def poison(self) -> None:
        """Every byte 0xff, the guards too."""
        size = c_size_t(self._bytes + 2 * GUARD_BYTES)
        self._driver("cuMemsetD8_v2", c_uint64(self._base), ctypes.c_ubyte(POISON), size)
        self._driver("cuCtxSynchronize")

    def fetch(self) -> NDArray:
        """A copy of the elements."""
        host = np.empty(self._shape, self._dtype)
        self._copy(host, self._inside)
        return host

    def outside(self) -> str | None:
        """By the guards."""
        before, after = np.empty(GUARD_BYTES, np.uint8), np.empty(GUARD_BYTES, np.uint8)
        self._copy(before, self._base)
        self._copy(after, self._inside + self._bytes)
        return outside_text(before, after)

    def _copy(self, to: NDArray, start: int) -> None:
        self._device.finish()
        target, size = c_void_p(to.ctypes.data), c_size_t(to.nbytes)
        self._driver("cuMemcpyDtoH_v2", target, c_uint64(start), size)


class CudaDevice:
    """A device with a stream of its own and what stamps it."""

    timer = "CUDA events"

    def __init__(self, index: int = 0, driver: Driver | None = None) -> None:
        self.index = index
        self.driver = driver or Driver()
        count, self._device, context = c_int(), c_int(), c_void_p()
        self.driver("cuDeviceGetCount", byref(count))
        if index >= count.value:
            raise DeviceError(
                f"--device={index}: this machine has {count.value} GPUs, numbered from 0"
            )
        self.driver("cuDeviceGet", byref(self._device), c_int(index))
        self.driver("cuDevicePrimaryCtxRetain", byref(context), self._device)
        self.driver("cuCtxSetCurrent", context)
        self.facts = self._facts()
        stream = c_void_p()
        self.driver("cuStreamCreate", byref(stream), c_uint(_NON_BLOCKING))
        self.stream = int(stream.value or 0)

        module, self._stamp = c_void_p(), c_void_p()
        self.driver("cuModuleLoadData", byref(module), c_char_p(STAMP))
        self.driver("cuModuleGetFunction", byref(self._stamp), module, c_char_p(b"stamp"))
        memory = c_void_p()
        self.driver("cuMemHostAlloc", byref(memory), c_size_t(32), c_uint(_MAPPED))
        address = int(memory.value or 0)
        self._stamps = (ctypes.c_longlong * 4).from_address(address)
        self._stamp_at = (address, address + 16)

    def matrix(self, stored: NDArray) -> CudaMatrix:
        """A copy of it on the device."""
        return CudaMatrix(self, stored)

    def free_bytes(self) -> float | None:
        """As the driver says."""
        free, total = c_size_t(), c_size_t()
        self.driver("cuMemGetInfo_v2", byref(free), byref(total))
        return float(free.value)

    def run(self, launch: Launch) -> None:
        """One launch to its end."""
        launch()
        self.finish()

    def batch(self, launches: Sequence[Launch], count: int, graph: bool) -> "StreamBatch":
        """As a graph where it was asked for and the peer lets itself be captured."""
        if graph:
            try:
                return GraphBatch(self, launches, count)
            except NotCapturedError:
                self.finish()
        return StreamBatch(self, launches, count)

    def finish(self) -> None:
        """Waits; a kernel that never ends is ended by whoever started this process."""
        self.driver("cuStreamSynchronize", c_void_p(self.stream))

    def stamp(self, which: int, wait_nanoseconds: int) -> None:
        """Enqueues a stamp after a wait, in which the host enqueues what follows."""
        self._stamps[2 * which] = self._stamps[2 * which + 1] = 0
        to, wait = c_uint64(self._stamp_at[which]), c_uint64(wait_nanoseconds)
        parameters = (c_void_p * 2)(ctypes.addressof(to), ctypes.addressof(wait))
        grid = c_uint(2 * (self.facts.sm_count or 1))
        one = c_uint(1)
        self.driver(
            "cuLaunchKernel",
            *(self._stamp, grid, one, one, one, one, one, c_uint(0), c_void_p(self.stream)),
            *(parameters, c_void_p(0)),
        )

    def sm_hz(self) -> float | None:
        """Between the two stamps."""
        nanoseconds = self._stamps[2] - self._stamps[0]
        cycles = self._stamps[3] - self._stamps[1]
        if self._stamps[0] <= 0 or nanoseconds < _SHORTEST_NANOSECONDS or cycles <= 0:
            return None
        return 1e9 * cycles / nanoseconds

    def _facts(self) -> Facts:
        name, bus = ctypes.create_string_buffer(256), ctypes.create_string_buffer(32)
        uuid, memory, version = (ctypes.c_ubyte * 16)(), c_size_t(), c_int()
        self.driver("cuDeviceGetName", name, c_int(256), self._device)
        self.driver("cuDeviceTotalMem_v2", byref(memory), self._device)
        self.driver("cuDriverGetVersion", byref(version))
        known = self.driver.status("cuDeviceGetUuid_v2", uuid, self._device) == 0
        if self.driver.status("cuDeviceGetPCIBusId", bus, c_int(32), self._device) != 0:
            bus.value = b""
        return Facts(
            kind="gpu",
            name=name.value.decode(errors="replace"),
            last_level_cache_bytes=self._attribute(_L2_BYTES) or 1,
            uuid_hash=fnv1a(bytes(uuid)) if known else None,
            compute_capability=f"{self._attribute(_MAJOR)}.{self._attribute(_MINOR) or 0}",
            sm_count=self._attribute(_SM_COUNT),
            clock_hz=_hertz(self._attribute(_CLOCK_KHZ)),
            memory_clock_hz=_hertz(self._attribute(_MEMORY_KHZ)),
            bus_width_bits=self._attribute(_BUS_BITS),
            memory_bytes=memory.value,
            driver=f"CUDA {version.value // 1000}.{version.value % 1000 // 10}",
            pci_bus_id=bus.value.decode() or None,
        )

    def _attribute(self, which: int) -> int | None:
        value = c_int()
        failed = self.driver.status(
            "cuDeviceGetAttribute", byref(value), c_int(which), self._device
        )
        return None if failed or value.value <= 0 else value.value


class StreamBatch:
    """Rotated launches between two events; the stamps lie outside them."""

    launch = "stream"

    def __init__(self, device: CudaDevice, launches: Sequence[Launch], count: int) -> None:
        self._device, self._driver = device, device.driver
        self._launches, self._count = launches, count
        self._next = 0
        self._wait = _HOST_NANOSECONDS
        self._start, self._stop = c_void_p(), c_void_p()
        for event in (self._start, self._stop):
            self._driver("cuEventCreate", byref(event), c_uint(0))

    def __del__(self) -> None:
        for event in (self._start, self._stop):
            if event.value:
                self._driver.status("cuEventDestroy_v2", event)

    def time(self) -> BatchTime:
        """By the events."""
        stream = c_void_p(self._device.stream)
        self._device.stamp(0, self._wait)
        self._driver("cuEventRecord", self._start, stream)
        began = time.perf_counter()
        self._enqueue()
        host = time.perf_counter() - began
        self._driver("cuEventRecord", self._stop, stream)
        self._device.stamp(1, 0)
        self._device.finish()
        milliseconds = c_float()
        self._driver("cuEventElapsedTime", byref(milliseconds), self._start, self._stop)
        # Peers enqueue slowly: the next batch waits until some of its launches are there.
        if self.launch == "stream":
            ahead = math.ceil(1e9 * host / max(1, self._count) * min(self._count, 20))
            self._wait = min(max(_HOST_NANOSECONDS, ahead), _MOST_WAITED_NANOSECONDS)
        return BatchTime(milliseconds.value * 1e-3, self._device.sm_hz(), host)

    def rewind(self) -> None:
        """From the first set on."""
        self._next = 0

    def _enqueue(self) -> None:
        for _ in range(self._count):
            self._launches[self._next % len(self._launches)]()
            self._next += 1


class NotCapturedError(Exception):
    """The peer does something that a graph cannot hold."""


class GraphBatch(StreamBatch):
    """The same launches as graphs: as many as it takes until one begins with the first again."""

    launch = "graph"

    def __init__(self, device: CudaDevice, launches: Sequence[Launch], count: int) -> None:
        super().__init__(device, launches, count)
        self._graphs: list[c_void_p] = []
        for _ in range(len(launches) // math.gcd(len(launches), count)):
            self._graphs.append(self._capture())
        self._turn = 0

    def __del__(self) -> None:
        for graph in getattr(self, "_graphs", ()):
            self._driver.status("cuGraphExecDestroy", graph)
        super().__del__()

    def rewind(self) -> None:
        """From the first set on."""
        self._turn = 0

    def _capture(self) -> c_void_p:
        stream, graph, exec_ = c_void_p(self._device.stream), c_void_p(), c_void_p()
        self._driver("cuStreamBeginCapture_v2", stream, c_int(_RELAXED))
        cause: Exception | None = None
        try:
            super()._enqueue()
        except Exception as error:  # whatever the peer makes of it
            cause = error
        status = self._driver.status("cuStreamEndCapture", stream, byref(graph))
        if cause or status != 0 or not graph.value:
            if graph.value:
                self._driver.status("cuGraphDestroy", graph)
            raise NotCapturedError from cause
        try:
            self._driver("cuGraphInstantiateWithFlags", byref(exec_), graph, ctypes.c_ulonglong(0))
        finally:
            self._driver.status("cuGraphDestroy", graph)
        return exec_

    def _enqueue(self) -> None:
        graph = self._graphs[self._turn % len(self._graphs)]
        self._turn += 1
        self._driver("cuGraphLaunch", graph, c_void_p(self._device.stream))


def fnv1a(data: bytes) -> str:
    """64 bits in 16 digits, as bench/kernel_code/fingerprint.cpp hashes a UUID."""
    value = 0xCBF29CE484222325
    for byte in data:
        value = (value ^ byte) * 0x100000001B3 % 2**64
    return f"{value:016x}"


def _hertz(kilohertz: int | None) -> float | None:
    return None if kilohertz is None else kilohertz * 1e3
