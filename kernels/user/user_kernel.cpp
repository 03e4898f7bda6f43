// A user's kernel becomes an entry of the registry like any other.
#include "kernels/user/user_kernel.hpp"

#include <algorithm>
#include <cctype>
#include <memory>
#include <string>
#include <utility>

#include "kernels/user/gemm_kernel.h"

namespace gemm {

Call call_of(const Problem& p, const Operands& o) {
  return {.a = o.a,
          .b = o.b,
          .c = o.c,
          .m = p.m,
          .n = p.n,
          .k = p.k,
          .a_transposed = transposes_a(p.layout),
          .b_transposed = transposes_b(p.layout)};
}

std::string UserKernel::name() const {
  std::string name = file.stem().string() + (entry.empty() ? "" : "." + entry);
  std::ranges::replace_if(
      name,
      [](unsigned char c) { return std::isalnum(c) == 0 && c != '.' && c != '-' && c != '_'; },
      '_');
  return name;
}

void register_user_kernel(const UserKernel& user, Device::Kind runs_on) {
  RegisteredKernel entry;
  entry.owned_name = std::make_shared<const std::string>(user.name());
  entry.name = *entry.owned_name;
  entry.parameters = user.defines;
  entry.idea = "a user's kernel";
  entry.source = user.is_source() ? "a .cu file, compiled at run time" : "a shared library";
  entry.precisions = user.precisions;
  entry.layouts = user.layouts;
  entry.prepare = user.is_source() ? load_source(user) : load_library(user);
  entry.family = "user";
  entry.stem = user.file.stem().string();
  entry.runs_on = runs_on;
  entry.file = UserFile{user.file.filename().string(), user.file_hash};
  add_to_registry(std::move(entry));
}

}  // namespace gemm
