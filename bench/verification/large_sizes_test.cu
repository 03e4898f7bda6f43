// (label gpu) Matrices beyond 2^31 elements, and more rows than 64 times the longest grid.y: right
// without an FP64 product of the whole, which with its magnitudes would take 34 GB.
//
// Three checks of C = A * B, all in FP64:
//  - Freivalds (1977): C x = A (B x) for a few x of +1 and -1, every row;
//  - 4,096 elements anywhere, computed exactly;
//  - the corners of all tiles with 16, 32, 64, ... rows and columns, likewise.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include "bench/device/cuda_check.hpp"
#include "bench/device/element_types.cuh"
#include "bench/device/problem_data.hpp"
#include "bench/device/test_backend.hpp"
#include "kernels/layout.hpp"

namespace gemm::bench {
namespace {

constexpr int kVectors = 4, kThreads = 256, kWarp = 32;
constexpr std::int64_t kSampled = 4096;
constexpr std::int64_t kTile = 16;  // divides the other tiles

// Elements or rows that a check refuses.
struct Wrong {
  unsigned long long count, first;  // the lowest index; row-major

  __device__ void add(std::int64_t index) {
    atomicAdd(&count, 1ULL);
    atomicMin(&first, static_cast<unsigned long long>(index));
  }
};

struct Findings {
  Wrong rows = {0, ~0ULL}, sampled = rows, corners = rows;

