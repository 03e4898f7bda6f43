// The traffic models: the cost of a warp's access, tile sizes, and each kernel's model against
// others and against values computed by hand.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kernels/layout.hpp"
#include "kernels/parts/tile_traffic.hpp"
#include "kernels/parts/warp_access.hpp"
#include "kernels/registered_kernels_test.hpp"

namespace gemm {
namespace {

using simt::kLanes;
using simt::PairedLanes;
using simt::sectors;
using simt::wavefronts;

constexpr Problem kSquare{4096, 4096, 4096, Precision::f32};

Traffic traffic_of(std::string_view label, const Problem& p = kSquare) {
  const RegisteredKernel* kernel = find(label);
  if (kernel == nullptr) throw std::invalid_argument(std::string(label) + " is not registered");
  return kernel->traffic(p, kHopper);
}

TEST(WarpAccess, CountsSectorsOfGlobalMemory) {
  EXPECT_EQ(sectors(0), 1);          // a broadcast
  EXPECT_EQ(sectors(4), 4);          // a row of FP32
  EXPECT_EQ(sectors(2), 2);          // of FP16
  EXPECT_EQ(sectors(8), 8);          // of FP64
  EXPECT_EQ(sectors(4 * 4096), 32);  // a column
  EXPECT_EQ(sectors(4, 8), 1);       // a warp with 8 active lanes at an edge
  EXPECT_EQ(sectors(4 * 4096, 8), 8);
}

TEST(WarpAccess, CountsWavefrontsOfSharedMemory) {
  const auto row = [](int lane) { return lane; };
  const auto same = [](int) { return 7; };
  const auto column = [](int pitch) { return [=](int lane) { return lane * pitch; }; };
  EXPECT_EQ(wavefronts(4, row), 1);
  EXPECT_EQ(wavefronts(8, row), 2);
  EXPECT_EQ(wavefronts(2, row), 1);
  EXPECT_EQ(wavefronts(4, same), 1);
  // 16 bytes per lane: 8 lanes at once, 16 if they pair up; even if all lanes share one address.
  EXPECT_EQ(wavefronts(4, same, 4), 2);
  const auto paired = [](int lane) { return lane / 2 * 4; };
  const auto again = [](int lane) { return lane % 8 * 4; };
  const auto apart = [](int lane) { return lane % 16 * 16; };
  EXPECT_EQ(wavefronts(4, paired, 4), 2);
  EXPECT_EQ(wavefronts(4, again, 4), 4);
  EXPECT_EQ(wavefronts(4, apart, 4), 16);
  EXPECT_EQ(wavefronts(4, column(32)), 32);
  EXPECT_EQ(wavefronts(4, column(33)), 1);
  EXPECT_EQ(wavefronts(4, column(32), 4), 32);  // four words in the wavefronts of one
  EXPECT_EQ(wavefronts(4, column(4), 4), 4);    // 512 contiguous bytes
  EXPECT_EQ(wavefronts(4, column(2)), 2);
  EXPECT_EQ(wavefronts(2, column(2)), 1);
  // The 16 x 2 threads of a warp: one row of a tile per half warp, or 16 rows.
  EXPECT_EQ(wavefronts(4, [](int lane) { return lane / 16 * 16; }), 1);
  EXPECT_EQ(wavefronts(4, [](int lane) { return lane % 16 * 16; }), 8);
  EXPECT_EQ(wavefronts(4, [](int lane) { return lane % 16 * 17 + lane / 16; }), 2);
}

TEST(WarpAccess, PairedLanesLoadBothMatricesInTwoWavefronts) {
  const auto expect_paired = []<typename Lanes>(Lanes, int across) {
    std::set<std::pair<int, int>> places;
    for (int lane = 0; lane < kLanes; ++lane) {
      places.insert({Lanes::down(lane), Lanes::across(lane)});
      EXPECT_LT(Lanes::across(lane), across);
      EXPECT_LT(Lanes::down(lane), kLanes / across);
    }
    EXPECT_EQ(places.size(), 32U);
    const auto down = [](int lane) { return 4 * Lanes::down(lane); };
    const auto right = [](int lane) { return 4 * Lanes::across(lane); };
    EXPECT_EQ(wavefronts(4, down, 4), 2);
    EXPECT_EQ(wavefronts(4, right, 4), 2);
  };
  expect_paired(PairedLanes<4>{}, 4);
  expect_paired(PairedLanes<8>{}, 8);
  expect_paired(PairedLanes<16>{}, 16);
}

// A square tile of edge b loads 2 m n k / b elements, which is b / 4 FLOP per byte of FP32; the
// naive kernel has b = 1 unless threads share loads.
TEST(TileTraffic, ATileOfEdgeBAllowsAQuarterOfBFlopForEachByte) {
  for (const int edge : {1, 16, 32, 128}) {
    const double inputs = simt::tile_traffic(kSquare, edge, edge, edge, 0).l2 -
                          sizeof(float) * 1.0 * kSquare.m * kSquare.n;
    EXPECT_DOUBLE_EQ(flop(kSquare) / inputs, edge / 4.0);
  }
}

TEST(TileTraffic, CountsPaddingInSharedMemoryOnly) {
  const Problem ragged{33, 65, 17, Precision::f16};
  const Traffic traffic = simt::tile_traffic(ragged, 32, 64, 16, 10);
  EXPECT_EQ(traffic.dram, bytes_minimum(ragged));
  EXPECT_EQ(traffic.l2, 2.0 * (33 * 17 * 2 + 17 * 65 * 2 + 33 * 65));
  EXPECT_EQ(traffic.shared, 128.0 * 10 * 2 * 2 * 2);
}

TEST(Traffic, EveryKernelForCudaCoresHasAModel) {
  for (const RegisteredKernel& kernel : registry())
    EXPECT_TRUE(kernel.traffic || kernel.family != "simt") << kernel.label();
}

// Every element must be loaded at least once.
TEST(Traffic, IsFiniteAndNoLessThanCompulsory) {
  constexpr std::int64_t kSizes[][4] = {
      {1, 1, 1, 1},         {1, 300, 5, 1},     {300, 1, 5, 1},       {33, 65, 17, 1},
      {64, 96, 128, 1},     {255, 257, 9, 1},   {8, 8, 2049, 1},      {4092, 4092, 4092, 1},
      {46400, 46400, 8, 1}, {4, 1 << 20, 3, 1}, {70000, 8, 32768, 1}, {33, 65, 64, 1000},
      {192, 65, 64, 7}};
  for (const RegisteredKernel& kernel : registry()) {
    if (!kernel.traffic) continue;
    for (const Precision precision : kernel.precisions)
      for (const Layout layout : kernel.layouts)
        for (const auto& [m, n, k, batch] : kSizes) {
          const Problem p{m, n, k, precision, layout, static_cast<std::int32_t>(batch)};
          if (kernel.unsupported && kernel.unsupported(p, kHopper)) continue;
          const Traffic traffic = kernel.traffic(p, kHopper);
          EXPECT_TRUE(std::isfinite(traffic.dram + traffic.l2 + traffic.shared)) << kernel.label();
          EXPECT_GE(traffic.dram, bytes_minimum(p)) << kernel.label() << m << "x" << n << "x" << k;
          EXPECT_GE(traffic.l2, bytes_minimum(p)) << kernel.label() << m << "x" << n << "x" << k;
          EXPECT_GE(traffic.shared, 0) << kernel.label();
        }
  }
}

TEST(Traffic, OfTheNaiveKernelsMatchesValuesByHand) {
  SKIP_WITHOUT_GPU_KERNELS();
  const Problem p{1024, 2048, 512, Precision::f32};
  constexpr double kWarps = 1024 * 2048 / 32;
  // Sectors: 4 of B and 1 of A per step, and 4 of C.
  EXPECT_DOUBLE_EQ(traffic_of("Naive", p).l2, 32 * kWarps * (512 * 5 + 4));
  EXPECT_DOUBLE_EQ(traffic_of("NaiveUncoalesced", p).l2, 32 * kWarps * (512 * 33 + 32));
  EXPECT_EQ(traffic_of("Naive", p).shared, 0);
  // The transpose reads and writes A once more.
  const Traffic apart = traffic_of("NaiveTransposed/transpose:apart", p),
                timed = traffic_of("NaiveTransposed/transpose:timed", p);
  EXPECT_DOUBLE_EQ(apart.l2, traffic_of("Naive", p).l2);
  EXPECT_DOUBLE_EQ(timed.l2 - apart.l2, 2.0 * 4 * 1024 * 512);
  EXPECT_DOUBLE_EQ(timed.dram - apart.dram, 2.0 * 4 * 1024 * 512);
  const Problem half{1024, 2048, 512, Precision::f16};
  EXPECT_DOUBLE_EQ(traffic_of("Naive", half).l2, 32 * kWarps * (512 * 3 + 2));
}

TEST(Traffic, OfTheTiledKernelsMatchesValuesByHand) {
  SKIP_WITHOUT_GPU_KERNELS();
  const Problem p{64, 96, 128, Precision::f32};  // 2 x 3 tiles of 32, 4 steps
  const Traffic tiled = traffic_of("Tiled/tile:32", p);
  EXPECT_EQ(tiled.l2, 4.0 * (64 * 128 * 3 + 128 * 96 * 2 + 64 * 96));
  // A warp stores a row of each tile, and loads 32 rows of B's tile and 8 vectors of four elements
  // of A's, at two wavefronts each.
  EXPECT_EQ(tiled.shared, 128.0 * (2 * 3 * 4) * 32 * (2 + 32 + 8 * 2));
  EXPECT_EQ(traffic_of("TiledExact/tile:32", p).shared, tiled.shared);
  // One block and one step: 32 warps store one row of each tile, and in each of 8 rounds load a row
  // of B and 4 vectors of A.
  const Problem one{128, 128, 8, Precision::f32};
  const Traffic block = traffic_of("BlockTile1D/BM:128/BN:128/BK:8/NR:16", one);
  EXPECT_EQ(block.l2, 4.0 * (128 * 8 + 8 * 128 + 128 * 128));
  EXPECT_EQ(block.shared, 128.0 * 32 * (2 + 8 * (1 + 4 * 2)));
  // 2 warps: 4 stores of 2 wavefronts, 16 columns of A in vectors of four. B is not staged.
  const Traffic outer = traffic_of("OuterProduct", {16, 64, 16, Precision::f32});
  EXPECT_EQ(outer.l2, 4.0 * (16 * 16 + 16 * 64 + 16 * 64));
  EXPECT_EQ(outer.shared, 128.0 * 2 * (4 * 2 + 16 * 4 * 2));
}

// l1tex__data_pipe_lsu_wavefronts_mem_shared.sum of Nsight Compute at 1024.
TEST(Traffic, OfSharedMemoryMatchesCountersOfAnH200) {
  SKIP_WITHOUT_GPU_KERNELS();
  const std::pair<const char*, double> counted[] = {
      {"Tiled/tile:32", 52881740},
      {"TiledTransposedStore", 369559422},
      {"TiledPadded", 69601887},
      {"TiledTransposedB", 155977699},
      {"TiledConflictFree", 55491956},
      {"BlockTile1D/BM:128/BN:128/BK:8/NR:16", 19514896},
      {"OuterProductUnrolled", 18057763},
      {"BlockTile2D/BM:128/BN:128/BK:16/TM:8/TN:8", 6836861},
      {"Vectorized/BM:128/BN:128/BK:16/TM:8/TN:8", 7102682},
  };
  const Problem p{1024, 1024, 1024, Precision::f32};
  for (const auto& [label, wavefronts] : counted)
    EXPECT_NEAR(traffic_of(label, p).shared / 128 / wavefronts, 1, 0.03) << label;
}

TEST(Unsupported, NamesTheComputeCapabilityThatTheCodeIsFor) {
  SKIP_WITHOUT_GPU_KERNELS();
  const struct {
    const char* label;
    Precision precision;
    Layout layout;
    std::vector<int> without, with;
    std::string reason;
  } cases[] = {
      {"AsyncCopy", Precision::f32, Layout::nn, {75}, {80, 86, 90, 100, 120}, "8.0"},
      {"3xTF32", Precision::tf32x3, Layout::nt, {75, 80, 89, 100, 120}, {}, "9.0"},
      {"WgmmaPingPong", Precision::bf16, Layout::nt, {75, 80, 89, 100, 120}, {}, "9.0"},
      {"MmaSync", Precision::f16, Layout::nt, {}, {75}, ""},
      {"MmaSync", Precision::s8, Layout::nt, {}, {75}, ""},
      {"MmaSync", Precision::bf16, Layout::nt, {75}, {86}, "8.0"},
      {"MmaSync", Precision::tf32, Layout::nt, {75}, {86}, "8.0"},
      {"MmaSyncMultistage", Precision::f16, Layout::nt, {75}, {}, "8.0"},
      {"MmaSyncRasterized", Precision::bf16, Layout::nt, {}, {86, 89, 90, 120}, ""},
      {"MmaF64", Precision::f64, Layout::nt, {75}, {}, "8.0"},
  };
  for (const auto& one : cases) {
    const auto reason = [&](int compute_capability) {
      Device device = kHopper;
      device.compute_capability = compute_capability;
      return find(one.label)
          ->unsupported({64, 64, 64, one.precision, one.layout}, device)
          .value_or("");
    };
    for (const int capability : one.without)
      EXPECT_NE(reason(capability).find("requires compute capability " + one.reason),
                std::string::npos)
          << one.label << capability;
    for (const int capability : one.with) EXPECT_EQ(reason(capability), "") << one.label;
  }
}

// TMA and copies of 16 bytes begin at multiples of 16 bytes.
TEST(TensorCores, NeedRowsThatBeginAtMultiplesOf16Bytes) {
  SKIP_WITHOUT_GPU_KERNELS();
  const std::pair<const char*, Precision> rungs[] = {
      {"WmmaTiled", Precision::bf16},       {"MmaSyncRasterized", Precision::f16},
      {"MmaSync", Precision::s8},           {"MmaSync", Precision::tf32},
      {"MmaF64Multistage", Precision::f64}, {"3xTF32", Precision::tf32x3},
      {"WgmmaMulticast", Precision::bf16}};
  for (const auto& [label, precision] : rungs) {
    const std::int64_t chunk = 16 / traits_of(precision).input_bytes;
    const auto reason = [&, label = label, precision = precision](std::int64_t k) {
      return find(label)->unsupported({7, 9, k, precision, Layout::nt}, kHopper).value_or("");
    };
    EXPECT_EQ(reason(chunk).find("multiple"), std::string::npos) << label;
    EXPECT_NE(reason(3 * chunk / 2).find("multiple of " + std::to_string(chunk)), std::string::npos)
        << label;
    EXPECT_EQ(find(label)->layouts, std::vector{Layout::nt}) << label;
  }
}

TEST(TensorCores, TheTrafficOfRungsMatchesValuesByHand) {
  SKIP_WITHOUT_GPU_KERNELS();
  const Problem p{256, 512, 128, Precision::bf16, Layout::nt};
  const double a = 2 * 256 * 128, b = 2 * 512 * 128, c = 2 * 256 * 512;
  // 2 x 2 tiles of 128 x 256, 2 K tiles: TMA writes 384 lines of 128 bytes, wgmma reads 128 of A,
  // and 256 of B twice.
  const Traffic persistent = traffic_of("WgmmaPersistent", p);
  EXPECT_EQ(persistent.dram, a + b + c);
  EXPECT_EQ(persistent.l2, 2 * a + 2 * b + 2 * c);
  EXPECT_EQ(persistent.shared, 2 * 2 * 2 * 128.0 * (384 + 128 + 2 * 256));
  const Traffic by_tma = traffic_of("WgmmaTmaStore", p), shared_b = traffic_of("WgmmaMulticast", p);
  EXPECT_EQ(by_tma.l2, 2 * a + 2 * b + c);
  EXPECT_EQ(by_tma.shared, persistent.shared + 2 * c);
  EXPECT_EQ(shared_b.l2, 2 * a + b + c) << "both blocks of a cluster load B once";
  // 2 x 4 tiles of 128 x 128, 4 K tiles of 64 bytes: copies, and fragments of 4 warps of 64 x 64.
  const Traffic mma = traffic_of("MmaSyncMultistage", p);
  EXPECT_EQ(mma.l2, 4 * a + 2 * b + c);
  EXPECT_EQ(mma.shared, 2 * 4 * 4 * 64.0 * (256 + 4 * 128));
}

TEST(Wgmma, TransposesWhatNeitherSharedMemoryNorRegistersTake) {
  SKIP_WITHOUT_GPU_KERNELS();
  const auto packed = [](Precision precision, Layout layout, std::int64_t n = 512) {
    const Problem p{256, n, 64, precision, layout};  // no tile is cut
    return traffic_of("WgmmaStreamK", p).dram - bytes_minimum(p);
  };
  const double a = 2 * 256 * 64, b = 2 * 512 * 64;  // elements, read and written
  for (const Layout layout : kLayouts) EXPECT_EQ(packed(Precision::bf16, layout), 0);
  for (const Layout layout : {Layout::nn, Layout::nt, Layout::tt})
    EXPECT_EQ(packed(Precision::tf32, layout), 0);
  EXPECT_EQ(packed(Precision::tf32, Layout::tn), 4 * b);
  EXPECT_EQ(packed(Precision::s8, Layout::nn), b);
  EXPECT_EQ(packed(Precision::s8, Layout::nt), 0);
  EXPECT_EQ(packed(Precision::s8, Layout::tn), a + b);
  EXPECT_EQ(packed(Precision::tf32, Layout::nn, 510), 4 * 2 * 64 * 510)
      << "rows not aligned to 16 bytes";
}

TEST(TiledExact, RequiresMultiplesOfItsTile) {
  SKIP_WITHOUT_GPU_KERNELS();
  const RegisteredKernel& kernel = *find("TiledExact/tile:32");
  EXPECT_EQ(kernel.unsupported({64, 96, 32, Precision::f32}, kHopper), std::nullopt);
  for (const Problem& p : {Problem{48, 64, 64, Precision::f32}, Problem{64, 48, 64, Precision::f32},
                           Problem{64, 64, 48, Precision::f32}})
    EXPECT_NE(kernel.unsupported(p, kHopper).value_or("").find("multiples of 32"),
              std::string::npos);
}

}  // namespace
}  // namespace gemm
