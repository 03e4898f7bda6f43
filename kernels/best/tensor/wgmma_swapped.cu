// GEMM whose tiles fill at most about one wave: few rows of A, such as the tokens of a decoding
// language model, times a weight matrix, or few rows and columns with a long k.
//
// wgmma has M = 64 and N = 8 to 256. The operands are swapped, C^T = B^T A^T: the columns of the
// weights are M, and the tokens are padded to N = 8, not to 64. N is chosen for the problem, so
// that tiles fill the SMs. With A as the weights nothing is swapped.
//
// - Two producer threads fill a ring of stages by TMA, the other warps multiply. One thread takes
//   longer to issue the loads of a narrow K tile than the tensor cores take to multiply it.
// - All blocks have equal numbers of K tiles and advance along k together: neighbours read adjacent
//   data of a DRAM page.
// - With fewer tiles than SMs the blocks of a cluster split k and reduce their accumulators through
//   distributed shared memory, each element always in the same order. No workspace, no flags, no
//   second launch. Other blocks of a cluster have the same tokens, or weights, and load them
//   together, by multicast.
// - Programmatic dependent launch: blocks of the next launch start where the stages leave room on
//   an SM, initialise barriers, and wait until this launch has stored its results. Some plans do
//   not let the next launch begin before all their blocks have ended (swapped_plan.hpp).
// - MN-major weights larger than the L2 are loaded with evict_first, unless they are shared.
//
// 16-bit operands may be K-major or MN-major; MN-major TF32 weights go through registers
// (register_operand.cuh). Others must be K-major or are packed so in every launch. Up to 64
// MN-major tokens have rows of 32 bytes in shared memory, because TMA is slow to fill wider ones
// with zeros (NOTES.md). For that reason rows and tokens beyond the edges are not loaded either:
// what is computed from such shared memory is not stored.
//
// TMA wants rows, and where a box begins, at multiples of 16 bytes. Where the rows of MN-major
// weights are not, every second, fourth or eighth is, and steps of k are taken in so many phases:
// first k = 0, phases, 2 phases... (the tokens are packed in this order). A phase's boxes begin up
// to 14 bytes before the tile, so its accumulators belong to rows that begin as much earlier. Each
// is added to the sum of its row in shared memory. A tile stores 16 bytes of rows less than it
// loads.
//
// Tensor cores accumulate FP8 with 14 bits: without "fast" accumulators are promoted to FP32 every
// 128 steps of k.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "kernels/best/tensor/swapped_plan.hpp"
#include "kernels/parts/asynchronous.cuh"
#include "kernels/parts/block_factors.cuh"
#include "kernels/parts/cluster_launch.cuh"
#include "kernels/parts/packed_operand.cuh"
#include "kernels/parts/register_operand.cuh"
#include "kernels/parts/ring.cuh"
#include "kernels/parts/staged_operand.cuh"
#include "kernels/parts/store.cuh"
#include "kernels/parts/store_row.cuh"
#include "kernels/parts/tile_launch.cuh"
#include "kernels/parts/wgmma.cuh"
#include "kernels/registry.hpp"

namespace gemm::tensor {

template <typename Element>
using OutputOf = std::conditional_t<
    std::is_same_v<Element, __half>, __half,
    std::conditional_t<sizeof(Element) == 4 || std::is_same_v<Element, std::int8_t>,
                       AccumulatorOf<Element>, __nv_bfloat16>>;

// A block computes kRows of the long side by 8 to kMostTokens tokens; a stage is one or two lines
// of 128 bytes along k. kMnMajor: the weights are MN-major; kTokensMnMajor: the tokens. kPromote:
// accumulators are promoted after each line.
template <typename Element_, bool kMnMajor_, bool kTokensMnMajor_, bool kPromote_, int kRows_,
          int kMostTokens_>
struct SwappedTile {
  using Element = Element_;
  using Accumulator = AccumulatorOf<Element>;
  using Output = OutputOf<Element>;
  static constexpr bool kMnMajor = kMnMajor_, kTokensMnMajor = kTokensMnMajor_,
                        kPromote = kPromote_;
  static constexpr int kRows = kRows_, kMostTokens = kMostTokens_;
  static constexpr int kLines = lines_of_stage(kRows, kMostTokens);
  static constexpr int kDepth = kStageLineBytes / static_cast<int>(sizeof(Element));  // per line
  static constexpr int kAlignedRows = 16 / static_cast<int>(sizeof(Element));         // MN-major
  static constexpr bool kThroughRegisters = kMnMajor && sizeof(Element) == 4;
  static constexpr TokenKind kTokenKind{kPromote, kTokensMnMajor, kThroughRegisters};
  static constexpr int kProducers = 2;  // warps
  static constexpr int kConsumerThreads = 2 * kRows, kThreads = kConsumerThreads + 32 * kProducers;
  static constexpr int kBlocks = most_blocks(kRows, kMostTokens, kTokenKind);
  static constexpr int kWeightBytes = kRows * kStageLineBytes * kLines;
  // An MN-major operand is loaded in groups of rows of 128 bytes, and of 64 or 16 tokens, for all
  // steps of k.
  static constexpr int kRowGroup = kDepth;
  static constexpr int kRowGroupBytes = kRowGroup * kStageLineBytes * kLines;
  static constexpr int token_group_bytes(int group) { return group * kStageLineBytes * kLines; }
  static constexpr int token_row_bytes(int group) { return group * 2; }  // elements have 16 bits
  static_assert(kDepth * kLines <= 256 && kRows % 64 == 0);
  static constexpr bool kScaled = false;
};
// Blocks of A and B have factors (Precision::e4m3block). The weights are B.
template <int kRows, int kMostTokens>
struct ScaledTile : SwappedTile<__nv_fp8_e4m3, false, false, true, kRows, kMostTokens> {
  static constexpr bool kScaled = true;
  static constexpr TokenKind kTokenKind{.promoted = true, .scaled = true};
  static constexpr int kBlocks = most_blocks(kRows, kMostTokens, kTokenKind);
};

namespace {

struct SwappedWork {
  int rows, tokens;               // of C: long side and short side
  int tile_tokens, token_tiles;   // of a tile, and tiles along the short side
  int k_tiles, splits, sharers;   // of a tile; blocks of a cluster along k, and that share loads
  bool shares_weights;            // else tokens
  int stages, stage_bytes;        // of the ring
  int row_box, edge_row_box;      // rows that a block loads for its sharers, if K-major
  int token_box, edge_token_box;  // tokens likewise
  bool swapped;                   // rows of C are along tokens, else along rows
  bool lets_next_begin;           // the next launch
  bool read_once;                 // the weights: with evict_first, if MN-major and not shared
  bool stages_output;             // tiles are stored as elements of 16 bits, eight at a time
  int tile_rows;                  // that a tile stores
  int phases, phase_k_tiles;      // of the weights, and K tiles of each
  std::int64_t pitch;             // of C
  void* c;
  CUtensorMap weights_maps[kMostPhases], tokens_map;
  CUtensorMap weights_edge, tokens_edge;  // of the last tile, where K-major rows do not fill it
  const float *a_scales = nullptr, *b_scales = nullptr;
  int k_blocks = 0;  // that have a scale

