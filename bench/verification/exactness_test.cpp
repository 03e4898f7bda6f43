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
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <set>
#include <span>
#include <sstream>
#include <string>
#include <vector>

#include "bench/cases/cases.hpp"
#include "bench/device/problem_data.hpp"
#include "bench/device/test_backend.hpp"

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

// Whether an operand of a type can have the value: of those that are used here none is too large,
// but for 8-bit integers.
bool holds(ElementType type, int value) {
  const auto magnitude = static_cast<unsigned>(std::abs(value));
  if (type == ElementType::s8) return magnitude < 128;
  if (type == ElementType::s32 || magnitude == 0) return true;
  return static_cast<int>(std::bit_width(magnitude)) - std::countr_zero(magnitude) <=
         significant_bits(type);
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

template <typename T>
void append(std::vector<std::byte>& bytes, T value) {
  bytes.resize(bytes.size() + sizeof value);
  std::memcpy(bytes.data() + bytes.size() - sizeof value, &value, sizeof value);
}

// Another bias of the exponent and fewer bits of fraction than FP32 has.
std::uint32_t shortened(float value, int bias, int fraction_bits) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if (value == 0) return 0;
  const std::uint32_t magnitude =
      (bits & 0x7fffffff) - (static_cast<std::uint32_t>(127 - bias) << 23);
  const std::uint32_t sign = bits >> 31;
  const int exponent_bits = std::bit_width(static_cast<unsigned>(bias)) + 1;
  return sign << (exponent_bits + fraction_bits) | magnitude >> (23 - fraction_bits);
}

// Small integers as elements of a type, each of which has them.
std::vector<std::byte> encoded(ElementType type, const std::vector<int>& values) {
  std::vector<std::byte> bytes;
  for (const int value : values) {
    const auto bits = std::bit_cast<std::uint32_t>(static_cast<float>(value));
    switch (type) {
      case ElementType::bf16:
        append(bytes, static_cast<std::uint16_t>(bits >> 16));
        break;
      case ElementType::f16:
        append(bytes, static_cast<std::uint16_t>(shortened(static_cast<float>(value), 15, 10)));
        break;
      case ElementType::e4m3:
        append(bytes, static_cast<std::uint8_t>(shortened(static_cast<float>(value), 7, 3)));
        break;
      case ElementType::e5m2:
        append(bytes, static_cast<std::uint8_t>(shortened(static_cast<float>(value), 15, 2)));
        break;
      case ElementType::f32:
        append(bytes, bits);
        break;
      case ElementType::f64:
        append(bytes, static_cast<double>(value));
        break;
      case ElementType::s32:
        append(bytes, value);
        break;
      case ElementType::s8:
        append(bytes, static_cast<std::int8_t>(value));
        break;
    }
  }
  return bytes;
}

Buffer upload(Backend& backend, const void* from, std::size_t bytes) {
  Buffer memory = backend.allocate(bytes);
  backend.copy(memory.get(), from, bytes);
  return memory;
}

// A matrix of so many rows, stored the other way round.
std::vector<int> transposed(const std::vector<int>& values, std::size_t rows) {
  const std::size_t columns = values.size() / rows;
  std::vector<int> other(values.size());
  for (std::size_t i = 0; i < values.size(); ++i)
    other[i % columns * rows + i / columns] = values[i];
  return other;
}

// A problem whose operands, both of layout nn, and whose result are integers.
struct Example {
  Shape shape;
  std::vector<int> a, b;
  std::vector<double> expected;

  bool suits(const PrecisionTraits& traits) const {
    const auto held = [&](int value) { return holds(traits.input, value); };
    const auto size = [](int x, int y) { return std::abs(x) < std::abs(y); };
    const double largest_b = std::abs(*std::ranges::max_element(b, size));
    double largest = 0;  // sum of magnitudes of a row of A
    for (std::int64_t i = 0; i < shape.m; ++i) {
      double row = 0;
      for (std::int64_t l = 0; l < shape.k; ++l) row += std::abs(a[i * shape.k + l]);
      largest = std::max(largest, row);
    }
    return std::ranges::all_of(a, held) && std::ranges::all_of(b, held) &&
           adds_exactly(traits, largest * largest_b, largest * largest_b);
  }
};

