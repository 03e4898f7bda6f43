// Which tile WgmmaStreamK takes for a problem, and how tiles are cut along k.
//
// The choice is by a model: waves of tiles, each with so many K tiles and a store, against shares
// of cut tiles and the exchange of their accumulators (tile_schedule.hpp), and never faster than
// the DRAM. Its constants are of an H200 at its power limit (NOTES.md). FP8 whose accumulators are
// promoted has shapes of its own, which must leave registers for the second accumulators; so has
// TF32 that goes through registers, where consumers that share a tile are faster than those that
// take turns.
#pragma once

#include <algorithm>
#include <cstddef>
#include <limits>
#include <span>

#include "kernels/common/tile_schedule.hpp"
#include "kernels/tensor/wgmma/launch.cuh"

namespace gemm::tensor {

// A tile of C, by a block.
struct StreamKShape {
  int rows, columns;
  int stages;  // at most: as many as fit beside what is staged
  int consumers = 2;
  int cluster = 2;         // blocks that share what they read of B, as in WgmmaMulticast
  bool ping_pong = false;  // each consumer has tiles of its own, as in WgmmaPingPong
  bool promoted = false;   // FP8 accumulators become FP32 every 128 of k
  int staged = 128;        // columns of C that a consumer stores at once, if by TMA

  constexpr int cluster_rows() const { return cluster * rows; }
};

// `K tile` is of 128 bytes of k.
struct Choice {
  StreamKShape shape;
  simt::TileCost cost;
  int group;      // rows of tiles
  int bytes = 1;  // of an element, at least: with smaller ones ping-pong was faster
};
constexpr Choice kFast[] = {
    {{.rows = 128, .columns = 128, .stages = 6, .ping_pong = true}, {0.41e-6, 0.5e-6, 8e-6}, 8},
    {{.rows = 128, .columns = 192, .stages = 4, .ping_pong = true, .staged = 64},
     {0.59e-6, 0.5e-6, 9e-6},
     8},
    {{.rows = 64, .columns = 128, .stages = 8, .cluster = 1, .ping_pong = true},
     {0.255e-6, 0.5e-6, 9e-6},
     16},
    {{.rows = 128, .columns = 256, .stages = 4, .staged = 256}, {0.785e-6, 1.5e-6, 9e-6}, 8, 2},
    {{.rows = 128, .columns = 256, .stages = 4, .cluster = 1, .staged = 256},
     {0.787e-6, 1.2e-6, 9e-6},
     16,
     2},
};
constexpr Choice kPromoted[] = {
    {{.rows = 256, .columns = 128, .stages = 4, .cluster = 1, .promoted = true},
     {0.9e-6, 3e-6, 12e-6},
     16},
    {{.rows = 192, .columns = 128, .stages = 4, .consumers = 3, .cluster = 1, .promoted = true},
     {0.68e-6, 2e-6, 9e-6},
     16},
    {{.rows = 128, .columns = 128, .stages = 6, .cluster = 1, .promoted = true},
     {0.5e-6, 1.5e-6, 6e-6},
     16},
};
constexpr Choice kThroughRegisters[] = {
    {{.rows = 128, .columns = 256, .stages = 4}, {0.785e-6, 1.5e-6, 9e-6}, 8},
    {{.rows = 128, .columns = 256, .stages = 4, .cluster = 1}, {0.787e-6, 1.2e-6, 9e-6}, 16},
    {{.rows = 128, .columns = 192, .stages = 5}, {0.6e-6, 1.5e-6, 9e-6}, 8},
    {{.rows = 128, .columns = 128, .stages = 6, .cluster = 1}, {0.47e-6, 1e-6, 9e-6}, 16},
    {{.rows = 64, .columns = 128, .stages = 8, .cluster = 1, .ping_pong = true},
     {0.32e-6, 0.5e-6, 9e-6},
     16},
};

enum class MainLoop { fast, promoted, through_registers };
inline MainLoop main_loop_of(const Problem& p) {
  if (promotes(p.precision)) return MainLoop::promoted;
  return a_in_registers(p) ? MainLoop::through_registers : MainLoop::fast;
}
constexpr std::span<const Choice> choices(MainLoop way) {
  if (way == MainLoop::promoted) return kPromoted;
  if (way == MainLoop::through_registers) return kThroughRegisters;
  return kFast;
}
constexpr double kLaunchSeconds = 2.3e-6;  // from one launch's end to the next's, with no work

struct Plan {
  std::size_t choice;
  simt::TileSchedule schedule;
  double seconds;
};

constexpr double kDram = 4.2e12;  // bytes a second, read and written

// What it costs to stream: where the rows of A and columns of B of all streamed tiles are more than
// half of the L2, each cluster reads its K tiles from the DRAM.
inline simt::TileCost streaming_cost(const Problem& p, const Device& device, const Choice& choice) {
  const StreamKShape& shape = choice.shape;
  const double lines = traits_of(p.precision).input_bytes * static_cast<double>(p.k);
  const double clusters = 1.0 * device.sm_count / shape.cluster;
  const double rows = choice.group * shape.cluster_rows(),
               columns = clusters / choice.group * shape.columns;
  simt::TileCost cost = choice.cost;
  if ((rows + columns) * lines > static_cast<double>(device.last_level_cache_bytes) / 2)
    cost.streamed_k_tile =
        clusters * kLineBytes128 * (shape.cluster_rows() + shape.columns) / kDram;
  return cost;
}

inline Plan plan_of(const Problem& stored, const Device& device) {
  const Problem p = tiled_problem(stored);
  const std::span<const Choice> all = choices(main_loop_of(stored));
  Plan best{.choice = 0, .schedule = {}, .seconds = std::numeric_limits<double>::infinity()};
  for (std::size_t i = 0; i < all.size(); ++i) {
    const StreamKShape& shape = all[i].shape;
    if (traits_of(p.precision).input_bytes < all[i].bytes) continue;
    const simt::TileCost cost = streaming_cost(p, device, all[i]);
    const simt::TileSchedule schedule =
        simt::tile_schedule(p, shape.cluster_rows(), shape.columns, k_tile_depth(p.precision),
                            std::max(1, device.sm_count / shape.cluster), cost, 0);
    const double seconds = simt::seconds(schedule, cost);
    if (seconds < best.seconds) best = {i, schedule, seconds};
  }
  best.seconds = kLaunchSeconds + std::max(best.seconds, bytes_minimum(p) / kDram);
  return best;
}

}  // namespace gemm::tensor
