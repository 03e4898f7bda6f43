// A tile of C on the tensor cores of compute capability 9.0. One warpgroup, the producer, has
// slices of A and B copied into a ring of stages in shared memory; two or three others, the
// consumers, have the tensor cores multiply what lies there, each its share of the tile's rows, or
// tiles of its own, while their sums stay in registers. They meet at two barriers a stage: `full`,
// which the copied bytes end, and `empty`, which the consumers end.
//
// A slice is 128 bytes of k deep, in the 128-byte swizzle. Factors of 16 bits may lie along k or
// across it (along m or n). In shared memory the others have to lie along k; a TF32 A across k goes
// through registers, where each thread turns what it multiplies.
//
// Rungs of the ladder switch on one thing after another: blocks that stay for many tiles in compact
// groups, stores by the copy engine, clusters of two blocks that share what they read, consumers
// that take turns, and tiles cut along k (tile_schedule.hpp).
#pragma once

#include <cuda.h>
#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "kernels/common/asynchronous.cuh"
#include "kernels/common/tile_schedule.hpp"
#include "kernels/tensor/wgmma/wgmma.cuh"

namespace gemm::tensor {

struct WgmmaWork {
  simt::TileSchedule schedule;  // its blocks are clusters, and its tiles those of a cluster
  std::int64_t m, n;
  int group;     // rows of tiles that neighbouring tiles walk down
  bool by_copy;  // C's rows begin at multiples of 16 bytes: the copy engine may store them
  void* c;
  void* partials;  // kBM x kBN sums for each rank of the schedule and block of a cluster
  int* arrived;    // a flag for each of these and each consumer; all zero between launches
};

// A tile of C and how it is computed: what the rungs switch on.
struct WgmmaShape {
  int rows, columns;
  int stages;  // at most: as many as fit beside what is staged
  int consumers = 2;
  int cluster = 2;  // blocks that compute tiles below each other and share what they read of B
  bool shares_a = false;       // or tiles beside each other, and A
  bool stores_by_copy = true;  // by the copy engine, out of shared memory
  bool ping_pong = false;      // each consumer has tiles of its own and stores one while the other
                               // multiplies
  bool promoted = false;       // every 128 of k the tensor cores' sums, which have 14 bits of FP8's
                               // products, are added to sums in FP32
  int staged = 128;            // columns of C that a consumer stores at once, if by copy
  int halves = 1;              // promoted: of the columns, which are multiplied one after the other

