// Two kernels in one process and one power state, interleaved sample by sample or block by block.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "bench/timing/blocks.hpp"

namespace gemm::bench {

struct Versus {
  std::string kernel;  // the other's label
  bool library = false;
  bool shared_process = false;  // with code of a user on either side
  double ratio = 0;             // speed of this one over that of the other
  double low = 0, high = 0;     // 95 % interval
  double seconds = 0;           // median of the other
  std::int64_t samples = 0;     // of each
  // At the power limit:
  std::vector<Block> blocks = {};             // of the other, each next to one of this
  std::optional<Estimate> energy_ratio = {};  // of a launch of this over one of the other
};

// Of the launches that were timed (measurement/ring.hpp).
struct Checks {
  std::int64_t passes = 0, launches = 0, checked = 0;
  std::int64_t uses = 1;    // of an operand set in a pass
  double lead_ratio = 0;    // time of a launch in the lead over that of a timed one; 0: no lead
  double launch_share = 0;  // of the time of a pass, which launches took
};

// The median of the pairs' ratios and its interval (median_range): what the power state does to
// both samples of a pair cancels. `mine` and `theirs` are seconds, as long as each other and not
// empty. The interval is of this process: another one of equal code may lie outside.
Versus compare_pairs(const std::vector<double>& mine, const std::vector<double>& theirs);

// Ratios of blocks that ran next to each other, with a t interval over these pairs (estimate()):
// as many of each, and at least two.
Versus compare_blocks(const std::vector<Block>& mine, const std::vector<Block>& theirs);

}  // namespace gemm::bench
