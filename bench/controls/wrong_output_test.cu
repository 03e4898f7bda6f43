// Negative controls that compute the right sums and go wrong in what they leave in C.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "bench/base/cuda.hpp"
#include "bench/controls/wrong_launch.cuh"
#include "bench/verification/verdict.hpp"

namespace gemm::bench {
namespace {

constexpr int kBlock = 16;
const dim3 kThreads(kBlock, kBlock);

dim3 grid_of(const Problem& p, unsigned layers = 1) {
  return dim3(pieces(p.n, kBlock), pieces(p.m, kBlock), layers);
}

enum class Defect { none, nan, past_the_end, tile_skipped, unwritten };

template <Defect kDefect>
__global__ void spoiled(Problem p, const float* a, const float* b, float* c) {
  const std::int64_t row = blockIdx.y * kBlock + threadIdx.y;
  const std::int64_t column = blockIdx.x * kBlock + threadIdx.x;
  if (row >= p.m || column >= p.n || kDefect == Defect::unwritten) return;
  if (kDefect == Defect::tile_skipped && blockIdx.x == 1 && blockIdx.y == 2) return;
  float sum = product(p, a, b, row, column);
  const bool last = row == p.m - 1 && column == p.n - 1;
  if (kDefect == Defect::nan && last) sum = NAN;
  if (kDefect == Defect::past_the_end && last) c[p.m * p.n] = sum;
  c[row * p.n + column] = sum;
}

template <Defect kDefect>
Launch prepare(const Problem& p, const Device&, const Operands& o) {
  return launch<float>(spoiled<kDefect>, grid_of(p), kThreads, p, o);
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
  const std::int64_t row = blockIdx.y * kBlock + threadIdx.y;
  const std::int64_t column = blockIdx.x * kBlock + threadIdx.x;
  if (row >= p.m || column >= p.n) return;
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
  const std::int64_t row = blockIdx.y * kBlock + y;
  const std::int64_t column = blockIdx.x * kBlock + x;
  const bool inside = row < p.m && column < p.n, second = threadIdx.z == 1;
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

std::vector<NegativeControl> wrong_output() {
  const Problem small{64, 64, 64, Precision::f32};
  const auto twin = prepare<Defect::none>;
  return {
      {.name = "WrongNaN",
       .wrong = "one element is NaN, which many comparisons pass",
       .source = "ours",
       .problem = small,
       .caught_by = {Catcher::verdict},
       .spoiled = prepare<Defect::nan>,
       .twin = twin},
      // Of a size that leaves room before the next allocation: memcheck flags accesses outside of
      // all.
      {.name = "WrongPastTheEnd",
       .wrong = "writes one element past the end of C",
       .source = "ours",
       .problem = {63, 65, 64, Precision::f32},
       .caught_by = {Catcher::verdict, Catcher::memcheck},
       .spoiled = prepare<Defect::past_the_end>,
       .twin = twin},
      {.name = "WrongTileSkipped",
       .wrong = "leaves out one tile of C",
       .source = "ours",
       .problem = small,
       .caught_by = {Catcher::verdict, Catcher::initcheck},
       .spoiled = prepare<Defect::tile_skipped>,
       .twin = twin},
      {.name = "WrongUnwritten",
       .wrong = "writes nothing",
       .source = "ours",
       .problem = small,
       .caught_by = {Catcher::verdict, Catcher::initcheck},
       .spoiled = prepare<Defect::unwritten>,
       .twin = twin},
      {.name = "WrongStale",
       .wrong = "writes C at its first launch only",
       .source = "ours",
       .problem = small,
       .caught_by = {Catcher::verdict},
       .spoiled = prepare_first_launch_only,
       .twin = twin},
      {.name = "WrongFirstOperands",
       .wrong = "computes on the operands that it was first prepared for",
       .source = "ours",
       .problem = small,
       .caught_by = {Catcher::verdict},
       .spoiled = keep_first_operands(),
       .twin = twin},
      // The twin is off as well, by a little less than the bound.
      {.name = "WrongOneOf100Million",
       .wrong = "one element of 10^8 is off by 1.1 times the error bound",
       .source = "ours",
       .problem = {10000, 10000, 16, Precision::f32},
       .caught_by = {Catcher::verdict},
       .spoiled = prepare_one<110>,
       .twin = prepare_one<90>},
      {.name = "WrongLostUpdates",
       .wrong = "blocks add their shares of k to C without atomics",
       .source = "ours",
       .problem = {64, 64, 1024, Precision::f32},
       .caught_by = {Catcher::verdict},
       .spoiled = prepare_layers<false>,
       .twin = prepare_layers<true>},
      {.name = "WrongReduction",
       .wrong = "half a block reads the other half's sums without waiting for them",
       .source = "ours",
       .problem = small,
       .caught_by = {Catcher::racecheck},
       .spoiled = prepare_halves<false>,
       .twin = prepare_halves<true>},
  };
}

}  // namespace gemm::bench
