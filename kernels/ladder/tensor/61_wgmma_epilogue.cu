// A bias, bias and GELU, or a residual in the epilogue: what is added is added to the accumulators
// where they are, in registers, before C is staged for TMA. A launch of its own would load and
// store C once more. A thread loads the bias of its columns while the last MMAs run. GELU is the
// tanh form by the special function unit. Cost: these instructions, while the tensor cores wait.
//
// The next bottleneck: the special function units. Both consumers apply GELU at about the same
// time.
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "kernels/ladder/tensor/launch.cuh"
#include "kernels/parts/ring.cuh"
#include "kernels/parts/wgmma.cuh"
#include "kernels/registry.hpp"

namespace gemm::tensor::wgmma_epilogue {
namespace {

constexpr int kBM = 128, kBN = 256, kBK = 64;  // 64 steps of k are lines of 128 bytes
constexpr int kStages = 4, kConsumers = 2;     // consumers are warpgroups
constexpr int kGroup = 16;                     // rows of tiles
constexpr int kConsumerThreads = 128 * kConsumers, kThreads = kConsumerThreads + 128;
constexpr int kABytes = kBM * 128, kStageBytes = (kBM + kBN) * 128;

// The epilogue stages 64 x 128 of C for each consumer.
constexpr int kStaged = 128;
constexpr int kSharedBytes =
    kStages * kStageBytes + kConsumers * staging_bytes(kStaged) + kSwizzleAlignment;

// With the bias, or the matrix that is added to C.
struct EpilogueWork : Work {
  const void* added;
};

// The elements at `index` and the next one, 0 from `end` on. Both are loaded at once if `index` is
// even, as it always is where `even`.
template <typename T>
__device__ float2 two_of(const void* from, std::int64_t index, std::int64_t end, bool even) {
  const T* at = static_cast<const T*>(from) + index;
  if (index + 1 < end && even) {
    using Pair = decltype(pair_of<T>(0.0F, 0.0F));
    const Pair pair = __ldg(reinterpret_cast<const Pair*>(at));
    return {static_cast<float>(pair.x), static_cast<float>(pair.y)};
  }
  return {index < end ? static_cast<float>(at[0]) : 0.0F,
          index + 1 < end ? static_cast<float>(at[1]) : 0.0F};
}

// x times the logistic function of 2 sqrt(2 / pi) (x + 0.044715 x^3), which is half of 1 + tanh.
__device__ float gelu(float x) {
  float tanh;
  asm("tanh.approx.f32 %0, %1;" : "=f"(tanh) : "f"(x * fmaf(0.03567740814F * x, x, 0.7978845608F)));
  return fmaf(0.5F * x, tanh, 0.5F * x);
}

// The bias of a thread's columns of a tile, two of every eight.
template <typename T>
__device__ void load_bias(float2 (&bias)[kBN / 8], const EpilogueWork& work, int first_column) {
  const int column = first_column + static_cast<int>(threadIdx.x) % 4 * 2;
#pragma unroll
  for (int j = 0; j < kBN / 8; ++j) bias[j] = two_of<T>(work.added, column + 8 * j, work.n, true);
}

template <bool kGelu>
__device__ void add_bias(float (&acc)[kBN / 2], const float2 (&bias)[kBN / 8]) {
#pragma unroll
  for (int i = 0; i < kBN / 2; ++i) {
    const float x = acc[i] + (i % 2 == 0 ? bias[i / 4].x : bias[i / 4].y);
    acc[i] = kGelu ? gelu(x) : x;
  }
}

template <typename T>
__device__ void add_residual(float (&acc)[kBN / 2], const EpilogueWork& work, int first_row,
                             int first_column) {
  const int thread = static_cast<int>(threadIdx.x) % 128;
  const std::int64_t column = first_column + thread % 4 * 2;
#pragma unroll
  for (int below = 0; below < 2; ++below) {
    const std::int64_t row = first_row + thread / 32 * 16 + thread % 32 / 4 + 8 * below;
    if (row >= work.m) return;
    const std::int64_t begin = row * work.n;
#pragma unroll
    for (int j = 0; j < kBN / 8; ++j) {
      const float2 pair =
          two_of<T>(work.added, begin + column + 8 * j, begin + work.n, work.n % 2 == 0);
      acc[4 * j + 2 * below] += pair.x;
      acc[4 * j + 2 * below + 1] += pair.y;
    }
  }
}

template <typename T, Activation kActivation>
__global__ void __launch_bounds__(kThreads, 1)
    wgmma_epilogue([[maybe_unused]] const __grid_constant__ EpilogueWork work) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  constexpr bool kBias = kActivation != Activation::residual;
  extern __shared__ std::byte shared[];
  __shared__ RingBarriers<kStages> barriers;
  Ring<kStageBytes> ring(shared, barriers);
  if (threadIdx.x == 0) ring.init_barriers(kConsumerThreads / 32);
  __syncthreads();
  const int first = static_cast<int>(blockIdx.x), blocks = static_cast<int>(gridDim.x);

