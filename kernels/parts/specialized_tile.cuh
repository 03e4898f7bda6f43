// Warp specialization for FP32 (compute capability 9.0). One warpgroup, the producer, loads K tiles
// of A and B by TMA into a ring of stages in shared memory; the consumer warpgroups multiply them.
// They synchronize by two mbarriers per stage: `full`, completed by the bytes of the loads, and
// `empty`, completed by the consumers. There is no barrier of the whole block.
//
// In shared memory a row of a K tile holds one step along k for all rows of A, or all columns of B
// (MN-major). Operands stored so (A of layouts tn and tt, B of nn and tn, rows of a multiple of 16
// bytes) are loaded with one TMA instruction per K tile; others are packed so beforehand, in every
// launch. So the main loop is the same for every layout.
//
// A thread tile is 16 x 8: 128 FMAs per 24 operands, six vector loads. The order of its
// instructions decides the rate (NOTES.md):
// - The loop must fit the instruction cache: with K tiles of 16 steps it has some 2,200
//   instructions, with 32 twice as many, which do not fit.
// - An FMA reads three registers, at most one from each of the two banks per cycle plus what the
//   operand cache holds. Serpentine order along a row of accumulators keeps one operand in that
//   cache.
// - The register allocator must be free to put an accumulator into the bank that the other operand
//   does not use. A 16-byte store would tie four accumulators to consecutive registers (see
//   Consumer::store).
#pragma once

#include <cuda.h>
#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "kernels/gemm.hpp"
#include "kernels/layout.hpp"
#include "kernels/parts/asynchronous.cuh"
#include "kernels/parts/cluster_launch.cuh"
#include "kernels/parts/device_array.cuh"
#include "kernels/parts/packed_operand.cuh"
#include "kernels/parts/ring.cuh"
#include "kernels/parts/store_patch.cuh"
#include "kernels/parts/tile_grid.cuh"
#include "kernels/parts/tile_launch.cuh"
#include "kernels/parts/tile_order.cuh"
#include "kernels/parts/tile_schedule.hpp"
#include "kernels/parts/tile_traffic.hpp"
#include "kernels/parts/warp_access.hpp"

namespace gemm::simt {

struct SpecializedWork {
  TileOrder tiles;
  int m, n, k_tiles;
  float* c;
  float one;  // 1: see Consumer::store
  CUtensorMap a_map, b_map;
};

// The consumers of an SM are two warpgroups: of one block, or of two blocks with smaller tiles.
template <int kBM_, int kBN_, int kStages_>
struct SpecializedTile {
  static constexpr int kBM = kBM_, kBN = kBN_, kBK = 16, kStages = kStages_;
  static constexpr int kWM = 64, kWN = 64, kTM = 16, kTN = 8;
  static constexpr int kConsumerThreads = 32 * (kBM / kWM) * (kBN / kWN), kProducerThreads = 128;
  static constexpr int kBlocks = 256 / kConsumerThreads;  // of an SM
  static constexpr int kThreads = kConsumerThreads + kProducerThreads;
  static constexpr int kABytes = kBM * kBK * static_cast<int>(sizeof(float));
  static constexpr int kStageBytes = kABytes + kBN * kBK * static_cast<int>(sizeof(float));
  static constexpr int kSharedBytes = kStages * (kStageBytes + 2 * kBarrierBytes);
  // 65,536 registers are 168 for each of 384 threads, or 128 for each of 512; setmaxnreg
  // redistributes them.
  static constexpr int kConsumerRegisters = kBlocks == 1 ? 232 : 216, kProducerRegisters = 40;
  // Sums of a tile that pass through the ring: a stage holds those of so many accumulators of each
  // thread.
  static constexpr int kSumsOfPart = kConsumerThreads == 128 ? 32 : 16,
                       kSumParts = kTM * kTN / kSumsOfPart,
                       kSumPartBytes = 4 * kSumsOfPart * kConsumerThreads;
  static_assert(kSumPartBytes <= kStageBytes);
  using Lanes = PairedLanes<8>;
  // Shared-memory wavefronts per K tile: the copies, and the vector loads of all consumer warps.
  static constexpr double kWavefronts =
      (kBM + kBN) * kBK / 32.0 +
      kConsumerThreads / 32 * kBK *
          (kTM / 4 *
               wavefronts(
                   4, [](int lane) { return 4 * Lanes::down(lane); }, 4) +
           kTN / 4 *
               wavefronts(
                   4, [](int lane) { return 4 * Lanes::across(lane); }, 4));
  static_assert(kBK % 8 == 0 && (kConsumerThreads == 128 || kConsumerThreads == 256),
                "registers are distributed for two consumer warpgroups of an SM");
};
using LargeTile = SpecializedTile<128, 256, 8>;

// Calls f<Tile>() for each tile among which StreamK chooses. The smaller ones waste less at the
// edges and exchange half as many sums; two blocks hide each other's stores.
template <typename F>
void for_each_tile(F f) {
  f.template operator()<LargeTile>();
  f.template operator()<SpecializedTile<128, 128, 7>>();
  f.template operator()<SpecializedTile<64, 256, 5>>();
  f.template operator()<SpecializedTile<256, 64, 5>>();
}

#ifdef __CUDA_ARCH_FEAT_SM90_ALL

// A position in the ring: the offset and full barrier of the next stage, and the phase of its
// barriers.
template <typename Tile>
struct RingPosition {
  std::uint32_t offset = 0, full;  // bytes from the first stage; its barrier
  int phase = 0;

