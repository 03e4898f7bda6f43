// Audits on the CPU: kernels that do not do their work each time are refused, each with an honest
// twin that does almost the same and passes.
#include "bench/measurement/audit.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "bench/measurement/measurement.hpp"
#include "kernels/layout.hpp"

namespace gemm::bench {
namespace {

void multiply(const Problem& p, const Operands& on, std::int64_t rows) {
  const auto* a = static_cast<const float*>(on.a);
  const auto* b = static_cast<const float*>(on.b);
  auto* c = static_cast<float*>(on.c);
  std::fill_n(c, rows * p.n, 0.0F);
  for (std::int64_t i = 0; i < rows; ++i)
    for (std::int64_t l = 0; l < p.k; ++l)
      for (std::int64_t j = 0; j < p.n; ++j) c[i * p.n + j] += a[i * p.k + l] * b[l * p.n + j];
}
void multiply(const Problem& p, const Operands& on) { multiply(p, on, p.m); }

std::size_t c_elements(const Problem& p) { return static_cast<std::size_t>(p.m * p.n); }

using Prepare = std::function<Launch(const Problem&, const Device&, const Operands&)>;

struct Trial {
  double sample_seconds = 0.002;
  int times = 1;                                 // on the same operands
  std::int64_t edge = 96;                        // of the matrices
  std::function<void()> before_freeing = [] {};  // the operands
};
// For kernels that take next to no time in samples: their batches have many launches, and in those
// on new values all of them multiply.
const Trial kSmall{.sample_seconds = 0.0005, .edge = 48};

// What became of a kernel: "" if it is right and its time that of its work.
std::string verdict_of(const Prepare& prepare, const Trial& trial = {}) {
  RegisteredKernel kernel;
  kernel.name = "Kernel";
  kernel.precisions = {Precision::f32};
  kernel.runs_on = Device::Kind::cpu;
  kernel.prepare = prepare;
  const std::unique_ptr<Backend> backend = make_host_backend();
  Options options;
  options.timing.warmup_seconds = 0.01;
  options.timing.sampling_seconds = 0.05;
  options.timing.longest_sampling_seconds = 0.1;
  options.timing.sample_seconds = trial.sample_seconds;
  options.timing.budget_seconds = 60;  // a busy machine takes long for enough batches
  ProblemCache cache(*backend, Fill::uniform, 1);
  const std::shared_ptr<void> at_end(nullptr, [&](void*) { trial.before_freeing(); });
  for (int i = 0; i < trial.times; ++i) {
    Measurement measurement(*backend, nullptr, cache, options,
                            {&kernel, {trial.edge, trial.edge, trial.edge, Precision::f32}});
    std::optional<AuditResult> audited;
    try {
      measurement.prepare(1e9);
      measurement.time(options.timing, 1e9, nullptr, nullptr, &audited);
      measurement.verify();
    } catch (const Suspect& error) {
      return std::string("suspect: ") + error.what();
    } catch (const std::exception& error) {
      return std::string("failed: ") + error.what();
    }
    EXPECT_TRUE(audited);
    EXPECT_GE(audited->batches, 2);
  }
  return "";
}

TEST(Audit, TakesAnHonestKernel) {
  EXPECT_EQ(verdict_of([](const Problem& p, const Device&, const Operands& on) -> Launch {
              return [=](Stream) { multiply(p, on); };
            }),
            "");
}

// The launches that are looked at alone may be more than those of a batch.
TEST(Audit, LeavesTheOperandsAsTheyWereWhereABatchIsOneLaunch) {
  EXPECT_EQ(
      verdict_of([](const Problem& p, const Device&,
                    const Operands& on) -> Launch { return [=](Stream) { multiply(p, on); }; },
                 {.sample_seconds = 1e-9, .times = 2}),
      "");
}

// A plan and a scratch buffer, made once and kept, are no results.
TEST(Audit, TakesAKernelThatKeepsAScratchBuffer) {
  EXPECT_EQ(verdict_of([](const Problem& p, const Device&, const Operands& on) -> Launch {
              const auto scratch = std::make_shared<std::vector<float>>(c_elements(p));
              return [=](Stream) {
                multiply(p, {on.a, on.b, scratch->data()});
                std::memcpy(on.c, scratch->data(), scratch->size() * sizeof(float));
              };
            }),
            "");
}

TEST(Audit, RefusesAReplayByPointer) {
  const std::string found =
      verdict_of([](const Problem& p, const Device&, const Operands& on) -> Launch {
        const auto kept = std::make_shared<std::vector<float>>();
        return [=](Stream) {
          auto* c = static_cast<float*>(on.c);
          if (kept->empty()) {
            multiply(p, on);
            kept->assign(c, c + c_elements(p));
          }
          std::memcpy(c, kept->data(), kept->size() * sizeof(float));
        };
      });
  EXPECT_TRUE(found.starts_with("failed: on new values")) << found;
}

// Right on every values, but only new ones are worked for.
TEST(Audit, SuspectsAReplayByTheValues) {
  const std::string found = verdict_of(
      [](const Problem& p, const Device&, const Operands& on) -> Launch {
        const auto kept = std::make_shared<std::vector<float>>();
        const auto key = std::make_shared<double>(std::nan(""));
        return [=](Stream) {
          const auto* a = static_cast<const float*>(on.a);
          auto* c = static_cast<float*>(on.c);
          double sum = 0;
          for (std::int64_t i = 0; i < p.m * p.k; ++i) sum += a[i] * static_cast<double>(i + 1);
          if (sum != *key) {
            multiply(p, on);
            kept->assign(c, c + c_elements(p));
            *key = sum;
          }
          std::memcpy(c, kept->data(), kept->size() * sizeof(float));
        };
      },
      kSmall);
  EXPECT_TRUE(found.starts_with("suspect: ")) << found;
}

TEST(Audit, SuspectsASkipOfWhatIsThereAlready) {
  const std::string found = verdict_of(
      [](const Problem& p, const Device&, const Operands& on) -> Launch {
        return [=](Stream) {
          if (std::isnan(static_cast<const float*>(on.c)[0])) multiply(p, on);
        };
      },
      kSmall);
  EXPECT_TRUE(found.starts_with("suspect: ") || found.starts_with("failed: ")) << found;
}

// Filling operands takes longer than what is between two samples.
TEST(Audit, SuspectsAKernelThatWorksOnlyAfterAPause) {
  using Clock = std::chrono::steady_clock;
  struct State {
    Clock::time_point last;
    int honest = 0;
  };
  const auto state = std::make_shared<State>();
  const std::string found =
      verdict_of([state](const Problem& p, const Device&, const Operands& on) -> Launch {
        const auto kept = std::make_shared<std::vector<float>>();
        return [=](Stream) {
          if (Clock::now() - state->last > std::chrono::microseconds(500))
            state->honest = 6;  // about an audited batch
          auto* c = static_cast<float*>(on.c);
          if (kept->empty() || state->honest-- > 0) {
            multiply(p, on);
            kept->assign(c, c + c_elements(p));
          } else {
            std::memcpy(c, kept->data(), kept->size() * sizeof(float));
          }
          state->last = Clock::now();
        };
      });
  EXPECT_TRUE(found.starts_with("suspect: ") || found.starts_with("failed: on new")) << found;
}

// 64 launches of 36 us, of which samples of more launches repeat only the first ones. Of six pairs
// two are disturbed.
TEST(Audit, FindsSamplesThatAreShorterThanTheirLaunches) {
  const std::vector<double> batches{2.31e-3, 2.30e-3, 9e-3, 2.32e-3, 2.31e-3, 1e-6};
  EXPECT_NEAR(gain_in_samples(batches, std::vector(6, 64 * 15.8e-6)).value_or(0), 2.26, 0.01);
  EXPECT_FALSE(gain_in_samples(batches, std::vector(6, 64 * 30e-6)));
  EXPECT_FALSE(gain_in_samples({15e-6}, {2e-6})) << "a single launch out of no cache";
  EXPECT_TRUE(gain_in_samples({15e-6}, {std::nan("")}));
  EXPECT_FALSE(gain_in_samples({}, {}));
  // A kernel that gets slower is compared with the samples nearby.
  EXPECT_FALSE(gain_in_samples({1e-3, 2e-3, 4e-3, 8e-3}, {1e-3, 2e-3, 4e-3, 8e-3}));
}

TEST(Audit, RefusesSkippedCalls) {
  const auto calls = std::make_shared<int>(0);
  const std::string found =
      verdict_of([calls](const Problem& p, const Device&, const Operands& on) -> Launch {
        return [=](Stream) {
          if (++*calls < 300 || *calls % 3 != 0) multiply(p, on);
        };
      });
  EXPECT_TRUE(found.starts_with("failed: ")) << found;
}

// One launch computes for all sets, and the others return.
TEST(Audit, RefusesABatchComputedAtOnce) {
  const auto all = std::make_shared<std::vector<Operands>>();
  const std::string found = verdict_of(
      [all](const Problem& p, const Device&, const Operands& on) -> Launch {
        all->push_back(on);
        const bool first = all->size() == 1;
        return [=](Stream) {
          if (first)
            for (const Operands& each : *all) multiply(p, each);
        };
      },
      kSmall);
  EXPECT_TRUE(found.starts_with("failed: ")) << found;
}

// A thread writes the last rows when the launch has returned.
TEST(Audit, RefusesLateWork) {
  const auto threads = std::make_shared<std::vector<std::thread>>();
  const std::string found = verdict_of(
      [threads](const Problem& p, const Device&, const Operands& on) -> Launch {
        return [=](Stream) {
          multiply(p, on, p.m / 2);
          threads->emplace_back([=] {
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
            multiply(p, on);
          });
        };
      },
      {.before_freeing = [threads] {
        for (std::thread& one : *threads) one.join();
      }});
  EXPECT_TRUE(found.starts_with("failed: ")) << found;
}

TEST(Audit, RefusesAKernelThatChangesItsOperands) {
  const std::string found =
      verdict_of([](const Problem& p, const Device&, const Operands& on) -> Launch {
        return [=](Stream) {
          multiply(p, on);
          auto* a = static_cast<float*>(const_cast<void*>(on.a));
          a[0] = std::nextafter(a[0], 2.0F);  // less than any bound
        };
      });
  EXPECT_NE(found.find("changed A or B"), std::string::npos) << found;
}

}  // namespace
}  // namespace gemm::bench