// Compared with its true values, rounded as the output is, to the last bit.
std::string complaint_about(Backend& backend, const Problem& p, const void* c,
                            std::vector<double> expected) {
  const ElementType output = traits_of(p.precision).output;
  for (double& value : expected) value = rounded(output, value);
  const Buffer there = upload(backend, expected.data(), expected.size() * sizeof(double));
  const auto* reference = reinterpret_cast<const double*>(there.get());
  return complaint(p, backend.judge(p, c, reference, reference, kExact)).value_or("");
}

// C of a case whose operands, given as of layout nn, are integers.
Buffer product(Backend& backend, const Case& one, const std::vector<int>& a_values,
               const std::vector<int>& b_values) {
  const Problem& p = one.problem;
  const ElementType input = traits_of(p.precision).input;
  const auto stored = [&](const std::vector<int>& values, bool transpose, std::int64_t rows) {
    return encoded(input, transpose ? transposed(values, static_cast<std::size_t>(rows)) : values);
  };
  const auto bytes_a = stored(a_values, transposes_a(p.layout), p.m);
  const auto bytes_b = stored(b_values, transposes_b(p.layout), p.k);
  const Buffer a = upload(backend, bytes_a.data(), bytes_a.size());
  const Buffer b = upload(backend, bytes_b.data(), bytes_b.size());
  const auto c_bytes = static_cast<std::size_t>(p.m * p.n) * traits_of(p.precision).output_bytes;
  Buffer c = backend.allocate(c_bytes);
  backend.poison(c.get(), c_bytes);
  backend.run(one.kernel->prepare(p, backend.device(), {a.get(), b.get(), c.get()}));
  return c;
}

// What is wrong with the product of one case of the example, or nothing.
std::string complaint_about(Backend& backend, const Case& one, const Example& example) {
  const Buffer c = product(backend, one, example.a, example.b);
  return complaint_about(backend, one.problem, c.get(), example.expected);
}

enum class Whose { ours, libraries };

