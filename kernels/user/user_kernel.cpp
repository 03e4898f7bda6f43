// Registers a user's kernel like any other.
#include "kernels/user/user_kernel.hpp"

#include <algorithm>
#include <cctype>
#include <optional>
#include <string>
#include <utility>

#include "kernels/user/gemm_kernel.h"
#include "kernels/user/python.hpp"

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

std::string first_line(std::string_view text) {
  const auto is_control = [](unsigned char c) { return std::iscntrl(c) != 0; };
  const std::string line(text.begin(), std::ranges::find_if(text, is_control));
  return line.empty() ? "failed without a message" : line;
}

void register_user_kernel(const UserKernel& user, Device::Kind runs_on) {
  RegisteredKernel entry;
  entry.name = user.name();
  entry.parameters = user.defines;
  entry.idea = "a user's kernel";
  entry.precisions = user.precisions;
  entry.layouts = user.layouts;
  if (user.is_source()) {
    entry.source = "a .cu file, compiled at run time";
    entry.prepare = load_source(user);
  } else if (user.is_python()) {
    entry.source = "a Python file";
    entry.prepare = prepare_in_python(user);
    entry.unsupported = unsupported_in_python(user);
    entry.python = std::filesystem::absolute(user.file);
  } else {
    entry.source = "a shared library";
    entry.prepare = load_library(user);
  }
  entry.unsupported = [other = std::move(entry.unsupported)](
                          const Problem& p, const Device& device) -> std::optional<std::string> {
    if (has_scales(p.precision)) return "gets no scales of blocks: gemm_kernel.h has none";
    return other ? other(p, device) : std::nullopt;
  };
  entry.family =
      std::filesystem::absolute(user.file).parent_path().filename() == "other_implementations"
          ? "peer"
          : "user";
  entry.stem = user.file.stem().string();
  entry.runs_on = runs_on;
  entry.file = UserFile{user.file.filename().string(), user.file_hash};
  add_to_registry(std::move(entry));
}

}  // namespace gemm
