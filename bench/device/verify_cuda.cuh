// Whether a C on the GPU is right: the FP64 product of its operands, the judgement of every
// element, Freivalds' check of every row (verification/freivalds.hpp), and the renewal and check of
// the sets of samples (verification/renewal.hpp).
#pragma once

#include <cstddef>
#include <cstdint>

#include "bench/device/backend.hpp"
#include "bench/device/element_types.cuh"
#include "bench/verification/freivalds.hpp"
#include "bench/verification/renewal.hpp"
#include "bench/verification/verdict.hpp"
#include "kernels/layout.hpp"

namespace gemm::bench {

// 64 x 64 results a block, 4 x 4 a thread, in FP64; both sums in one pass over A and B.
constexpr int kTile = 64, kDepth = 16, kThreads = 256;

template <typename T>
__global__ void reference_kernel(Problem p, const T* a, const T* b, Scales scales, double* expected,
                                 double* magnitude) {
  __shared__ double a_tile[kDepth][kTile + 1];
  __shared__ double b_tile[kDepth][kTile];
  const std::int64_t tile_columns = (p.n + kTile - 1) / kTile;
  const std::int64_t row0 = blockIdx.x / tile_columns * kTile;
  const std::int64_t column0 = blockIdx.x % tile_columns * kTile;
  const int x = threadIdx.x % 16;
  const int y = threadIdx.x / 16;
  double sum[4][4] = {}, size[4][4] = {};
  for (std::int64_t step = 0; step < p.k; step += kDepth) {
    for (int i = threadIdx.x; i < kTile * kDepth; i += kThreads) {
      const std::int64_t row = row0 + i / kDepth, a_k = step + i % kDepth;
      a_tile[i % kDepth][i / kDepth] =
          row < p.m && a_k < p.k ? as_double(a[index_in_a(p, row, a_k)]) * scales.of_a(row, a_k)
                                 : 0.0;
      const std::int64_t column = column0 + i % kTile, b_k = step + i / kTile;
      b_tile[i / kTile][i % kTile] =
          column < p.n && b_k < p.k
              ? as_double(b[index_in_b(p, b_k, column)]) * scales.of_b(p, b_k, column)
              : 0.0;
    }
    __syncthreads();
    for (int l = 0; l < kDepth; ++l)
      for (int r = 0; r < 4; ++r)
        for (int s = 0; s < 4; ++s) {
          const double left = a_tile[l][y + 16 * r], right = b_tile[l][x + 16 * s];
          sum[r][s] = fma(left, right, sum[r][s]);
          size[r][s] = fma(fabs(left), fabs(right), size[r][s]);
        }
    __syncthreads();
  }
  for (int r = 0; r < 4; ++r)
    for (int s = 0; s < 4; ++s) {
      const std::int64_t row = row0 + y + 16 * r, column = column0 + x + 16 * s;
      if (row >= p.m || column >= p.n) continue;
      expected[row * p.n + column] = sum[r][s];
      magnitude[row * p.n + column] = size[r][s];
    }
}

struct AsDouble {
  template <typename T>
  __device__ double operator()(T value) const {
    return as_double(value);
  }
};

constexpr int kJudges = 256;  // threads a block; one partial verdict each block

// The verdicts of a block's threads as one.
__device__ inline void merge_block(const Verdict& mine, Verdict* verdicts) {
  __shared__ Verdict shared[kJudges];
  shared[threadIdx.x] = mine;
  __syncthreads();
  for (int half = kJudges / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) shared[threadIdx.x].merge(shared[threadIdx.x + half]);
    __syncthreads();
  }
  if (threadIdx.x == 0) verdicts[blockIdx.x] = shared[0];
}

template <typename T>
__global__ void judge_kernel(const __grid_constant__ Products p, Written<T> c,
                             const double* expected, const double* magnitude, Bound bound,
                             Signs signs, Verdict* verdicts) {
  Verdict verdict;
  const std::int64_t stride = std::int64_t{gridDim.x} * kJudges;
  for (std::int64_t i = std::int64_t{blockIdx.x} * kJudges + threadIdx.x; i < elements_of_c(p);
       i += stride) {
    const Place at = place_in_c(p, i);
    add_element(verdict, p, i, c, signs.at(at.row, at.column) * expected[i], magnitude[i], bound,
                AsDouble{});
  }
  merge_block(verdict, verdicts);
}

