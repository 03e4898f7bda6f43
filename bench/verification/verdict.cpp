#include "bench/verification/verdict.hpp"

#include <cinttypes>
#include <cstdlib>

#include "bench/base/text.hpp"
#include "bench/verification/freivalds.hpp"

namespace gemm::bench {

std::optional<std::string> complaint(const Problem& p, const Verdict& verdict) {
  if (verdict.passed()) return std::nullopt;
  const Products products(p);
  const std::int64_t wrong =
      products.product_of(std::max<std::int64_t>(0, verdict.first_wrong_row));
  const std::string of = p.batch == 1 ? "" : " of product " + std::to_string(wrong);
  const std::string rows =
      verdict.wrong_rows == 0
          ? ""
          : formatted("%" PRId64 " of %" PRId64
                      " rows of C differ from A (B x) by more than rounding, row %" PRId64
                      "%s first",
                      verdict.wrong_rows, rows_of_c(p),
                      verdict.first_wrong_row - products.first_row(wrong), of.c_str());
  const Place at = place_in_c(products, verdict.first_wrong);
  const std::string which = p.batch == 1 ? "" : "[" + std::to_string(at.which) + "]";
  if (verdict.wrong > 0)
    return "c" + which +
           formatted("[%" PRId64 ",%" PRId64 "] = %.9g, expected %.9g +- %.2g (%" PRId64 " of ",
                     at.row, at.column, verdict.value, verdict.expected, verdict.bound,
                     verdict.wrong) +
           (verdict.by_rows
                ? "the elements computed exactly are wrong" + (rows.empty() ? "" : "; " + rows)
                : formatted("%" PRId64 " elements are wrong", elements_of_c(p))) +
           ")";
  if (!rows.empty()) return rows;
  if (verdict.imprecise())
    return formatted(
        "errors are %.3g times as large as those of %s may be (root mean square): does "
        "it round to fewer bits?",
        *verdict.rms_of_limit(), std::string(traits_of(p.precision).name).c_str());
  if (verdict.changed_later)
    return "C was written after the launches had ended: do all of them work on the given stream?";
  if (verdict.inputs_changed) return "changed A or B, which a kernel must only read";
  return formatted("wrote outside C: byte %" PRId64 " %s", std::abs(verdict.outside_bytes),
                   verdict.outside_bytes > 0 ? "past its end" : "before its beginning");
}

}  // namespace gemm::bench
