"""The fill, the bounds and the plan are those of bench/verification/fill.hpp, bench/verification/verdict.hpp and
bench/timing/timing.hpp, which are compiled."""

import itertools
import os
import shutil
import subprocess
from dataclasses import asdict

import numpy as np
import pytest

from gemm_peers.elements import as_double, filled
from gemm_peers.family import ROOT
from gemm_peers.plan import Plan
from gemm_peers.problem import ELEMENT_BYTES, PRECISIONS, Problem, bound_for

COMPILER = shutil.which(os.environ.get("CXX", "c++"))
SEEDS = (0, 2, 3, 2**33)
INDICES = (*range(40), 4095, 2**31, 2**40 + 1)
DEPTHS = (1, 2, 23, 63, 64, 65, 128, 129, 4096, 8192)
PROGRAM = """
#include <cstdio>
#include "bench/verification/fill.hpp"
#include "bench/timing/timing.hpp"
#include "bench/verification/verdict.hpp"
using namespace gemm;
using namespace gemm::bench;
int main() {
  const TimingPlan plan;
  std::printf("plan warmup_seconds %.17g\\n", plan.warmup_seconds);
  std::printf("plan flat %.17g\\n", plan.flat);
  std::printf("plan sample_seconds %.17g\\n", plan.sample_seconds);
  std::printf("plan target %.17g\\n", plan.target);
  std::printf("plan sampling_seconds %.17g\\n", plan.sampling_seconds);
  std::printf("plan longest_sampling_seconds %.17g\\n", plan.longest_sampling_seconds);
  std::printf("plan budget_seconds %.17g\\n", plan.budget_seconds);
  for (std::uint64_t seed : {SEEDS})
    for (std::uint64_t i : {INDICES})
      std::printf("fill %.17g %.17g %d\\n", double(fill_element<float>(Fill::uniform, seed, i)),
                  fill_element<double>(Fill::uniform, seed, i),
                  int(fill_element<std::int8_t>(Fill::uniform, seed, i)));
  for (const PrecisionTraits& traits : kPrecisions) {
    std::printf("traits %s %d %d %lld\\n", traits.name.data(), traits.input_bytes,
                traits.output_bytes, (long long)traits.longest_sum);
    for (std::int64_t k : {DEPTHS}) {
      Problem p{};
      p.precision = traits.precision;
      p.m = p.n = 16;
      p.k = k;
      const Bound bound = bound_for(p);
      std::printf("bound %s %lld %.17g %.17g %.17g\\n", traits.name.data(), (long long)k,
                  bound.of_magnitude, bound.of_expected, bound.absolute);
    }
  }
}
"""


@pytest.fixture(scope="module")
def said(tmp_path_factory: pytest.TempPathFactory) -> list[list[str]]:
    if COMPILER is None:
        pytest.skip("no C++ compiler")
    folder = tmp_path_factory.mktemp("as_in_cpp")
    source, program = folder / "print.cpp", folder / "print"
    text = PROGRAM.replace("SEEDS", ", ".join(map(_unsigned, SEEDS)))
    text = text.replace("INDICES", ", ".join(map(_unsigned, INDICES)))
    source.write_text(text.replace("DEPTHS", ", ".join(f"{each}L" for each in DEPTHS)))
    command = [COMPILER, "-std=c++20", "-I", str(ROOT), str(source), "-o", str(program)]
    subprocess.run(command, check=True)
    lines = subprocess.run([program], check=True, capture_output=True, text=True).stdout
    return [line.split() for line in lines.splitlines()]


def _unsigned(value: int) -> str:
    return f"std::uint64_t({value}ULL)"


def at(element: str, seed: int, index: int) -> float:
    """One element, however far behind."""
    from gemm_peers import elements

    bits = elements.random_bits(seed, np.array([index], np.uint64))
    return float(as_double(element, elements._uniform(element, bits))[0])


