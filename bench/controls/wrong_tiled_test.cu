// Negative controls with square tiles in shared memory: wrong in which elements they stage, in what
// type, and when they wait.
#include <cstdint>
#include <type_traits>
#include <vector>

#include "bench/controls/wrong_launch.cuh"

namespace gemm::bench {
namespace {

constexpr int kTile = 16;

enum class Defect {
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

template <typename T, Defect kDefect>
__global__ void tiled(Problem p, const T* a, const T* b, T* c) {
  using Tile = std::conditional_t<kDefect == Defect::float_tiles, float, T>;
  __shared__ Tile a_tile[kTile][kTile];
  __shared__ Tile b_tile[kTile][kTile];
  const int x = threadIdx.x;
  const int y = threadIdx.y;
  const std::int64_t row = blockIdx.y * kTile + y;
  const std::int64_t column = blockIdx.x * kTile + x;
  const bool inside = row < p.m && column < p.n;

  std::int64_t steps = (p.k + kTile - 1) / kTile;
  if (kDefect == Defect::k_by_grid) steps = gridDim.x;
  if (kDefect == Defect::k_by_floor) steps = p.k / kTile;

  T sum = 0;
  for (std::int64_t step = 0; step < steps; ++step) {
    const std::int64_t first = step * kTile;
    std::int64_t b_row = first + y, b_column = column;
    if (kDefect == Defect::b_column_from_block_row) b_column = blockIdx.y * kTile + x;
    if (kDefect == Defect::b_like_a) b_row = row, b_column = first + x;
    bool a_there = row < p.m && first + x < p.k;
    bool b_there = b_row < p.k && b_column < p.n;
    if (kDefect == Defect::local_bounds) {
      a_there = y < p.m && first + x < p.k;
      b_there = x < p.n && b_row < p.k;
    }
    // Threads outside C that do not come here go on to the second barrier and meet the others
    // there: no thread waits for ever.
    if (kDefect != Defect::barrier_in_branch || inside) {
      a_tile[y][x] = a_there ? static_cast<Tile>(a[row * p.k + first + x]) : Tile{0};
      b_tile[y][x] = b_there ? static_cast<Tile>(b[b_row * p.n + b_column]) : Tile{0};
      if (kDefect != Defect::no_first_barrier) __syncthreads();
    }
    for (int l = 0; l < kTile; ++l)
      sum += static_cast<T>(a_tile[y][l]) * static_cast<T>(b_tile[l][x]);
    if (kDefect != Defect::no_second_barrier) __syncthreads();
  }
  if (inside) c[row * p.n + column] = sum;
}

template <typename T, Defect kDefect>
Launch prepare(const Problem& p, const Device&, const Operands& o) {
  return launch<T>(tiled<T, kDefect>, dim3(pieces(p.n, kTile), pieces(p.m, kTile)),
                   dim3(kTile, kTile), p, o);
}

}  // namespace

std::vector<NegativeControl> wrong_tiled() {
  const auto twin = prepare<float, Defect::none>;
  return {
      // What it reads beyond A and B never reaches C: no verdict can know.
      {.name = "WrongLocalBounds",
       .wrong = "holds thread indices, not rows and columns, against m and n",
       .source = "blog on a Tesla T4",
       .problem = {100, 100, 100, Precision::f32},
       .caught_by = {Catcher::memcheck},
       .spoiled = prepare<float, Defect::local_bounds>,
       .twin = twin},
      {.name = "WrongColumnFromBlockRow",
       .wrong = "takes the columns of B from blockIdx.y; right on the diagonal",
       .source = "course page 2013",
       .problem = {64, 64, 64, Precision::f32},
       .caught_by = {Catcher::verdict},
       .spoiled = prepare<float, Defect::b_column_from_block_row>,
       .twin = twin},
      {.name = "WrongBLikeA",
       .wrong = "stages the elements of B that have the indices of A's",
       .source = "course page 2013, twice",
       .problem = {64, 64, 64, Precision::f32},
       .caught_by = {Catcher::verdict},
       .spoiled = prepare<float, Defect::b_like_a>,
       .twin = twin},
      {.name = "WrongKByGrid",
       .wrong = "takes as many steps along k as the grid is wide",
       .source = "Numba documentation",
       .problem = {32, 32, 96, Precision::f32},
       .caught_by = {Catcher::verdict},
       .spoiled = prepare<float, Defect::k_by_grid>,
       .twin = twin},
      {.name = "WrongUnlessMultipleOf16",
       .wrong = "leaves out what k has beyond a multiple of 16",
       .source = "post on integers, and ours",
       .problem = {48, 64, 40, Precision::f32},
       .caught_by = {Catcher::verdict},
       .spoiled = prepare<float, Defect::k_by_floor>,
       .twin = twin},
      {.name = "WrongFloatTiles",
       .wrong = "stages 32-bit integers as float; right up to 2^24",
       .source = "post on integers",
       .problem = {64, 64, 32, Precision::s32},
       .caught_by = {Catcher::verdict},
       .spoiled = prepare<std::int32_t, Defect::float_tiles>,
       .twin = prepare<std::int32_t, Defect::none>,
       .large_integers = true},
      // Whether a race shows in C is chance.
      {.name = "WrongNoFirstBarrier",
       .wrong = "multiplies tiles that others may not have stored yet",
       .source = "blog on a Tesla T4",
       .problem = {64, 64, 64, Precision::f32},
       .caught_by = {Catcher::racecheck},
       .spoiled = prepare<float, Defect::no_first_barrier>,
       .twin = twin},
      {.name = "WrongNoSecondBarrier",
       .wrong = "overwrites tiles that others may still multiply",
       .source = "blog on a Tesla T4",
       .problem = {64, 64, 64, Precision::f32},
       .caught_by = {Catcher::racecheck},
       .spoiled = prepare<float, Defect::no_second_barrier>,
       .twin = twin},
      {.name = "WrongBarrierInBranch",
       .wrong = "a barrier that only threads inside C reach",
       .source = "post on integers",
       .problem = {100, 100, 100, Precision::f32},
       .caught_by = {Catcher::synccheck},
       .spoiled = prepare<float, Defect::barrier_in_branch>,
       .twin = twin},
  };
}

}  // namespace gemm::bench
