// What a launch made of a renewed set: right in every layout, and what is wrong is found. On the
// CPU, and (label GPU) on the GPU.
#include "bench/verification/renewal.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "bench/device/problem_data.hpp"
#include "bench/device/test_backend.hpp"
#include "bench/verification/scales.hpp"
#include "kernels/registry.hpp"

namespace gemm::bench {
namespace {

constexpr std::uint64_t kSeed = 11, kSecret = 5;

// A ring of FP32 sets with the product in C, whose copies on the host tests may change.
class Ring {
 public:
  Ring(Backend& backend, const Problem& p, std::int64_t sets = 2)
      : backend_(backend),
        memory_(backend.allocate(sets * OperandLayout(p).total)),
        ring_{p, Fill::uniform, memory_.get(), sets} {
    backend.poison(memory_.get(), sets * ring_.layout().total);
    backend.renew(ring_, kSeed);
    for (std::int64_t set = 0; set < sets; ++set) {
      a.push_back(fetched(ring_.operands(set).a, elements_of_a(p)));
      b.push_back(fetched(ring_.operands(set).b, elements_of_b(p)));
      c.push_back(product(p, a.back(), b.back()));
    }
  }

  // With this conversion of each operand and after each addition.
  static std::vector<float> product(const Problem& problem, const std::vector<float>& a,
                                    const std::vector<float>& b,
                                    const std::function<float(float)>& kept = {}) {
    const Products p(problem);
    std::vector<float> c;
    for (std::int64_t at = 0; at < elements_of_c(p); ++at) {
      const auto [which, i, j] = place_in_c(p, at);
      const Problem one = p.product(which);
      float sum = 0;
      for (std::int64_t l = 0; l < p.k; ++l) {
        float left = a[p.before_a(which) + index_in_a(one, i, l)],
              right = b[p.before_b(which) + index_in_b(one, l, j)];
        if (kept) left = kept(left), right = kept(right);
        sum = std::fma(left, right, sum);
      }
      c.push_back(sum);
    }
    return c;
  }

  // Of the last set, and of all, after what tests changed was written back.
  std::optional<std::string> complaint_now(std::uint64_t secret = kSecret) {
    std::vector<std::int64_t> places;
    for (std::int64_t set = 0; set < ring_.sets; ++set) {
      store(ring_.operands(set).a, a[set]);
      store(ring_.operands(set).b, b[set]);
      store(ring_.operands(set).c, c[set]);
      places.push_back(set);
    }
    const Verdict verdict = backend_.check_renewed(ring_, kSeed, places, secret)->read();
    return complaint(ring_.problem, verdict);
  }
  void write(std::int64_t set, std::int64_t offset, float value) {
    backend_.copy(ring_.base + set * ring_.layout().total + offset, &value, sizeof value);
  }
  OperandLayout layout() const { return ring_.layout(); }

  std::vector<std::vector<float>> a, b, c;

 private:
  std::vector<float> fetched(const void* from, std::int64_t count) {
    std::vector<float> values(count);
    backend_.copy(values.data(), from, count * static_cast<std::int64_t>(sizeof(float)));
    return values;
  }
  void store(const void* to, const std::vector<float>& values) {
    backend_.copy(const_cast<void*>(to), values.data(),
                  static_cast<std::int64_t>(values.size() * sizeof(float)));
  }

