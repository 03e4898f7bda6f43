// Stream-K with the tile size chosen for the problem by a model. Fragments are double-buffered in
// registers, so that the MMAs of one K tile follow those of the last without a gap, and launches
// overlap (programmatic dependent launch). Cost: partial sums through global memory, where tiles
// are cut along k.
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "kernels/common/cluster_launch.cuh"
#include "kernels/common/partial_sums.cuh"
#include "kernels/common/tile_order.cuh"
#include "kernels/registry.hpp"
#include "kernels/tensor/mma_f64/mma_f64_launch.cuh"
#include "kernels/tensor/mma_f64/mma_f64_plan.cuh"

namespace gemm::tensor::mma_f64_stream_k {
namespace {

constexpr int kGroup = 8;  // rows of tiles
constexpr std::size_t kSmallest = std::size(kF64Choices) - 1;

struct F64Work {
  F64Problem problem;
  TileOrder tiles;
  simt::TileSchedule schedule;
  PartialSums partials;  // one tile and flag per rank
};

// A tile with the interface of partial_sums.cuh.
template <typename Tile>
struct F64StreamKTile : Tile {
  const PartialSums& partials;

  __device__ F64StreamKTile(const F64Work& work, TileOrder::Place place,
                            const simt::TilePiece& piece, const std::byte* shared)
      : Tile(work.problem, place.row * Tile::Shape::kBM, place.column * Tile::Shape::kBN,
             piece.first, piece.end, shared),
        partials(work.partials) {}
  __device__ double* partials_of(int rank) const {
    return reinterpret_cast<double*>(partials.sums) +
           std::int64_t{rank} * Tile::Shape::kBM * Tile::Shape::kBN + threadIdx.x;
  }
  __device__ int* flag_of(int rank) const { return partials.arrived + rank; }
  __device__ bool is_leader() const { return threadIdx.x == 0; }
  __device__ void sync() const { __syncthreads(); }
};

#if __CUDA_ARCH__ >= 800
template <typename Tile>
__device__ void multiply_pieces(const F64Work& work) {
  extern __shared__ __align__(128) std::byte shared[];
#if __CUDA_ARCH__ >= 900
  let_next_launch_begin();
  wait_for_previous_launch();
#endif
  simt::TileWalk walk(work.schedule, static_cast<int>(blockIdx.x));
  const int rank = work.schedule.rank(static_cast<int>(blockIdx.x));
  for (simt::TilePiece piece; walk.next(work.schedule, piece);) {
    F64StreamKTile<Tile> tile(work, work.tiles.place(piece.tile), piece, shared);
    multiply_pipelined<Tile>(tile, piece.end - piece.first);
    wait_for_copies<0>();
    __syncthreads();        // the stages are free for the next piece
    if (piece.first > 0) {  // another block stores the tile
      store_partial(tile, rank);
      continue;
    }
    if (piece.end < work.schedule.k_tiles) add_partials(tile, work.schedule, rank, piece.tile);
    tile.store(work.problem);
  }
}
#endif

template <typename Tile>
__global__ void __launch_bounds__(Tile::kThreads, Tile::Shape::kBlocks)
    mma_f64_stream_k([[maybe_unused]] const __grid_constant__ F64Work work) {
#if __CUDA_ARCH__ >= 800
  // What cannot run is not compiled: 163 KiB are what a block has on 8.0.
  if constexpr (__CUDA_ARCH__ >= 900 || Tile::Shape::kSharedBytes <= 163 << 10)
    multiply_pieces<Tile>(work);
#endif
}

template <std::size_t kChoice>
using ShapeOf =
    F64Shape<kF64Choices[kChoice].rows, kF64Choices[kChoice].columns, kF64Choices[kChoice].depth,
             kF64Choices[kChoice].warp_rows, kF64Choices[kChoice].warp_columns,
             kF64Choices[kChoice].stages, kF64Choices[kChoice].blocks>;

template <std::size_t kChoice>
Launch launch_choice(const Problem& p, const Device& device, const Operands& o,
                     const F64Plan& plan) {
  using Shape = ShapeOf<kChoice>;
  return with_f64_tile<Shape>(p, [&]<typename Tile>() -> Launch {
    const simt::TileSchedule& schedule = plan.schedule;
    const auto [partials, memory] =
        partial_sums(schedule, std::int64_t{2} * schedule.streaming * Shape::kBM * Shape::kBN,
                     schedule.streaming);
    const F64Work work{
        F64Problem(p, o), {schedule.tile_rows, schedule.tile_columns, kGroup}, schedule, partials};
    const auto kernel = mma_f64_stream_k<Tile>;
    simt::allow_shared_bytes(kernel, Shape::kSharedBytes);
    const int blocks = schedule.whole > 0 ? schedule.blocks : schedule.streaming;
    const LaunchShape grid{.blocks = blocks,
                           .threads = Shape::kThreads,
                           .shared_bytes = Shape::kSharedBytes,
                           .overlaps = device.compute_capability >= 90};
    return simt::keeping(memory, [=](Stream stream) { enqueue(kernel, grid, stream, work); });
  });
}

// Calls f<choice>() for the choice with that index.
template <typename F>
void with_choice(std::size_t choice, F&& f) {
  [&]<std::size_t... kChoices>(std::index_sequence<kChoices...>) {
    ((kChoices == choice ? f.template operator()<kChoices>() : void()), ...);
  }
  (std::make_index_sequence<std::size(kF64Choices)>());
}

Traffic traffic_of(const Problem& p, const F64Plan& plan) {
  Traffic traffic{};
  with_choice(plan.choice, [&]<std::size_t kChoice>() {
    using Shape = ShapeOf<kChoice>;
    traffic = simt::tile_traffic(p, Shape::kBM, Shape::kBN, Shape::kDepth, Shape::kWavefronts);
    const double partials =
        simt::continued_pieces(plan.schedule) * 2.0 * sizeof(double) * Shape::kBM * Shape::kBN;
    traffic.dram += partials;
    traffic.l2 += partials;
  });
  return traffic;
}

// All choices, or always the one with this index.
Kernel stream_k(std::optional<std::size_t> only) {
  const auto runs = [only](const Problem& p, const Device& device, std::size_t choice) {
    return (!only || choice == *only) && !f64_unsupported(p, device, choice);
  };
  Kernel kernel{
      .name = "MmaF64StreamK",
      .idea = "Stream-K with the tile size chosen for the problem, fragments double-buffered.",
      .source = "Osama et al., Stream-K (2023); CUTLASS, warp-level software pipelining",
      .rung = 48,
      .variant = only.has_value(),
      .precisions = {Precision::f64},
      .layouts = {kLayouts.begin(), kLayouts.end()},
      .unsupported = [=](const Problem& p, const Device& device) -> std::optional<std::string> {
        for (std::size_t i = 0; i < std::size(kF64Choices); ++i)
          if (runs(p, device, i)) return std::nullopt;
        return f64_unsupported(p, device, only.value_or(kSmallest));
      },
      .candidates =
          [=](const Problem& p, const Device& device) {
            std::vector<Candidate> candidates;
            for (std::size_t i = 0; i < std::size(kF64Choices); ++i) {
              if (!runs(p, device, i)) continue;
              const F64Plan plan = f64_plan_of(p, device, i);
              candidates.push_back({plan.seconds, traffic_of(p, plan), [=](const Operands& o) {
                                      Launch launch;
                                      with_choice(plan.choice, [&]<std::size_t kChoice>() {
                                        launch = launch_choice<kChoice>(p, device, o, plan);
                                      });
                                      return launch;
                                    }});
            }
            return candidates;
          },
  };
  if (only) {
    const F64Choice& one = kF64Choices[*only];
    kernel.parameters = {
        {"BM", std::to_string(one.rows)},         {"BN", std::to_string(one.columns)},
        {"BK", std::to_string(one.depth)},        {"WM", std::to_string(one.warp_rows)},
        {"WN", std::to_string(one.warp_columns)}, {"stages", std::to_string(one.stages)}};
  }
  return kernel;
}

// The kernel, and each tile by itself, run only on request.
struct Registrations {
  Registrations() {
    Registration{stream_k(std::nullopt)};
    for (std::size_t i = 0; i < std::size(kF64Choices); ++i) Registration{stream_k(i)};
  }
} const registrations;

}  // namespace
}  // namespace gemm::tensor::mma_f64_stream_k
