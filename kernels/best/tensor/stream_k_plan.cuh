// The plans of WgmmaStreamK for a problem: tiles, each with a few stream-K schedules. Promoted FP8
// has its own tiles, which leave registers for the second accumulators; so has TF32 with A through
// registers, where cooperative consumers are faster than ping-pong.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "kernels/parts/cost.hpp"
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

// A shape, and its tiles' order.
struct Choice {
  StreamKShape shape;
  int group;  // rows of tiles per rasterization group
};
constexpr Choice kFast[] = {
    {{.rows = 128, .columns = 128, .stages = 6, .ping_pong = true}, 8},
    {{.rows = 128, .columns = 192, .stages = 4, .ping_pong = true, .staged = 192}, 8},
    {{.rows = 64, .columns = 128, .stages = 8, .cluster = 1, .ping_pong = true}, 16},
    {{.rows = 128, .columns = 256, .stages = 4, .staged = 256}, 8},
    {{.rows = 128, .columns = 256, .stages = 4, .cluster = 1, .staged = 256}, 16},
    {{.rows = 64, .columns = 64, .stages = 12, .cluster = 1, .ping_pong = true, .staged = 64}, 16},
    {{.rows = 128, .columns = 96, .stages = 7, .ping_pong = true, .staged = 96}, 8},
    {{.rows = 128, .columns = 160, .stages = 5, .ping_pong = true, .staged = 160}, 8},
    {{.rows = 128, .columns = 224, .stages = 4, .staged = 224}, 8},
};
constexpr Choice kPromoted[] = {
    {{.rows = 256, .columns = 128, .stages = 4, .cluster = 1, .promoted = true}, 16},
    {{.rows = 192, .columns = 128, .stages = 4, .consumers = 3, .cluster = 1, .promoted = true},
     16},
    {{.rows = 128, .columns = 128, .stages = 6, .cluster = 1, .promoted = true}, 16},
    {{.rows = 64,
      .columns = 64,
      .stages = 12,
      .cluster = 1,
      .ping_pong = true,
      .promoted = true,
      .staged = 64},
     16},
};
constexpr Choice kThroughRegisters[] = {
    {{.rows = 128, .columns = 256, .stages = 4}, 8},
    {{.rows = 128, .columns = 256, .stages = 4, .cluster = 1}, 16},
    {{.rows = 128, .columns = 192, .stages = 5}, 8},
    {{.rows = 128, .columns = 128, .stages = 6, .cluster = 1}, 16},
    {{.rows = 64, .columns = 128, .stages = 8, .cluster = 1, .ping_pong = true}, 16},
    {{.rows = 64, .columns = 64, .stages = 12, .cluster = 1, .ping_pong = true, .staged = 64}, 16},
};

// Of C^T, for few rows of A: their number need not be a multiple of 64, or of 128.
constexpr Choice kTransposed[] = {
    {{.rows = 128, .columns = 160, .stages = 5, .ping_pong = true, .staged = 160}, 8},
    {{.rows = 128, .columns = 192, .stages = 4, .ping_pong = true, .staged = 192}, 8},
};

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

struct Plan {
  MainLoop way;
  std::size_t choice;  // of choices(way)
  simt::TileSchedule schedule;
};

constexpr bool is_transposed(MainLoop way, const Problem& stored) {
  return way == MainLoop::transposed || transposes_c(stored);
}

