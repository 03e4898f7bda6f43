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


def test_without_a_command_it_measures(tmp_path: Path) -> None:
    assert run(tmp_path) == (0, "measures --benchmark_out=results/\n", "")
    assert run(tmp_path, "--benchmark_out=x") == (0, "measures --benchmark_out=x\n", "")
    assert run(tmp_path, "--benchmark_filter=wrong")[0] == 1
    assert run(tmp_path, "--benchmark_filter=bad")[0] == 2


def test_a_list_writes_no_record(tmp_path: Path) -> None:
    assert run(tmp_path, "--benchmark_list_tests")[1] == "lists with --benchmark_list_tests\n"


def test_help_names_the_commands_and_the_options(tmp_path: Path) -> None:
    code, out, _ = run(tmp_path, "--help")
    assert code == 0
    assert "compare" in out
    assert out.endswith("options of the program\n")


def test_commands_are_those_of_the_report(tmp_path: Path) -> None:
    code, _, err = run(tmp_path, "compare", "missing.json", "other.json")
    assert (code, err.startswith("gemm-bench: missing.json")) == (3, True)
    assert run(tmp_path, "no-command")[0] == 3


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
