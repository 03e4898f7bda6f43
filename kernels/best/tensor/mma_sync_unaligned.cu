// Operands whose rows begin anywhere, without a launch that packs them. TMA and copies of 16 bytes
// need rows at multiples of 16 bytes; kernels that use them pack other operands first, which takes
// as long as the product where that is small. Here cp.async copies the aligned chunks of 16 bytes
// that hold a K tile, one more per row than its bytes need, and threads shift each row into its
// place in shared memory.
//
// In a small product the latency of dependent instructions is what counts, so a block has one tile
// of C, without a loop over tiles. All tiles are cut into the same number of pieces along k, a
// block for each. Cost: a shift takes more instructions than the MMAs, so that large products are
// faster with packed operands.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "kernels/layout.hpp"
#include "kernels/parts/async_copy.cuh"
#include "kernels/parts/cluster_launch.cuh"
#include "kernels/parts/mma_tile.cuh"
#include "kernels/parts/partial_sums.cuh"
#include "kernels/parts/tile_launch.cuh"
#include "kernels/parts/tile_schedule.hpp"
#include "kernels/parts/tile_traffic.hpp"
#include "kernels/registry.hpp"

namespace gemm::tensor::mma_sync_unaligned {
namespace {

constexpr int kThreads = 256, kWarps = kThreads / 32;
constexpr std::int64_t kMostAcross = 65535;  // of a grid's second dimension
constexpr int kLine = kBankBytes;            // bytes of a K tile along k
template <typename Element>
constexpr int kElements = kLine / static_cast<int>(sizeof(Element));  // steps of a K tile
template <typename Element>
constexpr int kStep = kStepBytes / static_cast<int>(sizeof(Element));  // of an MMA

// Tiles: rows, columns, bytes along k, those of a warp, stages, blocks per SM.
using Square = MmaShape<64, 64, kLine, 16, 32, 3, 4>;
using Wide = MmaShape<64, 128, kLine, 32, 32, 3, 3>;
using Tall = MmaShape<128, 32, kLine, 16, 32, 3, 3>;
using Flat = MmaShape<32, 128, kLine, 16, 32, 3, 3>;

// Of a K tile of so many lines (rows of A, columns of B) as it is stored, with a further chunk per
// row.
constexpr int stored_bytes(int lines) { return lines * kLine + std::max(lines, 64) * kChunkBytes; }
// Of a block: a K tile, and as many stages as there are K tiles, up to kStages.
template <typename Shape>
constexpr int shared_bytes(int k_tiles = Shape::kStages) {
  return Shape::kStageBytes +
         std::min(Shape::kStages, k_tiles) * (stored_bytes(Shape::kBM) + stored_bytes(Shape::kBN));
}

// Blocks per SM, as many as there are registers for.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 900
constexpr bool kTakesMore = true;  // ptxas needs more registers for sm_80
#else
constexpr bool kTakesMore = false;
#endif
template <typename Element, typename Shape>
constexpr int kBlocks = Shape::kBlocks -
                        (Shape::kBM * Shape::kBN > 4096 && (sizeof(Element) == 4 || kTakesMore));

// A block per tile of C and piece along k: blockIdx is the tile's row, its column, the piece.
struct UnalignedWork {
  Problem problem;
  int k_tiles;           // of a piece
  bool early;            // the next launch may begin when C is stored
  PartialSums partials;  // one tile and flag per tile and piece but the last
  const std::byte *a, *b;
  void* c;
};

#if __CUDA_ARCH__ >= 800

__device__ void store_chunk(std::uint32_t to, const std::uint32_t* words) {
  asm volatile("st.shared.v4.u32 [%0], {%1, %2, %3, %4};" ::"r"(to), "r"(words[0]), "r"(words[1]),
               "r"(words[2]), "r"(words[3])
               : "memory");
}
__device__ void load_chunk(std::uint32_t* words, std::uint32_t from) {
  asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(words[0]), "=r"(words[1]), "=r"(words[2]), "=r"(words[3])
               : "r"(from)
               : "memory");
}
template <typename Bits>
__device__ std::uint32_t load_shared(std::uint32_t from) {
  std::uint32_t bits;
  if constexpr (sizeof(Bits) == 4)
    asm volatile("ld.shared.u32 %0, [%1];" : "=r"(bits) : "r"(from) : "memory");
  else
    asm volatile("ld.shared.u16 %0, [%1];" : "=r"(bits) : "r"(from) : "memory");
  return bits;
}

#endif

// A stored operand, at a multiple of 16 bytes. Its rows are lines if kKMajor, else steps of k.
struct Stored {
  const std::byte* matrix;
  int lines, k;
};

// An operand's K tiles. They are copied as stored, in the aligned chunks that hold them, one more
// per row; then each row is shifted into its place in the K tile.
template <typename Element, int kLines, bool kKMajor>
class UnalignedOperand {
  static constexpr int kSize = sizeof(Element), kRowBytes = kKMajor ? kLine : kLines * kSize;
  static constexpr int kRows = kLines * kLine / kRowBytes, kChunks = kRowBytes / kChunkBytes;
  static constexpr int kOfChunk = kChunkBytes / kSize, kPitch = kRowBytes + kChunkBytes;
  static constexpr int kRowsAtOnce = kThreads / kChunks, kCopies = kRows / kRowsAtOnce;
  static_assert(kRowsAtOnce * kSize % kChunkBytes == 0 && kRowsAtOnce % 8 == 0,
                "all chunks of a thread begin at the same offset and have the same swizzle");