  // Of C, a cluster.
  constexpr int cluster_rows() const { return shares_a ? rows : cluster * rows; }
  constexpr int cluster_columns() const { return shares_a ? cluster * columns : columns; }
};

// kAAcross: A lies along m; kBAcross: B lies along n. kTurnsC: it computes the transpose of C,
// whose m rows are C's columns, from A = B^T and B = A^T.
template <typename Element_, typename Output_, bool kAAcross_, bool kBAcross_, WgmmaShape kShape,
          bool kTurnsC_ = false>
struct WgmmaTile {
  using Element = Element_;
  using Output = Output_;
  using Sum = SumOf<Element>;
  static constexpr int kBM = kShape.rows, kBN = kShape.columns;
  static constexpr bool kAAcross = kAAcross_, kBAcross = kBAcross_, kTurnsC = kTurnsC_;
  static constexpr int kCluster = kShape.cluster;
  static constexpr bool kSharesA = kShape.shares_a, kPromoted = kShape.promoted;
  static constexpr bool kPingPong = kShape.ping_pong;
  static constexpr int kRowBytes = 128, kBK = kRowBytes / static_cast<int>(sizeof(Element));
  static constexpr int kConsumers = kShape.consumers, kSharers = kPingPong ? 1 : kConsumers;
  static constexpr int kWM = kBM / kSharers, kParts = kWM / 64;
  static constexpr int kConsumerThreads = 128 * kConsumers, kThreads = kConsumerThreads + 128;
  static constexpr int kABytes = kBM * kRowBytes, kBBytes = kBN * kRowBytes;
  static constexpr int kStageBytes = kABytes + kBBytes;
  static constexpr int kPartBytes = 64 * kRowBytes;     // 64 rows
  static constexpr int kAcrossBytes = kBK * kRowBytes;  // of 128 bytes of m or n
  static constexpr bool kAInRegisters = kAAcross && sizeof(Element) == 4;
  // C is stored by the copy engine in boxes of 64 x 64, from memory of each consumer's own.
  static constexpr bool kStoresByCopy = kShape.stores_by_copy && sizeof(Output) == 2;
  static constexpr int kStagedColumns = kShape.staged;
  static constexpr int kStagingBytes = kStoresByCopy ? 64 * kStagedColumns * 2 : 0;
  static constexpr int kAlignment = 1024;                         // of the swizzle
  static constexpr int kMostBytes = 232448 - 64 * kShape.stages;  // what a block of 9.0 has
  static constexpr int kBesideBytes = kConsumers * kStagingBytes + kAlignment;
  static constexpr int kFitting = (kMostBytes - kBesideBytes) / kStageBytes;
  static constexpr int kStages = kShape.stages < kFitting ? kShape.stages : kFitting;
  static constexpr int kSharedBytes = kStages * kStageBytes + kBesideBytes;
  // 65,536 registers are 168 for each of 384 threads, 128 for each of 512, which the warpgroups
  // then share unequally.
  static constexpr int kProducerRegisters = kConsumers == 2 ? 40 : 32;
  static constexpr int kConsumerRegisters = kConsumers == 2 ? 232 : 160;
  // Columns whose sums are in the tensor cores' hands at once.
  static constexpr int kHalves = kShape.halves;
  static constexpr int kColumns = kBN / kHalves, kSums = kColumns / 2;
  static_assert(kConsumers == 2 || kConsumers == 3);
  static_assert(kHalves == 1 || kHalves == 2 && kPromoted && kParts == 1);
  static_assert(kWM % 64 == 0 && kBN % (8 * kCluster) == 0);
  static_assert(!kBAcross || kBN % 64 == 0, "boxes of 64 columns");
  static_assert(sizeof(Element) == 2 || !kBAcross && (sizeof(Element) == 4 || !kAAcross));
  static_assert(!kTurnsC || kAInRegisters && std::is_same_v<Output, float>);
  static_assert(!(kPromoted && kPingPong), "the other consumer fills the gaps");
  static_assert(kStagedColumns % 64 == 0 && kBN % kStagedColumns == 0 || !kStoresByCopy);
  static_assert(kStages >= 2);
};

#ifdef __CUDA_ARCH_FEAT_SM90_ALL

// The stages of the ring in shared memory, and who may use them.
template <typename Tile>
struct WgmmaRing {
  std::uint32_t first;        // address of the first stage
  std::uint32_t full, empty;  // addresses of the first stage's barriers
  int stage = 0, parity = 0;  // how far one has come around

