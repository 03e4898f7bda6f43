// GEMM with a short side: at most 512 rows of A, such as the tokens of a decoding language model,
// times a weight matrix. The time is that of streaming the weights from DRAM, so the kernel is
// designed for DRAM bandwidth.
//
// wgmma has M = 64 and N = 8 to 256. The operands are swapped, C^T = B^T A^T: the long side of the
// weights is M, and the tokens are padded to N = 8, not to 64. More than 256 tokens are two tiles.
// For few columns A has the long side, and nothing is swapped.
//
// - One producer thread fills a ring of stages by TMA, the other warps multiply. All blocks have
//   equal numbers of K tiles and advance along k together: neighbours read adjacent data of a DRAM
//   page.
// - With fewer tiles than SMs the blocks of a cluster split k and reduce their accumulators through
//   distributed shared memory, each element always in the same order. No workspace, no flags, no
//   second launch.
// - Programmatic dependent launch: blocks of the next launch start where the stages leave room on
//   an SM, initialise barriers, and wait until this launch has stored its results.
// - Weights larger than the L2 are loaded with evict_first.
//
// 16-bit operands may be K-major or MN-major. Others must be K-major or are packed so in every
// launch, as are rows not aligned to 16 bytes. Rows and tokens beyond the edges
// are not loaded, because TMA is slow to fill them with zeros (NOTES.md): what is computed from
// such shared memory is not stored.
//
// Tensor cores accumulate FP8 with 14 bits: without "fast" accumulators are promoted to FP32 every
// 128 steps of k.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "kernels/common/asynchronous.cuh"
#include "kernels/common/cluster_launch.cuh"
#include "kernels/common/packed_operand.cuh"
#include "kernels/common/ring.cuh"
#include "kernels/common/tile_launch.cuh"
#include "kernels/registry.hpp"
#include "kernels/tensor/skinny/swapped_plan.hpp"
#include "kernels/tensor/store_row.cuh"
#include "kernels/tensor/wgmma/staged_operand.cuh"
#include "kernels/tensor/wgmma/wgmma.cuh"

namespace gemm::tensor {

constexpr int kMaxStages = 16;
constexpr int kBarrierSpace = 2 * kMaxStages * kBarrierBytes;

template <typename Element>
using OutputOf = std::conditional_t<
    std::is_same_v<Element, __half>, __half,
    std::conditional_t<sizeof(Element) == 4 || std::is_same_v<Element, std::int8_t>,
                       AccumulatorOf<Element>, __nv_bfloat16>>;

// A block computes kRows of the long side by all tokens; a K tile is kLines lines of 128 bytes
// deep. kMnMajor: the weights are MN-major; kTokensMnMajor: the tokens. kPromote: accumulators are
// promoted after each line.
template <typename Element_, bool kMnMajor_, bool kTokensMnMajor_, bool kPromote_, int kRows_,
          int kTokens_, int kLines_>
struct SwappedTile {
  using Element = Element_;
  using Accumulator = AccumulatorOf<Element>;
  using Output = OutputOf<Element>;
  static constexpr bool kMnMajor = kMnMajor_, kTokensMnMajor = kTokensMnMajor_,
                        kPromote = kPromote_;
  static constexpr int kRows = kRows_, kTokens = kTokens_, kLines = kLines_;
  static constexpr int kDepth = kStageLineBytes / static_cast<int>(sizeof(Element));  // per line
  static constexpr int kConsumerThreads = 2 * kRows, kThreads = kConsumerThreads + 32;
  static constexpr int kAccumulators = kTokens / 2;  // per thread
  static constexpr int kWeightBytes = kRows * kStageLineBytes * kLines;
  static constexpr int kTokenBytes = kTokens * kStageLineBytes * kLines;
  static constexpr int kStageBytes = kWeightBytes + kTokenBytes;
  // An MN-major operand is loaded in groups of 64 rows or tokens: of each step of k 128 bytes.
  static constexpr int kGroupBytes = 64 * kStageLineBytes * kLines;
  // Accumulators in shared memory for the reduction, one row per token; the padding avoids bank
  // conflicts of the eight rows and four tokens that a warp stores at a time.
  static constexpr int kAccumulatorPitch = kRows + 4;
  static constexpr int kAccumulatorBytes = kTokens * kAccumulatorPitch * 4;
  static_assert(kDepth * kLines <= 256 && kRows % 64 == 0);
  static_assert(!kTokensMnMajor || kTokens % 64 == 0);
};

namespace {

struct SwappedWork {
  int rows, tokens, token_tiles;      // of C: long side and short side
  std::int64_t row_step, token_step;  // strides in C
  void* c;
  int k_tiles, splits, stages;  // per tile, per cluster, of the ring
  bool read_once;               // the weights, with evict_first
  CUtensorMap weights_map, tokens_map;
  CUtensorMap weights_edge, tokens_edge;  // of the last tile, where K-major rows do not fill it
};

#ifdef __CUDA_ARCH_FEAT_SM90_ALL

// The share of a block: K tiles [begin, end) of a tile. Blocks with the same weights are
// neighbours.
struct Share {
  int tile, token_tile, rank, begin, end;

