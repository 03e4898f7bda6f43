// What became of a result, as a code that programs may rely on.
#pragma once

#include <array>
#include <cstddef>
#include <stdexcept>
#include <string>
#include <string_view>

namespace gemm::bench {

enum class Outcome {
  passed,
  wrong,          // C, or something beside it, is not what it should be
  cheats,         // the time is not that of the work, or the measuring process was tampered with
  impossible,     // faster than the device can be
  compile_error,  // the file cannot be compiled or loaded
  crashed,
  timeout,      // too slow for the time that it was given, or to be checked in it
  unsupported,  // the kernel or the device does not compute this problem
};

constexpr std::array<std::string_view, 8> kOutcomes = {"passed",     "wrong",         "cheats",
                                                       "impossible", "compile-error", "crashed",
                                                       "timeout",    "unsupported"};
constexpr std::string_view name_of(Outcome outcome) {
  return kOutcomes[static_cast<std::size_t>(outcome)];
}

// Why a case has no result; what() says it in words.
struct Failure : std::runtime_error {
  Failure(const std::string& what, Outcome why) : std::runtime_error(what), outcome(why) {}
  Outcome outcome;
};

}  // namespace gemm::bench
