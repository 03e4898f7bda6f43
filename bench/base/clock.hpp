// The two clocks: how much time has passed, and what time it is.
#pragma once

#include <chrono>
#include <ctime>
#include <string>

namespace gemm::bench {

// Of a steady clock.
inline double now_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// "20260102T030405Z", or as `format` says (strftime).
inline std::string utc_now(const char* format = "%Y%m%dT%H%M%SZ") {
  const std::time_t now = std::time(nullptr);
  char utc[64];
  std::strftime(utc, sizeof utc, format, std::gmtime(&now));
  return utc;
}

}  // namespace gemm::bench