  bool none() const { return rows.count + sampled.count + corners.count == 0; }
  std::string text(const Problem& p) const {
    const auto elements = [&](const Wrong& wrong, const char* check) {
      if (wrong.count == 0) return std::string();
      return std::to_string(wrong.count) + " wrong elements among " + check + ", the first c[" +
             std::to_string(wrong.first / p.n) + "," + std::to_string(wrong.first % p.n) + "]; ";
    };
    const std::string rows_text = rows.count == 0 ? ""
                                                  : std::to_string(rows.count) +
                                                        " rows differ from A (B x), the first is " +
                                                        std::to_string(rows.first) + "; ";
    return rows_text + elements(sampled, "4,096 samples") + elements(corners, "tile corners");
  }
};

// Bytes are multiplied to something wider.
template <typename In>
using Out = std::conditional_t<
    sizeof(In) != 1, In,
    std::conditional_t<std::is_same_v<In, std::int8_t>, std::int32_t, __nv_bfloat16>>;

template <typename In>
struct Matrices {
  const In *a, *b;
  const Out<In>* c;
};

// What does not depend on C.
struct Sketch {
  const std::uint8_t* signs;  // of each column, one bit for each x
  const double* abx;          // A (B x): kVectors for each row
  const double* tolerance;    // of each row
};

__device__ double signed_by(double value, unsigned signs, int vector) {
  return (signs >> vector & 1) != 0 ? -value : value;
}

__device__ double sum_of_warp(double value) {
  for (int lanes = kWarp / 2; lanes > 0; lanes /= 2)
    value += __shfl_xor_sync(0xffffffff, value, lanes);
  return value;
}

__device__ std::int64_t warp_index() {
  return (std::int64_t{blockIdx.x} * kThreads + threadIdx.x) / kWarp;
}
unsigned warp_blocks(std::int64_t warps) {
  return static_cast<unsigned>((warps * kWarp + kThreads - 1) / kThreads);
}

__global__ void draw_signs(std::int64_t n, std::uint8_t* signs) {
  const std::int64_t j = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (j < n) signs[j] = static_cast<std::uint8_t>(random_bits(99, j) >> 56);
}

// A warp for each row of B: B x, and the length of the row.
template <typename In>
__global__ void project_b(Problem p, const In* b, const std::uint8_t* signs, double* bx,
                          double* lengths) {
  const std::int64_t row = warp_index();
  if (row >= p.k) return;
  double sums[kVectors] = {}, squares = 0;
  for (std::int64_t j = threadIdx.x % kWarp; j < p.n; j += kWarp) {
    const double value = as_double(b[index_in_b(p, row, j)]);
    for (int v = 0; v < kVectors; ++v) sums[v] += signed_by(value, signs[j], v);
    squares += value * value;
  }
  for (int v = 0; v < kVectors; ++v) bx[row * kVectors + v] = sum_of_warp(sums[v]);
  lengths[row] = sqrt(sum_of_warp(squares));
}

// A warp for each row of A: A (B x), and how far C x may be from it.
//
// It may be `share` times the length of the row |A| |B|, which is at most the sum over l of |a_l|
// times the length of row l of B (the triangle inequality).
template <typename In>
__global__ void project_a(Problem p, const In* a, const double* bx, const double* lengths,
                          double share, double* abx, double* tolerance) {
  const std::int64_t row = warp_index();
  if (row >= p.m) return;
  double sums[kVectors] = {}, size = 0;
  for (std::int64_t l = threadIdx.x % kWarp; l < p.k; l += kWarp) {
    const double value = as_double(a[index_in_a(p, row, l)]);
    for (int v = 0; v < kVectors; ++v) sums[v] += value * bx[l * kVectors + v];
    size += fabs(value) * lengths[l];
  }
  for (int v = 0; v < kVectors; ++v) abx[row * kVectors + v] = sum_of_warp(sums[v]);
  tolerance[row] = share * sum_of_warp(size);
}

// An element of C is a sum of k products and has k + 2 errors, each of at most a round-off of its
// sum |a b|, and those of its operands and of its output; x adds up those of a row, where they stay
// below 8 deviations by the argument of bound_for. What that grants to FP8's sums already is some.
double share_of_length(const Problem& p, const Bound& bound) {
  const PrecisionTraits& traits = traits_of(p.precision);
  const double coarse = traits.coarse_error > 0 ? bound.of_magnitude + bound.of_expected : 0;
  return 8 * (std::sqrt(static_cast<double>(p.k) + 2) * traits.accumulate_error +
              traits.input_error + traits.output_error) +
         coarse;
}

// A warp for each row of C. NaN is not within any tolerance.
template <typename T>
__global__ void check_rows(Problem p, const T* c, Sketch sketch, Findings* findings) {
  const std::int64_t row = warp_index();
  if (row >= p.m) return;
  double sums[kVectors] = {};
  for (std::int64_t j = threadIdx.x % kWarp; j < p.n; j += kWarp) {
    const double value = as_double(c[row * p.n + j]);
    for (int v = 0; v < kVectors; ++v) sums[v] += signed_by(value, sketch.signs[j], v);
  }
  bool right = true;
  for (int v = 0; v < kVectors; ++v) {
    const double error = fabs(sum_of_warp(sums[v]) - sketch.abx[row * kVectors + v]);
    right = right && error <= sketch.tolerance[row];
  }
  if (!right && threadIdx.x % kWarp == 0) findings->rows.add(row);
}

template <typename In>
__device__ bool is_right(const Problem& p, const Matrices<In>& on, const Bound& bound,
                         std::int64_t row, std::int64_t column) {
  double expected = 0, magnitude = 0;
  for (std::int64_t l = 0; l < p.k; ++l) {
    const double product =
        as_double(on.a[index_in_a(p, row, l)]) * as_double(on.b[index_in_b(p, l, column)]);
    expected += product;
    magnitude += fabs(product);
  }
  return judge(as_double(on.c[row * p.n + column]), expected, magnitude, bound).passed;
}

// The index of one of the elements that are drawn from all of C.
__host__ __device__ std::int64_t sampled_index(const Problem& p, std::int64_t sample) {
  return static_cast<std::int64_t>(random_bits(7, sample) % static_cast<std::uint64_t>(p.m * p.n));
}

template <typename In>
__global__ void check_sampled(Problem p, Matrices<In> on, Bound bound, Findings* findings) {
  const std::int64_t sample = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (sample >= kSampled) return;
  const std::int64_t index = sampled_index(p, sample);
  if (!is_right(p, on, bound, index / p.n, index % p.n)) findings->sampled.add(index);
}

// Rows, or columns, in which tiles begin or end: 0, 15, 16, 31, ... and the last.
constexpr std::int64_t edges_of(std::int64_t size) { return 2 * ((size + kTile - 1) / kTile); }
__host__ __device__ std::int64_t edge(std::int64_t which, std::int64_t size) {
  const std::int64_t at = which / 2 * kTile + which % 2 * (kTile - 1);
  return at < size ? at : size - 1;
}

template <typename In>
__global__ void check_corners(Problem p, Matrices<In> on, Bound bound, std::int64_t across,
                              std::int64_t count, Findings* findings) {
  const std::int64_t stride = std::int64_t{gridDim.x} * kThreads;
  for (std::int64_t i = std::int64_t{blockIdx.x} * kThreads + threadIdx.x; i < count; i += stride) {
    const std::int64_t row = edge(i / across, p.m), column = edge(i % across, p.n);
    if (!is_right(p, on, bound, row, column)) findings->corners.add(row * p.n + column);
  }
}

template <typename T>
T* as(const Buffer& buffer) {
  return reinterpret_cast<T*>(buffer.get());
}

// The operands of a problem, a C between guards, and what it takes to check it.
class LargeProblem {
 public:
  explicit LargeProblem(const Problem& p)
      : p_(p),
        bound_(bound_for(p)),
        layout_(p),
        memory_(cuda()->allocate(bytes(layout_.total))),
        operands_{memory_.get() + layout_.a, memory_.get() + layout_.b, memory_.get() + layout_.c},
        signs_(cuda()->allocate(bytes(p.n))),
        abx_(cuda()->allocate(bytes(p.m * kVectors * 8))),
        tolerance_(cuda()->allocate(bytes(p.m * 8))),
        findings_(cuda()->allocate(sizeof(Findings))) {
    cuda()->poison(memory_.get(), bytes(layout_.total));
    const ElementType input = traits_of(p.precision).input;
    cuda()->fill(memory_.get() + layout_.a, input, p.m * p.k, Fill::uniform, 2);
    cuda()->fill(memory_.get() + layout_.b, input, p.k * p.n, Fill::uniform, 3);
    const Buffer bx = cuda()->allocate(bytes(p.k * kVectors * 8));
    const Buffer lengths = cuda()->allocate(bytes(p.k * 8));
    cuda()->run([&](Stream stream) {
      draw_signs<<<warp_blocks((p.n + kWarp - 1) / kWarp), kThreads, 0, stream>>>(
          p.n, as<std::uint8_t>(signs_));
      with_type(input, [&]<typename In>(In) {
        const auto on = matrices<In>();
        project_b<<<warp_blocks(p.k), kThreads, 0, stream>>>(p, on.b, as<std::uint8_t>(signs_),
                                                             as<double>(bx), as<double>(lengths));
        project_a<<<warp_blocks(p.m), kThreads, 0, stream>>>(
            p, on.a, as<double>(bx), as<double>(lengths), share_of_length(p, bound_),
            as<double>(abx_), as<double>(tolerance_));
      });
    });
  }

