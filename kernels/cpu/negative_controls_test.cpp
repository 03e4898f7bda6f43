// Negative controls: wrong or slow on purpose. They are linked into gemm_bench_wrong together with
// the real kernels, so that tests see what a user would see.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

#include "kernels/registry.hpp"
#include "kernels/scales.hpp"

namespace gemm {
namespace {

using Prepare = decltype(Kernel::prepare);

// A correct product, after which `spoil` corrupts C; it gets the number of earlier calls.
template <typename Spoil>
Prepare wrong(Spoil spoil) {
  return [spoil](const Problem& p, const Device&, const Operands& o) -> Launch {
    return [=, call = 0](Stream) mutable {
      const auto *a = static_cast<const float*>(o.a), *b = static_cast<const float*>(o.b);
      auto* c = static_cast<float*>(o.c);
      for (std::int64_t i = 0; i < p.m; ++i)
        for (std::int64_t j = 0; j < p.n; ++j) {
          float sum = 0;
          for (std::int64_t l = 0; l < p.k; ++l) sum += a[i * p.k + l] * b[l * p.n + j];
          c[i * p.n + j] = sum;
        }
      spoil(p, c, call++);
    };
  };
}
const Prepare right = wrong([](const Problem&, float*, int) {});

// A right product of a batch for each of `count(p)`, by the B of `of_b(p, which)`.
template <typename Count, typename OfB>
Prepare wrong_batch(Count count, OfB of_b) {
  return [=](const Problem& p, const Device& device, const Operands& o) -> Launch {
    std::vector<Launch> launches;
    for (std::int64_t which = 0; which < count(p); ++which) {
      Operands one = operands_of_product(p, o, which);
      one.b = operands_of_product(p, o, of_b(p, which)).b;
      launches.push_back(right(one_of(p), device, one));
    }
    return [launches](Stream stream) {
      for (const Launch& launch : launches) launch(stream);
    };
  };
}

// A right product by scales that `spoil` has changed.
template <typename Spoil>
Prepare wrong_scales(Spoil spoil) {
  return [spoil](const Problem& p, const Device& device, const Operands& o) -> Launch {
    return [=](Stream stream) {
      std::vector<float> a(o.a_scales, o.a_scales + scales_of_a(p)),
          b(o.b_scales, o.b_scales + scales_of_b(p));
      spoil(p, a, b);
      Operands other = o;
      other.a_scales = a.data();
      other.b_scales = b.data();
      const auto right = std::ranges::find(registry(), "CpuBlockScaled", &RegisteredKernel::name);
      right->prepare(p, device, other)(stream);
    };
  };
}
using Factors = std::vector<float>;

// The right product with another epilogue, or with something else as bias or residual.
template <typename Spoil>
Prepare wrong_epilogue(Spoil spoil) {
  return [=](const Problem& p, const Device& device, const Operands& o) -> Launch {
    return [=](Stream stream) {
      const auto* const from = static_cast<const float*>(o.bias != nullptr ? o.bias : o.residual);
      std::vector<float> added(from, from + elements_of_bias(p) + elements_of_residual(p));
      Problem done = p;
      spoil(done, added);
      Operands other = o;
      (o.bias != nullptr ? other.bias : other.residual) = added.data();
      const auto right = std::ranges::find(registry(), "CpuNaive", &RegisteredKernel::name);
      right->prepare(done, device, other)(stream);
    };
  };
}

struct Control : Registration {
  Control(const char* name, Prepare prepare, Layout layout = Layout::nn,
          Batches batches = Batches::none, Precision precision = Precision::f32,
          std::vector<Activation> activations = {Activation::none})
      : Registration({.name = name,
                      .idea = "Wrong or slow on purpose.",
                      .source = "negative control",
                      .rung = 99,
                      .precisions = {precision},
                      .layouts = {layout},
                      .batches = batches,
                      .activations = std::move(activations),
                      .prepare = std::move(prepare)},
                     Device::Kind::cpu) {}
};

const Control writes_nan("WrongNaN",
                         wrong([](const Problem&, float* c, int) { c[0] = std::nanf(""); }));
const Control writes_past("WrongPastTheEnd",
                          wrong([](const Problem& p, float* c, int) { c[p.m * p.n] = 0; }));
// Stops writing after many launches and leaves the correct C of an earlier one: only a later
// repetition detects it.
const Control stops("WrongStops",
                    [](const Problem& p, const Device& d, const Operands& o) -> Launch {
                      static int calls = 0;
                      return [launch = right(p, d, o)](Stream stream) {
                        if (calls++ < 100000) launch(stream);
                      };
                    });
// Always correct, but slow after a while, as on a machine where another program starts.
const Control slows_down("SlowsDown",
                         [](const Problem& p, const Device& d, const Operands& o) -> Launch {
                           static int calls = 0;
                           return [launch = right(p, d, o)](Stream stream) {
                             launch(stream);
                             if (calls++ > 5000)
                               std::this_thread::sleep_for(std::chrono::milliseconds(20));
                           };
                         });
// Correct when it is verified first, wrong once it is timed.
const Control degrades("WrongLater", wrong([](const Problem&, float* c, int call) {
                         if (call >= 3) c[1] += 1;
                       }));
// Declares layout tn but reads nn.
const Control ignores_layout("WrongLayout", right, Layout::tn);
const Control skips("WrongBatchSkipped",
                    wrong_batch([](const Problem& p) { return p.batch - 1; },
                                [](const Problem&, std::int64_t which) { return which; }),
                    Layout::nn, Batches::only);
const Control takes_next("WrongBatchNeighbour",
                         wrong_batch([](const Problem& p) { return p.batch; },
                                     [](const Problem& p, std::int64_t which) {
                                       return (which + 1) % p.batch;
                                     }),
                         Layout::nn, Batches::only);
struct EpilogueControl : Control {
  template <typename Spoil>
  EpilogueControl(const char* name, std::vector<Activation> of, Spoil spoil)
      : Control(name, wrong_epilogue(spoil), Layout::nn, Batches::none, Precision::f32, of) {}
};
const EpilogueControl no_bias("WrongNoBias", {Activation::bias, Activation::bias_gelu},
                              [](Problem&, Factors& added) { std::ranges::fill(added, 0.0F); });
const EpilogueControl next("WrongNextAdded",
                           {Activation::bias, Activation::bias_gelu, Activation::residual},
                           [](Problem&, Factors& added) {
                             std::rotate(added.begin(), added.begin() + 1, added.end());
                           });
const EpilogueControl no_gelu("WrongNoGelu", {Activation::bias_gelu},
                              [](Problem& p, Factors&) { p.activation = Activation::bias; });
struct ScaleControl : Control {
  template <typename Spoil>
  ScaleControl(const char* name, Spoil spoil, Batches batches = Batches::also)
      : Control(name, wrong_scales(spoil), Layout::nt, batches, Precision::e4m3block) {}
};
const ScaleControl scale_of_columns("WrongScaleOfNextColumns", [](const Problem& p, Factors&,
                                                                  Factors& b) {
  std::rotate(b.begin(), b.begin() + scales_of_b_stride(p.k), b.end());
});
const ScaleControl scale_of_row("WrongScaleOfNextRow", [](const Problem&, Factors& a, Factors&) {
  std::rotate(a.begin(), a.begin() + 1, a.end());
});
const ScaleControl scale_before("WrongScaleOfBlockBefore",
                                [](const Problem& p, Factors& a, Factors&) {
                                  std::copy_backward(a.begin(), a.end() - p.batch * p.m, a.end());
                                });
const ScaleControl scale_of_b_before("WrongScaleOfBlockBeforeOfB",
                                     [](const Problem&, Factors&, Factors& b) {
                                       std::copy_backward(b.begin(), b.end() - 1, b.end());
                                     });
const ScaleControl scale_of_group(
    "WrongScaleOfNextGroup",
    [](const Problem& p, Factors&, Factors& b) {
      std::rotate(b.begin(), b.begin() + scales_of_each_b(p), b.end());
    },
    Batches::only);
const ScaleControl no_scales("WrongScalesIgnored", [](const Problem&, Factors& a, Factors& b) {
  std::ranges::fill(a, 1.0F);
  std::ranges::fill(b, 1.0F);
});
const Control throws("WrongThrows", [](const Problem&, const Device&, const Operands&) -> Launch {
  throw std::runtime_error("no plan for this problem");
});

}  // namespace
}  // namespace gemm
