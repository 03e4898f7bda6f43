// Packed operands: copies of A or B in another layout, transposed or with rows padded to multiples
// of 16 bytes, as TMA and tensor cores require, or to whole cache lines. Packing runs in every
// launch, both operands in one kernel; it costs one read and one write of the matrix at nearly DRAM
// bandwidth. The launch overlaps the ends of its neighbours' (compute capability 9.0).
//
// Padding between the end of a row and the next is undefined. Elements of 1, 2 or 4 bytes are moved
// as bits.
//
// A large matrix whose rows are not aligned is read in place instead, where a kernel can: every
// second, fourth or eighth row is aligned (row_phases), and the other operand is packed in the
// order of such phases.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <numeric>
#include <stdexcept>
#include <type_traits>

#include "kernels/gemm.hpp"
#include "kernels/layout.hpp"
#include "kernels/parts/asynchronous.cuh"
#include "kernels/parts/cluster_launch.cuh"
#include "kernels/parts/device_array.cuh"

namespace gemm {

// An order of k, in `depth` places: first those of phase 0, k = 0, phases, 2 * phases... A phase
// has a multiple of 16 bytes of places.
struct PhaseOrder {
  int phases = 1, depth = 0;
};

// Copies `from`, a matrix of `rows` rows without padding: from[r][c] to to[r * pitch + c], or if
// transposed to to[c * pitch + r]. With an order, a K-major matrix gets its elements along k in
// that order, with zeros beyond the last.
struct Packing {
  const std::byte* from = nullptr;
  std::byte* to = nullptr;
  std::int64_t rows = 0, columns = 0;  // of from, in elements
  std::int64_t pitch = 0;              // bytes, a multiple of 16
  bool transposed = false, aligned = false;
  PhaseOrder order{};
  unsigned blocks_of_row = 1, blocks = 0;  // consecutive blocks write the same rows of `to`
};

constexpr int kPackingThreads = 256;

// Tiles are transposed in squares of 128 x 128 bytes, so that whole cache lines are read and
// written. A 32-bit word holds one to four elements of a row.
constexpr int kCacheLine = 128, kSectorBytes = 32, kChunkBytes = 16,
              kChunks = kCacheLine / kChunkBytes;
template <int kElement, int kSquaresDown_, int kSquaresAcross_>
struct TransposeTile {
  static constexpr int kSide = kCacheLine / kElement, kOfChunk = kChunkBytes / kElement,
                       kOfWord = 4 / kElement;
  static constexpr int kSquaresDown = kSquaresDown_, kSquaresAcross = kSquaresAcross_;
  static constexpr int kRows = kSide * kSquaresDown, kColumns = kSide * kSquaresAcross;
  static constexpr int kRowChunks = kChunks * kSquaresAcross;
  static constexpr int kAtOnce = kRows * kRowChunks / kPackingThreads;  // chunks per thread
  static constexpr int kSquareWords = kSide * kCacheLine / 4;
};
template <int kElement>
using TransposeTileFor = TransposeTile<kElement, kElement == 4 ? 2 : 1, kElement == 1 ? 1 : 2>;

// Copies without a transpose use no shared memory; a warp copies along a row.
constexpr int kCopyRows = 32, kCopyBytes = 32 * kChunkBytes;

// Loads 16 bytes from an unaligned address; bytes outside [begin, end) are zero.
template <int kElement>
__device__ uint4 load_anywhere(const std::byte* at, const std::byte* begin, const std::byte* end) {
  std::uint32_t words[5] = {};
  if (at - 3 >= begin && at + kChunkBytes + 3 < end) {
    const auto address = reinterpret_cast<std::uintptr_t>(at);
    const auto* from = reinterpret_cast<const std::uint32_t*>(address & ~std::uintptr_t{3});
    const unsigned shift = kElement == 4 ? 0 : static_cast<unsigned>(address % 4) * 8;
#pragma unroll
    for (int i = 0; i < 4; ++i) words[i] = __ldcs(from + i);
    if (shift != 0) words[4] = __ldcs(from + 4);
#pragma unroll
    for (int i = 0; i < 4; ++i) words[i] = __funnelshift_r(words[i], words[i + 1], shift);
  } else {
#pragma unroll
    for (int i = 0; i < kChunkBytes; ++i)
      if (at + i < end) words[i / 4] |= static_cast<std::uint32_t>(at[i]) << i % 4 * 8;
  }
  return {words[0], words[1], words[2], words[3]};
}

// Transposes the elements of a few words in registers.
template <int kElement>
__device__ void transpose_words(std::uint32_t (&words)[4 / kElement]) {
  if constexpr (kElement == 2) {
    const std::uint32_t first = words[0];
    words[0] = __byte_perm(first, words[1], 0x5410);
    words[1] = __byte_perm(first, words[1], 0x7632);
  } else if constexpr (kElement == 1) {
    const std::uint32_t even_01 = __byte_perm(words[0], words[1], 0x5140),
                        even_23 = __byte_perm(words[2], words[3], 0x5140),
                        odd_01 = __byte_perm(words[0], words[1], 0x7362),
                        odd_23 = __byte_perm(words[2], words[3], 0x7362);
    words[0] = __byte_perm(even_01, even_23, 0x5410);
    words[1] = __byte_perm(even_01, even_23, 0x7632);
    words[2] = __byte_perm(odd_01, odd_23, 0x5410);
    words[3] = __byte_perm(odd_01, odd_23, 0x7632);
  }
}

// The 16-byte chunks of a tile that a thread loads, and their swizzled place in shared memory: the
// chunks of eight rows that are read together later are in different banks.
template <typename Tile>
struct TileChunk {
  int row, chunk;