  __device__ std::uint32_t a() const { return first + stage * Tile::kStageBytes; }
  __device__ std::uint32_t b() const { return a() + Tile::kABytes; }
  __device__ std::uint32_t is_full() const { return full + stage * kBarrierBytes; }
  __device__ std::uint32_t is_empty() const { return empty + stage * kBarrierBytes; }
  __device__ std::uint32_t staging(int consumer) const {
    return first + Tile::kStages * Tile::kStageBytes + consumer * Tile::kStagingBytes;
  }
  __device__ void advance() {
    if (++stage < Tile::kStages) return;
    stage = 0;
    parity ^= 1;
  }
  __device__ void advance(int slices) {
    stage += slices;
    parity ^= stage / Tile::kStages & 1;
    stage %= Tile::kStages;
  }
};

// The first row and column of a block's tile. Neighbouring tiles walk down columns of `group`
// tiles, so that those computed at the same time touch few rows of A and columns of B.
struct WgmmaPlace {
  int row, column;
};
template <typename Tile>
__device__ WgmmaPlace place_of(int tile, const WgmmaWork& work, int rank) {
  const int in_group = work.group * work.schedule.tile_columns;
  const int group = tile / in_group, index = tile - group * in_group;
  const int rows = min(work.group, work.schedule.tile_rows - group * work.group);
  const int row = group * work.group + index % rows, column = index / rows;
  if constexpr (Tile::kSharesA)
    return {row * Tile::kBM, (column * Tile::kCluster + rank) * Tile::kBN};
  return {(row * Tile::kCluster + rank) * Tile::kBM, column * Tile::kBN};
}

// Asks for a slice of kRows rows of A, or columns of B, from `first` on. Where the blocks of a
// cluster share it, each brings its part to all of them.
template <typename Tile, int kRows, bool kAcross, bool kShared>
__device__ void bring(std::uint32_t to, const CUtensorMap& map, int first, int k, int rank,
                      std::uint32_t full) {
  constexpr int kBlocks = kShared ? Tile::kCluster : 1;
  const auto copy = [&](int at, int x, int y) {
    if constexpr (kBlocks > 1)
      copy_box_to((1 << kBlocks) - 1, to + at, map, x, y, full);
    else
      copy_box(to + at, map, x, y, full);
  };
  const int part = kBlocks > 1 ? rank : 0;
  if constexpr (kAcross) {
    const int deep = part * (Tile::kBK / kBlocks);
#pragma unroll
    for (int chunk = 0; chunk < kRows / Tile::kBK; ++chunk)
      copy(chunk * Tile::kAcrossBytes + deep * Tile::kRowBytes, first + Tile::kBK * chunk,
           k + deep);
  } else {
    const int row = part * (kRows / kBlocks);
    copy(row * Tile::kRowBytes, k, first + row);
  }
}

template <typename Tile>
__device__ void produce(const WgmmaWork& work, const CUtensorMap& a_map, const CUtensorMap& b_map,
                        WgmmaRing<Tile> ring, int rank) {
  constexpr bool kShares = Tile::kCluster > 1;
  simt::TileWalk walk(work.schedule, blockIdx.x / Tile::kCluster);
  for (simt::TilePiece piece; walk.next(work.schedule, piece);) {
    const WgmmaPlace tile = place_of<Tile>(piece.tile, work, rank);
    wait_for_previous_launch();  // all that follows in the block waits for these copies
    for (int slice = piece.first; slice < piece.end; ++slice, ring.advance()) {
      const int k = slice * Tile::kBK;
      wait(ring.is_empty(), ring.parity ^ 1);
      arrive_and_expect(ring.is_full(), Tile::kStageBytes);
      bring<Tile, Tile::kBM, Tile::kAAcross, kShares && Tile::kSharesA>(ring.a(), a_map, tile.row,
                                                                        k, rank, ring.is_full());
      bring<Tile, Tile::kBN, Tile::kBAcross, kShares && !Tile::kSharesA>(
          ring.b(), b_map, tile.column, k, rank, ring.is_full());
    }
  }
  // A block must not end while others may arrive at its barriers.
  if constexpr (kShares)
    for (int stage = 0; stage < Tile::kStages; ++stage, ring.advance())
      wait(ring.is_empty(), ring.parity ^ 1);
}

template <typename Tile>
class WgmmaConsumer {
 public:
  using Sum = typename Tile::Sum;
  using Output = typename Tile::Output;

  __device__ WgmmaConsumer(const WgmmaRing<Tile>& ring, int rank)
      : ring_(ring),
        rank_(rank),
        consumer_(static_cast<int>(threadIdx.x) / 128),
        of_tile_(Tile::kPingPong ? 0 : consumer_) {}

  // sums = the product of so many slices, of which there is at least one.
  // `others`: whether the other consumer has a piece after this one.
  __device__ void multiply(int slices, bool others) {
    if constexpr (Tile::kPromoted)
      multiply_promoted(slices);
    else if constexpr (Tile::kAInRegisters)
      multiply_registers(slices, others);
    else
      multiply_fast(slices, others);
  }

