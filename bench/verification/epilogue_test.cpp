// Epilogues: each check takes what is right and refuses what is wrong in what was added to C, and
// in how. On the CPU, and (label GPU) on the GPU.
#include "bench/verification/epilogue.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "bench/device/test_backend.hpp"
#include "kernels/epilogue.hpp"

namespace gemm::bench {
namespace {

constexpr std::uint64_t kSeed = 11, kSecret = 5;
constexpr std::int64_t kM = 75, kN = 70;

Problem problem(Activation activation, std::int64_t k = 67) {
  Problem p{kM, kN, k, Precision::f32};
  p.activation = activation;
  return p;
}

// Of an element of C, in double, what a kernel would compute it from.
struct At {
  double sum;
  std::int64_t index, row, column;
  const std::vector<float>&bias, &bias_of_other_set, &residual;
};
using Element = std::function<double(const At&)>;

// Two FP32 sets with values for a check; tests write their C.
class Sets {
 public:
  Sets(Backend& backend, const Problem& p)
      : backend_(backend),
        memory_(backend.allocate(2 * OperandLayout(p).total)),
        sums_(backend.allocate(2 * elements_of_c(p) * static_cast<std::int64_t>(sizeof(double)))),
        ring_{p, Fill::uniform, memory_.get(), 2} {
    backend.poison(memory_.get(), 2 * ring_.layout().total);
    backend.renew(ring_, kSeed);
    for (std::int64_t set = 0; set < 2; ++set) {
      const Operands o = ring_.operands(set);
      backend.reference(p, o, expected(), expected() + elements_of_c(p));
      sums_of_.push_back(fetched<double>(expected(), elements_of_c(p)));
      bias_.push_back(fetched<float>(o.bias, elements_of_bias(p)));
      residual_.push_back(fetched<float>(o.residual, elements_of_residual(p)));
    }
  }

  void write(const Element& element) {
    const std::int64_t n = ring_.problem.n;
    for (std::int64_t set = 0; set < 2; ++set) {
      std::vector<float> c;
      for (std::int64_t index = 0; index < elements_of_c(ring_.problem); ++index)
        c.push_back(static_cast<float>(element({sums_of_[set][index], index, index / n, index % n,
                                                bias_[set], bias_[1 - set], residual_[set]})));
      backend_.copy(ring_.operands(set).c, c.data(),
                    static_cast<std::int64_t>(c.size() * sizeof(float)));
    }
  }
  void change(const void* operand, float value) {
    backend_.copy(const_cast<void*>(operand), &value, sizeof value);
  }
  Operands operands() const { return ring_.operands(1); }

  // By each check that the problem has.
  std::vector<std::optional<std::string>> complaints() {
    const Problem& p = ring_.problem;
    const std::int64_t places[] = {0, 1};
    std::vector<Verdict> verdicts{
        backend_.check_renewed(ring_, kSeed, places, kSecret)->read(),
        backend_.judge(p, operands(), expected(), expected() + elements_of_c(p), bound_for(p))};
    if (checks_rows(p)) verdicts.push_back(backend_.judge_rows(p, operands(), kSecret));
    std::vector<std::optional<std::string>> all;
    for (const Verdict& one : verdicts) all.push_back(complaint(p, one));
    return all;
  }

 private:
  double* expected() { return reinterpret_cast<double*>(sums_.get()); }
  template <typename T>
  std::vector<T> fetched(const void* from, std::int64_t count) {
    std::vector<T> values(static_cast<std::size_t>(count));
    if (count > 0) backend_.copy(values.data(), from, count * static_cast<std::int64_t>(sizeof(T)));
    return values;
  }

