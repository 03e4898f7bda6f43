// The same launch gives the same bits, however often it runs, whatever C held before, and with
// launches of itself or of another operand set before and behind it: every kernel of ours on the
// CPU and (label GPU) on the GPU, at shapes of few tiles and a long k, where work is cut and sums
// are put together.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "bench/cases/cases.hpp"
#include "bench/device/batch.hpp"
#include "bench/device/problem_data.hpp"
#include "bench/device/test_backend.hpp"

namespace gemm::bench {
namespace {

// Two sets of operands that have nothing but the problem in common.
class Twins {
 public:
  Twins(Backend& backend, const Problem& p)
      : problem_(p),
        data_{ProblemData(backend, p, Fill::uniform, 1, 1),
              ProblemData(backend, p, Fill::uniform, 2, 1)} {}

  std::array<ProblemData, 2>& data() { return data_; }
  bool serves(const Problem& p) const { return data_[0].serves(p); }
  void poison() {
    for (ProblemData& one : data_) one.poison();
  }
  std::vector<std::byte> bits(Backend& backend, int set) const {
    std::vector<std::byte> bits(static_cast<std::size_t>(OperandLayout(problem_).c_bytes));
    backend.copy(bits.data(), data_[set].sets()[0].c, bits.size());
    return bits;
  }

