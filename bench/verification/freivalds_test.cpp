// Freivalds' check: it takes a right C in every layout, refuses one wrong element wherever it is,
// and names it. On the CPU, and (label GPU) on the GPU.
#include "bench/verification/freivalds.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bench/device/problem_data.hpp"
#include "bench/device/test_backend.hpp"
#include "bench/measurement/measurement.hpp"

namespace gemm::bench {
namespace {

constexpr Problem kProblem{150, 131, 67, Precision::f32};
constexpr std::uint64_t kSecret = 5;

// Operands with a right C, rounded once, which tests then spoil.
class Checked {
 public:
  explicit Checked(Backend& backend, Layout layout = Layout::nn, std::int32_t batch = 1)
      : backend_(backend),
        p_{kProblem.m, kProblem.n, kProblem.k, kProblem.precision, layout, batch},
        data_(backend, p_, Fill::uniform, 5, 1, Reference::rows) {
    const auto elements = static_cast<std::size_t>(elements_of_c(p_));
    const Buffer sums = backend.allocate(2 * elements * sizeof(double));
    auto* expected = reinterpret_cast<double*>(sums.get());
    backend.reference(p_, data_.sets()[0], expected, expected + elements);
    std::vector<double> exact(elements);
    backend.copy(exact.data(), expected, elements * sizeof(double));
    for (const double value : exact) right_.push_back(static_cast<float>(value));
    restore();
  }

  void restore() { backend_.copy(data_.sets()[0].c, right_.data(), right_.size() * sizeof(float)); }
  void add(std::int64_t index, float error) {
    const float value = right_[static_cast<std::size_t>(index)] + error;
    backend_.copy(static_cast<float*>(data_.sets()[0].c) + index, &value, sizeof value);
  }
  // C of a product becomes that of another.
  void copy_product(std::int64_t from, std::int64_t to) {
    const std::int64_t each = p_.m * p_.n;
    backend_.copy(static_cast<float*>(data_.sets()[0].c) + to * each, right_.data() + from * each,
                  each * static_cast<std::int64_t>(sizeof(float)));
  }
  void poison() { data_.poison(); }
  Verdict verdict() const { return backend_.judge_rows(p_, data_.sets()[0], kSecret); }
  std::optional<std::string> text() const { return complaint(p_, verdict()); }

 private:
  Backend& backend_;
  Problem p_;
  ProblemData data_;
  std::vector<float> right_;
};

bool is_computed_exactly(std::int64_t index) {
  for (std::int64_t which = 0; which < kExactSamples; ++which)
    if (exact_index(kProblem, kSecret, which, -1) == index) return true;
  return false;
}

// Seen by its row alone.
std::int64_t hidden_index() {
  std::int64_t index = kProblem.m * kProblem.n / 3;
  while (is_computed_exactly(index)) ++index;
  return index;
}

void expect_right_is_taken_and_wrong_refused(Backend& backend) {
  for (const Layout layout : kLayouts)
    EXPECT_EQ(Checked(backend, layout).text(), std::nullopt) << name_of(layout);

  Checked c(backend);
  const std::int64_t index = hidden_index(), row = index / kProblem.n;
  for (const float error : {3e-2F, -1.0F, std::nanf(""), std::numeric_limits<float>::infinity()}) {
    c.add(index, error);
    const Verdict found = c.verdict();
    EXPECT_FALSE(found.passed()) << error;
    EXPECT_TRUE(found.by_rows);
    EXPECT_EQ(found.wrong_rows, 1) << error;
    EXPECT_EQ(found.first_wrong_row, row) << error;
    EXPECT_EQ(found.first_wrong, index) << "the element is found in its row";
    c.restore();
    EXPECT_TRUE(c.verdict().passed());
  }
  c.add(index, 2);
  const std::string element = "c[" + std::to_string(row) + "," + std::to_string(index % kProblem.n);
  for (const std::string& part : {element, std::string("1 of 150 rows")})
    EXPECT_NE(c.text()->find(part), std::string::npos) << *c.text();
  c.restore();

  const std::int64_t sampled = exact_index(kProblem, kSecret, 17, -1);
  c.add(sampled, 1e-4F);  // less than the sum of a row can tell
  EXPECT_EQ(c.verdict().wrong_rows, 0);
  EXPECT_EQ(c.verdict().first_wrong, sampled);
  c.poison();
  EXPECT_EQ(c.verdict().wrong_rows, kProblem.m);
  EXPECT_EQ(c.verdict().first_wrong_row, 0);
}

void expect_each_product_of_a_batch_is_checked(Backend& backend) {
  for (const Layout layout : kLayouts) {
    Checked c(backend, layout, 3);
    EXPECT_EQ(c.text(), std::nullopt) << name_of(layout);
    c.copy_product(0, 2);
    EXPECT_EQ(c.verdict().wrong_rows, kProblem.m) << name_of(layout);
    EXPECT_EQ(c.verdict().first_wrong_row, 2 * kProblem.m);
    for (const std::string part : {"c[2][0,", "150 of 450 rows", "row 0 of product 2"})
      EXPECT_NE(c.text()->find(part), std::string::npos) << *c.text();
  }
}

TEST(Freivalds, TakesWhatIsRightAndRefusesWhatIsWrong) {
  expect_right_is_taken_and_wrong_refused(*make_host_backend());
  expect_each_product_of_a_batch_is_checked(*make_host_backend());
}
TEST(Freivalds, DoesAsOnTheCpuOnTheGpu) {
  SKIP_WITHOUT_GPU();
  expect_right_is_taken_and_wrong_refused(*cuda());
  expect_each_product_of_a_batch_is_checked(*cuda());
}

// The CPU with so much memory free, or with an FP64 product that takes so long.
class Limited : public ForwardingBackend {
 public:
  explicit Limited(double free_bytes) : Limited(make_host_backend(), free_bytes) {}
  double free_bytes() const override { return free_bytes_; }

 private:
  Limited(std::unique_ptr<Backend> host, double free_bytes)
      : ForwardingBackend(*host), host_(std::move(host)), free_bytes_(free_bytes) {}
  std::unique_ptr<Backend> host_;
  double free_bytes_;
};

Verdict verdict_of(Backend& backend, const Options& options) {
  ProblemCache cache(backend, Fill::uniform, 1, false);
  const std::vector<Case> cases = make_cases({{700, 700, 8}}, {Precision::f32}, Device::Kind::cpu);
  Measurement measurement(backend, nullptr, cache, options, cases.front());
  measurement.prepare(1e9);
  TimingPlan plan = options.timing;
  plan.warmup_seconds = 0.01;
  plan.samples = 2;
  measurement.time(plan, 1e9);
  return measurement.verify();
}

TEST(Freivalds, IsTakenWhereTheProductDoesNotFitIntoMemory) {
  constexpr double kReserve = 256 << 20, kProduct = 16.0 * 700 * 700;
  Limited much(2 * kReserve), little(kReserve + kProduct);
  EXPECT_FALSE(verdict_of(much, {}).by_rows);
  EXPECT_TRUE(verdict_of(little, {}).by_rows);
}

}  // namespace
}  // namespace gemm::bench