  __device__ explicit RingPosition(std::uint32_t ring)
      : full(ring + Tile::kStages * Tile::kStageBytes) {}
  __device__ std::uint32_t empty() const { return full + kBarrierBytes * Tile::kStages; }
  __device__ void advance() {
    offset += Tile::kStageBytes;
    full += kBarrierBytes;
    if (offset < Tile::kStages * Tile::kStageBytes) return;
    full -= kBarrierBytes * Tile::kStages;
    offset = 0;
    phase ^= 1;
  }
};

// Producer thread, before its first load: launches overlap (programmatic dependent launch).
// Consumers wait for the loads.
__device__ inline void begin_loads() {
  wait_for_previous_launch();
  let_next_launch_begin();
}
// Loads a K tile of both operands into the ring.
template <typename Tile>
__device__ void load_k_tile(const SpecializedWork& work, std::uint32_t ring,
                            RingPosition<Tile>& position, TileOrder::Place tile, int k_tile) {
  wait(position.empty(), position.phase ^ 1);
  arrive_and_expect(position.full, Tile::kStageBytes);
  const std::uint32_t to = ring + position.offset;
  tma_load(to, work.a_map, tile.row * Tile::kBM, k_tile * Tile::kBK, position.full);
  tma_load(to + Tile::kABytes, work.b_map, tile.column * Tile::kBN, k_tile * Tile::kBK,
           position.full);
  position.advance();
}

// Loads a part of a tile's sums into the ring, contiguous in global memory: for each accumulator
// those of all threads.
template <typename Tile>
__device__ void load_sums(const float* from, std::uint32_t ring, RingPosition<Tile>& position) {
  wait(position.empty(), position.phase ^ 1);
  arrive_and_expect(position.full, Tile::kSumPartBytes);
  bulk_load(ring + position.offset, from, Tile::kSumPartBytes, position.full);
  position.advance();
}

template <typename Tile>
class Consumer {
 public:
  // `left`: the number of K tiles to come, of all calls of multiply().
  __device__ Consumer(std::byte* shared, int left)
      : position_(shared_address(shared)), left_(left) {
    first_a_ = reinterpret_cast<const float*>(shared) + first_row();
    first_b_ = reinterpret_cast<const float*>(shared) + Tile::kBM * Tile::kBK + first_column();
    load_first();
  }

  // accumulators = the product over so many K tiles.
  __device__ void multiply(int k_tiles) {
#pragma unroll
    for (int i = 0; i < Tile::kTM; ++i)
#pragma unroll
      for (int j = 0; j < Tile::kTN; ++j) acc_[i][j] = 0;
#pragma unroll 1
    for (; k_tiles > 0; --k_tiles) multiply_k_tile();
  }