  Backend& backend_;
  Buffer memory_, sums_;
  RingMemory ring_;
  std::vector<std::vector<double>> sums_of_;  // of each set
  std::vector<std::vector<float>> bias_, residual_;
};

double biased(const At& e) { return e.sum + e.bias[e.column]; }
double by_erf(double x) { return x / 2 * (1 + std::erf(x / std::sqrt(2.0))); }

struct Case {
  const char* what;
  Activation activation;
  Element element;
  bool right = false;
};
std::vector<Case> cases() {
  using enum Activation;
  return {
      {"bias", bias, biased, true},
      {"bias and GELU", bias_gelu, [](const At& e) { return gelu(biased(e)); }, true},
      {"residual", residual, [](const At& e) { return e.sum + e.residual[e.index]; }, true},
      {"no bias", bias, [](const At& e) { return e.sum; }},
      {"twice the bias", bias, [](const At& e) { return biased(e) + e.bias[e.column]; }},
      {"bias of the next column", bias,
       [](const At& e) { return e.sum + e.bias[(e.column + 1) % kN]; }},
      {"bias of the row", bias, [](const At& e) { return e.sum + e.bias[e.row % kN]; }},
      {"bias of another set", bias,
       [](const At& e) { return e.sum + e.bias_of_other_set[e.column]; }},
      {"no GELU", bias_gelu, biased},
      {"GELU before the bias", bias_gelu,
       [](const At& e) { return gelu(e.sum) + e.bias[e.column]; }},
      {"GELU twice", bias_gelu, [](const At& e) { return gelu(gelu(biased(e))); }},
      {"ReLU", bias_gelu, [](const At& e) { return std::max(0.0, biased(e)); }},
      {"GELU by erf", bias_gelu, [](const At& e) { return by_erf(biased(e)); }},
      {"no residual", residual, [](const At& e) { return e.sum; }},
      {"residual of the next element", residual,
       [](const At& e) { return e.sum + e.residual[(e.index + 1) % (kM * kN)]; }},
      {"residual of the next row", residual,
       [](const At& e) { return e.sum + e.residual[(e.index + kN) % (kM * kN)]; }},
  };
}

void expect_right_is_taken_and_wrong_refused(Backend& backend) {
  for (const Case& one : cases()) {
    Sets sets(backend, problem(one.activation));
    sets.write(one.element);
    for (const auto& found : sets.complaints())
      EXPECT_EQ(found == std::nullopt, one.right) << one.what << ": " << found.value_or("passed");
  }
}

void expect_changed_operands_are_found(Backend& backend) {
  for (const Activation activation : {Activation::bias, Activation::residual}) {
    Sets sets(backend, problem(activation));
    sets.write(cases()[activation == Activation::bias ? 0 : 2].element);
    const Operands o = sets.operands();
    const void* const added = activation == Activation::bias ? o.bias : o.residual;
    sets.change(static_cast<const float*>(added) - 1, 0);
    EXPECT_NE(sets.complaints()[0].value_or("").find("before its beginning"), std::string::npos);
    sets.change(added, 2);
    EXPECT_NE(sets.complaints()[0], std::nullopt);
  }
}

TEST(Epilogue, ChecksTakeWhatIsRightAndRefuseWhatIsWrong) {
  expect_right_is_taken_and_wrong_refused(*make_host_backend());
  expect_changed_operands_are_found(*make_host_backend());
}
TEST(Epilogue, ChecksDoAsOnTheCpuOnTheGpu) {
  SKIP_WITHOUT_GPU();
  expect_right_is_taken_and_wrong_refused(*cuda());
  expect_changed_operands_are_found(*cuda());
}

// At a large k only the sparse lines, sums of eight products, are so precise.
TEST(Epilogue, GeluByErfIsFoundAtAnyK) {
  const auto host = make_host_backend();
  Sets sets(*host, problem(Activation::bias_gelu, 8192));
  sets.write([](const At& e) { return gelu(biased(e)); });
  EXPECT_EQ(sets.complaints()[0], std::nullopt);
  sets.write([](const At& e) { return by_erf(biased(e)); });
  EXPECT_NE(sets.complaints()[0], std::nullopt);
}

TEST(Epilogue, GeluIsThatOfPapers) {
  EXPECT_EQ(gelu(0.0), 0);
  for (const double x : {-30.0, -3.0, -1.0, 0.5, 2.0, 30.0})
    EXPECT_NEAR(gelu(x), x / 2 * (1 + std::tanh(0.7978845608 * (x + 0.044715 * x * x * x))), 1e-9);
  EXPECT_TRUE(std::isnan(gelu(std::nan(""))));
}

}  // namespace
}  // namespace gemm::bench