  // f(sum, index) of each sum.
  template <typename F>
  __device__ void each_sum(F f) {
#pragma unroll
    for (int part = 0; part < Tile::kParts; ++part)
#pragma unroll
      for (int half = 0; half < Tile::kHalves; ++half)
#pragma unroll
        for (int i = 0; i < Tile::kSums; ++i)
          f(sums_[part][half][i], (part * Tile::kHalves + half) * Tile::kSums + i);
  }

  __device__ void store(const WgmmaWork& work, const CUtensorMap& c_map, WgmmaPlace tile) {
    if constexpr (Tile::kStoresByCopy) {
      if (work.by_copy) {
        store_by_copy(c_map, tile);
        return;
      }
    }
    if constexpr (Tile::kTurnsC)
      store_turned(work, tile);
    else
      store_by_threads(work, tile);
  }

  // Before the block may end.
  __device__ void finish() const {
    if (Tile::kStoresByCopy && threadIdx.x % 128 == 0) wait_until_stores_read();
  }

  // Where the sums of a rank lie, and the flag that says so.
  __device__ Sum* partial_of(const WgmmaWork& work, int rank) const {
    return static_cast<Sum*>(work.partials) +
           (std::int64_t{rank} * Tile::kCluster + rank_) * Tile::kBM * Tile::kBN + thread_of_tile();
  }
  __device__ int* flag_of(const WgmmaWork& work, int rank) const {
    return work.arrived + (rank * Tile::kCluster + rank_) * Tile::kConsumers + of_tile_;
  }
  static constexpr int kThreadsOfTile = 128 * Tile::kSharers;
  static __device__ int thread_of_tile() { return static_cast<int>(threadIdx.x) % kThreadsOfTile; }
  // Whether a block's piece of this number is another consumer's; if so it is passed over.
  __device__ bool leaves_out(int piece, int slices) {
    if (!Tile::kPingPong || piece % Tile::kConsumers == consumer_) return false;
    ring_.advance(slices);
    return true;
  }
  // In turns: a consumer waits for stages of its piece only once the one before has all of its own,
  // since a barrier knows but two phases.
  __device__ void take_turn(int piece) const {
    if (Tile::kPingPong && piece > 0)
      asm volatile("bar.sync %0, 256;" ::"r"(kTurns + consumer_) : "memory");
  }

  // The other consumer's begins, if it has a piece.
  __device__ void end_turn(bool others) const {
    if (Tile::kPingPong && others)
      asm volatile("bar.arrive %0, 256;" ::"r"(kTurns + 1 - consumer_) : "memory");
  }

  // Only this consumer's threads meet.
  __device__ void sync() const {
    asm volatile("bar.sync %0, 128;" ::"r"(consumer_ + 1) : "memory");
  }

 private:
  static constexpr int kTurns = 4;  // the first of two barriers; 1 to 3 are the consumers' own
  static __device__ int lane() { return static_cast<int>(threadIdx.x) % 32; }

  // The descriptors of this consumer's rows of A, and of B, in the current stage.
  __device__ std::uint64_t a() const {
    const std::uint32_t at = ring_.a() + of_tile_ * Tile::kParts * Tile::kPartBytes;
    return Tile::kAAcross ? swizzled_across(at, Tile::kAcrossBytes) : swizzled_rows(at);
  }
  __device__ std::uint64_t b() const {
    return Tile::kBAcross ? swizzled_across(ring_.b(), Tile::kAcrossBytes)
                          : swizzled_rows(ring_.b());
  }
  __device__ void multiply_slice(Sum (&sums)[Tile::kSums], std::uint64_t a, std::uint64_t b,
                                 int step, int keep) {
    constexpr int kDeep = kProductDepth<typename Tile::Element>;
    constexpr int kAlong = 32 >> 4, kAcross = kDeep * Tile::kRowBytes >> 4;
    tensor::multiply<typename Tile::Element, Tile::kAAcross, Tile::kBAcross>(
        sums, a + step * (Tile::kAAcross ? kAcross : kAlong),
        b + step * (Tile::kBAcross ? kAcross : kAlong), keep);
  }
  static constexpr int kSteps = Tile::kRowBytes / 32;