  // Rows by which what a K tile loads of the weights is shifted.
  template <typename Tile>
  __device__ int shift(int phase) const {
    return static_cast<int>(std::int64_t{phase} * rows % Tile::kAlignedRows);
  }
};

#ifdef __CUDA_ARCH_FEAT_SM90_ALL

// The share of a block: K tiles [begin, end) of a tile. A cluster has `splits` times `sharers`
// blocks: sharers have the same K tiles and tokens, and neighbouring weights, or the same weights,
// and neighbouring tokens. Clusters with the same weights are neighbours.
struct Share {
  int tile, token_tile, rank, sharer, begin, end;

  __device__ explicit Share(const SwappedWork& work) {
    const int blocks = work.splits * work.sharers;
    const int cluster = static_cast<int>(blockIdx.x) / blocks,
              block = static_cast<int>(blockIdx.x) % blocks;
    rank = block / work.sharers;
    sharer = block % work.sharers;
    const int along_tokens = work.shares_weights
                                 ? (work.token_tiles + work.sharers - 1) / work.sharers
                                 : work.token_tiles;
    tile = cluster / along_tokens;
    token_tile = cluster % along_tokens;
    if (work.shares_weights)
      token_tile = token_tile * work.sharers + sharer;
    else
      tile = tile * work.sharers + sharer;
    begin = static_cast<int>(std::int64_t{work.k_tiles} * rank / work.splits);
    end = static_cast<int>(std::int64_t{work.k_tiles} * (rank + 1) / work.splits);
  }
  __device__ int block_of(const SwappedWork& work, int of_rank) const {
    return of_rank * work.sharers + sharer;
  }
};

// The factors of a tile's rows, or of others where it has none.
template <typename Tile>
__device__ const float* scales_of_rows(const SwappedWork& work, const Share& share) {
  const int block = min(share.tile * Tile::kRows, work.rows - 1) / static_cast<int>(kScaleBlock);
  return work.b_scales + std::int64_t{block} * ((work.k_blocks + 3) / 4 * 4);
}

// One thread of each producer warp. Of sharers each loads a part of the tokens, or weights, into
// the shared memory of all.
template <typename Tile>
__device__ void load_k_tiles(const SwappedWork& work, const Share& share, Ring<0> ring,
                             int producer) {
  wait_for_previous_launch();  // everything else in the block depends on these loads
  if (work.lets_next_begin)
    let_next_launch_begin();  // not before: blocks of two further launches would share the SMs
  if constexpr (Tile::kScaled) {
    const int first = share.begin * Tile::kLines,
              end = min(share.end * Tile::kLines, work.k_blocks);
    if (producer == 0)
      prefetch_factors(work.a_scales + std::int64_t{first} * work.tokens,
                       (end - first) * work.tokens);
    else
      prefetch_factors(scales_of_rows<Tile>(work, share) + first, end - first);
  }
  const std::uint64_t policy = cache_policy(work.read_once);
  const int row = share.tile * work.tile_rows, token = share.token_tile * work.tile_tokens;
  const int rows = work.rows > row
                       ? min(work.rows - row + Tile::kRows - work.tile_rows, Tile::kRows)
                       : 0,
            tokens = max(min(work.tokens - token, work.tile_tokens), 0);
  const bool edge_row = rows < Tile::kRows, edge_token = tokens < work.tile_tokens;
  const CUtensorMap& weights_map = edge_row ? work.weights_edge : work.weights_maps[0];
  const CUtensorMap& tokens_map = edge_token ? work.tokens_edge : work.tokens_map;
  const int row_box = edge_row ? work.edge_row_box : work.row_box,
            token_box = edge_token ? work.edge_token_box : work.token_box;
  // The part of this block, of K-major operands in rows or tokens, else in steps of k.
  const bool shares_weights = work.sharers > 1 && work.shares_weights,
             shares_tokens = work.sharers > 1 && !work.shares_weights;
  const int depth = Tile::kLines * Tile::kDepth, part = depth / work.sharers * share.sharer;
  const int first_row = shares_weights ? share.sharer * row_box : 0,
            first_token = shares_tokens ? share.sharer * token_box : 0;
  const int deep_of_weights = shares_weights ? part : 0, deep_of_tokens = shares_tokens ? part : 0;
  const int token_group_size =  // constant in instances for more than 64 tokens
      Tile::kMostTokens > 64 ? 64 : token_group(work.tile_tokens);
  const auto rounded = [](int count, int to) { return (count + to - 1) / to * to; };
  const int lines = rounded(rows, Tile::kMnMajor ? Tile::kRowGroup : row_box) +
                    rounded(tokens, Tile::kTokensMnMajor ? token_group_size : token_box);
  const auto sharers = static_cast<std::uint16_t>(
      ((1 << work.sharers) - 1) << share.block_of(work, share.rank) - share.sharer);
  const auto load_weights = [&](int at, const CUtensorMap& map, int x, int y) {
    if (shares_weights)
      tma_load_multicast(sharers, ring.data() + at, map, x, y, ring.full());
    else if constexpr (Tile::kMnMajor)
      tma_load(ring.data() + at, map, x, y, ring.full(), policy);
    else
      tma_load(ring.data() + at, map, x, y, ring.full());
  };
  const auto load_tokens = [&](int at, int x, int y) {
    const std::uint32_t to = ring.data() + Tile::kWeightBytes + at;
    if (shares_tokens)
      tma_load_multicast(sharers, to, tokens_map, x, y, ring.full());
    else
      tma_load(to, tokens_map, x, y, ring.full());
  };
  int phase = share.begin / work.phase_k_tiles;
  for (int k_tile = share.begin; k_tile < share.end; ++k_tile, ring.next()) {
    if (k_tile == (phase + 1) * work.phase_k_tiles) ++phase;
    if (!ring.template is_of<Tile::kProducers>(producer)) continue;
    const int k = k_tile * depth;
    ring.begin_stage(lines * kStageLineBytes * Tile::kLines);
    if constexpr (Tile::kMnMajor) {
      const int first = phase * work.rows - work.shift<Tile>(phase) + row;
      const int deep = k - phase * work.phase_k_tiles * depth + deep_of_weights;
#pragma unroll
      for (int group = 0; group < Tile::kRows / Tile::kRowGroup; ++group)
        if (group * Tile::kRowGroup < rows)
          load_weights(group * Tile::kRowGroupBytes + deep_of_weights * kStageLineBytes,
                       work.weights_maps[phase], first + group * Tile::kRowGroup, deep);
    } else if (first_row < rows) {
#pragma unroll
      for (int line = 0; line < Tile::kLines; ++line)
        load_weights((line * Tile::kRows + first_row) * kStageLineBytes, weights_map,
                     k + line * Tile::kDepth, row + first_row);
    }
    if constexpr (Tile::kTokensMnMajor) {
      for (int first = 0; first < tokens; first += token_group_size)
        load_tokens(Tile::token_group_bytes(first) +
                        deep_of_tokens * Tile::token_row_bytes(token_group_size),
                    token + first, k + deep_of_tokens);
    } else if (first_token < tokens) {
      for (int line = 0; line < Tile::kLines; ++line)
        load_tokens((line * work.tile_tokens + first_token) * kStageLineBytes,
                    k + line * Tile::kDepth, token + first_token);
    }
  }
}

// Releases stages to the blocks that fill them. A warpgroup arrives once in each: its MMAs complete
// for its four warps at once. There are no branches, because an MMA waits for the last of the four.
class Releases {
 public:
  __device__ Releases(const SwappedWork& work, const Share& share, const Ring<0>& ring) {
    const int thread = static_cast<int>(threadIdx.x) % 128;
    local_ = work.sharers == 1 && thread == 0;
    remote_ = work.sharers > 1 && thread % 32 == 0 && thread / 32 < work.sharers;
    const int block = share.block_of(work, share.rank) - share.sharer + (remote_ ? thread / 32 : 0);
    std::uint32_t there;
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;"
                 : "=r"(there)
                 : "r"(ring.empty_barriers), "r"(block));
    distance_ = there - ring.empty_barriers;
  }
  __device__ void release(std::uint32_t empty) const {
    asm volatile(
        "{\n.reg .pred local, remote;\n"
        "setp.ne.s32 local, %2, 0;\n"
        "setp.ne.s32 remote, %3, 0;\n"
        "@local mbarrier.arrive.shared::cta.b64 _, [%0];\n"
        "@remote mbarrier.arrive.shared::cluster.b64 _, [%1];\n}" ::"r"(empty),
        "r"(empty + distance_), "r"(local_), "r"(remote_)
        : "memory");
  }

