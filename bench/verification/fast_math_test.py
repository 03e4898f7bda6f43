"""No flag of a user voids verification: NaN is refused, or the program does not compile."""

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
include("{ROOT}/cmake/exact_math.cmake")
add_executable(probe main.cpp)
target_include_directories(probe PRIVATE "{ROOT}")
target_link_libraries(probe exact_math)
"""
MAIN = """#include "bench/verification/freivalds.hpp"
#include <cstdlib>
int main(int, char** values) {
  using namespace gemm::bench;
  const double value = std::atof(values[1]);
  const gemm::Problem p{.m = 1, .n = 1, .k = 1, .precision = gemm::Precision::f32};
  Verdict verdict;
  verdict.add(0, value, 1, 1, bound_for(p));
  return verdict.passed() + 2 * row_is_right({{value, value}, 0}, {{1, 1}, 0.5});
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


@pytest.mark.parametrize("compiler", COMPILERS)
def test_nan_is_refused_with_fast_math(tmp_path: Path, compiler: str) -> None:
    (tmp_path / "CMakeLists.txt").write_text(PROJECT, encoding="utf-8")
    (tmp_path / "main.cpp").write_text(MAIN, encoding="utf-8")
    flags = "-Ofast -ffast-math -ffinite-math-only"
    environment = {**os.environ, "CXX": compiler, "CXXFLAGS": flags}
    build = tmp_path / "build"
    configure = ["cmake", "-S", tmp_path, "-B", build, "-DCMAKE_BUILD_TYPE=Release"]
    subprocess.run(configure, env=environment, check=True, capture_output=True)
    subprocess.run(["cmake", "--build", build], check=True, capture_output=True)
    for value, passes in [("1", 3), ("nan", 0), ("inf", 0), ("2", 0)]:
        assert subprocess.run([build / "probe", value], check=False).returncode == passes, value


@pytest.mark.parametrize("compiler", COMPILERS)
def test_a_build_that_would_accept_nan_does_not_compile(compiler: str) -> None:
    source = str(ROOT / "bench" / "verification" / "verdict.cpp")
    command = [compiler, "-std=c++20", "-ffast-math", f"-I{ROOT}", "-fsyntax-only", source]
    said = subprocess.run(command, check=False, capture_output=True, text=True)
    assert said.returncode != 0
    assert "without -ffast-math" in said.stderr