  __device__ explicit Share(const SwappedWork& work)
      : tile(static_cast<int>(blockIdx.x) / work.splits / work.token_tiles),
        token_tile(static_cast<int>(blockIdx.x) / work.splits % work.token_tiles),
        rank(static_cast<int>(blockIdx.x) % work.splits),
        begin(static_cast<int>(std::int64_t{work.k_tiles} * rank / work.splits)),
        end(static_cast<int>(std::int64_t{work.k_tiles} * (rank + 1) / work.splits)) {}
};

template <typename Tile>
__device__ void load_k_tiles(const SwappedWork& work, const Share& share,
                             Ring<Tile::kStageBytes> ring) {
  const std::uint64_t policy = cache_policy(work.read_once);
  const int row = share.tile * Tile::kRows, token = share.token_tile * Tile::kTokens;
  const int rows = min(work.rows - row, Tile::kRows),
            tokens = min(work.tokens - token, Tile::kTokens);
  const int lines = (Tile::kMnMajor ? (rows + 63) / 64 * 64 : rows) +
                    (Tile::kTokensMnMajor ? (tokens + 63) / 64 * 64 : tokens);
  const CUtensorMap& weights_map = rows < Tile::kRows ? work.weights_edge : work.weights_map;
  const CUtensorMap& tokens_map = tokens < Tile::kTokens ? work.tokens_edge : work.tokens_map;
  for (int k_tile = share.begin; k_tile < share.end; ++k_tile, ring.next()) {
    const int k = k_tile * Tile::kLines * Tile::kDepth;
    ring.begin_stage(lines * kStageLineBytes * Tile::kLines);
    if constexpr (Tile::kMnMajor) {
#pragma unroll
      for (int group = 0; group < Tile::kRows / 64; ++group)
        if (group * 64 < rows)
          tma_load(ring.data() + group * Tile::kGroupBytes, work.weights_map, row + group * 64, k,
                   ring.full(), policy);
    } else {
#pragma unroll
      for (int line = 0; line < Tile::kLines; ++line)
        tma_load(ring.data() + line * Tile::kRows * kStageLineBytes, weights_map,
                 k + line * Tile::kDepth, row, ring.full());
    }
    if constexpr (Tile::kTokensMnMajor) {
#pragma unroll
      for (int group = 0; group < Tile::kTokens / 64; ++group)
        if (group * 64 < tokens)
          tma_load(ring.data() + Tile::kWeightBytes + group * Tile::kGroupBytes, tokens_map,
                   token + group * 64, k, ring.full());
    } else {
#pragma unroll
      for (int line = 0; line < Tile::kLines; ++line)
        tma_load(ring.data() + Tile::kWeightBytes + line * Tile::kTokens * kStageLineBytes,
                 tokens_map, k + line * Tile::kDepth, token, ring.full());
    }
  }
}

// Issues the MMAs of a warpgroup for one line of a stage: acc = keep ? acc + product : product.
template <typename Tile>
__device__ void issue_line(const Ring<Tile::kStageBytes>& ring, int line, bool keep,
                           typename Tile::Accumulator (&acc)[Tile::kAccumulators]) {
  using Element = typename Tile::Element;
  constexpr int kStepDepth = kMmaK<Element>;
  const int group = static_cast<int>(threadIdx.x) / 128;
  constexpr int kBytes = static_cast<int>(sizeof(Element)),
                kMnLine = Tile::kDepth * kStageLineBytes;
  // Of an operand in the line and the distance between steps in units of 16 bytes.
  const std::uint32_t first_token = ring.data() + Tile::kWeightBytes;
  const std::uint64_t weights =
      Tile::kMnMajor
          ? mn_major_descriptor(ring.data() + group * Tile::kGroupBytes + line * kMnLine, 0)
          : k_major_descriptor(ring.data() + (line * Tile::kRows + group * 64) * kStageLineBytes);
  const std::uint64_t tokens =
      Tile::kTokensMnMajor
          ? mn_major_descriptor(first_token + line * kMnLine, Tile::kGroupBytes)
          : k_major_descriptor(first_token + line * Tile::kTokens * kStageLineBytes);
  constexpr int kAlongK = kStepDepth * kBytes / 16, kAcrossK = kStepDepth * kStageLineBytes / 16;
#pragma unroll
  for (int step = 0; step < Tile::kDepth / kStepDepth; ++step)
    multiply<Element, Tile::kMnMajor, Tile::kTokensMnMajor>(
        acc, weights + step * (Tile::kMnMajor ? kAcrossK : kAlongK),
        tokens + step * (Tile::kTokensMnMajor ? kAcrossK : kAlongK), keep || step > 0);
}

// acc = the product over so many K tiles, at least one. Waits for the MMAs of a K tile only after
// those of the next one are issued.
template <typename Tile>
__device__ void multiply_k_tiles(Ring<Tile::kStageBytes>& ring, int k_tiles,
                                 typename Tile::Accumulator (&acc)[Tile::kAccumulators]) {
  std::uint32_t before = 0;
#pragma unroll 1
  for (int k_tile = 0; k_tile < k_tiles; ++k_tile, ring.next()) {
    ring.wait_for_stage();
    wgmma_fence();
#pragma unroll
    for (int line = 0; line < Tile::kLines; ++line)
      issue_line<Tile>(ring, line, k_tile > 0 || line > 0, acc);
    wgmma_commit();
    wgmma_wait<1>();
    if (k_tile > 0) release(before);
    before = ring.empty();
  }
  wgmma_wait_all(acc);
  release(before);
}

// The same, promoted: totals = the sum of the products over each line.
template <typename Tile>
__device__ void multiply_promoted(Ring<Tile::kStageBytes>& ring, int k_tiles,
                                  typename Tile::Accumulator (&totals)[Tile::kAccumulators]) {
#pragma unroll
  for (int i = 0; i < Tile::kAccumulators; ++i) totals[i] = 0;
  typename Tile::Accumulator acc[Tile::kAccumulators];
#pragma unroll 1
  for (int k_tile = 0; k_tile < k_tiles; ++k_tile, ring.next()) {
    ring.wait_for_stage();
#pragma unroll
    for (int line = 0; line < Tile::kLines; ++line) {
      wgmma_fence();
      issue_line<Tile>(ring, line, false, acc);
      wgmma_commit();
      wgmma_wait_all(acc);
      if (line + 1 == Tile::kLines) release(ring.empty());
#pragma unroll
      for (int i = 0; i < Tile::kAccumulators; ++i) totals[i] += acc[i];
    }
  }
}

// A barrier of the consumers only.
template <typename Tile>
__device__ void sync_consumers() {
  asm volatile("bar.sync 1, %0;" ::"n"(Tile::kConsumerThreads) : "memory");
}
// In wgmma fragments a thread has two rows, eight apart, of its warp's 16, and two of every eight
// tokens.
template <typename Tile>
__device__ void store_to_shared(const typename Tile::Accumulator (&acc)[Tile::kAccumulators],
                                std::uint32_t to) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int row = static_cast<int>(threadIdx.x) / 32 * 16 + lane / 4, token = lane % 4 * 2;
  to += (token * Tile::kAccumulatorPitch + row) * 4;
#pragma unroll
  for (int i = 0; i < Tile::kAccumulators; ++i) {
    const int down = i / 2 % 2 * 8, right = i / 4 * 8 + i % 2;
    std::uint32_t bits;
    memcpy(&bits, &acc[i], sizeof bits);
    asm volatile("st.shared.b32 [%0], %1;" ::"r"(to + (right * Tile::kAccumulatorPitch + down) * 4),
                 "r"(bits)
                 : "memory");
  }
}

// Loads kCount accumulators, 2 or 4, from this block's shared memory.
template <int kCount, typename Accumulator>
__device__ void load_own(Accumulator (&to)[kCount], std::uint32_t address) {
  static_assert(kCount == 2 || kCount == 4);
  std::uint32_t bits[kCount];
  if constexpr (kCount == 4)
    asm volatile("ld.shared.v4.b32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(bits[0]), "=r"(bits[1]), "=r"(bits[2]), "=r"(bits[3])
                 : "r"(address)
                 : "memory");
  else
    asm volatile("ld.shared.v2.b32 {%0, %1}, [%2];"
                 : "=r"(bits[0]), "=r"(bits[1])
                 : "r"(address)
                 : "memory");
  memcpy(to, bits, sizeof bits);
}
// The same from a block of the cluster.
template <int kCount, typename Accumulator>
__device__ void load_from_block(Accumulator (&to)[kCount], std::uint32_t address, int block) {
  static_assert(kCount == 2 || kCount == 4);
  std::uint32_t bits[kCount], there;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(address), "r"(block));
  if constexpr (kCount == 4)
    asm volatile("ld.shared::cluster.v4.b32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(bits[0]), "=r"(bits[1]), "=r"(bits[2]), "=r"(bits[3])
                 : "r"(there)
                 : "memory");
  else
    asm volatile("ld.shared::cluster.v2.b32 {%0, %1}, [%2];"
                 : "=r"(bits[0]), "=r"(bits[1])
                 : "r"(there)
                 : "memory");
  memcpy(to, bits, sizeof bits);
}

