"""Records of made-up GPUs, as gemm_bench writes them."""

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from gemm_report.collection import Refusals
from gemm_report.conftest import TESTDATA
from gemm_report.fleet.reading import COPIES, LINKS, Finding, Gpu, Group, Rate, gpu_of, read_fleet
from gemm_report.record import record_of

PER_NODE = 8
# Per second; sigma of the clock and of everything else among GPUs; SM clock, power in W.
CASES = {
    "Best/f32/8192x8192x8192": (52e12, 0.0005, 0.0003, 1.98e9, 650),
    "Best/bf16/8192x8192x8192": (680e12, 0.0045, 0.001, 1.35e9, 700),
    "Best/layout:nt/e4m3/8192x8192x8192": (1100e12, 0.005, 0.001, 1.4e9, 700),
    "DRAM_read": (4.7e12, 0, 0.001, None, 400),
    "L2_read": (9.9e12, 0.0002, 0.001, 1.98e9, 400),
    "PCIe_to_device": (55e9, 0, 0.003, None, 100),
    "PCIe_to_host": (55e9, 0, 0.003, None, 100),
    COPIES: (390e9, 0, 0.002, None, 100),
}
FP32, BF16, FP8 = PRODUCTS = list(CASES)[:3]
Fault = tuple[str, float]  # what is slower, and by how much
GOOD: Fault = ("", 0.0)
WRONG: Fault = ("wrong", 0.0)


def simulated(
    seed: int, count: int = 1000, wider: float = 1, faults: Sequence[Fault] = ()
) -> tuple[list[Gpu], list[Fault]]:
    """GPUs of a fleet, and what was planted in each. BF16 and FP8 run at the power cap."""
    random = np.random.default_rng(seed)
    truth = [*faults, *[GOOD] * (count - len(faults))]
    truth = [truth[i] for i in random.permutation(count)]
    return [_gpu(i, fault, random, wider) for i, fault in enumerate(truth)], truth


def _gpu(i: int, fault: Fault, random: np.random.Generator, wider: float) -> Gpu:
    kind, loss = fault
    silicon = random.normal()
    temperature = 55 + 5 * random.normal() - 2 * silicon
    rates = {}
    for name, (rate, clock_sigma, sigma, sm_hz, power) in CASES.items():
        clock = np.exp(wider * clock_sigma * silicon)
        work = np.exp(wider * sigma * random.normal())
        capped = name in PRODUCTS[1:]
        held = kind == "lower clock" and name in PRODUCTS
        if held:
            clock /= 1 + loss
        elif name in PRODUCTS if kind == "more cycles" else name.split("_")[0] == kind:
            work /= 1 + loss
        rates[name] = Rate(
            value=float(rate * clock * work),
            error=0.001 if capped else 0.0002,
            sm_hz=sm_hz and float(sm_hz * clock),
            power_w=power,
            temperature_c=float(temperature),
            reasons=("power cap",) if capped or held else (),
        )
    wrong = (Finding("wrong", FP32, "the result is wrong"),) if fault == WRONG else ()
    return Gpu(
        node=f"n{i // PER_NODE + 1:04}",
        bus=f"0000:{16 * (i % PER_NODE + 1):02X}:00.0",
        uuid=f"{i:016x}",
        group=Group("NVIDIA H200", "580.159.04", 700.0),
        rates={n: r for n, r in rates.items() if not (wrong and n == FP32)},
        findings=wrong,
    )


_TEMPLATE = json.loads((TESTDATA / "gpu.json").read_text(encoding="utf-8"))
_ROW = next(b for b in _TEMPLATE["benchmarks"] if b.get("gemm", {}).get("flop_per_second"))
_PRECISIONS = [
    {"name": name, "arithmetic": name, "products": 1} for name in ("f32", "bf16", "e4m3")
]


def _range(value: float | None) -> Any:
    return value and {"min": value, "median": value, "max": value}


def _row(name: str, rate: Rate, samples: int) -> Any:
    kernel, *layout, precision, shape = name.split("/")
    m, n, k = map(int, shape.split("x"))
    seconds = 2.0 * m * n * k / rate.value
    gemm = _ROW["gemm"] | {
        "kernel": kernel,
        "family": "tensor",
        "parameters": {},
        "precision": precision,
        "layout": layout[0].removeprefix("layout:") if layout else "nn",
        **{"m": m, "n": n, "k": k, "flop": 2.0 * m * n * k},
        "samples_seconds": [seconds] * samples,
        "samples_sm_hz": [rate.sm_hz] * samples,
        "samples_throttled": [False] * samples,
        "seconds": dict.fromkeys(("median", "q1", "q3", "min"), seconds),
        "median_interval": 2 * 1.96 * rate.error,
        "flop_per_second": rate.value,
        "clocks": {
            "readings": 10,
            "sm_hz": _range(rate.sm_hz),
            "power_w": _range(rate.power_w),
            "temperature_c": _range(rate.temperature_c),
            "throttled_share": float(bool(rate.reasons)),
            "reasons": dict.fromkeys(rate.reasons, 1.0),
        },
    }
    return _ROW | {"name": name, "gemm": gemm}