 public:
  static constexpr int kBytes = stored_bytes(kLines);
  static_assert(kRows * kPitch <= kBytes);

#if __CUDA_ARCH__ >= 800
  // From this line and step of k on, multiples of those of a K tile.
  __device__ UnalignedOperand(const Stored& of, int line, int step) : shift_(shift(of, row())) {
    const int first_row = (kKMajor ? line : step) + row();
    const int first_column = (kKMajor ? step : line) + chunk() * kOfChunk - shift_ / kSize;
    lines_ = of.lines - (kKMajor ? line : first_column);
    from_ = of.matrix + first_row * row_bytes(of) + std::int64_t{first_column} * kSize;
  }
  // Starts the copies of the next K tile. `left`: steps from its first one to the end of k. Chunks
  // outside the matrix are not copied, nor is one that reaches beyond its end: store_end stores
  // that. Steps beyond the end of k are zeroed here if MN-major, else by shift_rows.
  __device__ void load(const Stored& of, std::uint32_t to, int left) {
    if (left > kElements<Element> + kOfChunk)
      load_rows<true>(of, to, left);
    else
      load_rows<false>(of, to, left);
    from_ += kKMajor ? std::int64_t{kLine} : kRows * row_bytes(of);
  }
  // The last chunk of the matrix, if that fills it in part: a thread's element, or 0; each of the
  // first kOfChunk threads has one.
  __device__ std::uint32_t load_end(const Stored& of) const {
    const std::byte* end = of.matrix + std::int64_t{of.lines} * of.k * kSize;
    const int rest = static_cast<int>(reinterpret_cast<std::uintptr_t>(end) % kChunkBytes);
    const int at = static_cast<int>(threadIdx.x) * kSize;
    if (at >= rest) return 0;
    if constexpr (kSize == 4)
      return __ldg(reinterpret_cast<const std::uint32_t*>(end - rest + at));
    else
      return __ldg(reinterpret_cast<const std::uint16_t*>(end - rest + at));
  }
  // Stores it among the copies of a K tile, from where so many lines and steps of k are left, if it
  // belongs there.
  __device__ void store_end(const Stored& of, std::uint32_t copies, int lines, int steps,
                            std::uint32_t element) const {
    if (threadIdx.x >= kOfChunk || std::int64_t{of.lines} * of.k % kOfChunk == 0) return;
    const int last_row = (kKMajor ? lines : steps) - 1, last_column = (kKMajor ? steps : lines) - 1;
    if (last_row >= kRows || last_column > kRowBytes / kSize + kOfChunk) return;
    const int chunk_at = (last_column * kSize + shift(of, last_row)) / kChunkBytes * kChunkBytes;
    if (chunk_at > kRowBytes) return;
    const std::uint32_t to = copies + last_row * kPitch + chunk_at + threadIdx.x * kSize;
    if constexpr (kSize == 4)
      asm volatile("st.shared.u32 [%0], %1;" ::"r"(to), "r"(element) : "memory");
    else
      asm volatile("st.shared.u16 [%0], %1;" ::"r"(to), "h"(static_cast<std::uint16_t>(element))
                   : "memory");
  }
  // From what was copied to the K tile. `left`: steps from its first one to the end of k. Rounds to
  // TF32, once for all warps that load an element.
  __device__ void shift_rows(const Stored& of, std::uint32_t from, std::uint32_t to,
                             int left) const {
    if constexpr (kSize == 4 && !kKMajor) {  // transposes: a K tile of such elements is K-major
      constexpr int kSteps = kRows * kLines / kThreads;  // of a thread
      constexpr int kAtOnce = std::min(kSteps, kStep<Element>);
      const int line = static_cast<int>(threadIdx.x) % kLines;
      const int first = static_cast<int>(threadIdx.x) / kLines * kSteps;
#pragma unroll
      for (int i = 0; i < kSteps; i += kAtOnce) {
        if (first + i >= steps_of(left)) break;
        std::uint32_t words[kAtOnce];
#pragma unroll
        for (int j = 0; j < kAtOnce; ++j)
          words[j] = rounded_to_tf32(load_shared<std::uint32_t>(
              from + (first + i + j) * kPitch + shift(of, first + i + j) + line * kSize));
#pragma unroll
        for (int j = 0; j < kAtOnce; j += 4)
          store_chunk(to + line * kLine + swizzled(kLine, line, (first + i + j) / 4) * kChunkBytes,
                      words + j);
      }
    } else {
      from += row() * kPitch + chunk() * kChunkBytes;
      to += row() * kRowBytes + swizzled(kRowBytes, row(), chunk()) * kChunkBytes;
      for_rows(kKMajor ? lines_ : steps_of(left), [&]<int kCount>() {
#pragma unroll
        for (int i = 0; i < kCount; ++i) {
          std::uint32_t words[8];
          load_chunk(words, from + i * kRowsAtOnce * kPitch);
          load_chunk(words + 4, from + i * kRowsAtOnce * kPitch + kChunkBytes);
#pragma unroll
          for (int j = 0; j < 6; ++j) words[j] = shift_ & 8 ? words[j + 2] : words[j];
#pragma unroll
          for (int j = 0; j < 5; ++j) words[j] = shift_ & 4 ? words[j + 1] : words[j];
#pragma unroll
          for (int j = 0; j < 4; ++j)
            words[j] = kSize == 4 ? rounded_to_tf32(words[j])
                                  : __funnelshift_r(words[j], words[j + 1], shift_ % 4 * 8);
          if (kKMajor && left < kElements<Element>) {
            const int bits = 8 * kSize * (left - chunk() * kOfChunk);  // before the end of k
#pragma unroll
            for (int j = 0; j < 4; ++j)
              words[j] &= ~(bits <= 32 * j ? ~0U : bits >= 32 * j + 32 ? 0U : ~0U << bits % 32);
          }
          store_chunk(to + i * kRowsAtOnce * kRowBytes, words);
        }
      });
    }
  }