  __device__ explicit TileChunk(int round) {
    const int index = round * kPackingThreads + static_cast<int>(threadIdx.x);
    row = index / Tile::kRowChunks;
    chunk = index % Tile::kRowChunks;
  }
  __device__ int place() const {
    const int square = row / Tile::kSide * Tile::kSquaresAcross + chunk / kChunks;
    return (square * Tile::kSide + row % Tile::kSide) * kChunks +
           (chunk % kChunks ^ row / Tile::kOfChunk % 8);
  }
};

template <int kElement, typename Tile, bool kAligned>
__device__ void load_tile(const Packing& packing, std::int64_t first_row, std::int64_t first_column,
                          uint4* tile) {
  const std::int64_t row_bytes = packing.columns * kElement;
  const std::byte* first = packing.from + first_row * row_bytes + first_column * kElement;
  const auto inside = [&](const TileChunk<Tile>& at) {
    return first_row + at.row < packing.rows &&
           first_column + at.chunk * Tile::kOfChunk < packing.columns;
  };
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  if constexpr (kAligned) {
#pragma unroll
    for (int round = 0; round < Tile::kAtOnce; ++round) {
      const TileChunk<Tile> at(round);
      if (inside(at))
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(
                         static_cast<unsigned>(__cvta_generic_to_shared(tile + at.place()))),
                     "l"(first + at.row * row_bytes + at.chunk * kChunkBytes)
                     : "memory");
    }
    asm volatile("cp.async.wait_all;" ::: "memory");
    return;
  }
#endif
  const std::byte* end = packing.from + packing.rows * row_bytes;
  uint4 read[Tile::kAtOnce] = {};
#pragma unroll
  for (int round = 0; round < Tile::kAtOnce; ++round) {
    const TileChunk<Tile> at(round);
    const std::byte* from = first + at.row * row_bytes + at.chunk * kChunkBytes;
    if (!inside(at)) continue;
    if constexpr (kAligned)
      read[round] = *reinterpret_cast<const uint4*>(from);
    else
      read[round] = load_anywhere<kElement>(from, packing.from, end);
  }
#pragma unroll
  for (int round = 0; round < Tile::kAtOnce; ++round)
    tile[TileChunk<Tile>(round).place()] = read[round];
}

