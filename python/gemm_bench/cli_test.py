import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FAKE = """#!/bin/sh
case "$*" in *--benchmark_list_tests*) echo "lists with $*"; exit 0 ;; esac
case "$1" in
  --help) echo "options of the program"; exit 0 ;;
  --gemm_tell_record=*) told=${1#*=} ;;
esac
trap 'echo interrupted; exit 130' INT
trap 'echo ended; exit 143' TERM
echo "measures $2"
case "$*" in *slow*) echo started >&2; while :; do sleep 0.05; done ;; esac
case "$*" in *wrong*) exit 1 ;; *bad*) exit 2 ;; esac
"""


def start(folder: Path, *arguments: str, program: str = "gemm_bench") -> subprocess.Popen[str]:
    (folder / program).write_text(FAKE)
    (folder / program).chmod(0o755)
    path = os.pathsep.join([str(ROOT / "python"), str(ROOT / "report")])
    return subprocess.Popen(
        [sys.executable, "-m", "gemm_bench", *arguments],
        cwd=folder,
        env={**os.environ, "GEMM_BENCH_BUILD": str(folder), "PYTHONPATH": path},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def run(folder: Path, *arguments: str, program: str = "gemm_bench") -> tuple[int, str, str]:
    process = start(folder, *arguments, program=program)
    out, err = process.communicate(timeout=60)
    return process.returncode, out, err


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        ([], 0, "measures --benchmark_out=results/\n"),
        (["--benchmark_out=x"], 0, "measures --benchmark_out=x\n"),
        (["--benchmark_filter=wrong"], 1, "measures"),
        (["--benchmark_filter=bad"], 2, "measures"),
        (["--benchmark_list_tests"], 0, "lists with --benchmark_list_tests\n"),
        (["--help"], 0, "usage: gemm-bench"),
        (["compare", "missing.json", "other.json"], 3, "gemm-bench: missing.json"),
        (["no-command"], 3, "gemm-bench: "),
    ],
)
def test_what_it_runs(tmp_path: Path, arguments: list[str], code: int, said: str) -> None:
    status, out, err = run(tmp_path, *arguments)
    assert status == code
    assert (out or err).startswith(said)
    if arguments == ["--help"]:
        assert "compare" in out and out.endswith("options of the program\n")


@pytest.mark.parametrize(
    ("number", "code", "said"),
    [(signal.SIGINT, 130, "interrupted"), (signal.SIGTERM, 143, "ended")],
)
def test_signals_reach_the_program(
    tmp_path: Path, number: signal.Signals, code: int, said: str
) -> None:
    process = start(tmp_path, "--benchmark_filter=slow")
    assert process.stderr is not None
    assert process.stderr.readline() == "started\n"
    process.send_signal(number)
    out, _ = process.communicate(timeout=20)
    assert process.returncode == code
    assert said in out


def test_without_a_program_it_says_what_to_do(tmp_path: Path) -> None:
    code, _, err = run(tmp_path, program="other")
    assert code == 2
    assert err.startswith(f"gemm-bench: {tmp_path} has no gemm_bench: ")