// sums[i] = the sum over the cluster of the accumulators at addresses[i]. Each block begins with
// its own and goes on with the next one, so that no two read from the same block at a time.
template <int kAtOnce, int kCount, typename Accumulator>
__device__ void reduce(const SwappedWork& work, const Share& share,
                       const std::uint32_t (&addresses)[kAtOnce],
                       Accumulator (&sums)[kAtOnce][kCount]) {
#pragma unroll
  for (int i = 0; i < kAtOnce; ++i) load_own(sums[i], addresses[i]);
#pragma unroll 4
  for (int further = 1; further < work.splits; ++further) {
    const int block = share.rank + further;
    Accumulator other[kAtOnce][kCount];
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i)
      load_from_block(other[i], addresses[i], block < work.splits ? block : block - work.splits);
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i)
#pragma unroll
      for (int j = 0; j < kCount; ++j) sums[i][j] += other[i][j];
  }
}

// Reduces and stores the block's share of the tile, four consecutive rows of a token at a time and
// kAtOnce of them, to hide the latency of the loads; neighbouring threads have neighbouring
// elements of a row of C. Where the long side is along rows, these are aligned to four elements.
template <typename Tile>
__device__ void store_share(const SwappedWork& work, const Share& share, std::uint32_t acc) {
  using Accumulator = typename Tile::Accumulator;
  using Output = typename Tile::Output;
  struct alignas(4 * sizeof(Output)) Four {
    Output values[4];
  };
  constexpr int kFours = Tile::kRows / 4, kAtOnce = 4;
  const bool along = work.row_step == 1;
  const int first_token = share.token_tile * Tile::kTokens;
  const int tokens = min(work.tokens - first_token, Tile::kTokens);
  const int step = work.splits * Tile::kConsumerThreads;
  for (int first = share.rank * Tile::kConsumerThreads + static_cast<int>(threadIdx.x);
       first < tokens * kFours; first += kAtOnce * step) {
    int token[kAtOnce], row[kAtOnce];
    std::uint32_t addresses[kAtOnce];
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) {
      const int at = min(first + i * step, tokens * kFours - 1);
      token[i] = along ? at / kFours : at % tokens;
      row[i] = 4 * (along ? at % kFours : at / tokens);
      addresses[i] = acc + (token[i] * Tile::kAccumulatorPitch + row[i]) * 4;
    }
    Accumulator sums[kAtOnce][4];
    reduce(work, share, addresses, sums);
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) {
      if (first + i * step >= tokens * kFours) break;
      Four result;
#pragma unroll
      for (int j = 0; j < 4; ++j) result.values[j] = static_cast<Output>(sums[i][j]);
      const int at = share.tile * Tile::kRows + row[i];
      Output* to = static_cast<Output*>(work.c) + at * work.row_step +
                   (first_token + token[i]) * work.token_step;
      if (along && at < work.rows) {
        *reinterpret_cast<Four*>(to) = result;
      } else {
#pragma unroll
        for (int j = 0; j < 4; ++j)
          if (at + j < work.rows) to[j * work.row_step] = result.values[j];
      }
    }
  }
}

