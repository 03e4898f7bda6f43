#include "kernels/registry.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kernels/epilogue.hpp"
#include "kernels/layout.hpp"

namespace gemm {
namespace {

std::string letters_of(std::string_view text) {
  std::string letters;
  for (const char ch : text)
    if (std::isalnum(static_cast<unsigned char>(ch)))
      letters += static_cast<char>(std::tolower(static_cast<unsigned char>(ch)));
  return letters;
}

TEST(Registry, EveryKernelIsComplete) {
  ASSERT_FALSE(registry().empty());
  for (const RegisteredKernel& kernel : registry()) {
    EXPECT_FALSE(kernel.name.empty());
    EXPECT_FALSE(kernel.idea.empty()) << kernel.name;
    EXPECT_FALSE(kernel.source.empty()) << kernel.name;
    EXPECT_FALSE(kernel.precisions.empty()) << kernel.name;
    EXPECT_FALSE(kernel.layouts.empty()) << kernel.name;
    EXPECT_NE(kernel.prepare, nullptr) << kernel.name;
    EXPECT_EQ(kernel.rung == 0, kernel.is_library()) << kernel.name;
    EXPECT_EQ(kernel.name.find_first_of("/: "), std::string_view::npos) << kernel.name;
  }
}

TEST(Registry, LabelsAreUniqueAndRungsAscend) {
  std::set<std::string> labels;
  for (const RegisteredKernel& kernel : registry())
    EXPECT_TRUE(labels.insert(kernel.label()).second) << kernel.label() << " twice";
  EXPECT_TRUE(std::ranges::is_sorted(registry(), {}, &RegisteredKernel::rung));
}

TEST(Registry, RefusesASecondKernelOfTheSameLabel) {
  EXPECT_THROW(Registration(static_cast<const Kernel&>(registry().front())), std::logic_error);
}

// One grep finds file, kernel, benchmark and figure label.
TEST(Registry, KernelsAreNamedAfterTheirFiles) {
  for (const RegisteredKernel& kernel : registry()) {
    const std::string file = (kernel.family == "cpu" ? "cpu" : "") + letters_of(kernel.stem);
    if (kernel.is_library())  // one of its calls may have a file of its own
      EXPECT_TRUE(file.starts_with(letters_of(kernel.name))) << file;
    else
      EXPECT_EQ(letters_of(kernel.name), file);
  }
}

// A file that is compiled but registers nothing would be missing silently.
TEST(Registry, EveryKernelFileThatIsBuiltRegistersSomething) {
  for (const std::string source : {GEMM_BENCH_KERNEL_SOURCES}) {
    const std::filesystem::path path(source);
    const std::string stem = path.stem().string();
    EXPECT_TRUE(std::ranges::any_of(registry(),
                                    [&](const RegisteredKernel& kernel) {
                                      return kernel.stem == stem ||
                                             stem.ends_with("_" + kernel.stem);
                                    }))
        << path << " registers no kernel";
  }
}

TEST(Registry, LabelsCarryTheParameters) {
  RegisteredKernel kernel;
  kernel.name = "Tiled";
  EXPECT_EQ(kernel.label(), "Tiled");
  kernel.parameters = {{"tile", "16"}, {"stages", "3"}};
  EXPECT_EQ(kernel.label(), "Tiled/tile:16/stages:3");
}

// Each kernel says in a line which of a batch and of one product it does not take.
TEST(Registry, KernelsSayWhetherTheyTakeABatch) {
  for (const RegisteredKernel& kernel : registry()) {
    if (kernel.is_library() && kernel.batches == Batches::also) continue;  // cuBLASLt asks a GPU
    const auto why = [&](std::int32_t batch) {
      const Problem p{64, 64, 64, kernel.precisions[0], kernel.layouts[0], batch};
      return kernel.unsupported ? kernel.unsupported(p, Device{}).value_or("") : "";
    };
    EXPECT_EQ(why(3) == "takes no batch", kernel.batches == Batches::none) << kernel.label();
    EXPECT_EQ(why(1) == "takes only a batch", kernel.batches == Batches::only) << kernel.label();
  }
}

TEST(Registry, KernelsSayWhichEpiloguesTheySupport) {
  for (const RegisteredKernel& kernel : registry()) {
    if (kernel.batches == Batches::only || kernel.is_library()) continue;  // cuBLASLt asks a GPU
    for (const Activation activation : kActivations) {
      Problem p{64, 64, 64, kernel.precisions[0], kernel.layouts[0]};
      p.activation = activation;
      const std::string why = kernel.unsupported(p, Device{}).value_or("");
      const bool supports = std::ranges::count(kernel.activations, activation) > 0;
      EXPECT_EQ(why.ends_with("epilogue " + std::string(name_of(activation))) ||
                    why == "takes only a product with an epilogue",
                !supports)
          << kernel.label() << ": " << why;
    }
  }
}

TEST(Problem, WithAnEpilogueReadsWhatIsAdded) {
  Problem p{3, 5, 7, Precision::bf16};
  const double plain = bytes_minimum(p);
  p.activation = Activation::bias_gelu;
  EXPECT_EQ(bytes_minimum(p), plain + 2 * 5);
  p.activation = Activation::residual;
  EXPECT_EQ(bytes_minimum(p), plain + 2 * 3 * 5);
  EXPECT_EQ(epilogue_unsupported(p), std::nullopt);
  p.batch = 2;
  EXPECT_EQ(epilogue_unsupported(p), "an epilogue is supported for one product only");
  p = {3, 5, 7, Precision::e4m3, Layout::nt, 1, Tokens::equal, Activation::bias};
  EXPECT_EQ(epilogue_unsupported(p), "an epilogue is supported in f32, bf16 and f16 only");
}

TEST(Problem, OfABatchHasTheWorkAndTheBytesOfAllItsProducts) {
  const Problem one{3, 5, 7, Precision::bf16}, batch{3, 5, 7, Precision::bf16, Layout::nn, 4};
  EXPECT_EQ(one_of(batch), one);
  EXPECT_EQ(flop(batch), 4 * flop(one));
  EXPECT_EQ(bytes_minimum(batch), 4 * bytes_minimum(one));
  EXPECT_EQ(elements_of_c(batch), 60);
  const std::byte a[4 * 21 * 2]{}, b[4 * 35 * 2]{};
  std::byte c[4 * 15 * 2]{};
  const Operands last = operands_of_product(batch, {a, b, c}, 3);
  EXPECT_EQ(last.a, a + 3 * 21 * 2);
  EXPECT_EQ(last.b, b + 3 * 35 * 2);
  EXPECT_EQ(last.c, c + 3 * 15 * 2);
}

TEST(Tuning, TakesTheFirstPointThatSupportsTheProblem) {
  const auto point = [](std::string tile, std::vector<Layout> layouts) {
    return Kernel{.name = "K",
                  .parameters = {{"T", tile}},
                  .precisions = {Precision::f32},
                  .layouts = std::move(layouts)};
  };
  std::vector<Kernel> points{point("8", {Layout::nn}), point("16", {Layout::nn, Layout::nt})};
  const auto chosen = [&](Layout layout, Precision precision = Precision::f32) {
    return first_that_runs(points, {64, 64, 64, precision, layout}, Device{});
  };
  EXPECT_EQ(chosen(Layout::nn), &points[0]);
  EXPECT_EQ(chosen(Layout::nt), &points[1]);
  EXPECT_EQ(chosen(Layout::tn), nullptr);
  EXPECT_EQ(chosen(Layout::nn, Precision::f64), nullptr);
  points[0].unsupported = [](const Problem&, const Device&) {
    return std::optional<std::string>("no");
  };
  EXPECT_EQ(chosen(Layout::nn), &points[1]);
}

TEST(Precision, TableIsIndexedByTheEnumAndNamesAreUnique) {
  std::set<std::string_view> names;
  for (std::size_t i = 0; i < kPrecisions.size(); ++i) {
    EXPECT_EQ(static_cast<std::size_t>(kPrecisions[i].precision), i);
    EXPECT_TRUE(names.insert(kPrecisions[i].name).second);
    EXPECT_EQ(precision_named(kPrecisions[i].name), kPrecisions[i].precision);
    EXPECT_EQ(kPrecisions[i].accumulate_error > 0, kPrecisions[i].output != ElementType::s32);
  }
  EXPECT_EQ(precision_named("f33"), std::nullopt);
}

TEST(Layout, NamesAreReadBack) {
  for (const Layout layout : kLayouts) EXPECT_EQ(layout_named(name_of(layout)), layout);
  EXPECT_EQ(layout_named("NN"), std::nullopt);
  EXPECT_EQ(layout_named(""), std::nullopt);
}

// Indices in a stored matrix are a bijection.
TEST(Layout, IndexesEachElementOnce) {
  for (const Layout layout : kLayouts) {
    const Problem p{3, 5, 7, Precision::f32, layout};
    std::set<std::int64_t> a, b;
    for (std::int64_t l = 0; l < p.k; ++l) {
      for (std::int64_t row = 0; row < p.m; ++row) a.insert(index_in_a(p, row, l));
      for (std::int64_t column = 0; column < p.n; ++column) b.insert(index_in_b(p, l, column));
    }
    EXPECT_EQ(a.size(), 21U);
    EXPECT_EQ(*a.rbegin(), 20);
    EXPECT_EQ(b.size(), 35U);
    EXPECT_EQ(*b.rbegin(), 34);
    EXPECT_EQ(index_in_a(p, 0, 1), transposes_a(layout) ? 3 : 1);
    EXPECT_EQ(index_in_b(p, 0, 1), transposes_b(layout) ? 7 : 1);
  }
  EXPECT_TRUE(transposes_a(Layout::tn) && transposes_b(Layout::nt)) << "A's letter is the first";
}

TEST(Problem, CountsFlopAndBytes) {
  const Problem p{3, 5, 7, Precision::bf16};
  EXPECT_EQ(flop(p), 2.0 * 3 * 5 * 7);
  EXPECT_EQ(bytes_minimum(p), 2.0 * (3 * 7 + 7 * 5 + 3 * 5));
  const Problem large{1 << 20, 1 << 20, 1 << 20, Precision::f32};
  EXPECT_EQ(flop(large), 0x1p61);  // beyond 32 bits
}

}  // namespace
}  // namespace gemm