 private:
  Problem problem_;
  std::array<ProblemData, 2> data_;
};

using Prepare = std::function<Launch(const Problem&, const Device&, const Operands&)>;

// What a later launch has done otherwise than the first, which must be right; or nothing.
std::string complaint_about(Backend& backend, const Prepare& prepare, const Problem& p,
                            Twins& twins, int launches) {
  std::vector<Launch> both;
  for (ProblemData& one : twins.data()) both.push_back(prepare(p, backend.device(), one.sets()[0]));

  twins.poison();
  std::array<std::vector<std::byte>, 2> first;
  for (int set = 0; set < 2; ++set) {
    backend.run(both[set]);
    first[set] = twins.bits(backend, set);
  }
  for (int set = 0; set < 2; ++set)
    if (const auto text = complaint(p, twins.data()[set].judge(p, 1)))
      return "set " + std::to_string(set) + ": " + *text;

  const auto changed = [&](const std::string& when) -> std::string {
    for (int set = 0; set < 2; ++set) {
      const std::vector<std::byte> now = twins.bits(backend, set);
      if (now == first[set]) continue;  // much faster than to look for the place
      const auto after = std::ranges::mismatch(first[set], now).in2;
      const std::int64_t element = (after - now.begin()) / traits_of(p.precision).output_bytes;
      return "set " + std::to_string(set) + ": c[" + std::to_string(element / p.n) + "," +
             std::to_string(element % p.n) + "] has other bits after " + when;
    }
    return "";
  };
  for (int launch = 2; launch <= launches; ++launch) {
    twins.poison();
    backend.run([&](Stream stream) {  // without a pause between them
      for (const Launch& one : both) one(stream);
    });
    if (auto text = changed("launch " + std::to_string(launch)); !text.empty()) return text;
  }
  twins.poison();
  Batch(backend, both, 2 * launches, true).time();
  if (auto text = changed("a graph of " + std::to_string(launches) + " launches of each set");
      !text.empty())
    return text;
  for (const Launch& one : both)  // each uses the workspace of the one before
    Batch(backend, std::span(&one, 1), launches, true).time();
  return changed("a graph of " + std::to_string(launches) + " launches of one set");
}

// Of each kernel what it runs by default. None may say that it cannot repeat itself. Returns how
// many cases there were.
int expect_same_bits(Backend& backend, Precision precision, const std::vector<Shape>& shapes,
                     int launches) {
  int checked = 0;
  std::unique_ptr<Twins> twins;  // of the last problem: cases come problem by problem
  for (const Case& one : make_cases(shapes, {precision}, backend.device().kind, false, {})) {
    const RegisteredKernel& kernel = *one.kernel;
    if (kernel.is_library()) continue;
    if (kernel.chosen && !kernel.candidates) continue;  // Best: runs the others, by a trial
    if (kernel.unsupported && kernel.unsupported(one.problem, backend.device())) continue;
    if (twins == nullptr || !twins->serves(one.problem))
      twins = std::make_unique<Twins>(backend, one.problem);
    EXPECT_EQ(complaint_about(backend, kernel.prepare, one.problem, *twins, launches), "")
        << one.name();
    ++checked;
  }
  return checked;
}

TEST(Repeats, HaveTheSameBitsOnTheCpu) {
  const auto backend = make_host_backend();
  EXPECT_GT(expect_same_bits(*backend, Precision::f32, {{96, 160, 256}, {65, 33, 259}}, 3), 0);
}

// Tiles of which each gets several blocks; ragged ones; few rows and a long k, which clusters
// share; and, of one row, several waves of tiles, the last of which are cut into unequal pieces.
TEST(Repeats, HaveTheSameBitsOnTheGpu) {
  SKIP_WITHOUT_GPU();
  int checked = 0;
  for (const PrecisionTraits& traits : kPrecisions) {
    std::vector<Shape> shapes = {{192, 320, 2048}, {257, 129, 1031}, {33, 264, 4104}};
    if (traits.precision == Precision::f32)  // the kernels that cut k
      shapes = {{384, 640, 2048}, {257, 129, 1031}, {4, 103'004, 130}};
    if (traits.precision == Precision::bf16)  // WgmmaSwapped in nt: launches do not overlap
      shapes.push_back({232, 5376, 2048});
    checked += expect_same_bits(*cuda(), traits.precision, shapes, 20);
  }
  EXPECT_GT(checked, 0);
}

// --- What is refused -----------------------------------------------------------------------------

constexpr Problem kProblem{9, 33, 131, Precision::f32};

// C = A * B, summed up from one step along k on and round.
void multiply(const Problem& p, const Operands& o, std::int64_t from) {
  const auto *a = static_cast<const float*>(o.a), *b = static_cast<const float*>(o.b);
  for (std::int64_t i = 0; i < p.m; ++i)
    for (std::int64_t j = 0; j < p.n; ++j) {
      float sum = 0;
      for (std::int64_t l = 0; l < p.k; ++l) {
        const std::int64_t at = (from + l) % p.k;
        sum += a[i * p.k + at] * b[at * p.n + j];
      }
      static_cast<float*>(o.c)[i * p.n + j] = sum;
    }
}

// A kernel whose sums begin where `from` says of its launch, counted from 1, of its set, and of the
// set of the launch before.
Prepare turning(int (*from)(int count, int set, int last)) {
  return [=, last = std::make_shared<int>(-1), prepared = std::make_shared<int>(0)](
             const Problem& p, const Device&, const Operands& o) -> Launch {
    return [=, set = (*prepared)++, count = std::make_shared<int>(0)](Stream) {
      multiply(p, o, from(++*count, set, *last));
      *last = set;
    };
  };
}

TEST(Repeats, AreRefusedWithOtherBits) {
  const struct {
    Prepare prepare;
    int launches;
    const char* said;
  } cases[] = {
      {turning([](int, int, int) { return 0; }), 3, ""},
      {turning([](int count, int, int) { return count % 2; }), 3, "other bits after launch 2"},
      {turning([](int count, int, int) { return count > 3 ? 1 : 0; }), 3, "after a graph"},
      // Right only if another set's launch was the last one.
      {turning([](int, int set, int last) { return last == set ? 1 : 0; }), 3,
       "launches of one set"},
      // By one bit of one element, in one launch of many.
      {[](const Problem& p, const Device&, const Operands& o) -> Launch {
         return [=, count = std::make_shared<int>(0)](Stream) {
           multiply(p, o, 0);
           float& element = static_cast<float*>(o.c)[2 * p.n + 5];
           if (++*count == 20) element = std::nextafterf(element, 100);
         };
       },
       20, "set 0: c[2,5] has other bits after launch 20"},
  };
  for (const auto& [prepare, launches, said] : cases) {
    const auto backend = make_host_backend();
    Twins twins(*backend, kProblem);
    const std::string found = complaint_about(*backend, prepare, kProblem, twins, launches);
    EXPECT_EQ(found.empty(), std::string(said).empty()) << found;
    EXPECT_NE(found.find(said), std::string::npos) << found;
  }
}

}  // namespace
}  // namespace gemm::bench
