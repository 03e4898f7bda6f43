// The two clocks: how much time has passed, and what time it is.
#pragma once

#include <string>

namespace gemm::bench {

double now_seconds();  // of a steady clock

std::string utc_now();  // "20260102T030405Z"

}  // namespace gemm::bench
