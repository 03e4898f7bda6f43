// Stream-K with the tile size chosen for the problem. Fragments are double-buffered in
// registers, so that the MMAs of one K tile follow those of the last without a gap. Copies run
// ahead from one tile to the next, so that they go on while C is stored. On compute capability 9.0
// the largest tiles have a warpgroup that only copies. The grid uses programmatic dependent launch,
// but does not let the next one begin: blocks start when the last block of the previous grid has
// ended. Cost: partial sums through global memory, where tiles are cut along k.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "kernels/layout.hpp"
#include "kernels/parts/cluster_launch.cuh"
#include "kernels/parts/mma_f64_tile.cuh"
#include "kernels/parts/partial_sums.cuh"
#include "kernels/parts/tile_launch.cuh"
#include "kernels/parts/tile_order.cuh"
#include "kernels/parts/tile_schedule.hpp"
#include "kernels/parts/tile_traffic.hpp"
#include "kernels/registry.hpp"

namespace gemm::tensor::mma_f64_stream_k {
namespace {

constexpr int kGroup = 8;  // rows of tiles

// The tile of a block, and how many blocks fit an SM.
struct Choice {
  int rows, columns, depth, warp_rows, warp_columns, stages, blocks;
  bool apart = false;  // of F64Shape
};
constexpr Choice kChoices[] = {
    {128, 64, 16, 32, 32, 4, 1},       {64, 64, 32, 16, 32, 4, 1},
    {32, 128, 16, 32, 32, 4, 2},       {128, 32, 16, 32, 32, 4, 2},
    {16, 128, 16, 16, 32, 4, 3},       {128, 16, 16, 32, 16, 4, 3},
    {64, 32, 32, 32, 16, 4, 2},        {32, 64, 32, 16, 32, 4, 2},
    {32, 32, 32, 16, 16, 4, 3},        {128, 128, 32, 32, 64, 3, 1, true},
    {128, 64, 32, 32, 32, 4, 1, true},
};
constexpr std::size_t kSmallest = 8;  // needs the least shared memory

struct F64Work {
  F64Problem problem;
  TileOrder tiles;
  simt::TileSchedule schedule;
  PartialSums partials;  // one tile and flag per rank
};

#if __CUDA_ARCH__ >= 800
// The tiles of a block's pieces, with the interfaces of partial_sums.cuh and F64Pipeline.
template <typename Tile>
class F64StreamKTile : public Tile {
 public:
  __device__ F64StreamKTile(const F64Work& work, const std::byte* shared)
      : Tile(work.problem, shared),
        work_(work),
        to_copy_(work.schedule, static_cast<int>(blockIdx.x)) {}

  __device__ void begin(const simt::TilePiece& piece) {
    const TileOrder::Place place = work_.tiles.place(piece.tile);
    Tile::begin(place.row * Tile::Shape::kBM, place.column * Tile::Shape::kBN);
  }
  __device__ void copy_next_piece() {
    simt::TilePiece piece;
    if (!to_copy_.next(work_.schedule, piece)) return;
    const TileOrder::Place place = work_.tiles.place(piece.tile);
    this->copy_from(work_.problem, place.row * Tile::Shape::kBM, place.column * Tile::Shape::kBN,
                    piece.first, piece.end);
  }

  __device__ double* partials_of(int rank) const {
    return reinterpret_cast<double*>(work_.partials.sums) +
           std::int64_t{rank} * Tile::Shape::kBM * Tile::Shape::kBN + threadIdx.x;
  }
  __device__ int* flag_of(int rank) const { return work_.partials.arrived + rank; }
  __device__ bool is_leader() const { return threadIdx.x == 0; }
  __device__ void sync() const {
    if constexpr (Tile::Shape::kApart)
      asm volatile("bar.sync 1, %0;" ::"n"(Tile::kThreads) : "memory");
    else
      __syncthreads();
  }

