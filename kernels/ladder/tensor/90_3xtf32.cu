// FP32 GEMM emulated on TF32 tensor cores: each operand is split into the sum of two TF32 numbers,
// large and small, and three of their four products are accumulated: small * large + large * small
// + large * large. The fourth is at most 2^-21 of the whole. Peak is a third of TF32's rate; the
// kernel reaches twice the rate of FP32 on CUDA cores.
//
// Tensor cores truncate when they accumulate, which biases long sums towards zero. So they
// accumulate only 32 steps of k, small products first, and the threads add these accumulators in
// FP32, rounded to nearest. From about 32 steps on that is more accurate than an FP32 loop.
//
// wgmma reads one operand from shared memory, where it must be K-major, and the other from
// registers. B is split and transposed by a kernel of its own in every launch, since a K tile of it
// serves many blocks; A is loaded as it is, and each warp splits it in registers. One warpgroup is
// the producer; two consumers with half of the tile each alternate: one issues MMAs while the other
// accumulates and splits.
//
// Any m, n, k and layout; A is copied first if it is not K-major or its rows are not aligned to 16
// bytes. If an operand is infinite, C is NaN or infinite; so may be results within 2^-21 of the
// largest FP32 number.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "kernels/parts/asynchronous.cuh"
#include "kernels/parts/cluster_launch.cuh"
#include "kernels/parts/device_array.cuh"
#include "kernels/parts/packed_operand.cuh"
#include "kernels/parts/ring.cuh"
#include "kernels/parts/split.cuh"
#include "kernels/parts/store.cuh"
#include "kernels/parts/tensor_map.hpp"
#include "kernels/parts/tile_launch.cuh"
#include "kernels/parts/tile_order.cuh"
#include "kernels/parts/tile_schedule.hpp"
#include "kernels/parts/wgmma.cuh"
#include "kernels/registry.hpp"

namespace gemm::tensor {
namespace {

constexpr int kBM = 128, kBN = 128;  // of C, per block
constexpr int kConsumers = 2;        // warpgroups
constexpr int kThreads = 128 * (kConsumers + 1);
constexpr int kWM = kBM / kConsumers;
static_assert(kWM == 64, "the rows of a wgmma");

// A stage is 32 steps of k, two split tiles of B. Accumulators are added to FP32 after each stage.
constexpr int kBK = 32, kKTiles = kBK / kSplitTileK, kStages = 4;
constexpr int kABytes = kBM * kBK * 4, kSplitTileBytes = kBN * kLineBytes;
constexpr int kStageBytes = kABytes + kKTiles * kSplitTileBytes;
constexpr int kSharedBytes = kStages * kStageBytes + kSwizzleAlignment;
static_assert(kABytes % kSwizzleAlignment == 0 && kSplitTileBytes % kSwizzleAlignment == 0);

// Rasterization in groups of 16 rows of tiles.
TileOrder tile_order(const Problem& p) {
  return {static_cast<int>(ceil_div(p.m, kBM)), static_cast<int>(ceil_div(p.n, kBN)), 16};
}

struct SplitOperands {
  TileOrder tiles;
  CUtensorMap a_map;
  const std::byte* b;  // split tiles
  int stages;          // per tile of C
};

#ifdef __CUDA_ARCH_FEAT_SM90_ALL

constexpr int kAccumulators = kWM * kBN / 128;  // per thread
// 40 x 128 + 232 x 256 registers of 65,536.
constexpr int kSplitProducerRegisters = 40, kSplitConsumerRegisters = 232;

using StageRing = Ring<kStageBytes>;

__device__ void copy_stages(StageRing ring, const SplitOperands& operands) {
  constexpr int kBytes = kKTiles * kSplitTileBytes;
  for (int tile = static_cast<int>(blockIdx.x); tile < operands.tiles.count(); tile += gridDim.x) {
    const auto [row, column] = operands.tiles.place(tile);
    const std::byte* b = operands.b + std::int64_t{column} * operands.stages * kBytes;
    for (int i = 0; i < operands.stages; ++i, b += kBytes, ring.next()) {
      ring.begin_stage();
      tma_load(ring.data(), operands.a_map, i * kBK, row * kBM, ring.full());
      bulk_load(ring.data() + kABytes, b, kBytes, ring.full());
    }
  }
}

// A consumer: half of a tile of C. In a wgmma fragment a thread has two rows, eight apart, of its
// warp's 16, and two of eight steps of k: of four consecutive elements of a row of A the first two
// belong to the first eight steps of a split tile, the others to the next eight.
class Consumer {
 public:
  __device__ explicit Consumer(const StageRing& ring)
      : ring_(ring), row_(static_cast<int>(threadIdx.x) / 32 * 16 + lane() / 4) {}