  // Before multiply(): the producer loads the sums of so many tiles into the ring after the K
  // tiles.
  __device__ void expect_sums(int tiles) { left_ += tiles * Tile::kSumParts; }
  // Adds them.
  __device__ void add_sums(int tiles) {
#pragma unroll 1
    for (; tiles > 0; --tiles)
#pragma unroll
      for (int part = 0; part < Tile::kSumParts; ++part) {
        wait(position_.full, position_.phase);
        const float* sums = first_a_ - first_row() + position_.offset / sizeof(float) + threadIdx.x;
#pragma unroll
        for (int i = 0; i < Tile::kSumsOfPart; ++i) {
          const int index = part * Tile::kSumsOfPart + i;
          acc_[index / Tile::kTN][index % Tile::kTN] += sums[i * Tile::kConsumerThreads];
        }
        __syncwarp();
        if (threadIdx.x % 32 == 0) arrive(position_.empty());
        --left_;
        position_.advance();
      }
    load_first();
  }

  // Calls f(accumulator, index) for each accumulator.
  template <typename F>
  __device__ void for_each_accumulator(F f) {
#pragma unroll
    for (int i = 0; i < Tile::kTM; ++i)
#pragma unroll
      for (int j = 0; j < Tile::kTN; ++j) f(acc_[i][j], i * Tile::kTN + j);
  }

  // Stores to C, m x n. `one` is 1, unknown to the compiler: a 16-byte store needs four consecutive
  // registers, and the products by `one` can be there while the accumulators are allocated freely.
  template <Rows kRows>
  __device__ void store(float* c, TileOrder::Place tile, int m, int n, float one) const {
#pragma unroll
    for (int i = 0; i < Tile::kTM; ++i)
#pragma unroll
      for (int j = 0; j < Tile::kTN; j += 4) {
        const float four[] = {acc_[i][j] * one, acc_[i][j + 1] * one, acc_[i][j + 2] * one,
                              acc_[i][j + 3] * one};
        store_four<kRows>(c, tile, m, n, i * Tile::kTN + j, four);
      }
  }
  // Stores four accumulators from index `first` on. Called by all lanes of a warp.
  template <Rows kRows>
  static __device__ void store_four(float* c, TileOrder::Place tile, int m, int n, int first,
                                    const float (&four)[4]) {
    const int i = first / Tile::kTN, j = first % Tile::kTN;
    const int down = i / 4 * 16 + i % 4, across = 8 * j;
    if constexpr (kRows == Rows::any) {
      store_patch(c, m, n, tile.row * Tile::kBM + warp_row() + down, 4,
                  tile.column * Tile::kBN + warp_column() + across, four);
    } else {
      const int row = tile.row * Tile::kBM + first_row() + down,
                column = tile.column * Tile::kBN + first_column() + across;
      if (row >= m) return;
      float* to = c + std::int64_t{row} * n + column;
      if (column < n)
        *reinterpret_cast<float4*>(to) = make_float4(four[0], four[1], four[2], four[3]);
    }
  }

 private:
  // Operands are loaded as vectors: of A four rows of one step, kAhead loads before their use; of B
  // the next four steps, double-buffered.
  static constexpr int kAhead = 2, kGroups = Tile::kBK / 4, kAParts = 16, kBParts = 8;

  // The thread tile: groups of four, every 16th row and 32nd column of the warp tile.
  static __device__ int warp_row() {
    return threadIdx.x / 32 / (Tile::kBN / Tile::kWN) * Tile::kWM;
  }
  static __device__ int warp_column() {
    return threadIdx.x / 32 % (Tile::kBN / Tile::kWN) * Tile::kWN;
  }
  static __device__ int first_row() { return warp_row() + 4 * Tile::Lanes::down(threadIdx.x % 32); }
  static __device__ int first_column() {
    return warp_column() + 4 * Tile::Lanes::across(threadIdx.x % 32);
  }