// A warp for each row, in blocks of so many threads.
constexpr int kWarp = 32, kRowThreads = 256;
inline unsigned row_blocks(std::int64_t rows) {
  return static_cast<unsigned>((rows * kWarp + kRowThreads - 1) / kRowThreads);
}
__device__ inline std::int64_t warp_index() {
  return (std::int64_t{blockIdx.x} * kRowThreads + threadIdx.x) / kWarp;
}

__device__ inline double sum_of_warp(double value) {
  for (int lanes = kWarp / 2; lanes > 0; lanes /= 2)
    value += __shfl_xor_sync(0xffffffff, value, lanes);
  return value;
}
__device__ inline RowCheck sum_of_warp(RowCheck row) {
  for (double& sum : row.sums) sum = sum_of_warp(sum);
  row.size = sum_of_warp(row.size);
  return row;
}

// Operand sets of a check: one for each blockIdx.y.
struct Places : Operands {
  std::int64_t stride;  // in bytes, from a set to the next
  std::int64_t at[Backend::kMostPlaces];

  template <typename T>
  __device__ const T* of(const void* first) const {
    return reinterpret_cast<const T*>(static_cast<const std::byte*>(first) +
                                      at[blockIdx.y] * stride);
  }
  __device__ Scales scales(const Problem& p) const {
    return a_scales == nullptr ? Scales{}
                               : Scales{of<float>(a_scales), of<float>(b_scales), rows_of_c(p)};
  }
  template <typename T>
  __device__ Written<T> written() const {
    return {of<T>(c), bias == nullptr ? nullptr : of<T>(bias),
            residual == nullptr ? nullptr : of<T>(residual)};
  }
};

constexpr int kVerdicts = 8;  // of a set; one for each of so many blocks

// What a check finds of a set, all zero at first.
struct Findings {
  unsigned long long prints[2];  // of C, before and after the rest
  unsigned long long differing;  // elements of A and B
  unsigned long long behind;     // bytes from the first changed one behind C to the end of the set
  unsigned long long before;     // offset of the last changed one before C, plus 1
  unsigned long long wrong_rows, last_rows;  // how many; all rows of C less the first
  Verdict verdicts[kVerdicts];
};

struct SecretSigns {
  std::uint64_t secret;
  __device__ double operator()(std::int64_t column, int vector) const {
    return sign_of(secret, column, vector);
  }
};

// `b_rows` and `rows` are rows_of_b and rows_of_c for each set.
template <typename In>
__global__ void project_b_kernel(Problem p, Places sets, std::uint64_t secret, RowCheck* b_rows) {
  const std::int64_t l = warp_index();
  if (l >= rows_of_b(p)) return;
  RowCheck row =
      sum_of_warp(project_b(p, sets.of<In>(sets.b), sets.scales(p), l, threadIdx.x % kWarp, kWarp,
                            SecretSigns{secret}, AsDouble{}));
  row.size = sqrt(row.size);
  if (threadIdx.x % kWarp == 0) b_rows[blockIdx.y * rows_of_b(p) + l] = row;
}

template <typename In>
__global__ void project_a_kernel(const __grid_constant__ Products p, Places sets,
                                 const RowCheck* b_rows, double share, RowCheck* rows) {
  const std::int64_t i = warp_index();
  if (i >= rows_of_c(p)) return;
  RowCheck row = sum_of_warp(project_a(p, sets.of<In>(sets.a), sets.scales(p),
                                       b_rows + blockIdx.y * rows_of_b(p), i, threadIdx.x % kWarp,
                                       kWarp, AsDouble{}));
  row.size *= share;
  if (threadIdx.x % kWarp == 0) rows[blockIdx.y * rows_of_c(p) + i] = row;
}

template <typename T>
__global__ void judge_rows_kernel(Problem p, Places sets, std::uint64_t secret,
                                  const RowCheck* rows, double share_of_added, Findings* findings) {
  const std::int64_t i = warp_index();
  if (i >= rows_of_c(p)) return;
  RowCheck row = sum_of_warp(project_c(p, sets.written<T>(), i, threadIdx.x % kWarp, kWarp,
                                       SecretSigns{secret}, AsDouble{}));
  row.size = share_of_added * sqrt(row.size);
  if (threadIdx.x % kWarp != 0 || row_is_right(row, rows[blockIdx.y * rows_of_c(p) + i])) return;
  Findings& found = findings[blockIdx.y];
  atomicAdd(&found.wrong_rows, 1ULL);
  atomicMax(&found.last_rows, static_cast<unsigned long long>(rows_of_c(p) - i));
}

