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
#include "kernels/parts/activation.cuh"
#include "kernels/parts/asynchronous.cuh"
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

// Two elements of C's type.
template <typename T>
using Pair = decltype(pair_of<T>(0.0F, 0.0F));

// What a thread has of a row of a tile, two of every eight columns: of the n elements of `row`,
// those from `column` on, and 0 behind them. Loads of a whole tile at even addresses do not wait
// for each other.
template <typename T>
__device__ void load_row(Pair<T> (&pairs)[kBN / 8], const T* row, int column, std::int64_t n,
                         bool whole) {
  row += column;
#pragma unroll
  for (int j = 0; whole && j < kBN / 8; ++j)
    pairs[j] = __ldg(reinterpret_cast<const Pair<T>*>(row + 8 * j));
  if (whole) return;
#pragma unroll
  for (int j = 0; j < kBN / 8; ++j) {
    pairs[j].x = column + 8 * j < n ? row[8 * j] : T(0.0F);
    pairs[j].y = column + 8 * j + 1 < n ? row[8 * j + 1] : T(0.0F);
  }
}

// To row 0 or 8 of the thread's accumulators.
template <bool kGelu, typename T>
__device__ void add_row(float (&acc)[kBN / 2], const Pair<T> (&pairs)[kBN / 8], int below) {
#pragma unroll
  for (int j = 0; j < kBN / 8; ++j) {
    float &left = acc[4 * j + 2 * below], &right = acc[4 * j + 2 * below + 1];
    left += static_cast<float>(pairs[j].x);
    right += static_cast<float>(pairs[j].y);
    if (kGelu) left = gelu(left), right = gelu(right);
  }
}

template <typename T, Activation kActivation>
__global__ void __launch_bounds__(kThreads, 1)
    wgmma_epilogue([[maybe_unused]] const __grid_constant__ EpilogueWork work) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  constexpr bool kBias = kActivation != Activation::residual;
  constexpr bool kGelu = kActivation == Activation::bias_gelu;
  extern __shared__ std::byte shared[];
  __shared__ RingBarriers<kStages> barriers;
  let_next_launch_begin();
  Ring<kStageBytes> ring(shared, barriers);
  if (threadIdx.x == 0) ring.init_barriers(kConsumerThreads / 32);
  if (threadIdx.x == kConsumerThreads) prefetch_maps(work, work.stores_by_tma());
  __syncthreads();
  const int first = static_cast<int>(blockIdx.x), blocks = static_cast<int>(gridDim.x);

  if (threadIdx.x >= kConsumerThreads) {
    dealloc_registers<40>();  // of 168, which 384 threads have at first
    if (threadIdx.x > kConsumerThreads) return;
    wait_for_previous_launch();  // everything else in the block depends on the loads
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
  wait_for_previous_launch();  // which may write what is added
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
    const int thread = static_cast<int>(threadIdx.x) % 128;
    const bool whole = column + kBN <= work.n && (kBias || work.n % 2 == 0);
    const auto load = [&](Pair<T>(&pairs)[kBN / 8], int below) {
      std::int64_t from = row + thread / 32 * 16 + thread % 32 / 4 + 8 * below;
      from = kBias ? 0 : (from < work.m ? from : work.m - 1) * work.n;
      load_row<T>(pairs, static_cast<const T*>(work.added) + from, column + thread % 4 * 2, work.n,
                  whole);
    };
    Pair<T> pairs[kBN / 8];
    load(pairs, 0);
    wgmma_wait_all(acc);
    release(before);
    add_row<kGelu, T>(acc[0], pairs, 0);
    if constexpr (!kBias) load(pairs, 1);
    add_row<kGelu, T>(acc[0], pairs, 1);
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
  return launched(kernel,
                  {.count = blocks_at_once(tiles, device),
                   .threads = kThreads,
                   .shared_bytes = kSharedBytes,
                   .overlaps = true},
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
  kernel.work = [traffic = kernel.traffic](const Problem& p, const Device& device) {
    return work_of(p, device, traffic(p, device), {kBM, kBN}, Tiles(p, kBM, kBN).count(),
                   device.sm_count);
  };
  return kernel;
}

const Registration registration(rung());

}  // namespace
}  // namespace gemm::tensor::wgmma_epilogue
