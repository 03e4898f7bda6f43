// The plans of WgmmaStreamK for a problem: tiles, each with a few stream-K schedules.
//
// The model compares waves of whole tiles, each with its K tiles and a store, with shares of cut
// tiles and the exchange of their partial sums (tile_schedule.hpp), bounded by DRAM bandwidth. Its
// constants are fitted to measurements of an H200, some of an H100 too (NOTES.md). Promoted FP8 has
// its own shapes, which leave registers for the second accumulators; so has TF32 with A through
// registers, where cooperative consumers are faster than ping-pong.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "kernels/parts/packed_operand.cuh"
#include "kernels/parts/tile_schedule.hpp"
#include "kernels/parts/wgmma_launch.cuh"

namespace gemm::tensor {

// The tile of a block.
struct StreamKShape {
  int rows, columns;
  int stages;  // at most; fewer if shared memory does not suffice
  int consumers = 2;
  int cluster = 2;         // blocks that share loads of B, as in WgmmaMulticast
  bool ping_pong = false;  // ping-pong schedule, else cooperative
  bool promoted = false;   // FP8 accumulators are promoted every 128 steps of k
  int staged = 128;        // columns of C that a consumer stages at once

  constexpr int cluster_rows() const { return cluster * rows; }
};

// A shape with its measured cost.
struct Choice {
  StreamKShape shape;
  double k_tile;  // seconds of one K tile, 128 bytes along k, in whole waves
  int group;      // rows of tiles per rasterization group
  int bytes = 1;  // minimum element size; with smaller ones ping-pong was faster
};
constexpr Choice kFast[] = {
    {{.rows = 128, .columns = 128, .stages = 6, .ping_pong = true}, 0.37e-6, 8},
    {{.rows = 128, .columns = 192, .stages = 4, .ping_pong = true, .staged = 192}, 0.51e-6, 8},
    {{.rows = 64, .columns = 128, .stages = 8, .cluster = 1, .ping_pong = true}, 0.23e-6, 16},
    {{.rows = 128, .columns = 256, .stages = 4, .staged = 256}, 0.745e-6, 8, 2},
    {{.rows = 128, .columns = 256, .stages = 4, .cluster = 1, .staged = 256}, 0.74e-6, 16},
    {{.rows = 256, .columns = 128, .stages = 4, .cluster = 1}, 0.735e-6, 8, 2},
    {{.rows = 128, .columns = 128, .stages = 6, .cluster = 1}, 0.375e-6, 16, 2},
    {{.rows = 64, .columns = 64, .stages = 12, .cluster = 1, .ping_pong = true, .staged = 64},
     0.154e-6,
     16},
    {{.rows = 128, .columns = 96, .stages = 7, .ping_pong = true, .staged = 96}, 0.31e-6, 8},
    {{.rows = 128, .columns = 160, .stages = 5, .ping_pong = true, .staged = 160}, 0.455e-6, 8},
    {{.rows = 128, .columns = 224, .stages = 4, .staged = 224}, 0.69e-6, 8},
};
constexpr Choice kPromoted[] = {
    {{.rows = 256, .columns = 128, .stages = 4, .cluster = 1, .promoted = true}, 0.9e-6, 16},
    {{.rows = 192, .columns = 128, .stages = 4, .consumers = 3, .cluster = 1, .promoted = true},
     0.68e-6,
     16},
    {{.rows = 128, .columns = 128, .stages = 6, .cluster = 1, .promoted = true}, 0.5e-6, 16},
    {{.rows = 64,
      .columns = 64,
      .stages = 12,
      .cluster = 1,
      .ping_pong = true,
      .promoted = true,
      .staged = 64},
     0.33e-6,
     16},
};
constexpr Choice kThroughRegisters[] = {
    {{.rows = 128, .columns = 256, .stages = 4}, 0.68e-6, 8},
    {{.rows = 128, .columns = 256, .stages = 4, .cluster = 1}, 0.67e-6, 16},
    {{.rows = 128, .columns = 192, .stages = 5}, 0.55e-6, 8},
    {{.rows = 128, .columns = 128, .stages = 6, .cluster = 1}, 0.475e-6, 16},
    {{.rows = 64, .columns = 128, .stages = 8, .cluster = 1, .ping_pong = true}, 0.28e-6, 16},
    {{.rows = 64, .columns = 64, .stages = 12, .cluster = 1, .ping_pong = true, .staged = 64},
     0.24e-6,
     16},
};

// Of C^T, for few rows of A: their number need not be a multiple of 64, or of 128.
constexpr Choice kTransposed[] = {
    {{.rows = 128, .columns = 160, .stages = 5, .ping_pong = true, .staged = 160}, 0.425e-6, 8},
    {{.rows = 128, .columns = 192, .stages = 4, .ping_pong = true, .staged = 192}, 0.53e-6, 8},
    {{.rows = 128, .columns = 256, .stages = 4, .cluster = 1, .staged = 256}, 0.78e-6, 16, 2},
};

// What else a tile costs, by the bytes of its accumulators. A thread with more than 144 of them has
// no registers to load partial sums ahead. Cooperative consumers are faster in a single wave;
// ping-pong consumers are not, because a block with one tile keeps one of them idle.
constexpr simt::TileCost cost_of(const Choice& choice) {
  const StreamKShape& shape = choice.shape;
  const int accumulators = shape.rows * shape.columns;
  const int of_thread = accumulators / 128 / (shape.ping_pong ? 1 : shape.consumers);
  const double bytes = 4.0 * accumulators, wait = 9e-9 * std::max(0, of_thread - 144);
  return {.k_tile = choice.k_tile,
          .finish = 0.21e-6 + 10e-12 * bytes,
          .exchange = 0.73e-6 + 34e-12 * bytes + wait,
          .further = 0.58e-6 + 5e-12 * bytes + wait,
          .one_wave = shape.ping_pong ? 1 : 0.9};
}

enum class MainLoop { fast, promoted, through_registers, transposed };
inline MainLoop main_loop_of(const Problem& p) {
  if (promotes(p.precision)) return MainLoop::promoted;
  return a_in_registers(p) ? MainLoop::through_registers : MainLoop::fast;
}
constexpr std::span<const Choice> choices(MainLoop way) {
  if (way == MainLoop::promoted) return kPromoted;
  if (way == MainLoop::through_registers) return kThroughRegisters;
  if (way == MainLoop::transposed) return kTransposed;
  return kFast;
}
constexpr double kLaunchSeconds = 1.86e-6;  // a launch, up to the first K tile

struct Plan {
  MainLoop way;
  std::size_t choice;  // of choices(way)
  simt::TileSchedule schedule;
  double seconds;
};

// As fitted: of the rate of DRAM reads, reading and writing; of the rate of L2 reads, whole lines
// that TMA reads.
constexpr double kOfDram = 0.85, kWritesOfDram = 0.93, kLinesOfL2 = 1.5;
// Bytes per second of whole lines that one SM loads.
constexpr double kSmLines = 128e9;
// Bytes per second of C that an SM stores other than by TMA, in elements of 32 bits: rows aligned
// to 16 bytes or not, of C and of C^T.
constexpr double kStoreAligned = 40e9, kStoreUnaligned = 18.5e9, kStoreAlignedTransposed = 50e9,
                 kStoreUnalignedTransposed = 24e9;
// The same of rows of 16-bit elements that are not aligned, with cooperative and with ping-pong
// consumers: their first and last sectors are stored in part, which costs as much as that many
// elements.
constexpr double kStoreRows = 24.5e9, kStoreRowsPingPong = 18.6e9, kStoreRowEnds = 91;
// Seconds to begin to store a tile; and the least `finish` with ping-pong consumers, even if the
// whole store is hidden.
constexpr double kStoreStart = 0.2e-6, kLeastFinish = 0.4e-6;

// Seconds of a row of a K-major operand's last K tile, if it ends within a sector: TMA reads that
// in part.
constexpr double kPartialSector = 3.2e-9;

// Cost to an SM of the second cache line that a row of a K tile touches, relative to the first. For
// the L2 it costs as much as the first.
constexpr double kSecondLineOfSm = 0.4;

constexpr bool is_transposed(MainLoop way, const Problem& stored) {
  return way == MainLoop::transposed || transposes_c(stored);
}

// Time to store a tile, other than by TMA; else 0.
inline double store_seconds(const Problem& stored, const Device& device, MainLoop way,
                            const StreamKShape& shape) {
  const int bytes = traits_of(stored.precision).output_bytes;
  if (bytes == 2 && stored.n % 8 == 0) return 0;
  const double width = is_transposed(way, stored) ? 64 : shape.staged;  // of C
  const double rows = shape.ping_pong ? kStoreRowsPingPong : kStoreRows;
  const double rate = bytes == 2             ? rows * width / (width + kStoreRowEnds)
                      : transposes_c(stored) ? (stored.n % 4 == 0 ? kStoreAlignedTransposed
                                                                  : kStoreUnalignedTransposed)
                      : stored.n % 4 == 0    ? kStoreAligned
                                             : kStoreUnaligned;
  return device.clock_ratio() * (kStoreStart + 1.0 * shape.rows * shape.columns * bytes / rate);
}

// The costs of a choice. A larger matrix than the L2, of which each block reads its own part, costs
// each SM its share of the rate of DRAM, however few read; any K tile costs it the rate at which it
// can load.
inline simt::TileCost cost_of(const Problem& stored, const Device& device, MainLoop way,
                              const Choice& choice) {
  const bool transposed = is_transposed(way, stored);
  const Problem p = tiled_problem(stored, transposed);
  const StreamKShape& shape = choice.shape;
  const int bytes = traits_of(p.precision).input_bytes;
  const auto m = static_cast<double>(p.m), n = static_cast<double>(p.n),
             depth = bytes * static_cast<double>(p.k),
             cache = static_cast<double>(device.last_level_cache_bytes);
  const auto k_tiles = static_cast<double>(ceil_div(p.k, k_tile_depth(p.precision)));
  const double clusters = 1.0 * device.sm_count / shape.cluster;
  const auto from_dram = [&](double lines) {
    return clusters * kLineBytes128 * lines / (kOfDram * device.dram_bytes_per_second);
  };
  simt::TileCost cost = cost_of(choice).on(device);
  simt::add_reads_of_streamed_tiles(
      cost, p, device, {shape.cluster_rows(), shape.columns, kLineBytes128, choice.group, clusters},
      kOfDram * device.dram_bytes_per_second);
  if (p.n <= shape.columns && m * depth > cache) cost.own_k_tile = from_dram(shape.cluster_rows());
  if (p.m <= shape.cluster_rows() && n * depth > cache) cost.own_k_tile = from_dram(shape.columns);
  const auto for_operands = [&](const auto& of) {
    return way == MainLoop::transposed ? with_transposed_operands(stored, of)
                                       : with_operands(stored, of);
  };
  const auto lines = [&](double second) {
    return for_operands([&]<typename Of>() {
      const auto [a, b] = operands_of<Of>(stored, {});
      const auto of_row = [&](double touched) { return 1 + second * (touched - 1); };
      const auto loaded = [&](std::int64_t tile, std::int64_t size, bool k_major) {
        const std::int64_t box = k_major ? 1 : kLineBytes128 / bytes;  // rows, or columns, at once
        return static_cast<double>(ceil_div(std::min(tile, size), box) * box);
      };
      return of_row(lines_touched(a, Of::kAKMajor)) * loaded(shape.rows, p.m, Of::kAKMajor) +
             of_row(lines_touched(b, Of::kBKMajor)) * loaded(shape.columns, p.n, Of::kBKMajor) /
                 shape.cluster;
    });
  };
  if (p.k * bytes % kSectorBytes != 0)
    cost.k_tile += kPartialSector * device.clock_ratio() * for_operands([&]<typename Of>() {
                     const double rows =
                         (Of::kAKMajor ? std::min<double>(shape.rows, m) : 0) +
                         (Of::kBKMajor ? std::min<double>(shape.columns, n) / shape.cluster : 0);
                     return rows / k_tiles;
                   });
  cost.loaded_k_tile =
      device.sm_count * kLineBytes128 * lines(1) / (kLinesOfL2 * device.l2_bytes_per_second);
  cost.own_k_tile = std::max(
      cost.own_k_tile, kLineBytes128 * lines(kSecondLineOfSm) * device.clock_ratio() / kSmLines);
  // With ping-pong consumers the other one multiplies meanwhile, at half of the tensor cores' rate.
  const double finish = std::max(cost.finish, store_seconds(stored, device, way, shape));
  if (shape.ping_pong) {
    const double least = std::min(cost.finish, kLeastFinish * device.clock_ratio());
    cost.finish = std::max(least, finish - k_tiles * cost.k_tile / 2);
  } else {
    cost.finish = finish;
  }
  cost.last = finish - cost.finish;
  return cost;
}

// For each choice the best schedule, the best without cut tiles, and the best if the first cut of a
// tile cost nothing.
inline void add_plans(std::vector<Plan>& plans, const Problem& stored, const Device& device,
                      MainLoop way) {
  const Problem p = tiled_problem(stored, is_transposed(way, stored));
  const double packing = packing_seconds(packing_bytes(stored), device);
  const PrecisionTraits& traits = traits_of(p.precision);
  const double c_bytes =
      1.0 * traits.output_bytes * static_cast<double>(p.m) * static_cast<double>(p.n);
  const double least = ((bytes_minimum(p) - c_bytes) / kOfDram + c_bytes / kWritesOfDram) /
                       device.dram_bytes_per_second;
  const std::span<const Choice> all = choices(way);
  for (std::size_t i = 0; i < all.size(); ++i) {
    const StreamKShape& shape = all[i].shape;
    if (traits.input_bytes < all[i].bytes) continue;
    const simt::TileCost cost = cost_of(stored, device, way, all[i]);
    for (const double exchange : {cost.exchange, std::numeric_limits<double>::infinity(), 0.0}) {
      simt::TileCost other = cost;
      other.exchange = exchange;
      const simt::TileSchedule schedule =
          simt::tile_schedule(p, shape.cluster_rows(), shape.columns, k_tile_depth(p.precision),
                              std::max(1, device.sm_count / shape.cluster), other, 0);
      if (std::ranges::any_of(plans, [&](const Plan& one) {
            return one.way == way && one.choice == i && one.schedule == schedule;
          }))
        continue;
      const double seconds = simt::limited_by(simt::seconds(schedule, cost),
                                              least + simt::tail_seconds(schedule, cost));
      plans.push_back({way, i, schedule, kLaunchSeconds + packing + seconds});
    }
  }
}

// C^T is worth a look where the rows of A fill few tiles.
constexpr std::int64_t kMostRowsTransposed = 2048;

inline std::vector<Plan> plans_of(const Problem& stored, const Device& device) {
  std::vector<Plan> plans;
  add_plans(plans, stored, device, main_loop_of(stored));
  if (can_transpose(stored) && stored.m <= kMostRowsTransposed)
    add_plans(plans, stored, device, MainLoop::transposed);
  return plans;
}

}  // namespace gemm::tensor