// The same where rows of C have any alignment: a warp stores the kRows elements of a token.
template <typename Tile>
__device__ void store_unaligned(const SwappedWork& work, const Share& share, std::uint32_t acc) {
  using Output = typename Tile::Output;
  constexpr int kPairs = Tile::kRows / 64, kWarps = Tile::kConsumerThreads / 32;
  constexpr int kAtOnce = 4 / kPairs;  // tokens
  const int first_token = share.token_tile * Tile::kTokens;
  const int tokens = min(work.tokens - first_token, Tile::kTokens);
  const int row = share.tile * Tile::kRows, count = min(work.rows - row, Tile::kRows);
  const int lane = static_cast<int>(threadIdx.x) % 32, step = work.splits * kWarps;
  for (int first = share.rank * kWarps + static_cast<int>(threadIdx.x) / 32; first < tokens;
       first += kAtOnce * step) {
    typename Tile::Accumulator sums[kAtOnce * kPairs][2];
    std::uint32_t addresses[kAtOnce * kPairs];
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i)
#pragma unroll
      for (int j = 0; j < kPairs; ++j)
        addresses[i * kPairs + j] =
            acc +
            (min(first + i * step, tokens - 1) * Tile::kAccumulatorPitch + 64 * j + 2 * lane) * 4;
    reduce(work, share, addresses, sums);
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) {
      const int token = first + i * step;
      if (token >= tokens) break;
      Output* to = static_cast<Output*>(work.c) + (first_token + token) * work.token_step + row;
      if constexpr (sizeof(Output) == 2) {
        std::uint32_t pairs[kPairs];
#pragma unroll
        for (int j = 0; j < kPairs; ++j) {
          const auto& sum = sums[i * kPairs + j];
          const Output pair[2] = {static_cast<Output>(sum[0]), static_cast<Output>(sum[1])};
          memcpy(&pairs[j], pair, sizeof pair);
        }
        store_row(reinterpret_cast<std::uint16_t*>(to), pairs, count);
      } else {
#pragma unroll
        for (int j = 0; j < 2 * kPairs; ++j) {
          const int at = 64 * (j / 2) + 2 * lane + j % 2;
          if (at < count) to[at] = sums[i * kPairs + j / 2][j % 2];
        }
      }
    }
  }
}

