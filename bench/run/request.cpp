#include "bench/run/request.hpp"

#include <algorithm>
#include <cstdint>
#include <stdexcept>

namespace gemm::bench {

using json = nlohmann::ordered_json;

json json_of(const Case& which) {
  const Problem& p = which.problem;
  return {{"kernel", which.kernel->label()},
          {"transfer", which.transfer ? json(name_of(*which.transfer)) : json(nullptr)},
          {"precision", traits_of(p.precision).name},
          {"layout", name_of(p.layout)},
          {"m", p.m},
          {"n", p.n},
          {"k", p.k}};
}

Case case_of(const json& which, Device::Kind kind) {
  const auto text = [&](const char* key) { return which.at(key).get<std::string>(); };
  const auto size = [&](const char* key) { return which.at(key).get<std::int64_t>(); };
  const auto kernel = std::ranges::find_if(registry(), [&](const RegisteredKernel& one) {
    return one.runs_on == kind && one.label() == text("kernel");
  });
  const auto precision = precision_named(text("precision"));
  const auto layout = layout_named(text("layout"));
  if (kernel == registry().end() || !precision || !layout)
    throw std::runtime_error("there is no case " + which.dump());
  Case found{&*kernel, {size("m"), size("n"), size("k"), *precision, *layout}};
  for (const Transfer transfer : kTransfers)
    if (which.at("transfer") == name_of(transfer)) found.transfer = transfer;
  return found;
}

}  // namespace gemm::bench