 private:
  // kWhole: all steps that are copied, also by further chunks, are before the end of k.
  template <bool kWhole>
  __device__ void load_rows(const Stored& of, std::uint32_t to, int left) const {
    unsigned t = threadIdx.x;
    asm volatile("" : "+r"(t));  // keeps the compiler from holding what follows in registers
    const int first = static_cast<int>(t / kChunks), chunk = static_cast<int>(t % kChunks);
    to += first * kPitch + chunk * kChunkBytes;
    const int rows = kKMajor ? lines_ : kWhole ? kRows : left;
    const int columns = kKMajor ? left - chunk * kOfChunk + shift_ / kSize : lines_;
    // Whether to copy a chunk with so many columns left. Not if it crosses the matrix's end.
    const auto wanted = [&](int row, int columns) {
      if constexpr (kWhole) return kKMajor ? row < rows : columns > 0;
      const int end = rows - (columns < kOfChunk);
      return columns > 0 && (row < end || (!kKMajor && row >= rows));
    };
    const bool has_further = chunk == kChunks - 1 && shift_ != 0;
    for_rows(kKMajor ? rows : steps_of(rows), [&]<int kCount>() {
      const std::byte* from = from_;
#pragma unroll
      for (int i = 0; i < kCount; ++i) {
        const int row = first + i * kRowsAtOnce;
        const bool zero = !kWhole && !kKMajor && row >= rows;
        const std::uint32_t place = to + i * kRowsAtOnce * kPitch;
        copy(place, from, wanted(row, columns), zero);
        copy(place + kChunkBytes, from + kChunkBytes,
             has_further && wanted(row, columns - kOfChunk), zero);
        from += kRowsAtOnce * row_bytes(of);
      }
    });
  }
  static __device__ int row() { return static_cast<int>(threadIdx.x) / kChunks; }
  static __device__ int chunk() { return static_cast<int>(threadIdx.x) % kChunks; }
  static __device__ std::int64_t row_bytes(const Stored& of) {
    return std::int64_t{kKMajor ? of.k : of.lines} * kSize;
  }
  // Calls f<kCount>: kCount chunks of each thread are so many rows, or more.
  template <int kCount = kCopies, typename F>
  static __device__ void for_rows(int rows, const F& f) {
    if constexpr (kCount > 1)
      if (rows <= kCount / 2 * kRowsAtOnce) return for_rows<kCount / 2>(rows, f);
    f.template operator()<kCount>();
  }
  // Where a row of a K tile begins in an aligned chunk. Rows of all K tiles are alike.
  static __device__ int shift(const Stored& of, int row) {
    const auto first = static_cast<unsigned>(reinterpret_cast<std::uintptr_t>(of.matrix)) +
                       static_cast<unsigned>(row) * static_cast<unsigned>(row_bytes(of));
    return static_cast<int>(first % kChunkBytes);
  }
  // The steps that MMAs take, where so many are left.
  static __device__ int steps_of(int left) {
    return (left + kStep<Element> - 1) / kStep<Element> * kStep<Element>;
  }
  // Copies a chunk, or zeros.
  static __device__ void copy(std::uint32_t to, const std::byte* from, bool wanted, bool zero) {
    asm volatile(
        "{ .reg .pred p; setp.ne.s32 p, %3, 0;"
        " @p cp.async.cg.shared.global [%0], [%1], 16, %2; }" ::"r"(to),
        "l"(from), "r"(zero ? 0 : kChunkBytes), "r"(static_cast<int>(wanted))
        : "memory");
  }

