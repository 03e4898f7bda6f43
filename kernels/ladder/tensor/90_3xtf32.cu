// FP32 GEMM emulated on TF32 tensor cores: each operand is split into the sum of two TF32 numbers,
// large and small, and three of their four products are accumulated: small * large + large * small
// + large * large. The fourth is at most 2^-21 of the whole. Peak is a third of TF32's rate; the
// kernel reaches twice the rate of FP32 on CUDA cores.
//
// Tensor cores truncate when they accumulate, which biases long sums towards zero. So they
// accumulate only 32 steps of k, small products first, and the threads add these accumulators in
// FP32, rounded to nearest. From about 32 steps on that is more accurate than an FP32 loop.
//
// wgmma reads one operand from shared memory and the other from registers. B is split by a kernel
// of its own in every launch, since a K tile of it serves many blocks; A is loaded as it is, and
// each warp splits it in registers. One warpgroup is the producer; two consumers with half of the
// tile each alternate: one issues MMAs while the other accumulates and splits.
//
// If an operand is infinite, C is NaN or infinite; so may be results within 2^-21 of the largest
// FP32 number.
//
// The next bottleneck: the tensor cores, for which three products are no less, and the clock that
// the power limit leaves them.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>

#include "kernels/parts/ring.cuh"
#include "kernels/parts/wgmma.cuh"
#include "kernels/registry.hpp"

namespace gemm::tensor {
namespace {

// --- The split -----------------------------------------------------------------------------------

constexpr std::uint32_t kOfTf32 = 0xffffe000;  // mask of the bits of FP32 that TF32 keeps
constexpr std::uint32_t kHalf = 0x1000;        // half a unit in the last place of TF32

// Splits x. TF32 has 11 significant bits, FP32 24. `large` is x rounded to nearest; the remainder
// is at most 2^-11 of x, and `small` holds 11 bits of it: the sum has an error of at most 2^-23 of
// x, and is exact for integers up to 2^23. That holds from 2^-102 on; below, `small` may be lost,
// which is at most 2^-126. Where rounding would make `large` infinite, from 2^128 - 2^116 on, it is
// truncated. Infinity and NaN are entirely in `large`.
__device__ void split(float x, float& large, float& small) {
  constexpr std::uint32_t kMagnitude = 0x7fffffff, kRoundsToInfinity = 0x7f7ff000,
                          kInfinity = 0x7f800000;
  const std::uint32_t bits = __float_as_uint(x), magnitude = bits & kMagnitude;
  const std::uint32_t rounded = magnitude < kRoundsToInfinity ? bits + kHalf : bits;
  const bool finite = magnitude < kInfinity;
  large = finite ? __uint_as_float(rounded & kOfTf32) : x + x;  // quiets a NaN: TF32 keeps it
  small = finite ? __uint_as_float((__float_as_uint(x - large) + kHalf) & kOfTf32) : 0;
}

constexpr int kBM = 128, kBN = 128;  // of C, per block

// Layout of the split B: tiles of kBN columns by 16 steps of k, along k first. In a tile a column
// is a line of 128 bytes: 16 large parts, then 16 small parts, in chunks of four. Chunk c has the
// steps c, c + 4, c + 8, c + 12, so that a thread that has four consecutive elements of A has what
// its wgmma fragments need (any order along k is correct if both operands share it). Chunks are in
// wgmma's 128-byte swizzle. Zeros pad columns to tiles, and k to stages.
constexpr int kSplitTileK = 16, kLineBytes = 128, kLineChunks = kLineBytes / 16;
constexpr int kSplitThreads = 256, kSplitRows = 8;

// A block splits eight columns; a warp one tile of them at a time.
__global__ void __launch_bounds__(kSplitThreads)
    split_b(const float* __restrict__ b, std::int64_t n, std::int64_t k, int k_tiles,
            float4* __restrict__ to) {
  constexpr int kWarps = kSplitThreads / 32;
  const int chunk = static_cast<int>(threadIdx.x) % 4, line = static_cast<int>(threadIdx.x) / 4 % 8;
  const std::int64_t column = std::int64_t{kSplitRows} * blockIdx.x + line;
  for (int k_tile = static_cast<int>(blockIdx.y * kWarps + threadIdx.x / 32); k_tile < k_tiles;
       k_tile += static_cast<int>(gridDim.y) * kWarps) {
    alignas(16) float large[4], small[4];
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      const std::int64_t at = std::int64_t{k_tile} * kSplitTileK + chunk + 4 * j;
      split(column < n && at < k ? b[column * k + at] : 0.0F, large[j], small[j]);
    }
    float4* chunks = to + ((column / kBN * k_tiles + k_tile) * kBN + column % kBN) * kLineChunks;
    chunks[chunk ^ line] = *reinterpret_cast<const float4*>(large);
    chunks[(chunk + 4) ^ line] = *reinterpret_cast<const float4*>(small);
  }
}

// --- The product ---------------------------------------------------------------------------------

constexpr int kConsumers = 2, kThreads = 128 * (kConsumers + 1);  // consumers are warpgroups

// A stage is 32 steps of k, two split tiles of B. Accumulators are added to FP32 after each stage.
constexpr int kBK = 32, kKTiles = kBK / kSplitTileK, kStages = 4;
constexpr int kABytes = kBM * kBK * 4, kSplitTileBytes = kBN * kLineBytes;
constexpr int kStageBytes = kABytes + kKTiles * kSplitTileBytes;
constexpr int kSharedBytes = kStages * kStageBytes + kSwizzleAlignment;

struct SplitOperands {
  int tile_rows, tile_columns;
  CUtensorMap a_map;
  const std::byte* b;  // split tiles
  int stages;          // per tile of C

