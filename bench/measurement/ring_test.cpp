// Samples of kernels that cheat, and of honest ones that do almost the same.
#include "bench/measurement/ring.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "bench/base/clock.hpp"
#include "bench/device/backend.hpp"
#include "bench/measurement/measurement.hpp"

namespace gemm::bench {
namespace {

void multiply(const Problem& p, const Operands& o) {
  const auto *a = static_cast<const float*>(o.a), *b = static_cast<const float*>(o.b);
  auto* c = static_cast<float*>(o.c);
  for (std::int64_t i = 0; i < p.m; ++i)
    for (std::int64_t j = 0; j < p.n; ++j) {
      float sum = 0;
      for (std::int64_t l = 0; l < p.k; ++l) sum += a[i * p.k + l] * b[l * p.n + j];
      c[i * p.n + j] = sum;
    }
}

// What happens to one kernel of several sets: "" if it gets a time, or why not.
std::string outcome(const std::function<Launch(const Problem&, const Operands&)>& prepare,
                    double budget_seconds = 100) {
  const auto backend = make_host_backend();
  ProblemCache cache(*backend, Fill::uniform, 1);
  Options options;
  options.timing.warmup_seconds = 0.01;
  options.timing.sampling_seconds = 0.05;
  options.timing.budget_seconds = budget_seconds;
  RegisteredKernel kernel;
  kernel.name = "Kernel";
  kernel.family = "cpu";
  kernel.prepare = [&](const Problem& p, const Device&, const Operands& o) {
    return prepare(p, o);
  };
  Measurement measurement(*backend, nullptr, cache, options,
                          {&kernel, {48, 40, 32, Precision::f32}});
  measurement.prepare(1e9);
  try {
    measurement.time(options.timing, 1e9);
    return measurement.checks() ? "" : "no checks";
  } catch (const Suspect& error) {
    return std::string("suspect: ") + error.what();
  } catch (const std::exception& error) {
    return error.what();
  }
}

TEST(Ring, TimesAKernelThatComputes) {
  EXPECT_EQ(outcome([](const Problem& p, const Operands& o) -> Launch {
              return [=](Stream) { multiply(p, o); };
            }),
            "");
}

TEST(Ring, RefusesAKernelThatSkipsOneLaunchInTwenty) {
  int sets = 0, launches = 0;
  const std::string found = outcome([&](const Problem& p, const Operands& o) -> Launch {
    // Of the ring: the first ones of all are verified and warmed up with.
    return [=, of_the_ring = ++sets > 2, &launches](Stream) {
      if (!of_the_ring || ++launches % 20 != 0) multiply(p, o);
    };
  });
  EXPECT_NE(found.find("in a sample"), std::string::npos) << found;
}

// All of the pass in its first launch, which the samples then only copy.
TEST(Ring, SuspectsAKernelThatWorksAhead) {
  struct Job {
    Operands operands;
    std::vector<float> result;
  };
  auto jobs = std::make_shared<std::vector<Job>>();
  const std::string found = outcome([&](const Problem& p, const Operands& o) -> Launch {
    jobs->push_back({o, std::vector<float>(static_cast<std::size_t>(p.m * p.n))});
    return [=, mine = jobs->size() - 1](Stream) {
      Job& job = (*jobs)[mine];
      // Those of the ring; the first ones of all are verified and warmed up with.
      const std::size_t first = 2;
      if (mine < first) return multiply(p, job.operands);
      if (mine == first)
        for (std::size_t i = first; i < jobs->size(); ++i)
          multiply(p, {(*jobs)[i].operands.a, (*jobs)[i].operands.b, (*jobs)[i].result.data()});
      std::ranges::copy(job.result, static_cast<float*>(job.operands.c));
    };
  });
  EXPECT_NE(found.find("work ahead"), std::string::npos) << found;
}

TEST(Ring, GivesNoRateToAKernelThatSpendsTheBudget) {
  int launches = 0;
  const std::string found = outcome(
      [&](const Problem& p, const Operands& o) -> Launch {
        return [=, &launches](Stream) {
          if (++launches == 20'000)
            for (const double end = now_seconds() + 1; now_seconds() < end;) {
            }
          multiply(p, o);
        };
      },
      0.5);
  EXPECT_TRUE(found.empty() || found.find("not checked") != std::string::npos) << found;
}

TEST(RingPlan, FillsFourCachesAndTwoMilliseconds) {
  Device gpu;
  gpu.kind = Device::Kind::gpu;
  gpu.last_level_cache_bytes = 50 << 20;
  const TimingPlan plan;
  const double memory = 80e9;
  const Problem small{256, 256, 256, Precision::bf16}, large{8192, 8192, 8192, Precision::bf16};

  const RingPlan brief = plan_ring(plan, 4e-6, small, gpu, memory, true);
  EXPECT_NEAR(static_cast<double>(brief.launches), 800, 1);  // 3.2 ms, of which 3/8 may lead
  EXPECT_NEAR(static_cast<double>(brief.timed), 500, 1);
  EXPECT_EQ(brief.sets, brief.launches);
  EXPECT_TRUE(brief.graph);
  EXPECT_GE(static_cast<double>(brief.launches) * bytes_minimum(small), 4.0 * (50 << 20));
  EXPECT_GE(brief.drawn * 6, 18);

  const RingPlan long_one = plan_ring(plan, 1.6e-3, large, gpu, memory, true);
  EXPECT_EQ(long_one.launches, 2);
  EXPECT_EQ(long_one.timed, 1);
  EXPECT_FALSE(long_one.graph);
  EXPECT_EQ(plan_ring(plan, 0.2, large, gpu, memory, true).launches, 1);  // each checked

  EXPECT_EQ(plan_ring(plan, 4e-6, small, gpu, memory, false).sets, 1);
  EXPECT_EQ(plan_ring(plan, 4e-6, small, gpu, 20e6, true).sets, 19);
  const RingPlan burst = plan_ring({.state = State::burst}, 4e-6, small, gpu, memory, true);
  EXPECT_EQ(burst.timed, TimingPlan{}.burst_launches);
  EXPECT_EQ(burst.launches, burst.timed);
}

}  // namespace
}  // namespace gemm::bench
