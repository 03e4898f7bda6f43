// What a child is asked for, as one JSON object at its standard input:
//
//   {"token": "...", "arguments": ["gemm_bench", "--gemm_kernel=my.so", ...], "python": [],
//    "case": {"kernel": "my", "transfer": null, "precision": "f32", "layout": "nn",
//             "m": 64, "n": 64, "k": 64},
//    "versus": false, "turns": false}
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "bench/base/json.hpp"
#include "bench/cases/cases.hpp"

namespace gemm::bench {

struct Request {
  std::string token;                   // of the answer: what a kernel writes has none
  std::vector<std::string> arguments;  // the parent's: its name and options
  std::vector<std::string> python;     // files that are imported first (run_in_python.py)
  nlohmann::ordered_json which;        // the case, for case_of
  bool versus = false;                 // interleave it with what --gemm_versus names
  bool turns = false;                  // take a sample when the parent says so
};

template <typename Io>
void fields(Io& io, Like<Request> auto& request) {
  io("token", request.token);
  io("arguments", request.arguments);
  io("python", request.python);
  io("case", request.which);
  io("versus", request.versus);
  io("turns", request.turns);
}

nlohmann::ordered_json json_of(const Case& which);
// The case that this describes, of a registered kernel. Throws std::runtime_error if there is none.
Case case_of(const nlohmann::ordered_json& which, Device::Kind kind);

}  // namespace gemm::bench