 private:
  int local_, remote_;      // whether this thread arrives: without sharers, or at one of them
  std::uint32_t distance_;  // of that block's shared memory
};

// Issues MMAs of warpgroup `group` for steps [kFirst, kEnd) of the four in one line of a stage:
// acc = keep ? acc + product : product.
template <typename Tile, int kFirst = 0, int kEnd = 4, int kAccumulators>
__device__ void issue_line(int group, std::uint32_t stage, int line, bool keep,
                           typename Tile::Accumulator (&acc)[kAccumulators]) {
  using Element = typename Tile::Element;
  constexpr int kStepDepth = kMmaK<Element>, kTokens = 2 * kAccumulators;
  static_assert(Tile::kDepth == 4 * kStepDepth);
  constexpr int kBytes = static_cast<int>(sizeof(Element)), kTokenGroup = token_group(kTokens),
                kRowBytes = Tile::token_row_bytes(kTokenGroup);
  // Descriptors of the line's first step.
  const std::uint32_t first_token = stage + Tile::kWeightBytes;
  const std::uint64_t weights =
      Tile::kMnMajor
          ? mn_major_descriptor(
                stage + group * Tile::kRowGroupBytes + line * Tile::kDepth * kStageLineBytes, 0)
          : k_major_descriptor(stage + (line * Tile::kRows + group * 64) * kStageLineBytes);
  const std::uint64_t tokens =
      Tile::kTokensMnMajor
          ? mn_major_descriptor<kRowBytes>(first_token + line * Tile::kDepth * kRowBytes,
                                           Tile::token_group_bytes(kTokenGroup))
          : k_major_descriptor(first_token + line * kTokens * kStageLineBytes);
  // Distances between steps, in units of 16 bytes.
  constexpr int kAlongK = kStepDepth * kBytes / 16, kAcrossK = kStepDepth * kStageLineBytes / 16,
                kTokensAcrossK = kStepDepth * kRowBytes / 16;
  // The address is in the lower half: no carry leaves it.
  const auto at = [](std::uint64_t descriptor, int further) {
    return descriptor >> 32 << 32 | (static_cast<std::uint32_t>(descriptor) + further);
  };
#pragma unroll
  for (int step = kFirst; step < kEnd; ++step)
    multiply<Element, Tile::kMnMajor, Tile::kTokensMnMajor>(
        acc, at(weights, step * (Tile::kMnMajor ? kAcrossK : kAlongK)),
        at(tokens, step * (Tile::kTokensMnMajor ? kTokensAcrossK : kAlongK)),
        keep || step > kFirst);
}

// acc = the product over the block's K tiles, at least one. The stage before is released between
// the two halves of a stage's MMAs: an SM has room for few MMAs that are issued and wait, so that
// whatever comes between two of them should be short.
template <typename Tile, int kAccumulators>
__device__ void multiply_k_tiles(const SwappedWork& work, const Share& share, Ring<0>& ring,
                                 typename Tile::Accumulator (&acc)[kAccumulators]) {
  const Releases releases(work, share, ring);
  const int group = warp_of_block() / 4;
  std::uint32_t before = 0;
#pragma unroll 1
  for (int k_tile = share.begin; k_tile < share.end; ++k_tile, ring.next()) {
    ring.wait_for_stage();
    wgmma_fence();
    issue_line<Tile, 0, Tile::kLines == 1 ? 2 : 4>(group, ring.data(), 0, k_tile > share.begin,
                                                   acc);
    wgmma_commit();
    wgmma_wait<1>();
    if (k_tile > share.begin) releases.release(before);
    wgmma_fence();
    issue_line<Tile, Tile::kLines == 1 ? 2 : 0>(group, ring.data(), Tile::kLines - 1, true, acc);
    wgmma_commit();
    before = ring.empty();
  }
  wgmma_wait_all(acc);
  releases.release(before);
}

// The fragments of MN-major TF32 weights for a line of a stage (register_operand.cuh): a thread has
// two adjacent rows. Odd threads load their later step first, which puts the eight steps that half
// a warp loads into different banks.
template <typename Tile>
__device__ void load_transposed_line(std::uint32_t stage, int line,
                                     std::uint32_t (&a)[Tile::kDepth / 8][4]) {
  const int lane = static_cast<int>(threadIdx.x) % 32, odd = lane % 2;
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const std::uint32_t group = stage + warp / 2 * Tile::kRowGroupBytes + lane / 4 % 2 * 8;
  const int piece = 4 * (warp % 2) + lane / 8;
#pragma unroll
  for (int step = 0; step < Tile::kDepth / 8; ++step) {
    std::uint32_t read[2][2];
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const int k = line * Tile::kDepth + 8 * step + lane % 4 + 4 * (odd ^ i);
      asm volatile("ld.shared.v2.b32 {%0, %1}, [%2];"
                   : "=r"(read[i][0]), "=r"(read[i][1])
                   : "r"(group + k * kStageLineBytes + (piece ^ k % 8) * 16)
                   : "memory");
    }
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      a[step][i] = odd ? read[1][i] : read[0][i];
      a[step][2 + i] = odd ? read[0][i] : read[1][i];
    }
  }
}

