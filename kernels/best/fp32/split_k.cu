// Split-K for a C with at most 2,048 rows or columns: its tiles are too few to keep all SMs busy to
// the end, and with few rows a large matrix is read once. k is split over blocks, each of which
// gets an equal share of the steps of all tiles (as in stream-K), and within a block over slices
// (sliced-K): groups of warps with separate pipelines, which need no barrier with each other before
// their accumulators are reduced. Cost: partial sums in global memory and a second launch that
// reduces them.
//
// X and Y are A and B, or B^T and A^T if C^T is computed. Tiles have 1 to 64 rows of X. In shared
// memory a line of a K tile holds one step along k for all rows of X or columns of Y (MN-major), so
// that FMAs have few conflicts of register banks (NOTES.md). A K-major operand is copied in single
// elements, which transposes it. Only Y, the larger one, stays K-major in tiles of few rows, where
// such copies would cost more than the conflicts. What is not transposed is copied 16, 8 or 4 bytes
// at a time: as many as divide the length of its lines.
#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "kernels/best/fp32/k_tile_copy.cuh"
#include "kernels/best/fp32/split_plan.hpp"
#include "kernels/best/fp32/split_reduction.cuh"
#include "kernels/parts/tile_launch.cuh"
#include "kernels/parts/warp_access.hpp"
#include "kernels/registry.hpp"

namespace gemm::simt::split_k {
namespace {

// A slice computes kBM x kBN in steps of kBK along k; warp tile kWM x kWN, with kAcross lanes along
// n. If kDeep > 1 the other lanes are along k, else along m: a lane has kVector consecutive rows.
template <int kBM_, int kBN_, int kBK_, int kWM, int kWN, int kAcross_, int kDeep_, int kSlices_,
          int kStages_, int kBlocks_>
struct SplitKTile {
  static constexpr int kBM = kBM_, kBN = kBN_, kBK = kBK_, kBlocks = kBlocks_;
  static constexpr int kAcross = kAcross_, kDeep = kDeep_, kDown = 32 / kAcross / kDeep;
  static constexpr int kSlices = kSlices_, kStages = kStages_;
  static constexpr int kRows = kWM / kDown, kColumns = kWN / kAcross;  // thread tile
  static constexpr int kWarps = kBM / kWM * (kBN / kWN);
  static constexpr int kThreads = 32 * kWarps;  // per slice
  static constexpr int kVector = std::min(4, kRows);
  static constexpr int kSumPitch = kBN + 4;
  // Whether Y stays K-major; where not, FMAs with conflicts of register banks cost more than
  // copies.
  static constexpr bool kKeepsY = kBM <= 40;
  // Steps along k in a vector load of a K-major operand.
  static constexpr int kChunk = kRows * kColumns < 64 ? 4 : 2;
  static constexpr int kBarriers = 16;  // of a block; one is for the whole block

  static_assert(kBM % kWM == 0 && kBN % kWN == 0, "warp tiles must divide the tile");
  static_assert(kWM % (kVector * kDown) == 0 && kWN % (4 * kAcross) == 0,
                "thread tiles must divide the warp tile");
  static_assert(kBK % kDeep == 0 && (kDeep == 1 || kDown == 1));
  static_assert(kVector == 1 || kVector == 4);
  static_assert(kWarps == 1 || kSlices < kBarriers);

  static constexpr int down(int lane) { return kDeep > 1 ? 0 : PairedLanes<kAcross>::down(lane); }
  static constexpr int across(int lane) {
    return kDeep > 1 ? lane % kAcross : PairedLanes<kAcross>::across(lane);
  }
  static constexpr int deep(int lane) { return kDeep > 1 ? lane / kAcross : 0; }
  static __device__ int first_row() { return threadIdx.x % kThreads / 32 / (kBN / kWN) * kWM; }
  static __device__ int first_column() { return threadIdx.x % kThreads / 32 % (kBN / kWN) * kWN; }