  // Loads the first operands of the next K tile, if there is one.
  __device__ void load_first() {
    a_from_ = first_a_ + position_.offset / sizeof(float);
    b_from_ = first_b_ + position_.offset / sizeof(float);
    if (left_ == 0) return;
    wait(position_.full, position_.phase);
#pragma unroll
    for (int part = 0; part < kBParts; ++part) load_b(b_from_, 0, 0, part);
#pragma unroll
    for (int part = 0; part < kAhead; ++part) load_a(a_from_, 0, part);
  }
  __device__ void load_a(const float* stage, int group, int part) {
    const int step = 4 * group + part / 4;
    *reinterpret_cast<float4*>(a_[part % 4]) =
        *reinterpret_cast<const float4*>(stage + step * Tile::kBM + 16 * (part % 4));
  }
  __device__ void load_b(const float* stage, int buffer, int group, int part) {
    const int step = 4 * group + part / 2;
    *reinterpret_cast<float4*>(b_[buffer] + 4 * part) =
        *reinterpret_cast<const float4*>(stage + step * Tile::kBN + 32 * (part % 2));
  }

  __device__ void multiply_k_tile() {
    const std::uint32_t done = position_.empty();
    const float *next_a = a_from_, *next_b = b_from_;
    bool there = false;
#pragma unroll
    for (int group = 0; group < kGroups; ++group) {
      // Polls the next stage early. After the last one there is none to wait for: it is an old one
      // then.
      if (group == kGroups - 2) {
        --left_;
        position_.advance();
        there = try_wait(position_.full, next_phase());
      }
      if (group == kGroups - 1) {
        if (!there) wait(position_.full, next_phase());
        next_a = first_a_ + position_.offset / sizeof(float);
        next_b = first_b_ + position_.offset / sizeof(float);
      }
#pragma unroll
      for (int part = 0; part < kAParts; ++part) {
        if (part + kAhead < kAParts)
          load_a(a_from_, group, part + kAhead);
        else if (group + 1 < kGroups)
          load_a(a_from_, group + 1, part + kAhead - kAParts);
        else
          load_a(next_a, 0, part + kAhead - kAParts);
        if (part % 2 == 0) {
          if (group + 1 < kGroups)
            load_b(b_from_, (group + 1) % 2, group + 1, part / 2);
          else
            load_b(next_b, (group + 1) % 2, 0, part / 2);
        }
#pragma unroll
        for (int i = 0; i < 4; ++i)
#pragma unroll
          for (int j = 0; j < Tile::kTN; ++j) {
            const int serpentine = i % 2 == 0 ? j : Tile::kTN - 1 - j;
            float& sum = acc_[4 * (part % 4) + i][serpentine];
            sum = fmaf(a_[part % 4][i], b_[group % 2][Tile::kTN * (part / 4) + serpentine], sum);
          }
      }
    }
    __syncwarp();
    if (threadIdx.x % 32 == 0) arrive(done);
    a_from_ = next_a;
    b_from_ = next_b;
  }
  __device__ int next_phase() const { return left_ > 0 ? position_.phase : position_.phase ^ 1; }

  RingPosition<Tile> position_;
  int left_;  // stages to come
  const float *first_a_, *first_b_, *a_from_, *b_from_;
  float a_[4][4], b_[2][32];
  float acc_[Tile::kTM][Tile::kTN];
};

// A barrier of the consumers only.
template <typename Tile>
__device__ void sync_consumers() {
  asm volatile("bar.sync 1, %0;" ::"n"(Tile::kConsumerThreads) : "memory");
}

// Called by one thread, before a barrier of the block.
template <typename Tile>
__device__ void init_ring(std::uint32_t ring) {
  const std::uint32_t full = RingPosition<Tile>(ring).full;
  for (int stage = 0; stage < Tile::kStages; ++stage) {
    init_barrier(full + kBarrierBytes * stage, 1);
    init_barrier(full + kBarrierBytes * (Tile::kStages + stage), Tile::kConsumerThreads / 32);
  }
  fence_barrier_init();
}

#endif  // __CUDA_ARCH_FEAT_SM90_ALL

// A kernel for C's rows, aligned or any: in one kernel, the code of the second store would change
// how ptxas allocates registers of the main loop.
template <typename Work>
struct SpecializedKernels {
  void (*aligned)(Work);
  void (*any)(Work);