  // The block that fills a stage fills it in all blocks of the cluster.
  __device__ void release(std::uint32_t empty) const {
    if constexpr (Tile::kCluster == 1) {
      if (lane() == 0) arrive(empty);
    } else {
      if (lane() < Tile::kCluster) arrive_at(empty, lane());
    }
  }

  __device__ void multiply_fast(int slices, bool others) {
    std::uint32_t used = 0;
#pragma unroll 1
    for (int i = 0; i < slices; ++i) {
      wait(ring_.is_full(), ring_.parity);
      fence_products();
#pragma unroll
      for (int step = 0; step < kSteps; ++step)
#pragma unroll
        for (int part = 0; part < Tile::kParts; ++part)
          multiply_slice(sums_[part][0], a() + part * (Tile::kPartBytes >> 4), b(), step,
                         i > 0 || step > 0);
      commit_products();
      // Those of the slice before are done, and its stage is free.
      wait_for_groups<1>();
      if (i > 0) release(used);
      used = ring_.is_empty();
      ring_.advance();
    }
    end_turn(others);
    wait_for_all();
    release(used);
  }

  // While two steps are multiplied the next one's A is loaded.
  __device__ void multiply_registers(int slices, bool others) {
    std::uint32_t a[kSteps][Tile::kParts][4];
    std::uint32_t used = 0;
    const bool never = ring_.first == 0;
    wait(ring_.is_full(), ring_.parity);
    load_turned(a[0], 0);
#pragma unroll 1
    for (int i = 0; i < slices; ++i) {
      const std::uint64_t b_slice = b();
#pragma unroll
      for (int step = 0; step < kSteps; ++step) {
        constexpr int kAlong = 32 >> 4;
        const int before = (step + kSteps - 1) % kSteps, after = (step + 1) % kSteps;
        fence_products();
#pragma unroll
        for (int part = 0; part < Tile::kParts; ++part)
          tensor::multiply_registers(sums_[part][0], a[step][part], b_slice + step * kAlong,
                                     i > 0 || step > 0);
        commit_products();
        const std::uint32_t last = used;
        if (after == 0) {
          used = ring_.is_empty();
          ring_.advance();
          if (i + 1 < slices) wait(ring_.is_full(), ring_.parity);
        }
        if (after > 0 || i + 1 < slices) load_turned(a[after], after);
        wait_for_groups<1>();  // the step before is done
        if (never) keep(a[before]);
        if (step == 0 && i > 0) release(last);
      }
    }
    end_turn(others);
    wait_for_all();
    if (never) keep(a[kSteps - 1]);
    release(used);
  }

