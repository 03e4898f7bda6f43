"""tools/explain names first what is wrong with each of faulty_kernels_test.cu: needs GPU, ncu."""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FAULTY = ROOT / os.environ.get("GEMM_BENCH_BUILD", "build/release") / "bench" / "faulty"

# By kernel: what is to be found, and at which size, of which the blocks fill the card but for the
# tail wave's.
FAULTS = {
    "FaultyUncoalesced": ("uncoalesced", 1024),
    "FaultyBankConflicts": ("bank conflicts", 1024),
    "FaultySpilling": ("spills", 4096),
    "FaultyLowOccupancy": ("low occupancy", 1024),
    "FaultyTailWave": ("tail wave", 1024),
    "FaultyHostBound": ("host-bound", 1024),
    "FaultyPowerCapped": ("power-capped", 2048),
}


def has_gpu() -> bool:
    found = shutil.which("nvidia-smi")
    return bool(found) and subprocess.run([found, "-L"], capture_output=True).returncode == 0


def test_every_faulty_kernel_has_its_fault() -> None:
    source = Path(__file__).with_suffix(".cu").read_text(encoding="utf-8")
    assert set(re.findall(r'faulty\(\s*"(\w+)"', source)) == FAULTS.keys()


@pytest.mark.parametrize("kernel", FAULTS)
def test_the_fault_is_named_first_on_the_gpu(kernel: str) -> None:
    if not has_gpu() or shutil.which("ncu") is None:
        pytest.skip("there is no GPU or no ncu")
    if not (FAULTY / "gemm_bench").exists():
        pytest.skip(f"{FAULTY / 'gemm_bench'} is not built")
    fault, size = FAULTS[kernel]
    done = subprocess.run(
        [ROOT / "tools" / "explain", kernel, str(size), "--json"],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "GEMM_BENCH_BUILD": str(FAULTY)},
    )
    if "ERR_NVGPUCTRPERM" in done.stderr:
        pytest.skip("ncu may not read the counters")
    assert done.returncode == 0, done.stderr
    findings = json.loads(done.stdout)["explained"]["findings"]
    assert findings[0]["kind"] == fault, [(f["kind"], f["share"]) for f in findings]