  // This thread's source in the next K tile. Lines to the edge: from there, or, if K-major, from
  // the tile's first one.
  const std::byte* from_ = nullptr;
  int lines_ = 0, shift_;
#endif
};

#if __CUDA_ARCH__ >= 800

// The tile of C of a block, with the interface of partial_sums.cuh.
template <typename Arithmetic, typename Shape, bool kAKMajor, bool kBKMajor>
class UnalignedTile : public MmaTile<Arithmetic, Shape, kAKMajor, kBKMajor> {
  using Base = MmaTile<Arithmetic, Shape, kAKMajor, kBKMajor>;

 public:
  static constexpr int kThreads = Shape::kThreads;  // of partial sums

  __device__ UnalignedTile(const UnalignedWork& work, const std::byte* shared)
      : Base(work.problem, 0, 0, {}, {}, shared), work_(work) {}

  // Whether a part of this warp's tile is inside C.
  __device__ bool inside() const {
    const int row = static_cast<int>(blockIdx.x) * Shape::kBM + Base::warp_row();
    const int column = static_cast<int>(blockIdx.y) * Shape::kBN + Base::warp_column();
    return row < static_cast<int>(work_.problem.m) && column < static_cast<int>(work_.problem.n);
  }

  // Adds the partial sums of the other pieces, which belong to blocks that started before.
  __device__ void add_pieces() {
    const int others = static_cast<int>(gridDim.z) - 1;
    for (int i = 0; i < others; ++i) {
      if (threadIdx.x % 32 == 0) wait_for_flag(flag_of(place(i)));
      __syncwarp();
      const float* from = partials_of(place(i));
      this->for_each_accumulator([&](auto& sum, int j) { sum += __ldcg(from + j * kThreads); });
    }
    sync();  // every warp has seen the flags; reset them for the next launch
    if (static_cast<int>(threadIdx.x) < others) *flag_of(place(static_cast<int>(threadIdx.x))) = 0;
  }
  // The place of a piece of this tile in the workspace.
  static __device__ int place(int piece) {
    return static_cast<int>((piece * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x);
  }

  __device__ float* partials_of(int place) const {
    return work_.partials.sums + std::int64_t{place} * Shape::kBM * Shape::kBN + threadIdx.x;
  }
  __device__ int* flag_of(int place) const { return work_.partials.arrived + place; }
  __device__ bool is_leader() const { return threadIdx.x == 0; }
  __device__ void sync() const { __syncthreads(); }

  // Stores the tile through shared memory, in place of the K tiles, a row per warp.
  __device__ void store_rows() {
    using Output = typename Base::Output;
    constexpr int kSize = sizeof(Output), kPitch = Shape::kBN * kSize;
    constexpr int kAcrossBlock = Shape::kBN / Shape::kWN;
    static_assert(Shape::kBM * kPitch <= shared_bytes<Shape>(1));
    const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
    const auto address = [&](int row, int byte) {  // chunks are swizzled
      return this->stage(0) + row * kPitch +
             swizzled(kPitch, row, byte / kChunkBytes) * kChunkBytes + byte % kChunkBytes;
    };
    // MMAs are 8 columns apart, so that bits of their chunks are set that the first one has clear.
    const std::uint32_t mine = address(warp / kAcrossBlock * Shape::kWM + lane / 4,
                                       (warp % kAcrossBlock * Shape::kWN + lane % 4 * 2) * kSize);
    wait_for_copies<0>();
    __syncthreads();
#pragma unroll
    for (int i = 0; i < Base::kRows; ++i)
#pragma unroll
      for (int j = 0; j < Base::kAcross; ++j)
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          const Output pair[2] = {static_cast<Output>(this->acc_[i][j][2 * half]),
                                  static_cast<Output>(this->acc_[i][j][2 * half + 1])};
          std::uint32_t bits[kSize / 2];
          memcpy(bits, pair, sizeof bits);
          const std::uint32_t to = (mine ^ (j * 8 * kSize)) + (16 * i + 8 * half) * kPitch;
          if constexpr (kSize == 2)
            asm volatile("st.shared.u32 [%0], %1;" ::"r"(to), "r"(bits[0]) : "memory");
          else
            asm volatile("st.shared.v2.u32 [%0], {%1, %2};" ::"r"(to), "r"(bits[0]), "r"(bits[1])
                         : "memory");
        }
    __syncthreads();
    // Rows of a warp are eight apart, so that chunks of all are swizzled alike, and either all or
    // none begin at an odd element of 16 bits. Words are stored where they are aligned in memory.
    using Bits = std::conditional_t<kSize == 4, std::uint32_t, std::uint16_t>;
    static_assert(kWarps == 8);
    const std::int64_t n = work_.problem.n;
    const int first_row = static_cast<int>(blockIdx.x) * Shape::kBM + warp;
    const int first_column = static_cast<int>(blockIdx.y) * Shape::kBN;
    const int columns = min(static_cast<int>(n) - first_column, Shape::kBN);
    const int rows = static_cast<int>(work_.problem.m) - first_row;
    Bits* const to = static_cast<Bits*>(work_.c) + first_row * n + first_column;
    const int odd = static_cast<int>(reinterpret_cast<std::uintptr_t>(to) % 4) / kSize;
    constexpr int kWords = std::max(1, kPitch / kBankBytes), kOfWord = 4 / kSize;
    const auto store = [&](auto load) {
#pragma unroll
      for (int i = 0; i < Shape::kBM / kWarps; ++i) {
        if (i * kWarps >= rows) break;
#pragma unroll
        for (int j = 0; j < kWords; ++j) {
          const int column = (32 * j + lane) * kOfWord + odd, left = columns - column;
          const std::uint32_t word = load(i * kWarps * kPitch + j * kBankBytes);
          if (left >= kOfWord)
            *reinterpret_cast<std::uint32_t*>(to + i * kWarps * n + column) = word;
          else if (left > 0)
            to[i * kWarps * n + column] = static_cast<Bits>(word);
        }
      }
    };
    const std::uint32_t row = address(warp, 4 * lane);
    if (odd == 0) {
      store([&](int at) { return load_shared<std::uint32_t>(row + at); });
    } else {
      const std::uint32_t next = address(warp, 4 * lane + 4);
      store([&](int at) {
        return load_shared<std::uint16_t>(row + 2 + at) | load_shared<std::uint16_t>(next + at)
                                                              << 16;
      });
      const int i = lane;  // the first elements of its rows
      if (i < Shape::kBM / kWarps && i * kWarps < rows)
        to[i * kWarps * n] =
            static_cast<Bits>(load_shared<std::uint16_t>(address(warp, 0) + i * kWarps * kPitch));
    }
  }

