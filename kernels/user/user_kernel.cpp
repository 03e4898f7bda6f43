// Registers a user's kernel like any other.
#include "kernels/user/user_kernel.hpp"

#include <algorithm>
#include <cctype>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "kernels/epilogue.hpp"
#include "kernels/tokens.hpp"
#include "kernels/user/gemm_kernel.h"
#include "kernels/user/python.hpp"

namespace gemm {

namespace {

static_assert(static_cast<int>(Activation::residual) == static_cast<int>(Epilogue::residual));

// Why a kernel that takes only this besides one plain product is not given the problem.
std::optional<std::string> undeclared(const Problem& p, unsigned takes) {
  if (is_grouped(p) && (takes & kGroups) == 0) return "takes no groups";
  if (p.batch > 1 && !is_grouped(p) && (takes & kBatches) == 0) return "takes no batch";
  if (has_scales(p.precision) && (takes & kScales) == 0) return "gets no scales of blocks";
  if (p.activation != Activation::none && (takes & kEpilogues) == 0)
    return "does not support the epilogue " + std::string(name_of(p.activation));
  return std::nullopt;
}

}  // namespace

std::shared_ptr<const Call> call_of(const Problem& p, const Device& device, const Operands& o) {
  struct Held {
    Call call;
    std::vector<int> starts = {};
    std::shared_ptr<const int> on_gpu = {};
  };
  const auto held =
      std::make_shared<Held>(Held{.call = {.a = o.a,
                                           .b = o.b,
                                           .c = o.c,
                                           .m = p.m,
                                           .n = p.n,
                                           .k = p.k,
                                           .a_transposed = transposes_a(p.layout),
                                           .b_transposed = transposes_b(p.layout),
                                           .epilogue = static_cast<Epilogue>(p.activation),
                                           .batch = p.batch,
                                           .row_starts = nullptr,
                                           .host_row_starts = nullptr,
                                           .a_scales = o.a_scales,
                                           .b_scales = o.b_scales,
                                           .bias = o.bias,
                                           .residual = o.residual}});
  if (is_grouped(p)) {
    for (const std::int64_t start : row_starts(p)) held->starts.push_back(static_cast<int>(start));
    if (device.kind == Device::Kind::gpu) held->on_gpu = copy_on_gpu(held->starts);
    held->call.host_row_starts = held->starts.data();
    held->call.row_starts = held->on_gpu ? held->on_gpu.get() : held->starts.data();
  }
  return {held, &held->call};
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
  entry.batches = Batches::also;
  entry.activations = {kActivations.begin(), kActivations.end()};
  Loaded loaded;
  if (user.is_source()) {
    entry.source = "a .cu file, compiled at run time";
    loaded = load_source(user);
  } else if (user.is_python()) {
    entry.source = "a Python file";
    loaded = load_python(user);
    entry.python = std::filesystem::absolute(user.file);
  } else {
    entry.source = "a shared library";
    loaded = load_library(user);
  }
  entry.prepare = std::move(loaded.prepare);
  entry.unsupported = [takes = std::move(loaded.takes), other = std::move(loaded.unsupported)](
                          const Problem& p, const Device& device) -> std::optional<std::string> {
    // The file is not opened for this where it need not declare anything.
    if (undeclared(p, 0))
      if (auto why = undeclared(p, takes(p, device))) return why;
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