  // Padding of MN-major lines makes a K tile larger.
  static constexpr int kStage = kBK * (PaddedLines<kBM>::kPitch + PaddedLines<kBN>::kPitch);
  static constexpr int slice_bytes(int stages) {
    return 4 * std::max(stages * kStage, kBM * kSumPitch * kDeep);
  }
  // As many slices as fit the shared memory of a block.
  static int slices_on(const Device& device) {
    return std::min(kSlices, (shared_memory_limit(device) - kPieceBytes) /
                                 slice_bytes(stages_on(device, kStages)));
  }
};

// A lane's operands of a step of k, of X (kOfX) or Y: kCount rows or columns. Lanes along k take
// chunks of kChunk steps in turn. A vector load of a K-major operand holds a chunk of one row or
// column, so that its operands of a step are in registers of one parity.
template <typename Tile, bool kOfX, bool kAlongK_, bool kTransposes, int kChunk>
class Fragment {
 public:
  static constexpr bool kAlongK = kAlongK_;  // in shared memory
  // Whether it holds the operands of two steps, or chunks. Registers limit that.
  static constexpr bool kAhead = !kAlongK || Tile::kRows * Tile::kColumns < 64;
  static constexpr int kLength = kOfX ? Tile::kBM : Tile::kBN;
  using Places = std::conditional_t<kAlongK, SwizzledLines<Tile::kBK>, PaddedLines<kLength>>;
  static constexpr int kFloats = (kAlongK ? kLength : Tile::kBK) * Places::kPitch;  // of a K tile
  using Copy =
      KTileCopy<kAlongK ? kLength : Tile::kBK, kAlongK ? Tile::kBK : kLength, Tile::kThreads,
                Places, kTransposes ? Lines::interleaved : Lines::contiguous>;

  // The row or column of a lane, from that of its warp, and of its operand i from there.
  static constexpr int first(int lane) {
    return (kOfX ? Tile::down(lane) : Tile::across(lane)) * (kAlongK ? 1 : kVector);
  }
  static constexpr int further(int i) {
    return kAlongK ? i * kLanes : i / kVector * kVector * kLanes + i % kVector;
  }
  // The offset of operand i at a step, from which so many are loaded.
  static constexpr int place(int first, int lane_deep, int step, int i) {
    const int k = (step / kChunk * Tile::kDeep + lane_deep) * kChunk + step % kChunk;
    return kAlongK ? Places::next(Places::place(first, k), further(i))
                   : Places::place(k, first + further(i));
  }
  // Loads those of a step, if it is the first of its chunk.
  __device__ void load(const float* tile, int first, int lane_deep, int step) {
    if constexpr (kAlongK) {
      if (step % kChunk != 0) return;
#pragma unroll
      for (int i = 0; i < kCount; ++i)
        load_vector<kChunk>(values_[step / kChunk % kHeld][i],
                            tile + place(first, lane_deep, step, i));
    } else {
#pragma unroll
      for (int i = 0; i < kCount; i += kVector)
        load_vector<kVector>(values_[step % kHeld][0] + i, tile + place(first, lane_deep, step, i));
    }
  }
  __device__ float at(int step, int i) const {
    return kAlongK ? values_[step / kChunk % kHeld][i][step % kChunk] : values_[step % kHeld][0][i];
  }
  // Shared-memory wavefronts of a warp's loads for a step.
  static constexpr double wavefronts_of_step() {
    const auto from = [](int lane) { return place(first(lane), Tile::deep(lane), 0, 0); };
    return kAlongK ? kCount * wavefronts(4, from, kChunk) / static_cast<double>(kChunk)
                   : kCount / kVector * wavefronts(4, from, kVector);
  }

 private:
  static constexpr int kCount = kOfX ? Tile::kRows : Tile::kColumns;
  static constexpr int kVector = kOfX ? Tile::kVector : 4;
  static constexpr int kLanes = kOfX ? Tile::kDown : Tile::kAcross;