def _probe(name: str, rate: Rate) -> Any:
    seconds = 1e9 / rate.value
    return {
        **{"name": name, "arithmetic": None, "fill": None, "what": "a probe"},
        **{"flop_per_second": None, "bytes_per_second": rate.value, "of_nominal": None},
        **{"sm_hz": rate.sm_hz, "power_w": rate.power_w, "throttled_share": 0.0, "samples": 30},
        "seconds": dict.fromkeys(("median", "q1", "q3", "min"), seconds),
        "temperature_c": rate.temperature_c,
    }


def document_of(gpu: Gpu, date: str = "2026-11-22T12:00:00+00:00", samples: int = 20) -> Any:
    """Its record; a wrong result fails its verification."""
    assert gpu.group
    run = _TEMPLATE["context"]["gemm"] | {"schema": 2, "node": gpu.node, "precisions": _PRECISIONS}
    run["device"] = run["device"] | {
        "name": gpu.group.device,
        "driver": gpu.group.driver,
        "power_limit_w": gpu.group.power_limit_w,
        "uuid_hash": gpu.uuid,
        "pci_bus_id": gpu.bus,
    }
    probes = {name: rate for name, rate in gpu.rates.items() if name not in PRODUCTS}
    if copies := probes.pop(COPIES, None):
        probes |= {f"{LINKS}to_0000:{bus}:00.0": copies for bus in ("A0", "B0", "C0")}
    run["measured_ceilings"] = [_probe(name, rate) for name, rate in probes.items()]
    rows = [_row(name, rate, samples) for name, rate in gpu.rates.items() if name in PRODUCTS]
    for finding in gpu.findings:
        row = _row(finding.case or "", Rate(value=1e12), 0)
        row["gemm"] |= {"failed": finding.text, "seconds": None, "flop_per_second": None}
        row["gemm"]["verification"] = {"max_error": 1.0, "bound": 1e-3, "passed": False}
        rows.append(row)
    return {"context": _TEMPLATE["context"] | {"date": date, "gemm": run}, "benchmarks": rows}


def write_fleet(folder: Path, gpus: Sequence[Gpu], samples: int = 20, **of: Any) -> Path:
    """A folder as tools/fleet leaves it."""
    folder.mkdir(exist_ok=True)
    nodes: dict[str, list[str]] = {}
    for gpu in gpus:
        nodes.setdefault(gpu.node, []).append(gpu.bus)
        if gpu.group:
            path = folder / f"{gpu.node}-{gpu.bus}.json"
            path.write_text(json.dumps(document_of(gpu, samples=samples, **of)), encoding="utf-8")
    for node, buses in nodes.items():
        (folder / f"{node}.gpus").write_text("\n".join(buses) + "\n", encoding="utf-8")
    return folder


def test_a_record_says_what_was_written_of_its_gpu() -> None:
    gpu = simulated(0, 8)[0][3]
    read = gpu_of(record_of(Path("n1.json"), document_of(gpu)))
    assert (read.node, read.bus, read.uuid) == (gpu.node, gpu.bus, gpu.uuid)
    for name, rate in gpu.rates.items():
        assert abs(read.rates[name].value / rate.value - 1) < 1e-9, name
        assert read.rates[name].reasons == rate.reasons or name not in PRODUCTS
    for key, value in (
        ("libraries", [{"name": "cuBLAS", "version": "13.1.0"}]),
        ("commit", "fedcba987654"),
        ("command", ["gemm_bench", "--gemm_sampling=1", "--benchmark_out=this.json"]),
        ("method", _TEMPLATE["context"]["gemm"]["method"] | {"fill": "zeros"}),
    ):
        document = document_of(gpu)
        document["context"]["gemm"][key] = value
        other = gpu_of(record_of(Path("other.json"), document)).group
        assert read.group and other and other != read.group, key
        assert "this.json" not in other.differing(read.group) != ""


def test_a_list_of_gpus_that_is_a_pipe_is_refused(tmp_path: Path) -> None:
    write_fleet(tmp_path, [simulated(0, 8)[0][3]])
    os.mkfifo(tmp_path / "other.gpus")
    refusals = Refusals()
    assert len(read_fleet(tmp_path, refusals, [], 0)) == 1
    assert refusals.count == 1
