"""No flag of a user voids verification: NaN is refused, or the program does not start."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROJECT = f"""
cmake_minimum_required(VERSION 3.25)
project(probe LANGUAGES CXX)
set(CMAKE_CXX_STANDARD 20)
include({ROOT}/cmake/exact_math.cmake)
file(WRITE ${{CMAKE_BINARY_DIR}}/build_info.hpp
  "namespace gemm::bench::build_info {{ inline constexpr bool kOpenMp = false; }}")
add_executable(probe main.cpp {ROOT}/bench/base/text.cpp {ROOT}/bench/device/device.cpp
  {ROOT}/bench/device/backend_host.cpp {ROOT}/bench/device/cpu.cpp
  {ROOT}/bench/device/host_limits.cpp {ROOT}/bench/device/host_settings.cpp
  {ROOT}/bench/device/operand_layout.cpp {ROOT}/bench/device/resident.cpp
  {ROOT}/bench/device/nan_refusal.cpp {ROOT}/bench/verification/verdict.cpp)
target_include_directories(probe PRIVATE {ROOT} ${{CMAKE_BINARY_DIR}})
target_link_libraries(probe $<$<NOT:$<BOOL:${{WITHOUT}}>>:exact_math>)
"""
MAIN = """#include "bench/device/nan_refusal.hpp"
#include <cstdio>
#include <exception>
int main() try {
  gemm::bench::require_nan_refusal(*gemm::bench::make_host_backend());
} catch (const std::exception& error) {
  std::fputs(error.what(), stderr);
  return 7;
}
"""
HAS_SOURCE_LOCATION = "#include <source_location>\nauto x = std::source_location::current();"


def usable(compiler: str) -> bool:
    """Clang 14 lacks std::source_location."""
    command = [compiler, "-std=c++20", "-fsyntax-only", "-x", "c++", "-"]
    return (
        shutil.which(compiler) is not None
        and subprocess.run(command, input=HAS_SOURCE_LOCATION, text=True, check=False).returncode
        == 0
    )


COMPILERS = ["g++", "clang++", *(f"clang++-{version}" for version in range(16, 25)), "icpx"]
COMPILERS = [compiler for compiler in COMPILERS if usable(compiler)]

pytestmark = pytest.mark.skipif(not shutil.which("cmake"), reason="needs cmake")


def built(folder: Path, compiler: str, flags: str, *options: str) -> Path:
    (folder / "CMakeLists.txt").write_text(PROJECT, encoding="utf-8")
    (folder / "main.cpp").write_text(MAIN, encoding="utf-8")
    environment = {**os.environ, "CXX": compiler, "CXXFLAGS": flags}
    build = folder / "build"
    configure = ["cmake", "-S", folder, "-B", build, "-DCMAKE_BUILD_TYPE=Release", *options]
    subprocess.run(configure, env=environment, check=True, capture_output=True)
    subprocess.run(["cmake", "--build", build, "-j2"], check=True, capture_output=True, text=True)
    return build / "probe"


@pytest.mark.parametrize("compiler", COMPILERS)
def test_nan_is_refused_with_fast_math(tmp_path: Path, compiler: str) -> None:
    flags = "-Ofast -ffast-math -ffinite-math-only"
    done = subprocess.run([built(tmp_path, compiler, flags)], check=False)
    assert done.returncode == 0


@pytest.mark.parametrize("compiler", COMPILERS)
def test_a_build_that_would_accept_nan_does_not_start(tmp_path: Path, compiler: str) -> None:
    flags = "-ffast-math -ffinite-math-only"
    source = str(ROOT / "bench" / "device" / "nan_refusal.cpp")
    command = [compiler, "-std=c++20", *flags.split(), f"-I{ROOT}", "-fsyntax-only", source]
    said = subprocess.run(command, check=False, capture_output=True, text=True)
    assert said.returncode != 0
    assert "without -ffast-math" in said.stderr
    hidden = flags + " -D__FINITE_MATH_ONLY__=0 -Wno-builtin-macro-redefined"
    program = built(tmp_path, compiler, hidden, "-DWITHOUT=ON")
    done = subprocess.run([program], check=False, capture_output=True, text=True)
    assert done.returncode == 7
    assert "-ffast-math" in done.stderr
