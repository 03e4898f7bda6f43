#include "bench/verdict.hpp"

#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>

namespace gemm::bench {

std::optional<std::string> complaint(const Problem& p, const Verdict& verdict) {
  if (verdict.passed()) return std::nullopt;
  char text[256];
  if (verdict.wrong > 0) {
    std::snprintf(text, sizeof text,
                  "c[%" PRId64 ",%" PRId64 "] = %.9g, expected %.9g +- %.2g (%" PRId64
                  " of %" PRId64 " elements are wrong)",
                  verdict.first_wrong / p.n, verdict.first_wrong % p.n, verdict.value,
                  verdict.expected, verdict.bound, verdict.wrong, p.m * p.n);
  } else {
    const std::int64_t distance = std::abs(verdict.outside_bytes);
    std::snprintf(text, sizeof text, "wrote outside C: byte %" PRId64 " %s", distance,
                  verdict.outside_bytes > 0 ? "past its end" : "before its beginning");
  }
  return text;
}

}  // namespace gemm::bench
