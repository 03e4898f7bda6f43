// Where the true result can be represented, it must be hit bit for bit: on the CPU and (label GPU)
// on the GPU, every kernel, every precision, every layout, every point of a tuning space.
//
// Of a kernel that chooses among plans a covering set is launched, an eighth of all. The tile,
// which is what a kernel is compiled for, meets each way of cutting C and k, and each kind of edge,
// at least once in each precision and layout. Not each way at each kind of edge: how C and k are
// cut decides which K tiles and partial sums a block adds, and edges only what it loads and stores.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <set>
#include <span>
#include <sstream>
#include <string>
#include <vector>

#include "bench/cases/cases.hpp"
#include "bench/device/problem_data.hpp"
#include "bench/device/test_backend.hpp"
#include "bench/verification/scales.hpp"
#include "kernels/epilogue.hpp"

namespace gemm::bench {
namespace {

constexpr Bound kExact{.of_magnitude = 0, .of_expected = 0, .absolute = 0};

// Bits between the first and the last 1 of the magnitudes that a type holds.
int significant_bits(ElementType type) {
  switch (type) {
    case ElementType::e5m2:
      return 3;
    case ElementType::e4m3:
      return 4;
    case ElementType::bf16:
      return 8;
    case ElementType::f16:
      return 11;
    case ElementType::f32:
      return 24;
    case ElementType::f64:
      return 53;
    case ElementType::s32:
      return 31;
    case ElementType::s8:
      return 7;
  }
  return 0;
}

// To the nearest number that an output of a type can have, ties to even.
double rounded(ElementType type, double value) {
  if (value == 0 || type == ElementType::s32) return value;
  const int last = std::ilogb(value) + 1 - significant_bits(type);
  return std::ldexp(std::nearbyint(std::ldexp(value, -last)), last);
}

// Whether sums of integers, of whose magnitudes so much comes together in all and so much in the
// longest sum of a tensor core, are exact until they are stored.
bool adds_exactly(const PrecisionTraits& traits, double whole, double coarse) {
  constexpr double kCoarsest = 0x1p14, kLargestF16 = 65504;
  if (traits.coarse_error > 0 && coarse > kCoarsest) return false;
  if (traits.output == ElementType::f16 && whole > kLargestF16) return false;
  const bool in_fp32 = traits.input != ElementType::f64 && traits.output != ElementType::s32;
  const ElementType sum = in_fp32 ? ElementType::f32 : traits.output;
  return whole <= std::ldexp(1, significant_bits(sum));
}

// Compared with its true values, rounded as the output is, to the last bit.
std::string complaint_about(Backend& backend, const Problem& p, const void* c,
                            std::vector<double> expected) {
  const ElementType output = traits_of(p.precision).output;
  for (double& value : expected) value = rounded(output, value);
  const Buffer there = upload(backend, expected.data(), expected.size() * sizeof(double));
  const auto* reference = reinterpret_cast<const double*>(there.get());
  return complaint(p, backend.judge(p, {.c = const_cast<void*>(c)}, reference, reference, kExact))
      .value_or("");
}

enum class Whose { ours, libraries };

// Calls f with every case of the shape that runs there, in the precisions that suit.
template <typename Suits, typename F>
std::int64_t for_each_case(Backend& backend, Whose whose, const Shape& shape, Suits&& suits, F&& f,
                           const std::vector<Activation>& activations = {Activation::none}) {
  std::vector<Precision> precisions;
  for (const PrecisionTraits& traits : kPrecisions)
    if (suits(traits)) precisions.push_back(traits.precision);
  std::int64_t cases = 0;
  if (precisions.empty()) return cases;
  for (const Case& one :
       make_cases({shape}, precisions, backend.device().kind, true, {}, activations)) {
    const Kernel& kernel = *one.kernel;
    if (one.kernel->is_library() != (whose == Whose::libraries)) continue;
    if (kernel.chosen && !kernel.candidates)
      continue;  // Best: runs plans of the others, by a trial
    if (kernel.unsupported && kernel.unsupported(one.problem, backend.device())) continue;
    f(one);
    ++cases;
  }
  return cases;
}

// What a launch of a plan covers: its tile together with each other part of its name, and with the
// kinds of edges of m, n and k. Numbers of blocks and pieces are 0, 1 or more.
std::vector<std::string> covered(const std::string& plan, const Problem& p) {
  std::vector<std::string> parts;
  for (std::istringstream text(plan); std::getline(text, parts.emplace_back(), '/');) {
    std::string& part = parts.back();
    const std::size_t number = part.find(':') + 1;
    constexpr const char* kCounts[] = {"whole",  "streaming", "splits",
                                       "blocks", "pieces",    "per_sm"};
    if (std::ranges::count(kCounts, part.substr(0, number - 1)) > 0 && part.substr(number) != "0" &&
        part.substr(number) != "1")
      part.replace(number, std::string::npos, "more");
  }
  parts.back() = "edges:";
  const int of_16_bytes = 16 / traits_of(p.precision).input_bytes;
  if (p.batch > 1) parts.back() = "batch:" + parts.back();
  if (p.activation != Activation::none) parts.back() += name_of(p.activation);
  for (const std::int64_t size : {p.m, p.n, p.k})
    parts.back() += size % 128 == 0 ? " none" : size % of_16_bytes == 0 ? " aligned" : " any";
  for (std::size_t i = 1; i < parts.size(); ++i) parts[i] = parts[0] + "/" + parts[i];
  return parts;
}

// Operands are -4 to 4. Of libraries the first few: one of them tries all its algorithms for each
// problem.
constexpr Shape kShapes[] = {{1, 1, 1},        {5, 7, 3},        {300, 1, 16},    {1, 300, 16},
                             {33, 65, 15},     {64, 64, 16},     {129, 257, 13},  {255, 130, 16},
                             {96, 40, 128},    {67, 129, 127},   {64, 96, 64},    {1, 1, 4099},
                             {130, 257, 1023}, {256, 512, 1024}, {511, 385, 259}, {70, 516, 300},
                             {129, 257, 208},  {600, 392, 336},  {400, 600, 4096}};
// Of all kernels that take these.
constexpr Shape kBatches[] = {{192, 257, 72, 3},   {128, 136, 264, 2},
                              {256, 512, 1024, 4}, {70, 300, 40, 5},
                              {512, 96, 13, 2},    {40, 264, 72, 9, Tokens::zipf}};

const std::vector<Activation> kEpilogues = {Activation::bias, Activation::bias_gelu,
                                            Activation::residual};
constexpr Shape kOfEpilogues[] = {{129, 258, 72}, {256, 512, 1024}, {64, 96, 13}, {300, 136, 200}};

void expect_integers_are_exact(Backend& backend, Whose whose = Whose::ours,
                               std::span<const Shape> shapes = kShapes,
                               const std::vector<Activation>& activations = {Activation::none}) {
  constexpr double kProduct = 16, kScales = 256;  // with scales: multiples of 1/16 up to 16
  std::set<std::string> met;
  const auto expect_exact_sums = [&](const Case& one) {
    const Problem& p = one.problem;
    ProblemData data(backend, p, Fill::integers, 3, 1);
    const Operands& set = data.sets()[0];
    std::vector<double> expected(2 * elements_of_c(p));
    const Buffer there = upload(backend, expected.data(), expected.size() * sizeof(double));
    auto* reference = reinterpret_cast<double*>(there.get());
    backend.reference(p, set, reference, reference + elements_of_c(p));
    backend.copy(expected.data(), reference, expected.size() * sizeof(double));
    expected.resize(elements_of_c(p));
    // Twice, since a launch may leave something in its workspace.
    const auto expect_exact_launch = [&](const Launch& launch, const std::string& plan) {
      for (int turn = 0; turn < 2; ++turn) {
        data.poison();
        backend.run(launch);
        EXPECT_EQ(complaint(p, data.judge(p, 1)).value_or(""), "") << one.name() << " " << plan;
        if (p.activation != Activation::none) continue;
        EXPECT_EQ(complaint_about(backend, p, set.c, expected), "") << one.name() << " " << plan;
      }
    };
    if (one.kernel->candidates) {
      for (const Candidate& plan : one.kernel->candidates(p, backend.device())) {
        bool covers_more = false;
        for (const std::string& what : covered(plan.plan, p))
          covers_more |=
              met.insert(one.kernel->name + " " + std::string(traits_of(p.precision).name) + " " +
                         std::string(name_of(p.layout)) + " " + what)
                  .second;
        if (covers_more) expect_exact_launch(plan.prepare(set), plan.plan);
      }
    } else {
      expect_exact_launch(one.kernel->prepare(p, backend.device(), set), "");
    }
  };
  const std::size_t few = whose == Whose::libraries ? 5 : shapes.size();
  for (const Shape& shape : shapes.first(few)) {
    const auto suits = [&](const PrecisionTraits& traits) {
      const auto coarse = static_cast<double>(std::min(shape.k, traits.coarse_length));
      const double whole = kProduct * (has_scales(traits.precision) ? kScales : 1);
      return adds_exactly(traits, whole * static_cast<double>(shape.k), kProduct * coarse);
    };
    EXPECT_GT(for_each_case(backend, whose, shape, suits, expect_exact_sums, activations), 0)
        << name_of(shape);
  }
}

// Where FP8's sums go into FP32 every so many products. Row j of A has a 1 in column j, and 2^8 and
// -2^8 in the first and the last, which meet 2^7 in B; the other elements of B are 1. So C is 1,
// unless that 1 came into a tensor core's sum with 2^15 in it, whose last bit counts 4.
void expect_few_products_share_a_coarse_sum(Backend& backend, const Case& one) {
  const Problem& p = one.problem;
  const auto [m, n, k] = std::array{p.m, p.n, p.k};
  const bool e4m3 = traits_of(p.precision).input == ElementType::e4m3;
  const auto power_of_two = [&](int exponent) {
    return static_cast<std::uint8_t>(e4m3 ? (exponent + 7) << 3 : (exponent + 15) << 2);
  };
  std::vector<std::uint8_t> a(m * k), b(k * n, power_of_two(0));
  for (std::int64_t i = 0; i < m; ++i) {
    a[index_in_a(p, i, 1 + i)] = power_of_two(0);
    a[index_in_a(p, i, 0)] = power_of_two(8);
    a[index_in_a(p, i, k - 1)] = 0x80 | power_of_two(8);
  }
  for (std::int64_t j = 0; j < n; ++j)
    b[index_in_b(p, 0, j)] = b[index_in_b(p, k - 1, j)] = power_of_two(7);
  const Buffer on_a = upload(backend, a.data(), a.size()),
               on_b = upload(backend, b.data(), b.size());
  const Buffer c = backend.allocate(m * n * static_cast<std::int64_t>(sizeof(std::uint16_t)));
  const std::vector<float> ones(std::max(scales_of_a(p), scales_of_b(p)) + 1, 1.0F);
  const Buffer scales = upload(backend, ones.data(), std::ssize(ones) * sizeof ones[0]);
  const auto* const of_blocks = reinterpret_cast<const float*>(scales.get());
  backend.run(one.kernel->prepare(p, backend.device(),
                                  {on_a.get(), on_b.get(), c.get(), of_blocks, of_blocks}));
  std::vector<std::uint16_t> found(m * n);
  backend.copy(found.data(), c.get(), found.size() * sizeof found[0]);
  std::int64_t lost = 0;
  for (std::int64_t i = 0; i < m; ++i) {
    const auto row = std::span(found).subspan(i * n, n);
    constexpr std::uint16_t kOne = 0x3f80;  // in BF16
    lost += std::ranges::count(row, kOne) < n;
  }
  EXPECT_LE(lost, 2 * (kPromotion - 1)) << one.name();
}

std::int64_t expect_few_products_share_coarse_sums(Backend& backend, Whose whose) {
  const auto goes = [](const PrecisionTraits& traits) {
    return traits.coarse_error > 0 && traits.coarse_length == kPromotion;
  };
  return for_each_case(backend, whose, {1022, 48, 1024}, goes, [&](const Case& one) {
    expect_few_products_share_a_coarse_sum(backend, one);
  });
}

TEST(Exactness, OfIntegersOnTheCpu) { expect_integers_are_exact(*make_host_backend()); }
TEST(Exactness, OfIntegersOnTheGpu) {
  SKIP_WITHOUT_GPU();
  expect_integers_are_exact(*cuda());
}
TEST(Exactness, OfIntegersInBatchesOnTheCpu) {
  expect_integers_are_exact(*make_host_backend(), Whose::ours, kBatches);
}
TEST(Exactness, OfIntegersInBatchesOnTheGpu) {
  SKIP_WITHOUT_GPU();
  expect_integers_are_exact(*cuda(), Whose::ours, kBatches);
}
// Epilogues round, so that these are right within the bound.
TEST(Exactness, IsTheBoundOfIntegersWithAnEpilogueOnTheCpu) {
  expect_integers_are_exact(*make_host_backend(), Whose::ours, kOfEpilogues, kEpilogues);
}
TEST(Exactness, IsTheBoundOfIntegersWithAnEpilogueOnTheGpu) {
  SKIP_WITHOUT_GPU();
  expect_integers_are_exact(*cuda(), Whose::ours, kOfEpilogues, kEpilogues);
}
TEST(Exactness, OfFp8ThatGoesIntoFp32EveryFewProductsOnTheGpu) {
  SKIP_WITHOUT_GPU();
  if (expect_few_products_share_coarse_sums(*cuda(), Whose::ours) == 0)
    GTEST_SKIP() << "no kernel computes these precisions here";
}

TEST(Libraries, AreExactOnTheCpu) {
  const auto backend = make_host_backend();
  const auto any = [](const PrecisionTraits&) { return true; };
  if (for_each_case(*backend, Whose::libraries, {1, 1, 1}, any, [](const Case&) {}) == 0)
    GTEST_SKIP() << "built without OpenBLAS";
  expect_integers_are_exact(*backend, Whose::libraries);
}

// Apart, as their other tests are.
TEST(Libraries, AddFp8InFp32EveryFewProductsOnTheGpu) {
  SKIP_WITHOUT_GPU();
  expect_few_products_share_coarse_sums(*cuda(), Whose::libraries);
}

TEST(Exactness, CoversATileWithEachWayOfCuttingAndEachKindOfEdge) {
  const Problem p{64, 128, 13, Precision::bf16};
  const std::vector<std::string> kFound = {
      "tile:64x32",         "tile:64x32/ping_pong",      "tile:64x32/cluster:2",
      "tile:64x32/whole:0", "tile:64x32/streaming:more", "tile:64x32/edges: aligned none any"};
  EXPECT_EQ(covered("tile:64x32/ping_pong/cluster:2/whole:0/streaming:17", p), kFound);
  EXPECT_EQ(covered("", p), std::vector<std::string>{"edges: aligned none any"});
}

// The check itself: one unit in the last place is no exact result, nor is what the output rounds
// otherwise.
TEST(Exactness, IsRefusedToWhatIsOffByOneBit) {
  const auto backend = make_host_backend();
  const Problem p{1, 1, 1, Precision::f32};
  const float six = 6, nearly = std::nextafterf(6, 7);
  EXPECT_EQ(complaint_about(*backend, p, &six, {6}), "");
  EXPECT_NE(complaint_about(*backend, p, &nearly, {6}), "");
  EXPECT_EQ(rounded(ElementType::bf16, 259), 260);  // 8 bits, ties to even
  EXPECT_EQ(rounded(ElementType::bf16, 257), 256);
  EXPECT_EQ(rounded(ElementType::f16, 2049), 2048);
}

}  // namespace
}  // namespace gemm::bench