// The work of a plan, with the traffic of all but partial sums. Promoting an accumulator takes two
// instructions for each line; A through registers passes shared memory twice.
inline Work work_of(const Problem& stored, const Device& device, const Plan& plan,
                    const Traffic& traffic) {
  const Problem p = tiled_problem(stored, is_transposed(plan.way, stored));
  const StreamKShape& shape = choices(plan.way)[plan.choice].shape;
  const PrecisionTraits& traits = traits_of(p.precision);
  const double elements = 1.0 * shape.rows * shape.columns, k = static_cast<double>(p.k),
               tiles = 1.0 * plan.schedule.tiles() * shape.cluster,
               lines = std::ceil(k * traits.input_bytes / kLineBytes128);
  const auto for_operands = [&](const auto& of) {
    return plan.way == MainLoop::transposed ? with_transposed_operands(stored, of)
                                            : with_operands(stored, of);
  };
  const double touched = for_operands([&]<typename Of>() {
    const auto [a, b] = operands_of<Of>(stored, {});
    const double of_b = 1.0 * shape.columns / shape.cluster;
    return (lines_touched(a, Of::kAKMajor) * shape.rows + lines_touched(b, Of::kBKMajor) * of_b) /
           (shape.rows + of_b);
  });
  const double packed = packing_bytes(stored),
               promotion = shape.promoted ? 2 * elements * tiles * lines : 0;
  Work all{.traffic = traffic,
           .cycles = tensor_cycles(elements * tiles * k, traits.input_bytes, device) +
                     fp32_cycles(promotion, device),
           .lines = touched * traffic.l2,
           .packed = packed,
           .launches = packed > 0 ? 2.0 : 1.0};
  if (plan.way == MainLoop::through_registers)
    all.traffic.shared += 2 * kLineBytes128 * lines * shape.rows * tiles;
  const double sum_bytes = elements * sizeof(float),
               of_others =
                   2 * sum_bytes * (shape.cluster - 1) * simt::continued_pieces(plan.schedule);
  all.traffic.dram += of_others;
  all.traffic.l2 += of_others;
  return simt::work_of(plan.schedule, all, std::max(1, device.sm_count / shape.cluster),
                       elements * traits.output_bytes, sum_bytes, shape.ping_pong);
}

inline std::string name_of(const Plan& plan) {
  constexpr const char* kWays[] = {"", "/promoted", "/registers", "/transposed"};
  const StreamKShape& shape = choices(plan.way)[plan.choice].shape;
  return named("tile", shape.rows, shape.columns) + kWays[static_cast<int>(plan.way)] +
         (shape.ping_pong ? "/ping_pong" : "") + "/cluster:" + std::to_string(shape.cluster) + "/" +
         simt::name_of(plan.schedule);
}

inline void add_plans(std::vector<Plan>& plans, const Problem& stored, const Device& device,
                      MainLoop way) {
  const Problem p = tiled_problem(stored, is_transposed(way, stored));
  const std::span<const Choice> all = choices(way);
  for (std::size_t i = 0; i < all.size(); ++i) {
    const StreamKShape& shape = all[i].shape;
    if (stored.batch > 1 && stored.m % shape.cluster_rows() != 0) continue;
    for (const simt::TileSchedule& schedule :
         simt::tile_schedules(p, shape.cluster_rows(), shape.columns, k_tile_depth(p.precision),
                              std::max(1, device.sm_count / shape.cluster)))
      plans.push_back({way, i, evenly(schedule)});
  }
}

// C^T is worth a look where the rows of A fill few tiles.
constexpr std::int64_t kMostRowsTransposed = 2048;

// Why a batch is not computed, or nothing: each tile has rows of one product.
inline std::optional<std::string> batch_unsupported(const Problem& p) {
  if (p.batch == 1) return std::nullopt;
  if (p.tokens != Tokens::equal) return "takes no groups";
  if (p.layout != Layout::nt || p.m % 64 != 0 || p.precision == Precision::e4m3block)
    return "takes a batch only in layout nt, without scales, and if m is a multiple of 64";
  if (p.batch * p.n > 1 << 30) return "requires at most 2^30 columns of all B";
  return std::nullopt;
}

inline std::vector<Plan> plans_of(const Problem& stored, const Device& device) {
  std::vector<Plan> plans;
  add_plans(plans, stored, device, main_loop_of(stored));
  if (can_transpose(stored) && stored.m <= kMostRowsTransposed && stored.batch == 1 &&
      stored.activation == Activation::none)
    add_plans(plans, stored, device, MainLoop::transposed);
  return plans;
}

}  // namespace gemm::tensor
