"""The device through a driver that is made up: what is called in which order, and what is made of
what it says. The stamp is assembled where ptxas is there."""

import ctypes
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gemm_peers.cuda import STAMP, CudaDevice, Driver, GraphBatch, StreamBatch, fnv1a
from gemm_peers.device import DeviceError, outside_text

ATTRIBUTES = {13: 1_980_000, 16: 132, 36: 3_201_000, 37: 6016, 38: 60 << 20, 75: 9, 76: 0}


class FakeDriver(Driver):
    """Keeps memory in the host's and counts launches; each takes a millisecond by its events."""

    def __init__(self, capturable: bool = True) -> None:
        self.calls: list[str] = []
        self.memory: dict[int, Any] = {}
        self.capturable = capturable
        self.handles = 0
        self.graphs = 0

    def status(self, name: str, *arguments: Any) -> int:
        self.calls.append(name)
        return getattr(self, name, lambda *_: 0)(*arguments) or 0

    def _handle(self, to: Any) -> None:
        self.handles += 1
        to._obj.value = self.handles

    def cuGetErrorString(self, status: Any, said: Any) -> None:  # noqa: N802
        said._obj.value = b"out of memory" if status.value == 2 else b"unspecified launch failure"

    def cuDeviceGetCount(self, count: Any) -> None:  # noqa: N802
        count._obj.value = 1

    def cuDeviceGetName(self, name: Any, size: Any, device: Any) -> None:  # noqa: N802
        name.value = b"NVIDIA Fake"

    def cuDeviceGetAttribute(self, to: Any, which: Any, device: Any) -> None:  # noqa: N802
        to._obj.value = ATTRIBUTES[which.value]

    def cuDeviceGetPCIBusId(self, to: Any, size: Any, device: Any) -> None:  # noqa: N802
        to.value = b"0000:3B:00.0"

    def cuDeviceGetUuid_v2(self, to: Any, device: Any) -> None:  # noqa: N802
        to[:] = range(16)

    def cuDriverGetVersion(self, to: Any) -> None:  # noqa: N802
        to._obj.value = 13000

    def cuStreamCreate(self, to: Any, flags: Any) -> None:  # noqa: N802
        self._handle(to)

    def cuEventCreate(self, to: Any, flags: Any) -> None:  # noqa: N802
        self._handle(to)

    def cuMemHostAlloc(self, to: Any, size: Any, flags: Any) -> None:  # noqa: N802
        to._obj.value = self._buffer(size.value)

    def cuMemAlloc_v2(self, to: Any, size: Any) -> int:  # noqa: N802
        if size.value > 1 << 20:
            return 2
        to._obj.value = self._buffer(size.value)
        return 0

    def _buffer(self, size: int) -> int:
        buffer = (ctypes.c_ubyte * size)()
        address = ctypes.addressof(buffer)
        self.memory[address] = buffer
        return address

    def cuMemFree_v2(self, where: Any) -> None:  # noqa: N802
        del self.memory[where.value]

    def cuMemsetD8_v2(self, where: Any, value: Any, size: Any) -> None:  # noqa: N802
        ctypes.memset(where.value, value.value, size.value)

    def cuMemcpyHtoD_v2(self, to: Any, source: Any, size: Any) -> None:  # noqa: N802
        ctypes.memmove(to.value, source.value, size.value)

    def cuMemcpyDtoH_v2(self, to: Any, source: Any, size: Any) -> None:  # noqa: N802
        ctypes.memmove(to.value, source.value, size.value)

    def cuLaunchKernel(self, *arguments: Any) -> None:  # noqa: N802
        stamp, parameters = int(self.handles > 0), arguments[9]
        to = ctypes.c_uint64.from_address(parameters[0]).value
        self.stamps = getattr(self, "stamps", 0) + stamp
        values = (ctypes.c_longlong * 2).from_address(to)
        values[0], values[1] = 1_000_000 * self.stamps, 1_980_000 * self.stamps

    def cuEventElapsedTime(self, to: Any, start: Any, stop: Any) -> None:  # noqa: N802
        to._obj.value = 2.5

    def cuStreamEndCapture(self, stream: Any, graph: Any) -> int:  # noqa: N802
        if self.capturable:
            self._handle(graph)
        return 0 if self.capturable else 900

    def cuGraphInstantiateWithFlags(self, to: Any, graph: Any, flags: Any) -> None:  # noqa: N802
        self.graphs += 1
        self._handle(to)


@pytest.fixture
def device() -> CudaDevice:
    return CudaDevice(0, FakeDriver())


def test_a_device_says_what_it_is(device: CudaDevice) -> None:
    facts = device.facts
    assert (facts.kind, facts.name, facts.sm_count) == ("gpu", "NVIDIA Fake", 132)
    assert facts.compute_capability == "9.0"
    assert (facts.clock_hz, facts.memory_clock_hz) == (1.98e9, 3.201e9)
    assert facts.last_level_cache_bytes == 60 << 20
    assert facts.pci_bus_id == "0000:3B:00.0"
    assert facts.driver == "CUDA 13.0"
    assert facts.uuid_hash == fnv1a(bytes(range(16)))
    with pytest.raises(DeviceError, match="this machine has 1 GPUs"):
        CudaDevice(1, FakeDriver())


