// The time models by which Best picks, against measurements on an H200, and Best's choices.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "kernels/registry.hpp"

namespace gemm {
namespace {

const Device kHopper{.kind = Device::Kind::gpu,
                     .compute_capability = 90,
                     .sm_count = 132,
                     .last_level_cache_bytes = 60 << 20};

// Null in builds without CUDA.
const RegisteredKernel* find(std::string_view label) {
  const auto& all = registry();
  const auto found = std::ranges::find(all, label, &RegisteredKernel::label);
  return found == all.end() ? nullptr : &*found;
}

#define SKIP_WITHOUT_GPU_KERNELS() \
  if (find("Best") == nullptr) GTEST_SKIP() << "built without CUDA"

struct Measured {
  std::string_view kernel;
  std::array<std::int64_t, 3> shape;
  double seconds;
  Precision precision = Precision::f32;
  Layout layout = Layout::nn;
};

// Medians of results/nvidia-h200/20261121T164023Z-5bb8f2db9684.json and, of problems that are not
// square, 20261121T163741Z-5bb8f2db9684.json; of tensor cores 20261121T224640Z and 224754Z, commit
// 6b5c40e6e519, and 214645Z, commit 92b543e73460; of TF32 in layout nn
// kernels/ladder/tensor/NOTES.md; of random shapes 20261123T040811Z to T040952Z, commit
// 212d016f04d7; 5376x9568x32 and 96x624x1568 are time_plans' figures.
constexpr Measured kMeasured[] = {
    {"SharedDoubleBuffer", {4096, 4096, 4096}, 3030e-6},
    {"AsyncCopy", {512, 512, 512}, 17.57e-6},
    {"AsyncCopy", {1020, 1020, 1020}, 63.52e-6},
    {"AsyncCopy", {4096, 4096, 4096}, 2985e-6},
    {"Rasterized", {4096, 4096, 4096}, 2938e-6},
    {"StreamK", {1020, 1020, 1020}, 66.6e-6},
    {"StreamK", {2048, 2048, 2048}, 357.0e-6},
    {"StreamK", {4096, 4096, 4096}, 2610e-6},
    {"SplitK", {512, 512, 512}, 13.01e-6},
    {"SplitK", {1, 4096, 4096}, 20.06e-6},
    {"SplitK", {16, 4096, 4096}, 26.95e-6},
    {"SplitK", {64, 4096, 4096}, 64.54e-6},
    {"Gemv", {512, 8, 500000}, 267.1e-6},
    {"WgmmaStreamK", {1024, 1024, 1024}, 6.146e-6, Precision::bf16},
    {"WgmmaStreamK", {2048, 2048, 2048}, 27.83e-6, Precision::bf16},
    {"WgmmaStreamK", {3072, 3072, 3072}, 87.07e-6, Precision::bf16},
    {"WgmmaStreamK", {8192, 8192, 8192}, 1599e-6, Precision::bf16},
    {"WgmmaStreamK", {2048, 2048, 2048}, 53.53e-6, Precision::tf32, Layout::nt},
    {"WgmmaStreamK", {3072, 3072, 3072}, 172.5e-6, Precision::tf32, Layout::nt},
    {"WgmmaStreamK", {1024, 1024, 1024}, 13.03e-6, Precision::tf32},
    {"WgmmaStreamK", {1280, 1280, 1280}, 20.75e-6, Precision::tf32},
    {"WgmmaStreamK", {1536, 1536, 1536}, 27.96e-6, Precision::tf32},
    {"WgmmaStreamK", {3072, 3072, 3072}, 186.6e-6, Precision::tf32},
    {"WgmmaStreamK", {4096, 4096, 4096}, 394.2e-6, Precision::tf32},
    {"WgmmaStreamK", {8192, 8192, 8192}, 3212e-6, Precision::tf32},
    {"WgmmaStreamK", {4096, 4096, 4096}, 109.7e-6, Precision::e4m3fast, Layout::nt},
    {"WgmmaStreamK", {8192, 8192, 8192}, 810.1e-6, Precision::s8, Layout::nt},
    {"WgmmaStreamK", {2048, 2048, 2048}, 17.28e-6, Precision::e4m3, Layout::nt},
    {"WgmmaStreamK", {3072, 3072, 3072}, 52.84e-6, Precision::e4m3, Layout::nt},
    {"WgmmaSwapped", {1, 4096, 4096}, 10.78e-6, Precision::bf16, Layout::nt},
    {"WgmmaSwapped", {16, 6144, 4096}, 14.33e-6, Precision::bf16, Layout::nt},
    {"WgmmaSwapped", {1, 6144, 4096}, 8.018e-6, Precision::e4m3, Layout::nt},
    {"WgmmaSwapped", {64, 4096, 4096}, 12.41e-6, Precision::bf16, Layout::nt},
    {"WgmmaSwapped", {64, 4096, 14336}, 19.44e-6, Precision::e4m3, Layout::nt},
    // C that is not stored by TMA; the first two on an H100.
    {"WgmmaStreamK", {4445, 3285, 85}, 32.3e-6, Precision::bf16},
    {"WgmmaStreamK", {941, 13546, 33}, 28.1e-6, Precision::bf16},
    {"WgmmaStreamK", {10842, 1372, 510}, 54.7e-6, Precision::bf16},
    {"WgmmaStreamK", {5376, 9568, 32}, 58.5e-6, Precision::s8, Layout::nt},
    {"WgmmaStreamK", {12240, 1376, 64}, 23.0e-6, Precision::tf32},
    // Rows that are not aligned to lines, and an operand that stays in the L2.
    {"WgmmaStreamK", {8912, 240, 15376}, 126.8e-6, Precision::bf16},
    {"WgmmaStreamK", {8912, 240, 15376}, 84.8e-6, Precision::e4m3fast, Layout::nt},
    {"WgmmaStreamK", {2736, 288, 1216}, 9.0e-6, Precision::bf16},
    // Few tiles.
    {"WgmmaStreamK", {464, 112, 2096}, 6.6e-6, Precision::bf16},
    // Stores of 64 and more tokens, and packing.
    {"WgmmaSwapped", {96, 624, 1568}, 5.1e-6, Precision::bf16},
    {"WgmmaSwapped", {5328, 16, 14976}, 47.2e-6, Precision::bf16},
    {"WgmmaSwapped", {407, 51, 5089}, 11.6e-6, Precision::bf16},
    // Rows that are not aligned to 16 bytes.
    {"AsyncCopy", {4713, 132, 6157}, 602e-6},
};

TEST(Estimate, IsNearTheMeasurement) {
  SKIP_WITHOUT_GPU_KERNELS();
  for (const Measured& row : kMeasured) {
    const Problem p{row.shape[0], row.shape[1], row.shape[2], row.precision, row.layout};
    const double seconds = find(row.kernel)->estimate(p, kHopper);
    EXPECT_NEAR(seconds / row.seconds, 1, 0.2)
        << row.kernel << " at " << p.m << "x" << p.n << "x" << p.k;
  }
}

// Rows of C aligned to 16 bytes, to 8, and to 4.
TEST(Estimate, StoresAlignedRowsFaster) {
  SKIP_WITHOUT_GPU_KERNELS();
  const auto seconds = [](std::int64_t n) {
    return find("WgmmaStreamK")->estimate({8192, n, 32, Precision::s8, Layout::nt}, kHopper);
  };
  EXPECT_GT(seconds(4094), 1.2 * seconds(4096));
  EXPECT_GT(seconds(4095), 1.5 * seconds(4096));
}

TEST(Estimate, GrowsWithTheProblem) {
  SKIP_WITHOUT_GPU_KERNELS();
  for (const RegisteredKernel& kernel : registry()) {
    if (!kernel.estimate) continue;
    double before = 0;
    for (const std::int64_t size : {16, 64, 256, 1024, 4096, 16384}) {
      const Problem p{size, size, size, kernel.precisions.at(0)};
      if (kernel.unsupported && kernel.unsupported(p, kHopper)) continue;
      const double seconds = kernel.estimate(p, kHopper);
      // The smallest sizes all cost a launch, and TMA some time where a matrix is narrower than a
      // box.
      if (size > 256) {
        EXPECT_GT(seconds, before) << kernel.label() << " at " << size;
      }
      EXPECT_GE(seconds, 0.96 * before) << kernel.label() << " at " << size;
      before = seconds;
    }
  }
}

// With fewer SMs it takes longer where arithmetic is the bottleneck.
TEST(Estimate, DependsOnTheNumberOfSms) {
  SKIP_WITHOUT_GPU_KERNELS();
  Device small = kHopper;
  small.sm_count = 40;
  for (const auto& [name, n] : {std::pair{"SplitK", 512}, {"StreamK", 4096}, {"AsyncCopy", 4096}}) {
    const Problem p{4096, n, 4096, Precision::f32};
    EXPECT_GT(find(name)->estimate(p, small), 2.5 * find(name)->estimate(p, kHopper)) << name;
  }
}

// Costs are those of an SM and shares of a memory's rate, not of 132 SMs: twice the problem takes
// twice the GPU equally long.
TEST(Estimate, IsTheSameForTwiceTheProblemOnTwiceTheGpu) {
  SKIP_WITHOUT_GPU_KERNELS();
  Device twice = kHopper;
  twice.sm_count *= 2;
  twice.last_level_cache_bytes *= 2;
  twice.dram_bytes_per_second *= 2;
  twice.l2_bytes_per_second *= 2;
  for (const RegisteredKernel& kernel : registry())
    for (const std::int64_t n : {8, 8192}) {
      const Problem p{n == 8 ? 135168 : 256, n, 8192, kernel.precisions.at(0)};
      Problem larger = p;
      (n == 8 ? larger.m : larger.n) *= 2;
      if (!kernel.estimate || (kernel.unsupported && kernel.unsupported(p, kHopper))) continue;
      EXPECT_NEAR(kernel.estimate(larger, twice) / kernel.estimate(p, kHopper), 1, 0.025)
          << kernel.label() << " at n = " << n;
    }
}

// An H100 has 0.70 of an H200's DRAM rate, and the same SMs.
TEST(Estimate, FollowsTheRateOfDramWhereThatIsTheBottleneck) {
  SKIP_WITHOUT_GPU_KERNELS();
  Device h100 = kHopper;
  h100.dram_bytes_per_second = 3.23e12;
  const double ratio = kHopper.dram_bytes_per_second / h100.dram_bytes_per_second;
  const auto slower = [&](std::string_view kernel, const Problem& p) {
    return find(kernel)->estimate(p, h100) / find(kernel)->estimate(p, kHopper);
  };
  const Problem decode{8, 28672, 8192, Precision::bf16, Layout::nt};
  EXPECT_NEAR(slower("WgmmaSwapped", decode), ratio, 0.05);
  EXPECT_NEAR(slower("Best", decode), ratio, 0.05);
  EXPECT_NEAR(slower("SplitK", {1, 28672, 8192, Precision::f32}), ratio, 0.04);
  EXPECT_NEAR(slower("MmaF64StreamK", {8, 28672, 8192, Precision::f64}), ratio, 0.1);
  EXPECT_GT(slower("StreamK", {512, 512, 8192, Precision::f32}), 1) << "packing";
  EXPECT_NEAR(slower("StreamK", {4096, 4096, 4096, Precision::f32, Layout::tn}), 1, 0.002);
  EXPECT_NEAR(slower("StreamK", {2160, 8256, 16, Precision::f32}), 1.2, 0.1) << "stores";
  EXPECT_NEAR(slower("WgmmaStreamK", {4096, 4096, 4096, Precision::bf16}), 1, 0.01);
}

TEST(Estimate, FollowsTheClockOfTheSms) {
  SKIP_WITHOUT_GPU_KERNELS();
  Device slow = kHopper;
  slow.sm_hz /= 2;
  for (const auto& [name, precision] : {std::pair{"StreamK", Precision::f32},
                                        {"AsyncCopy", Precision::f32},
                                        {"SharedDoubleBuffer", Precision::f32},
                                        {"WgmmaStreamK", Precision::bf16},
                                        {"MmaF64StreamK", Precision::f64}}) {
    const Problem p{4096, 4096, 4096, precision, Layout::nn};
    EXPECT_NEAR(find(name)->estimate(p, slow) / find(name)->estimate(p, kHopper), 2, 0.1) << name;
  }
}

// Best/pick:tried chooses among them.
TEST(Candidates, AreSeveralPlansWithTheirTraffic) {
  SKIP_WITHOUT_GPU_KERNELS();
  const auto plans = [](std::string_view kernel, const Problem& p) {
    std::vector<Candidate> all = find(kernel)->candidates(p, kHopper);
    const double least = std::ranges::min(all, {}, &Candidate::seconds).seconds;
    EXPECT_EQ(find(kernel)->estimate(p, kHopper), least) << kernel;
    for (const Candidate& one : all) EXPECT_GE(one.traffic.dram, bytes_minimum(p)) << kernel;
    return all.size();
  };
  EXPECT_GE(plans("WgmmaStreamK", {300, 500, 4096, Precision::bf16}), 16U);
  EXPECT_GE(plans("WgmmaSwapped", {50, 500, 4096, Precision::bf16}), 16U);
  EXPECT_EQ(plans("MmaF64StreamK", {300, 500, 4096, Precision::f64}), 12U);
  EXPECT_EQ(plans("SplitK", {300, 500, 4096, Precision::f32}), 24U);
  EXPECT_EQ(plans("Gemv", {300, 5, 4096, Precision::f32}), 4U);
}

// Records store the traffic model wherever a kernel supports the problem.
TEST(Estimate, ThrowsNothingWhateverTheSize) {
  for (const RegisteredKernel& kernel : registry())
    for (const std::int64_t size : {std::int64_t{1}, std::int64_t{131072}, std::int64_t{1} << 31}) {
      if (kernel.runs_on != Device::Kind::gpu || kernel.is_library()) continue;
      const Problem p{size, size, size, kernel.precisions.at(0), kernel.layouts.at(0)};
      const auto ask = [&] {
        if (kernel.unsupported && kernel.unsupported(p, kHopper)) return;
        if (kernel.traffic) kernel.traffic(p, kHopper);
        if (kernel.estimate) kernel.estimate(p, kHopper);
      };
      EXPECT_NO_THROW(ask()) << kernel.label() << " at " << size;
    }
}

// Best's traffic is that of the kernel it picked.
TEST(Best, PicksTheKernelWithTheShortestPrediction) {
  SKIP_WITHOUT_GPU_KERNELS();
  const auto picks = [](std::string_view kernel, const Problem& p) {
    const Traffic best = find("Best")->traffic(p, kHopper);
    const Traffic its = find(kernel)->traffic(p, kHopper);
    EXPECT_TRUE(best.dram == its.dram && best.l2 == its.l2 && best.shared == its.shared)
        << kernel << " at " << p.m << "x" << p.n << "x" << p.k;
  };
  picks("StreamK", {4096, 4096, 4096, Precision::f32});
  picks("StreamK", {3072, 3072, 3072, Precision::f32, Layout::tt});
  picks("SplitK", {16, 4096, 4096, Precision::f32});
  picks("Gemv", {512, 8, 500000, Precision::f32});
  picks("AsyncCopy/BM:32/BN:128/BK:16/WM:32/WN:64/stages:3", {272, 6160, 128, Precision::f32});
  picks("AsyncCopy/BM:64/BN:64/BK:16/WM:32/WN:64/stages:4", {3024, 288, 64, Precision::f32});
  picks("SplitK", {704, 768, 1024, Precision::f32});
  picks("WgmmaStreamK", {4096, 4096, 4096, Precision::bf16});
  picks("WgmmaStreamK", {8192, 8192, 8192, Precision::e4m3, Layout::nt});
  picks("WgmmaSwapped", {1020, 1020, 1020, Precision::e4m3});
  picks("WgmmaSwapped", {8, 2112, 7168, Precision::bf16, Layout::nt});
  picks("WgmmaSwapped", {80, 1536, 7168, Precision::bf16, Layout::nt});
  picks("WgmmaSwapped", {48, 432, 2480, Precision::bf16});
  picks("WgmmaStreamK", {48, 14240, 256, Precision::bf16});
  picks("WgmmaStreamK", {13472, 128, 128, Precision::e4m3fast, Layout::nt});
  picks("WgmmaSwapped", {144, 428, 960, Precision::e4m3fast, Layout::nt});
  picks("WgmmaSwapped", {64, 848, 2032, Precision::tf32});
  picks("MmaSyncUnaligned", {12041, 20, 16154, Precision::bf16});
  picks("MmaSyncUnaligned", {7801, 91, 87, Precision::f16});
  picks("MmaSyncUnaligned", {4012, 23, 3753, Precision::tf32});
  picks("WgmmaStreamK", {3001, 3001, 3001, Precision::bf16});
  picks("WgmmaStreamK", {4141, 1554, 80, Precision::bf16});
  picks("SplitK", {192, 496, 4496, Precision::f32});
  picks("MmaF64StreamK", {4096, 4096, 4096, Precision::f64});
  picks("MmaF64StreamK", {1, 28672, 4096, Precision::f64, Layout::tt});
}

// It copies chunks of 16 bytes; the columns of tiles are a grid's second dimension.
TEST(MmaSyncUnaligned, RefusesShortRowsAndVeryWideC) {
  SKIP_WITHOUT_GPU_KERNELS();
  const auto refuses = [](const Problem& p) {
    return find("MmaSyncUnaligned")->unsupported(p, kHopper).has_value();
  };
  EXPECT_TRUE(refuses({300, 300, 7, Precision::bf16}));
  EXPECT_FALSE(refuses({300, 301, 9, Precision::bf16}));
  EXPECT_FALSE(refuses({300, 301, 7, Precision::tf32}));
  EXPECT_TRUE(refuses({300, 1 << 23, 9, Precision::bf16}));
}

// Before it tried any, by the estimates.
TEST(Best, IsOfferedWithATrialOfTheCandidates) {
  SKIP_WITHOUT_GPU_KERNELS();
  const RegisteredKernel& tried = *find("Best/pick:tried");
  EXPECT_TRUE(tried.variant) << "it runs on request";
  for (const Problem& p :
       {Problem{300, 500, 4096, Precision::bf16}, Problem{4096, 4096, 4096, Precision::f32},
        Problem{5, 3, 7, Precision::f64, Layout::tt}}) {
    EXPECT_FALSE(tried.unsupported(p, kHopper));
    EXPECT_EQ(tried.traffic(p, kHopper).l2, find("Best")->traffic(p, kHopper).l2);
  }
}

// Tiles that need more shared memory than the device has are left out.
TEST(Best, RunsFp64WhereTensorCoresHaveIt) {
  SKIP_WITHOUT_GPU_KERNELS();
  const Problem p{4096, 4096, 4096, Precision::f64};
  for (const int capability : {80, 86, 90, 100, 120}) {
    const Device device{
        .kind = Device::Kind::gpu, .compute_capability = capability, .sm_count = 100};
    EXPECT_FALSE(find("Best")->unsupported(p, device)) << capability;
    EXPECT_GT(find("Best")->traffic(p, device).shared, 0) << capability;
  }
}

TEST(Best, GivesAReasonWhereNoKernelRuns) {
  SKIP_WITHOUT_GPU_KERNELS();
  const Device turing{.kind = Device::Kind::gpu, .compute_capability = 75, .sm_count = 40};
  const RegisteredKernel& best = *find("Best");
  EXPECT_FALSE(best.unsupported({4096, 4096, 4096, Precision::f32}, turing));
  EXPECT_TRUE(best.unsupported({4096, 4096, 4096, Precision::f32, Layout::tt}, turing));
  EXPECT_TRUE(best.unsupported({4096, 4096, 4096, Precision::f32}, Device{}));
}

}  // namespace
}  // namespace gemm
