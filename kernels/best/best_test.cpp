// What Best runs before a trial, and where it runs at all.
#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <string>

#include "kernels/registered_kernels_test.hpp"

namespace gemm {
namespace {

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

// Before a trial Best is what the model puts first.
TEST(Best, IsThePlanOfTheShortestPredictionBeforeATrial) {
  SKIP_WITHOUT_GPU_KERNELS();
  const RegisteredKernel &best = *find("Best"), &predicted = *find("Best/pick:model");
  EXPECT_TRUE(predicted.variant) << "it runs on request";
  for (const Problem& p :
       {Problem{300, 500, 4096, Precision::bf16}, Problem{4096, 4096, 4096, Precision::f32},
        Problem{5, 3, 7, Precision::f64, Layout::tt}}) {
    EXPECT_FALSE(best.unsupported(p, kHopper));
    EXPECT_EQ(best.traffic(p, kHopper).l2, predicted.traffic(p, kHopper).l2);
    EXPECT_EQ(best.chosen(p, kHopper), std::nullopt);
    const auto choice = predicted.chosen(p, kHopper);
    ASSERT_TRUE(choice);
    EXPECT_EQ(choice->source, "model");
    EXPECT_NE(choice->name.find('/'), std::string::npos) << choice->name;
  }
}

// What only some kernels compute is tried among these.
TEST(Best, TakesBatchesGroupsAndEpiloguesOfKernelsThatHaveAModel) {
  SKIP_WITHOUT_GPU_KERNELS();
  const RegisteredKernel &best = *find("Best"), &predicted = *find("Best/pick:model");
  for (const std::int64_t m : {512, 100}) {
    const Problem batch{m, 520, 512, Precision::bf16, Layout::nt, 16};
    const auto kernel = predicted.chosen(batch, kHopper)->name;
    EXPECT_TRUE(kernel.starts_with("WgmmaBatched") || (m == 512 && kernel.starts_with("WgmmaStr")))
        << kernel << ": only tiles without rows of two products";
    EXPECT_GE(best.traffic(batch, kHopper).dram, bytes_minimum(batch));
  }
  Problem groups{512, 520, 512, Precision::bf16, Layout::nt, 16, Tokens::zipf};
  EXPECT_FALSE(best.unsupported(groups, kHopper));
  groups.precision = Precision::f32;
  EXPECT_TRUE(best.unsupported(groups, kHopper));
  Problem epilogue{512, 520, 512, Precision::bf16, Layout::nt};
  epilogue.activation = Activation::bias_gelu;
  EXPECT_TRUE(predicted.chosen(epilogue, kHopper)->name.starts_with("Wgmma"));
  epilogue.layout = Layout::tt;
  EXPECT_FALSE(best.unsupported(epilogue, kHopper));
  epilogue.n = 521;
  EXPECT_TRUE(best.unsupported(epilogue, kHopper));
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
