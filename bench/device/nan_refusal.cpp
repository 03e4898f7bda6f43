#include "bench/device/nan_refusal.hpp"

#include <bit>
#include <cstdint>
#include <stdexcept>
#include <vector>

namespace gemm::bench {
namespace {

constexpr Problem kProblem{.m = 3, .n = 3, .k = 2, .precision = Precision::f32};
constexpr std::uint32_t kNan = 0x7fc00000, kInfinity = 0x7f800000;

template <typename T>
Buffer on_device(Backend& backend, const std::vector<T>& values) {
  const auto bytes = static_cast<std::int64_t>(values.size() * sizeof(T));
  Buffer buffer = backend.allocate(bytes);
  backend.copy(buffer.get(), values.data(), bytes);
  return buffer;
}

template <typename T>
T* as(const Buffer& buffer) {
  return reinterpret_cast<T*>(buffer.get());
}

}  // namespace

void require_nan_refusal(Backend& backend) {
  const Problem& p = kProblem;
  // A is 1, and B is 1: C is k.
  const Buffer a = on_device(backend, std::vector<float>(p.m * p.k, 1));
  const Buffer b = on_device(backend, std::vector<float>(p.k * p.n, 1));
  const Buffer expected = on_device(backend, std::vector<double>(p.m * p.n));
  const Buffer magnitude = on_device(backend, std::vector<double>(p.m * p.n));
  backend.reference(p, a.get(), b.get(), as<double>(expected), as<double>(magnitude));

  const std::uint32_t right = std::bit_cast<std::uint32_t>(static_cast<float>(p.k));
  for (const std::uint32_t bits : {right, kNan, kInfinity}) {
    std::vector<std::uint32_t> values(p.m * p.n, right);
    values[p.n] = bits;  // in the second row
    const Buffer c = on_device(backend, values);
    const std::int64_t wrong = bits == right ? 0 : 1;
    const Verdict whole =
        backend.judge(p, c.get(), as<double>(expected), as<double>(magnitude), bound_for(p));
    const Verdict by_rows =
        backend.judge_rows(p, {.a = a.get(), .b = b.get(), .c = c.get()}, secret_bits());
    for (const Verdict& verdict : {whole, by_rows})
      if (verdict.passed() != (wrong == 0) || complaint(p, verdict).has_value() != (wrong != 0))
        throw std::runtime_error(
            "verification takes NaN for a number, or refuses a right result: this program was "
            "compiled with -ffast-math or the like behind its own options: build it without");
  }
}

}  // namespace gemm::bench
