#include "bench/device/nan_refusal.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <stdexcept>

#include "bench/device/test_backend.hpp"

namespace gemm::bench {
namespace {

TEST(NanRefusal, HoldsOnTheCpu) {
  const auto backend = make_host_backend();
  EXPECT_NO_THROW(require_nan_refusal(*backend));
}

TEST(NanRefusal, HoldsOnTheGpu) {
  SKIP_WITHOUT_GPU();
  EXPECT_NO_THROW(require_nan_refusal(*cuda()));
}

// As compiled with -ffast-math: all pass, or, by the inverse of a comparison, none does.
class Blind : public ForwardingBackend {
 public:
  Blind(Backend& real, bool passes) : ForwardingBackend(real), passes_(passes) {}
  Verdict judge_rows(const Problem&, const Operands&, std::uint64_t) override {
    return {.by_rows = true, .wrong_rows = passes_ ? 0 : 1};
  }

 private:
  bool passes_;
};

TEST(NanRefusal, IsMissedWhereVerdictsDoNotDependOnC) {
  const auto backend = make_host_backend();
  for (const bool passes : {true, false}) {
    Blind blind(*backend, passes);
    EXPECT_THROW(require_nan_refusal(blind), std::runtime_error);
  }
}

}  // namespace
}  // namespace gemm::bench