  __host__ __device__ int tiles() const { return tile_rows * tile_columns; }
};

#ifdef __CUDA_ARCH_FEAT_SM90_ALL

// Accumulators of a thread for 64 rows; rows of tiles of a group.
constexpr int kAccumulators = kBN / 2, kGroup = 16;

using StageRing = Ring<kStageBytes>;

// Row and column of a tile: groups of kGroup rows, within a group column by column.
__device__ int2 place(const SplitOperands& of, int tile) {
  const int before = tile / (kGroup * of.tile_columns) * kGroup;
  const int index = tile - before * of.tile_columns, height = min(kGroup, of.tile_rows - before);
  return {before + index % height, index / height};
}

// acc = keep ? acc + a * b : a * b, for 64 x 8 elements of A in registers and 8 x 128 of B: a warp
// has 16 of the 64 rows, a thread rows lane / 4 and lane / 4 + 8, and of the 8 steps of k lane % 4
// and lane % 4 + 4, rows first. `a` must not be overwritten before the wait; ptxas does not know
// that.
__device__ void multiply_tf32(float (&acc)[kAccumulators], const std::uint32_t (&a)[4],
                              std::uint64_t b, int keep) {
  asm volatile(
      "{\n.reg .pred keep;\nsetp.ne.b32 keep, %69, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n128k8.f32.tf32.tf32 {" GEMM_PLACES_64
      "}, {%64, %65, %66, %67}, %68, keep, 1, 1;\n}"
      : GEMM_LIST_64("f")
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(keep));
}

// A consumer: half of a tile of C. In a wgmma fragment a thread has two rows, eight apart, of its
// warp's 16, and two of eight steps of k: of four consecutive elements of a row of A the first two
// belong to the first eight steps of a split tile, the others to the next eight.
struct Consumer {
  __device__ explicit Consumer(const StageRing& ring)
      : ring_(ring), row_(static_cast<int>(threadIdx.x) / 32 * 16 + lane() / 4) {}

  __device__ void multiply(int stages) {
#pragma unroll
    for (int i = 0; i < kAccumulators; ++i) totals_[i] = 0;
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
      for (int j = 0; j < kAccumulators; ++j) totals_[j] += acc_[0][j];
    }
  }

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
    const auto of_step = [](int step) {
      return (step / 2 * kSplitTileBytes + step % 2 * (kLineBytes / 4)) / 16;
    };
    wgmma_fence();
#pragma unroll
    for (int step = 0; step < kSteps; ++step)
      multiply_tf32(acc_[0], fragments_[kSteps + step], b + of_step(step), step > 0);
#pragma unroll
    for (int step = 0; step < kSteps; ++step)
      multiply_tf32(acc_[0], fragments_[step], b + of_step(step) + kLineBytes / 2 / 16, 1);
#pragma unroll
    for (int step = 0; step < kSteps; ++step)
      multiply_tf32(acc_[0], fragments_[step], b + of_step(step), 1);
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
  float acc_[1][kAccumulators], totals_[kAccumulators];
};

#endif  // __CUDA_ARCH_FEAT_SM90_ALL