#endif  // __CUDA_ARCH_FEAT_SM90_ALL

template <typename Tile>
__global__ void __launch_bounds__(Tile::kThreads)
    stream_weights([[maybe_unused]] const __grid_constant__ SwappedWork work) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  extern __shared__ std::byte shared[];
  __shared__ RingBarriers<kMaxStages> barriers;
  Ring<Tile::kStageBytes> ring(shared, barriers, work.stages);
  if (threadIdx.x == 0) ring.init_barriers(Tile::kConsumerThreads / 32);
  __syncthreads();
  wait_for_previous_launch();
  let_next_launch_begin();
  const Share share(work);
  if (threadIdx.x >= Tile::kConsumerThreads) {
    if (threadIdx.x == Tile::kConsumerThreads) load_k_tiles<Tile>(work, share, ring);
    return;
  }
  typename Tile::Accumulator acc[Tile::kAccumulators];
  if constexpr (Tile::kPromote)
    multiply_promoted<Tile>(ring, share.end - share.begin, acc);
  else
    multiply_k_tiles<Tile>(ring, share.end - share.begin, acc);
  sync_consumers<Tile>();  // all consumers are done with the ring
  store_to_shared<Tile>(acc, ring.first);
  if (work.splits > 1)
    sync_cluster();
  else
    sync_consumers<Tile>();
  if (work.row_step == 1 && work.token_step % 4 != 0)
    store_unaligned<Tile>(work, share, ring.first);
  else
    store_share<Tile>(work, share, ring.first);
  if (work.splits > 1) sync_cluster();  // no block exits before all have read its shared memory
