// (label GPU) Matrices beyond 2^31 elements, and more rows than 64 times the longest grid.y: right
// without an FP64 product of the whole, which with its magnitudes would take 34 GB.
//
// Freivalds' check of every row (freivalds.hpp), and the corners of all tiles with 16, 32, 64, ...
// rows and columns, computed exactly.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "bench/base/cuda.hpp"
#include "bench/cases/cases.hpp"
#include "bench/device/problem_data.hpp"
#include "bench/device/test_backend.hpp"
#include "bench/device/verify_cuda.cuh"
#include "kernels/layout.hpp"

namespace gemm::bench {
namespace {

constexpr std::int64_t kTile = 16;  // divides the other tiles

// Rows, or columns, in which tiles begin or end: 0, 15, 16, 31, ... and the last.
constexpr std::int64_t edges_of(std::int64_t size) { return 2 * ((size + kTile - 1) / kTile); }
__host__ __device__ std::int64_t edge(std::int64_t which, std::int64_t size) {
  const std::int64_t at = which / 2 * kTile + which % 2 * (kTile - 1);
  return at < size ? at : size - 1;
}

template <typename In>
__global__ void judge_corners_kernel(Problem p, const In* a, const In* b, const Out<In>* c,
                                     Bound bound, Verdict* verdicts) {
  const std::int64_t across = edges_of(p.n), count = edges_of(p.m) * across;
  const std::int64_t stride = std::int64_t{gridDim.x} * kJudges;
  Verdict verdict;
  for (std::int64_t i = std::int64_t{blockIdx.x} * kJudges + threadIdx.x; i < count; i += stride)
    add_exactly(verdict, p, a, b, c, bound, edge(i / across, p.m) * p.n + edge(i % across, p.n),
                AsDouble{});
  merge_block(verdict, verdicts);
}

// The operands of a problem; its C is verified by Freivalds' check and at the corners of tiles.
class LargeProblem {
 public:
  explicit LargeProblem(const Problem& p)
      : p_(p), data_(*cuda(), p, Fill::uniform, 1, 1, Reference::rows) {}

  const Operands& operands() const { return data_.sets()[0]; }
  void poison() { data_.poison(); }
  Verdict rows() const { return data_.judge(p_, 1); }

  Verdict corners() const {
    constexpr unsigned kBlocks = 4096;
    const Buffer buffer = cuda()->allocate(kBlocks * sizeof(Verdict));
    auto* verdicts = reinterpret_cast<Verdict*>(buffer.get());
    with_type(traits_of(p_.precision).input, [&]<typename In>(In) {
      cuda()->run([&](Stream stream) {
        judge_corners_kernel<<<kBlocks, kJudges, 0, stream>>>(
            p_, static_cast<const In*>(operands().a), static_cast<const In*>(operands().b),
            static_cast<const Out<In>*>(operands().c), bound_for(p_), verdicts);
      });
    });
    std::vector<Verdict> each(kBlocks);
    cuda()->copy(each.data(), verdicts, kBlocks * sizeof(Verdict));
    Verdict all{.by_rows = true};
    for (const Verdict& verdict : each) all.merge(verdict);
    return all;
  }

  std::string text() const {
    return complaint(p_, rows()).value_or("") + complaint(p_, corners()).value_or("");
  }

 private:
  Problem p_;
  ProblemData data_;
};

// Those of ours. A kernel that computes FP32 counts elements there as it does in other precisions.
std::vector<Case> cases_of(const Problem& p) {
  std::vector<Case> cases =
      make_cases({{p.m, p.n, p.k}}, {p.precision}, Device::Kind::gpu, false, {p.layout});
  std::erase_if(cases, [&](const Case& one) {
    return one.kernel->is_library() || one.kernel->is_users() ||  // of tests before
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
    EXPECT_EQ(problem.text(), "") << one.name();
  }
  return static_cast<int>(cases.size());
}

void expect_all_right(const Shape& shape) {
  SKIP_WITHOUT_GPU();
  Problem p{shape.m, shape.n, shape.k, Precision::f32};
  const double needed = ProblemData::bytes_needed(p, 1, Reference::rows) + (512 << 20);
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

class LargeSizeChecks : public testing::Test {
 protected:
  static constexpr Problem kProblem{1037, 777, 33, Precision::f32};

  void SetUp() override {
    SKIP_WITHOUT_GPU();
    multiply_as(Layout::nn, Layout::nn);
    ASSERT_EQ(problem_->text(), "");
  }

  // Operands stored in one layout, read as if they were in another; each product rounded once.
  void multiply_as(Layout read, Layout stored) {
    Problem p = kProblem;
    p.layout = stored;
    problem_ = std::make_unique<LargeProblem>(p);
    p.layout = read;
    const auto elements = static_cast<std::size_t>(p.m * p.n);
    const Buffer sums = cuda()->allocate(2 * elements * sizeof(double));
    auto* expected = reinterpret_cast<double*>(sums.get());
    cuda()->reference(p, problem_->operands().a, problem_->operands().b, expected,
                      expected + elements);
    std::vector<double> exact(elements);
    cuda()->copy(exact.data(), expected, elements * sizeof(double));
    const std::vector<float> rounded(exact.begin(), exact.end());
    cuda()->copy(c(), rounded.data(), elements * sizeof(float));
  }

  float* c() { return static_cast<float*>(problem_->operands().c); }
  void set(std::int64_t index, float value) { cuda()->copy(c() + index, &value, sizeof value); }
  float get(std::int64_t index) {
    float value = 0;
    cuda()->copy(&value, c() + index, sizeof value);
    return value;
  }

  std::unique_ptr<LargeProblem> problem_;
};

TEST_F(LargeSizeChecks, CornersRefuseASmallErrorAndNaNOnTheGpu) {
  const std::int64_t corner = 32 * kProblem.n + 15;
  for (const float by : {1e-4F, std::nanf("")}) {
    const float right = get(corner);
    set(corner, right + by);
    const Verdict found = problem_->corners();
    EXPECT_EQ(found.wrong, 1) << by;
    EXPECT_EQ(found.first_wrong, corner) << by;
    set(corner, right);
    EXPECT_TRUE(problem_->corners().passed());
  }
}

TEST_F(LargeSizeChecks, KnowTheLayoutOnTheGpu) {
  for (const Layout stored : kLayouts)
    for (const Layout read : kLayouts) {
      multiply_as(read, stored);
      if (read == stored) {
        EXPECT_EQ(problem_->text(), "") << name_of(stored);
        continue;
      }
      // All of C but what is right by chance, such as the first product of the first row.
      const auto nearly = [](std::int64_t all) { return all * 9 / 10; };
      EXPECT_GT(problem_->rows().wrong_rows, nearly(kProblem.m)) << name_of(read);
      EXPECT_GT(problem_->corners().wrong, nearly(edges_of(kProblem.m) * edges_of(kProblem.n)))
          << name_of(read);
    }
}

}  // namespace
}  // namespace gemm::bench