template <int kElement, typename Tile>
__device__ void transpose_tile(const Packing& packing, unsigned block, uint4* tile) {
  const std::int64_t first_row = std::int64_t{Tile::kRows} * (block % packing.blocks_of_row),
                     first_column = std::int64_t{Tile::kColumns} * (block / packing.blocks_of_row);
  if (packing.aligned)
    load_tile<kElement, Tile, true>(packing, first_row, first_column, tile);
  else
    load_tile<kElement, Tile, false>(packing, first_row, first_column, tile);
  __syncthreads();
  const auto* words = reinterpret_cast<const std::uint32_t*>(tile);
  static_assert(kPackingThreads == 8 * kCacheLine / 4, "one square at a time");
#pragma unroll
  for (int down = 0; down < Tile::kSquaresDown; ++down)
#pragma unroll
    for (int across = 0; across < Tile::kSquaresAcross; ++across) {
      const int eighth = static_cast<int>(threadIdx.x) % 8,
                word = static_cast<int>(threadIdx.x) / 8;
      const std::uint32_t* from = words +
                                  (down * Tile::kSquaresAcross + across) * Tile::kSquareWords +
                                  eighth * Tile::kOfChunk * (kCacheLine / 4) + (word ^ 4 * eighth);
      std::uint32_t transposed[Tile::kOfWord][4];
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        std::uint32_t of_rows[Tile::kOfWord];
#pragma unroll
        for (int j = 0; j < Tile::kOfWord; ++j)
          of_rows[j] = from[(i * Tile::kOfWord + j) * (kCacheLine / 4)];
        transpose_words<kElement>(of_rows);
#pragma unroll
        for (int j = 0; j < Tile::kOfWord; ++j) transposed[j][i] = of_rows[j];
      }
      const std::int64_t row = first_row + down * Tile::kSide + eighth * Tile::kOfChunk;
      const std::int64_t column = first_column + across * Tile::kSide + word * Tile::kOfWord;
#pragma unroll
      for (int j = 0; j < Tile::kOfWord; ++j)
        if (row < packing.rows && column + j < packing.columns)
          *reinterpret_cast<uint4*>(packing.to + (column + j) * packing.pitch + row * kElement) =
              make_uint4(transposed[j][0], transposed[j][1], transposed[j][2], transposed[j][3]);
    }
}

// 16 bytes of a row that is copied in another order, from that place on.
template <int kElement>
__device__ uint4 load_in_order(const Packing& packing, std::int64_t row, int place) {
  using Bits = std::conditional_t<kElement == 4, std::uint32_t, std::uint16_t>;
  const auto* from = reinterpret_cast<const Bits*>(packing.from) + row * packing.columns;
  const int phases = packing.order.phases, each = packing.order.depth / phases;
  const int first = place % each * phases + place / each;
  std::uint32_t words[4] = {};
#pragma unroll
  for (int i = 0; i < kChunkBytes / kElement; ++i)
    if (const int k = first + i * phases; k < packing.columns)
      words[i * kElement / 4] |= std::uint32_t{__ldg(from + k)} << i * kElement % 4 * 8;
  return {words[0], words[1], words[2], words[3]};
}

template <int kElement>
__device__ void copy_rows(const Packing& packing, unsigned block) {
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  const std::int64_t row_bytes = packing.columns * kElement;
  const std::int64_t first_row = std::int64_t{kCopyRows} * (block / packing.blocks_of_row) + warp;
  const std::int64_t offset =
      std::int64_t{kCopyBytes} * (block % packing.blocks_of_row) + lane * kChunkBytes;
  const bool ordered = kElement != 1 && packing.order.phases > 1;
  if (offset >= (ordered ? packing.pitch : row_bytes)) return;
  const std::byte* end = packing.from + packing.rows * row_bytes;
  constexpr int kWarps = kPackingThreads / 32;
  uint4 read[kCopyRows / kWarps] = {};
#pragma unroll
  for (int i = 0; i < kCopyRows / kWarps; ++i)
    if (const std::int64_t row = first_row + i * kWarps; row < packing.rows)
      read[i] = ordered ? load_in_order<kElement>(packing, row, static_cast<int>(offset) / kElement)
                        : load_anywhere<kElement>(packing.from + row * row_bytes + offset,
                                                  packing.from, end);
#pragma unroll
  for (int i = 0; i < kCopyRows / kWarps; ++i)
    if (const std::int64_t row = first_row + i * kWarps; row < packing.rows)
      *reinterpret_cast<uint4*>(packing.to + row * packing.pitch + offset) = read[i];
}