#endif
}

using SwappedKernel = void (*)(SwappedWork);

// An instance of the kernel, as the host needs it.
struct SwappedInstance {
  SwappedKernel kernel;
  int lines, depth, threads, stage_bytes, accumulator_bytes;
};

template <typename Element, bool kPromote, bool kMnMajor, bool kTokensMnMajor, int kRows,
          int kTokens>
SwappedInstance instance_of() {
  using Tile = SwappedTile<Element, kMnMajor, kTokensMnMajor, kPromote, kRows, kTokens,
                           lines_of_stage(kRows, kTokens)>;
  return {.kernel = stream_weights<Tile>,
          .lines = Tile::kLines,
          .depth = Tile::kDepth,
          .threads = Tile::kThreads,
          .stage_bytes = Tile::kStageBytes,
          .accumulator_bytes = Tile::kAccumulatorBytes};
}

// What an instance depends on, besides types.
struct InstanceKey {
  int rows, tokens;  // of a tile
  bool mn_major, tokens_mn_major;
};
template <typename Element, bool kPromote, bool kMnMajor, bool kTokensMnMajor,
          std::size_t... kSizes>
SwappedInstance instance_for(const InstanceKey& key, std::index_sequence<kSizes...>) {
  SwappedInstance found{};
  const auto consider = [&]<int kRows, int kTokens>() {
    if constexpr (token_tile_fits(kRows, kTokens, {kPromote, kTokensMnMajor}))
      if (key.rows == kRows && key.tokens == kTokens)
        found = instance_of<Element, kPromote, kMnMajor, kTokensMnMajor, kRows, kTokens>();
  };
  (consider.template operator()<64, kTokenSizes[kSizes]>(), ...);
  (consider.template operator()<128, kTokenSizes[kSizes]>(), ...);
  return found;
}
template <typename Element, bool kPromote>
SwappedInstance instance_for(const InstanceKey& key) {
  constexpr auto kAll = std::make_index_sequence<std::size(kTokenSizes)>();
  if constexpr (sizeof(Element) == 2) {
    if (key.mn_major && key.tokens_mn_major)
      return instance_for<Element, kPromote, true, true>(key, kAll);
    if (key.mn_major) return instance_for<Element, kPromote, true, false>(key, kAll);
    if (key.tokens_mn_major) return instance_for<Element, kPromote, false, true>(key, kAll);
  }
  return instance_for<Element, kPromote, false, false>(key, kAll);
}

// Calls f with a value of the operands' type and whether accumulators are promoted.
template <typename F>
auto with_element_type(Precision precision, F&& f) {
  using std::bool_constant;
  switch (precision) {
    case Precision::bf16:
      return f(__nv_bfloat16{}, bool_constant<false>{});
    case Precision::f16:
      return f(__half{}, bool_constant<false>{});
    case Precision::tf32:
      return f(float{}, bool_constant<false>{});
    case Precision::e4m3:
      return f(__nv_fp8_e4m3{}, bool_constant<true>{});
    case Precision::e4m3fast:
      return f(__nv_fp8_e4m3{}, bool_constant<false>{});
    case Precision::e5m2:
      return f(__nv_fp8_e5m2{}, bool_constant<true>{});
    case Precision::e5m2fast:
      return f(__nv_fp8_e5m2{}, bool_constant<false>{});
    case Precision::s8:
      return f(std::int8_t{}, bool_constant<false>{});
    default:
      throw std::invalid_argument("no instance for " + std::string(traits_of(precision).name));
  }
}

constexpr std::int64_t kMostTokens = 512;

// Which operand has the long side: B if A has few rows, A if B has few columns.
struct Roles {
  bool swapped;
  std::int64_t rows, tokens;

