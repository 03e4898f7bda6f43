// What is wrong is refused, what is right passes: the verdict and compute-sanitizer, each on the
// negative controls that it must catch, on their twins, and on the kernels of the suite.
#include "bench/controls/negative_controls.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <future>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "bench/cases/cases.hpp"
#include "bench/device/problem_data.hpp"
#include "bench/device/test_backend.hpp"

namespace gemm::bench {
namespace {

bool is_caught_by(const NegativeControl& control, Catcher catcher) {
  return std::ranges::count(control.caught_by, catcher) > 0;
}

// A of 2^24 + 1 and more, B of -1, 0 and 1: every sum of 2^6 products fits into 32 bits, and no odd
// element of A into FP32.
class LargeIntegers : public ForwardingBackend {
 public:
  using ForwardingBackend::ForwardingBackend;
  void fill(void* to, ElementType type, std::int64_t count, Fill fill,
            std::uint64_t seed) override {
    if (type != ElementType::s32) return ForwardingBackend::fill(to, type, count, fill, seed);
    std::vector<std::int32_t> values(static_cast<std::size_t>(count));
    for (std::size_t i = 0; i < values.size(); ++i) {
      const auto bits = static_cast<std::int32_t>(random_bits(seed, i) >> 40);
      values[i] = seed % 2 == 0 ? (1 << 24) + 1 + bits % 4096 : bits % 3 - 1;
    }
    copy(to, values.data(), values.size() * sizeof values[0]);
  }
};

// Several rounds on two sets of operands, since some controls are right at first.
std::string first_complaint(Backend& backend, const NegativeControl::Prepare& prepare,
                            const Problem& p) {
  ProblemData data(backend, p, Fill::uniform, 1, 2);
  std::vector<Launch> launches;
  for (const Operands& set : data.sets()) launches.push_back(prepare(p, backend.device(), set));
  for (int round = 0; round < 3; ++round) {
    data.poison();
    for (const Launch& launch : launches) backend.run(launch);
    if (const auto text = complaint(p, data.judge(p, 2))) return *text;
  }
  return "";
}

bool fits(const Problem& p) {
  return 1.2 * ProblemData::bytes_needed(p, 2, Reference::product) < cuda()->free_bytes();
}

TEST(NegativeControls, SayWhatIsWrongAndWhoCatchesIt) {
  std::set<std::string_view> names;
  for (const NegativeControl& control : negative_controls()) {
    EXPECT_TRUE(names.insert(control.name).second) << control.name << " is there twice";
    EXPECT_TRUE(control.name.starts_with("Wrong")) << control.name;
    EXPECT_FALSE(control.wrong.empty()) << control.name;
    EXPECT_FALSE(control.caught_by.empty()) << control.name;
    EXPECT_TRUE(control.spoiled && control.twin) << control.name;
  }
  // Each of the catchers has something to catch.
  for (const Catcher catcher : kCatchers)
    EXPECT_TRUE(std::ranges::any_of(negative_controls(), [&](const auto& control) {
      return is_caught_by(control, catcher);
    })) << name_of(catcher);
}

TEST(NegativeControls, AreRefusedByTheVerdictOnTheGpu) {
  SKIP_WITHOUT_GPU();
  LargeIntegers backend(*cuda());
  std::string left_out;
  for (const NegativeControl& control : negative_controls()) {
    if (!is_caught_by(control, Catcher::verdict)) continue;
    if (!fits(control.problem)) {
      left_out += " " + std::string(control.name);
      continue;
    }
    EXPECT_NE(first_complaint(backend, control.spoiled, control.problem), "") << control.name;
  }
  if (!left_out.empty()) GTEST_SKIP() << "too little memory for" << left_out;
}

TEST(NegativeControls, TwinsPassOnTheGpu) {
  SKIP_WITHOUT_GPU();
  LargeIntegers backend(*cuda());
  for (const NegativeControl& control : negative_controls()) {
    if (!fits(control.problem)) continue;
    EXPECT_EQ(first_complaint(backend, control.twin, control.problem), "") << control.name;
  }
}

// Every kernel of the suite, on the data on which the controls are caught.
TEST(NegativeControls, FlagNoTrueKernelOnTheGpu) {
  SKIP_WITHOUT_GPU();
  LargeIntegers backend(*cuda());
  std::vector<Problem> seen;
  std::int64_t checked = 0;
  for (const NegativeControl& control : negative_controls()) {
    const Problem& p = control.problem;
    if (std::ranges::count(seen, p) > 0 || !fits(p)) continue;
    seen.push_back(p);
    for (const Case& one :
         make_cases({shape_of(p)}, {p.precision}, Device::Kind::gpu, false, {p.layout})) {
      if (one.kernel->is_users()) continue;  // of tests before
      if (one.kernel->unsupported && one.kernel->unsupported(p, backend.device())) continue;
      EXPECT_EQ(first_complaint(backend, one.kernel->prepare, p), "") << one.name();
      ++checked;
    }
  }
  EXPECT_GT(checked, 0);
}

// --- compute-sanitizer --------------------------------------------------------------------------

// What launch_once ends with under a tool; 124 if it did not end.
int status_under(Catcher tool, std::string_view what, std::string_view name) {
  const std::string command = "timeout -k 5 300 compute-sanitizer --tool " +
                              std::string(name_of(tool)) +
                              " --error-exitcode 9 '" LAUNCH_ONCE "' " + std::string(what) + " " +
                              std::string(name) + " >/dev/null 2>&1";
  const int status = std::system(command.c_str());
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

// In processes of their own, since a tool may end what it complains about; a few at a time.
TEST(NegativeControls, AreCaughtByComputeSanitizerOnTheGpu) {
  SKIP_WITHOUT_GPU();
  if (std::system("command -v compute-sanitizer >/dev/null") != 0)
    GTEST_SKIP() << "compute-sanitizer is not installed";
  constexpr std::size_t kAtATime = 8;
  struct Run {
    std::string what;
    int expected;
    std::future<int> status;
  };
  std::vector<Run> runs;
  const auto settle = [&](std::size_t left) {
    for (; runs.size() > left; runs.erase(runs.begin()))
      EXPECT_EQ(runs.front().status.get(), runs.front().expected) << runs.front().what;
  };
  for (const NegativeControl& control : negative_controls())
    for (const Catcher tool : control.caught_by) {
      if (tool == Catcher::verdict) continue;
      for (const bool twin : {false, true}) {
        const std::string_view what = twin ? "twin" : "control";
        runs.push_back({std::string(name_of(tool)) + " of the " + std::string(what) + " " +
                            std::string(control.name),
                        twin ? 0 : 9,
                        std::async(std::launch::async, status_under, tool, what, control.name)});
        settle(kAtATime);
      }
    }
  settle(0);
}

}  // namespace
}  // namespace gemm::bench