// Packs one matrix or two, once the launch before no longer reads its copies. Which matrix, and
// how, is uniform across a block.
template <int kElement, typename Tile = TransposeTileFor<kElement>>
__global__ void __launch_bounds__(kPackingThreads) pack_matrices(Packing one, Packing other) {
  __shared__ uint4 tile[Tile::kRows * Tile::kRowChunks];
  let_next_launch_begin();
  wait_for_previous_launch();
  const bool first = blockIdx.x < one.blocks;
  const Packing packing = first ? one : other;
  const unsigned block = first ? blockIdx.x : blockIdx.x - one.blocks;
  if (packing.transposed)
    transpose_tile<kElement, Tile>(packing, block, tile);
  else
    copy_rows<kElement>(packing, block);
}

// An operand as stored, without padding. x is m for A and n for B; k_major: k is contiguous.
template <typename T>
struct Operand {
  const T* matrix;
  std::int64_t x_size, k_size;
  bool k_major;

  std::int64_t rows() const { return k_major ? x_size : k_size; }
  std::int64_t columns() const { return k_major ? k_size : x_size; }
  bool rows_of_16_bytes() const {
    return columns() * sizeof(T) % kChunkBytes == 0 &&
           reinterpret_cast<std::uintptr_t>(matrix) % kChunkBytes == 0;
  }
};
template <typename T>
Operand<T> operand_a(const Problem& p, const void* a) {
  return {static_cast<const T*>(a), p.m, p.k, !transposes_a(p.layout)};
}
template <typename T>
Operand<T> operand_b(const Problem& p, const void* b) {
  return {static_cast<const T*>(b), p.n, p.k, transposes_b(p.layout)};
}

// The operand that the GEMM kernel reads, once `packing` has run.
template <typename T>
struct PackedOperand {
  const T* matrix;
  std::int64_t pitch;  // elements from one row to the next
  bool k_major;
  Packing packing;  // no blocks if the operand is read in place
  simt::DeviceArray<T> memory;
};

// Whether an operand can be read in place.
template <typename T>
bool is_packed(const Operand<T>& operand, bool k_major) {
  return operand.k_major == k_major && operand.rows_of_16_bytes();
}

// The least number of rows that are a multiple of 16 bytes long together: 1, 2, 4, 8 or 16.
template <typename T>
int row_phases(const Operand<T>& operand) {
  return kChunkBytes /
         static_cast<int>(std::gcd<std::int64_t>(operand.columns() * sizeof(T), kChunkBytes));
}

// Elements from one packed row of so many elements to the next: a multiple of 16 bytes, and of a
// cache line if it takes at most an eighth more.
template <typename T>
constexpr std::int64_t packed_pitch(std::int64_t columns) {
  constexpr std::int64_t kOfChunk = kChunkBytes / sizeof(T), kOfLine = kCacheLine / sizeof(T);
  const std::int64_t lines = ceil_div(columns, kOfLine) * kOfLine;
  return lines - columns <= columns / 8 ? lines : ceil_div(columns, kOfChunk) * kOfChunk;
}