  explicit constexpr Roles(const Problem& p)
      : swapped(p.m <= kMostTokens && p.m <= p.n),
        rows(swapped ? p.n : p.m),
        tokens(swapped ? p.m : p.n) {}
};
template <typename Element>
Operand<Element> weights_of(const Problem& p, const Operands& o) {
  return Roles(p).swapped ? operand_b<Element>(p, o.b) : operand_a<Element>(p, o.a);
}
template <typename Element>
Operand<Element> tokens_of(const Problem& p, const Operands& o) {
  return Roles(p).swapped ? operand_a<Element>(p, o.a) : operand_b<Element>(p, o.b);
}

// Whether they stay so; others are packed K-major.
bool tokens_mn_major(const Problem& p) {
  return traits_of(p.precision).input_bytes == 2 && !tokens_of<__half>(p, {}).k_major &&
         Roles(p).tokens > kPackedTokens;
}

std::vector<SwappedPlan> plans_for(const Problem& p, const Device& device) {
  const Roles roles(p);
  return swapped_plans({.rows = roles.rows,
                        .tokens = roles.tokens,
                        .k = p.k,
                        .element_bytes = traits_of(p.precision).input_bytes,
                        .promoted = promotes(p.precision),
                        .tokens_mn_major = tokens_mn_major(p),
                        .tokens_adjacent = !roles.swapped},
                       device);
}

// As many stages as fit with that many blocks per SM, at least two.
int stages_for(const SwappedInstance& instance, const SwappedPlan& plan) {
  constexpr int kOfSm = 228 << 10, kOfBlock = 1 << 10;  // reserved by the system per block
  const int bytes = kOfSm / plan.per_sm - kOfBlock - kSwizzleAlignment - kBarrierSpace;
  return std::clamp(bytes / instance.stage_bytes, 2, kMaxStages);
}

template <typename Element, bool kPromote>
Launch launch_of(const Problem& p, const Device& device, const Operands& o,
                 const SwappedPlan& plan) {
  const Roles roles(p);
  const Operand<Element> stored = weights_of<Element>(p, o);
  const PackedOperand<Element> weights = packed(stored, sizeof(Element) != 2 || stored.k_major);
  const PackedOperand<Element> tokens = packed(tokens_of<Element>(p, o), !tokens_mn_major(p));
  const SwappedInstance instance = instance_for<Element, kPromote>(
      {plan.tile_rows, plan.tile_tokens, !weights.k_major, !tokens.k_major});
  const int stages = stages_for(instance, plan);
  const auto map = [&](const PackedOperand<Element>& operand, std::int64_t size,
                       std::int64_t of_tile) {
    return operand.k_major
               ? swizzled_map(operand, size, p.k, static_cast<int>(of_tile), instance.depth)
               : swizzled_map(operand, size, p.k, 64, instance.lines * instance.depth);
  };
  // Of the last tile, which may be full.
  const std::int64_t rows_left = roles.rows - (plan.tiles - 1) * plan.tile_rows,
                     tokens_left = roles.tokens - (plan.token_tiles - 1) * plan.tile_tokens;
  const SwappedWork work{.rows = static_cast<int>(roles.rows),
                         .tokens = static_cast<int>(roles.tokens),
                         .token_tiles = static_cast<int>(plan.token_tiles),
                         .row_step = roles.swapped ? 1 : p.n,
                         .token_step = roles.swapped ? p.n : 1,
                         .c = o.c,
                         .k_tiles = static_cast<int>(plan.k_tiles),
                         .splits = plan.splits,
                         .stages = stages,
                         .read_once = plan.weight_bytes > device.last_level_cache_bytes,
                         .weights_map = map(weights, roles.rows, plan.tile_rows),
                         .tokens_map = map(tokens, roles.tokens, plan.tile_tokens),
                         .weights_edge = map(weights, roles.rows, rows_left),
                         .tokens_edge = map(tokens, roles.tokens, tokens_left)};
  const LaunchShape shape{
      .blocks = static_cast<int>(plan.blocks()),
      .threads = instance.threads,
      .shared_bytes =
          std::max(stages * instance.stage_bytes, instance.accumulator_bytes) + kSwizzleAlignment,
      .cluster = plan.splits,
      .overlaps = true};
  simt::allow_shared_bytes(instance.kernel, shape.shared_bytes);
  if (plan.splits > Device::kPortableCluster)
    cudaFuncSetAttribute(instance.kernel, cudaFuncAttributeNonPortableClusterSizeAllowed, 1);
  return [=, kernel = instance.kernel, packing = pack(weights, tokens)](Stream stream) {
    if (packing) packing(stream);
    enqueue(kernel, shape, stream, work);
  };
}

