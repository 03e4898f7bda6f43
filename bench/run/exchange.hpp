// What a child is asked for, and what it answers with: one row.
//
// The request is one JSON object at its standard input:
//
//   {"token": "...", "arguments": ["gemm_bench", "--gemm_kernel=my.so", ...], "python": [],
//    "which": {"kernel": "my", "precision": "f32", "layout": "nn", "m": 64, "n": 64, "k": 64},
//    "versus": false, "turns": false}
//
// Code of a user has run in the process that answers, so that the parent takes nothing for granted.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "bench/base/json.hpp"
#include "bench/cases/cases.hpp"
#include "bench/record/record.hpp"
#include "bench/run/child.hpp"

namespace gemm::bench {

struct Request {
  std::string token;                   // of the answer: what a kernel writes has none
  std::vector<std::string> arguments;  // the parent's: its name and options
  std::vector<std::string> python;     // files that are imported first (run_in_python.py)
  nlohmann::ordered_json which;        // the case, for case_of
  bool versus = false;                 // interleave it with what --gemm_versus names
  bool turns = false;                  // take a sample when the parent says so
};

JSON_FIELDS(Request, token, arguments, python, which, versus, turns)

nlohmann::ordered_json json_of(const Case& which);
// The case that this describes, of a registered kernel. Throws std::runtime_error if there is none.
Case case_of(const nlohmann::ordered_json& which, Device::Kind kind);

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
