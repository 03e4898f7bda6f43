#include "bench/base/clock.hpp"

#include <chrono>
#include <ctime>

namespace gemm::bench {

double now_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

std::string utc_now() {
  const std::time_t now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  char utc[32];
  std::strftime(utc, sizeof utc, "%Y%m%dT%H%M%SZ", std::gmtime(&now));
  return utc;
}

}  // namespace gemm::bench