  // Of a part's 64 rows of A across k, and eight steps of k, what multiply_registers of wgmma.cuh
  // wants of a thread, but for the order of the rows: a warp's rows lane / 4 and 8 more are
  // 2 (lane / 4) and the next, which lie together. Odd threads read their later step first, so that
  // the eight steps which half a warp reads are in different banks.
  __device__ void load_turned(std::uint32_t (&a)[Tile::kParts][4], int step) const {
    const int warp = static_cast<int>(threadIdx.x) / 32 % 4, odd = lane() % 2;
#pragma unroll
    for (int part = 0; part < Tile::kParts; ++part) {
      const std::uint32_t chunk =
          ring_.a() + ((of_tile_ * Tile::kParts + part) * 2 + warp / 2) * Tile::kAcrossBytes;
      std::uint32_t read[2][2];
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const int deep = lane() % 4 + 4 * (odd ^ i);  // of eight steps
        const int piece = (4 * (warp % 2) + lane() / 8) ^ deep;
        asm volatile(
            "ld.shared.v2.b32 {%0, %1}, [%2];"
            : "=r"(read[i][0]), "=r"(read[i][1])
            : "r"(chunk + (8 * step + deep) * Tile::kRowBytes + piece * 16 + lane() / 4 % 2 * 8)
            : "memory");
      }
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        a[part][i] = odd ? read[1][i] : read[0][i];
        a[part][2 + i] = odd ? read[0][i] : read[1][i];
      }
    }
  }
  // Never called: ptxas (13.0) takes registers for free once a product that reads them is under
  // way. What is used after the wait it must keep.
  __device__ void keep(const std::uint32_t (&a)[Tile::kParts][4]) const {
#pragma unroll
    for (int part = 0; part < Tile::kParts; ++part)
      asm volatile("st.shared.v4.b32 [%0], {%1, %2, %3, %4};" ::"r"(ring_.first + 16 * part),
                   "r"(a[part][0]), "r"(a[part][1]), "r"(a[part][2]), "r"(a[part][3])
                   : "memory");
  }

  // Two halves of the columns take turns: one is multiplied while the other's sums are added up.
  // Where there is one, the other consumers fill the gap.
  __device__ void multiply_promoted(int slices) {
    each_sum([](Sum& sum, int) { sum = 0; });
    Sum partial[Tile::kHalves][Tile::kSums];
    const auto enqueue = [&](int part, int half) {
      fence_products();
#pragma unroll
      for (int step = 0; step < kSteps; ++step)
        multiply_slice(partial[half], a() + part * (Tile::kPartBytes >> 4),
                       b() + half * (Tile::kColumns * Tile::kRowBytes >> 4), step, step > 0);
      commit_products();
    };
    const auto add = [&](int part, int half) {
      take_sums(partial[half]);
#pragma unroll
      for (int j = 0; j < Tile::kSums; ++j) sums_[part][half][j] += partial[half][j];
    };
#pragma unroll 1
    for (int i = 0; i < slices; ++i, ring_.advance()) {
      wait(ring_.is_full(), ring_.parity);
#pragma unroll
      for (int part = 0; part < Tile::kParts; ++part) {
        enqueue(part, 0);
        if constexpr (Tile::kHalves == 2) {
          enqueue(part, 1);
          wait_for_groups<1>();
          add(part, 0);
        }
        wait_for_groups<0>();
        if (part + 1 == Tile::kParts) release(ring_.is_empty());
        add(part, Tile::kHalves - 1);
      }
    }
  }

  __device__ void wait_for_all() {
    wait_for_groups<0>();
#pragma unroll
    for (int part = 0; part < Tile::kParts; ++part) take_sums(sums_[part][0]);
  }

  // In the fragments of wgmma a thread has two rows of its warp's 16, and of each eight columns
  // two: sums 4j and 4j + 1 of the first row, 4j + 2 and 4j + 3 of the second. The rows are eight
  // apart, but together where A was turned.
  __device__ Sum sum_of(int part, int j) const {
    return sums_[part][j / Tile::kSums][j % Tile::kSums];
  }

  __device__ int row_of_tile(int part, int second) const {
    const int warp = static_cast<int>(threadIdx.x) / 32 % 4;
    const int row =
        Tile::kAInRegisters ? lane() / 4 * 2 + second : lane() / 4 + 8 * second;  // of the warp's
    return (of_tile_ * Tile::kParts + part) * 64 + 16 * warp + row;
  }

  static __device__ std::uint32_t pair(float x, float y) {
    if constexpr (std::is_same_v<Output, __half>) {
      const __half2 two = __floats2half2_rn(x, y);
      return *reinterpret_cast<const std::uint32_t*>(&two);
    } else {
      const __nv_bfloat162 two = __floats2bfloat162_rn(x, y);
      return *reinterpret_cast<const std::uint32_t*>(&two);
    }
  }

  // Through shared memory, where rows of 128 bytes lie in the swizzle.
  __device__ void store_by_copy(const CUtensorMap& c_map, WgmmaPlace tile) const {
    constexpr int kBoxBytes = 64 * 64 * 2;
    const bool first = threadIdx.x % 128 == 0;
    const std::uint32_t staging = ring_.staging(consumer_);
    const int warp = static_cast<int>(threadIdx.x) / 32 % 4;
    const int row = 16 * warp + lane() % 16;
#pragma unroll
    for (int part = 0; part < Tile::kParts; ++part)
#pragma unroll
      for (int column = 0; column < Tile::kBN; column += Tile::kStagedColumns) {
        if (first) wait_until_stores_read();
        sync();
#pragma unroll
        for (int i = 0; i < Tile::kStagedColumns; i += 16) {
          const int j = (column + i) / 2;
          const int piece = i % 64 / 8 + lane() / 16;
          const std::uint32_t to =
              staging + i / 64 * kBoxBytes + row * 128 + (piece ^ row % 8) * 16;
          asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(to),
                       "r"(pair(sum_of(part, j), sum_of(part, j + 1))),
                       "r"(pair(sum_of(part, j + 2), sum_of(part, j + 3))),
                       "r"(pair(sum_of(part, j + 4), sum_of(part, j + 5))),
                       "r"(pair(sum_of(part, j + 6), sum_of(part, j + 7)))
                       : "memory");
        }
        publish_shared();
        sync();
        if (first) {
#pragma unroll
          for (int i = 0; i < Tile::kStagedColumns; i += 64)
            store_box(c_map, tile.column + column + i,
                      tile.row + (of_tile_ * Tile::kParts + part) * 64,
                      staging + i / 64 * kBoxBytes);
          commit_stores();
        }
      }
  }

  // Columns of the tile are rows of C: eight threads write 64 bytes of one.
  __device__ void store_turned(const WgmmaWork& work, WgmmaPlace tile) const {
#pragma unroll
    for (int part = 0; part < Tile::kParts; ++part) {
      const std::int64_t row = tile.row + row_of_tile(part, 0);
      if (row >= work.m) continue;
#pragma unroll
      for (int j = 0; j < Tile::kBN / 8; ++j)
#pragma unroll
        for (int i = 0; i < 2; ++i) {
          const std::int64_t column = tile.column + 8 * j + lane() % 4 * 2 + i;
          if (column >= work.n) continue;
          Output* to = static_cast<Output*>(work.c) + column * work.m + row;
          const Sum x = sum_of(part, 4 * j + i), y = sum_of(part, 4 * j + 2 + i);
          if (work.m % 2 == 0) {
            *reinterpret_cast<float2*>(to) = make_float2(x, y);
          } else {
            to[0] = x;
            if (row + 1 < work.m) to[1] = y;
          }
        }
    }
  }

  __device__ void store_by_threads(const WgmmaWork& work, WgmmaPlace tile) const {
#pragma unroll
    for (int part = 0; part < Tile::kParts; ++part)
#pragma unroll
      for (int below = 0; below < 2; ++below) {
        const std::int64_t row = tile.row + row_of_tile(part, below);
        if (row >= work.m) continue;
        Output* to = static_cast<Output*>(work.c) + row * work.n;
#pragma unroll
        for (int j = 0; j < Tile::kBN / 8; ++j) {
          const std::int64_t column = tile.column + 8 * j + lane() % 4 * 2;
          const Sum x = sum_of(part, 4 * j + 2 * below), y = sum_of(part, 4 * j + 2 * below + 1);
          if (work.n % 2 == 0) {
            if (column < work.n) {
              if constexpr (sizeof(Output) == 2)
                *reinterpret_cast<std::uint32_t*>(to + column) = pair(x, y);
              else if constexpr (std::is_same_v<Output, float>)
                *reinterpret_cast<float2*>(to + column) = make_float2(x, y);
              else
                *reinterpret_cast<int2*>(to + column) = make_int2(x, y);
            }
          } else {
            if (column < work.n) to[column] = static_cast<Output>(x);
            if (column + 1 < work.n) to[column + 1] = static_cast<Output>(y);
          }
        }
      }
  }

  WgmmaRing<Tile> ring_;
  int rank_, consumer_;
  int of_tile_;  // whose rows of a tile it has: the first 64 kParts or the next
  Sum sums_[Tile::kParts][Tile::kHalves][Tile::kSums];
};

