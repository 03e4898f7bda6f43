// The CPU as a device: the steady clock, plain memory, and an FP64 reference on all cores.
#ifdef _OPENMP
#include <omp.h>
#endif

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bench/base/clock.hpp"
#include "bench/base/device_errors.hpp"
#include "bench/device/backend.hpp"
#include "bench/device/host_limits.hpp"
#include "kernels/layout.hpp"

namespace gemm::bench {
namespace {

// Below this many elements, waking threads that another load holds up costs more than they bring.
constexpr std::int64_t kWorthThreads = 1 << 16;

constexpr auto as_double = [](float value) { return double{value}; };

class Calls : public Sequence {
 public:
  explicit Calls(std::vector<const Launch*> launches) : launches_(std::move(launches)) {}
  double enqueue() override {
    const double first = now_seconds();
    for (const Launch* launch : launches_) (*launch)(nullptr);
    return first;
  }
  std::string_view launch() const override { return "call"; }

 private:
  std::vector<const Launch*> launches_;
};

struct HostMark : Mark {
  std::chrono::steady_clock::time_point when;
  void set(Clock, double) override { when = std::chrono::steady_clock::now(); }
};

// All operands are f32: fill() refuses others.
class HostBackend : public Backend {
 public:
  HostBackend() {
#ifdef _OPENMP
    omp_set_num_threads(std::min(omp_get_max_threads(), device_.cores));
#endif
  }
  const DeviceInfo& device() const override { return device_; }
  std::string_view timer() const override { return "steady clock"; }
  std::optional<Overheads> overheads() override { return std::nullopt; }

  double free_bytes() const override { return HostLimits().free_bytes(); }

  Buffer allocate(std::int64_t bytes) override {
    auto* memory = static_cast<std::byte*>(std::aligned_alloc(256, (bytes + 255) / 256 * 256));
    if (memory == nullptr) throw OutOfMemory("cannot allocate " + std::to_string(bytes) + " bytes");
    return {memory, [](std::byte* p) { std::free(p); }};
  }

  void fill(void* to, ElementType type, std::int64_t count, Fill fill,
            std::uint64_t seed) override {
    if (type != ElementType::f32) throw std::logic_error("the CPU holds f32 operands only");
    auto* values = static_cast<float*>(to);
#pragma omp parallel for if (count > kWorthThreads)
    for (std::int64_t i = 0; i < count; ++i) values[i] = fill_value(fill, seed, i);
  }

  void flip(void* matrix, ElementType, std::int64_t rows, std::int64_t columns,
            const Signs& signs) override {
    auto* values = static_cast<float*>(matrix);
#pragma omp parallel for if (rows * columns > kWorthThreads)
    for (std::int64_t i = 0; i < rows; ++i)
      for (std::int64_t j = 0; j < columns; ++j)
        values[i * columns + j] *= static_cast<float>(signs.at(i, j));
  }

  void renew(const RingMemory&, std::uint64_t) override { throw std::logic_error("renew"); }
  std::unique_ptr<PendingVerdict> check(const RingMemory&, std::uint64_t,
                                        std::span<const std::int64_t>, std::uint64_t) override {
    throw std::logic_error("check");
  }

  void fingerprint(const void* from, std::int64_t bytes, std::uint64_t* to) override {
    const auto* begin = static_cast<const unsigned char*>(from);
    const std::int64_t words = (bytes + 3) / 4;
    std::uint64_t sum = 0;
#pragma omp parallel for reduction(+ : sum) if (words > kWorthThreads)
    for (std::int64_t i = 0; i < words; ++i) {
      std::uint32_t word = 0;
      std::memcpy(&word, begin + 4 * i, std::min<std::int64_t>(4, bytes - 4 * i));
      sum += fingerprint_of(word, i);
    }
    *to = sum;
  }
  void finish_all() override {}

  void copy(void* to, const void* from, std::int64_t bytes) override {
    std::memcpy(to, from, bytes);
  }
  void poison(void* to, std::int64_t bytes) override { std::memset(to, 0xff, bytes); }

