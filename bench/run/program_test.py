"""The program and its library: one copy of the machine code, found wherever both lie."""

import os
import shutil
import subprocess
from pathlib import Path

from test_runs import BENCH as PROGRAM
from test_runs import BUILD, NEEDS_BENCH

LIBRARY = BUILD / "libgemm_bench.so"
pytestmark = NEEDS_BENCH


def lists_kernels(program: Path, folder: Path) -> bool:
    environment = {k: v for k, v in os.environ.items() if k != "LD_LIBRARY_PATH"}
    command = [program, "--gemm_list_kernels"]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, check=False)
    return done.returncode == 0 and b"CpuNaive" in done.stdout


def test_the_machine_code_is_in_the_library_alone() -> None:
    assert PROGRAM.stat().st_size < 100_000
    assert LIBRARY.stat().st_size > 10 * PROGRAM.stat().st_size


def test_the_library_is_found_from_everywhere_and_through_a_link(tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(PROGRAM)
    assert lists_kernels(PROGRAM, tmp_path)
    assert lists_kernels(link, Path("/"))


def test_both_can_be_moved_together(tmp_path: Path) -> None:
    moved = tmp_path / "gemm_bench"
    shutil.copy(PROGRAM, moved)
    assert not lists_kernels(moved, tmp_path)  # the one of the build is not taken for its own
    shutil.copy(LIBRARY, tmp_path)
    assert lists_kernels(moved, Path("/"))
