// INT8 on CUDA cores: `dp4a` computes a dot product of four bytes and adds it to a 32-bit
// accumulator, four multiply-adds per instruction at half the issue rate. Its operands are words of
// four consecutive elements along k. A K-major operand has them; otherwise 4 x 4 bytes are
// transposed in registers on the way to shared memory. From there on it is a tiled GEMM of words
// with a quarter of k.
#include <cuda_runtime.h>

#include <cstdint>

#include "kernels/layout.hpp"
#include "kernels/parts/tile_grid.cuh"
#include "kernels/parts/tile_launch.cuh"
#include "kernels/parts/tile_traffic.hpp"
#include "kernels/parts/warp_access.hpp"
#include "kernels/registry.hpp"

namespace gemm::simt::dp4a {
namespace {

constexpr int kTile = 128, kWords = 8, kBK = 4 * kWords;  // of C, both ways; of a K tile, along k
constexpr int kThreads = 256, kOfThread = 8;  // results, both ways: two fours, half a warp's apart
// A warp tile is 32 x 64. The pitch puts four words of a line, or four lines, into different banks
// for both ways of storing.
constexpr int kWM = 32, kWN = 64, kPitch = kTile + 4;
using Lanes = PairedLanes<8>;
using Grid = TileGrid<kTile, kTile>;
using Line = const std::int8_t*;

struct KTile {
  std::uint32_t a[kWords][kPitch], b[kWords][kPitch];
};

// Four consecutive bytes of a row, of which `left` exist; the others are zero.
template <bool kAligned>
__device__ std::uint32_t word(Line from, int left) {
  if (left <= 0) return 0;
  if constexpr (kAligned) return *reinterpret_cast<const std::uint32_t*>(from);
  std::uint32_t bytes = 0;
#pragma unroll
  for (int i = 0; i < 4; ++i)
    if (i < left) bytes |= std::uint32_t{static_cast<std::uint8_t>(from[i])} << 8 * i;
  return bytes;
}

// Transposes the 4 x 4 bytes of four words.
__device__ uint4 transposed_bytes(const uint4& x) {
  const std::uint32_t low0 = __byte_perm(x.x, x.y, 0x5140), low1 = __byte_perm(x.z, x.w, 0x5140);
  const std::uint32_t high0 = __byte_perm(x.x, x.y, 0x7362), high1 = __byte_perm(x.z, x.w, 0x7362);
  return {__byte_perm(low0, low1, 0x5410), __byte_perm(low0, low1, 0x7632),
          __byte_perm(high0, high1, 0x5410), __byte_perm(high0, high1, 0x7632)};
}

// Loads an operand into shared memory: kTile lines (rows of A or columns of B) by kBK along k. A
// thread loads four words of a K tile: of one line, or one word of each of four consecutive k.
template <bool kKMajor, bool kAligned>
class OperandLoader {
 public:
  // `first`: the first line of the block's tile.
  __device__ OperandLoader(Line matrix, std::int64_t lines, std::int64_t length, std::int64_t first)
      : from_(kKMajor ? matrix + (first + line()) * length + first_word() * 4
                      : matrix + first_word() * 4 * lines + first + line()),
        pitch_(kKMajor ? length : lines),
        lines_(static_cast<int>(min(lines - first, std::int64_t{kTile})) - line()) {}

  // The next K tile; `left` is what remains of k.
  __device__ void load(std::int64_t left) {
    const int depth = static_cast<int>(min(left, std::int64_t{kBK})) - first_word() * 4;
    if constexpr (!kKMajor) {
      words_.x = word<kAligned>(from_, depth > 0 ? lines_ : 0);
      words_.y = word<kAligned>(from_ + pitch_, depth > 1 ? lines_ : 0);
      words_.z = word<kAligned>(from_ + 2 * pitch_, depth > 2 ? lines_ : 0);
      words_.w = word<kAligned>(from_ + 3 * pitch_, depth > 3 ? lines_ : 0);
      from_ += kBK * pitch_;
      return;
    }
    if (kAligned) {
      words_ = lines_ > 0 && depth > 0 ? *reinterpret_cast<const uint4*>(from_) : uint4{};
    } else {
      const int here = lines_ > 0 ? depth : 0;
      words_.x = word<false>(from_, here);
      words_.y = word<false>(from_ + 4, here - 4);
      words_.z = word<false>(from_ + 8, here - 8);
      words_.w = word<false>(from_ + 12, here - 12);
    }
    from_ += kBK;
  }
  __device__ void store(std::uint32_t (&to)[kWords][kPitch]) const {
    if constexpr (kKMajor) {
      to[first_word()][line()] = words_.x;
      to[first_word() + 1][line()] = words_.y;
      to[first_word() + 2][line()] = words_.z;
      to[first_word() + 3][line()] = words_.w;
    } else {
      *reinterpret_cast<uint4*>(&to[first_word()][line()]) = transposed_bytes(words_);
    }
  }

 private:
  static constexpr int kLinesOfWarp = kTile / 4;
  static __device__ int line() {
    const int t = static_cast<int>(threadIdx.x);
    return kKMajor ? t / (kWords / 4) : t % kLinesOfWarp * 4;
  }
  static __device__ int first_word() {
    const int t = static_cast<int>(threadIdx.x);
    return kKMajor ? t % (kWords / 4) * 4 : t / kLinesOfWarp;
  }