  __device__ void multiply(int stages) {
#pragma unroll
    for (int i = 0; i < kAccumulators; ++i) totals_[0][i] = 0;
    const bool never = ring_.first == 0;
    load();
    for (int i = 0; i < stages; ++i) {
      split();
      issue_mmas();
      const std::uint32_t used = ring_.empty();
      ring_.next();
      if (i + 1 < stages) load();
      wgmma_wait_all(acc_);
      if (never) keep(fragments_);
      release(used);
#pragma unroll
      for (int j = 0; j < kAccumulators; ++j) totals_[0][j] += acc_[j];
    }
  }

  __device__ void store(TileOrder::Place place, float* c, std::int64_t m, std::int64_t n) const {
    // Storing four at a time changes the main loop's registers and is 10 % slower (NOTES.md).
    store_by_threads<float, false, false>(
        totals_, c, m, n, place.row * kBM + static_cast<int>(threadIdx.x) / 128 * kWM,
        place.column * kBN);
  }

 private:
  static constexpr int kSteps = kBK / 8;  // of wgmma along k
  static __device__ int lane() { return static_cast<int>(threadIdx.x) % 32; }

  __device__ void load() {
    ring_.wait_for_stage();
    const std::uint32_t row = ring_.data() + row_ * kBK * 4 + lane() % 4 * 16;
#pragma unroll
    for (int k_tile = 0; k_tile < kKTiles; ++k_tile)
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        float(&x)[4] = loaded_[k_tile][half];
        asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];"
                     : "=f"(x[0]), "=f"(x[1]), "=f"(x[2]), "=f"(x[3])
                     : "r"(row + (half * 8 * kBK + k_tile * kSplitTileK) * 4)
                     : "memory");
      }
  }

  // The large part is x itself, since tensor cores truncate it to TF32. The remainder has 13 bits
  // and is rounded to 11: an error of at most 2^-22 of x.
  __device__ void split() {
#pragma unroll
    for (int k_tile = 0; k_tile < kKTiles; ++k_tile)
#pragma unroll
      for (int half = 0; half < 2; ++half)
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          const float x = loaded_[k_tile][half][i];
          const std::uint32_t bits = __float_as_uint(x);
          const float rest = x - __uint_as_float(bits & kOfTf32);
          const int step = 2 * k_tile + i / 2, element = i % 2 * 2 + half;
          fragments_[step][element] = bits;
          fragments_[kSteps + step][element] = __float_as_uint(rest) + kHalf;
        }
  }

  __device__ void issue_mmas() {
    const std::uint64_t b = k_major_descriptor(ring_.data() + kABytes);
    constexpr int kToSmall = kLineBytes / 2 / 16;
    const auto of_step = [](int step) {
      return (step / 2 * kSplitTileBytes + step % 2 * (kLineBytes / 4)) / 16;
    };
    wgmma_fence();
#pragma unroll
    for (int step = 0; step < kSteps; ++step)
      multiply_from_registers(acc_, fragments_[kSteps + step], b + of_step(step), step > 0);
#pragma unroll
    for (int step = 0; step < kSteps; ++step)
      multiply_from_registers(acc_, fragments_[step], b + of_step(step) + kToSmall, 1);
#pragma unroll
    for (int step = 0; step < kSteps; ++step)
      multiply_from_registers(acc_, fragments_[step], b + of_step(step), 1);
    wgmma_commit();
  }

  // Never executed. ptxas (13.0) considers a register free once a wgmma that reads it was issued,
  // and would load the next elements into it: seen in SASS and in wrong results. A use after the
  // wait keeps it allocated.
  __device__ void keep(const std::uint32_t (&operands)[2 * kSteps][4]) const {
#pragma unroll
    for (int i = 0; i < 2 * kSteps; ++i)
      asm volatile("st.shared.v4.b32 [%0], {%1, %2, %3, %4};" ::"r"(ring_.first),
                   "r"(operands[i][0]), "r"(operands[i][1]), "r"(operands[i][2]),
                   "r"(operands[i][3])
                   : "memory");
  }

  StageRing ring_;
  int row_;
  float loaded_[kKTiles][2][4];
  std::uint32_t fragments_[2 * kSteps][4];  // large parts, then small parts
  float acc_[kAccumulators], totals_[1][kAccumulators];
};