def test_a_hash_is_that_of_the_records() -> None:
    assert fnv1a(b"") == "cbf29ce484222325"
    assert fnv1a(b"a") == "af63dc4c8601ec8c", "as FNV-1a is published"


def test_a_matrix_is_what_peers_see_between_guards(device: CudaDevice) -> None:
    stored = np.arange(12, dtype=np.float32).reshape(3, 4)
    matrix = device.matrix(stored)
    interface = matrix.array.__cuda_array_interface__
    assert (interface["shape"], interface["typestr"]) == ((3, 4), "<f4")
    assert np.array_equal(matrix.fetch(), stored)
    assert matrix.outside() is None
    address = interface["data"][0]
    for offset, said in ((48, "byte 1 past its end"), (-2, "byte 2 before its beginning")):
        ctypes.memset(address + offset, 0, 1)
        assert matrix.outside() == f"wrote outside C: {said}"
        matrix.poison()
    assert np.isnan(matrix.fetch()).all()
    driver = device.driver
    held = len(driver.memory)  # type: ignore[attr-defined]
    del matrix
    assert len(driver.memory) == held - 1  # type: ignore[attr-defined]


def test_the_drivers_own_words_are_told(device: CudaDevice) -> None:
    with pytest.raises(DeviceError, match="cuMemAlloc_v2: out of memory"):
        device.matrix(np.zeros(1 << 20))


def test_launches_take_turns_between_events_and_stamps(device: CudaDevice) -> None:
    turns: list[int] = []
    launches = [lambda i=i: turns.append(i) for i in range(3)]
    batch = device.batch(launches, 4, graph=False)
    device.driver.calls.clear()  # type: ignore[attr-defined]
    time = batch.time()
    assert turns == [0, 1, 2, 0]
    calls = device.driver.calls  # type: ignore[attr-defined]
    order = ["cuLaunchKernel", "cuEventRecord", "cuEventRecord", "cuLaunchKernel"]
    assert [name for name in calls if name in order] == order, "the stamps lie outside the events"
    assert time.seconds == pytest.approx(2.5e-3)
    assert time.sm_hz == pytest.approx(1.98e9)
    batch.time()
    assert turns[4:] == [1, 2, 0, 1], "a batch goes on where the last one ended"
    batch.rewind()
    batch.time()
    assert turns[8:] == [0, 1, 2, 0]


def test_a_graph_holds_whole_rounds_and_launches_nothing_itself(device: CudaDevice) -> None:
    turns: list[int] = []
    launches = [lambda i=i: turns.append(i) for i in range(3)]
    batch = device.batch(launches, 4, graph=True)
    assert isinstance(batch, GraphBatch)
    assert batch.launch == "graph"
    assert device.driver.graphs == 3, "four launches of three sets come round after three"  # type: ignore[attr-defined]
    assert turns == [0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2]
    for _ in range(4):
        batch.time()
    assert len(turns) == 12
    assert device.driver.calls.count("cuGraphLaunch") == 4  # type: ignore[attr-defined]


@pytest.mark.parametrize("raises", [False, True])
def test_what_cannot_be_captured_is_launched_one_by_one(raises: bool) -> None:
    driver = FakeDriver(capturable=raises)
    device = CudaDevice(0, driver)
    turns: list[int] = []

    def launch() -> None:
        capturing = driver.calls.count("cuStreamBeginCapture_v2") > driver.calls.count(
            "cuStreamEndCapture"
        )
        if capturing and raises:
            raise RuntimeError("not while a graph is captured")
        turns.append(1)

    batch = device.batch([launch], 2, graph=True)
    assert type(batch) is StreamBatch
    assert batch.launch == "stream"
    assert driver.calls.count("cuStreamEndCapture") == 1, "no capture is left open"
    turns.clear()
    batch.time()
    assert len(turns) == 2


def test_without_a_driver_there_is_no_device() -> None:
    with pytest.raises(DeviceError, match=r"no NVIDIA driver is installed \(libnothing.so\)"):
        Driver("libnothing.so")


def test_guards_tell_the_nearest_byte() -> None:
    whole = np.full(8, 0xFF, np.uint8)
    hurt = whole.copy()
    hurt[[2, 5]] = 0
    assert outside_text(whole, whole) is None
    assert outside_text(whole, hurt) == "wrote outside C: byte 3 past its end"
    assert outside_text(hurt, whole) == "wrote outside C: byte 3 before its beginning"


@pytest.mark.parametrize("architecture", ["sm_75", "sm_80", "sm_90"])
def test_the_stamp_is_machine_code_everywhere(tmp_path: Path, architecture: str) -> None:
    ptxas = shutil.which("ptxas")
    if ptxas is None:
        pytest.skip("no ptxas")
    source = tmp_path / "stamp.ptx"
    source.write_bytes(STAMP.rstrip(b"\0"))
    command = [ptxas, f"-arch={architecture}", str(source), "-o", str(tmp_path / "stamp.cubin")]
    subprocess.run(command, check=True)
    assert STAMP.endswith(b"\0"), "the driver looks for the end of the text"