  auto of(const Problem& p) const { return p.n % 4 == 0 ? aligned : any; }
};

// Completes the description of a kernel.
template <typename Tile, typename Work>
Kernel specialized_kernel(SpecializedKernels<Work> kernels, Kernel description) {
  description.precisions = {Precision::f32};
  description.layouts = {kLayouts.begin(), kLayouts.end()};
  description.unsupported = [kernels](const Problem& p,
                                      const Device& device) -> std::optional<std::string> {
    if (auto why = sm_90a_unsupported(kernels.of(p), device)) return why;
    if (!counts_fit(p, Tile::kBM, Tile::kBN, Tile::kBK)) return kCountsDoNotFit;
    return std::nullopt;
  };
  return description;
}

// Bytes that packing both operands moves.
inline double packing_bytes(const Problem& p) {
  return packing_bytes(operand_a<float>(p, nullptr), false) +
         packing_bytes(operand_b<float>(p, nullptr), false);
}
// Packing adds its bytes at every level.
template <typename Tile>
Traffic specialized_traffic(const Problem& p) {
  Traffic traffic = tile_traffic(p, Tile::kBM, Tile::kBN, Tile::kBK, Tile::kWavefronts);
  const double packed = packing_bytes(p);
  traffic.dram += packed;
  traffic.l2 += packed;
  traffic.shared += packed;
  return traffic;
}

// The work of a schedule of these tiles.
template <typename Tile>
Work specialized_work(const Problem& p, const Device& device, const TileSchedule& schedule) {
  const double elements = 1.0 * Tile::kBM * Tile::kBN, bytes = sizeof(float) * elements;
  const double products = elements * schedule.tiles() * static_cast<double>(p.k);
  const double packed = packing_bytes(p);
  return work_of(schedule,
                 {.traffic = specialized_traffic<Tile>(p),
                  .cycles = fp32_cycles(products, device),
                  .packed = packed,
                  .launches = packed > 0 ? 2.0 : 1.0},
                 device.sm_count, bytes, bytes, false);
}

// A launch of so many blocks. Fills in the SpecializedWork part of `work` and keeps `memory` alive.
// Throws std::runtime_error if allocation fails.
template <typename Tile, typename Work>
Launch specialized_launch(SpecializedKernels<Work> kernels, const Problem& p, const Operands& o,
                          Work work, int blocks, DeviceMemory memory = {}) {
  const auto kernel = kernels.of(p);
  allow_shared_bytes(kernel, Tile::kSharedBytes);
  const PackedOperand<float> a = packed(operand_a<float>(p, o.a), false),
                             b = packed(operand_b<float>(p, o.b), false);
  const TileSchedule whole = whole_tiles(p, Tile::kBM, Tile::kBN, Tile::kBK);
  static_cast<SpecializedWork&>(work) = {
      .tiles = {.rows = whole.tile_rows, .columns = whole.tile_columns, .group = 8},
      .m = static_cast<int>(p.m),
      .n = static_cast<int>(p.n),
      .k_tiles = whole.k_tiles,
      .c = static_cast<float*>(o.c),
      .one = 1,
      .a_map = tensor_map(a.matrix, p.k, p.m, a.pitch, Tile::kBK, Tile::kBM),
      .b_map = tensor_map(b.matrix, p.k, p.n, b.pitch, Tile::kBK, Tile::kBN)};
  const LaunchShape shape{blocks, Tile::kThreads, Tile::kSharedBytes, 1, true};
  return [=, packing = pack(a, b), memory = std::move(memory)](Stream stream) {
    if (packing) packing(stream);
    enqueue(kernel, shape, stream, work);
  };
}

}  // namespace gemm::simt
