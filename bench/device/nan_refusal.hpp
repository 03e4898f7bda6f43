// Does this program refuse NaN, however it was compiled?
#pragma once

#include "bench/device/backend.hpp"

namespace gemm::bench {

// Throws std::runtime_error if the backend's verdicts on a small C with a NaN or an infinity are
// not what they must be, or a right C does not pass.
void require_nan_refusal(Backend& backend);

}  // namespace gemm::bench
