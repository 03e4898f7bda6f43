"""explain tells spilled registers from arrays with run-time indices by their machine code."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
KERNELS = ROOT / "bench" / "controls" / "faulty_kernels" / "memory_test.cu"
sys.path.insert(0, str(ROOT / "report"))

from gemm_report.explain.ncu import Instruction  # noqa: E402
from gemm_report.explain.observations import indexed_share  # noqa: E402


def test_local_memory_is_told_by_its_cause_in_the_machine_code(tmp_path: Path) -> None:
    tools = [shutil.which(name) for name in ("nvcc", "cuobjdump")]
    if None in tools:
        pytest.skip("there is no nvcc, or no cuobjdump")
    nvcc, dump = tools
    built = tmp_path / "memory.cubin"
    # Headers of the CUDA toolkit and of this repository alone are needed.
    options = ["-std=c++20", "--extended-lambda", "-arch=sm_90a", "-cubin", f"-I{ROOT}"]
    compiled = [nvcc, *options, f"-I{ROOT / 'kernels'}", KERNELS, "-o", built]
    subprocess.run(compiled, check=True, capture_output=True)
    said = subprocess.run([dump, "-sass", built], check=True, capture_output=True, text=True)
    causes = {}
    for part in said.stdout.split("Function : ")[1:]:
        name = re.search(r"faulty_[a-z_]+(?=E)", part.partition("\n")[0])
        assert name
        causes[name[0]] = indexed_share([Instruction(line, 0, 0) for line in part.splitlines()])
    assert causes["faulty_indexed_sums"] == causes["faulty_indexed_operands"] == 1
    assert causes["faulty_launch_bounds"] == 0
    assert causes["faulty_atomic_products"] is causes["faulty_shared_atomics"] is None
