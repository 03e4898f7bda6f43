// What a child answers with: one row. Code of a user has run in its process, so that the parent
// takes nothing for granted.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "bench/record/record.hpp"
#include "bench/run/child.hpp"

namespace gemm::bench {

// By the child, with the libraries that it loaded and the time of its clock.
std::string answer_text(const std::string& token, const nlohmann::ordered_json& row,
                        double kernel_seconds, Outcome outcome = Outcome::passed);

struct Answer {
  Row row;
  double kernel_seconds;  // of kernels under test
};

// Throws std::runtime_error unless the answer has the token and is a row of this case whose
// numbers are possible, whose samples fit into the child's life, and whose clock agrees with ours.
// Notes its libraries.
Answer answer_from(const ChildEnd& end, const std::string& token, const Case& which);

}  // namespace gemm::bench