 private:
  const F64Work& work_;
  simt::TileWalk to_copy_;  // pieces whose copies have not begun
};

template <typename Tile, typename Pipeline>
__device__ void multiply_pieces(const F64Work& work, Tile& tile, Pipeline& pipeline) {
  const int rank = work.schedule.rank(static_cast<int>(blockIdx.x));
  simt::TileWalk walk(work.schedule, static_cast<int>(blockIdx.x));
  for (simt::TilePiece piece; walk.next(work.schedule, piece);) {
    tile.begin(piece);
    pipeline.multiply(tile, piece.end - piece.first);
    if (piece.first > 0) {  // another block stores the tile
      store_partial(tile, rank);
      continue;
    }
    if (piece.end < work.schedule.k_tiles) add_partials(tile, work.schedule, rank, piece.tile);
    tile.store(work.problem);
  }
}

template <typename Tile>
__device__ void multiply_pieces(const F64Work& work) {
  extern __shared__ __align__(128) std::byte shared[];
  wait_for_previous_launch();
  F64StreamKTile<Tile> tile(work, shared);
  F64Pipeline<F64StreamKTile<Tile>> pipeline(tile);
  multiply_pieces(work, tile, pipeline);
  wait_for_copies<0>();
}
#endif

#ifdef __CUDA_ARCH_FEAT_SM90_ALL
// 65,536 registers are 168 for each of 384 threads.
constexpr int kRegistersToCopy = 40, kRegistersToMultiply = 232;

template <typename Tile>
__device__ void multiply_pieces_apart(const F64Work& work) {
  using Shape = typename Tile::Shape;
  static_assert(Shape::kThreads == 256 && Shape::kBlocks == 1);
  extern __shared__ __align__(128) std::byte shared[];
  __shared__ RingBarriers<Shape::kStages> barriers;
  const Ring<Shape::kStageBytes> ring(shared, barriers);
  if (threadIdx.x == 0) ring.init_barriers(Shape::kThreads / 32, Shape::kCopyThreads);
  __syncthreads();
  wait_for_previous_launch();
  if (threadIdx.x >= Shape::kThreads) {
    dealloc_registers<kRegistersToCopy>();
    F64StreamKTile<Tile> tile(work, shared);
    copy_apart(tile, ring);
  } else {
    alloc_registers<kRegistersToMultiply>();
    F64StreamKTile<Tile> tile(work, shared);
    F64ApartPipeline<F64StreamKTile<Tile>> pipeline(tile, ring);
    multiply_pieces(work, tile, pipeline);
  }
}
#endif

template <typename Tile>
__global__ void __launch_bounds__(Tile::Shape::kBlockThreads, Tile::Shape::kBlocks)
    mma_f64_stream_k([[maybe_unused]] const __grid_constant__ F64Work work) {
#if __CUDA_ARCH__ >= 800
  // What cannot run is not compiled.
  if constexpr (Tile::Shape::kApart) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
    multiply_pieces_apart<Tile>(work);
#endif
  } else {
    multiply_pieces<Tile>(work);
  }
#endif
}

// Calls f<Tile>() for the tile of that shape that runs the problem: where rows of A or B do not
// begin at multiples of 16 bytes, copies are of 8 bytes.
template <typename Shape, typename F>
auto with_f64_tile(const Problem& p, F&& f) {
  return with_transposes(p.layout, [&]<bool kTransposesA, bool kTransposesB>() {
    if (lda(p) % 2 == 0 && ldb(p) % 2 == 0)
      return f.template operator()<F64Tile<Shape, !kTransposesA, kTransposesB, 2>>();
    return f.template operator()<F64Tile<Shape, !kTransposesA, kTransposesB, 1>>();
  });
}

template <typename Shape>
std::optional<std::string> f64_unsupported(const Problem& p, const Device& device) {
  if (device.compute_capability < 80) return "requires compute capability 8.0";
  if (!simt::counts_fit(p, Shape::kBM, Shape::kBN, Shape::kDepth)) return simt::kCountsDoNotFit;
  return simt::shared_memory_unsupported(Shape::kSharedBytes, device);
}

template <typename Shape>
Traffic f64_traffic(const Problem& p) {
  return simt::tile_traffic(p, Shape::kBM, Shape::kBN, Shape::kDepth, Shape::kWavefronts);
}

// What depends on the shape of a choice at compile time.
struct Instance {
  std::optional<std::string> (*unsupported)(const Problem&, const Device&);
  Traffic (*traffic)(const Problem&);  // without partial sums
  Launch (*launch)(const Problem&, const Device&, const Operands&, const simt::TileSchedule&);
};

template <typename Shape>
Launch launch(const Problem& p, const Device&, const Operands& o,
              const simt::TileSchedule& schedule) {
  return with_f64_tile<Shape>(p, [&]<typename Tile>() -> Launch {
    const auto [partials, memory] =
        partial_sums(schedule, std::int64_t{2} * schedule.streaming * Shape::kBM * Shape::kBN,
                     schedule.streaming);
    const F64Work work{
        F64Problem(p, o), {schedule.tile_rows, schedule.tile_columns, kGroup}, schedule, partials};
    const auto kernel = mma_f64_stream_k<Tile>;
    simt::allow_shared_bytes(kernel, Shape::kSharedBytes);
    const int blocks = schedule.whole > 0 ? schedule.blocks : schedule.streaming;
    const LaunchShape grid{.blocks = blocks,
                           .threads = Shape::kBlockThreads,
                           .shared_bytes = Shape::kSharedBytes,
                           .overlaps = may_overlap(kernel)};
    return simt::keeping(memory, [=](Stream stream) { enqueue(kernel, grid, stream, work); });
  });
}

template <typename Shape>
std::optional<std::string> unsupported(const Problem& p, const Device& device) {
  if constexpr (Shape::kApart)
    if (const auto reason = with_f64_tile<Shape>(
            p, [&]<typename Tile>() { return sm_90a_unsupported(mma_f64_stream_k<Tile>, device); }))
      return reason;
  return f64_unsupported<Shape>(p, device);
}

template <std::size_t kIndex>
constexpr Instance instance() {
  constexpr const Choice& kOne = kChoices[kIndex];
  using Shape = F64Shape<kOne.rows, kOne.columns, kOne.depth, kOne.warp_rows, kOne.warp_columns,
                         kOne.stages, kOne.blocks, F64Mma::m16n8k8, kOne.apart>;
  return {unsupported<Shape>, f64_traffic<Shape>, launch<Shape>};
}
constexpr auto kInstances = []<std::size_t... kIndices>(std::index_sequence<kIndices...>) {
  return std::array{instance<kIndices>()...};
}
(std::make_index_sequence<std::size(kChoices)>());

// All choices, or always the one with this index.
Kernel stream_k(std::optional<std::size_t> only) {
  const auto runs = [only](const Problem& p, const Device& device, std::size_t choice) {
    return (!only || choice == *only) && !kInstances[choice].unsupported(p, device);
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
        for (std::size_t i = 0; i < std::size(kChoices); ++i)
          if (runs(p, device, i)) return std::nullopt;
        return kInstances[only.value_or(kSmallest)].unsupported(p, device);
      },
      .candidates =
          [=](const Problem& p, const Device& device) {
            std::vector<Candidate> candidates;
            for (std::size_t i = 0; i < std::size(kChoices); ++i) {
              if (!runs(p, device, i)) continue;
              const Choice& one = kChoices[i];
              const int sms = std::max(1, device.sm_count);
              const double elements = 1.0 * one.rows * one.columns,
                           bytes = sizeof(double) * elements;
              for (int blocks = 1; blocks <= one.blocks; ++blocks)
                for (const simt::TileSchedule& schedule :
                     simt::tile_schedules(p, one.rows, one.columns, one.depth, sms * blocks, 2)) {
                  const double products = elements * schedule.tiles() * static_cast<double>(p.k);
                  candidates.push_back(
                      {named("tile", one.rows, one.columns) + (one.apart ? "/apart" : "") +
                           "/per_sm:" + std::to_string(blocks) + "/" + simt::name_of(schedule),
                       simt::work_of(schedule,
                                     {.traffic = kInstances[i].traffic(p),
                                      .cycles = fp32_cycles(products, device)},
                                     sms, bytes, bytes, one.apart),
                       [=](const Operands& o) {
                         return kInstances[i].launch(p, device, o, schedule);
                       }});
                }
            }
            return candidates;
          },
  };
  if (only) {
    const Choice& one = kChoices[*only];
    kernel.parameters = numbers({{"BM", one.rows},
                                 {"BN", one.columns},
                                 {"BK", one.depth},
                                 {"WM", one.warp_rows},
                                 {"WN", one.warp_columns},
                                 {"stages", one.stages}});
    if (one.apart) kernel.parameters.push_back({"copies", "apart"});
  }
  return kernel;
}

// The kernel, and each tile by itself, run only on request.
struct Registrations {
  Registrations() {
    Registration{stream_k(std::nullopt)};
    for (std::size_t i = 0; i < std::size(kChoices); ++i) Registration{stream_k(i)};
  }
} const registrations;

}  // namespace
}  // namespace gemm::tensor::mma_f64_stream_k