// multiply_k_tiles() with weights from registers: a line is loaded during the MMAs of the one
// before.
template <typename Tile, int kAccumulators>
__device__ void multiply_through_registers(const SwappedWork& work, const Share& share,
                                           Ring<0>& ring, float (&acc)[kAccumulators]) {
  const Releases releases(work, share, ring);
  std::uint32_t a[2][Tile::kDepth / 8][4] = {};
  std::uint32_t before = 0;
  const bool never = ring.first == 0;
  const auto multiply_line = [&]<int kBuffer>(int line, bool keep) {
    const int in_stage = Tile::kLines == 2 ? kBuffer : 0;
    if (in_stage == 0) ring.wait_for_stage();
    load_transposed_line<Tile>(ring.data(), in_stage, a[kBuffer]);
    const std::uint64_t tokens = k_major_descriptor(ring.data() + Tile::kWeightBytes +
                                                    in_stage * 2 * kAccumulators * kStageLineBytes);
    wgmma_fence();
#pragma unroll
    for (int step = 0; step < Tile::kDepth / 8; ++step)
      multiply_from_registers(acc, a[kBuffer][step], tokens + step * 2, keep || step > 0);
    wgmma_commit();
    wgmma_wait<1>();
    if (never) keep_registers(a[1 - kBuffer], ring.first);
    if (in_stage == 0 && line > 0) releases.release(before);
    if (in_stage + 1 == Tile::kLines) {
      before = ring.empty();
      ring.next();
    }
  };
  const int lines = (share.end - share.begin) * Tile::kLines;
#pragma unroll 1
  for (int line = 0; line < lines; line += 2) {
    multiply_line.template operator()<0>(line, line > 0);
    if (line + 1 < lines) multiply_line.template operator()<1>(line + 1, true);
  }
  wgmma_wait_all(acc);
  if (never) {
    keep_registers(a[0], ring.first);
    keep_registers(a[1], ring.first);
  }
  releases.release(before);
}

// The same, promoted: totals = the sum of the products over each line.
template <typename Tile, int kAccumulators>
__device__ void multiply_promoted(const SwappedWork& work, const Share& share, Ring<0>& ring,
                                  float (&totals)[kAccumulators]) {
  const Releases releases(work, share, ring);
  const int group = warp_of_block() / 4;
#pragma unroll
  for (int i = 0; i < kAccumulators; ++i) totals[i] = 0;
  float acc[kAccumulators];
#pragma unroll 1
  for (int k_tile = share.begin; k_tile < share.end; ++k_tile, ring.next()) {
    ring.wait_for_stage();
#pragma unroll
    for (int line = 0; line < Tile::kLines; ++line) {
      wgmma_fence();
      issue_line<Tile>(group, ring.data(), line, false, acc);
      wgmma_commit();
      wgmma_wait_all(acc);
      if (line + 1 == Tile::kLines) releases.release(ring.empty());
#pragma unroll
      for (int i = 0; i < kAccumulators; ++i) totals[i] += acc[i];
    }
  }
}

// The same with a factor for each block. A thread has two of every eight tokens, and all rows of
// the tile are of one block. Factors are loaded a line ahead, where registers suffice for two sets.
// Beyond the last token, row and block any factor will do: their sums are zero, or not stored.
template <typename Tile, int kAccumulators>
__device__ void multiply_scaled(const SwappedWork& work, const Share& share, Ring<0>& ring,
                                float (&totals)[kAccumulators]) {
  constexpr bool kAhead = Tile::kRows == 64 || kAccumulators <= 16;
  const Releases releases(work, share, ring);
  const int group = warp_of_block() / 4;
  const float* const from_rows = scales_of_rows<Tile>(work, share);
  const int token = share.token_tile * work.tile_tokens + static_cast<int>(threadIdx.x) % 4 * 2;
#pragma unroll
  for (int i = 0; i < kAccumulators; ++i) totals[i] = 0;
  float acc[kAccumulators], of_tokens[2][kAccumulators / 2], of_rows[2];
  const auto load = [&]<int kSet>(int line) {
    const int block = min(line, work.k_blocks - 1);
    const float* const of_block = work.a_scales + std::int64_t{block} * work.tokens;
#pragma unroll
    for (int i = 0; i < kAccumulators / 2; ++i)
      of_tokens[kSet][i] = load_factor(of_block + min(token + i / 2 * 8 + i % 2, work.tokens - 1));
    of_rows[kSet] = load_factor(from_rows + block);
  };
  const auto multiply_line = [&]<int kSet>(int line) {
    constexpr int kInStage = Tile::kLines == 2 ? kSet : 0;
    if constexpr (kAhead)
      load.template operator()<1 - kSet>(line + 1);
    else
      load.template operator()<kSet>(line);
    if (kInStage == 0) ring.wait_for_stage();
    wgmma_fence();
    issue_line<Tile>(group, ring.data(), kInStage, false, acc);
    wgmma_commit();
    wgmma_wait_all(acc);
    if (kInStage + 1 == Tile::kLines) {
      releases.release(ring.empty());
      ring.next();
    }
#pragma unroll
    for (int i = 0; i < kAccumulators; ++i)
      totals[i] = fmaf(acc[i], of_tokens[kSet][i / 4 * 2 + i % 2] * of_rows[kSet], totals[i]);
  };
  const int end = share.end * Tile::kLines;
  if (kAhead) load.template operator()<0>(share.begin * Tile::kLines);
#pragma unroll 1
  for (int line = share.begin * Tile::kLines; line < end; line += kAhead ? 2 : 1) {
    multiply_line.template operator()<0>(line);
    if constexpr (kAhead)
      if (line + 1 < end) multiply_line.template operator()<1>(line + 1);
  }
}

// A barrier of the consumers only.
template <typename Tile>
__device__ void sync_consumers() {
  asm volatile("bar.sync 1, %0;" ::"n"(Tile::kConsumerThreads) : "memory");
}

// In wgmma fragments a thread has two rows of its warp's 16, and two of every eight tokens. The
// rows are eight apart, or adjacent if the weights came through registers. The first `shift` rows
// are left out and the others come in their place, added to what is there or not.
template <typename Tile, int kAccumulators>
__device__ void store_to_shared(const SwappedWork& work,
                                const typename Tile::Accumulator (&acc)[kAccumulators],
                                std::uint32_t to, int shift, bool adds) {
  const int lane = static_cast<int>(threadIdx.x) % 32, token = lane % 4 * 2;
  const int line = line_of_accumulators(work.swapped, Tile::kRows, 2 * kAccumulators);
  const int to_row = work.swapped ? 1 : line, to_token = work.swapped ? line : 1;
  const int row = static_cast<int>(threadIdx.x) / 32 * 16 - shift +
                  (Tile::kThroughRegisters ? lane / 4 * 2 : lane / 4);
  constexpr int kNextRow = Tile::kThroughRegisters ? 1 : 8;
  to += (row * to_row + token * to_token) * 4;
  constexpr int kAtOnce = 4;  // loads before their stores
#pragma unroll
  for (int first = 0; first < kAccumulators; first += kAtOnce) {
    const auto address = [&](int i) {
      const int right = (first + i) / 4 * 8 + i % 2;
      return to + (right * to_token + i / 2 * kNextRow * to_row) * 4;
    };
    const auto is_left_out = [&](int i) { return Tile::kMnMajor && row + i / 2 * kNextRow < 0; };
    typename Tile::Accumulator sums[kAtOnce];
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) {
      sums[i] = acc[first + i];
      if (!Tile::kMnMajor || !adds || is_left_out(i)) continue;
      typename Tile::Accumulator before;
      std::uint32_t bits;
      asm volatile("ld.shared.b32 %0, [%1];" : "=r"(bits) : "r"(address(i)) : "memory");
      memcpy(&before, &bits, sizeof bits);
      sums[i] += before;
    }
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) {
      if (is_left_out(i)) continue;
      std::uint32_t bits;
      memcpy(&bits, &sums[i], sizeof bits);
      asm volatile("st.shared.b32 [%0], %1;" ::"r"(address(i)), "r"(bits) : "memory");
    }
  }
}

