// The CPU as a device: the steady clock, plain memory, and an FP64 reference on all cores.
#include <dlfcn.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>
#ifdef _OPENMP
#include <omp.h>
#endif

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cfenv>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include "bench/base/clock.hpp"
#include "bench/base/device_errors.hpp"
#include "bench/device/backend.hpp"
#include "bench/device/host.hpp"
#include "kernels/layout.hpp"
#include "kernels/small_floats.hpp"

namespace gemm::bench {
namespace {

// Below this many elements, waking threads that another load holds up costs more than they bring.
constexpr std::int64_t kWorthThreads = 1 << 16;

constexpr auto as_double = [](auto value) {
  return static_cast<double>(static_cast<float>(value));
};

// Calls f with a value of the C++ type behind an element type.
template <typename F>
void with_type(ElementType type, F&& f) {
  switch (type) {
    case ElementType::f32:
      return f(float{});
    case ElementType::e4m3:
      return f(E4m3{});
    case ElementType::bf16:
      return f(Bf16{});
    default:
      throw std::logic_error("the CPU has no elements of this type");
  }
}

// What a kernel writes for operands of a type.
template <typename T>
using Out = std::conditional_t<std::is_same_v<T, E4m3>, Bf16, T>;

// Calls body(first, end) for parts of a count, in threads of their own where it is worth them:
// between launches none of OpenMP's may spin, which would slow down the first ones.
template <typename Body>
void in_threads(std::int64_t count, std::int64_t work, Body&& body) {
  constexpr std::int64_t kWorthStarting = 1 << 18;
  const std::int64_t parts =
      work < kWorthStarting ? 1 : std::max(1U, std::thread::hardware_concurrency());
  std::vector<std::jthread> others;
  for (std::int64_t part = 1; part < parts; ++part)
    others.emplace_back([=, &body] { body(count * part / parts, count * (part + 1) / parts); });
  body(std::int64_t{0}, count / parts);
}

// Copies memory of the host as it is; false where a page is not in memory or may not be read.
// Nothing is set off by that: pages that are not there are not made, and no handler of page faults
// runs.
bool copy_resident(void* to, const void* from, std::int64_t bytes) {
  const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
  const auto address = reinterpret_cast<std::uintptr_t>(from), first = address / page * page,
             end = (address + static_cast<std::uintptr_t>(bytes) + page - 1) / page * page;
  std::vector<unsigned char> in_memory((end - first) / page);
  if (mincore(reinterpret_cast<void*>(first), end - first, in_memory.data()) != 0 ||
      !std::ranges::all_of(in_memory, [](unsigned char flags) { return (flags & 1) != 0; }))
    return false;
  // The kernel copies it: a page that may not be read is an error, and no signal.
  for (std::int64_t done = 0; done < bytes;) {
    const iovec local{static_cast<std::byte*>(to) + done, static_cast<std::size_t>(bytes - done)};
    const iovec remote{const_cast<std::byte*>(static_cast<const std::byte*>(from)) + done,
                       local.iov_len};
    const ssize_t count = process_vm_readv(getpid(), &local, 1, &remote, 1, 0);
    if (count < 0 && (errno == ENOSYS || errno == EPERM)) {  // a container forbids it
      std::memcpy(local.iov_base, remote.iov_base, local.iov_len);
      return true;
    }
    if (count <= 0) return false;
    done += count;
  }
  return true;
}

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

struct Known : PendingVerdict {
  Verdict verdict;
  Verdict read() override { return verdict; }
};

struct HostMark : Mark {
  std::chrono::steady_clock::time_point when;
  void set(Clock, double) override { when = std::chrono::steady_clock::now(); }
};

// What a kernel in this process can change that changes the arithmetic or the speed of other code:
// threads of OpenMP and of OpenBLAS, rounding and subnormals of this thread.
struct HostSettings {
  std::fenv_t arithmetic{};
  int openmp_threads = 1, openblas_threads = 0;  // 0: OpenBLAS is not loaded

