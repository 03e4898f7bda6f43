"""A CUDA compiler that is there must work; without one a build has the CPU kernels alone."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

CMAKE = Path(__file__).parent
PROJECT = f"""
cmake_minimum_required(VERSION 3.25)
project(probe LANGUAGES CXX)
option(GEMM_BENCH_CUDA "" ON)
include("{CMAKE}/Cuda.cmake")
"""
TOO_NEW = "#error -- unsupported GNU version! gcc versions later than 15 are not supported!"
NVCC = f"""#!/bin/sh
case "$*" in *-ccbin*older*) exit 0 ;; esac
echo '{TOO_NEW}' >&2
exit 1
"""

GENERATORS = {"make": "Unix Makefiles", "ninja": "Ninja"}
MAKER = next(filter(shutil.which, GENERATORS), "")
pytestmark = pytest.mark.skipif(
    not (shutil.which("cmake") and shutil.which("c++") and MAKER),
    reason="needs cmake, a compiler, and make or ninja",
)


class Machine:
    """One on whose PATH is no nvcc."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.bin = folder, folder / "bin"
        for name in ("bin", "source", "a toolkit/bin"):
            (folder / name).mkdir(parents=True)
        for name in ("cmake", MAKER, "c++", "uname", "ld", "as", "ar", "ranlib"):
            (self.bin / name).symlink_to(shutil.which(name) or "")
        (folder / "source" / "CMakeLists.txt").write_text(PROJECT, encoding="utf-8")
        self.nvcc = folder / "a toolkit" / "bin" / "nvcc"
        self.nvcc.write_text(NVCC, encoding="utf-8")
        self.nvcc.chmod(0o755)

    def configure(self, *options: str, **variables: str) -> subprocess.CompletedProcess[str]:
        kept = {
            name: it for name, it in os.environ.items() if not name.startswith(("CUDA", "CMAKE"))
        }
        # Of this machine's own toolkit, no test may see anything.
        hidden = "-DCMAKE_FIND_ROOT_PATH=/nonexistent", "-DCMAKE_SYSTEM_PREFIX_PATH=/nonexistent"
        return subprocess.run(
            [
                *("cmake", "-G", GENERATORS[MAKER], "-S", self.folder / "source"),
                *("-B", self.folder / "build", *hidden, *options),
            ],
            env={**kept, "PATH": str(self.bin), **variables},
            capture_output=True,
            text=True,
            check=False,
        )


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


@pytest.mark.parametrize("how", ["CUDACXX", "CUDA_HOME", "CMAKE_CUDA_COMPILER", "PATH"])
def test_a_compiler_that_fails_stops_with_its_own_sentence(machine: Machine, how: str) -> None:
    nvcc, home = str(machine.nvcc), str(machine.nvcc.parents[1])
    options = [f"-D{how}={nvcc}"] if how.startswith("CMAKE") else []
    variables = {"CUDACXX": {"CUDACXX": nvcc}, "CUDA_HOME": {"CUDA_HOME": home}}.get(how, {})
    if how == "PATH":
        variables = {"PATH": f"{machine.bin}:{machine.nvcc.parent}"}
    done = machine.configure(*options, **variables)
    assert done.returncode != 0
    for said in ("unsupported GNU version", "CUDAHOSTCXX", "GEMM_BENCH_CUDA=OFF"):
        assert said in done.stderr


def test_a_compiler_or_host_compiler_that_is_not_there_stops(machine: Machine) -> None:
    gone = str(machine.folder / "gone")
    for variables in ({"CUDACXX": gone}, {"CUDAHOSTCXX": gone}, {"CUDA_HOME": gone}):
        if Path("/usr/local/cuda/bin/nvcc").exists() and "CUDA_HOME" in variables:
            continue
        done = machine.configure(**variables)
        assert done.returncode != 0, variables
        assert gone in done.stderr
        assert "GEMM_BENCH_CUDA=OFF" in done.stderr


def test_the_named_host_compiler_is_tried(machine: Machine) -> None:
    """So far as the check goes: this nvcc compiles nothing."""
    older = machine.bin / "older"
    older.symlink_to(shutil.which("c++") or "")
    done = machine.configure(CUDACXX=str(machine.nvcc), CUDAHOSTCXX=str(older))
    assert "unsupported GNU version" not in done.stderr


def test_cpu_kernels_alone_are_a_choice_that_is_said(machine: Machine) -> None:
    done = machine.configure("-DGEMM_BENCH_CUDA=OFF", CUDACXX=str(machine.folder / "gone"))
    assert done.returncode == 0, done.stderr
    assert "CUDA is switched off" in done.stdout


@pytest.mark.skipif(Path("/usr/local/cuda").exists(), reason="this machine has a toolkit")
def test_without_a_compiler_only_cpu_kernels_are_built(machine: Machine) -> None:
    done = machine.configure()
    assert done.returncode == 0, done.stderr
    assert "No CUDA compiler" in done.stdout