  Line from_;
  std::int64_t pitch_;
  int lines_;
  uint4 words_;
};

__device__ void load_eight(int (&to)[kOfThread], const std::uint32_t* from, int apart) {
  *reinterpret_cast<int4*>(to) = *reinterpret_cast<const int4*>(from);
  *reinterpret_cast<int4*>(to + 4) = *reinterpret_cast<const int4*>(from + apart);
}

template <bool kAKMajor, bool kBKMajor, bool kAligned>
__global__ void __launch_bounds__(kThreads, kAligned ? 2 : 1)
    dp4a(Problem p, Grid grid, const std::int8_t* __restrict__ a, const std::int8_t* __restrict__ b,
         std::int32_t* __restrict__ c) {
  __shared__ __align__(16) KTile k_tiles[2];
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  const int row = warp / (kTile / kWN) * kWM + Lanes::down(lane) * 4;
  const int column = warp % (kTile / kWN) * kWN + Lanes::across(lane) * 4;
  OperandLoader<kAKMajor, kAligned> a_loader(a, p.m, p.k, grid.first_row());
  OperandLoader<kBKMajor, kAligned> b_loader(b, p.n, p.k, grid.first_column());
  int acc[kOfThread][kOfThread] = {};
  a_loader.load(p.k);
  b_loader.load(p.k);
  a_loader.store(k_tiles[0].a);
  b_loader.store(k_tiles[0].b);
  int now = 0;
#pragma unroll 1
  for (std::int64_t left = p.k - kBK; left > -kBK; left -= kBK) {
    __syncthreads();  // the K tile is complete, and the other buffer is free
    if (left > 0) {
      a_loader.load(left);
      b_loader.load(left);
    }
#pragma unroll 2  // more would keep addresses in registers that accumulators need
    for (int i = 0; i < kWords; ++i) {
      int a_fragment[kOfThread], b_fragment[kOfThread];
      load_eight(a_fragment, &k_tiles[now].a[i][row], kWM / 2);
      load_eight(b_fragment, &k_tiles[now].b[i][column], kWN / 2);
#pragma unroll
      for (int x = 0; x < kOfThread; ++x)
#pragma unroll
        for (int y = 0; y < kOfThread; ++y)
          acc[x][y] = __dp4a(a_fragment[x], b_fragment[y], acc[x][y]);
    }
    now ^= 1;
    a_loader.store(k_tiles[now].a);
    b_loader.store(k_tiles[now].b);
  }
#pragma unroll
  for (int x = 0; x < kOfThread; ++x) {
    const std::int64_t to_row = grid.first_row() + row + x % 4 + x / 4 * (kWM / 2);
    if (to_row >= p.m) continue;
#pragma unroll
    for (int y = 0; y < kOfThread; y += 4) {
      const std::int64_t to_column = grid.first_column() + column + y / 4 * (kWN / 2);
      std::int32_t* const to = c + to_row * p.n + to_column;
      if (kAligned && to_column < p.n) {
        *reinterpret_cast<int4*>(to) = {acc[x][y], acc[x][y + 1], acc[x][y + 2], acc[x][y + 3]};
        continue;
      }
#pragma unroll
      for (int i = 0; i < 4; ++i)
        if (to_column + i < p.n) to[i] = acc[x][y + i];
    }
  }
}

// Whether all rows of A, B and C begin at multiples of 16 bytes.
bool is_aligned(const Problem& p) { return lda(p) % 16 == 0 && ldb(p) % 16 == 0 && p.n % 4 == 0; }

const Registration registration({
    .name = "Dp4a",
    .idea = "INT8 dot products of four elements per instruction (dp4a).",
    .source = "Harris, Mixed-Precision Programming with CUDA 8, 2016",
    .rung = 38,
    .precisions = {Precision::s8},
    .layouts = {kLayouts.begin(), kLayouts.end()},
    .traffic =
        [](const Problem& p, const Device&) {
          constexpr auto kRead = [](auto place) { return wavefronts(4, place, 4); };
          // Per K tile: its stores, and two vector loads of A and of B per word and warp.
          constexpr double kOfKTile = 2.0 * kTile * kBK / 128 +
                                      2.0 * kThreads / 32 * kWords *
                                          (kRead([](int lane) { return Lanes::down(lane) * 4; }) +
                                           kRead([](int lane) { return Lanes::across(lane) * 4; }));
          return tile_traffic(p, kTile, kTile, kBK, kOfKTile);
        },
    .prepare = [](const Problem& p, const Device&, const Operands& o) -> Launch {
      const auto kernel = with_transposes(p.layout, [&]<bool kA, bool kB>() {
        return is_aligned(p) ? dp4a<!kA, kB, true> : dp4a<!kA, kB, false>;
      });
      return [=, grid = Grid(p), a = static_cast<Line>(o.a), b = static_cast<Line>(o.b),
              c = static_cast<std::int32_t*>(o.c)](Stream stream) {
        kernel<<<grid.blocks(), kThreads, 0, stream>>>(p, grid, a, b, c);
      };
    },
});

}  // namespace
}  // namespace gemm::simt::dp4a
