"""tools/explain names first what is wrong with each of faulty_kernels_test.cu: on a GPU with ncu,
and everywhere from what ncu counted of them on an H200, as `tools/explain -o` kept it.
"""

import gzip
import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
FAULTY = ROOT / os.environ.get("GEMM_BENCH_BUILD", "build/release") / "bench" / "faulty"

# By kernel: what is to be found, and at which shape, of which the blocks fill the GPU but for the
# tail wave's.
FAULTS = {
    "FaultyUncoalesced": ("uncoalesced", "1024"),
    "FaultyBankConflicts": ("bank conflicts", "1024"),
    "FaultySpilling": ("spills", "4096"),
    "FaultyLowOccupancy": ("low occupancy", "1024"),
    "FaultyTailWave": ("tail wave", "1024"),
    "FaultyHostBound": ("host-bound", "512x512x80"),
    "FaultyPowerCapped": ("power-capped", "2048"),
}
# Nothing but counters tells of them.
COUNTED = {"FaultyUncoalesced", "FaultyBankConflicts"}


def has_gpu() -> bool:
    found = shutil.which("nvidia-smi")
    return bool(found) and subprocess.run([found, "-L"], capture_output=True).returncode == 0


def test_every_faulty_kernel_has_its_fault() -> None:
    source = Path(__file__).with_suffix(".cu").read_text(encoding="utf-8")
    assert set(re.findall(r'faulty\(\s*"(\w+)"', source)) == FAULTS.keys()


@pytest.mark.parametrize("kernel", FAULTS)
def test_the_fault_is_named_first_on_the_gpu(kernel: str) -> None:
    if shutil.which("ncu") is None:
        pytest.skip("there is no ncu")
    findings = explained(kernel)
    assert findings[0]["kind"] == FAULTS[kernel][0], [(f["kind"], f["share"]) for f in findings]


@pytest.mark.parametrize("kernel", sorted(FAULTS.keys() - COUNTED))
def test_the_fault_is_named_first_on_the_gpu_without_counters(kernel: str) -> None:
    findings = explained(kernel, "--modelled")
    assert findings[0]["kind"] == FAULTS[kernel][0], [(f["kind"], f["share"]) for f in findings]


@pytest.mark.parametrize("kernel", sorted(COUNTED))
def test_a_fault_that_only_counters_tell_is_no_other_on_the_gpu_without(kernel: str) -> None:
    findings = explained(kernel, "--modelled")
    assert findings[-1]["kind"] == "unknown"
    assert all(finding["share"] < 0.1 for finding in findings)


def explained(kernel: str, *arguments: str) -> list[dict[str, Any]]:
    """The findings about a faulty kernel."""
    if not has_gpu():
        pytest.skip("there is no GPU")
    if not (FAULTY / "gemm_bench").exists():
        pytest.skip(f"{FAULTY / 'gemm_bench'} is not built")
    done = subprocess.run(
        [ROOT / "tools" / "explain", kernel, FAULTS[kernel][1], "--json", *arguments],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "GEMM_BENCH_BUILD": str(FAULTY)},
    )
    if "ERR_NVGPUCTRPERM" in done.stderr:
        pytest.skip("ncu may not read the counters")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)["explained"]["findings"]


KEPT = ROOT / "bench" / "controls" / "faulty_kernels"


@pytest.mark.parametrize("kernel", FAULTS)
def test_the_fault_is_named_first_of_what_was_counted(kernel: str, tmp_path: Path) -> None:
    fault, size = FAULTS[kernel]
    for ending in ("json", "csv"):
        packed = (KEPT / f"{kernel}.{ending}.gz").read_bytes()
        (tmp_path / f"kept.{ending}").write_bytes(gzip.decompress(packed))
    stored = ["--record", tmp_path / "kept.json", "--counters", tmp_path / "kept.csv", "--json"]
    done = subprocess.run(
        [ROOT / "tools" / "explain", kernel, str(size), *stored],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)["explained"]
    assert told["findings"][0]["kind"] == fault
    assert not told["findings"][0]["modelled"]
    assert len(told["steps"]) == 2