  template <int kFloatsAtOnce>
  static __device__ void load_vector(float* to, const float* from) {
    using Vector = std::conditional_t<kFloatsAtOnce == 4, float4,
                                      std::conditional_t<kFloatsAtOnce == 2, float2, float>>;
    *reinterpret_cast<Vector*>(to) = *reinterpret_cast<const Vector*>(from);
  }

  static constexpr int kHeld = kAhead ? 2 : 1;
  float values_[kHeld][kAlongK ? kCount : 1][kAlongK ? kChunk : kCount];
};

// Those of both operands: whether each is K-major.
template <typename Tile, bool kXAlongK, bool kYAlongK>
struct Fragments {
  static constexpr bool kKeepsY = kYAlongK && Tile::kKeepsY;
  static constexpr int kChunk = kKeepsY ? Tile::kChunk : 1;
  using X = Fragment<Tile, true, false, kXAlongK, kChunk>;
  using Y = Fragment<Tile, false, kKeepsY, kYAlongK && !kKeepsY, kChunk>;
  static_assert(X::kFloats + Y::kFloats <= Tile::kStage);
  // Of a slice's K tile: the copies, and the loads.
  static constexpr double wavefronts() {
    return Tile::kBK * (Tile::kBM + Tile::kBN) / 32.0 +
           Tile::kWarps * Tile::kBK / Tile::kDeep *
               (X::wavefronts_of_step() + Y::wavefronts_of_step());
  }
};

template <typename Tile, bool kXAlongK, bool kYAlongK>
__global__ void __launch_bounds__(Tile::kThreads* Tile::kSlices, Tile::kBlocks)
    split_k(SplitProblem p, SplitShares shares) {
  extern __shared__ __align__(16) float shared[];
  constexpr int kBM = Tile::kBM, kBN = Tile::kBN, kBK = Tile::kBK, kThreads = Tile::kThreads;
  constexpr int kRows = Tile::kRows, kColumns = Tile::kColumns, kSumPitch = Tile::kSumPitch;
  using Operands = Fragments<Tile, kXAlongK, kYAlongK>;
  using X = typename Operands::X;
  using Y = typename Operands::Y;
  using Ring = CopyRing<Tile::kStages>;
  const int slices = blockDim.x / kThreads, slice = threadIdx.x / kThreads;
  const auto synchronize = [&]() {
    if constexpr (kThreads == 32)
      __syncwarp();
    else
      asm volatile("bar.sync %0, %1;" ::"r"(slice + 1), "n"(kThreads) : "memory");
  };
  float* const ring = shared + slice * Ring::kDepth * Tile::kStage;
  const int lane = threadIdx.x % 32, deep = Tile::deep(lane);
  const int row = Tile::first_row() + X::first(lane);
  const int column = Tile::first_column() + Y::first(lane);

  shares.begin_overlapping();
  shares.for_each_piece([&](const auto& which) {
    const SplitPiece piece = which();
    const std::int64_t row0 = piece.tile / shares.tile_columns * kBM;
    const std::int64_t column0 = piece.tile % shares.tile_columns * kBN;
    const int rows = static_cast<int>(min(std::int64_t{kBM}, p.m - row0));
    const int columns = static_cast<int>(min(std::int64_t{kBN}, p.n - column0));
    // Slices take K tiles of kBK round-robin.
    const int stride = slices * kBK;
    const std::int64_t first = piece.first_step * stride + slice * kBK;
    const std::int64_t left = p.k - first;
    const int steps =
        left > 0 ? static_cast<int>(min(std::int64_t{piece.steps}, (left + stride - 1) / stride))
                 : 0;
    int to_copy = steps;
    const int last_depth =
        static_cast<int>(min(left - (steps - 1) * std::int64_t{stride}, std::int64_t{kBK}));
    const Strided x_from = p.x.from(row0, first), y_from = p.y.from(first, column0);
    typename X::Copy x(x_from.transposed());
    typename Y::Copy y(Y::kAlongK ? y_from.transposed() : y_from);
    const auto copy = [&](int stage) {
      float* to = ring + stage * Tile::kStage;
      const int depth = --to_copy > 0 ? kBK : last_depth;
      x.copy(to, depth, rows);
      y.copy(to + X::kFloats, Y::kAlongK ? columns : depth, Y::kAlongK ? depth : columns);
      x.advance_down(stride);
      Y::kAlongK ? y.advance_right(stride) : y.advance_down(stride);
    };
#pragma unroll
    for (int stage = 0; stage < Ring::kDepth - 1; ++stage) {
      if (to_copy > 0) copy(stage);
      commit_copies();
    }
    float acc[kRows][kColumns] = {};
    int reads = 0;
#pragma unroll 1
    for (int step = 0; step < steps; ++step) {
      Ring::wait();
      synchronize();  // the step has arrived, and the previous stage is free
      if (to_copy > 0) copy(Ring::previous(reads));
      commit_copies();
      const float* stage = ring + reads * Tile::kStage;
      X xs;
      Y ys;
      const auto load_y = [&](int k) { ys.load(stage + X::kFloats, column, deep, k); };
      const auto load_ahead = [&](int k) {
        xs.load(stage, row, deep, k);
        if constexpr (Y::kAhead) load_y(k);
      };
      load_ahead(0);
#pragma unroll
      for (int k = 0; k < kBK / Tile::kDeep; ++k) {
        if constexpr (!Y::kAhead) load_y(k);
        if (k + 1 < kBK / Tile::kDeep) load_ahead(k + 1);
        // In serpentine order, along X if Y is K-major: Y's operand stays in the operand cache.
        constexpr int kOuter = Y::kAlongK ? kColumns : kRows,
                      kInner = Y::kAlongK ? kRows : kColumns;
#pragma unroll
        for (int outer = 0; outer < kOuter; ++outer)
#pragma unroll
          for (int inner = 0; inner < kInner; ++inner) {
            const int serpentine = outer % 2 == 0 ? inner : kInner - 1 - inner;
            const int i = Y::kAlongK ? serpentine : outer, j = Y::kAlongK ? outer : serpentine;
            acc[i][j] += xs.at(k, i) * ys.at(k, j);
          }
      }
      reads = Ring::next(reads);
    }
    __syncthreads();  // all slices are done with their rings
    // 1, unknown to the compiler: see AsyncTile.
    [[maybe_unused]] const auto one = static_cast<float>(gridDim.z);
    float* found = shared + (slice * Tile::kDeep + deep) * kBM * kSumPitch;
#pragma unroll
    for (int i = 0; i < kRows; ++i)
#pragma unroll
      for (int j = 0; j < kColumns; j += Y::kAlongK ? 1 : 4) {
        float* to = found + (row + X::further(i)) * kSumPitch + column + Y::further(j);
        if constexpr (Y::kAlongK)
          *to = acc[i][j];
        else
          *reinterpret_cast<float4*>(to) = make_float4(acc[i][j] * one, acc[i][j + 1] * one,
                                                       acc[i][j + 2] * one, acc[i][j + 3] * one);
      }
    __syncthreads();
    reduce_slices<kBM, kBN, kSumPitch>(p, shares, which(), shared, slices * Tile::kDeep);
  });
}

// Seconds by which an element takes an SM of an H200 longer (NOTES.md): copied alone; in pairs; of
// a Y that stays K-major; copied across lines, of X and of Y.
constexpr double kSingle = 0.041e-9, kPair = 0.02e-9, kKMajorY = 0.034e-9, kAcrossX = 0.015e-9,
                 kAcrossY = 0.041e-9;

constexpr double copy_seconds(std::int64_t pitch) {
  return pitch % 4 == 0 ? 0 : pitch % 2 == 0 ? kPair : kSingle;
}

template <typename Tile>
double copy_seconds(const SplitProblem& p) {
  const double of_x = p.x.right == 1 ? kAcrossX : copy_seconds(p.x.right);
  const double of_y = p.y.down != 1   ? copy_seconds(p.y.down)
                      : Tile::kKeepsY ? kKMajorY + copy_seconds(p.y.right)
                                      : kAcrossY;
  return of_x * Tile::kBM + of_y * Tile::kBN;
}

template <typename Tile>
SplitPoint point(double flop_per_second) {
  return {{Tile::kBM, Tile::kBN, Tile::kBK, Tile::kBlocks, flop_per_second,
           Tile::kBM * Tile::kBN * Tile::kDeep},
          Tile::slices_on,
          Fragments<Tile, true, false>::wavefronts(),  // of other orders the same, except 40 rows
          [](const SplitProblem& p, const SplitPlan& plan, const Device& device) {
            constexpr SplitKernel kKernels[2][2] = {
                {split_k<Tile, false, false>, split_k<Tile, false, true>},
                {split_k<Tile, true, false>, split_k<Tile, true, true>}};
            const int slices = Tile::slices_on(device);
            return split_launch<Tile::kBM, Tile::kBN>(
                kKernels[p.x.right == 1][p.y.down == 1], slices * Tile::kThreads,
                slices * Tile::slice_bytes(stages_on(device, Tile::kStages)), p, plan);
          },
          copy_seconds<Tile>};
}

// FLOP/s of an SM with the fastest copies, fitted to measurements on an H200 and an H100
// (NOTES.md). That of one row is a guess: the tile is memory-bound. Of two blocks on an SM one
// computes while the other one fills its pipeline or adds its slices.
const std::array kPoints{
    point<SplitKTile<1, 32, 32, 1, 32, 8, 4, 8, 3, 2>>(76e9),
    point<SplitKTile<4, 32, 32, 4, 32, 8, 4, 8, 2, 2>>(77e9),
    point<SplitKTile<8, 64, 16, 8, 64, 16, 2, 8, 2, 2>>(363e9),
    point<SplitKTile<16, 64, 16, 16, 64, 16, 1, 8, 2, 2>>(321e9),
    point<SplitKTile<24, 128, 16, 24, 64, 16, 1, 4, 2, 2>>(316e9),
    point<SplitKTile<32, 128, 16, 32, 64, 8, 1, 8, 2, 1>>(364e9),
    point<SplitKTile<32, 128, 16, 32, 64, 8, 1, 4, 2, 2>>(334e9),
    point<SplitKTile<40, 128, 16, 40, 64, 16, 1, 6, 3, 1>>(334e9),
    point<SplitKTile<48, 64, 16, 48, 64, 8, 1, 12, 2, 1>>(345e9),
    point<SplitKTile<48, 64, 16, 48, 64, 8, 1, 6, 2, 2>>(317e9),
    point<SplitKTile<64, 64, 16, 32, 64, 8, 1, 4, 2, 2>>(342e9),
    point<SplitKTile<64, 128, 16, 32, 64, 8, 1, 4, 3, 1>>(375e9),
};

constexpr std::int64_t kLargest = 2048;  // of the smaller of m and n

std::optional<std::string> unsupported(const Problem& p, const Device&) {
  if (std::min(p.m, p.n) <= kLargest) return std::nullopt;
  const std::string largest = std::to_string(kLargest);
  return "requires m <= " + largest + " or n <= " + largest +
         " (a larger C fills the GPU without split-K)";
}

std::vector<Candidate> candidates(const Problem& p, const Device& device) {
  std::vector<Candidate> all;
  for (const bool swapped : {false, true}) add_candidates(all, kPoints, p, swapped, device);
  return all;
}

const Registration registration({
    .name = "SplitK",
    .idea =
        "Split-K for few rows or columns: equal shares of k for all SMs, sliced-K within a block.",
    .source = "Stream-K (Osama et al. 2023); slices of a block as in CUTLASS, sliced-K",
    .rung = 35,
    .precisions = {Precision::f32},
    .layouts = {Layout::nn, Layout::nt, Layout::tn, Layout::tt},
    .unsupported = unsupported,
    .candidates = candidates,
});

}  // namespace
}  // namespace gemm::simt::split_k