#endif  // __CUDA_ARCH_FEAT_SM90_ALL

__global__ void __launch_bounds__(kThreads, 1)
    multiply_split([[maybe_unused]] Problem p,
                   [[maybe_unused]] const __grid_constant__ SplitOperands operands,
                   [[maybe_unused]] float* c) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  extern __shared__ std::byte shared[];
  __shared__ RingBarriers<kStages> barriers;
  const StageRing ring(shared, barriers);
  if (threadIdx.x == 0) ring.init_barriers(4 * kConsumers);  // their warps
  __syncthreads();
  if (threadIdx.x / 128 == kConsumers) {
    dealloc_registers<kSplitProducerRegisters>();
    if (threadIdx.x % 128 == 0) copy_stages(ring, operands);
  } else {
    alloc_registers<kSplitConsumerRegisters>();
    Consumer consumer(ring);
    for (int tile = static_cast<int>(blockIdx.x); tile < operands.tiles.count();
         tile += gridDim.x) {
      consumer.multiply(operands.stages);
      consumer.store(operands.tiles.place(tile), c, p.m, p.n);
    }
  }
#endif
}

std::optional<std::string> unsupported(const Problem& p, const Device& device) {
  if (!simt::counts_fit(p, kBM, kBN, kBK)) return simt::kCountsDoNotFit;
  return sm_90a_unsupported(multiply_split, device);
}

Traffic traffic(const Problem& p, const Device&) {
  const TileOrder tiles = tile_order(p);
  const double stages = 1.0 * ceil_div(p.k, kBK);
  const double a = 4.0 * p.m * p.k, b = 4.0 * p.k * p.n, c = 4.0 * p.m * p.n;
  const double copied = packing_bytes(operand_a<float>(p, nullptr), true);
  const double split = 1.0 * tiles.columns * stages * kKTiles * kSplitTileBytes;
  // Shared-memory bytes per stage: the copies; loads of A, with every second row in the banks of
  // the first; three MMAs per warpgroup that read half of B's parts.
  constexpr double kOfStage =
      kStageBytes + 2.0 * kABytes + kConsumers * 1.5 * kKTiles * kSplitTileBytes;
  return {
      .dram = bytes_minimum(p) + copied + 2 * split,
      .l2 = copied + b + split + a * tiles.columns + split * tiles.rows + c,
      .shared = copied + 2 * b + kOfStage * stages * static_cast<double>(tiles.count()),
  };
}

Launch prepare(const Problem& p, const Device& device, const Operands& o) {
  simt::allow_shared_bytes(multiply_split, kSharedBytes);
  const std::int64_t stages = ceil_div(p.k, kBK), k_tiles = stages * kKTiles;
  const auto split = simt::device_array<float>(ceil_div(p.n, kBN) * kBN * k_tiles * kLineFloats);
  const CopyGrid grid(ceil_div(p.n, kBN) * kBN, k_tiles * kSplitTileK);
  const auto split_b =
      transposes_b(p.layout) ? split_into_tiles<true, kBN> : split_into_tiles<false, kBN>;

  const PackedOperand<float> a = packed(operand_a<float>(p, o.a), true);
  const TileOrder tiles = tile_order(p);
  const auto blocks = static_cast<unsigned>(std::min(device.sm_count, tiles.count()));
  const SplitOperands operands{tiles, tensor_map(a.matrix, p.m, p.k, a.pitch, kBM, kBK),
                               reinterpret_cast<const std::byte*>(split.get()),
                               static_cast<int>(stages)};
  return [=, packing = pack(a)](Stream stream) {
    if (packing) packing(stream);
    split_b<<<grid.blocks(), kCopyThreads, 0, stream>>>(grid, static_cast<const float*>(o.b), p.n,
                                                        p.k, reinterpret_cast<float4*>(split.get()),
                                                        k_tiles);
    multiply_split<<<blocks, kThreads, kSharedBytes, stream>>>(p, operands,
                                                               static_cast<float*>(o.c));
  };
}

const Registration registration({
    .name = "3xTF32",
    .idea = "FP32 on tensor cores: three TF32 products per FP32 product, accumulated in FP32.",
    .source = "Ootomo and Yokota, Recovering single precision accuracy from Tensor Cores, 2022",
    .rung = 90,
    .precisions = {Precision::tf32x3},
    .layouts = {Layout::nn, Layout::nt, Layout::tn, Layout::tt},
    .unsupported = unsupported,
    .traffic = traffic,
    .prepare = prepare,
});

}  // namespace
}  // namespace gemm::tensor
