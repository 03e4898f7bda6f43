// The default suite against what README says of it.
#include "bench/cases/default_suite.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gemm::bench {
namespace {

// As the suite sees it: the kernels of this build, and one of a GPU, which a build without CUDA
// lacks.
const std::vector<Case>& suite(Device::Kind kind) {
  [[maybe_unused]] static const bool added = [] {
    for (const char* name : {"Best", "Rung", "SplitK", "cuBLAS", "cuBLASLt"}) {
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
  return kind == Device::Kind::cpu ? cpu : gpu;
}

TEST(DefaultSuite, HasOursAndTheLibrariesAtFiveSizesAndTheLaddersAtOne) {
  using Sizes = std::set<std::int64_t>;
  const std::vector<Shape> known = parse_shapes("layers", Device::Kind::gpu);
  std::map<std::pair<std::string, std::string_view>, Sizes> sizes;  // by kernel and precision
  Sizes tokens;
  std::set<std::string> names;
  for (const auto kind : {Device::Kind::cpu, Device::Kind::gpu})
    for (const Case& one : suite(kind)) {
      const Problem& p = one.problem;
      EXPECT_TRUE(names.insert(one.name()).second) << one.name() << " is there twice";
      const PrecisionTraits& traits = traits_of(p.precision);
      EXPECT_EQ(p.layout, traits.input_bytes < 4 ? Layout::nt : Layout::nn) << one.name();
      if (p.m == p.n && p.n == p.k) {
        sizes[{one.kernel->label(), traits.name}].insert(p.m);
        continue;
      }
      EXPECT_EQ(std::ranges::count(known, Shape{p.m, p.n, p.k}), 1) << one.name();
      EXPECT_EQ(p.precision, Precision::bf16);
      EXPECT_TRUE(one.kernel->name == "Best" || one.kernel->is_library()) << one.name();
      tokens.insert(p.m);
    }
  EXPECT_EQ(tokens.size(), 12U) << "layers, from few tokens to many";
  const Sizes five{512, 1020, 2048, 4096, 8192};
  for (const char* precision : {"f32", "bf16", "s8"}) {
    for (const char* kernel : {"Best", "cuBLASLt/algo:best"})
      EXPECT_EQ((sizes[{kernel, precision}]), five) << kernel << precision;
    EXPECT_EQ((sizes[{"Rung", precision}]),
              precision == std::string_view("s8") ? Sizes{} : Sizes{4096});
    EXPECT_TRUE((sizes[{"SplitK", precision}].empty())) << "it does not run here";
  }
  EXPECT_EQ((sizes[{"Best", "e4m3"}]), (Sizes{512, 2048, 4096, 8192}));
  EXPECT_TRUE((sizes[{"Best", "f16"}].empty()));
  EXPECT_EQ((sizes[{"CpuBlocked", "f32"}].size()), 5U);
  EXPECT_EQ((sizes[{"CpuNaive", "f32"}]), Sizes{512});
}

}  // namespace
}  // namespace gemm::bench