// The cost of a piece of 128 bytes of a row, in cache lines, on average: the lines that it touches,
// 1 to 1.9, and 0.3 more if rows begin within sectors of 32 bytes, because TMA takes longer for
// sectors that it reads in part. Pieces begin at multiples of 128 bytes in the row. Rows are
// `pitch` bytes apart, and the first one begins at a line.
inline double lines_touched(std::int64_t pitch) {
  constexpr double kPartialSectors = 0.3;
  return 2 - static_cast<double>(std::gcd(pitch, std::int64_t{kCacheLine})) / kCacheLine +
         (pitch % kSectorBytes == 0 ? 0 : kPartialSectors);
}
// The same of an operand that is read K-major or MN-major, packed where it has to be.
template <typename T>
double lines_touched(const Operand<T>& operand, bool k_major) {
  const std::int64_t columns = k_major ? operand.k_size : operand.x_size;
  return lines_touched((is_packed(operand, k_major) ? columns : packed_pitch<T>(columns)) *
                       static_cast<std::int64_t>(sizeof(T)));
}

// K-major or MN-major, with rows that begin at multiples of 16 bytes. An order is for operands of
// two or four bytes that are K-major before and after; others throw std::invalid_argument. Throws
// std::length_error for too many blocks, and std::runtime_error if the allocation fails.
template <typename T>
PackedOperand<T> packed(const Operand<T>& operand, bool k_major, PhaseOrder order = {}) {
  const bool ordered = order.phases > 1;
  if (!ordered && is_packed(operand, k_major))
    return {operand.matrix, operand.columns(), k_major, {}, {}};
  if (ordered && (sizeof(T) == 1 || !operand.k_major || !k_major))
    throw std::invalid_argument("only K-major operands of two or four bytes are packed in order");
  constexpr int kElement = sizeof(T);
  using Tile = TransposeTileFor<kElement>;
  const bool transposed = operand.k_major != k_major;
  const std::int64_t rows = transposed ? operand.columns() : operand.rows(),
                     columns = transposed ? operand.rows() : operand.columns();
  const std::int64_t pitch = ordered ? order.depth : packed_pitch<T>(columns);
  const std::int64_t of_row =
      transposed ? ceil_div(columns, Tile::kRows) : ceil_div(pitch * kElement, kCopyBytes);
  const std::int64_t blocks = of_row * ceil_div(rows, transposed ? Tile::kColumns : kCopyRows);
  if (blocks > 0x3fffffff) throw std::length_error("an operand is too large to pack in one grid");
  auto memory = simt::device_array<T>(rows * pitch);
  return {.matrix = memory.get(),
          .pitch = pitch,
          .k_major = k_major,
          .packing = {.from = reinterpret_cast<const std::byte*>(operand.matrix),
                      .to = reinterpret_cast<std::byte*>(memory.get()),
                      .rows = operand.rows(),
                      .columns = operand.columns(),
                      .pitch = pitch * kElement,
                      .transposed = transposed,
                      .aligned = operand.rows_of_16_bytes(),
                      .order = order,
                      .blocks_of_row = static_cast<unsigned>(of_row),
                      .blocks = static_cast<unsigned>(blocks)},
          .memory = memory};
}

// The launch that packs one or two operands; null if none needs it. It keeps their memory alive.
template <typename T>
Launch pack(const PackedOperand<T>& one, const PackedOperand<T>& other = {}) {
  const unsigned blocks = one.packing.blocks + other.packing.blocks;
  if (blocks == 0) return nullptr;
  const auto kernel = pack_matrices<sizeof(T)>;
  const LaunchShape shape{static_cast<int>(blocks), kPackingThreads, 0, 1, may_overlap(kernel)};
  return [=](Stream stream) { enqueue(kernel, shape, stream, one.packing, other.packing); };
}

// Time of packing so many bytes, as measured on an H100 and an H200 (NOTES.md).
inline double packing_seconds(double bytes, const Device& device) {
  constexpr double kLaunchSeconds = 2.5e-6;  // it overlaps its neighbours
  constexpr double kOfDram = 0.92;
  return bytes > 0 ? kLaunchSeconds + bytes / (kOfDram * device.dram_bytes_per_second) : 0;
}

// Bytes that packing moves: the matrix is read and written once more.
template <typename T>
double packing_bytes(const Operand<T>& operand, bool k_major, bool ordered = false) {
  return !ordered && is_packed(operand, k_major)
             ? 0
             : 2.0 * sizeof(T) * operand.x_size * operand.k_size;
}

}  // namespace gemm