  Backend& backend_;
  Buffer memory_;
  RingMemory ring_;
};

void expect_right_passes(Backend& backend) {
  for (const Layout layout : kLayouts)
    for (const auto& [m, n, k, batch] : {std::array{150, 131, 67, 1},
                                         {1, 1, 1, 1},
                                         {17, 33, 5, 1},
                                         {1, 70, 300, 1},
                                         {70, 1, 300, 1},
                                         {1, 1, 100'003, 1},
                                         {50, 31, 67, 4},
                                         {2, 3, 5, 7}}) {
      Ring ring(backend, {m, n, k, Precision::f32, layout, batch});
      for (const std::uint64_t secret : {1, 2, 3})
        EXPECT_EQ(ring.complaint_now(secret), std::nullopt)
            << name_of(layout) << " " << batch << " of " << m << "x" << n << "x" << k;
    }
}

void expect_wrong_is_found(Backend& backend) {
  const Problem p{150, 131, 67, Precision::f32};
  const auto found = [&](const std::function<void(Ring&)>& spoil) {
    Ring ring(backend, p);
    spoil(ring);
    return ring.complaint_now().value_or("passed");
  };
  const auto has = [](const std::string& text, const std::string& part) {
    EXPECT_NE(text.find(part), std::string::npos) << text;
  };
  has(found([](Ring& r) { r.c[1][7000] += 1; }), "1 of 150 rows");
  has(found([](Ring& r) { r.c[1][7000] = std::nanf(""); }), "rows");
  has(found([](Ring& r) { r.c[0] = r.c[1]; }), "150 of 150 rows");
  has(found([&](Ring& r) {
        std::swap_ranges(r.c[0].begin(), r.c[0].begin() + p.n, r.c[0].begin() + p.n);
      }),
      "2 of 150 rows");
  has(found([](Ring& r) { r.a[1][99] = 0.5F; }), "rows");  // and C is that of the values as given
  has(found([&](Ring& r) { r.write(0, r.layout().c + r.layout().c_bytes + 4, 0); }),
      "byte 5 past its end");
  has(found([](Ring& r) { r.write(1, 8, 0); }), "before its beginning");
  Ring ring(backend, p);
  ring.b[0][5] = 2;  // with a C that is right for it
  ring.c[0] = Ring::product(p, ring.a[0], ring.b[0]);
  has(ring.complaint_now().value_or("passed"), "changed A or B");
}

// Groups with and without rows; the next row of C is another group's.
void expect_groups_are_checked(Backend& backend) {
  for (const Tokens tokens : {Tokens::band, Tokens::zipf, Tokens::real})
    for (const Layout layout : kLayouts) {
      const Problem p{.m = 9,
                      .n = 31,
                      .k = 67,
                      .precision = Precision::f32,
                      .layout = layout,
                      .batch = 32,
                      .tokens = tokens};
      const Products all(p);
      Ring ring(backend, p);
      for (const std::uint64_t secret : {1, 2, 3})
        EXPECT_EQ(ring.complaint_now(secret), std::nullopt) << name_of(layout);
      ring.c[1][all.before_c(30) + 5] += 1;
      const std::string text = ring.complaint_now().value_or("passed");
      const std::int64_t of = all.product_of(all.first_row(30));
      EXPECT_NE(text.find("row 0 of product " + std::to_string(of)), std::string::npos) << text;
    }
}

// In a batch every product is looked at, and only its own operands are right for it.
void expect_wrong_batch_is_found(Backend& backend) {
  for (const Layout layout : kLayouts) {
    const Problem p{50, 31, 67, Precision::f32, layout, 4};
    const auto of_b = p.k * p.n, of_c = p.m * p.n;
    const auto found = [&](const std::function<void(Ring&)>& spoil) {
      Ring ring(backend, p);
      spoil(ring);
      return ring.complaint_now().value_or("passed");
    };
    const auto has = [&](const std::string& text, const std::string& part) {
      EXPECT_NE(text.find(part), std::string::npos) << name_of(layout) << ": " << text;
    };
    has(found([&](Ring& r) { std::fill_n(r.c[1].begin() + 2 * of_c, of_c, std::nanf("")); }),
        "50 of 200 rows of C differ from A (B x) by more than rounding, row 0 of product 2 first");
    has(found([&](Ring& r) {
          std::vector<float> b = r.b[0];
          std::rotate(b.begin(), b.begin() + of_b, b.end());  // that of the next product
          r.c[0] = Ring::product(p, r.a[0], b);
        }),
        "200 of 200 rows");
    has(found([&](Ring& r) { std::copy_n(r.c[1].begin(), of_c, r.c[1].begin() + 3 * of_c); }),
        "50 of 200 rows");
    has(found([&](Ring& r) { r.c[1][3 * of_c + 40 * p.n + 1] += 1; }), "row 40 of product 3");
    Ring ring(backend, p);
    ring.a[0].back() = 2;  // with a C that is right for it
    ring.c[0] = Ring::product(p, ring.a[0], ring.b[0]);
    has(ring.complaint_now().value_or("passed"), "changed A or B");
  }
}

// The eight elements of a sparse line are of one product, not always the same.
TEST(Renewal, SparseLinesAreOfAnyProductOfABatch) {
  const Problem p{40, 50, 600, Precision::f32, Layout::nn, 3};
  const auto host = make_host_backend();
  const Ring ring(*host, p, 20);
  std::array<int, 3> times{};
  for (std::int64_t set = 0; set < 20; ++set) {
    const SparseLines sparse(Products(p), RenewedSet(kSeed, set));
    ++times.at(sparse.which);
    for (std::int64_t which = 0; which < p.batch; ++which) {
      int row = 0;
      for (std::int64_t l = 0; l < p.k; ++l)
        row += ring.a[set][which * p.m * p.k + index_in_a(p, sparse.row, l)] != 0 ? 1 : 0;
      EXPECT_EQ(row == 8, which == sparse.which);
    }
  }
  for (const int each : times) EXPECT_GT(each, 0);
}

TEST(Renewal, TakesWhatIsRight) { expect_right_passes(*make_host_backend()); }
TEST(Renewal, FindsWhatIsWrong) {
  expect_wrong_is_found(*make_host_backend());
  expect_wrong_batch_is_found(*make_host_backend());
  expect_groups_are_checked(*make_host_backend());
}
TEST(Renewal, TakesWhatIsRightOnTheGpu) {
  SKIP_WITHOUT_GPU();
  expect_right_passes(*cuda());
}
TEST(Renewal, FindsWhatIsWrongOnTheGpu) {
  SKIP_WITHOUT_GPU();
  expect_wrong_is_found(*cuda());
  expect_wrong_batch_is_found(*cuda());
  expect_groups_are_checked(*cuda());
}

// The upper bits of a value, to the nearest.
float rounded(float value, int bits) {
  int exponent = 0;
  const float fraction = std::frexp(value, &exponent);
  return std::ldexp(std::nearbyint(std::ldexp(fraction, bits)), exponent - bits);
}

TEST(Renewal, FindsOperandsOfFewerBitsAtAnyK) {
  const auto host = make_host_backend();
  for (const std::int64_t k : {256, 1024, 4096, 16384}) {
    const Problem p{16, 16, k, Precision::f32};
    for (const int bits : {11, 16, 17}) {
      Ring ring(*host, p, 1);
      ring.c[0] = Ring::product(p, ring.a[0], ring.b[0], [=](float x) { return rounded(x, bits); });
      EXPECT_NE(ring.complaint_now(), std::nullopt) << bits << " bits at k = " << k;
    }
    // Three products of the parts of two BF16 numbers.
    Ring ring(*host, p, 1);
    for (std::int64_t e = 0; e < p.m * p.n; ++e) {
      float sum = 0;
      for (std::int64_t l = 0; l < k; ++l) {
        const float x = ring.a[0][index_in_a(p, e / p.n, l)],
                    y = ring.b[0][index_in_b(p, l, e % p.n)], x1 = rounded(x, 8),
                    y1 = rounded(y, 8), x2 = rounded(x - x1, 8), y2 = rounded(y - y1, 8);
        sum += x1 * y1 + (x1 * y2 + x2 * y1);
      }
      ring.c[0][static_cast<std::size_t>(e)] = sum;
    }
    EXPECT_NE(ring.complaint_now(), std::nullopt) << "3xBF16 at k = " << k;
  }
}

// With few rows, elements that are drawn often lie in the sparse one.
TEST(Renewal, TakesTf32OfFewRows) {
  const Problem p{17, 70, 4096, Precision::tf32};
  const auto host = make_host_backend();
  Ring ring(*host, p, 1);
  ring.c[0] = Ring::product(p, ring.a[0], ring.b[0], [](float x) {
    return std::bit_cast<float>(std::bit_cast<std::uint32_t>(x) & ~0x1fffU);  // cut to 10 bits
  });
  for (std::uint64_t secret = 0; secret < 50; ++secret)
    EXPECT_EQ(ring.complaint_now(secret), std::nullopt);
}

TEST(Renewal, FindsZeroAndHalfOfALongSum) {
  const Problem p{1, 1, 1 << 22, Precision::f32};
  const auto host = make_host_backend();
  Ring ring(*host, p, 1);
  const float right = ring.c[0][0];
  EXPECT_EQ(ring.complaint_now(), std::nullopt);
  ring.c[0][0] = 0;
  EXPECT_NE(ring.complaint_now(), std::nullopt);
  ring.c[0][0] = right + 5;  // a hundredth of a typical result
  EXPECT_NE(ring.complaint_now(), std::nullopt);
}

TEST(Renewal, GivesOtherValuesToEachSeedSetAndPlaceButFewToSparseLines) {
  const Problem p{40, 50, 600, Precision::f32};
  const auto host = make_host_backend();
  const Ring ring(*host, p);
  EXPECT_NE(ring.a[0], ring.a[1]);
  EXPECT_NE(ring.b[0], ring.b[1]);
  const SparseLines sparse(Products(p), RenewedSet(kSeed, 1));
  int row = 0, column = 0, all = 0;
  for (std::int64_t l = 0; l < p.k; ++l) {
    row += ring.a[1][index_in_a(p, sparse.row, l)] != 0 ? 1 : 0;
    column += ring.b[1][index_in_b(p, l, sparse.column)] != 0 ? 1 : 0;
  }
  for (const float value : ring.a[1]) all += value != 0 ? 1 : 0;
  EXPECT_EQ(row, 8);
  EXPECT_EQ(column, 8);
  EXPECT_GT(all, 39 * 600);
  EXPECT_EQ(SparseLines(Products({1, 1, 600, Precision::f32}), RenewedSet(kSeed, 1)).row, -1);
}

// A set whose C a kernel of the CPU has computed, and scales that are not those it was given.
void expect_scales_are_checked(Backend& backend) {
  const auto kernel = std::ranges::find(registry(), "CpuBlockScaled", &RegisteredKernel::name);
  ASSERT_NE(kernel, registry().end());
  for (const auto& [m, n, k, batch] : {std::array{70, 300, 400, 1},
                                       {1, 130, 128, 1},
                                       {33, 5, 1, 1},
                                       {64, 128, 1030, 1},
                                       {20, 140, 400, 3},
                                       {5, 140, 400, 32}})
    for (const Fill fill : {Fill::uniform, Fill::normal, Fill::integers}) {
      const Problem p{m,
                      n,
                      k,
                      Precision::e4m3block,
                      Layout::nt,
                      batch,
                      batch == 32 ? Tokens::real : Tokens::equal};
      const OperandLayout at(p);
      const Buffer there = backend.allocate(at.total);
      const RingMemory ring{p, fill, there.get(), 1};
      backend.poison(there.get(), at.total);
      backend.renew(ring, kSeed);
      std::vector<std::byte> here(at.total);
      backend.copy(here.data(), there.get(), at.total);
      auto* const a_scales = reinterpret_cast<float*>(here.data() + at.a_scales);
      const auto complaint_about = [&](std::int64_t from, std::int64_t bytes) {
        kernel->prepare(p, backend.device(), at.at(here.data()))(nullptr);
        backend.copy(there.get() + at.c, here.data() + at.c, at.c_bytes);
        backend.copy(there.get() + from, here.data() + from, bytes);
        const std::int64_t place = 0;
        return complaint(p, backend.check_renewed(ring, kSeed, {&place, 1}, kSecret)->read());
      };
      EXPECT_EQ(complaint_about(at.c, at.c_bytes), std::nullopt) << m << "x" << n << "x" << k;
      a_scales[m - 1] *= 2;
      const std::string changed = complaint_about(at.a_scales, at.a_scales_bytes).value_or("");
      EXPECT_NE(changed.find("changed A or B"), std::string::npos) << changed;
      a_scales[m - 1] /= 2;
      backend.copy(there.get() + at.a_scales, a_scales, at.a_scales_bytes);
      std::fill_n(a_scales, scales_of_a(p), 3.0F);
      EXPECT_NE(complaint_about(at.c, at.c_bytes), std::nullopt) << m << "x" << n << "x" << k;
    }
}
TEST(Renewal, ChecksScales) { expect_scales_are_checked(*make_host_backend()); }
TEST(Renewal, ChecksScalesOnTheGpu) {
  SKIP_WITHOUT_GPU();
  expect_scales_are_checked(*cuda());
}

// The product in FP64, and Freivalds' check, of data that all kernels share.
TEST(Renewal, ScalesAreInTheReference) {
  const auto kernel = std::ranges::find(registry(), "CpuBlockScaled", &RegisteredKernel::name);
  const auto host = make_host_backend();
  for (const Reference reference : {Reference::product, Reference::rows})
    for (const Fill fill : {Fill::uniform, Fill::normal, Fill::integers})
      for (const Problem& p :
           {Problem{70, 140, 1100, Precision::e4m3block, Layout::nt},
            Problem{3, 140, 400, Precision::e4m3block, Layout::nt, 32, Tokens::real}}) {
        ProblemData data(*host, p, fill, 1, 2, reference);
        const auto passes = [&](std::int64_t a_from, std::int64_t b_from) {
          data.poison();
          for (Operands set : data.sets()) {
            const auto rotated = [](const float* all, std::int64_t count, std::int64_t from) {
              std::vector<float> other(all, all + count);
              std::rotate(other.begin(), other.begin() + from, other.end());
              return other;
            };
            const auto a = rotated(set.a_scales, scales_of_a(p), a_from),
                       b = rotated(set.b_scales, scales_of_b(p), b_from);
            set.a_scales = a.data();
            set.b_scales = b.data();
            kernel->prepare(p, host->device(), set)(nullptr);
          }
          return data.judge(p, 2).passed();
        };
        EXPECT_TRUE(passes(0, 0)) << name_of(fill);
        EXPECT_FALSE(passes(1, 0)) << name_of(fill) << ": those of the next row";
        EXPECT_FALSE(passes(0, scales_of_b_stride(p.k))) << name_of(fill) << ": of other columns";
        EXPECT_EQ(passes(0, scales_of_each_b(p)), p.batch == 1) << name_of(fill) << ": next group";
      }
}

// The same values on both, of each type.
TEST(Renewal, IsTheSameOnTheGpu) {
  SKIP_WITHOUT_GPU();
  for (const Fill fill : {Fill::uniform, Fill::normal, Fill::integers})
    for (const Problem& p : {Problem{33, 47, 65, Precision::f32, Layout::nn, 3},
                             Problem{33, 47, 65, Precision::f32, Layout::nt, 3},
                             Problem{33, 47, 65, Precision::f32, Layout::tn, 3},
                             Problem{33, 47, 65, Precision::f32, Layout::tt, 3},
                             Problem{33, 147, 265, Precision::e4m3block, Layout::nt}}) {
      const OperandLayout at(p);
      const auto host = make_host_backend();
      const Buffer there = cuda()->allocate(2 * at.total), here = host->allocate(2 * at.total);
      cuda()->poison(there.get(), 2 * at.total);
      host->poison(here.get(), 2 * at.total);
      cuda()->renew({p, fill, there.get(), 2}, kSeed);
      host->renew({p, fill, here.get(), 2}, kSeed);
      std::vector<std::byte> found(2 * at.total);
      cuda()->copy(found.data(), there.get(), 2 * at.total);
      EXPECT_TRUE(std::equal(found.begin(), found.end(), here.get()))
          << traits_of(p.precision).name << name_of(p.layout);
    }
}

}  // namespace
}  // namespace gemm::bench