template <typename In>
__global__ void judge_exactly_kernel(const __grid_constant__ Products p, const In* a, const In* b,
                                     Scales scales, Written<Out<In>> c, Bound bound,
                                     std::uint64_t secret, std::int64_t wrong_row,
                                     Verdict* verdicts) {
  Verdict verdict;
  const std::int64_t stride = std::int64_t{gridDim.x} * kJudges;
  for (std::int64_t which = std::int64_t{blockIdx.x} * kJudges + threadIdx.x;
       which < exact_count(p, wrong_row); which += stride)
    add_exactly(verdict, p, a, b, scales, c, bound, exact_index(p, secret, which, wrong_row),
                AsDouble{});
  merge_block(verdict, verdicts);
}

// The seeds and sparse lines of each set would be alike in every thread: they are computed there.
template <typename In>
__global__ void check_elements_kernel(const __grid_constant__ Products p, Places sets,
                                      std::uint64_t seed, Bound bound, Bound narrow,
                                      std::uint64_t secret, Findings* findings) {
  const auto *a = sets.of<In>(sets.a), *b = sets.of<In>(sets.b);
  const auto c = sets.written<Out<In>>();
  const Scales scales = sets.scales(p);
  const SparseLines sparse(p, RenewedSet(seed, sets.at[blockIdx.y]));
  Verdict verdict;
  const int warps = kJudges / kWarp, lane = threadIdx.x % kWarp;
  for (std::int64_t which = blockIdx.x * warps + threadIdx.x / kWarp; which < checked_elements(p);
       which += gridDim.x * warps) {
    const std::int64_t index = checked_index(p, secret, which);
    const Place at = place_in_c(p, index);
    const Problem one = p.product(at.which);
    const In *a_of = a + p.before_a(at.which), *b_of = b + p.before_b(at.which);
    const Scales of = scales.of_product(p, at.which, p.first_row(at.which));
    double expected = 0, magnitude = 0;
    for (std::int64_t l = lane; l < p.k; l += kWarp) {
      const double product = product_at(one, a_of, b_of, of, at.row, at.column, l, AsDouble{});
      expected += product;
      magnitude += fabs(product);
    }
    expected = sum_of_warp(expected);
    magnitude = sum_of_warp(magnitude);
    if (lane == 0)
      add_element(verdict, p, index, c, expected, magnitude, sparse.has(p, index) ? narrow : bound,
                  AsDouble{});
  }
  const std::int64_t first = std::int64_t{blockIdx.x} * kJudges + threadIdx.x,
                     stride = std::int64_t{gridDim.x} * kJudges;
  if (sparse.row >= 0)
    for (std::int64_t j = first; j < p.n; j += stride)
      add_sparse(verdict, p, a, b, scales, c, narrow, sparse.of_row, sparse.which, sparse.row, j,
                 AsDouble{});
  if (sparse.column >= 0)
    for (std::int64_t i = first; i < p.rows(sparse.which); i += stride)
      add_sparse(verdict, p, a, b, scales, c, narrow, sparse.of_column, sparse.which, i,
                 sparse.column, AsDouble{});
  merge_block(verdict, findings[blockIdx.y].verdicts);
}

// A word of 8 bytes of a matrix of so many elements, the last of which may be cut.
template <typename T, typename Use>
__device__ void for_each_word(std::int64_t count, Use&& use) {
  const std::int64_t stride = std::int64_t{gridDim.x} * blockDim.x,
                     words = (count + kPerWord<T> - 1) / kPerWord<T>;
  for (std::int64_t word = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; word < words;
       word += stride)
    use(word, min(static_cast<std::int64_t>(kPerWord<T>), count - word * kPerWord<T>));
}

template <typename T>
struct Word {
  alignas(8) T elements[kPerWord<T>];
};

template <typename T>
__device__ Word<T> renewed_word(Fill fill, std::uint64_t seed, std::int64_t word) {
  Word<T> all;
  const bool by_word = fill == Fill::uniform || fill == Fill::integers;
  const std::uint64_t bits = by_word ? random_bits(seed, static_cast<std::uint64_t>(word)) : 0;
  for (int i = 0; i < kPerWord<T>; ++i)
    all.elements[i] = by_word ? element_of_word<T>(fill, bits, i)
                              : renewed_element<T>(fill, seed, word * kPerWord<T> + i);
  return all;
}

