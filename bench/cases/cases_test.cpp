// Which cases there are, their names, and the baselines that they are compared with.
#include "bench/cases/cases.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <optional>
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

TEST(Case, IsNamedAfterKernelParametersPrecisionAndShape) {
  EXPECT_EQ((Case{&ours(), {1024, 1024, 768, Precision::f32}}.name()),
            "Tiled/tile:16/f32/1024x1024x768");
}

TEST(Case, NamesALayoutThatIsNotNn) {
  EXPECT_EQ((Case{&ours(), {64, 32, 16, Precision::bf16, Layout::nt}}.name()),
            "Tiled/tile:16/layout:nt/bf16/64x32x16");
}

TEST(Cases, AreOfTheLayoutsThatAKernelHas) {
  for (const Case& one : make_cases({{8, 8, 8}}, {}, Device::Kind::cpu))
    EXPECT_EQ(one.problem.layout, Layout::nn) << "by default";
  const auto all = make_cases({{8, 8, 8}}, {}, Device::Kind::cpu, false, {});
  for (const RegisteredKernel& kernel : registry()) {
    if (kernel.runs_on != Device::Kind::cpu) continue;
    for (const Layout layout : kLayouts)
      EXPECT_EQ(std::ranges::count(all, Case{&kernel, {8, 8, 8, Precision::f32, layout}}),
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
      constexpr std::string_view kDoubles[] = {"f16", "e4m3fast", "e5m2", "e5m2fast"};
      const bool alone = std::ranges::find(kDoubles, traits.name) == std::end(kDoubles);
      EXPECT_EQ(std::ranges::count(usual_precisions(kind), traits.precision), ours && alone)
          << traits.name;
    }
  EXPECT_EQ(usual_precisions(Device::Kind::cpu), std::vector{Precision::f32});
}

TEST(Cases, EndToEndAreOfLayoutNnAlone) {
  const std::vector<Case> cases{{&ours(), {8, 8, 8, Precision::f32}},
                                {&ours(), {8, 8, 8, Precision::f32, Layout::tn}}};
  for (const Case& one : end_to_end_cases(cases)) EXPECT_EQ(one.problem.layout, Layout::nn);
  EXPECT_EQ(end_to_end_cases(cases).size(), std::size(kTransfers));
}

TEST(Versus, ReadsKernelsAndTheirPrecisions) {
  const auto named = parse_versus("cuBLAS/math:default,f32:cuBLAS/math:pedantic,f33:X");
  ASSERT_EQ(named.size(), 3U);
  EXPECT_EQ(named[0].kernel, "cuBLAS/math:default");
  EXPECT_EQ(named[0].precision, std::nullopt);
  EXPECT_EQ(named[1].kernel, "cuBLAS/math:pedantic");
  EXPECT_EQ(named[1].precision, Precision::f32);
  EXPECT_EQ(named[2].kernel, "f33:X");
  EXPECT_EQ(parse_versus("").size(), 1U) << "which means no kernel, and is refused";
  EXPECT_EQ(parse_versus("library,").back().kernel, "");
}

TEST(Versus, MeansKernelsByNameByLabelOrAsALibrary) {
  RegisteredKernel kernel = ours();
  EXPECT_TRUE((Baseline{"Tiled"}.means(kernel)));
  EXPECT_TRUE((Baseline{"Tiled/tile:16"}.means(kernel)));
  EXPECT_FALSE((Baseline{"Tiled/tile:32"}.means(kernel)));
  EXPECT_FALSE((Baseline{"library"}.means(kernel)));
  kernel.family = "library";
  EXPECT_TRUE((Baseline{"library"}.means(kernel)));
}

std::vector<std::string> baselines(const Problem& p, const std::string& versus) {
  return names_of(baselines_of({&ours(), p}, parse_versus(versus), false));
}

TEST(Versus, TakesAllThatAreNamedOnTheSameProblem) {
  const Problem p{8, 9, 10, Precision::f32};
  EXPECT_EQ(baselines(p, "CpuNaive"), std::vector<std::string>{"CpuNaive/f32/8x9x10"});
  EXPECT_EQ(baselines(p, "CpuNaive,CpuBlocked,CpuNaive"),
            (std::vector<std::string>{"CpuNaive/f32/8x9x10", "CpuBlocked/f32/8x9x10"}));
  EXPECT_TRUE(baselines({8, 9, 10, Precision::f32, Layout::tn}, "CpuNaive").empty())
      << "it reads nn alone";
}

TEST(Versus, TakesAnotherPrecisionWhereNoOtherBaselineComputesThatOfTheRow) {
  const std::vector<std::string> in_f32{"CpuNaive/f32/8x9x10"};
  EXPECT_EQ(baselines({8, 9, 10, Precision::tf32}, "CpuBlocked,f32:CpuNaive"), in_f32);
  EXPECT_EQ(baselines({8, 9, 10, Precision::f32}, "CpuBlocked,f32:CpuNaive"),
            std::vector<std::string>{"CpuBlocked/f32/8x9x10"});
  EXPECT_EQ(baselines({8, 9, 10, Precision::f32}, "f32:CpuNaive"), in_f32);
  EXPECT_TRUE(baselines({8, 9, 10, Precision::tf32}, "CpuNaive").empty()) << "none was named";
  EXPECT_TRUE(baselines({8, 9, 10, Precision::bf16}, "f32:CpuNaive").empty())
      << "its operands are others";
}

}  // namespace
}  // namespace gemm::bench