std::optional<std::string> unsupported(const Problem& p, const Device& device) {
  if (std::min(p.m, p.n) > kMostTokens)
    return "requires m <= " + std::to_string(kMostTokens) +
           " or n <= " + std::to_string(kMostTokens);
  constexpr std::int64_t kMost = (std::int64_t{1} << 31) - 1024;  // box coordinates are 32-bit
  if (std::max({p.m, p.n, p.k}) > kMost) return "requires m, n and k below 2^31 - 1024";
  return sm_90a_unsupported(instance_of<__half, false, false, false, 64, 8>().kernel, device);
}

double packing_bytes(const Problem& p) {
  return with_element_type(p.precision, [&]<typename Element>(Element, auto) {
    const Operand<Element> weights = weights_of<Element>(p, {});
    return packing_bytes(weights, sizeof(Element) != 2 || weights.k_major) +
           packing_bytes(tokens_of<Element>(p, {}), !tokens_mn_major(p));
  });
}

// Every block reads all tokens of its tile. Shared memory per K tile: the copies, and each
// warpgroup's reads of its weights and all tokens; accumulators are stored and loaded once.
Traffic traffic_of(const Problem& p, const SwappedPlan& plan) {
  const PrecisionTraits& traits = traits_of(p.precision);
  const Roles roles(p);
  const double packed = packing_bytes(p), tiles = static_cast<double>(plan.tiles);
  const double depth = 1.0 * traits.input_bytes * static_cast<double>(p.k);
  const double weights = depth * static_cast<double>(roles.rows),
               tokens = depth * static_cast<double>(roles.tokens),
               c = 1.0 * traits.output_bytes * static_cast<double>(p.m) * static_cast<double>(p.n);
  const double width = plan.tile_tokens;
  const double k_tile = kStageLineBytes * lines_of_stage(plan.tile_rows, plan.tile_tokens) *
                        (2.0 * plan.tile_rows + (1 + plan.tile_rows / 64) * width);
  const double acc = 2.0 * 4 * plan.tile_rows * width * plan.splits;
  return {.dram = bytes_minimum(p) + packed,
          .l2 = packed + weights * static_cast<double>(plan.token_tiles) + tokens * tiles + c,
          .shared = packed + static_cast<double>(plan.tiles * plan.token_tiles) *
                                 (static_cast<double>(plan.k_tiles) * k_tile + acc)};
}

std::vector<Candidate> candidates(const Problem& p, const Device& device) {
  constexpr double kPackingOfDram = 3.3e12 / Device::kH200Dram;
  const double packing = packing_seconds(packing_bytes(p), kPackingOfDram, device);
  std::vector<Candidate> all;
  for (const SwappedPlan& plan : plans_for(p, device))
    all.push_back({plan.seconds + packing, traffic_of(p, plan), [=](const Operands& o) {
                     return with_element_type(p.precision, [&](auto element, auto promoted) {
                       return launch_of<decltype(element), decltype(promoted)::value>(p, device, o,
                                                                                      plan);
                     });
                   }});
  return all;
}

const Registration registration({
    .name = "WgmmaSwapped",
    .idea = "Swapped operands for few rows: wgmma's M is the long side, N the tokens; clusters "
            "split k.",
    .source = "DeepGEMM and vLLM, swapped operands for few tokens; CUTLASS, split-K",
    .rung = 60,
    .precisions = {Precision::bf16, Precision::f16, Precision::tf32, Precision::e4m3,
                   Precision::e4m3fast, Precision::e5m2, Precision::e5m2fast, Precision::s8},
    .layouts = {Layout::nn, Layout::nt, Layout::tn, Layout::tt},
    .unsupported = unsupported,
    .candidates = candidates,
});

}  // namespace
}  // namespace gemm::tensor