template <typename T>
__device__ void renew_matrix(T* to, std::int64_t count, Fill fill, std::uint64_t seed) {
  for_each_word<T>(count, [&](std::int64_t word, std::int64_t elements) {
    const Word<T> values = renewed_word<T>(fill, seed, word);
    if (elements == kPerWord<T>)
      *reinterpret_cast<Word<T>*>(to + word * kPerWord<T>) = values;
    else
      for (std::int64_t i = 0; i < elements; ++i) to[word * kPerWord<T> + i] = values.elements[i];
  });
}

template <typename Use>
__device__ void for_each_scale(std::int64_t count, Use&& use) {
  for (std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count;
       i += std::int64_t{gridDim.x} * blockDim.x)
    use(i);
}

// Set blockIdx.y of the ring.
template <typename In>
__global__ void renew_kernel(Problem p, Fill fill, std::byte* base, OperandLayout layout,
                             std::uint64_t seed) {
  const RenewedSet values(seed, blockIdx.y);
  std::byte *const set = base + blockIdx.y * layout.total, *const c = set + layout.c;
  for_each_word<std::int8_t>(layout.c_bytes, [&](std::int64_t word, std::int64_t bytes) {
    if (bytes == 8)
      reinterpret_cast<std::uint64_t*>(c)[word] = ~std::uint64_t{0};
    else
      for (std::int64_t i = 0; i < bytes; ++i) c[8 * word + i] = std::byte{0xff};
  });
  renew_matrix(reinterpret_cast<In*>(set + layout.a), elements_of_a(p), fill, values.a);
  renew_matrix(reinterpret_cast<In*>(set + layout.b), elements_of_b(p), fill, values.b);
  auto *const a_scales = reinterpret_cast<float*>(set + layout.a_scales),
              *const b_scales = reinterpret_cast<float*>(set + layout.b_scales);
  for_each_scale(scales_of_a(p),
                 [&](std::int64_t i) { a_scales[i] = scale_value(fill, values.a_scales, i); });
  for_each_scale(scales_of_b(p),
                 [&](std::int64_t i) { b_scales[i] = scale_value(fill, values.b_scales, i); });
  renew_matrix(reinterpret_cast<Out<In>*>(set + layout.bias), elements_of_bias(p), fill,
               values.bias);
  renew_matrix(reinterpret_cast<Out<In>*>(set + layout.residual), elements_of_residual(p), fill,
               values.residual);
}

template <typename In>
__global__ void thin_out_kernel(const __grid_constant__ Products p, std::byte* base,
                                std::int64_t stride, std::int64_t a, std::int64_t b,
                                std::uint64_t seed) {
  const SparseLines sparse(p, RenewedSet(seed, blockIdx.y));
  auto* to_a = reinterpret_cast<In*>(base + blockIdx.y * stride + a) + p.before_a(sparse.which);
  auto* to_b = reinterpret_cast<In*>(base + blockIdx.y * stride + b) + p.before_b(sparse.which);
  const Problem one = p.product(sparse.which);
  for (std::int64_t l = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; l < p.k;
       l += std::int64_t{gridDim.x} * blockDim.x) {
    if (sparse.row >= 0 && !sparse.of_row.has(l))
      to_a[index_in_a(one, sparse.row, l)] = static_cast<In>(0.0F);
    if (sparse.column >= 0 && !sparse.of_column.has(l))
      to_b[index_in_b(one, l, sparse.column)] = static_cast<In>(0.0F);
  }
}

// Counts the elements of a matrix that renew_kernel and thin_out_kernel did not write.
template <typename T, typename Zeroed>
__device__ void compare_matrix(const T* matrix, std::int64_t count, Fill fill, std::uint64_t seed,
                               Zeroed&& zeroed, unsigned long long* differing) {
  for_each_word<T>(count, [&](std::int64_t word, std::int64_t elements) {
    const Word<T> expected = renewed_word<T>(fill, seed, word);
    const T* const found = matrix + word * kPerWord<T>;
    if (elements == kPerWord<T> && *reinterpret_cast<const std::uint64_t*>(found) ==
                                       *reinterpret_cast<const std::uint64_t*>(&expected))
      return;
    for (std::int64_t i = 0; i < elements; ++i)
      if (!(as_double(found[i]) == as_double(expected.elements[i])) &&
          !(as_double(found[i]) == 0 && zeroed(word * kPerWord<T> + i)))
        atomicAdd(differing, 1ULL);
  });
}

