// Which cases there are, their names, and the baselines that they are compared with.
#include "bench/cases/cases.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

namespace gemm::bench {
namespace {

// Computes f32 and tf32 on the CPU, of layouts nn and tn.
const RegisteredKernel& ours() {
  static const RegisteredKernel kernel = [] {
    RegisteredKernel one;
    one.name = "Tiled";
    one.family = "simt";
    one.parameters = {{"tile", "16"}};
    one.precisions = {Precision::f32, Precision::tf32};
    one.layouts = {Layout::nn, Layout::tn};
    one.runs_on = Device::Kind::cpu;
    return one;
  }();
  return kernel;
}

std::vector<std::string> names_of(const std::vector<Case>& cases) {
  std::vector<std::string> names;
  for (const Case& one : cases) names.push_back(one.name());
  return names;
}

TEST(Case, IsNamedAfterKernelParametersLayoutPrecisionAndShape) {
  EXPECT_EQ((Case{&ours(), {1024, 1024, 768, Precision::f32}}.name()),
            "Tiled/tile:16/f32/1024x1024x768");
  EXPECT_EQ((Case{&ours(), {64, 32, 16, Precision::bf16, Layout::nt}}.name()),
            "Tiled/tile:16/layout:nt/bf16/64x32x16");
  const Case batch{&ours(), {512, 512, 512, Precision::f32, Layout::nn, 16}};
  EXPECT_EQ(batch.name(), "Tiled/tile:16/f32/batched:16x512x512x512");
  EXPECT_EQ(batch.size(), "batched:16x512");
  EXPECT_EQ((Case{&ours(), {4, 5, 6, Precision::f32, Layout::nn, 16}}.size()), "batched:16x4x5x6");
  EXPECT_EQ((Case{&ours(), {512, 512, 512, Precision::f32}}.size()), "512");
}

TEST(Cases, HaveAnEpilogueIfItIsAskedFor) {
  for (const Case& one : make_cases({{8, 8, 8}}, {}, Device::Kind::cpu))
    EXPECT_EQ(one.problem.activation, Activation::none) << "by default";
  const auto names =
      names_of(make_cases({{8, 9, 10}}, {Precision::f32}, Device::Kind::cpu, false, {}, {}));
  for (const std::string of : {"", "/epilogue:bias", "/epilogue:bias-gelu", "/epilogue:residual"})
    EXPECT_EQ(std::ranges::count(names, "CpuNaive" + of + "/f32/8x9x10"), 1);
  Problem p{8, 9, 10, Precision::f32, Layout::nt};
  p.activation = Activation::bias;
  EXPECT_EQ((Case{&ours(), p}.name()), "Tiled/tile:16/layout:nt/epilogue:bias/f32/8x9x10");
  p.layout = Layout::nn;
  EXPECT_EQ(names_of(baselines_of({&ours(), p}, "CpuNaive", false)),
            std::vector<std::string>{"CpuNaive/epilogue:bias/f32/8x9x10"});
}

TEST(Cases, OfABatchAreNotThoseOfOneProduct) {
  const auto has = [](const Shape& shape, std::string_view kernel) {
    return std::ranges::count(make_cases({shape}, {}, Device::Kind::cpu), kernel,
                              [](const Case& one) { return one.kernel->name; });
  };
  for (const char* kernel : {"CpuNaive", "CpuBlocked"}) {
    EXPECT_EQ(has({8, 8, 8}, kernel), 1);
    EXPECT_EQ(has({8, 8, 8, 3}, kernel), 1);
  }
  for (const auto kind : {Device::Kind::cpu, Device::Kind::gpu})
    for (const Case& one : make_cases({{8, 8, 8}}, {}, kind, true, {}))
      EXPECT_NE(one.kernel->batches, Batches::only) << one.name();
}

TEST(Cases, AreOfTheLayoutsThatAKernelHas) {
  for (const Case& one : make_cases({{8, 8, 8}}, {}, Device::Kind::cpu))
    EXPECT_EQ(one.problem.layout, Layout::nn) << "by default";
  const auto all = make_cases({{8, 8, 8}}, {}, Device::Kind::cpu, false, {});
  for (const RegisteredKernel& kernel : registry()) {
    if (kernel.runs_on != Device::Kind::cpu) continue;
    for (const Layout layout : kLayouts)
      EXPECT_EQ(std::ranges::count(all, Case{&kernel, {8, 8, 8, kernel.precisions[0], layout}}),
                std::ranges::count(kernel.layouts, layout))
          << kernel.name << name_of(layout);
  }
  EXPECT_GT(all.size(), 0U);
}

TEST(Cases, AreByDefaultOfPrecisionsThatAKernelOfOursComputes) {
  for (const auto kind : {Device::Kind::cpu, Device::Kind::gpu})
    for (const PrecisionTraits& traits : kPrecisions) {
      const bool ours =
          std::ranges::any_of(make_cases({{8, 8, 8}}, {traits.precision}, kind, true, {}),
                              [](const Case& one) { return !one.kernel->is_library(); });
      constexpr std::string_view kDoubles[] = {"f16", "e4m3fast", "e5m2", "e5m2fast", "e4m3block"};
      const bool alone = std::ranges::find(kDoubles, traits.name) == std::end(kDoubles);
      EXPECT_EQ(std::ranges::count(usual_precisions(kind), traits.precision), ours && alone)
          << traits.name;
    }
  EXPECT_EQ(usual_precisions(Device::Kind::cpu), std::vector{Precision::f32});
}

TEST(Versus, MeansKernelsByNameByLabelOrAsALibrary) {
  RegisteredKernel kernel = ours();
  for (const char* name : {"Tiled", "Tiled/tile:16"}) EXPECT_TRUE(is_meant(name, kernel)) << name;
  for (const char* name : {"Tiled/tile:32", "library", ""})
    EXPECT_FALSE(is_meant(name, kernel)) << name;
  kernel.family = "library";
  EXPECT_TRUE(is_meant("library", kernel));
}

TEST(Versus, TakesAllThatAreNamedOnTheSameProblem) {
  const auto baselines = [](const Problem& p, const std::string& versus) {
    return names_of(baselines_of({&ours(), p}, versus, false));
  };
  const Problem p{8, 9, 10, Precision::f32};
  EXPECT_EQ(baselines(p, "CpuNaive"), std::vector<std::string>{"CpuNaive/f32/8x9x10"});
  EXPECT_EQ(baselines({8, 9, 10, Precision::f32, Layout::nn, 3}, "CpuNaive"),
            std::vector<std::string>{"CpuNaive/f32/batched:3x8x9x10"});
  EXPECT_EQ(baselines(p, "CpuNaive,CpuBlocked,CpuNaive"),
            (std::vector<std::string>{"CpuNaive/f32/8x9x10", "CpuBlocked/f32/8x9x10"}));
  for (const Problem& other :
       {Problem{8, 9, 10, Precision::f32, Layout::tn}, Problem{8, 9, 10, Precision::tf32}})
    EXPECT_TRUE(baselines(other, "CpuNaive").empty()) << "it computes nn in f32 alone";
}

}  // namespace
}  // namespace gemm::bench