  static HostSettings now() {
    HostSettings found;
    std::fegetenv(&found.arithmetic);
#ifdef _OPENMP
    found.openmp_threads = omp_get_max_threads();
#endif
    if (auto* const get = loaded<int()>("openblas_get_num_threads")) found.openblas_threads = get();
    return found;
  }
  void restore() const {
#ifdef _OPENMP
    omp_set_num_threads(openmp_threads);
#endif
    std::fesetenv(&arithmetic);
    if (auto* const set = loaded<void(int)>("openblas_set_num_threads");
        set != nullptr && openblas_threads > 0)
      set(openblas_threads);
  }
  template <typename Function>
  static Function* loaded(const char* name) {
    return reinterpret_cast<Function*>(dlsym(RTLD_DEFAULT, name));
  }
};

class HostBackend : public Backend {
 public:
  HostBackend() {
#ifdef _OPENMP
    omp_set_num_threads(std::min(omp_get_max_threads(), device_.cores));
#endif
    settings_ = HostSettings::now();
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
    with_type(type, [=]<typename T>(T) {
      auto* values = static_cast<T*>(to);
#pragma omp parallel for if (count > kWorthThreads)
      for (std::int64_t i = 0; i < count; ++i) values[i] = fill_element<T>(fill, seed, i);
    });
  }

  void fill_scales(const float* to, std::int64_t count, Fill fill, std::uint64_t seed) override {
    for (std::int64_t i = 0; i < count; ++i) const_cast<float*>(to)[i] = scale_value(fill, seed, i);
  }

  void flip(void* matrices, ElementType type, std::int64_t count, std::int64_t rows,
            std::int64_t columns, const Signs& signs) override {
    with_type(type, [=]<typename T>(T) {
      auto* values = static_cast<T*>(matrices);
#pragma omp parallel for if (count * rows * columns > kWorthThreads)
      for (std::int64_t i = 0; i < count * rows; ++i)
        for (std::int64_t j = 0; j < columns; ++j) {
          T& value = values[i * columns + j];
          value = T(static_cast<float>(value) * static_cast<float>(signs.at(i % rows, j)));
        }
    });
  }

  void finish_all() override {}

  void renew(const RingMemory& ring, std::uint64_t seed) override {
    settings_.restore();  // what a kernel changed is not for the next one
    for (std::int64_t i = 0; i < ring.sets; ++i)
      with_type(traits_of(ring.problem.precision).input,
                [&]<typename T>(T) { renew_set<T>(ring, seed, i); });
  }

  std::unique_ptr<PendingVerdict> check_renewed(const RingMemory& ring, std::uint64_t seed,
                                                std::span<const std::int64_t> places,
                                                std::uint64_t secret) override {
    auto found = std::make_unique<Known>();
    const std::int64_t bytes = ring.layout().c_bytes;
    std::vector<std::vector<std::byte>> written;  // as the launches left them
    for (const std::int64_t place : places) {
      written.emplace_back(bytes);
      if (copy_resident(written.back().data(), ring.operands(place).c, bytes)) continue;
      found->verdict.changed_later = true;
      return found;
    }
    for (std::size_t i = 0; i < written.size() && found->verdict.passed(); ++i) {
      with_type(traits_of(ring.problem.precision).input, [&]<typename T>(T) {
        found->verdict = check_set<T>(ring, seed, places[i],
                                      reinterpret_cast<const Out<T>*>(written[i].data()), secret);
      });
      found->verdict.changed_later =
          std::memcmp(written[i].data(), ring.operands(places[i]).c, bytes) != 0;
    }
    return found;
  }

  void copy(void* to, const void* from, std::int64_t bytes) override {
    std::memcpy(to, from, bytes);
  }
  void poison(void* to, std::int64_t bytes) override { std::memset(to, 0xff, bytes); }

  void reference(const Problem& p, const Operands& operands, double* expected,
                 double* magnitude) override {
    const Products all(p);
    with_type(traits_of(p.precision).input, [&]<typename T>(T) {
      for (std::int64_t which = 0; which < p.batch; ++which)
        reference_of_one(all.product(which),
                         static_cast<const T*>(operands.a) + all.before_a(which),
                         static_cast<const T*>(operands.b) + all.before_b(which),
                         scales_of(p, operands).of_product(p, which, all.first_row(which)),
                         expected + all.before_c(which), magnitude + all.before_c(which));
    });
  }