template <typename In>
__global__ void compare_operands_kernel(const __grid_constant__ Products p, Places sets, Fill fill,
                                        std::uint64_t seed, Findings* findings) {
  const RenewedSet values(seed, sets.at[blockIdx.y]);
  const SparseLines sparse(p, values);
  unsigned long long* const differing = &findings[blockIdx.y].differing;
  compare_matrix(
      sets.of<In>(sets.a), elements_of_a(p), fill, values.a,
      [&](std::int64_t at) { return sparse.zeroes_a(p, at); }, differing);
  compare_matrix(
      sets.of<In>(sets.b), elements_of_b(p), fill, values.b,
      [&](std::int64_t at) { return sparse.zeroes_b(p, at); }, differing);
  const Scales scales = sets.scales(p);
  for_each_scale(scales_of_a(p), [&](std::int64_t i) {
    if (!(scales.a[i] == scale_value(fill, values.a_scales, i))) atomicAdd(differing, 1ULL);
  });
  for_each_scale(scales_of_b(p), [&](std::int64_t i) {
    if (!(scales.b[i] == scale_value(fill, values.b_scales, i))) atomicAdd(differing, 1ULL);
  });
  const auto no_zeros = [](std::int64_t) { return false; };
  const auto added = sets.written<Out<In>>();
  compare_matrix(added.bias, elements_of_bias(p), fill, values.bias, no_zeros, differing);
  compare_matrix(added.residual, elements_of_residual(p), fill, values.residual, no_zeros,
                 differing);
}

// Bytes `from` to `to` of each set, which are a guard.
__global__ inline void compare_guard_kernel(Places sets, const void* base, std::int64_t from,
                                            std::int64_t to, std::int64_t c, std::int64_t total,
                                            Findings* findings) {
  const auto* set = sets.of<unsigned char>(base);
  Findings& found = findings[blockIdx.y];
  for (std::int64_t at = from + std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; at < to;
       at += std::int64_t{gridDim.x} * blockDim.x) {
    if (set[at] == 0xff) continue;
    if (at < c)
      atomicMax(&found.before, static_cast<unsigned long long>(at + 1));
    else
      atomicMax(&found.behind, static_cast<unsigned long long>(total - at));
  }
}

__global__ inline void fingerprint_kernel(Places sets, std::int64_t bytes, int which,
                                          Findings* findings) {
  const auto* c = sets.of<std::byte>(sets.c);
  std::uint64_t sum = 0;
  for_each_word<std::int8_t>(bytes, [&](std::int64_t word, std::int64_t count) {
    std::uint64_t bits = 0;
    if (count == 8)
      bits = reinterpret_cast<const std::uint64_t*>(c)[word];
    else
      for (std::int64_t i = 0; i < count; ++i)
        bits |= static_cast<std::uint64_t>(c[8 * word + i]) << 8 * i;
    sum += fingerprint_of(bits, word);
  });
  for (int lanes = kWarp / 2; lanes > 0; lanes /= 2) sum += __shfl_xor_sync(0xffffffff, sum, lanes);
  if (threadIdx.x % kWarp == 0)
    atomicAdd(&findings[blockIdx.y].prints[which], static_cast<unsigned long long>(sum));
}

// As the CPU's check says it.
inline Verdict verdict_of(const Findings& found, const Problem& p, const OperandLayout& layout) {
  Verdict verdict;
  for (const Verdict& each : found.verdicts) verdict.merge(each);
  verdict.by_rows = true;
  verdict.changed_later = found.prints[0] != found.prints[1];
  verdict.inputs_changed = found.differing > 0;
  if (found.behind > 0)
    verdict.outside_bytes =
        layout.total - static_cast<std::int64_t>(found.behind) - layout.c - layout.c_bytes + 1;
  else if (found.before > 0)
    verdict.outside_bytes = static_cast<std::int64_t>(found.before) - 1 - layout.c;
  verdict.wrong_rows = static_cast<std::int64_t>(found.wrong_rows);
  verdict.first_wrong_row =
      found.wrong_rows > 0 ? rows_of_c(p) - static_cast<std::int64_t>(found.last_rows) : -1;
  return verdict;
}

}  // namespace gemm::bench