__global__ void __launch_bounds__(kThreads, 1)
    multiply_split([[maybe_unused]] Problem p,
                   [[maybe_unused]] const __grid_constant__ SplitOperands operands,
                   [[maybe_unused]] float* c) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  extern __shared__ std::byte shared[];
  __shared__ RingBarriers<kStages> barriers;
  StageRing ring(shared, barriers);
  if (threadIdx.x == 0) ring.init_barriers(4 * kConsumers);  // their warps
  __syncthreads();
  if (threadIdx.x / 128 == kConsumers) {
    dealloc_registers<40>();  // of 168, which 384 threads have at first
    if (threadIdx.x % 128 != 0) return;
    constexpr int kBytes = kKTiles * kSplitTileBytes;
    for (int tile = static_cast<int>(blockIdx.x); tile < operands.tiles(); tile += gridDim.x) {
      const auto [row, column] = place(operands, tile);
      const std::byte* b = operands.b + std::int64_t{column} * operands.stages * kBytes;
      for (int i = 0; i < operands.stages; ++i, b += kBytes, ring.next()) {
        ring.begin_stage();
        tma_load(ring.data(), operands.a_map, i * kBK, row * kBM, ring.full());
        bulk_load(ring.data() + kABytes, b, kBytes, ring.full());
      }
    }
  } else {
    alloc_registers<232>();
    Consumer consumer(ring);
    for (int tile = static_cast<int>(blockIdx.x); tile < operands.tiles(); tile += gridDim.x) {
      consumer.multiply(operands.stages);
      // Stores of four elements, after an exchange between lanes, would change the registers of the
      // main loop and make it slower.
      const auto [row, column] = place(operands, tile);
      store_accumulators<float>(consumer.totals_, c, p.m, p.n,
                                row * kBM + static_cast<int>(threadIdx.x) / 128 * 64, column * kBN);
    }
  }
#endif
}

std::optional<std::string> unsupported(const Problem& p, const Device& device) {
  if (device.compute_capability != 90) return "requires compute capability 9.0";
  if (p.k % 4 != 0) return "requires k to be a multiple of 4, as TMA does";
  cudaFuncAttributes attributes{};
  if (cudaFuncGetAttributes(&attributes, multiply_split) != cudaSuccess)
    cudaGetLastError();  // no device
  else if (attributes.sharedSizeBytes == 0)
    return "requires sm_90a code (rebuild with -DCMAKE_CUDA_ARCHITECTURES=90a)";
  return std::nullopt;
}

Traffic traffic(const Problem& p, const Device&) {
  const double rows = 1.0 * ceil_div(p.m, kBM), columns = 1.0 * ceil_div(p.n, kBN);
  const double stages = 1.0 * ceil_div(p.k, kBK);
  const double a = 4.0 * p.m * p.k, b = 4.0 * p.k * p.n, c = 4.0 * p.m * p.n;
  const double split = columns * stages * kKTiles * kSplitTileBytes;
  // Shared-memory bytes per stage: the copies; loads of A, with every second row in the banks of
  // the first; three MMAs per warpgroup that read half of B's parts.
  constexpr double kOfStage =
      kStageBytes + 2.0 * kABytes + kConsumers * 1.5 * kKTiles * kSplitTileBytes;
  return {.dram = bytes_minimum(p) + 2 * split,
          .l2 = b + split + a * columns + split * rows + c,
          .shared = kOfStage * stages * rows * columns};
}

Launch prepare(const Problem& p, const Device& device, const Operands& o) {
  const int rows = static_cast<int>(ceil_div(p.m, kBM)),
            columns = static_cast<int>(ceil_div(p.n, kBN));
  const int stages = static_cast<int>(ceil_div(p.k, kBK)), k_tiles = stages * kKTiles;
  void* memory = nullptr;
  if (cudaMalloc(&memory, std::size_t{1} * columns * k_tiles * kSplitTileBytes) != cudaSuccess ||
      cudaFuncSetAttribute(multiply_split, cudaFuncAttributeMaxDynamicSharedMemorySize,
                           kSharedBytes) != cudaSuccess) {
    cudaGetLastError();  // clear the error, else the next launch would report it
    throw std::runtime_error("no memory for the split B");
  }
  const std::shared_ptr<void> split(memory, cudaFree);
  const SplitOperands operands{rows, columns,
                               tensor_map(static_cast<const float*>(o.a), p.m, p.k, p.k, kBM, kBK),
                               static_cast<const std::byte*>(memory), stages};
  const int blocks = std::min(std::max(1, device.sm_count), operands.tiles());
  const dim3 grid(columns * (kBN / kSplitRows), std::min(k_tiles * 32 / kSplitThreads + 1, 65535));
  return [=](Stream stream) {
    split_b<<<grid, kSplitThreads, 0, stream>>>(static_cast<const float*>(o.b), p.n, p.k, k_tiles,
                                                static_cast<float4*>(split.get()));
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
    .layouts = {Layout::nt},
    .unsupported = unsupported,
    .traffic = traffic,
    .prepare = prepare,
});

}  // namespace
}  // namespace gemm::tensor
