// The default suite against what README says of it.
#include "bench/cases/default_suite.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace gemm::bench {
namespace {

// As the suite sees it: the kernels of this build, and one of a GPU, which a build without CUDA
// lacks.
const std::vector<Case>& suite(Device::Kind kind) {
  static const bool added = [] {
    for (const char* name : {"Best", "Rung", "cuBLAS", "cuBLASLt"}) {
      RegisteredKernel kernel;
      kernel.name = name;
      kernel.runs_on = Device::Kind::gpu;
      kernel.layouts = {Layout::nn, Layout::nt};
      for (const PrecisionTraits& traits : kPrecisions)
        kernel.precisions.push_back(traits.precision);
      if (kernel.name == "cuBLAS") kernel.parameters = {{"math", "default"}};
      if (kernel.name == "cuBLASLt") kernel.parameters = {{"algo", "best"}};
      if (kernel.name.starts_with("cu")) kernel.family = "library";
      const auto& all = registry();
      if (std::ranges::find(all, kernel.label(), &RegisteredKernel::label) == all.end())
        add_to_registry(kernel);
    }
    return true;
  }();
  static const auto all = [](const Case& one) { return one.kernel->name != "SplitK"; };
  static const std::vector<Case> cpu = default_suite(Device::Kind::cpu, all),
                                 gpu = default_suite(Device::Kind::gpu, all);
  EXPECT_TRUE(added);
  return kind == Device::Kind::cpu ? cpu : gpu;
}

bool is_cube(const Problem& p) { return p.m == p.n && p.n == p.k; }

std::map<std::string, std::set<std::int64_t>> sizes_of(Device::Kind kind, Precision precision) {
  std::map<std::string, std::set<std::int64_t>> sizes;
  for (const Case& one : suite(kind))
    if (one.problem.precision == precision && is_cube(one.problem))
      sizes[one.kernel->label()].insert(one.problem.m);
  return sizes;
}

TEST(DefaultSuite, HasOursAndTheLibrariesAtFiveSizesAndTheLaddersAtOne) {
  using Sizes = std::set<std::int64_t>;
  const Sizes five{512, 1020, 2048, 4096, 8192};
  for (const Precision precision : {Precision::f32, Precision::bf16, Precision::s8}) {
    auto sizes = sizes_of(Device::Kind::gpu, precision);
    EXPECT_EQ(sizes["Best"], five);
    EXPECT_EQ(sizes["cuBLASLt/algo:best"], five);
    EXPECT_EQ(sizes["Rung"], precision == Precision::s8 ? Sizes{} : Sizes{4096});
    EXPECT_EQ(sizes.count("cuBLASLt/algo:first"), 0U);
  }
  EXPECT_EQ(sizes_of(Device::Kind::gpu, Precision::e4m3)["Best"], (Sizes{512, 2048, 4096, 8192}));
  EXPECT_TRUE(sizes_of(Device::Kind::gpu, Precision::f16).empty());
  auto cpu = sizes_of(Device::Kind::cpu, Precision::f32);
  EXPECT_EQ(cpu["CpuBlocked"].size(), 5U);
  EXPECT_EQ(cpu["CpuNaive"], Sizes{512});
}

TEST(DefaultSuite, HasNarrowOperandsInLayoutNt) {
  for (const Case& one : suite(Device::Kind::gpu))
    EXPECT_EQ(one.problem.layout,
              traits_of(one.problem.precision).input_bytes < 4 ? Layout::nt : Layout::nn)
        << one.name();
}

TEST(DefaultSuite, HasTwelveLayersFromFewTokensToMany) {
  const std::vector<Shape> known = parse_shapes("layers", Device::Kind::gpu);
  std::set<std::int64_t> tokens;
  for (const Case& one : suite(Device::Kind::gpu)) {
    const Problem& p = one.problem;
    if (is_cube(p)) continue;
    EXPECT_EQ(std::ranges::count(known, Shape{p.m, p.n, p.k}), 1) << one.name();
    EXPECT_EQ(p.precision, Precision::bf16);
    EXPECT_TRUE(one.kernel->name == "Best" || one.kernel->is_library()) << one.name();
    tokens.insert(p.m);
  }
  EXPECT_EQ(tokens.size(), 12U);
}

TEST(DefaultSuite, HasNoCaseTwiceAndNoneThatDoesNotRun) {
  for (const auto kind : {Device::Kind::cpu, Device::Kind::gpu}) {
    std::set<std::string> names;
    for (const Case& one : suite(kind)) {
      EXPECT_TRUE(names.insert(one.name()).second) << one.name();
      EXPECT_NE(one.kernel->name, "SplitK");
    }
  }
}

}  // namespace
}  // namespace gemm::bench