// The sums of a rank's first piece go to its own tile of the workspace, and are announced.
template <typename Tile>
__device__ void leave_partial(WgmmaConsumer<Tile>& sums, const WgmmaWork& work, int rank) {
  auto* to = sums.partial_of(work, rank);
  sums.each_sum([&](auto& sum, int i) { __stcg(to + i * sums.kThreadsOfTile, sum); });
  __threadfence();
  sums.sync();
  if (threadIdx.x % 128 == 0) raise_flag(sums.flag_of(work, rank));
}

// Adds what the next ranks summed up of the tile, always in the same order.
template <typename Tile>
__device__ void add_partials(WgmmaConsumer<Tile>& sums, const WgmmaWork& work, int rank, int tile) {
  const int end = (tile + 1) * work.schedule.slices;
  int other = rank;
  do {
    ++other;
    if (threadIdx.x % 32 == 0) wait_for_flag(sums.flag_of(work, other));
    __syncwarp();
    const auto* from = sums.partial_of(work, other);
    sums.each_sum([&](auto& sum, int i) { sum += __ldcg(from + i * sums.kThreadsOfTile); });
  } while (work.schedule.share(other + 1) < end);
  sums.sync();  // all have seen the flags, which go down for the next launch
  if (threadIdx.x % 128 == 0)
    for (int seen = rank + 1; seen <= other; ++seen) *sums.flag_of(work, seen) = 0;
}

