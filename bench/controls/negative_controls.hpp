// Kernels that are wrong on purpose, each with a correct twin. Every check of results must refuse
// the former and pass the latter. Compiled for tests only.
#pragma once

#include <string_view>
#include <vector>

#include "kernels/gemm.hpp"

namespace gemm::bench {

// What can find that a kernel is wrong: the verdict on its C, or a tool of compute-sanitizer.
enum class Catcher { verdict, memcheck, racecheck, synccheck, initcheck };
inline constexpr Catcher kCatchers[] = {Catcher::verdict, Catcher::memcheck, Catcher::racecheck,
                                        Catcher::synccheck, Catcher::initcheck};
constexpr std::string_view name_of(Catcher catcher) {
  constexpr std::string_view kNames[] = {"verdict", "memcheck", "racecheck", "synccheck",
                                         "initcheck"};
  return kNames[static_cast<int>(catcher)];
}

struct NegativeControl {
  using Prepare = decltype(Kernel::prepare);

  std::string_view name;
  std::string_view wrong;          // in a line
  Problem problem;                 // on which it must be caught
  std::vector<Catcher> caught_by;  // each of them must find it; the others may
  Prepare spoiled, twin;
};

// Each call makes new ones, so that no control has state of an earlier run.
std::vector<NegativeControl> negative_controls();

}  // namespace gemm::bench
