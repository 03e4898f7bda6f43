// The library's figure for a problem, which rows are compared with.
#pragma once

#include <optional>
#include <vector>

#include "bench/measurement/workbench.hpp"
#include "bench/record/record.hpp"

namespace gemm::bench {

class LibraryRates {
 public:
  LibraryRates(Workbench& bench, Results& results) : bench_(bench), results_(results) {}

  // Makes sure that there is one: from the library's rows, or else from a measurement for this.
  void measure(const Case& which);

 private:
  std::optional<LibraryRate> fastest(const std::vector<Case>& cases);

  Workbench& bench_;
  Results& results_;
  std::vector<Problem> without_library_;  // where measuring it was tried in vain
};

}  // namespace gemm::bench