// Calls f with every case of the shape that runs there, in the precisions that suit.
template <typename Suits, typename F>
std::int64_t for_each_case(Backend& backend, Whose whose, const Shape& shape, Suits&& suits,
                           F&& f) {
  std::vector<Precision> precisions;
  for (const PrecisionTraits& traits : kPrecisions)
    if (suits(traits)) precisions.push_back(traits.precision);
  std::int64_t cases = 0;
  if (precisions.empty()) return cases;
  for (const Case& one : make_cases({shape}, precisions, backend.device().kind, true, {})) {
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

std::int64_t expect_exact(Backend& backend, Whose whose, const Example& example,
                          Precision precision) {
  return for_each_case(
      backend, whose, example.shape,
      [&](const PrecisionTraits& traits) {
        return traits.precision == precision && example.suits(traits);
      },
      [&](const Case& one) {
        EXPECT_EQ(complaint_about(backend, one, example), "") << one.name();
      });
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
  for (const std::int64_t size : {p.m, p.n, p.k})
    parts.back() += size % 128 == 0 ? " none" : size % of_16_bytes == 0 ? " aligned" : " any";
  for (std::size_t i = 1; i < parts.size(); ++i) parts[i] = parts[0] + "/" + parts[i];
  return parts;
}

// Operands are -4 to 4.
void expect_integers_are_exact(Backend& backend) {
  constexpr Shape kShapes[] = {{1, 1, 1},        {5, 7, 3},        {300, 1, 16},    {1, 300, 16},
                               {33, 65, 15},     {64, 64, 16},     {129, 257, 13},  {255, 130, 16},
                               {96, 40, 128},    {67, 129, 127},   {64, 96, 64},    {1, 1, 4099},
                               {130, 257, 1023}, {256, 512, 1024}, {511, 385, 259}, {70, 516, 300},
                               {129, 257, 208},  {600, 392, 336},  {400, 600, 4096}};
  constexpr double kProduct = 16;
  std::set<std::string> met;
  const auto expect_exact_sums = [&](const Case& one) {
    const Problem& p = one.problem;
    ProblemData data(backend, p, Fill::integers, 3, 1);
    const Operands& set = data.sets()[0];
    std::vector<double> expected(2 * p.m * p.n);
    const Buffer there = upload(backend, expected.data(), expected.size() * sizeof(double));
    auto* reference = reinterpret_cast<double*>(there.get());
    backend.reference(p, set.a, set.b, reference, reference + p.m * p.n);
    backend.copy(expected.data(), reference, expected.size() * sizeof(double));
    expected.resize(p.m * p.n);
    // Twice, since a launch may leave something in its workspace.
    const auto expect_exact_launch = [&](const Launch& launch, const std::string& plan) {
      for (int turn = 0; turn < 2; ++turn) {
        data.poison();
        backend.run(launch);
        EXPECT_EQ(complaint(p, data.judge(p, 1)).value_or(""), "") << one.name() << " " << plan;
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
  for (const Shape& shape : kShapes) {
    const auto suits = [&](const PrecisionTraits& traits) {
      const auto coarse = static_cast<double>(std::min(shape.k, traits.coarse_length));
      return adds_exactly(traits, kProduct * static_cast<double>(shape.k), kProduct * coarse);
    };
    EXPECT_GT(for_each_case(backend, Whose::ours, shape, suits, expect_exact_sums), 0)
        << name_of(shape);
  }
}

// Different ones, so many that neither a power of two nor kStride divides their number.
constexpr std::int64_t kStride = 7;
std::vector<int> values_of(ElementType type) {
  std::vector<int> values;
  for (int value = -100; value <= 150; ++value)
    if (holds(type, value)) values.push_back(value);
  while (values.size() % 2 == 0 || values.size() % kStride == 0) values.pop_back();
  return values;
}

// A picks rows of B: whatever lands at the wrong place is seen, and nothing is rounded.
void expect_one_hot_a_permutes_b(Backend& backend, Whose whose = Whose::ours) {
  constexpr Shape kShapes[] = {{7, 5, 3},       {65, 129, 33}, {64, 64, 64},
                               {33, 257, 70},   {40, 9, 40},   {128, 96, 160},
                               {257, 130, 261}, {1, 33, 65},   {130, 385, 80}};
  constexpr std::int64_t kPrime = 37;  // divides no k: rows are permuted
  // Of libraries the first few: one of them tries all its algorithms for each problem.
  const std::size_t few = whose == Whose::libraries ? 3 : std::size(kShapes);
  for (const Shape& shape : std::span(kShapes).first(few)) {
    const auto [m, n, k] = shape;
    std::int64_t cases = 0;
    for (const PrecisionTraits& traits : kPrecisions) {
      const std::vector<int> values = values_of(traits.input);
      Example example{.shape = shape,
                      .a = std::vector<int>(m * k),
                      .b = std::vector<int>(k * n),
                      .expected = std::vector<double>(m * n)};
      for (std::int64_t i = 0; i < k * n; ++i)
        example.b[i] = values[kStride * i % std::ssize(values)];
      for (std::int64_t i = 0; i < m; ++i) {
        const std::int64_t row = (kPrime * i + 5) % k;
        example.a[i * k + row] = 1;
        for (std::int64_t j = 0; j < n; ++j) example.expected[i * n + j] = example.b[row * n + j];
      }
      cases += expect_exact(backend, whose, example, traits.precision);
    }
    EXPECT_GT(cases, 0) << name_of(shape);
  }
}

// Where FP8's sums go into FP32 every so many products. Row j of A has a 1 in column j, and 2^8 and
// -2^8 in the first and the last, which meet 2^7 in B; the other elements of B are 1. So C is 1,
// unless that 1 came into a tensor core's sum with 2^15 in it, whose last bit counts 4.
void expect_few_products_share_a_coarse_sum(Backend& backend, const Case& one) {
  const auto [m, n, k] = std::array{one.problem.m, one.problem.n, one.problem.k};
  std::vector<int> a(m * k), b(k * n, 1);
  for (std::int64_t i = 0; i < m; ++i) {
    a[i * k + 1 + i] = 1;
    a[i * k] = 256;
    a[i * k + k - 1] = -256;
  }
  for (std::int64_t j = 0; j < n; ++j) b[j] = b[(k - 1) * n + j] = 128;
  const Buffer c = product(backend, one, a, b);
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
TEST(Exactness, OfAPermutationOnTheCpu) { expect_one_hot_a_permutes_b(*make_host_backend()); }

TEST(Exactness, OfIntegersOnTheGpu) {
  SKIP_WITHOUT_GPU();
  expect_integers_are_exact(*cuda());
}
TEST(Exactness, OfAPermutationOnTheGpu) {
  SKIP_WITHOUT_GPU();
  expect_one_hot_a_permutes_b(*cuda());
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
  expect_one_hot_a_permutes_b(*backend, Whose::libraries);
}

// Apart, as their other tests are.
TEST(Libraries, AreExactOnTheGpu) {
  SKIP_WITHOUT_GPU();
  expect_one_hot_a_permutes_b(*cuda(), Whose::libraries);
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

// The check itself: one unit in the last place is no exact result.
TEST(Exactness, IsRefusedToWhatIsOffByOneBit) {
  const auto backend = make_host_backend();
  RegisteredKernel nearly;
  nearly.name = "Nearly";
  nearly.prepare = [](const Problem&, const Device&, const Operands& o) -> Launch {
    return [=](Stream) { *static_cast<float*>(o.c) = std::nextafterf(6, 7); };
  };
  const Case one{&nearly, {1, 1, 1, Precision::f32}};
  EXPECT_NE(complaint_about(*backend, one, {{1, 1, 1}, {2}, {3}, {6}}), "");
}

TEST(Exactness, IsRefusedToAKernelThatReadsAnotherLayout) {
  const auto backend = make_host_backend();
  RegisteredKernel second;
  second.name = "ColumnOfA";
  second.prepare = [](const Problem&, const Device&, const Operands& o) -> Launch {
    return [=](Stream) {
      const auto* a = static_cast<const float*>(o.a);
      std::copy_n(std::vector<float>{a[1], a[3]}.data(), 2, static_cast<float*>(o.c));
    };
  };
  const Example example{{2, 1, 2}, {1, 2, 3, 4}, {0, 1}, {2, 4}};  // picks A's second column
  EXPECT_EQ(complaint_about(*backend, {&second, {2, 1, 2, Precision::f32}}, example), "");
  for (const Layout layout : {Layout::tn, Layout::tt})
    EXPECT_NE(complaint_about(*backend, {&second, {2, 1, 2, Precision::f32, layout}}, example), "");
}

// Of the encodings, against what is known of the formats.
TEST(Exactness, EncodesIntegersAsTheFormatsDo) {
  const auto bits = [](ElementType type, int value) {
    std::uint16_t found = 0;
    const std::vector<std::byte> bytes = encoded(type, {value});
    std::memcpy(&found, bytes.data(), bytes.size());
    return found;
  };
  EXPECT_EQ(bits(ElementType::f16, 0), 0);
  EXPECT_EQ(bits(ElementType::f16, 1), 0x3c00);
  EXPECT_EQ(bits(ElementType::f16, -2), 0xc000);
  EXPECT_EQ(bits(ElementType::f16, 114), 0x5720);
  EXPECT_EQ(bits(ElementType::bf16, 1), 0x3f80);
  EXPECT_EQ(bits(ElementType::bf16, -100), 0xc2c8);
  EXPECT_EQ(bits(ElementType::e4m3, 0), 0);
  EXPECT_EQ(bits(ElementType::e4m3, 1), 0x38);
  EXPECT_EQ(bits(ElementType::e4m3, -13), 0xd5);
  EXPECT_EQ(bits(ElementType::e4m3, 448), 0x7e);
  EXPECT_EQ(bits(ElementType::e5m2, 1), 0x3c);
  EXPECT_EQ(bits(ElementType::e5m2, -7), 0xc7);
  EXPECT_EQ(bits(ElementType::s8, -100), 0x9c);
}

}  // namespace
}  // namespace gemm::bench