// Stores the accumulators in shared memory as elements of C, of 16 bits. Nothing is added to them.
template <typename Tile, int kAccumulators>
__device__ void stage_output(const SwappedWork& work,
                             const typename Tile::Accumulator (&acc)[kAccumulators],
                             std::uint32_t to) {
  using Output = typename Tile::Output;
  // Opaque: else the compiler computes addresses before the MMAs and keeps them in registers.
  int thread;
  asm volatile("mov.u32 %0, %%tid.x;" : "=r"(thread));
  const int lane = thread % 32, row = thread / 32 * 16, right = lane / 16 * 8;
  const int line = 2 * line_of_output(work.swapped, Tile::kRows, 2 * kAccumulators);
  if (work.swapped) {
    to += (right + lane % 8) * line + (row + lane / 8 % 2 * 8) * 2;
#pragma unroll
    for (int i = 0; i < kAccumulators; i += 8)
      store_matrices<Output, true>(to + 2 * i * line, acc + i);
  } else {
    to += (row + lane % 16) * line + right * 2;
#pragma unroll
    for (int i = 0; i < kAccumulators; i += 8)
      store_matrices<Output, false>(to + 2 * i * 2, acc + i);
  }
}

// Where a block's accumulators come in shared memory: over the ring, or after it.
__device__ inline std::uint32_t sums_of(const SwappedWork& work, const Ring<0>& ring) {
  return work.phases > 1 ? ring.first + work.stages * work.stage_bytes : ring.first;
}

// Multiplies the block's share and stores the accumulators in shared memory.
template <typename Tile, int kTokens>
__device__ void compute(const SwappedWork& work, const Share& share, Ring<0> ring) {
  typename Tile::Accumulator acc[kTokens / 2];
  const auto compute_part = [&](const Share& part, int shift, bool adds) {
    if constexpr (Tile::kScaled)
      multiply_scaled<Tile>(work, part, ring, acc);
    else if constexpr (Tile::kPromote)
      multiply_promoted<Tile>(work, part, ring, acc);
    else if constexpr (Tile::kThroughRegisters)
      multiply_through_registers<Tile>(work, part, ring, acc);
    else
      multiply_k_tiles<Tile>(work, part, ring, acc);
    sync_consumers<Tile>();  // all are done with the ring, or with the sums before
    if constexpr (sizeof(typename Tile::Output) == 2 && kTokens % 16 == 0)
      if (work.stages_output) return stage_output<Tile>(work, acc, ring.first);
    store_to_shared<Tile>(work, acc, sums_of(work, ring), shift, adds);
  };
  if constexpr (!Tile::kMnMajor) {
    compute_part(share, 0, false);
  } else {
    Share part = share;
#pragma unroll 1
    for (; part.begin < share.end; part.begin = part.end) {
      const int phase = part.begin / work.phase_k_tiles;
      part.end = min((phase + 1) * work.phase_k_tiles, share.end);
      compute_part(part, work.shift<Tile>(phase), part.begin > share.begin);
    }
  }
}
template <typename Tile, std::size_t... kSizes>
__device__ void compute(const SwappedWork& work, const Share& share, const Ring<0>& ring,
                        std::index_sequence<kSizes...>) {
  const auto consider = [&]<int kTokens>() {
    if constexpr (token_kernel(kTokens) == Tile::kMostTokens &&
                  token_tile_fits(Tile::kRows, kTokens, Tile::kTokenKind))
      if (work.tile_tokens == kTokens) compute<Tile, kTokens>(work, share, ring);
  };
  (consider.template operator()<kTokenSizes[kSizes]>(), ...);
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

// sums[i] = the sum over the blocks of the tile of the accumulators at addresses[i]. Each block
// begins with its own and goes on with the next one, so that no two read from the same block at a
// time.
template <int kAtOnce, int kCount, typename Accumulator>
__device__ void reduce(const SwappedWork& work, const Share& share,
                       const std::uint32_t (&addresses)[kAtOnce],
                       Accumulator (&sums)[kAtOnce][kCount]) {
#pragma unroll
  for (int i = 0; i < kAtOnce; ++i) load_own(sums[i], addresses[i]);
#pragma unroll 4
  for (int further = 1; further < work.splits; ++further) {
    const int rank = share.rank + further;
    const int block = share.block_of(work, rank < work.splits ? rank : rank - work.splits);
    Accumulator other[kAtOnce][kCount];
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) load_from_block(other[i], addresses[i], block);
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i)
#pragma unroll
      for (int j = 0; j < kCount; ++j) sums[i][j] += other[i][j];
  }
}

// The part of C of a block's tile: `lines` of `length` elements, from `c` on.
template <typename Tile>
struct TileOfC {
  int lines, length, full_length;
  typename Tile::Output* c;

  __device__ TileOfC(const SwappedWork& work, const Share& share) {
    const int row = share.tile * work.tile_rows, token = share.token_tile * work.tile_tokens;
    const int rows = max(min(work.rows - row, work.tile_rows), 0),
              tokens = max(min(work.tokens - token, work.tile_tokens), 0);
    lines = rows > 0 && tokens > 0 ? (work.swapped ? tokens : rows) : 0;
    length = work.swapped ? rows : tokens;
    full_length = work.swapped ? Tile::kRows : work.tile_tokens;
    c = static_cast<typename Tile::Output*>(work.c) +
        (work.swapped ? token * work.pitch + row : row * work.pitch + token);
  }
};

// Pieces of lines: number `first`, then every `step`th.
struct LinePieces {
  int per_line, step_lines, step_pieces, line, piece;

  __device__ LinePieces(int first, int step, int per_line)
      : per_line(per_line),
        step_lines(step / per_line),
        step_pieces(step % per_line),
        line(first / per_line),
        piece(first % per_line) {}
  __device__ void next() {
    line += step_lines;
    piece += step_pieces;
    if (piece < per_line) return;
    piece -= per_line;
    ++line;
  }
};

// Stores a tile that stage_output() staged: eight consecutive elements of C at a time.
template <typename Tile>
__device__ void store_staged(const SwappedWork& work, const Share& share, std::uint32_t staged) {
  constexpr int kAtOnce = 4;
  const TileOfC<Tile> tile(work, share);
  const int line = 2 * line_of_output(work.swapped, Tile::kRows, work.tile_tokens);
  LinePieces next(static_cast<int>(threadIdx.x), Tile::kConsumerThreads, max(tile.length / 8, 1));
  while (next.line < tile.lines) {
    std::uint32_t eight[kAtOnce][4];
    typename Tile::Output* to[kAtOnce];
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i, next.next()) {
      to[i] = next.line < tile.lines ? tile.c + next.line * work.pitch + 8 * next.piece : nullptr;
      load_own(eight[i], staged + min(next.line, tile.lines - 1) * line + 16 * next.piece);
    }
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i)
      if (to[i] != nullptr)
        *reinterpret_cast<uint4*>(to[i]) =
            make_uint4(eight[i][0], eight[i][1], eight[i][2], eight[i][3]);
  }
}

