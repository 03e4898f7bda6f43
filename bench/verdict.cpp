#include "bench/verdict.hpp"

#include <cstdio>
#include <cstdlib>

namespace gemm::bench {

std::optional<std::string> complaint(const Problem& p, const Verdict& verdict) {
  if (verdict.passed()) return std::nullopt;
  char text[256];
  if (verdict.wrong > 0) {
    std::snprintf(text, sizeof text,
                  "c[%lld,%lld] = %.9g, expected %.9g +- %.2g (%lld of %lld elements are wrong)",
                  static_cast<long long>(verdict.first_wrong / p.n),
                  static_cast<long long>(verdict.first_wrong % p.n), verdict.value,
                  verdict.expected, verdict.bound, static_cast<long long>(verdict.wrong),
                  static_cast<long long>(p.m * p.n));
  } else {
    std::snprintf(text, sizeof text, "wrote outside C: byte %lld %s",
                  static_cast<long long>(std::llabs(verdict.outside_bytes)),
                  verdict.outside_bytes > 0 ? "past its end" : "before its beginning");
  }
  return text;
}

}  // namespace gemm::bench
