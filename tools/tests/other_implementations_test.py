"""tools/other_implementations: the rows that it selects, what it leaves out, and a run of NumPy."""

import gzip
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "results" / "nvidia-h200" / "other_implementations"
STORED = RESULTS / "20261122T033856Z-4e3e58ec99e7.json.gz"
# It has a GPU, and writes down how it was called.
BENCH = """#!/usr/bin/env bash
[[ "$*" != *--gemm_name_record* ]] || exec echo nvidia-h200/now.json
printf '%s\\n' "$@" >"$(dirname "$0")/called"
"""
PYTHON = """#!/usr/bin/env bash
echo "$MODULES"
"""
ALL = ("numba", "numba_cuda", "triton", "torch", "cutlass_cppgen", "cupy", "numpy")


def program(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    path.chmod(0o755)
    return path


def run(folder: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """With a fake gemm_bench and a fake Python."""
    program(folder / "gemm_bench", BENCH)
    modules = json.dumps({module: [f"{module}=1.2"] for module in ALL})
    return subprocess.run(
        [sys.executable, ROOT / "tools" / "other_implementations", *arguments],
        capture_output=True,
        text=True,
        check=False,
        env={
            **os.environ,
            "GEMM_BENCH_BUILD": str(folder),
            "GEMM_BENCH_PYTHON": str(program(folder / "python", PYTHON)),
            **{"MODULES": modules, **environment},
        },
    )


def called(folder: Path) -> dict[str, str]:
    lines = (folder / "called").read_text(encoding="utf-8").splitlines()
    return {key: value for key, _, value in (line.partition("=") for line in lines)}


def test_the_rows_are_those_of_the_stored_table(tmp_path: Path) -> None:
    done = run(tmp_path, f"--benchmark_out={tmp_path}/x.json", "--gemm_versus=Best")
    assert done.returncode == 0, done.stderr
    asked = called(tmp_path)
    rows = json.loads(gzip.decompress(STORED.read_bytes()))["benchmarks"]
    names = [row["name"] for row in rows if row["gemm"]["family"] == "peer"]
    assert len(names) == 63
    for name in names:
        new = name.replace("/kernel:", ".")
        assert re.search(asked["--benchmark_filter"], new), new
    for other in ("CuPy/bf16/64x64x64", "PyTorch/e4m3/64x64x64", "Best/f32/64x64x64"):
        assert not re.search(asked["--benchmark_filter"], other), other
    assert asked["--gemm_shapes"] == "1024,4096,8192"
    assert asked["--gemm_layouts"] == "nn,nt"
    assert asked["--gemm_versus"] == "Best"
    assert "torch=1.2" in asked["--benchmark_context"]
    files = [file.partition(":")[0] for file in asked["--gemm_kernel"].split(",")]
    assert all(Path(file).is_file() for file in files)
    assert len(files) == 7


def test_rows_can_be_selected_and_others_added(tmp_path: Path) -> None:
    options = ["--only=CuPy,PyTorch", "--gemm_precisions=f64,s8", "--with=^Best/f64"]
    assert run(tmp_path, *options, f"--benchmark_out={tmp_path}/x").returncode == 0
    asked = called(tmp_path)
    of = "(epilogue:[a-z-]+/)?"
    rows = f"^CuPy/{of}(f64)/|^PyTorch/{of}(f64)/|^PyTorch/layout:nt/{of}(s8)/"
    assert asked["--benchmark_filter"] == f"{rows}|^Best/f64"
    assert asked["--gemm_precisions"] == "f64,s8"


def test_what_is_not_installed_is_left_out_in_one_line(tmp_path: Path) -> None:
    out = f"--benchmark_out={tmp_path}/x"
    done = run(tmp_path, out, MODULES='{"torch": ["torch=1"], "triton": []}')
    lines = [line for line in done.stderr.splitlines() if "left out" in line]
    assert [line.split()[1] for line in lines] == ["Numba", "CUTLASS", "CuPy"]
    assert re.fullmatch(r".*Triton[.]py,.*PyTorch[.]py", called(tmp_path)["--gemm_kernel"])
    nothing = run(tmp_path, out, MODULES="{}")
    assert nothing.returncode == 2
    assert (
        nothing.stderr.splitlines()[-1]
        == "other_implementations: nothing to time: none is installed and has these precisions"
    )


@pytest.mark.parametrize(
    ("option", "said"),
    [
        ("--only=JAX", "--only=JAX: unknown name: give Numba, Triton"),
        ("--gemm_precisions=f16,f8", "--gemm_precisions=f8: unknown name: give f32"),
    ],
)
def test_bad_input_is_one_line(tmp_path: Path, option: str, said: str) -> None:
    done = run(tmp_path, option)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"other_implementations: {said}") and done.stderr.count("\n") == 1