  const Operands& operands() const { return operands_; }
  template <typename In>
  Matrices<In> matrices() const {
    return {static_cast<const In*>(operands_.a), static_cast<const In*>(operands_.b),
            static_cast<const Out<In>*>(operands_.c)};
  }

  void poison() { cuda()->poison(operands_.c, bytes(layout_.c_bytes)); }

  // Of what now is in C.
  Findings check() const {
    auto* found = as<Findings>(findings_);
    Findings findings;
    cuda()->copy(found, &findings, sizeof findings);
    const std::int64_t across = edges_of(p_.n), corners = edges_of(p_.m) * across;
    const Sketch sketch = {as<std::uint8_t>(signs_), as<double>(abx_), as<double>(tolerance_)};
    with_type(traits_of(p_.precision).input, [&]<typename In>(In) {
      const auto on = matrices<In>();
      cuda()->run([&](Stream stream) {
        check_rows<<<warp_blocks(p_.m), kThreads, 0, stream>>>(p_, on.c, sketch, found);
        check_sampled<<<kSampled / kThreads, kThreads, 0, stream>>>(p_, on, bound_, found);
        check_corners<<<4096, kThreads, 0, stream>>>(p_, on, bound_, across, corners, found);
      });
    });
    cuda()->copy(&findings, found, sizeof findings);
    return findings;
  }

  std::string complaint() const {
    const Findings findings = check();
    std::string text = findings.none() ? "" : findings.text(p_);
    const std::int64_t end = layout_.c + layout_.c_bytes;
    if (cuda()->first_changed(memory_.get() + end, bytes(layout_.total - end)) >= 0)
      text += "wrote past the end of C";
    if (cuda()->last_changed(memory_.get() + layout_.c - kGuardBytes, kGuardBytes) >= 0)
      text += "wrote before the beginning of C";
    return text;
  }

 private:
  static std::size_t bytes(std::int64_t count) { return static_cast<std::size_t>(count); }

