"""What surrounded a run is in its record, and what disturbs results marks them."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import test_runs
from test_runs import BENCH, NEEDS_BENCH, ROOT, codes, ran, rows

NAIVE = "--benchmark_filter=CpuNaive"

pytestmark = NEEDS_BENCH


def run(out: Path, *arguments: str, code: int = 0, **variables: str) -> tuple[dict[str, Any], str]:
    """The record, and what the console said."""
    environment = {**os.environ, **variables}
    document, done = ran(out, "--gemm_shapes=64", *arguments, code=code, env=environment)
    return document, done.stdout


def test_what_falsifies_is_taken_out_and_what_is_chosen_is_told(tmp_path: Path) -> None:
    falsifying = {"CUBLAS_EMULATION_STRATEGY": "eager", "NVIDIA_TF32_OVERRIDE": "1"}
    document, console = run(
        tmp_path / "a.json", NAIVE, OPENBLAS_NUM_THREADS="1", HOME_SECRET="no", **falsifying
    )
    environment = document["context"]["gemm"]["environment"]
    assert environment["removed"].items() >= falsifying.items()
    assert environment["recorded"]["OPENBLAS_NUM_THREADS"] == "1"
    assert environment["recorded"]["OMP_NUM_THREADS"] == "1"
    assert "HOME_SECRET" not in json.dumps(document)
    (line,) = (line for line in console.splitlines() if "Environment:" in line)
    assert "removed: CUBLAS_EMULATION_STRATEGY=eager" in line
    assert "OPENBLAS_NUM_THREADS=1" in line


def test_a_users_kernel_does_not_see_it_either(tmp_path: Path) -> None:
    kernel = tmp_path / "mine.py"
    kernel.write_text(
        "import os\n"
        "def prepare(problem, a, b, c):\n"
        "    raise ValueError(f\"{os.environ.get('CUDA_LAUNCH_BLOCKING')} of it\")\n"
    )
    document, _ = run(
        tmp_path / "a.json",
        f"--gemm_kernel={kernel}",
        code=1,
        CUDA_LAUNCH_BLOCKING="1",
    )
    (row,) = document["benchmarks"]
    assert "None of it" in row["gemm"]["failed"]
    assert document["context"]["gemm"]["environment"]["removed"] == {"CUDA_LAUNCH_BLOCKING": "1"}


def test_injected_code_marks_every_result(tmp_path: Path) -> None:
    quiet, _ = run(tmp_path / "a.json", NAIVE)
    assert quiet["context"]["gemm"]["environment"]["injected"] == []
    assert "injected" not in codes(rows(quiet)[0])
    document, console = run(tmp_path / "b.json", NAIVE, LD_PRELOAD="libm.so.6")
    assert document["context"]["gemm"]["environment"]["injected"] == ["libm.so.6"]
    assert "injected" in codes(rows(document)[0])
    assert "injected: libm.so.6" in console


@pytest.mark.skipif(not shutil.which("strace"), reason="there is no strace")
def test_a_tracer_is_seen(tmp_path: Path) -> None:
    traced = ["-f", "-o", "/dev/null", "-e", "trace=none", BENCH, *test_runs.QUICK]
    out = tmp_path / "a.json"
    command = [*map(str, traced), "--gemm_shapes=64", NAIVE, f"--benchmark_out={out}"]
    assert test_runs.run(*command, program=Path("strace")).returncode == 0
    environment = test_runs.record(out)["context"]["gemm"]["environment"]
    assert environment["injected"] == ["traced by strace"]


@contextmanager
def busy(processes: int) -> Iterator[None]:
    command = [sys.executable, "-c", "while True: pass"]
    all_of_them = [subprocess.Popen(command) for _ in range(processes)]
    try:
        yield
    finally:
        for each in all_of_them:
            each.kill()
            each.wait()


@pytest.mark.parametrize("which", [NAIVE, f"--gemm_kernel={ROOT / 'examples' / 'matmul.py'}"])
def test_a_busy_host_marks_results(tmp_path: Path, which: str) -> None:
    """Of this process, and of a child that measures a user's kernel."""
    cpus = len(os.sched_getaffinity(0))
    options = ["--benchmark_min_time=1s", "--gemm_sampling=1"]
    with busy(cpus):
        document, console = run(tmp_path / "a.json", which, *options)
    host = document["context"]["gemm"]["host"]
    assert host["cpus"] == cpus
    assert host["load_end"] > 0
    assert 0.1 < host["busy_share"] <= 1
    (row,) = document["benchmarks"]
    assert row["gemm"]["failed"] is None
    assert row["gemm"]["host"]["cpus"] == cpus
    assert 0.1 < row["gemm"]["host"]["busy_share"] <= 1
    assert "busy-host" in codes(row["gemm"])
    assert "in doubt: busy-host" in console