 private:
  const UnalignedWork& work_;
};

#endif  // __CUDA_ARCH__ >= 800

template <typename Arithmetic, typename Shape, bool kAKMajor, bool kBKMajor>
__global__ void __launch_bounds__(Shape::kThreads, kBlocks<typename Arithmetic::Element, Shape>)
    mma_sync_unaligned([[maybe_unused]] const __grid_constant__ UnalignedWork work) {
#if __CUDA_ARCH__ >= 800
  using Element = typename Arithmetic::Element;
  using A = UnalignedOperand<Element, Shape::kBM, kAKMajor>;
  using B = UnalignedOperand<Element, Shape::kBN, kBKMajor>;
  constexpr bool kTransposes = sizeof(Element) == 4;  // all K tiles are K-major then
  extern __shared__ __align__(kBankBytes) std::byte shared[];
  const std::uint32_t k_tile = shared_address(shared);
  const int m = static_cast<int>(work.problem.m), n = static_cast<int>(work.problem.n),
            k = static_cast<int>(work.problem.k);
  const Stored stored_a{work.a, m, k}, stored_b{work.b, n, k};
  const int first_k = static_cast<int>(blockIdx.z) * work.k_tiles * kElements<Element>;
  const int k_tiles =
      min(work.k_tiles, (k - first_k + kElements<Element> - 1) / kElements<Element>);
  const int first_row = static_cast<int>(blockIdx.x) * Shape::kBM,
            first_column = static_cast<int>(blockIdx.y) * Shape::kBN;
  A a(stored_a, first_row, first_k);
  B b(stored_b, first_column, first_k);
  // Whether the copies of the last K tile may contain the end of A or B.
  const bool at_end =
      m - first_row <= Shape::kBM + kChunkBytes || n - first_column <= Shape::kBN + kChunkBytes;
  constexpr int kStageBytes = A::kBytes + B::kBytes;
  const std::uint32_t first = k_tile + Shape::kStageBytes;
  const std::uint32_t last = first + (Shape::kStages - 1) * kStageBytes;
  wait_for_previous_launch();
  UnalignedTile<Arithmetic, Shape, kAKMajor || kTransposes, kBKMajor || kTransposes> tile(work,
                                                                                          shared);
  const bool inside = tile.inside();
  std::uint32_t stage = first + kStageBytes;  // of K tile i
#pragma unroll 1
  for (int i = 1 - Shape::kStages; i < k_tiles; ++i) {  // at first it only loads
    const std::uint32_t copies = stage;
    const std::uint32_t free = stage == first ? last : stage - kStageBytes;  // of K tile i - 1
    stage = stage == last ? first : stage + kStageBytes;
    if (i + Shape::kStages - 1 < k_tiles) {
      const int left = k - first_k - (i + Shape::kStages - 1) * kElements<Element>;
      a.load(stored_a, free, left);
      b.load(stored_b, free + A::kBytes, left);
    }
    commit_copies();
    if (i < 0) continue;
    const int left = k - first_k - i * kElements<Element>;
    if (left > kElements<Element> + kChunkBytes || !at_end) {
      wait_for_copies<Shape::kStages - 1>();
    } else {
      const std::uint32_t end_a = a.load_end(stored_a), end_b = b.load_end(stored_b);
      wait_for_copies<Shape::kStages - 1>();
      a.store_end(stored_a, copies, m - first_row, left, end_a);
      b.store_end(stored_b, copies + A::kBytes, n - first_column, left, end_b);
    }
    __syncthreads();
    a.shift_rows(stored_a, copies, k_tile, left);
    b.shift_rows(stored_b, copies + A::kBytes, k_tile + Shape::kBM * kLine, left);
    __syncthreads();
    if (!inside) continue;
#pragma unroll
    for (int step = 0; step < Shape::kSteps; ++step) {
      if (step * kStep<Element> >= left) break;
      typename decltype(tile)::Fragments fragments;
      tile.load_fragments(fragments, k_tile, step);
      tile.multiply_rounded(fragments, [](int) {});
    }
  }
  if (work.early) let_next_launch_begin();
  if (blockIdx.z + 1 < gridDim.z) {  // the last piece's block stores the tile
    store_partial(tile, tile.place(static_cast<int>(blockIdx.z)));
    return;
  }
  if (gridDim.z > 1) tile.add_pieces();
  tile.store_rows();
#endif
}

// Into how many pieces along k all tiles are cut.
struct UnalignedPlan {
  std::int64_t rows, columns;  // of tiles
  int pieces, k_tiles;         // of a tile; of a piece
  bool early;                  // the next launch may begin when C is stored
};

template <typename Shape>
Work work_of(const Problem& p, const Device& device, const UnalignedPlan& plan) {
  const int bytes = traits_of(p.precision).input_bytes;
  const double tiles = static_cast<double>(plan.rows * plan.columns), pieces = plan.pieces,
               elements = 1.0 * Shape::kBM * Shape::kBN, sum_bytes = sizeof(float) * elements,
               partials = 2 * sum_bytes * tiles * (pieces - 1),
               lines = tiles * (Shape::kBM + Shape::kBN) * bytes * static_cast<double>(p.k) / kLine,
               blocks = tiles * pieces, sms = std::max(1, device.sm_count);
  // A shift loads two chunks and stores one.
  Traffic traffic = simt::tile_traffic(p, Shape::kBM, Shape::kBN, kLine / bytes,
                                       Shape::kWavefronts + 3 * (Shape::kBM + Shape::kBN));
  traffic.dram += partials;
  traffic.l2 += partials;
  const double waves = std::ceil(std::ceil(blocks / sms) / Shape::kBlocks);
  return {.traffic = traffic,
          .cycles =
              tensor_cycles(tiles * elements * static_cast<double>(p.k), bytes, device) / kMmaSync +
              kShiftLine * lines / sms,
          .busiest = std::ceil(blocks / sms) * sms / blocks,
          .tiles = waves,
          .tail = elements * traits_of(p.precision).output_bytes + (pieces - 1) * sum_bytes,
          .exchanges = plan.pieces > 1 ? 1.0 : 0.0};
}

template <typename Shape>
std::vector<UnalignedPlan> plans_of(const Problem& p, const Device& device) {
  constexpr std::int64_t kMostPieces = 32;
  const std::int64_t rows = ceil_div(p.m, Shape::kBM), columns = ceil_div(p.n, Shape::kBN),
                     k_tiles = ceil_div(p.k, kLine / traits_of(p.precision).input_bytes);
  const std::int64_t most_blocks = std::int64_t{8} * Shape::kBlocks * device.sm_count;
  std::vector<UnalignedPlan> plans;
  for (std::int64_t pieces = 1; pieces <= std::min(k_tiles, kMostPieces);
       pieces += 1 + pieces / 8) {
    const std::int64_t each = ceil_div(k_tiles, pieces);
    if (ceil_div(k_tiles, each) != pieces) continue;
    if (pieces > 1 && rows * columns * pieces > most_blocks) break;  // else too much workspace
    // With fewer blocks, those of the next launch would wait where this one's could run.
    const bool early = pieces == 1 && rows * columns > 2 * device.sm_count;
    plans.push_back({rows, columns, static_cast<int>(pieces), static_cast<int>(each), early});
  }
  return plans;
}

template <typename Arithmetic, typename Shape>
Launch launch_of(const Problem& p, const UnalignedPlan& plan, const Operands& o) {
  const std::int64_t partials = plan.rows * plan.columns * (plan.pieces - 1);
  const auto [sums, memory] = partial_sums(partials * Shape::kBM * Shape::kBN, partials);
  const UnalignedWork work{.problem = p,
                           .k_tiles = plan.k_tiles,
                           .early = plan.early,
                           .partials = sums,
                           .a = static_cast<const std::byte*>(o.a),
                           .b = static_cast<const std::byte*>(o.b),
                           .c = o.c};
  const auto kernel = with_transposes(p.layout, [&]<bool kTransposesA, bool kTransposesB>() {
    return mma_sync_unaligned<Arithmetic, Shape, !kTransposesA, kTransposesB>;
  });
  const LaunchShape grid{.blocks = static_cast<int>(plan.rows),
                         .threads = Shape::kThreads,
                         .shared_bytes = shared_bytes<Shape>(plan.k_tiles),
                         .overlaps = may_overlap(kernel),
                         .across = static_cast<int>(plan.columns),
                         .deep = plan.pieces};
  simt::allow_shared_bytes(kernel, shared_bytes<Shape>());
  return simt::keeping(memory, [=](Stream stream) { enqueue(kernel, grid, stream, work); });
}

template <typename Shape>
void add_candidates(std::vector<Candidate>& to, const Problem& p, const Device& device) {
  if (ceil_div(p.n, Shape::kBN) > kMostAcross ||
      simt::shared_memory_unsupported(shared_bytes<Shape>(), device))
    return;
  for (const UnalignedPlan& plan : plans_of<Shape>(p, device)) {
    to.push_back({named("tile", Shape::kBM, Shape::kBN) + "/pieces:" + std::to_string(plan.pieces),
                  work_of<Shape>(p, device, plan), [p, plan](const Operands& o) {
                    switch (p.precision) {
                      case Precision::bf16:
                        return launch_of<Bf16, Shape>(p, plan, o);
                      case Precision::f16:
                        return launch_of<F16, Shape>(p, plan, o);
                      default:
                        return launch_of<Tf32, Shape>(p, plan, o);
                    }
                  }});
  }
}

const Registration registration({
    .name = "MmaSyncUnaligned",
    .idea = "Shifts rows in shared memory: they need not begin at multiples of 16 bytes.",
    .source = "PTX ISA, cp.async",
    .rung = 49,
    .precisions = {Precision::bf16, Precision::f16, Precision::tf32},
    .layouts = {kLayouts.begin(), kLayouts.end()},
    .unsupported = [](const Problem& p, const Device& device) -> std::optional<std::string> {
      if (device.compute_capability < 80) return "requires compute capability 8.0";
      if (!simt::counts_fit(p, Square::kBM, Square::kBN, kElements<float>) ||
          ceil_div(p.n, Square::kBN) > kMostAcross)
        return "requires m and k below 2^31 - 1024, n below 2^22";
      if (traits_of(p.precision).input_bytes * std::min(lda(p), ldb(p)) < kChunkBytes)
        return "requires rows of A and B of at least 16 bytes";
      return simt::shared_memory_unsupported(shared_bytes<Square>(), device);
    },
    .candidates =
        [](const Problem& p, const Device& device) {
          std::vector<Candidate> candidates;
          add_candidates<Square>(candidates, p, device);
          add_candidates<Wide>(candidates, p, device);
          add_candidates<Tall>(candidates, p, device);
          add_candidates<Flat>(candidates, p, device);
          return candidates;
        },
});

}  // namespace
}  // namespace gemm::tensor::mma_sync_unaligned
