// (label GPU) Matrices beyond 2^31 elements, and more rows than 64 times the longest grid.y: right
// by Freivalds' check of every row (freivalds.hpp). An FP64 product of the whole would take 34 GB
// with its magnitudes.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "bench/cases/cases.hpp"
#include "bench/device/problem_data.hpp"
#include "bench/device/test_backend.hpp"

namespace gemm::bench {
namespace {

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
  ProblemData data(*cuda(), p, Fill::uniform, 1, 1, Reference::rows);
  for (const Case& one : cases) {
    data.poison();
    cuda()->run(one.kernel->prepare(p, cuda()->device(), data.sets()[0]));
    EXPECT_EQ(complaint(p, data.judge(p, 1)).value_or(""), "") << one.name();
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

}  // namespace
}  // namespace gemm::bench