  Verdict judge(const Problem& problem, const Operands& set, const double* expected,
                const double* magnitude, const Bound& bound, const Signs& signs) override {
    const Products p(problem);
    Verdict verdict;
    with_type(traits_of(p.precision).output, [&]<typename T>(T) {
      const auto c = written<T>(set);
#pragma omp parallel if (elements_of_c(p) > kWorthThreads)
      {
        Verdict part;
#pragma omp for nowait
        for (std::int64_t i = 0; i < elements_of_c(p); ++i) {
          const Place at = place_in_c(p, i);
          add_element(part, p, i, c, signs.at(at.row, at.column) * expected[i], magnitude[i], bound,
                      as_double);
        }
#pragma omp critical
        verdict.merge(part);
      }
    });
    return verdict;
  }

  Verdict judge_rows(const Problem& problem, const Operands& operands,
                     std::uint64_t secret) override {
    const Products p(problem);
    Verdict verdict;
    with_type(traits_of(p.precision).input, [&]<typename T>(T) {
      const auto c = written<Out<T>>(operands);
      verdict = wrong_rows<T>(p, operands, c, secret);
      const Bound bound = bound_for(p);
      const std::int64_t row = verdict.first_wrong_row, count = exact_count(p, row);
      verdict.merge(over(count, count * p.k, [&](Verdict& part, std::int64_t which) {
        add_exactly(part, p, static_cast<const T*>(operands.a), static_cast<const T*>(operands.b),
                    scales_of(p, operands), c, bound, exact_index(p, secret, which, row),
                    as_double);
      }));
    });
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

 private:
  // Rows of B, so that the innermost loop walks along them, with its scales.
  template <typename T>
  static void reference_of_one(const Problem& p, const T* a, const T* b, const Scales& scales,
                               double* expected, double* magnitude) {
    if constexpr (std::is_same_v<T, float>)
      if (!transposes_b(p.layout)) return multiply_rows(p, a, b, scales, expected, magnitude);
    using Exact = std::conditional_t<std::is_same_v<T, float>, float, double>;
    std::vector<Exact> rows(p.k * p.n);
    for (std::int64_t l = 0; l < p.k; ++l)
      for (std::int64_t j = 0; j < p.n; ++j)
        rows[l * p.n + j] =
            static_cast<Exact>(as_double(b[index_in_b(p, l, j)]) * scales.of_b(p, l, j));
    multiply_rows(p, a, rows.data(), scales, expected, magnitude);
  }
  template <typename T, typename Row>
  static void multiply_rows(const Problem& p, const T* a, const Row* b, const Scales& scales,
                            double* expected, double* magnitude) {
#pragma omp parallel for schedule(dynamic) if (flop(p) > kWorthThreads)
    for (std::int64_t i = 0; i < p.m; ++i) {
      double* sums = expected + i * p.n;
      double* sizes = magnitude + i * p.n;
      std::fill_n(sums, p.n, 0.0);
      std::fill_n(sizes, p.n, 0.0);
      for (std::int64_t l = 0; l < p.k; ++l) {
        const double left = as_double(a[index_in_a(p, i, l)]) * scales.of_a(i, l);
        const Row* row = b + l * p.n;
#pragma omp simd
        for (std::int64_t j = 0; j < p.n; ++j) {
          const double product = left * row[j];
          sums[j] += product;
          sizes[j] += std::fabs(product);
        }
      }
    }
  }

  template <typename T>
  void renew_set(const RingMemory& ring, std::uint64_t seed, std::int64_t which) {
    const Products p(ring.problem);
    const Operands set = ring.operands(which);
    const RenewedSet values(seed, which);
    const SparseLines sparse(p, values);
    const auto fill = [&]<typename E>(E, const void* matrix, std::int64_t count,
                                      std::uint64_t from) {
      auto* to = static_cast<E*>(const_cast<void*>(matrix));
      for_each_renewed<E>(ring.fill, from, count,
                          [=](std::int64_t at, E value) { to[at] = value; });
      return to;
    };
    T *a = fill(T{}, set.a, elements_of_a(p), values.a),
      *b = fill(T{}, set.b, elements_of_b(p), values.b);
    const Problem one = p.product(sparse.which);
    a += p.before_a(sparse.which);
    b += p.before_b(sparse.which);
    for (std::int64_t l = 0; l < p.k; ++l) {
      if (sparse.row >= 0 && !sparse.of_row.has(l)) a[index_in_a(one, sparse.row, l)] = T{};
      if (sparse.column >= 0 && !sparse.of_column.has(l))
        b[index_in_b(one, l, sparse.column)] = T{};
    }
    fill_scales(set.a_scales, scales_of_a(p), ring.fill, values.a_scales);
    fill_scales(set.b_scales, scales_of_b(p), ring.fill, values.b_scales);
    fill(Out<T>{}, set.bias, elements_of_bias(p), values.bias);
    fill(Out<T>{}, set.residual, elements_of_residual(p), values.residual);
    poison(set.c, ring.layout().c_bytes);
  }

  // The values that renew() gives a matrix, without the sparse row or column.
  template <typename T, typename Use>
  static void for_each_renewed(Fill fill, std::uint64_t seed, std::int64_t count, Use&& use) {
    const std::int64_t words = (count + kPerWord<T> - 1) / kPerWord<T>;
    const bool by_word = fill == Fill::uniform || fill == Fill::integers;
    in_threads(words, count, [&](std::int64_t first, std::int64_t end) {
      for (std::int64_t word = first; word < end; ++word) {
        const std::uint64_t bits = random_bits(seed, static_cast<std::uint64_t>(word));
        for (int place = 0; place < kPerWord<T>; ++place)
          if (const std::int64_t at = kPerWord<T> * word + place; at < count)
            use(at, by_word ? element_of_word<T>(fill, bits, place)
                            : renewed_element<T>(fill, seed, at));
      }
    });
  }

  // The verdict of so many elements, which `add(verdict, which)` judges.
  template <typename Add>
  static Verdict over(std::int64_t count, std::int64_t work, Add&& add) {
    Verdict verdict;
    std::mutex merging;
    in_threads(count, work, [&](std::int64_t first, std::int64_t end) {
      Verdict part;
      for (std::int64_t which = first; which < end; ++which) add(part, which);
      const std::lock_guard lock(merging);
      verdict.merge(part);
    });
    return verdict;
  }

  template <typename T>
  static Verdict check_set(const RingMemory& ring, std::uint64_t seed, std::int64_t place,
                           const Out<T>* copied, std::uint64_t secret) {
    const Products p(ring.problem);
    const RenewedSet values(seed, place);
    const SparseLines sparse(p, values);
    const Operands set = ring.operands(place);
    const auto *a = static_cast<const T*>(set.a), *b = static_cast<const T*>(set.b);
    const Scales scales = scales_of(p, set);
    auto c = written<Out<T>>(set);
    c.c = copied;
    const Bound bound = bound_for_element(p), narrow = bound_for_sparse(p);
    const std::int64_t count = checked_elements(p);
    Verdict verdict = over(count, count * p.k, [&](Verdict& part, std::int64_t which) {
      const std::int64_t index = checked_index(p, secret, which);
      add_exactly(part, p, a, b, scales, c, sparse.has(p, index) ? narrow : bound, index,
                  as_double);
    });
    for (std::int64_t j = 0; sparse.row >= 0 && j < p.n; ++j)
      add_sparse(verdict, p, a, b, scales, c, narrow, sparse.of_row, sparse.which, sparse.row, j,
                 as_double);
    for (std::int64_t i = 0; sparse.column >= 0 && i < p.rows(sparse.which); ++i)
      add_sparse(verdict, p, a, b, scales, c, narrow, sparse.of_column, sparse.which, i,
                 sparse.column, as_double);
    if (checks_rows(p)) verdict.merge(wrong_rows<T>(p, set, c, secret));
    verdict.by_rows = true;
    // A zero of the sparse row or column is written over another value.
    const auto differ = [&]<typename E>(const E* matrix, std::int64_t elements, std::uint64_t from,
                                        auto&& is_zeroed) {
      std::atomic<bool> found = false;
      for_each_renewed<E>(ring.fill, from, elements, [&](std::int64_t at, E value) {
        const double now = as_double(matrix[at]);
        if (!(now == as_double(value)) && !(now == 0 && is_zeroed(at))) found = true;
      });
      return found.load();
    };
    const auto scales_differ = [&](const float* all, std::int64_t count, std::uint64_t from) {
      bool found = false;
      for (std::int64_t at = 0; at < count; ++at)
        found = found || !(all[at] == scale_value(ring.fill, from, at));
      return found;
    };
    const auto no_zeros = [](std::int64_t) { return false; };
    verdict.inputs_changed =
        differ(a, elements_of_a(p), values.a,
               [&](std::int64_t at) { return sparse.zeroes_a(p, at); }) ||
        differ(b, elements_of_b(p), values.b,
               [&](std::int64_t at) { return sparse.zeroes_b(p, at); }) ||
        differ(c.bias, elements_of_bias(p), values.bias, no_zeros) ||
        differ(c.residual, elements_of_residual(p), values.residual, no_zeros) ||
        scales_differ(scales.a, scales_of_a(p), values.a_scales) ||
        scales_differ(scales.b, scales_of_b(p), values.b_scales);
    const std::byte* const base = ring.base + place * ring.layout().total;
    verdict.outside_bytes = ring.layout().outside_bytes(
        [=](std::int64_t from, std::int64_t to) { return std::span(base + from, base + to); });
    return verdict;
  }

  // By Freivalds' check.
  template <typename T>
  static Verdict wrong_rows(const Products& p, const Operands& operands, const Written<Out<T>>& c,
                            std::uint64_t secret) {
    const auto *a = static_cast<const T*>(operands.a), *b = static_cast<const T*>(operands.b);
    const Scales scales = scales_of(p, operands);
    std::vector<double> signs[kVectors];
    for (int v = 0; v < kVectors; ++v)
      for (std::int64_t j = 0; j < p.n; ++j) signs[v].push_back(sign_of(secret, j, v));
    const auto x = [&](std::int64_t column, int vector) { return signs[vector][column]; };
    std::vector<RowCheck> b_rows(rows_of_b(p));
    in_threads(rows_of_b(p), elements_of_b(p), [&](std::int64_t from, std::int64_t end) {
      for (std::int64_t l = from; l < end; ++l) {
        b_rows[l] = project_b(p, b, scales, l, 0, 1, x, as_double);
        b_rows[l].size = std::sqrt(b_rows[l].size);
      }
    });
    const double share = share_of_size(p), of_added = share_of_added(p);
    std::vector<char> wrong_row(rows_of_c(p));
    in_threads(rows_of_c(p), rows_of_c(p) * (p.k + p.n), [&](std::int64_t from, std::int64_t end) {
      for (std::int64_t i = from; i < end; ++i) {
        RowCheck row = project_a(p, a, scales, b_rows.data(), i, 0, 1, as_double);
        row.size *= share;
        RowCheck found = project_c(p, c, i, 0, 1, x, as_double);
        found.size = of_added * std::sqrt(found.size);
        wrong_row[i] = row_is_right(found, row) ? 0 : 1;
      }
    });
    const auto wrong = std::ranges::count(wrong_row, 1);
    const auto first = std::ranges::find(wrong_row, 1) - wrong_row.begin();
    return {.by_rows = true, .wrong_rows = wrong, .first_wrong_row = wrong > 0 ? first : -1};
  }

  DeviceInfo device_ = query_host();
  HostSettings settings_;
};

}  // namespace

std::unique_ptr<Backend> make_host_backend() { return std::make_unique<HostBackend>(); }

}  // namespace gemm::bench