  void reference(const Problem& p, const void* a_, const void* b_, double* expected,
                 double* magnitude) override {
    const auto* a = static_cast<const float*>(a_);
    const auto* b = static_cast<const float*>(b_);
    std::vector<float> transposed;  // so that the innermost loop walks along rows
    if (transposes_b(p.layout)) {
      transposed.resize(p.k * p.n);
      for (std::int64_t l = 0; l < p.k; ++l)
        for (std::int64_t j = 0; j < p.n; ++j) transposed[l * p.n + j] = b[index_in_b(p, l, j)];
      b = transposed.data();
    }
#pragma omp parallel for schedule(dynamic) if (flop(p) > kWorthThreads)
    for (std::int64_t i = 0; i < p.m; ++i) {
      double* sums = expected + i * p.n;
      double* sizes = magnitude + i * p.n;
      std::fill_n(sums, p.n, 0.0);
      std::fill_n(sizes, p.n, 0.0);
      for (std::int64_t l = 0; l < p.k; ++l) {
        const double scale = a[index_in_a(p, i, l)];
        const float* row = b + l * p.n;
#pragma omp simd
        for (std::int64_t j = 0; j < p.n; ++j) {
          const double product = scale * row[j];
          sums[j] += product;
          sizes[j] += std::fabs(product);
        }
      }
    }
  }

  Verdict judge(const Problem& p, const void* c_, const double* expected, const double* magnitude,
                const Bound& bound, const Signs& signs) override {
    const auto* c = static_cast<const float*>(c_);
    Verdict verdict;
#pragma omp parallel if (p.m * p.n > kWorthThreads)
    {
      Verdict part;
#pragma omp for nowait
      for (std::int64_t i = 0; i < p.m * p.n; ++i)
        part.add(i, c[i], signs.at(i / p.n, i % p.n) * expected[i], magnitude[i], bound);
#pragma omp critical
      verdict.merge(part);
    }
    return verdict;
  }

  void project(const Problem& p, const void* a_, const void* b_, RowCheck* rows) override {
    const auto* a = static_cast<const float*>(a_);
    const auto* b = static_cast<const float*>(b_);
    const double share = share_of_size(p);
    std::vector<RowCheck> b_rows(p.k);
#pragma omp parallel for if (p.k * p.n > kWorthThreads)
    for (std::int64_t l = 0; l < p.k; ++l) {
      b_rows[l] = project_b(p, b, l, 0, 1, as_double);
      b_rows[l].size = std::sqrt(b_rows[l].size);
    }
#pragma omp parallel for if (p.m * p.k > kWorthThreads)
    for (std::int64_t i = 0; i < p.m; ++i) {
      rows[i] = project_a(p, a, b_rows.data(), i, 0, 1, as_double);
      rows[i].size *= share;
    }
  }

  Verdict judge_rows(const Problem& p, const Operands& operands, const RowCheck* rows) override {
    const auto* a = static_cast<const float*>(operands.a);
    const auto* b = static_cast<const float*>(operands.b);
    const auto* c = static_cast<const float*>(operands.c);
    std::int64_t wrong = 0, first = p.m;
#pragma omp parallel for reduction(+ : wrong) reduction(min : first) if (p.m * p.n > kWorthThreads)
    for (std::int64_t i = 0; i < p.m; ++i)
      if (!row_is_right(project_c(p, c, i, 0, 1, as_double), rows[i])) {
        ++wrong;
        first = std::min(first, i);
      }
    Verdict verdict{
        .by_rows = true, .wrong_rows = wrong, .first_wrong_row = wrong > 0 ? first : -1};
    const Bound bound = bound_for(p);
    const std::int64_t count = exact_count(p, verdict.first_wrong_row);
#pragma omp parallel if (count * p.k > kWorthThreads)
    {
      Verdict part;
#pragma omp for nowait
      for (std::int64_t which = 0; which < count; ++which)
        add_exactly(part, p, a, b, c, bound, exact_index(p, which, verdict.first_wrong_row),
                    as_double);
#pragma omp critical
      verdict.merge(part);
    }
    return verdict;
  }

  void run(const Launch& launch) override { launch(nullptr); }
  LaunchedKernels kernels_of(const Launch&) override { return {}; }

  std::unique_ptr<Sequence> sequence(std::vector<const Launch*> launches, bool) override {
    return std::make_unique<Calls>(std::move(launches));
  }
  std::unique_ptr<Mark> mark() override { return std::make_unique<HostMark>(); }
  Elapsed between(const Mark& from, const Mark& to) override {
    const std::chrono::duration<double> passed =
        dynamic_cast<const HostMark&>(to).when - dynamic_cast<const HostMark&>(from).when;
    return {passed.count(), {}};
  }

  std::unique_ptr<EndToEnd> end_to_end(const Transferred&, std::span<const Operands>) override {
    throw std::logic_error("a CPU needs no copies");
  }

 private:
  DeviceInfo device_ = query_host();
};

}  // namespace

std::unique_ptr<Backend> make_host_backend() { return std::make_unique<HostBackend>(); }

}  // namespace gemm::bench