  Problem p_;
  Bound bound_;
  OperandLayout layout_;
  Buffer memory_;
  Operands operands_;
  Buffer signs_, abx_, tolerance_, findings_;
};

// Those of ours. A kernel that computes FP32 counts elements there as it does in other precisions.
std::vector<Case> cases_of(const Problem& p) {
  std::vector<Case> cases =
      make_cases({{p.m, p.n, p.k}}, {p.precision}, Device::Kind::gpu, false, {p.layout});
  std::erase_if(cases, [&](const Case& one) {
    return one.kernel->is_library() ||
           (p.precision != Precision::f32 &&
            std::ranges::count(one.kernel->precisions, Precision::f32) > 0) ||
           (one.kernel->unsupported && one.kernel->unsupported(p, cuda()->device()));
  });
  return cases;
}

// How many kernels there were.
int expect_right(const Problem& p) {
  const std::vector<Case> cases = cases_of(p);
  if (cases.empty()) return 0;
  LargeProblem problem(p);
  for (const Case& one : cases) {
    problem.poison();
    cuda()->run(one.kernel->prepare(p, cuda()->device(), problem.operands()));
    EXPECT_EQ(problem.complaint(), "") << one.name();
  }
  return static_cast<int>(cases.size());
}

void expect_all_right(const Shape& shape) {
  SKIP_WITHOUT_GPU();
  Problem p{shape.m, shape.n, shape.k, Precision::f32};
  const double needed = bytes_minimum(p) + 8.0 * (kVectors + 1) * (p.m + p.k) + (512 << 20);
  if (const double free = cuda()->free_bytes(); needed > free)
    GTEST_SKIP() << name_of(shape) << " needs " << std::ceil(1e-9 * needed) << " GB of memory, and "
                 << 1e-9 * free << " are free";
  int checked = 0;
  for (const PrecisionTraits& traits : kPrecisions)
    for (const Layout layout : kLayouts) {
      p.precision = traits.precision;
      p.layout = layout;
      checked += expect_right(p);
    }
  EXPECT_GT(checked, 0);
}

TEST(LargeSizes, AreRightWithMoreThanTwoToThe31ElementsInCOnTheGpu) {
  expect_all_right({46400, 46400, 8});
}

TEST(LargeSizes, AreRightWithMoreThanTwoToThe31ElementsInAOnTheGpu) {
  expect_all_right({70000, 8, 32768});
}

// More than gridDim.y holds, whatever tile up to 64 rows it counts.
TEST(LargeSizes, AreRightWithMoreRowsThanTheGridHasOnTheGpu) { expect_all_right({4194307, 8, 16}); }

// --- What the checks refuse ----------------------------------------------------------------------

// C = A * B, rounded once.
__global__ void multiply(Problem p, Matrices<float> on, float* c) {
  const std::int64_t i = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (i >= p.m * p.n) return;
  double sum = 0;
  for (std::int64_t l = 0; l < p.k; ++l)
    sum += double{on.a[index_in_a(p, i / p.n, l)]} * double{on.b[index_in_b(p, l, i % p.n)]};
  c[i] = static_cast<float>(sum);
}

class LargeSizeChecks : public testing::Test {
 protected:
  static constexpr Problem kProblem{1037, 777, 33, Precision::f32};

  void SetUp() override {
    SKIP_WITHOUT_GPU();
    multiply_as(Layout::nn, Layout::nn);
    ASSERT_EQ(problem_->complaint(), "");
  }

  // Operands stored in one layout, read as if they were in another.
  void multiply_as(Layout read, Layout stored) {
    Problem p = kProblem;
    p.layout = stored;
    problem_ = std::make_unique<LargeProblem>(p);
    problem_->poison();
    p.layout = read;
    cuda()->run([&](Stream stream) {
      const std::int64_t blocks = (p.m * p.n + kThreads - 1) / kThreads;
      multiply<<<static_cast<unsigned>(blocks), kThreads, 0, stream>>>(
          p, problem_->matrices<float>(), c());
    });
  }

  float* c() { return static_cast<float*>(problem_->operands().c); }
  void set(std::int64_t index, float value) { cuda()->copy(c() + index, &value, sizeof value); }
  float get(std::int64_t index) {
    float value = 0;
    cuda()->copy(&value, c() + index, sizeof value);
    return value;
  }

  static bool is_corner(std::int64_t index) {
    const auto on_edge = [](std::int64_t at, std::int64_t size) {
      for (std::int64_t i = 0; i < edges_of(size); ++i)
        if (edge(i, size) == at) return true;
      return false;
    };
    return on_edge(index / kProblem.n, kProblem.m) && on_edge(index % kProblem.n, kProblem.n);
  }
  static bool is_sampled(std::int64_t index) {
    for (std::int64_t i = 0; i < kSampled; ++i)
      if (sampled_index(kProblem, i) == index) return true;
    return false;
  }
  // Seen by the rows alone.
  static std::int64_t hidden_index() {
    std::int64_t index = kProblem.m * kProblem.n / 3;
    while (is_corner(index) || is_sampled(index)) ++index;
    return index;
  }