  if (threadIdx.x >= kConsumerThreads) {
    dealloc_registers<40>();  // of 168, which 384 threads have at first
    if (threadIdx.x > kConsumerThreads) return;
    for (int index = first; index < work.tiles.count(); index += blocks) {
      const auto place = work.tiles.place(index);
      const int row = place.row * kBM, column = place.column * kBN;
      for (int k_tile = 0; k_tile < work.k_tiles; ++k_tile, ring.next()) {
        ring.begin_stage();
        tma_load(ring.data(), work.a_map, k_tile * kBK, row, ring.full());
        tma_load(ring.data() + kABytes, work.b_map, k_tile * kBK, column, ring.full());
      }
    }
    return;
  }

  alloc_registers<232>();
  const int consumer = static_cast<int>(threadIdx.x) / 128;
  const int offset = consumer * 64 * 128;  // of its 64 rows in a K tile of A
  const std::uint32_t staging = ring.end() + consumer * staging_bytes(kStaged);
  float acc[1][kBN / 2];
  for (int index = first; index < work.tiles.count(); index += blocks) {
    std::uint32_t before = 0;
#pragma unroll 1
    for (int k_tile = 0; k_tile < work.k_tiles; ++k_tile, ring.next()) {
      ring.wait_for_stage();
      wgmma_fence();
      multiply_k_tile<T>(acc, ring.data() + offset, ring.data() + kABytes, k_tile > 0);
      wgmma_commit();
      wgmma_wait<1>();  // for the previous K tile
      if (k_tile > 0) release(before);
      before = ring.empty();
    }
    const auto place = work.tiles.place(index);
    const int row = place.row * kBM + 64 * consumer, column = place.column * kBN;
    [[maybe_unused]] float2 bias[kBN / 8];
    if constexpr (kBias) load_bias<T>(bias, work, column);
    wgmma_wait_all(acc);
    release(before);
    if constexpr (kBias)
      add_bias<kActivation == Activation::bias_gelu>(acc[0], bias);
    else
      add_residual<T>(acc[0], work, row, column);
    if (work.stores_by_tma())
      store_by_tma<T, kStaged>(acc[0], work.c_map, row, column, staging, consumer);
    else
      store_accumulators<T>(acc[0], work.c, work.m, work.n, row, column);
  }
  if (threadIdx.x % 128 == 0) tma_store_wait_read();  // shared memory is freed at the end
#endif
}

template <typename T>
Launch launch(const Problem& p, const Device& device, const Operands& o) {
  const Tiles tiles(p, kBM, kBN, kGroup);
  const auto c_map = p.n % 8 != 0 ? CUtensorMap{}
                                  : tensor_map(static_cast<T*>(o.c), p.m, p.n, p.n, 64, 64,
                                               CU_TENSOR_MAP_SWIZZLE_128B);
  const int k_tiles = static_cast<int>(ceil_div(p.k, kBK));
  const Work work{tiles,
                  p.m,
                  p.n,
                  k_tiles,
                  o.c,
                  k_major_map<T>(o.a, p.m, p.k, kBM),
                  k_major_map<T>(o.b, p.n, p.k, kBN),
                  c_map};
  const bool residual = p.activation == Activation::residual;
  const auto kernel = residual                           ? wgmma_epilogue<T, Activation::residual>
                      : p.activation == Activation::bias ? wgmma_epilogue<T, Activation::bias>
                                                         : wgmma_epilogue<T, Activation::bias_gelu>;
  return launched(kernel, {blocks_at_once(tiles, device), kThreads, kSharedBytes},
                  EpilogueWork{work, residual ? o.residual : o.bias});
}

Kernel rung() {
  Kernel kernel = nt_rung(
      {
          .name = "WgmmaEpilogue",
          .idea =
              "Bias, bias and GELU, or a residual, applied to the accumulators before the store.",
          .source = "NVIDIA, CUTLASS 3, epilogue fusion",
          .rung = 61,
          .activations = {Activation::bias, Activation::bias_gelu, Activation::residual},
          .unsupported = needs_sm_90a(wgmma_epilogue<__half, Activation::bias>),
      },
      {kBM, kBN, 128, wgmma_bytes(kBM, kBN), Epilogue::tma},
      {{Precision::bf16, launch<__nv_bfloat16>}, {Precision::f16, launch<__half>}});
  kernel.traffic = [plain = kernel.traffic](const Problem& p, const Device& device) {
    Traffic traffic = plain(p, device);
    // The bias once for each row of tiles.
    const auto added =
        static_cast<double>(elements_of_bias(p) * ceil_div(p.m, kBM) + elements_of_residual(p));
    traffic.l2 += traits_of(p.precision).output_bytes * added;
    return traffic;
  };
  return kernel;
}

const Registration registration(rung());

}  // namespace
}  // namespace gemm::tensor::wgmma_epilogue
