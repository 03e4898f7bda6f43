// The negative controls, from course pages, blogs and posts, and ours: wrong in what they read, how
// far they sum, which elements they reach, what they leave in C, and when they wait.
#include <cuda_bf16.h>
#include <cuda_fp8.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "bench/base/cuda.hpp"
#include "bench/controls/negative_controls.hpp"
#include "bench/verification/verdict.hpp"
#include "kernels/tokens.hpp"

namespace gemm::bench {
namespace {

constexpr int kBlock = 16;
const dim3 kThreads(kBlock, kBlock);

template <typename T>
using WrongKernel = void (*)(Problem, const T* a, const T* b, T* c);

template <typename T>
Launch launch(WrongKernel<T> kernel, dim3 grid, dim3 block, const Problem& p, const Operands& o) {
  return [=](Stream stream) {
    kernel<<<grid, block, 0, stream>>>(p, static_cast<const T*>(o.a), static_cast<const T*>(o.b),
                                       static_cast<T*>(o.c));
  };
}

constexpr unsigned pieces(std::int64_t whole, int piece = kBlock) {
  return static_cast<unsigned>((whole + piece - 1) / piece);
}
dim3 grid_of(const Problem& p, unsigned layers = 1) {
  return dim3(pieces(p.n), pieces(p.m), layers);
}

// The element of C of a thread.
struct Element {
  std::int64_t row, column;
  bool inside;
};
__device__ Element element(const Problem& p) {
  const std::int64_t row = blockIdx.y * kBlock + threadIdx.y;
  const std::int64_t column = blockIdx.x * kBlock + threadIdx.x;
  return {row, column, row < p.m && column < p.n};
}

// The part of its sum from one l to another.
__device__ float product(const Problem& p, const float* a, const float* b, std::int64_t row,
                         std::int64_t column, std::int64_t from, std::int64_t to) {
  float sum = 0;
  for (std::int64_t l = from; l < to; ++l) sum += a[row * p.k + l] * b[l * p.n + column];
  return sum;
}

// --- A thread for each element ------------------------------------------------------------------

enum class Defect {
  none,
  inclusive_loop,
  adds_to_c,
  grid_floor,
  grid_from_a,
  only_square,
  nan,
  past_the_end,
  tile_skipped,
  unwritten,
};

template <Defect kDefect>
__global__ void naive(Problem p, const float* a, const float* b, float* c) {
  const auto [row, column, inside] = element(p);
  if (!inside || kDefect == Defect::unwritten) return;
  if (kDefect == Defect::tile_skipped && blockIdx.x == 1 && blockIdx.y == 2) return;
  float& element = c[row * (kDefect == Defect::only_square ? p.m : p.n) + column];
  float sum = product(p, a, b, row, column, 0, kDefect == Defect::inclusive_loop ? p.k + 1 : p.k);
  if (kDefect == Defect::adds_to_c) sum += element;
  const bool last = row == p.m - 1 && column == p.n - 1;
  if (kDefect == Defect::nan && last) sum = NAN;
  if (kDefect == Defect::past_the_end && last) c[p.m * p.n] = sum;
  element = sum;
}

template <Defect kDefect>
Launch prepare(const Problem& p, const Device&, const Operands& o) {
  dim3 grid = grid_of(p);
  if (kDefect == Defect::grid_floor)
    grid = dim3(static_cast<unsigned>(p.n / kBlock), static_cast<unsigned>(p.m / kBlock));
  if (kDefect == Defect::grid_from_a) grid = dim3(grid.y, grid.x);
  return launch<float>(naive<kDefect>, grid, kThreads, p, o);
}

// --- A batch, of which blockIdx.z counts the products --------------------------------------------

enum class BatchDefect { none, last_skipped, b_of_next, b_of_first };

template <BatchDefect kDefect>
__global__ void batched(Problem p, const float* a, const float* b, float* c) {
  const auto [row, column, inside] = element(p);
  if (!inside) return;
  const std::int64_t which = blockIdx.z;
  const std::int64_t of_b = kDefect == BatchDefect::b_of_next    ? (which + 1) % p.batch
                            : kDefect == BatchDefect::b_of_first ? 0
                                                                 : which;
  c[(which * p.m + row) * p.n + column] =
      product(p, a + which * p.m * p.k, b + of_b * p.k * p.n, row, column, 0, p.k);
}

template <BatchDefect kDefect>
Launch prepare_batched(const Problem& p, const Device&, const Operands& o) {
  const int layers = p.batch - (kDefect == BatchDefect::last_skipped ? 1 : 0);
  return launch<float>(batched<kDefect>, grid_of(p, static_cast<unsigned>(layers)), kThreads, p, o);
}

// --- FP8 with a factor for each block, layout nt; rows are those of all groups
// ---------------------

enum class ScaleDefect {
  none,
  b_of_next,
  a_of_next,
  a_of_before,
  a_of_other_half,
  ignored,
  b_of_next_group,
  group_skipped
};

template <ScaleDefect kDefect>
__global__ void block_scaled(const __grid_constant__ Products p, const __nv_fp8_e4m3* a,
                             const __nv_fp8_e4m3* b, __nv_bfloat16* c, const float* a_scales,
                             const float* b_scales) {
  const std::int64_t row = blockIdx.y * kBlock + threadIdx.y, rows = p.batch * p.m;
  const std::int64_t column = blockIdx.x * kBlock + threadIdx.x;
  if (row >= rows || column >= p.n) return;
  const std::int64_t which = p.product_of(row);
  if (kDefect == ScaleDefect::group_skipped && which == 2) return;
  b += p.before_b(which);
  b_scales += scales_of_each_b(p) *
              (kDefect == ScaleDefect::b_of_next_group ? (which + 1) % p.batch : which);
  const std::int64_t of_columns = (p.n + kScaleBlock - 1) / kScaleBlock;
  std::int64_t of_b = column / kScaleBlock, of_a = row;
  if (kDefect == ScaleDefect::b_of_next) of_b = (of_b + 1) % of_columns;
  if (kDefect == ScaleDefect::a_of_next) of_a = (row + 1) % rows;
  if (kDefect == ScaleDefect::a_of_other_half && (row ^ 8) < rows) of_a = row ^ 8;
  float sum = 0;
  for (std::int64_t first = 0; first < p.k; first += kScaleBlock) {
    float part = 0;
    for (std::int64_t l = first; l < min(first + kScaleBlock, p.k); ++l)
      part += static_cast<float>(a[row * p.k + l]) * static_cast<float>(b[column * p.k + l]);
    const std::int64_t block = first / kScaleBlock,
                       late = kDefect == ScaleDefect::a_of_before && block > 0 ? 1 : 0;
    const float scale =
        a_scales[(block - late) * rows + of_a] * b_scales[of_b * scales_of_b_stride(p.k) + block];
    sum += kDefect == ScaleDefect::ignored ? part : part * scale;
  }
  c[row * p.n + column] = __float2bfloat16(sum);
}

template <ScaleDefect kDefect>
Launch prepare_scaled(const Problem& problem, const Device&, const Operands& o) {
  return [=, p = Products(problem)](Stream stream) {
    block_scaled<kDefect><<<dim3(pieces(p.n), pieces(p.batch * p.m)), kThreads, 0, stream>>>(
        p, static_cast<const __nv_fp8_e4m3*>(o.a), static_cast<const __nv_fp8_e4m3*>(o.b),
        static_cast<__nv_bfloat16*>(o.c), o.a_scales, o.b_scales);
  };
}

// --- Groups, the last first: what is written over the next one stays ----------------------------

enum class GroupDefect { none, skipped, b_before, row_more, whole_tile, empty_computed };

__global__ void grouped(const __grid_constant__ Products p, std::int64_t which, std::int64_t rows,
                        std::int64_t of_b, const float* a, const float* b, float* c) {
  const auto [row, column, inside] = element(p);
  if (row < rows && column < p.n)
    c[p.before_c(which) + row * p.n + column] =
        product(p, a + p.before_a(which), b + p.before_b(of_b), row, column, 0, p.k);
}

template <GroupDefect kDefect>
Launch prepare_grouped(const Problem& problem, const Device&, const Operands& o) {
  return [=, p = Products(problem)](Stream stream) {
    for (std::int64_t which = p.batch - 1; which >= 0; --which) {
      std::int64_t rows = p.rows(which);
      if (kDefect == GroupDefect::skipped && which == 2) continue;
      if (kDefect == GroupDefect::row_more && which + 1 < p.batch) ++rows;
      if (kDefect == GroupDefect::whole_tile) rows = ceil_div(rows, kBlock) * kBlock;
      if (kDefect == GroupDefect::empty_computed && rows == 0) rows = 1;
      if (rows == 0) continue;
      const std::int64_t of_b = kDefect == GroupDefect::b_before && which > 0 ? which - 1 : which;
      grouped<<<dim3(pieces(p.n), pieces(rows)), kThreads, 0, stream>>>(
          p, which, rows, of_b, static_cast<const float*>(o.a), static_cast<const float*>(o.b),
          static_cast<float*>(o.c));
    }
  };
}

// --- A transposed beforehand --------------------------------------------------------------------

enum class Transposed { right, reads_a, stride_k };

__global__ void transpose(Problem p, const float* a, float* a_t) {
  const std::int64_t row = blockIdx.y * kBlock + threadIdx.y;
  const std::int64_t l = blockIdx.x * kBlock + threadIdx.x;
  if (row < p.m && l < p.k) a_t[l * p.m + row] = a[row * p.k + l];
}

// The rows of A^T are m long, not k.
template <Transposed kHow>
__global__ void on_transposed(Problem p, const float* a_t, const float* b, float* c) {
  const auto [row, column, inside] = element(p);
  if (!inside) return;
  const std::int64_t stride = kHow == Transposed::right ? p.m : p.k;
  float sum = 0;
  for (std::int64_t l = 0; l < p.k; ++l) sum += a_t[l * stride + row] * b[l * p.n + column];
  c[row * p.n + column] = sum;
}

template <Transposed kHow>
Launch prepare_transposed(const Problem& p, const Device&, const Operands& o) {
  void* memory = nullptr;
  check(cudaMalloc(&memory, sizeof(float) * static_cast<std::size_t>(p.m * p.k)));
  const std::shared_ptr<float> a_t(static_cast<float*>(memory), [](float* f) { cudaFree(f); });
  Operands operands = o;
  if (kHow != Transposed::reads_a) operands.a = a_t.get();
  return [=, product = launch<float>(on_transposed<kHow>, grid_of(p), kThreads, p, operands)](
             Stream stream) {
    transpose<<<dim3(pieces(p.k), pieces(p.m)), kThreads, 0, stream>>>(
        p, static_cast<const float*>(o.a), a_t.get());
    product(stream);
  };
}

// --- What the sum is kept in --------------------------------------------------------------------

template <typename Sum>
__global__ void sum_kept_in(Problem p, const __nv_bfloat16* a, const __nv_bfloat16* b,
                            __nv_bfloat16* c) {
  const auto [row, column, inside] = element(p);
  if (!inside) return;
  auto sum = static_cast<Sum>(0.0F);
  for (std::int64_t l = 0; l < p.k; ++l)
    sum = static_cast<Sum>(static_cast<float>(sum) + static_cast<float>(a[row * p.k + l]) *
                                                         static_cast<float>(b[l * p.n + column]));
  c[row * p.n + column] = static_cast<__nv_bfloat16>(sum);
}

template <typename Sum>
Launch prepare_sum(const Problem& p, const Device&, const Operands& o) {
  return launch<__nv_bfloat16>(sum_kept_in<Sum>, grid_of(p), kThreads, p, o);
}

// --- Square tiles in shared memory --------------------------------------------------------------

enum class TileDefect {
  none,
  local_bounds,
  b_column_from_block_row,
  b_like_a,
  k_by_grid,
  k_by_floor,
  float_tiles,
  no_first_barrier,
  no_second_barrier,
  barrier_in_branch,
};

template <typename T, TileDefect kDefect>
__global__ void tiled(Problem p, const T* a, const T* b, T* c) {
  using Tile = std::conditional_t<kDefect == TileDefect::float_tiles, float, T>;
  __shared__ Tile a_tile[kBlock][kBlock];
  __shared__ Tile b_tile[kBlock][kBlock];
  const int x = threadIdx.x;
  const int y = threadIdx.y;
  const auto [row, column, inside] = element(p);

  std::int64_t steps = (p.k + kBlock - 1) / kBlock;
  if (kDefect == TileDefect::k_by_grid) steps = gridDim.x;
  if (kDefect == TileDefect::k_by_floor) steps = p.k / kBlock;

  T sum = 0;
  for (std::int64_t step = 0; step < steps; ++step) {
    const std::int64_t first = step * kBlock;
    std::int64_t b_row = first + y, b_column = column;
    if (kDefect == TileDefect::b_column_from_block_row) b_column = blockIdx.y * kBlock + x;
    if (kDefect == TileDefect::b_like_a) b_row = row, b_column = first + x;
    bool a_there = row < p.m && first + x < p.k;
    bool b_there = b_row < p.k && b_column < p.n;
    if (kDefect == TileDefect::local_bounds) {
      a_there = y < p.m && first + x < p.k;
      b_there = x < p.n && b_row < p.k;
    }
    // Threads outside C that do not come here go on to the second barrier and meet the others
    // there: no thread waits for ever.
    if (kDefect != TileDefect::barrier_in_branch || inside) {
      a_tile[y][x] = a_there ? static_cast<Tile>(a[row * p.k + first + x]) : Tile{0};
      b_tile[y][x] = b_there ? static_cast<Tile>(b[b_row * p.n + b_column]) : Tile{0};
      if (kDefect != TileDefect::no_first_barrier) __syncthreads();
    }
    for (int l = 0; l < kBlock; ++l)
      sum += static_cast<T>(a_tile[y][l]) * static_cast<T>(b_tile[l][x]);
    if (kDefect != TileDefect::no_second_barrier) __syncthreads();
  }
  if (inside) c[row * p.n + column] = sum;
}

template <TileDefect kDefect, typename T = float>
Launch prepare_tiled(const Problem& p, const Device&, const Operands& o) {
  return launch<T>(tiled<T, kDefect>, grid_of(p), kThreads, p, o);
}

// --- A column of results for each thread --------------------------------------------------------

constexpr int kRows = 128, kColumns = 128, kDepth = 8, kResults = kRows / kDepth;

// A block of 128 x 8 threads. kStride: how many rows of A are between the columns of results of
// two neighbouring threads.
template <int kStride>
__global__ void __launch_bounds__(1024)
    block_tile(Problem p, const float* a, const float* b, float* c) {
  __shared__ float a_tile[kRows][kDepth];
  __shared__ float b_tile[kDepth][kColumns];
  const int x = threadIdx.x;
  const int y = threadIdx.y;
  const std::int64_t first_row = blockIdx.y * kRows;
  const std::int64_t column = blockIdx.x * kColumns + x;
  float sums[kResults] = {};
  for (std::int64_t first = 0; first < p.k; first += kDepth) {
    const int a_row = (y * kColumns + x) / kDepth, a_l = x % kDepth;
    const std::int64_t row = first_row + a_row;
    a_tile[a_row][a_l] = row < p.m && first + a_l < p.k ? a[row * p.k + first + a_l] : 0.0F;
    b_tile[y][x] = first + y < p.k && column < p.n ? b[(first + y) * p.n + column] : 0.0F;
    __syncthreads();
    for (int l = 0; l < kDepth; ++l)
      for (int i = 0; i < kResults; ++i) sums[i] += a_tile[y * kStride + i][l] * b_tile[l][x];
    __syncthreads();
  }
  for (int i = 0; i < kResults; ++i) {
    const std::int64_t row = first_row + y * kResults + i;
    if (row < p.m && column < p.n) c[row * p.n + column] = sums[i];
  }
}

template <int kStride>
Launch prepare_block_tile(const Problem& p, const Device&, const Operands& o) {
  return launch<float>(block_tile<kStride>, dim3(pieces(p.n, kColumns), pieces(p.m, kRows)),
                       dim3(kColumns, kDepth), p, o);
}

// --- Results of an earlier launch ---------------------------------------------------------------

Launch prepare_first_launch_only(const Problem& p, const Device& device, const Operands& o) {
  return [right = prepare<Defect::none>(p, device, o), first = true](Stream stream) mutable {
    if (first) right(stream);
    first = false;
  };
}

// A plan that was made for one set of operands and used for all.
NegativeControl::Prepare keep_first_operands() {
  return [first = std::optional<Operands>()](const Problem& p, const Device& device,
                                             const Operands& o) mutable {
    if (!first) first = o;
    return prepare<Defect::none>(p, device, *first);
  };
}

// --- One element --------------------------------------------------------------------------------

// Puts one element so many hundredths of the error bound above its exact value.
__global__ void move_one(Problem p, Bound bound, int percent, const float* a, const float* b,
                         float* c) {
  const std::int64_t row = p.m * 7 / 9, column = p.n / 3;
  double expected = 0, magnitude = 0;
  for (std::int64_t l = 0; l < p.k; ++l) {
    const double term = static_cast<double>(a[row * p.k + l]) * b[l * p.n + column];
    expected += term;
    magnitude += fabs(term);
  }
  c[row * p.n + column] =
      static_cast<float>(expected + 0.01 * percent * bound(expected, magnitude));
}

template <int kPercent>
Launch prepare_one(const Problem& p, const Device& device, const Operands& o) {
  return [=, right = prepare<Defect::none>(p, device, o)](Stream stream) {
    right(stream);
    move_one<<<1, 1, 0, stream>>>(p, bound_for(p), kPercent, static_cast<const float*>(o.a),
                                  static_cast<const float*>(o.b), static_cast<float*>(o.c));
  };
}

// --- Partial sums -------------------------------------------------------------------------------

// Each layer of the grid adds its share of k to C. Read before the sum and written after it, C has
// changed meanwhile: of the layers that run together one survives.
template <bool kAtomic>
__global__ void add_layers(Problem p, const float* a, const float* b, float* c) {
  const auto [row, column, inside] = element(p);
  if (!inside) return;
  float* element = c + row * p.n + column;
  const float before = kAtomic ? 0 : *element;
  const std::int64_t from = p.k * blockIdx.z / gridDim.z, to = p.k * (blockIdx.z + 1) / gridDim.z;
  const float sum = product(p, a, b, row, column, from, to);
  if (kAtomic)
    atomicAdd(element, sum);
  else
    *element = before + sum;
}

template <bool kAtomic>
Launch prepare_layers(const Problem& p, const Device&, const Operands& o) {
  constexpr unsigned kLayers = 64;
  const auto bytes = sizeof(float) * static_cast<std::size_t>(p.m * p.n);
  return [=, add = launch<float>(add_layers<kAtomic>, grid_of(p, kLayers), kThreads, p, o)](
             Stream stream) {
    check(cudaMemsetAsync(o.c, 0, bytes, stream));
    add(stream);
  };
}

// Two halves of a block share the sums; the second hands its part over in shared memory.
template <bool kBarrier>
__global__ void two_halves(Problem p, const float* a, const float* b, float* c) {
  __shared__ float handed_over[kBlock][kBlock];
  const int x = threadIdx.x;
  const int y = threadIdx.y;
  const auto [row, column, inside] = element(p);
  const bool second = threadIdx.z == 1;
  float sum = 0;
  if (inside) sum = product(p, a, b, row, column, second ? p.k / 2 : 0, second ? p.k : p.k / 2);
  if (second) handed_over[y][x] = sum;
  if (kBarrier) __syncthreads();
  if (inside && !second) c[row * p.n + column] = sum + handed_over[y][x];
}

template <bool kBarrier>
Launch prepare_halves(const Problem& p, const Device&, const Operands& o) {
  return launch<float>(two_halves<kBarrier>, grid_of(p), dim3(kBlock, kBlock, 2), p, o);
}

}  // namespace

std::vector<NegativeControl> negative_controls() {
  using enum Catcher;
  const auto f32 = [](std::int64_t m, std::int64_t n, std::int64_t k) {
    return Problem{m, n, k, Precision::f32};
  };
  const Problem small = f32(64, 64, 64), odd = f32(100, 100, 100);
  std::vector<NegativeControl> all;
  const auto add = [&](std::string_view name, std::string_view wrong, const Problem& p,
                       std::vector<Catcher> caught_by, NegativeControl::Prepare spoiled,
                       NegativeControl::Prepare twin = prepare<Defect::none>) {
    all.push_back({name, wrong, p, std::move(caught_by), std::move(spoiled), std::move(twin)});
  };
  const auto tiled_twin = prepare_tiled<TileDefect::none>;
  const auto transposed_twin = prepare_transposed<Transposed::right>;
  add("WrongTransposeUnused", "transposes A, then reads A itself with the indices of the transpose",
      small, {verdict}, prepare_transposed<Transposed::reads_a>, transposed_twin);
  // More rows than k, so that the wrong stride stays within the transpose.
  add("WrongTransposeStride", "reads the transpose of A with rows of k elements; right where m = k",
      f32(80, 64, 48), {verdict}, prepare_transposed<Transposed::stride_k>, transposed_twin);
  add("WrongInclusiveLoop", "the loop over k ends one product too late", odd, {verdict, memcheck},
      prepare<Defect::inclusive_loop>);
  add("WrongAddsToC", "adds to C, which is not set to zero", small, {verdict, initcheck},
      prepare<Defect::adds_to_c>);
  add("WrongGridFloor", "a grid of n / 16 by m / 16 blocks, rounded down", odd,
      {verdict, initcheck}, prepare<Defect::grid_floor>);
  add("WrongGridFromRows", "the width of the grid comes from m and its height from n",
      f32(16, 80, 32), {verdict, initcheck}, prepare<Defect::grid_from_a>);
  // More columns than rows, so that the wrong stride stays within C.
  add("WrongUnlessSquare", "takes m for the length of a row of C", f32(48, 64, 32),
      {verdict, initcheck}, prepare<Defect::only_square>);
  add("WrongBf16Sum", "keeps the sum of BF16 products in BF16",
      Problem{64, 64, 1024, Precision::bf16}, {verdict}, prepare_sum<__nv_bfloat16>,
      prepare_sum<float>);
  // What it reads beyond A and B never reaches C: no verdict can know.
  add("WrongLocalBounds", "holds thread indices, not rows and columns, against m and n", odd,
      {memcheck}, prepare_tiled<TileDefect::local_bounds>, tiled_twin);
  add("WrongColumnFromBlockRow", "takes the columns of B from blockIdx.y; right on the diagonal",
      small, {verdict}, prepare_tiled<TileDefect::b_column_from_block_row>, tiled_twin);
  add("WrongBLikeA", "stages the elements of B that have the indices of A's", small, {verdict},
      prepare_tiled<TileDefect::b_like_a>, tiled_twin);
  add("WrongKByGrid", "takes as many steps along k as the grid is wide", f32(32, 32, 96), {verdict},
      prepare_tiled<TileDefect::k_by_grid>, tiled_twin);
  add("WrongUnlessMultipleOf16", "leaves out what k has beyond a multiple of 16", f32(48, 64, 40),
      {verdict}, prepare_tiled<TileDefect::k_by_floor>, tiled_twin);
  add("WrongFloatTiles", "stages 32-bit integers as float; right up to 2^24",
      Problem{64, 64, 32, Precision::s32}, {verdict},
      prepare_tiled<TileDefect::float_tiles, std::int32_t>,
      prepare_tiled<TileDefect::none, std::int32_t>);
  // Whether a race shows in C is chance.
  add("WrongNoFirstBarrier", "multiplies tiles that others may not have stored yet", small,
      {racecheck}, prepare_tiled<TileDefect::no_first_barrier>, tiled_twin);
  add("WrongNoSecondBarrier", "overwrites tiles that others may still multiply", small, {racecheck},
      prepare_tiled<TileDefect::no_second_barrier>, tiled_twin);
  add("WrongBarrierInBranch", "a barrier that only threads inside C reach", odd, {synccheck},
      prepare_tiled<TileDefect::barrier_in_branch>, tiled_twin);
  add("WrongRowStride", "counts the rows of A in steps of BK instead of NR: 72 of 128 are used",
      f32(128, 128, 64), {verdict}, prepare_block_tile<kDepth>, prepare_block_tile<kResults>);
  add("WrongNaN", "one element is NaN, which many comparisons pass", small, {verdict},
      prepare<Defect::nan>);
  // Of a size that leaves room before the next allocation: memcheck flags accesses outside of
  // all.
  add("WrongPastTheEnd", "writes one element past the end of C", f32(63, 65, 64),
      {verdict, memcheck}, prepare<Defect::past_the_end>);
  add("WrongTileSkipped", "leaves out one tile of C", small, {verdict, initcheck},
      prepare<Defect::tile_skipped>);
  add("WrongUnwritten", "writes nothing", small, {verdict, initcheck}, prepare<Defect::unwritten>);
  add("WrongStale", "writes C at its first launch only", small, {verdict},
      prepare_first_launch_only);
  add("WrongFirstOperands", "computes on the operands that it was first prepared for", small,
      {verdict}, keep_first_operands());
  // The twin is off as well, by a little less than the bound.
  add("WrongOneOf100Million", "one element of 10^8 is off by 1.1 times the error bound",
      f32(10000, 10000, 16), {verdict}, prepare_one<110>, prepare_one<90>);
  add("WrongLostUpdates", "blocks add their shares of k to C without atomics", f32(64, 64, 1024),
      {verdict}, prepare_layers<false>, prepare_layers<true>);
  add("WrongReduction", "half a block reads the other half's sums without waiting for them", small,
      {racecheck}, prepare_halves<false>, prepare_halves<true>);
  const Problem batch{33, 65, 17, Precision::f32, Layout::nn, 5};
  const auto batched_twin = prepare_batched<BatchDefect::none>;
  add("WrongBatchSkipped", "leaves out the last product of a batch", batch, {verdict, initcheck},
      prepare_batched<BatchDefect::last_skipped>, batched_twin);
  add("WrongBatchNeighbour", "multiplies by the B of the next product", batch, {verdict},
      prepare_batched<BatchDefect::b_of_next>, batched_twin);
  add("WrongBatchStride", "multiplies each A by the first B, as with a stride of 0", batch,
      {verdict}, prepare_batched<BatchDefect::b_of_first>, batched_twin);
  const Problem scaled{200, 272, 7168, Precision::e4m3block, Layout::nt};
  const auto scaled_twin = prepare_scaled<ScaleDefect::none>;
  add("WrongScaleOfNextColumns", "multiplies by the scales of the next 128 columns of B", scaled,
      {verdict}, prepare_scaled<ScaleDefect::b_of_next>, scaled_twin);
  add("WrongScaleOfNextRow", "multiplies by the scales of the next row of A", scaled, {verdict},
      prepare_scaled<ScaleDefect::a_of_next>, scaled_twin);
  add("WrongScaleOfBlockBefore", "multiplies by the scale of A of the block of k before", scaled,
      {verdict}, prepare_scaled<ScaleDefect::a_of_before>, scaled_twin);
  add("WrongScaleOfOtherHalf", "exchanges the scales of the two rows of a fragment", scaled,
      {verdict}, prepare_scaled<ScaleDefect::a_of_other_half>, scaled_twin);
  add("WrongScalesIgnored", "multiplies by no scales", scaled, {verdict},
      prepare_scaled<ScaleDefect::ignored>, scaled_twin);
  // Some have no rows, one has one.
  const Problem scaled_groups{3, 272, 1040, Precision::e4m3block, Layout::nt, 32, Tokens::real};
  add("WrongScaleOfNextGroup", "multiplies by the scales of the next group's B", scaled_groups,
      {verdict}, prepare_scaled<ScaleDefect::b_of_next_group>, scaled_twin);
  add("WrongScaledGroupSkipped", "leaves out an expert", scaled_groups, {verdict, initcheck},
      prepare_scaled<ScaleDefect::group_skipped>, scaled_twin);
  const Problem groups{
      .m = 33, .n = 65, .k = 17, .precision = Precision::f32, .batch = 32, .tokens = Tokens::real};
  const auto grouped_twin = prepare_grouped<GroupDefect::none>;
  add("WrongGroupSkipped", "leaves out an expert", groups, {verdict, initcheck},
      prepare_grouped<GroupDefect::skipped>, grouped_twin);
  add("WrongGroupWeights", "multiplies by the weights of the expert before", groups, {verdict},
      prepare_grouped<GroupDefect::b_before>, grouped_twin);
  add("WrongGroupBoundary", "computes a row of the next group, too", groups, {verdict},
      prepare_grouped<GroupDefect::row_more>, grouped_twin);
  add("WrongGroupTile", "stores the last tile of a group over the rows of the next one", groups,
      {verdict}, prepare_grouped<GroupDefect::whole_tile>, grouped_twin);
  add("WrongGroupEmpty", "computes a row of a group that has none", groups, {verdict},
      prepare_grouped<GroupDefect::empty_computed>, grouped_twin);
  return all;
}

}  // namespace gemm::bench