  std::unique_ptr<LargeProblem> problem_;
};

TEST_F(LargeSizeChecks, RowsRefuseOneWrongElementWhereverItIsOnTheGpu) {
  const std::int64_t index = hidden_index();
  for (const float by : {2e-2F, -1.0F, std::nanf(""), HUGE_VALF}) {
    const float right = get(index);
    set(index, right + by);
    const Findings found = problem_->check();
    EXPECT_EQ(found.rows.count, 1U) << by;
    EXPECT_EQ(found.rows.first, static_cast<unsigned long long>(index / kProblem.n)) << by;
    EXPECT_EQ(found.sampled.count + found.corners.count, 0U) << by;
    set(index, right);
    EXPECT_TRUE(problem_->check().none());
  }
}

// Less than what the rows of this C can tell.
TEST_F(LargeSizeChecks, SamplesAndCornersRefuseASmallErrorOnTheGpu) {
  std::int64_t sample = 0;
  while (is_corner(sampled_index(kProblem, sample))) ++sample;
  const std::int64_t index = sampled_index(kProblem, sample), corner = 32 * kProblem.n + 15;
  set(index, get(index) + 1e-4F);
  Findings found = problem_->check();
  EXPECT_GE(found.sampled.count, 1U);
  EXPECT_EQ(found.sampled.first, static_cast<unsigned long long>(index));
  EXPECT_EQ(found.corners.count, 0U);
  set(corner, get(corner) + 1e-4F);
  found = problem_->check();
  EXPECT_EQ(found.corners.count, 1U);
  EXPECT_EQ(found.corners.first, static_cast<unsigned long long>(corner));
  EXPECT_EQ(found.rows.count, 0U);
}

TEST_F(LargeSizeChecks, SamplesAndCornersRefuseNaNOnTheGpu) {
  std::int64_t sample = 0;
  while (is_corner(sampled_index(kProblem, sample))) ++sample;
  set(sampled_index(kProblem, sample), std::nanf(""));
  set(kProblem.m * kProblem.n - 1, std::nanf(""));
  const Findings found = problem_->check();
  EXPECT_GE(found.sampled.count, 1U);
  EXPECT_GE(found.corners.count, 1U);
  EXPECT_EQ(found.rows.count, 2U);
}

TEST_F(LargeSizeChecks, AllRefuseARowThatIsShiftedOnTheGpu) {
  std::int64_t sample = 0;  // one in a row with which tiles begin
  while (sampled_index(kProblem, sample) / kProblem.n % kTile != 0) ++sample;
  const std::int64_t row = sampled_index(kProblem, sample) / kProblem.n, first = row * kProblem.n;
  const Buffer copy = cuda()->allocate(kProblem.n * sizeof(float));
  cuda()->copy(copy.get(), c() + first, kProblem.n * sizeof(float));
  cuda()->copy(c() + first + 1, copy.get(), (kProblem.n - 1) * sizeof(float));
  const Findings found = problem_->check();
  EXPECT_EQ(found.rows.count, 1U);
  EXPECT_EQ(found.rows.first, static_cast<unsigned long long>(row));
  EXPECT_GT(found.corners.count, 0U);
  EXPECT_GT(found.sampled.count, 0U);
}

TEST_F(LargeSizeChecks, AllRefuseACThatNobodyWroteOnTheGpu) {
  problem_->poison();
  const Findings found = problem_->check();
  EXPECT_EQ(found.rows.count, static_cast<unsigned long long>(kProblem.m));
  EXPECT_EQ(found.sampled.count, static_cast<unsigned long long>(kSampled));
  EXPECT_EQ(found.corners.count,
            static_cast<unsigned long long>(edges_of(kProblem.m) * edges_of(kProblem.n)));
}

TEST_F(LargeSizeChecks, KnowTheLayoutOnTheGpu) {
  for (const Layout stored : kLayouts)
    for (const Layout read : kLayouts) {
      multiply_as(read, stored);
      const Findings found = problem_->check();
      if (read == stored) {
        EXPECT_TRUE(found.none()) << name_of(stored) << ": " << found.text(kProblem);
        continue;
      }
      // All of C but what is right by chance, such as the first product of the first row.
      const auto nearly = [](std::int64_t all) {
        return static_cast<unsigned long long>(all) * 9 / 10;
      };
      EXPECT_GT(found.rows.count, nearly(kProblem.m)) << name_of(read);
      EXPECT_GT(found.sampled.count, nearly(kSampled)) << name_of(read);
      EXPECT_GT(found.corners.count, nearly(edges_of(kProblem.m) * edges_of(kProblem.n)))
          << name_of(read);
    }
}

TEST_F(LargeSizeChecks, GuardsRefuseAnElementPastTheEndOnTheGpu) {
  set(kProblem.m * kProblem.n, 0);
  EXPECT_EQ(problem_->complaint(), "wrote past the end of C");
}

}  // namespace
}  // namespace gemm::bench
