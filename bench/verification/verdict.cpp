#include "bench/verification/verdict.hpp"

#include <cinttypes>
#include <cstdlib>
#include <optional>
#include <string>

#include "bench/base/text.hpp"

namespace gemm::bench {

std::optional<std::string> complaint(const Problem& p, const Verdict& verdict) {
  if (verdict.passed()) return std::nullopt;
  if (verdict.wrong > 0)
    return formatted("c[%" PRId64 ",%" PRId64 "] = %.9g, expected %.9g +- %.2g (%" PRId64
                     " of %" PRId64 " elements are wrong)",
                     verdict.first_wrong / p.n, verdict.first_wrong % p.n, verdict.value,
                     verdict.expected, verdict.bound, verdict.wrong, p.m * p.n);
  return formatted("wrote outside C: byte %" PRId64 " %s", std::abs(verdict.outside_bytes),
                   verdict.outside_bytes > 0 ? "past its end" : "before its beginning");
}

}  // namespace gemm::bench
