// Where the true result can be represented, it must be hit bit for bit: on the CPU and (label gpu)
// on the GPU, every kernel, every precision, every layout, every point of a tuning space.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <functional>
#include <span>
#include <vector>

#include "bench/cases.hpp"
#include "bench/problem_data.hpp"
#include "bench/test_backend.hpp"

namespace gemm::bench {
namespace {

constexpr Bound kExact{.of_magnitude = 0, .of_expected = 0, .absolute = 0};

// Up to here the output holds every integer.
double largest_integer(Precision precision) {
  switch (traits_of(precision).output) {
    case ElementType::bf16:
      return 0x1p8;
    case ElementType::f16:
      return 0x1p11;
    case ElementType::f32:
      return 0x1p24;
    case ElementType::f64:
      return 0x1p53;
    case ElementType::s32:
      return 0x1p31 - 1;
    case ElementType::e4m3:
    case ElementType::e5m2:
    case ElementType::s8:
      break;  // operands alone
  }
  return 0;
}

template <typename T>
void append(std::vector<std::byte>& bytes, T value) {
  bytes.resize(bytes.size() + sizeof value);
  std::memcpy(bytes.data() + bytes.size() - sizeof value, &value, sizeof value);
}

// Up to here the operands hold every integer.
double largest_operand(Precision precision) {
  switch (traits_of(precision).input) {
    case ElementType::e5m2:
      return 0x1p3;
    case ElementType::e4m3:
      return 0x1p4;
    case ElementType::s8:
      return 0x1p7 - 1;
    default:
      return 0x1p8;
  }
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
std::vector<int> turned(const std::vector<int>& values, std::size_t rows) {
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
};

// What is wrong with the product of one case of the example, or nothing.
std::string complaint_about(Backend& backend, const Case& one, const Example& example) {
  const Problem& p = one.problem;
  const ElementType input = traits_of(p.precision).input;
  const auto stored = [&](const std::vector<int>& values, bool transposed, std::int64_t rows) {
    return encoded(input, transposed ? turned(values, static_cast<std::size_t>(rows)) : values);
  };
  const auto bytes_a = stored(example.a, transposes_a(p.layout), p.m);
  const auto bytes_b = stored(example.b, transposes_b(p.layout), p.k);
  const Buffer a = upload(backend, bytes_a.data(), bytes_a.size());
  const Buffer b = upload(backend, bytes_b.data(), bytes_b.size());
  const std::size_t reference_bytes = example.expected.size() * sizeof(double);
  const Buffer expected = upload(backend, example.expected.data(), reference_bytes);
  const std::size_t c_bytes = example.expected.size() * traits_of(p.precision).output_bytes;
  const Buffer c = backend.allocate(c_bytes);
  backend.poison(c.get(), c_bytes);
  backend.run(one.kernel->prepare(p, backend.device(), {a.get(), b.get(), c.get()}));
  const auto* reference = reinterpret_cast<const double*>(expected.get());
  return complaint(p, backend.judge(p, c.get(), reference, reference, kExact)).value_or("");
}

enum class Whose { ours, libraries };

// Calls f with every case of the shape that runs there and whose results, up to `largest`, have no
// need to be rounded.
std::int64_t for_each_case(Backend& backend, Whose whose, const Shape& shape, double largest,
                           const std::function<void(const Case&)>& f) {
  std::int64_t cases = 0;
  for (const Case& one : make_cases({shape}, {}, backend.device().kind, true, {})) {
    const Kernel& kernel = *one.kernel;
    if (one.kernel->is_library() != (whose == Whose::libraries)) continue;
    if (largest > largest_integer(one.problem.precision)) continue;
    if (largest_operand(one.problem.precision) < 0x1p8) continue;
    if (kernel.unsupported && kernel.unsupported(one.problem, backend.device())) continue;
    f(one);
    ++cases;
  }
  return cases;
}

void expect_exact(Backend& backend, Whose whose, const Example& example) {
  const double largest = *std::ranges::max_element(example.expected);
  EXPECT_GT(for_each_case(backend, whose, example.shape, largest,
                          [&](const Case& one) {
                            EXPECT_EQ(complaint_about(backend, one, example), "") << one.name();
                          }),
            0);
}

// Operands are -4 to 4.
void expect_integers_are_exact(Backend& backend) {
  constexpr Shape kShapes[] = {{1, 1, 1},        {5, 7, 3},        {300, 1, 16},   {1, 300, 16},
                               {33, 65, 15},     {64, 64, 16},     {129, 257, 13}, {255, 130, 16},
                               {96, 40, 128},    {67, 129, 127},   {64, 96, 64},   {1, 1, 4099},
                               {130, 257, 1023}, {256, 512, 1024}, {511, 385, 259}};
  const auto expect_exact_sums = [&](const Case& one) {
    ProblemData data(backend, one.problem, Fill::integers, 3, 1);
    data.poison();
    backend.run(one.kernel->prepare(one.problem, backend.device(), data.sets()[0]));
    const Verdict verdict = data.judge(one.problem, 1);
    EXPECT_EQ(complaint(one.problem, verdict).value_or(""), "") << one.name();
    EXPECT_EQ(verdict.max_error, 0) << one.name();
  };
  for (const Shape& shape : kShapes) {
    const double largest = 16.0 * static_cast<double>(shape.k);
    EXPECT_GT(for_each_case(backend, Whose::ours, shape, largest, expect_exact_sums), 0)
        << name_of(shape);
  }
}

// A picks rows of B: whatever lands at the wrong place is seen, and nothing is rounded.
void expect_one_hot_a_permutes_b(Backend& backend, Whose whose = Whose::ours) {
  constexpr Shape kShapes[] = {{7, 5, 3},   {65, 129, 33},  {64, 64, 64},    {33, 257, 70},
                               {40, 9, 40}, {128, 96, 160}, {257, 130, 261}, {1, 33, 65}};
  constexpr std::int64_t kPrime = 37, kValues = 251;  // 37 divides no k: rows are permuted
  // Of libraries the first few: one of them tries all its algorithms for each problem.
  const std::size_t few = whose == Whose::libraries ? 3 : std::size(kShapes);
  for (const Shape& shape : std::span(kShapes).first(few)) {
    const auto [m, n, k] = shape;
    Example example{.shape = shape,
                    .a = std::vector<int>(m * k),
                    .b = std::vector<int>(k * n),
                    .expected = std::vector<double>(m * n)};
    for (std::int64_t i = 0; i < k * n; ++i) example.b[i] = static_cast<int>(7 * i % kValues) - 100;
    for (std::int64_t i = 0; i < m; ++i) {
      const std::int64_t row = (kPrime * i + 5) % k;
      example.a[i * k + row] = 1;
      for (std::int64_t j = 0; j < n; ++j) example.expected[i * n + j] = example.b[row * n + j];
    }
    expect_exact(backend, whose, example);
  }
}

// 0, 1, 2, ... times ones, whose rows are known.
Example counted(const Shape& shape, const std::vector<double>& rows) {
  Example example{.shape = shape,
                  .a = std::vector<int>(shape.m * shape.k),
                  .b = std::vector<int>(shape.k * shape.n, 1),
                  .expected = {}};
  for (int i = 0; i < shape.m * shape.k; ++i) example.a[i] = i;
  for (const double row : rows)
    example.expected.insert(example.expected.end(), static_cast<std::size_t>(shape.n), row);
  return example;
}

// As printed in Numba's documentation, the second because its matrices are not square.
void expect_worked_examples(Backend& backend, Whose whose = Whose::ours) {
  expect_exact(backend, whose, counted({4, 4, 4}, {6, 22, 38, 54}));
  expect_exact(backend, whose, counted({5, 7, 23}, {253, 782, 1311, 1840, 2369}));
}

TEST(Exactness, OfIntegersOnTheCpu) { expect_integers_are_exact(*make_host_backend()); }
TEST(Exactness, OfAPermutationOnTheCpu) { expect_one_hot_a_permutes_b(*make_host_backend()); }
TEST(Exactness, OfWorkedExamplesOnTheCpu) { expect_worked_examples(*make_host_backend()); }

TEST(Exactness, OfIntegersOnTheGpu) {
  SKIP_WITHOUT_GPU();
  expect_integers_are_exact(*cuda());
}
TEST(Exactness, OfAPermutationOnTheGpu) {
  SKIP_WITHOUT_GPU();
  expect_one_hot_a_permutes_b(*cuda());
}
TEST(Exactness, OfWorkedExamplesOnTheGpu) {
  SKIP_WITHOUT_GPU();
  expect_worked_examples(*cuda());
}

TEST(Libraries, AreExactOnTheCpu) {
  const auto backend = make_host_backend();
  if (for_each_case(*backend, Whose::libraries, {1, 1, 1}, 0, [](const Case&) {}) == 0)
    GTEST_SKIP() << "built without OpenBLAS";
  expect_one_hot_a_permutes_b(*backend, Whose::libraries);
  expect_worked_examples(*backend, Whose::libraries);
}

// Apart, as their other tests are.
TEST(Libraries, AreExactOnTheGpu) {
  SKIP_WITHOUT_GPU();
  expect_one_hot_a_permutes_b(*cuda(), Whose::libraries);
  expect_worked_examples(*cuda(), Whose::libraries);
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
    std::memcpy(&found, encoded(type, {value}).data(), sizeof found);
    return found;
  };
  EXPECT_EQ(bits(ElementType::f16, 0), 0);
  EXPECT_EQ(bits(ElementType::f16, 1), 0x3c00);
  EXPECT_EQ(bits(ElementType::f16, -2), 0xc000);
  EXPECT_EQ(bits(ElementType::f16, 114), 0x5720);
  EXPECT_EQ(bits(ElementType::bf16, 1), 0x3f80);
  EXPECT_EQ(bits(ElementType::bf16, -100), 0xc2c8);
}

}  // namespace
}  // namespace gemm::bench