// Reduces and stores the block's share of the tile, four consecutive elements of C at a time and
// kAtOnce of them, to hide the latency of the loads. Lines of C are aligned to four elements.
template <typename Tile>
__device__ void store_share(const SwappedWork& work, const Share& share, std::uint32_t acc) {
  using Accumulator = typename Tile::Accumulator;
  using Output = typename Tile::Output;
  struct alignas(4 * sizeof(Output)) Four {
    Output values[4];
  };
  constexpr int kAtOnce = 4;
  const TileOfC<Tile> tile(work, share);
  const int pitch = line_of_accumulators(work.swapped, Tile::kRows, work.tile_tokens);
  LinePieces next(share.rank * Tile::kConsumerThreads + static_cast<int>(threadIdx.x),
                  work.splits * Tile::kConsumerThreads, max(tile.length / 4, 1));
  while (next.line < tile.lines) {
    int line[kAtOnce], at[kAtOnce];
    std::uint32_t addresses[kAtOnce];
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i, next.next()) {
      line[i] = next.line;
      at[i] = 4 * next.piece;
      addresses[i] = acc + (min(line[i], tile.lines - 1) * pitch + at[i]) * 4;
    }
    Accumulator sums[kAtOnce][4];
    reduce(work, share, addresses, sums);
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) {
      if (line[i] >= tile.lines) break;
      Four result;
#pragma unroll
      for (int j = 0; j < 4; ++j) result.values[j] = static_cast<Output>(sums[i][j]);
      *reinterpret_cast<Four*>(tile.c + line[i] * work.pitch + at[i]) = result;
    }
  }
}

// The same where lines of C have any alignment: a warp stores a line.
template <typename Tile, int kPairs>
__device__ void store_unaligned(const SwappedWork& work, const Share& share, std::uint32_t acc) {
  using Output = typename Tile::Output;
  constexpr int kWarps = Tile::kConsumerThreads / 32;
  constexpr int kAtOnce = 4 / kPairs;  // lines
  const TileOfC<Tile> tile(work, share);
  const int pitch = line_of_accumulators(work.swapped, Tile::kRows, work.tile_tokens);
  const int lane = static_cast<int>(threadIdx.x) % 32, step = work.splits * kWarps;
  for (int first = share.rank * kWarps + static_cast<int>(threadIdx.x) / 32; first < tile.lines;
       first += kAtOnce * step) {
    typename Tile::Accumulator sums[kAtOnce * kPairs][2];
    std::uint32_t addresses[kAtOnce * kPairs];
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i)
#pragma unroll
      for (int j = 0; j < kPairs; ++j)
        addresses[i * kPairs + j] = acc + (min(first + i * step, tile.lines - 1) * pitch +
                                           min(64 * j + 2 * lane, tile.full_length - 2)) *
                                              4;
    reduce(work, share, addresses, sums);
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) {
      const int line = first + i * step;
      if (line >= tile.lines) break;
      Output* to = tile.c + line * work.pitch;
      if constexpr (sizeof(Output) == 2) {
        std::uint32_t pairs[kPairs];
#pragma unroll
        for (int j = 0; j < kPairs; ++j) {
          const auto& sum = sums[i * kPairs + j];
          const Output pair[2] = {static_cast<Output>(sum[0]), static_cast<Output>(sum[1])};
          memcpy(&pairs[j], pair, sizeof pair);
        }
        store_row(reinterpret_cast<std::uint16_t*>(to), pairs, tile.length);
      } else {
#pragma unroll
        for (int j = 0; j < 2 * kPairs; ++j) {
          const int at = 64 * (j / 2) + 2 * lane + j % 2;
          if (at < tile.length) to[at] = sums[i * kPairs + j / 2][j % 2];
        }
      }
    }
  }
}

#endif  // __CUDA_ARCH_FEAT_SM90_ALL

template <typename Tile>
__global__ void __launch_bounds__(Tile::kThreads, Tile::kBlocks)
    stream_weights([[maybe_unused]] const __grid_constant__ SwappedWork work) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  extern __shared__ std::byte shared[];
  __shared__ RingBarriers<kMaxStages> barriers;
  const Ring<0> ring(shared, barriers, work.stages, work.stage_bytes);
  if (threadIdx.x == 0) {
    ring.init_barriers(Tile::kConsumerThreads / 128 * work.sharers);
  } else if (threadIdx.x == Tile::kConsumerThreads) {
    for (int phase = 0; phase < work.phases; ++phase) prefetch_tensor_map(work.weights_maps[phase]);
    prefetch_tensor_map(work.tokens_map);
  }
  if (work.sharers > 1)
    sync_cluster_relaxed();
  else
    __syncthreads();
  const Share share(work);
  const int warp = warp_of_block();
  if constexpr (Tile::kScaled) wait_for_previous_launch();  // which may write scales
  if (warp >= Tile::kConsumerThreads / 32) {
    if (threadIdx.x % 32 == 0)
      load_k_tiles<Tile>(work, share, ring, warp - Tile::kConsumerThreads / 32);
    return;
  }
  compute<Tile>(work, share, ring, std::make_index_sequence<std::size(kTokenSizes)>());
  if (work.splits > 1) {
    sync_cluster();
  } else {
    if (work.sharers > 1) arrive_at_cluster();  // before the stores, for which it would wait
    sync_consumers<Tile>();
  }
  const std::uint32_t sums = sums_of(work, ring);
  if (work.stages_output)
    store_staged<Tile>(work, share, sums);
  else if (work.pitch % 4 == 0)
    store_share<Tile>(work, share, sums);
  else if (work.swapped)
    store_unaligned<Tile, Tile::kRows / 64>(work, share, sums);
  else
    store_unaligned<Tile, Tile::kMostTokens / 64>(work, share, sums);
  // No block exits before others have read its shared memory and arrived at its barriers.
  if (work.splits > 1)
    sync_cluster();
  else if (work.sharers > 1)
    wait_for_cluster();
#endif
}

using SwappedKernel = void (*)(SwappedWork);

// An instance of the kernel, as the host needs it.
struct SwappedInstance {
  SwappedKernel kernel;
  int threads;
};

