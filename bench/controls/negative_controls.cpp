#include "bench/controls/negative_controls.hpp"

#include <utility>

namespace gemm::bench {

std::vector<NegativeControl> negative_controls() {
  std::vector<NegativeControl> all;
  for (auto* some : {wrong_naive, wrong_tiled, wrong_block_tile, wrong_output})
    for (NegativeControl& one : some()) all.push_back(std::move(one));
  return all;
}

}  // namespace gemm::bench