#endif  // __CUDA_ARCH_FEAT_SM90_ALL

// A grid of clusters, as many as the schedule has blocks. c_map is used if work.by_copy.
template <typename Tile>
__global__ void __launch_bounds__(Tile::kThreads, 1)
    wgmma_tiles([[maybe_unused]] const __grid_constant__ WgmmaWork work,
                [[maybe_unused]] const __grid_constant__ CUtensorMap a_map,
                [[maybe_unused]] const __grid_constant__ CUtensorMap b_map,
                [[maybe_unused]] const __grid_constant__ CUtensorMap c_map) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  extern __shared__ std::byte shared[];
  __shared__ std::uint64_t full[Tile::kStages], empty[Tile::kStages];
  let_next_launch_begin();
  const int rank = Tile::kCluster > 1 ? rank_in_cluster() : 0;
  const WgmmaRing<Tile> ring{
      (shared_address(shared) + Tile::kAlignment - 1) / Tile::kAlignment * Tile::kAlignment,
      shared_address(full), shared_address(empty)};
  if (threadIdx.x == 0) {
    for (int stage = 0; stage < Tile::kStages; ++stage) {
      init_barrier(ring.full + stage * kBarrierBytes, 1);
      init_barrier(ring.empty + stage * kBarrierBytes, 4 * Tile::kSharers * Tile::kCluster);
    }
    publish_barriers();
  } else if (threadIdx.x == Tile::kConsumerThreads) {
    prefetch_map(a_map);
    prefetch_map(b_map);
    if (work.by_copy) prefetch_map(c_map);
  }
  if constexpr (Tile::kCluster > 1)
    sync_cluster();
  else
    __syncthreads();
  if (threadIdx.x >= Tile::kConsumerThreads) {
    give_up_registers<Tile::kProducerRegisters>();
    if (threadIdx.x == Tile::kConsumerThreads) produce<Tile>(work, a_map, b_map, ring, rank);
  } else {
    take_registers<Tile::kConsumerRegisters>();
    WgmmaConsumer<Tile> sums(ring, rank);
    const int cluster = static_cast<int>(blockIdx.x) / Tile::kCluster;
    simt::TileWalk walk(work.schedule, cluster);
    int number = 0;
    for (simt::TilePiece piece; walk.next(work.schedule, piece); ++number) {
      if (sums.leaves_out(number, piece.end - piece.first)) continue;
      sums.take_turn(number);
      sums.multiply(piece.end - piece.first, walk.left(work.schedule) > 0);
      const int of_line = work.schedule.rank(cluster);
      if (piece.first > 0) {
        leave_partial(sums, work, of_line);
        continue;
      }
      if (piece.end < work.schedule.slices) add_partials(sums, work, of_line, piece.tile);
      sums.store(work, c_map, place_of<Tile>(piece.tile, work, rank));
    }
    sums.finish();
  }
#endif
}

}  // namespace gemm::tensor