// What an instance depends on, besides types.
struct InstanceKey {
  int rows, most_tokens;  // of a tile
  bool mn_major, tokens_mn_major;
  bool scaled = false;
};
template <typename Element, bool kPromote, bool kMnMajor, bool kTokensMnMajor>
SwappedInstance instance_for(const InstanceKey& key) {
  SwappedInstance found{};
  const auto consider = [&]<int kRows, int kMostTokens>() {
    using Tile = SwappedTile<Element, kMnMajor, kTokensMnMajor, kPromote, kRows, kMostTokens>;
    if constexpr (token_kernel_fits(kRows, kMostTokens, Tile::kTokenKind))
      if (key.rows == kRows && key.most_tokens == kMostTokens)
        found = {stream_weights<Tile>, Tile::kThreads};
    if constexpr (std::is_same_v<Element, __nv_fp8_e4m3> && kPromote && kRows <= 128 &&
                  kMostTokens == 64)
      if (key.scaled && key.rows == kRows && key.most_tokens == kMostTokens)
        found = {stream_weights<ScaledTile<kRows, kMostTokens>>, Tile::kThreads};
  };
  consider.template operator()<64, 64>();
  consider.template operator()<64, 128>();
  consider.template operator()<128, 64>();
  consider.template operator()<128, 128>();
  consider.template operator()<128, 256>();
  consider.template operator()<192, 128>();
  consider.template operator()<192, 256>();
  return found;
}
template <typename Element, bool kPromote>
SwappedInstance instance_for(const InstanceKey& key) {
  if constexpr (sizeof(Element) == 2) {
    if (key.mn_major && key.tokens_mn_major)
      return instance_for<Element, kPromote, true, true>(key);
    if (key.mn_major) return instance_for<Element, kPromote, true, false>(key);
    if (key.tokens_mn_major) return instance_for<Element, kPromote, false, true>(key);
  }
  if constexpr (sizeof(Element) == 4)
    if (key.mn_major) return instance_for<Element, kPromote, true, false>(key);
  return instance_for<Element, kPromote, false, false>(key);
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
    case Precision::e4m3block:
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

// Which operand is streamed, the "weights": B, or A, and nothing is swapped.
struct Roles {
  bool swapped;
  std::int64_t rows, tokens;

  constexpr Roles(const Problem& p, bool swapped)
      : swapped(swapped), rows(swapped ? p.n : p.m), tokens(swapped ? p.m : p.n) {}
};
template <typename Element>
Operand<Element> weights_of(const Problem& p, const Roles& roles, const Operands& o) {
  return roles.swapped ? operand_b<Element>(p, o.b) : operand_a<Element>(p, o.a);
}
template <typename Element>
Operand<Element> tokens_of(const Problem& p, const Roles& roles, const Operands& o) {
  return roles.swapped ? operand_a<Element>(p, o.a) : operand_b<Element>(p, o.b);
}

// Whether they stay so; others are packed K-major.
bool tokens_mn_major(const Problem& p, const Roles& roles) {
  return traits_of(p.precision).input_bytes == 2 && !tokens_of<__half>(p, roles, {}).k_major;
}

// Whether the weights stay as they are; others are packed K-major.
template <typename Element>
bool stays(const Operand<Element>& weights) {
  return sizeof(Element) != 1 || weights.k_major;
}

// In how many phases weights that are MN-major and whose rows are not aligned can be loaded,
// else 1.
int phases_of(const Problem& p, const Roles& roles) {
  return with_element_type(p.precision, [&]<typename Element>(Element, auto) {
    const Operand<Element> weights = weights_of<Element>(p, roles, {});
    const int phases = row_phases(weights);
    const bool can = sizeof(Element) != 1 && !weights.k_major && phases <= p.k &&
                     tokens_of<Element>(p, roles, {}).k_major &&
                     phases * roles.rows < std::int64_t{1} << 31;
    return can ? phases : 1;
  });
}

// Worth a look with few tokens, and where a wave has tiles for all.
constexpr std::int64_t kFewTokens = 512;
std::vector<Roles> roles_of(const Problem& p, const Device& device) {
  std::vector<Roles> all;
  for (const bool swapped : {true, false}) {
    const Roles roles(p, swapped);
    if (has_scales(p.precision) && !swapped) continue;
    if ((roles.tokens <= kFewTokens && roles.tokens <= roles.rows) ||
        ceil_div(roles.rows, 128) * ceil_div(roles.tokens, 256) <= device.sm_count)
      all.push_back(roles);
  }
  return all;
}

// In phases, tokens are packed in whole cache lines.
SwappedShape shape_for(const Problem& p, const Roles& roles, int phases) {
  return with_element_type(p.precision, [&]<typename Element>(Element, auto) {
    const Operand<Element> weights = weights_of<Element>(p, roles, {}),
                           tokens = tokens_of<Element>(p, roles, {});
    const bool weights_k_major = !stays(weights) || weights.k_major,
               tokens_k_major = !tokens_mn_major(p, roles), in_phases = phases > 1;
    return SwappedShape{.rows = roles.rows,
                        .tokens = roles.tokens,
                        .k = p.k,
                        .element_bytes = sizeof(Element),
                        .promoted = promotes(p.precision),
                        .tokens_mn_major = !tokens_k_major,
                        .weights_mn_major = !weights_k_major,
                        .through_registers = !weights_k_major && sizeof(Element) == 4,
                        .packed = (in_phases ? 0 : packing_bytes(weights, weights_k_major)) +
                                  packing_bytes(tokens, tokens_k_major, in_phases),
                        .weight_lines = lines_touched(weights, weights_k_major),
                        .token_lines = in_phases ? 1 : lines_touched(tokens, tokens_k_major),
                        .phases = phases,
                        .swapped = roles.swapped,
                        .output_bytes = traits_of(p.precision).output_bytes,
                        .aligned_lines = p.n % 4 == 0,
                        .scaled = has_scales(p.precision)};
  });
}

// Whether tiles are staged as elements of C: of 16 bits, in aligned lines, with nothing to add.
bool stages_output(const Problem& p, const SwappedPlan& plan) {
  return traits_of(p.precision).output_bytes == 2 && p.n % 8 == 0 && plan.splits == 1 &&
         plan.phases == 1 && plan.tile_tokens % 16 == 0;
}

template <typename Element, bool kPromote>
Launch launch_of(const Problem& p, const Device& device, const Roles& roles, const Operands& o,
                 const SwappedPlan& plan) {
  const Operand<Element> stored = weights_of<Element>(p, roles, o);
  constexpr int kDepth = kStageLineBytes / static_cast<int>(sizeof(Element));
  const int stage_depth = lines_of_stage(plan.tile_rows, plan.tile_tokens) * kDepth;
  const bool aligned = reinterpret_cast<std::uintptr_t>(stored.matrix) % kChunkBytes == 0;
  const int phases = aligned ? plan.phases : 1;
  const auto depth = static_cast<int>(plan.k_tiles) * stage_depth;
  const PackedOperand<Element> weights =
      phases > 1
          ? PackedOperand<Element>{stored.matrix, phases * stored.columns(), stored.k_major, {}, {}}
          : packed(stored, !stays(stored) || stored.k_major);
  const PackedOperand<Element> tokens = packed(
      tokens_of<Element>(p, roles, o), phases > 1 || !tokens_mn_major(p, roles), {phases, depth});
  const SwappedInstance instance =
      instance_for<Element, kPromote>({plan.tile_rows, token_kernel(plan.tile_tokens),
                                       !weights.k_major, !tokens.k_major, has_scales(p.precision)});
  // Of every `phases`th row of MN-major weights, up to the end of the last one.
  const auto weights_map = [&](int box_rows, int phase = 0) {
    return weights.k_major
               ? swizzled_map(weights, roles.rows, p.k, box_rows, kDepth)
               : swizzled_map(weights, (phase + 1) * roles.rows, ceil_div(p.k - phase, phases),
                              kDepth, stage_depth / plan.weight_sharers());
  };
  const std::int64_t tokens_k = phases > 1 ? depth : p.k;
  const auto tokens_map = [&](int box_tokens) {
    return tokens.k_major ? swizzled_map(tokens, roles.tokens, tokens_k, box_tokens, kDepth)
                          : swizzled_map(tokens, roles.tokens, p.k, token_group(plan.tile_tokens),
                                         stage_depth / plan.token_sharers());
  };
  // Of the last tile, which may be full.
  const std::int64_t rows_left = roles.rows - (plan.tiles - 1) * plan.stored_rows,
                     tokens_left = roles.tokens - (plan.token_tiles - 1) * plan.tile_tokens;
  // Sharers load multiples of eight rows or tokens, at which the swizzle begins again.
  const auto box = [](std::int64_t count, int sharers) {
    return static_cast<int>(sharers == 1 ? count : ceil_div(count, 8 * sharers) * 8);
  };
  const int row_box = box(plan.tile_rows, plan.weight_sharers()),
            edge_row_box = box(rows_left, plan.weight_sharers()),
            token_box = box(plan.tile_tokens, plan.token_sharers()),
            edge_token_box = box(tokens_left, plan.token_sharers());
  const int accumulator_bytes =
      4 * line_of_accumulators(roles.swapped, plan.tile_rows, plan.tile_tokens) *
      (roles.swapped ? plan.tile_tokens : plan.tile_rows);
  SwappedWork work{.rows = static_cast<int>(roles.rows),
                   .tokens = static_cast<int>(roles.tokens),
                   .tile_tokens = plan.tile_tokens,
                   .token_tiles = static_cast<int>(plan.token_tiles),
                   .k_tiles = static_cast<int>(plan.k_tiles),
                   .splits = plan.splits,
                   .sharers = plan.sharers,
                   .shares_weights = plan.shares_weights,
                   .stages = plan.stages,
                   .stage_bytes = plan.stage_bytes,
                   .row_box = row_box,
                   .edge_row_box = edge_row_box,
                   .token_box = token_box,
                   .edge_token_box = edge_token_box,
                   .swapped = roles.swapped,
                   .lets_next_begin = plan.lets_next_begin,
                   .read_once = plan.weight_bytes > device.last_level_cache_bytes,
                   .stages_output = phases == plan.phases && stages_output(p, plan) &&
                                    reinterpret_cast<std::uintptr_t>(o.c) % kChunkBytes == 0,
                   .tile_rows = plan.stored_rows,
                   .phases = phases,
                   .phase_k_tiles = static_cast<int>(plan.k_tiles / phases),
                   .pitch = p.n,
                   .c = o.c,
                   .tokens_map = tokens_map(token_box),
                   .weights_edge = weights_map(edge_row_box),
                   .tokens_edge = tokens_map(edge_token_box),
                   .a_scales = o.a_scales,
                   .b_scales = o.b_scales,
                   .k_blocks = static_cast<int>(ceil_div(p.k, kScaleBlock))};
  for (int phase = 0; phase < phases; ++phase)
    work.weights_maps[phase] = weights_map(row_box, phase);
  const LaunchShape shape{
      .blocks = static_cast<int>(plan.blocks()),
      .threads = instance.threads,
      .shared_bytes = (phases > 1 ? plan.stages * plan.stage_bytes + accumulator_bytes
                                  : std::max(plan.stages * plan.stage_bytes, accumulator_bytes)) +
                      kSwizzleAlignment,
      .cluster = plan.cluster(),
      .overlaps = true};
  // Not what this launch needs: other launches of the instance may need more.
  simt::allow_shared_bytes(instance.kernel, kMostSharedBytes);
  if (plan.cluster() > Device::kPortableCluster)
    cudaFuncSetAttribute(instance.kernel, cudaFuncAttributeNonPortableClusterSizeAllowed, 1);
  return [=, kernel = instance.kernel, packing = pack(weights, tokens)](Stream stream) {
    if (packing) packing(stream);
    enqueue(kernel, shape, stream, work);
  };
}

std::optional<std::string> unsupported(const Problem& p, const Device& device) {
  if (roles_of(p, device).empty())
    return "requires m or n <= " + std::to_string(kFewTokens) +
           ", or no more tiles of 128 x 256 than SMs";
  constexpr std::int64_t kMost = (std::int64_t{1} << 31) - 1024;  // box coordinates are 32-bit
  if (std::max({p.m, p.n, p.k}) > kMost) return "requires m, n and k below 2^31 - 1024";
  return sm_90a_unsupported(instance_for<__half, false, false, false>({64, 64}).kernel, device);
}

// Every block reads all weights and tokens of its tile; sharers read what they share once from the
// L2. Shared memory per K tile: the copies, and each warpgroup's reads of its weights and all
// tokens; accumulators, or elements of C, are stored and loaded once.
Traffic traffic_of(const Problem& p, const SwappedShape& shape, const SwappedPlan& plan) {
  const PrecisionTraits& traits = traits_of(p.precision);
  const double depth = 1.0 * traits.input_bytes * static_cast<double>(p.k);
  const double weights = depth * static_cast<double>(shape.rows),
               tokens = depth * static_cast<double>(shape.tokens),
               c = 1.0 * traits.output_bytes * static_cast<double>(p.m) * static_cast<double>(p.n);
  const double width = plan.tile_tokens;
  const double k_tile = kStageLineBytes * lines_of_stage(plan.tile_rows, plan.tile_tokens) *
                        (2.0 * plan.tile_rows + (1 + plan.tile_rows / 64) * width);
  const double acc = 2.0 * (stages_output(p, plan) ? 2 : 4) * plan.tile_rows * width * plan.splits;
  return {.dram = bytes_minimum(p) + shape.packed,
          .l2 = shape.packed +
                weights * static_cast<double>(ceil_div(plan.token_tiles, plan.weight_sharers())) +
                tokens * static_cast<double>(ceil_div(plan.tiles, plan.token_sharers())) + c,
          .shared = shape.packed + static_cast<double>(plan.tiles * plan.token_tiles) *
                                       (static_cast<double>(plan.k_tiles) * k_tile + acc)};
}

std::vector<Candidate> candidates(const Problem& p, const Device& device) {
  std::vector<Candidate> all;
  for (const Roles& roles : roles_of(p, device))
    for (const int phases : std::set{1, phases_of(p, roles)}) {
      const SwappedShape shape = shape_for(p, roles, phases);
      const auto work = [&](const SwappedPlan& plan) {
        return work_of(plan, shape, device, traffic_of(p, shape, plan));
      };
      for (const SwappedPlan& plan : swapped_plans(
               shape, device, [&](const SwappedPlan& plan) { return seconds(work(plan), device); }))
        all.push_back({name_of(plan, roles.swapped), work(plan), [=](const Operands& o) {
                         return with_element_type(p.precision, [&](auto element, auto promoted) {
                           return launch_of<decltype(element), decltype(promoted)::value>(
                               p, device, roles, o, plan);
                         });
                       }});
    }
  return all;
}

const Registration registration({
    .name = "WgmmaSwapped",
    .idea = "Swapped operands for few rows: wgmma's M is the long side, N the tokens; clusters "
            "split k.",
    .source = "DeepGEMM and vLLM, swapped operands for few tokens; CUTLASS, split-K",
    .rung = 60,
    .precisions = {Precision::bf16, Precision::f16, Precision::tf32, Precision::e4m3,
                   Precision::e4m3fast, Precision::e5m2, Precision::e5m2fast, Precision::s8,
                   Precision::e4m3block},
    .layouts = {Layout::nn, Layout::nt, Layout::tn, Layout::tt},
    .unsupported = unsupported,
    .candidates = candidates,
});

}  // namespace
}  // namespace gemm::tensor