def test_values_are_the_same(said: list[list[str]]) -> None:
    values = [line[1:] for line in said if line[0] == "fill"]
    places = [(seed, index) for seed in SEEDS for index in INDICES]
    assert len(values) == len(places)
    for (seed, index), (f32, f64, s8) in zip(places, values, strict=True):
        assert at("f32", seed, index) == float(f32)
        assert at("f64", seed, index) == float(f64)
        assert at("s8", seed, index) == int(s8)


def test_bounds_are_the_same(said: list[list[str]]) -> None:
    checked = set()
    for name, k, *bound in (line[1:] for line in said if line[0] == "bound"):
        if name in PRECISIONS:
            mine = bound_for(Problem(name, "nn", 16, 16, int(k)))
            theirs = [float(each) for each in bound]
            found = (mine.of_magnitude, mine.of_expected, mine.absolute)
            assert found == pytest.approx(theirs, rel=1e-12), (name, k)
            checked.add(name)
    assert checked == set(PRECISIONS)


def test_the_plan_has_the_same_values(said: list[list[str]]) -> None:
    theirs = [line[1:] for line in said if line[0] == "plan"]
    assert {name: float(value) for name, value in theirs} == asdict(Plan())


def test_precisions_are_the_same(said: list[list[str]]) -> None:
    theirs = {line[1]: [int(each) for each in line[2:]] for line in said if line[0] == "traits"}
    for name, precision in PRECISIONS.items():
        sizes = [ELEMENT_BYTES[element] for element in (precision.input, precision.output)]
        assert [*sizes, precision.longest_sum] == theirs[name]


def test_a_fill_does_not_depend_on_how_much_is_made_at_a_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    whole = filled("f32", 1000, 5)
    monkeypatch.setattr("gemm_peers.elements._CHUNK", 7)
    assert np.array_equal(filled("f32", 1000, 5), whole)
    assert not np.array_equal(filled("f32", 1000, 6), whole)


@pytest.mark.parametrize("element", ["bf16", "e4m3", "f16"])
def test_short_elements_are_the_nearest_and_ties_go_to_even(element: str) -> None:
    exact = as_double("f32", filled("f32", 20_000, 3))
    stored = filled(element, 20_000, 3)
    value = as_double(element, stored)
    codes = np.arange(2**16, dtype=np.uint16) if element != "e4m3" else np.arange(256)
    codes = codes.astype(np.uint8) if element == "e4m3" else codes.view(stored.dtype)
    with np.errstate(invalid="ignore"):  # some of them are NaN
        every = as_double(element, codes)
    every = np.unique(every[np.isfinite(every)])
    after = np.clip(np.searchsorted(every, exact), 1, len(every) - 1)
    nearest = np.minimum(np.abs(every[after] - exact), np.abs(every[after - 1] - exact))
    assert np.array_equal(np.abs(value - exact), nearest)


def test_ties_go_to_even() -> None:
    from gemm_peers import elements

    ties = [1 + 2.0**-8, 1 + 3 * 2.0**-8, 1 + 2.0**-4, 1 + 3 * 2.0**-4, -1 - 2.0**-4]
    values = np.array(ties, np.float32)
    bf16 = as_double("bf16", elements._to_bf16(values[:2]))
    assert list(bf16) == [1, 1 + 2.0**-6]
    e4m3 = as_double("e4m3", elements._to_e4m3(values[2:]))
    assert list(e4m3) == [1, 1.25, -1]


def test_e4m3_has_the_values_of_its_definition() -> None:
    codes = np.array([0x00, 0x01, 0x07, 0x08, 0x38, 0x7E, 0x80, 0xB8], np.uint8)
    assert list(as_double("e4m3", codes)) == [0, 2**-9, 7 * 2**-9, 2**-6, 1, 448, 0, -1]
    every = as_double("e4m3", np.arange(127, dtype=np.uint8))
    assert all(a < b for a, b in itertools.pairwise(every))
