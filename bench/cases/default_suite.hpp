// What runs if nothing else was asked for: at most ten minutes on a large GPU (nine on an H200),
// and an answer to who wins at what size, what each idea gains, and how far layers of language
// models are from their roof.
#pragma once

#include <functional>
#include <vector>

#include "bench/cases/cases.hpp"

namespace gemm::bench {

// The fastest of ours and the libraries at five sizes in each precision, the ladders at one size,
// and twelve layers. Operands of 8 and 16 bits have layout nt, others nn. Of our kernels those that
// `runs` on this device, so that none of them is skipped.
std::vector<Case> default_suite(Device::Kind kind, const std::function<bool(const Case&)>& runs);

}  // namespace gemm::bench
