// The plans of MmaF64StreamK for a problem: tiles and their stream-K schedules.
//
// The model compares waves of whole tiles with shares of cut tiles and the exchange of their
// partial sums (tile_schedule.hpp), bounded by DRAM bandwidth.
#pragma once

#include <algorithm>
#include <cstddef>
#include <limits>
#include <optional>
#include <string>

#include "kernels/common/tile_launch.cuh"
#include "kernels/common/tile_schedule.hpp"
#include "kernels/tensor/mma_f64/mma_f64_tile.cuh"

namespace gemm::tensor {

// The tile of a block. Rates are FLOP/s of an SM of an H200: with as many blocks as fit, and with
// one; in between with others.
struct F64Choice {
  int rows, columns, depth, warp_rows, warp_columns, stages, blocks;
  double full, alone;

  constexpr int shared_bytes() const {
    return stages * (rows + columns) * depth * static_cast<int>(sizeof(double));
  }
  constexpr double k_tile_flop() const { return 2.0 * rows * columns * depth; }
  constexpr double rate(int of_blocks) const {
    return blocks == 1 ? full : alone + (full - alone) * (of_blocks - 1) / (blocks - 1);
  }
};
constexpr F64Choice kF64Choices[] = {
    {128, 128, 32, 32, 64, 3, 1, 0.42e12, 0.42e12}, {128, 64, 16, 32, 32, 4, 1, 0.40e12, 0.40e12},
    {64, 64, 32, 16, 32, 4, 1, 0.35e12, 0.35e12},   {32, 128, 16, 32, 32, 4, 2, 0.34e12, 0.28e12},
    {128, 32, 16, 32, 32, 4, 2, 0.37e12, 0.30e12},  {16, 128, 16, 16, 32, 4, 3, 0.20e12, 0.15e12},
    {128, 16, 16, 32, 16, 4, 3, 0.21e12, 0.16e12},  {64, 32, 32, 32, 16, 4, 2, 0.30e12, 0.24e12},
    {32, 64, 32, 16, 32, 4, 2, 0.30e12, 0.24e12},   {32, 32, 32, 16, 16, 4, 3, 0.27e12, 0.18e12},
};

inline std::optional<std::string> f64_unsupported(const Problem& p, const Device& device,
                                                  std::size_t choice) {
  const F64Choice& one = kF64Choices[choice];
  if (device.compute_capability < 80) return "requires compute capability 8.0";
  if (!simt::counts_fit(p, one.rows, one.columns, one.depth)) return simt::kCountsDoNotFit;
  return simt::shared_memory_unsupported(one.shared_bytes(), device);
}

struct F64Plan {
  std::size_t choice;
  simt::TileSchedule schedule;
  double seconds;
};

constexpr double kF64Launch = 3e-6;  // seconds of an empty launch
constexpr double kF64OfDram = 4.2e12 / Device::kH200Dram,
                 kF64OfL2 = 5.5e12 / Device::kH200L2;  // of the rates of reads

// The best schedule of a choice, with one or more blocks per SM.
inline F64Plan f64_plan_of(const Problem& p, const Device& device, std::size_t choice) {
  const F64Choice& one = kF64Choices[choice];
  F64Plan best{choice, {}, std::numeric_limits<double>::infinity()};
  const int sms = std::max(1, device.sm_count);
  const double sum_bytes = 1.0 * one.rows * one.columns * sizeof(double);
  const double k_tile_bytes = 1.0 * (one.rows + one.columns) * one.depth * sizeof(double);
  for (int blocks = 1; blocks <= one.blocks; ++blocks) {
    // A block's share of its SM and of the L2.
    const double l2 = kF64OfL2 * device.l2_bytes_per_second / (sms * blocks);
    simt::TileCost cost;
    cost.k_tile = std::max(device.clock_ratio() * one.k_tile_flop() * blocks / one.rate(blocks),
                           k_tile_bytes / l2);
    cost.finish = 1e-6 + sum_bytes / l2;
    cost.exchange = 2e-6 + 2 * sum_bytes / l2;
    cost.further = cost.exchange - 1e-6;
    const simt::TileSchedule schedule =
        simt::tile_schedule(p, one.rows, one.columns, one.depth, sms * blocks, cost);
    const double seconds = simt::seconds(schedule, cost);
    if (seconds < best.seconds) best = {choice, schedule, seconds};
  }
  best.seconds =
      kF64Launch +
      std::max(best.seconds, bytes_minimum(p) / (kF64OfDram * device.dram_bytes_per_second));
  return best;
}

}  // namespace gemm::tensor
