// Negative controls with one thread for each element of C: wrong in what they read, how far they
// sum, and which elements they reach.
#include <cuda_bf16.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "bench/base/cuda.hpp"
#include "bench/controls/wrong_launch.cuh"

namespace gemm::bench {
namespace {

constexpr int kBlock = 16;

enum class Defect {
  none,
  inclusive_loop,
  adds_to_c,
  grid_floor,
  grid_from_a,
  only_square,
};

template <Defect kDefect>
__global__ void naive(Problem p, const float* a, const float* b, float* c) {
  const std::int64_t row = blockIdx.y * kBlock + threadIdx.y;
  const std::int64_t column = blockIdx.x * kBlock + threadIdx.x;
  if (row >= p.m || column >= p.n) return;
  const std::int64_t end = kDefect == Defect::inclusive_loop ? p.k + 1 : p.k;
  const std::int64_t columns = kDefect == Defect::only_square ? p.m : p.n;
  float& element = c[row * columns + column];
  float sum = kDefect == Defect::adds_to_c ? element : 0;
  for (std::int64_t l = 0; l < end; ++l) sum += a[row * p.k + l] * b[l * p.n + column];
  element = sum;
}

template <Defect kDefect>
Launch prepare(const Problem& p, const Device&, const Operands& o) {
  dim3 grid(pieces(p.n, kBlock), pieces(p.m, kBlock));
  if (kDefect == Defect::grid_floor)
    grid = dim3(static_cast<unsigned>(p.n / kBlock), static_cast<unsigned>(p.m / kBlock));
  if (kDefect == Defect::grid_from_a) grid = dim3(pieces(p.m, kBlock), pieces(p.n, kBlock));
  return launch<float>(naive<kDefect>, grid, dim3(kBlock, kBlock), p, o);
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
  const std::int64_t row = blockIdx.y * kBlock + threadIdx.y;
  const std::int64_t column = blockIdx.x * kBlock + threadIdx.x;
  if (row >= p.m || column >= p.n) return;
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
  const dim3 grid(pieces(p.n, kBlock), pieces(p.m, kBlock)), block(kBlock, kBlock);
  return
      [=, product = launch<float>(on_transposed<kHow>, grid, block, p, operands)](Stream stream) {
        transpose<<<dim3(pieces(p.k, kBlock), pieces(p.m, kBlock)), block, 0, stream>>>(
            p, static_cast<const float*>(o.a), a_t.get());
        product(stream);
      };
}

// --- What the sum is kept in --------------------------------------------------------------------

template <typename Sum>
__global__ void sum_kept_in(Problem p, const __nv_bfloat16* a, const __nv_bfloat16* b,
                            __nv_bfloat16* c) {
  const std::int64_t row = blockIdx.y * kBlock + threadIdx.y;
  const std::int64_t column = blockIdx.x * kBlock + threadIdx.x;
  if (row >= p.m || column >= p.n) return;
  auto sum = static_cast<Sum>(0.0F);
  for (std::int64_t l = 0; l < p.k; ++l)
    sum = static_cast<Sum>(static_cast<float>(sum) + static_cast<float>(a[row * p.k + l]) *
                                                         static_cast<float>(b[l * p.n + column]));
  c[row * p.n + column] = static_cast<__nv_bfloat16>(sum);
}

template <typename Sum>
Launch prepare_sum(const Problem& p, const Device&, const Operands& o) {
  return launch<__nv_bfloat16>(sum_kept_in<Sum>, dim3(pieces(p.n, kBlock), pieces(p.m, kBlock)),
                               dim3(kBlock, kBlock), p, o);
}

}  // namespace

std::vector<NegativeControl> wrong_naive() {
  const auto twin = prepare<Defect::none>;
  return {
      {.name = "WrongTransposeUnused",
       .wrong = "transposes A, then reads A itself with the indices of the transpose",
       .source = "course report 2025",
       .problem = {64, 64, 64, Precision::f32},
       .caught_by = {Catcher::verdict},
       .spoiled = prepare_transposed<Transposed::reads_a>,
       .twin = prepare_transposed<Transposed::right>},
      // More rows than k, so that the wrong stride stays within the transpose.
      {.name = "WrongTransposeStride",
       .wrong = "reads the transpose of A with rows of k elements; right where m = k",
       .source = "course report 2025",
       .problem = {80, 64, 48, Precision::f32},
       .caught_by = {Catcher::verdict},
       .spoiled = prepare_transposed<Transposed::stride_k>,
       .twin = prepare_transposed<Transposed::right>},
      {.name = "WrongInclusiveLoop",
       .wrong = "the loop over k ends one product too late",
       .source = "course page 2013",
       .problem = {100, 100, 100, Precision::f32},
       .caught_by = {Catcher::verdict, Catcher::memcheck},
       .spoiled = prepare<Defect::inclusive_loop>,
       .twin = twin},
      {.name = "WrongAddsToC",
       .wrong = "adds to C, which is not set to zero",
       .source = "course page 2013",
       .problem = {64, 64, 64, Precision::f32},
       .caught_by = {Catcher::verdict, Catcher::initcheck},
       .spoiled = prepare<Defect::adds_to_c>,
       .twin = twin},
      {.name = "WrongGridFloor",
       .wrong = "a grid of n / 16 by m / 16 blocks, rounded down",
       .source = "course page 2013",
       .problem = {100, 100, 100, Precision::f32},
       .caught_by = {Catcher::verdict, Catcher::initcheck},
       .spoiled = prepare<Defect::grid_floor>,
       .twin = twin},
      {.name = "WrongGridFromRows",
       .wrong = "the width of the grid comes from m and its height from n",
       .source = "Numba documentation",
       .problem = {16, 80, 32, Precision::f32},
       .caught_by = {Catcher::verdict, Catcher::initcheck},
       .spoiled = prepare<Defect::grid_from_a>,
       .twin = twin},
      // More columns than rows, so that the wrong stride stays within C.
      {.name = "WrongUnlessSquare",
       .wrong = "takes m for the length of a row of C",
       .source = "ours",
       .problem = {48, 64, 32, Precision::f32},
       .caught_by = {Catcher::verdict, Catcher::initcheck},
       .spoiled = prepare<Defect::only_square>,
       .twin = twin},
      {.name = "WrongBf16Sum",
       .wrong = "keeps the sum of BF16 products in BF16",
       .source = "ours",
       .problem = {64, 64, 1024, Precision::bf16},
       .caught_by = {Catcher::verdict},
       .spoiled = prepare_sum<__nv_bfloat16>,
       .twin = prepare_sum<float>},
  };
}

}  // namespace gemm::bench
