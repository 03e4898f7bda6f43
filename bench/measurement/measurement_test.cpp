// From operands to verdict, on the CPU and (label GPU) on the GPU: every kernel of the
// suite is right at awkward sizes, and every kind of wrong kernel is caught.
#include "bench/measurement/measurement.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "bench/base/clock.hpp"
#include "bench/base/device_errors.hpp"
#include "bench/device/test_backend.hpp"
#include "bench/run/session.hpp"

namespace gemm::bench {
namespace {

std::string first_complaint(Backend& backend, const Kernel& kernel, const Problem& p) {
  ProblemData data(backend, p, Fill::uniform, 1, 2);
  data.poison();
  for (const Operands& set : data.sets()) backend.run(kernel.prepare(p, backend.device(), set));
  return complaint(p, data.judge(p, static_cast<std::int64_t>(data.sets().size()))).value_or("");
}

// How many cases there were.
std::int64_t expect_all_right(Backend& backend, bool libraries) {
  // Batches, too: of odd sizes; of products that end within a tile; of whole tiles. Groups: some
  // without rows or with one, some that end within a tile.
  constexpr Shape kShapes[] = {{5, 7, 300},
                               {72, 40, 8, 5},
                               {40, 200, 400, 8, Tokens::zipf, 1},
                               {1, 1, 1},
                               {64, 64, 64},
                               {33, 65, 17, 3},
                               {3, 40, 72, 32, Tokens::real},
                               {33, 65, 17},
                               {257, 129, 31},
                               {1, 300, 5},
                               {300, 1, 5},
                               {31, 32, 33},
                               {129, 1, 128},
                               {128, 256, 1},
                               {96, 40, 8},
                               {255, 257, 9},
                               {8, 8, 2049},
                               {1, 1, 8, 300},
                               {64, 257, 72, 2},
                               {128, 256, 128, 4},
                               {192, 264, 72, 3},
                               {130, 514, 1026},
                               {512, 512, 512},
                               {1, 33, 24, 9, Tokens::zipf},
                               {90, 257, 72, 8, Tokens::zipf, 1},
                               {130, 264, 136, 4, Tokens::band},
                               {64, 512, 64, 32, Tokens::real, 5}};
  // For what tries its plans, half a second a problem; and for libraries.
  constexpr std::ptrdiff_t kFew = 3, kOfLibraries = 7;
  std::int64_t checked = 0;
  for (const Shape& shape : kShapes)
    for (const Case& one : make_cases({shape}, {}, backend.device().kind, true, {}, {})) {
      const Kernel& kernel = *one.kernel;
      if (one.kernel->is_library() != libraries) continue;
      const bool tries = kernel.chosen && !one.kernel->variant;
      if (&shape - kShapes >= (libraries ? kOfLibraries : tries ? kFew : std::ssize(kShapes)))
        continue;
      if (kernel.unsupported != nullptr && kernel.unsupported(one.problem, backend.device()))
        continue;
      EXPECT_EQ(first_complaint(backend, kernel, one.problem), "") << one.name();
      ++checked;
    }
  return checked;
}

TEST(Kernels, AreRightAtAwkwardSizesOnTheCpu) {
  EXPECT_GT(expect_all_right(*make_host_backend(), false), 0);
}

TEST(Kernels, AreRightAtAwkwardSizesOnTheGpu) {
  SKIP_WITHOUT_GPU();
  EXPECT_GT(expect_all_right(*cuda(), false), 0);
}

TEST(Libraries, AreRightAtAwkwardSizesOnTheCpu) {
  if (expect_all_right(*make_host_backend(), true) == 0) GTEST_SKIP() << "built without OpenBLAS";
}

// Apart, because tools/sanitize need not look into them.
TEST(Libraries, AreRightAtAwkwardSizesOnTheGpu) {
  SKIP_WITHOUT_GPU();
  EXPECT_GT(expect_all_right(*cuda(), true), 0);
}

constexpr Shape kAnyAndSquare[] = {{33, 65, 17}, {96, 40, 8}, {64, 64, 64}, {128, 128, 128}};

// A kernel that claims a layout and reads that of `which`, for each layout that it may claim.
void expect_refused_elsewhere(Backend& backend, const Case& which) {
  Kernel liar = *which.kernel;
  liar.prepare = [&](const Problem&, const Device& device, const Operands& o) {
    return which.kernel->prepare(which.problem, device, o);
  };
  Problem claimed = which.problem;
  for (const Layout layout : kLayouts) {
    claimed.layout = layout;
    EXPECT_EQ(first_complaint(backend, liar, claimed) == "", layout == which.problem.layout)
        << which.name() << " on operands of " << name_of(layout);
  }
}

// Every kernel of the suite, given a wrong layout.
void expect_other_layouts_refused(Backend& backend) {
  std::int64_t checked = 0;
  for (const Shape& shape : kAnyAndSquare)
    for (const Case& one : make_cases({shape}, {}, backend.device().kind, false, {})) {
      const RegisteredKernel& kernel = *one.kernel;
      if (kernel.is_library()) continue;
      if (kernel.chosen && !kernel.candidates) continue;  // Best: runs the others, by a trial
      if (kernel.unsupported && kernel.unsupported(one.problem, backend.device())) continue;
      expect_refused_elsewhere(backend, one);
      ++checked;
    }
  EXPECT_GT(checked, 0);
}

TEST(Verification, RefusesAKernelThatReadsAnotherLayoutOnTheCpu) {
  expect_other_layouts_refused(*make_host_backend());
}

TEST(Verification, RefusesAKernelThatReadsAnotherLayoutOnTheGpu) {
  SKIP_WITHOUT_GPU();
  expect_other_layouts_refused(*cuda());
}

// A launch that computes the right C.
Launch right(const Problem& p, const Device&, const Operands& o) {
  return [=](Stream) {
    const auto *a = static_cast<const float*>(o.a), *b = static_cast<const float*>(o.b);
    auto* c = static_cast<float*>(o.c);
    for (std::int64_t i = 0; i < p.m; ++i)
      for (std::int64_t j = 0; j < p.n; ++j) {
        float sum = 0;
        for (std::int64_t l = 0; l < p.k; ++l)
          sum += a[index_in_a(p, i, l)] * b[index_in_b(p, l, j)];
        c[i * p.n + j] = sum;
      }
  };
}

// A right kernel that then does harm to C, of 9 x 16 elements, or to what is around it.
TEST(Verification, CatchesWhatIsWrongAndWhereItIs) {
  using Harm = void (*)(float* c, const Operands& o);
  constexpr float kNaN = std::numeric_limits<float>::quiet_NaN(),
                  kInfinity = std::numeric_limits<float>::infinity();
  const std::pair<Harm, const char*> all[] = {
      {[](float* c, const Operands&) { c[17] = kNaN; }, "c[1,1] = nan"},
      {[](float* c, const Operands&) { c[0] = kInfinity; }, "c[0,0] = inf"},
      {[](float* c, const Operands&) { c[143] += 1e-3F; }, "1 of 144"},
      {[](float* c, const Operands&) { c[143] += 1e-3F; }, "c[8,15]"},
      {[](float* c, const Operands&) { std::memset(c + 5, 0xff, sizeof *c); }, "c[0,5] = "},
      {[](float* c, const Operands&) { c[144] = 0; }, "past its end"},
      // 128 rows of 16 elements.
      {[](float* c, const Operands&) { c[144 + 100 * 16] = 0; },
       "wrote outside C: byte 6401 past its end"},
      {[](float* c, const Operands&) { c[-1] = 0; },
       "wrote outside C: byte 1 before its beginning"},
      {[](float*, const Operands& o) {
         const_cast<float*>(static_cast<const float*>(o.a))[-1] = 0;
       },
       "before its beginning"},
      // The guards are NaN, so that a read beyond an operand spoils the sum even where it is
      // multiplied by zero.
      {[](float* c, const Operands& o) { c[0] += 0.0F * static_cast<const float*>(o.b)[16 * 16]; },
       "c[0,0] = "}};
  for (const auto& [harm, said] : all) {
    Kernel kernel;
    kernel.prepare = [harm = harm](const Problem& p, const Device& d, const Operands& o) -> Launch {
      return [=, launch = right(p, d, o)](Stream stream) {
        launch(stream);
        harm(static_cast<float*>(o.c), o);
      };
    };
    const std::string text =
        first_complaint(*make_host_backend(), kernel, {9, 16, 16, Precision::f32});
    EXPECT_NE(text.find(said), std::string::npos) << text << ", not " << said;
  }
}

// Right but for what `chosen` says of a product: of which products it takes A and B; -1: it is left
// out.
struct Chosen {
  std::int64_t a, b;
};
TEST(Verification, CatchesWrongProductsOfABatch) {
  constexpr std::int32_t kBatch = 4;
  using Choose = Chosen (*)(std::int64_t which);
  const std::pair<Choose, const char*> all[] = {
      {[](std::int64_t which) {
         return Chosen{which, which};
       },
       ""},
      {[](std::int64_t which) {
         return which == 2 ? Chosen{-1, -1} : Chosen{which, which};
       },
       "144 of 576"},
      {[](std::int64_t which) {
         return Chosen{which, (which + 1) % kBatch};
       },
       "c[0][0,0] = "},
      {[](std::int64_t which) {
         return Chosen{which, 0};
       },
       "c[1][0,0] = "},
      {[](std::int64_t which) {
         return Chosen{0, which};
       },
       "432 of 576"},
      {[](std::int64_t which) {
         return Chosen{which == 3 ? 2 : which, which};
       },
       "c[3][0,0] = "}};
  const auto host = make_host_backend();
  for (const Layout layout : kLayouts)
    for (const auto& [choose, said] : all) {
      Kernel kernel;
      kernel.prepare = [choose = choose](const Problem& p, const Device& d,
                                         const Operands& o) -> Launch {
        std::vector<Launch> launches;
        for (std::int64_t which = 0; which < p.batch; ++which) {
          const Chosen chosen = choose(which);
          if (chosen.a < 0) continue;
          launches.push_back(
              right(one_of(p), d,
                    {operands_of_product(p, o, chosen.a).a, operands_of_product(p, o, chosen.b).b,
                     operands_of_product(p, o, which).c}));
        }
        return [launches](Stream stream) {
          for (const Launch& launch : launches) launch(stream);
        };
      };
      const std::string text =
          first_complaint(*host, kernel, {9, 16, 16, Precision::f32, layout, kBatch});
      EXPECT_EQ(text.empty(), std::string(said).empty()) << text;
      EXPECT_NE(text.find(said), std::string::npos) << text << ", not " << said;
    }
}

// The products of groups, right but for what `fault` changes: of which group's B it takes, and
// which rows from the group's first on. The last group first, so that rows of a neighbour stay
// wrong.
TEST(Verification, CatchesWrongProductsOfGroups) {
  struct Part {
    std::int64_t b, from, rows;
  };
  using Fault = void (*)(const Products&, Part&);
  const std::pair<Fault, const char*> all[] = {
      {[](const Products&, Part&) {}, ""},
      {[](const Products&, Part& part) { part.rows = part.b == 2 ? 0 : part.rows; },
       "1024 of 4608"},
      {[](const Products&, Part& part) { part.b = std::max<std::int64_t>(0, part.b - 1); },
       "c[1][0,0] = "},
      {[](const Products&, Part& part) { part.from += part.b > 0 && part.rows > 0 ? 1 : 0; },
       "c[1][0,0] = "},
      {[](const Products& p, Part& part) { part.rows += part.b + 1 < p.batch ? 1 : 0; },
       "c[1][0,0] = "},
      {[](const Products&, Part& part) { part.rows = ceil_div(part.rows, 8) * 8; }, "[0,0] = "},
      {[](const Products&, Part& part) { part.rows = std::max<std::int64_t>(1, part.rows); },
       "144 of 4608"}};  // of the row behind each of nine empty groups
  const auto host = make_host_backend();
  for (const auto& [fault, said] : all)
    for (const Layout layout : {Layout::nn, Layout::nt}) {
      Kernel kernel;
      kernel.prepare = [fault = fault](const Problem& problem, const Device& d,
                                       const Operands& o) -> Launch {
        const Products p(problem);
        std::vector<Launch> launches;
        for (std::int64_t which = p.batch - 1; which >= 0; --which) {
          Part part{which, 0, p.rows(which)};
          fault(p, part);
          if (part.rows == 0) continue;
          Problem one = p.product(which);
          one.m = part.rows;
          const Operands at = p.operands(o, which);
          launches.push_back(
              right(one, d,
                    {static_cast<const float*>(at.a) + part.from * p.k, p.operands(o, part.b).b,
                     static_cast<float*>(at.c) + part.from * p.n}));
        }
        return [launches](Stream stream) {
          for (const Launch& launch : launches) launch(stream);
        };
      };
      const std::string text = first_complaint(
          *host, kernel, problem_of({9, 16, 16, 32, Tokens::real}, Precision::f32, layout));
      EXPECT_EQ(text.empty(), std::string(said).empty()) << text;
      EXPECT_NE(text.find(said), std::string::npos) << text << ", not " << said;
    }
}

TEST(ProblemCache, SharesOperandsAmongPrecisionsOfOneTypeAndRefusesWhatDoesNotFit) {
  const auto backend = make_host_backend();
  ProblemCache cache(*backend, Fill::uniform, 1);
  const auto get = [&](const Problem& p) { return cache.get(p, Reference::product, 2); };
  const auto f32 = get({8, 8, 8, Precision::f32});
  EXPECT_EQ(get({8, 8, 8, Precision::tf32}), f32);
  EXPECT_NE(get({8, 8, 9, Precision::f32}), f32);
  EXPECT_NE(get({8, 8, 8, Precision::f32, Layout::tn}), f32) << "another product";
  EXPECT_NE(get({8, 8, 8, Precision::f32, Layout::nn, 2}), f32) << "one product more";
  EXPECT_EQ(get({8, 8, 8, Precision::f32}), f32);
  cache.forget({8, 8, 8, Precision::tf32});
  EXPECT_NE(get({8, 8, 8, Precision::f32}), f32);
  try {
    get({2000000000, 2000000000, 1, Precision::f32});
    FAIL() << "there cannot be that much memory";
  } catch (const OutOfMemory& error) {
    EXPECT_NE(std::string(error.what()).find("needs "), std::string::npos) << error.what();
  }
}

RegisteredKernel sleeper(Launch (*prepare)(const Problem&, const Device&, const Operands&)) {
  RegisteredKernel kernel;
  kernel.name = "Sleeper";
  kernel.family = "cpu";
  kernel.prepare = prepare;
  return kernel;
}

TEST(Measurement, TimesAVerifiedKernelInBatches) {
  const auto backend = make_host_backend();
  ProblemCache cache(*backend, Fill::uniform, 1);
  Options options;
  options.timing.warmup_seconds = 0.01;
  options.timing.sampling_seconds = 0.05;
  const RegisteredKernel kernel =
      sleeper([](const Problem& p, const Device& d, const Operands& o) -> Launch {
        return [launch = right(p, d, o)](Stream stream) {
          std::this_thread::sleep_for(std::chrono::milliseconds(1));
          launch(stream);
        };
      });
  Measurement measurement(*backend, nullptr, cache, options, {&kernel, {4, 4, 4, Precision::f32}});
  measurement.prepare(1e9);
  const Timing timing = measurement.time(options.timing, 1e9);
  EXPECT_GE(timing.samples_seconds.size(), 5U);
  EXPECT_GT(timing.quantile_seconds(0), 0.9e-3);
  EXPECT_LT(timing.quantile_seconds(0.5), 1);
  EXPECT_GT(timing.kernel_seconds, 0.05);
  EXPECT_LE(measurement.batch(), 50);  // of 50 ms
  EXPECT_TRUE(measurement.verify().passed());
}

std::string skipped_because(const RegisteredKernel& kernel, const Problem& p, double budget) {
  const auto backend = make_host_backend();
  ProblemCache cache(*backend, Fill::uniform, 1);
  Options options;
  options.timing.budget_seconds = budget;
  Measurement measurement(*backend, nullptr, cache, options, {&kernel, p});
  try {
    measurement.prepare(1e9);
    return "";
  } catch (const Skipped& skipped) {
    return skipped.what();
  }
}

// A launch that computes what it should, and takes the time that kMicroseconds() says in addition.
template <auto kMicroseconds>
Launch right_after(const Problem& p, const Device& d, const Operands& o) {
  return [p, launch = right(p, d, o)](Stream stream) {
    std::this_thread::sleep_for(std::chrono::microseconds(kMicroseconds(p)));
    launch(stream);
  };
}

TEST(Measurement, SkipsWhatIsPredictedToExceedTheBudget) {
  const auto grows = sleeper(right_after<[](const Problem& p) { return 10 * p.m; }>);
  const auto fixed = sleeper(right_after<[](const Problem&) { return 10'000; }>);
  static bool loaded;
  loaded = false;
  const auto loads =
      sleeper(right_after<[](const Problem&) { return std::exchange(loaded, true) ? 0 : 60'000; }>);
  const Problem tall{65536, 8, 4, Precision::f32}, small{8, 8, 8, Precision::f32};
  const auto of_each = sleeper(right_after<[](const Problem& p) { return 1000 * p.batch; }>);
  const Problem many{8, 8, 8, Precision::f32, Layout::nn, 4096};
  EXPECT_NE(skipped_because(of_each, many, 1).find("predicted"), std::string::npos);
  // A corner of 256 x 8 x 4 of the fixed one takes as long as 256 times as many rows.
  EXPECT_EQ(skipped_because(fixed, tall, 1), "");
  EXPECT_NE(skipped_because(grows, tall, 1).find("row budget of 1 s"), std::string::npos);
  // As large as the first corner, so that nothing is predicted.
  EXPECT_NE(skipped_because(fixed, small, 0.05).find("row budget of 0.05 s"), std::string::npos);
  // Its first launch may load a library or compile.
  EXPECT_EQ(skipped_because(loads, tall, 1), "");
}

// A backend whose first reference product, or first check by rows, loads code.
class LoadingBackend : public ForwardingBackend {
 public:
  using ForwardingBackend::ForwardingBackend;
  void reference(const Problem& p, const Operands& operands, double* expected,
                 double* magnitude) override {
    load(product_loaded_);
    ++products;
    ForwardingBackend::reference(p, operands, expected, magnitude);
  }
  Verdict judge_rows(const Problem& p, const Operands& operands, std::uint64_t secret) override {
    load(rows_loaded_);
    return ForwardingBackend::judge_rows(p, operands, secret);
  }

  int products = 0;

 private:
  static void load(bool& loaded) {
    if (!std::exchange(loaded, true)) std::this_thread::sleep_for(std::chrono::milliseconds(80));
  }
  bool product_loaded_ = false, rows_loaded_ = false;
};

TEST(Measurement, NoReferenceIsJudgedByItsFirstUse) {
  const auto host = make_host_backend();
  LoadingBackend backend(*host);
  ProblemCache cache(backend, Fill::uniform, 1);
  const auto kernel = sleeper(right_after<[](const Problem&) { return 0; }>);
  Options options;
  options.timing.budget_seconds = 1;
  const Case tall{&kernel, {65536, 8, 4, Precision::f32}};
  Measurement(backend, nullptr, cache, options, tall).prepare(1e9);
  EXPECT_EQ(backend.products, 3);  // two of a corner, and that of the whole
}

// A backend whose clock runs only as its launches say, so that no host is too busy for it.
class SetClock : public ForwardingBackend {
 public:
  using ForwardingBackend::ForwardingBackend;
  std::unique_ptr<Mark> mark() override { return std::make_unique<Moment>(*this); }
  Elapsed between(const Mark& from, const Mark& to) override {
    return {static_cast<const Moment&>(to).seconds - static_cast<const Moment&>(from).seconds, {}};
  }

  double now = 0;  // seconds

 private:
  struct Moment : Mark {
    explicit Moment(const SetClock& clock) : clock(clock) {}
    void set(Clock, double) override { seconds = clock.now; }
    const SetClock& clock;
    double seconds = 0;
  };
};

// One launch that was held up says nothing about how many fill a sample.
TEST(Measurement, NoBatchIsPlannedByALaunchThatWasHeldUp) {
  const auto host = make_host_backend();
  SetClock backend(*host);
  int launches = 0;
  const std::vector<Launch> held_up_once{
      [&](Stream) { backend.now += launches++ == 0 ? 20e-3 : 120e-6; }};
  EXPECT_EQ(try_out(backend, TimingPlan{}, held_up_once).size, 17);  // of 2 ms
}

// A GPU, as far as plans go, whose graphs can be made or not, and whose launches take 300 us each.
class Capturing : public ForwardingBackend {
 public:
  Capturing(Backend& real, bool can) : ForwardingBackend(real), device_(real.device()), can_(can) {
    device_.kind = Device::Kind::gpu;
  }
  const DeviceInfo& device() const override { return device_; }
  std::unique_ptr<Sequence> sequence(std::vector<const Launch*> launches, bool graph) override {
    if (graph && !can_) throw std::runtime_error("operation not permitted");
    ++(graph ? graphs : streams);
    return ForwardingBackend::sequence(std::move(launches), false);
  }

  int graphs = 0, streams = 0;

 private:
  DeviceInfo device_;
  bool can_;
};

TEST(Measurement, APythonKernelBelowAMillisecondIsAGraphWhereItCanBe) {
  auto kernel = sleeper(right_after<[](const Problem&) { return 20; }>);
  const auto host = make_host_backend();
  Options options;
  options.timing.warmup_seconds = options.timing.sampling_seconds = 0.01;
  for (const bool python : {false, true})
    for (const bool can : {false, true}) {
      kernel.python = python ? "kernel.py" : "";
      Capturing backend(*host, can);
      ProblemCache cache(backend, Fill::uniform, 1);
      const Case which{&kernel, {4, 4, 4, Precision::f32}};
      Measurement measurement(backend, nullptr, cache, options, which);
      measurement.prepare(1e9);
      const int tries = backend.streams;
      try {
        measurement.time(options.timing, 1e9);
      } catch (const NotChecked&) {  // on a busy host launches sleep unequally
      } catch (const Suspect&) {
      }
      EXPECT_EQ(backend.graphs > 0, python && can);
      EXPECT_GT(backend.streams, tries);
    }
}

TEST(Measurement, RefusesAWrongKernelBeforeTimingIt) {
  const auto backend = make_host_backend();
  ProblemCache cache(*backend, Fill::uniform, 1);
  const RegisteredKernel kernel =
      sleeper([](const Problem&, const Device&, const Operands&) -> Launch {
        return [](Stream) {};  // writes nothing
      });
  const Options options;
  Measurement measurement(*backend, nullptr, cache, options, {&kernel, {4, 4, 4, Precision::f32}});
  EXPECT_THROW(measurement.prepare(1e9), WrongResult);
}

// Two kernels that are interleaved: each has values and a C of its own, and its own faults.
TEST(Measurement, AKernelThatStopsWritingFailsAndItsBaselineDoesNot) {
  const auto backend = make_host_backend();
  ProblemCache cache(*backend, Fill::uniform, 1);
  Options options;
  options.timing.warmup_seconds = 0.01;
  options.timing.samples = 3;
  const RegisteredKernel writer = sleeper(right);
  static bool writes;
  writes = true;
  const RegisteredKernel stops =
      sleeper([](const Problem& p, const Device& d, const Operands& o) -> Launch {
        return [launch = right(p, d, o)](Stream s) {
          if (writes) launch(s);
        };
      });
  const Problem p{16, 16, 16, Precision::f32};
  Measurement one(*backend, nullptr, cache, options, {&stops, p});
  Measurement other(*backend, nullptr, cache, options, {&writer, p});
  one.prepare(1e9);
  other.prepare(1e9);
  Timing theirs;
  EXPECT_EQ(one.time(options.timing, 1e9, &other, &theirs).samples_seconds.size(), 3U);
  EXPECT_EQ(theirs.samples_seconds.size(), 3U);
  writes = false;
  EXPECT_THROW(one.time(options.timing, 1e9, &other, &theirs), WrongResult);
  EXPECT_THROW(other.time(options.timing, 1e9, &one, &theirs), BaselineFailed);
  EXPECT_TRUE(other.verify().passed());
  EXPECT_THROW(one.verify(), WrongResult);
}

// A host whose marks are processor time, which other processes take nothing of.
class ProcessorTime : public ForwardingBackend {
 public:
  ProcessorTime() : ProcessorTime(make_host_backend()) {}
  std::unique_ptr<Mark> mark() override { return std::make_unique<Moment>(); }
  Elapsed between(const Mark& from, const Mark& to) override {
    const auto clocks = [](const Mark& mark) { return static_cast<const Moment&>(mark).clocks; };
    return {static_cast<double>(clocks(to) - clocks(from)) / CLOCKS_PER_SEC, {}};
  }

 private:
  explicit ProcessorTime(std::unique_ptr<Backend> host)
      : ForwardingBackend(*host), host_(std::move(host)) {}
  struct Moment : Mark {
    void set(Clock, double) override { clocks = std::clock(); }
    std::clock_t clocks = 0;
  };
  std::unique_ptr<Backend> host_;
};

// A GPU at its power limit, whose counter changes every 20 ms, and that draws what the kernel says
// that ran last.
std::atomic<double> drawn_watts;
class CappedGpu : public Gpu {
 public:
  GpuFacts facts() override { return {.power_limit_w = 700, .sm_hz_max = 1980e6}; }
  GpuReading read() override {
    const double now = now_seconds();
    joules_ += drawn_watts * (now - std::exchange(then_, now));
    if (now > changed_ + 0.02) {
      changed_ = now;
      counter_ = joules_;
    }
    return {.when = now,
            .sm_hz = 1400e6,
            .power_w = drawn_watts,
            .temperature_c = 60,
            .joules = counter_,
            .reasons = 0x4};
  }

 private:
  double then_ = now_seconds(), changed_ = 0, joules_ = 0, counter_ = 0;
};

// Takes so many microseconds of processor time at so much power. One that remembers does so on new
// values only.
template <int kMicroseconds, int kWatts, bool kRemembers = false>
Launch draws(const Problem& p, const Device& d, const Operands& o) {
  return [launch = right(p, d, o), a = static_cast<const float*>(o.a),
          seen = 0.0F](Stream stream) mutable {
    drawn_watts = kWatts;
    const std::clock_t until = std::clock() + kMicroseconds * CLOCKS_PER_SEC / 1'000'000;
    launch(stream);
    while (std::clock() < until && !(kRemembers && a[0] == seen)) continue;
    seen = a[0];
  };
}

Options at_limit() {
  Options options;
  options.timing.state = State::limit;
  options.timing.rounds = 1;
  options.timing.warmup_seconds = 0.1;
  options.timing.block_seconds = 0.6;
  options.timing.budget_seconds = 100;  // a busy host checks slowly
  return options;
}

TEST(Measurement, BlocksHaveTheEnergyAndTheRateOfTheirKernel) {
  ProcessorTime backend;
  ProblemCache cache(backend, Fill::uniform, 1);
  GpuMonitor monitor(std::make_unique<CappedGpu>(), 0.005);
  const Options options = at_limit();
  const RegisteredKernel light = sleeper(draws<400, 600>), heavy = sleeper(draws<500, 700>);
  const Problem p{4, 4, 4, Precision::f32};
  Measurement one(backend, &monitor, cache, options, {&light, p});
  Measurement other(backend, &monitor, cache, options, {&heavy, p});
  one.prepare(1e9);
  other.prepare(1e9);
  Timing theirs;
  const Timing timing = one.time(options.timing, 1e9, &other, &theirs);
  ASSERT_EQ(timing.blocks.size(), 2U);
  ASSERT_EQ(theirs.blocks.size(), 2U);
  // Of a launch: longer on a busy host.
  const auto real_seconds = [](const Block& block) {
    return block.seconds / static_cast<double>(block.launches);
  };
  EXPECT_NEAR(timing.warmup.energy.watts.value_or(0), 600, 15);
  EXPECT_NEAR(theirs.warmup.energy.watts.value_or(0), 700, 15);
  for (const Block& block : timing.blocks) {
    EXPECT_GE(block.seconds, 0.6);
    EXPECT_NEAR(block.launch_seconds, 400e-6, 40e-6);
    EXPECT_EQ(block.sm_hz, 1400e6);
    EXPECT_EQ(block.temperature_c, 60);
    EXPECT_NEAR(block.joules().value_or(0), 600 * real_seconds(block), 30 * real_seconds(block));
  }
  EXPECT_EQ(timing.gpu.throttled_share, 1);
  EXPECT_TRUE(one.checks());
  const Versus versus = compare_blocks(timing.blocks, theirs.blocks);
  EXPECT_NEAR(versus.ratio, 500.0 / 400, 0.1);
  ASSERT_TRUE(versus.energy_ratio);
  const auto longer = [&](std::size_t block) {
    return real_seconds(timing.blocks[block]) / real_seconds(theirs.blocks[block]);
  };
  EXPECT_NEAR(versus.energy_ratio->value, 600.0 / 700 * std::sqrt(longer(0) * longer(1)), 0.06);
  EXPECT_THROW(one.time(options.timing, 1), Skipped) << "a warm-up and two blocks take 1.3 s";
}

TEST(Measurement, AKernelThatRemembersIsNoFasterInBlocks) {
  const auto backend = make_host_backend();
  ProblemCache cache(*backend, Fill::uniform, 1);
  const Options options = at_limit();
  const RegisteredKernel remembers = sleeper(draws<40, 700, true>);
  Measurement one(*backend, nullptr, cache, options, {&remembers, {4, 4, 4, Precision::f32}});
  one.prepare(1e9);
  try {
    one.time(options.timing, 1e9);
    FAIL() << "has a time";
  } catch (const Suspect& suspect) {
    EXPECT_NE(std::string(suspect.what()).find("not checked are"), std::string::npos);
  }
}

// The CPU until it stops answering.
class Mortal : public ForwardingBackend {
 public:
  explicit Mortal(int launches) : Mortal(make_host_backend(), launches) {}
  void run(const Launch& launch) override {
    if (left_-- <= 0) throw DeviceLost("the GPU did not finish within 60 s");
    ForwardingBackend::run(launch);
  }

 private:
  Mortal(std::unique_ptr<Backend> host, int launches)
      : ForwardingBackend(*host), host_(std::move(host)), left_(launches) {}

  std::unique_ptr<Backend> host_;
  int left_;
};

TEST(Session, ALostDeviceEndsWhatFollowsAndKeepsWhatIsComplete) {
  Options options;
  options.peaks_from = PeaksFrom::nominal;
  options.peaks.flop_per_second = 1e18;  // no probe is one of the launches
  options.rotate = false;
  options.timing.warmup_seconds = 0.01;
  options.timing.samples = 3;
  const RegisteredKernel kernel = sleeper(right);
  RegisteredKernel library = kernel;  // is compared with nothing
  library.family = "library";
  const Case first{&library, {8, 8, 8, Precision::f32}},
      second{&library, {9, 9, 9, Precision::f32}};
  Session session(std::make_unique<Mortal>(3), options, {"gemm_bench"});
  Row row{.which = first};
  session.measure(first, row);
  EXPECT_EQ(row.timing.samples_seconds.size(), 3U);
  session.results().add(first.name(), row);

  Row lost{.which = second};
  try {
    session.measure(second, lost);
    FAIL() << "was measured";
  } catch (const DeviceLost& error) {
    session.lose_device(error.what(), second);
  }
  EXPECT_TRUE(session.lost());
  try {
    session.measure(first, row);
    FAIL() << "was measured";
  } catch (const Skipped& skipped) {
    EXPECT_NE(std::string(skipped.what()).find(second.name()), std::string::npos) << skipped.what();
    EXPECT_NE(std::string(skipped.what()).find("did not finish"), std::string::npos);
  }
  EXPECT_FALSE(session.run_to_json()["complete"].get<bool>());
}

// Also while the library is measured on the side: the row is the one that fails.
TEST(Session, ADeviceLostInTheBaselineIsLost) {
  Options options;
  options.peaks_from = PeaksFrom::nominal;
  options.timing.samples = 3;
  const auto cases = make_cases({{8, 8, 8}}, {Precision::f32}, Device::Kind::cpu);
  const auto naive =
      std::ranges::find_if(cases, [](const Case& one) { return one.kernel->name == "CpuNaive"; });
  ASSERT_NE(naive, cases.end());
  Session session(std::make_unique<Mortal>(0), options, {"gemm_bench"});
  Row row{.which = *naive};
  EXPECT_THROW(session.measure(*naive, row), DeviceLost);
}

// On the CPU, short.
Options brief(const std::string& versus) {
  Options options;
  options.peaks_from = PeaksFrom::nominal;
  options.timing.warmup_seconds = 0.01;
  options.timing.samples = 3;
  options.timing.sampling_seconds = options.timing.longest_sampling_seconds = 0.05;
  options.versus = versus;
  return options;
}

// Of a problem this small CpuNaive has made several before CpuBlocked has its threads together.
TEST(Session, RacesAgainstTheFastestOfThoseThatAreNamed) {
  RegisteredKernel ours = sleeper(right);
  ours.runs_on = Device::Kind::cpu;
  for (const char* versus : {"CpuNaive,CpuBlocked", "CpuBlocked,CpuNaive"}) {
    Session session(std::make_unique<ProcessorTime>(), brief(versus), {"gemm_bench"});
    for (const std::int64_t k : {4, 5}) {
      const Case which{&ours, {4, 4, k, Precision::f32}};
      Row row{.which = which};
      session.measure(which, row);
      ASSERT_TRUE(row.versus.has_value());
      EXPECT_EQ(row.versus->kernel, "CpuNaive") << versus;
    }
  }
}

TEST(CudaBackend, FillsAsTheCpuDoesOnTheGpu) {
  SKIP_WITHOUT_GPU();
  const auto host = make_host_backend();
  constexpr std::int64_t kCount = 100003;
  std::vector<float> expected(kCount), found(kCount);
  for (const Fill fill : {Fill::uniform, Fill::normal, Fill::integers, Fill::zeros}) {
    host->fill(expected.data(), ElementType::f32, kCount, fill, 42);
    const Buffer memory = cuda()->allocate(kCount * sizeof(float));
    cuda()->fill(memory.get(), ElementType::f32, kCount, fill, 42);
    cuda()->copy(found.data(), memory.get(), kCount * sizeof(float));
    EXPECT_EQ(expected, found);
  }
}

// A type of one byte, as the formats define it.
struct ByteFormat {
  Precision precision;
  int fraction_bits, bias;  // no fraction: an integer

  double value(std::uint8_t bits) const {
    if (fraction_bits == 0) return static_cast<std::int8_t>(bits);
    const int fraction = bits & ((1 << fraction_bits) - 1);
    const int exponent = (bits & 0x7f) >> fraction_bits;
    const double magnitude = std::ldexp(fraction + (exponent == 0 ? 0 : 1 << fraction_bits),
                                        std::max(exponent, 1) - bias - fraction_bits);
    return bits >= 0x80 ? -magnitude : magnitude;
  }
  // What stands for an element that is filled with `value`: the nearest, of two the even one.
  double nearest(double value) const {
    if (value == 0) return 0;
    const int last = std::max(std::ilogb(value), 1 - bias) - fraction_bits;
    return std::ldexp(std::nearbyint(std::ldexp(value, -last)), last);
  }
};
constexpr ByteFormat kByteFormats[] = {
    {Precision::e4m3, 3, 7}, {Precision::e5m2, 2, 15}, {Precision::s8, 0, 0}};

TEST(CudaBackend, FillsBytesWithWhatIsNearestOnTheGpu) {
  SKIP_WITHOUT_GPU();
  constexpr std::int64_t kCount = 100003;
  std::vector<std::uint8_t> found(kCount);
  const Buffer memory = cuda()->allocate(kCount);
  for (const ByteFormat& format : kByteFormats)
    for (const Fill fill : {Fill::uniform, Fill::normal, Fill::integers, Fill::zeros}) {
      cuda()->fill(memory.get(), traits_of(format.precision).input, kCount, fill, 42);
      cuda()->copy(found.data(), memory.get(), kCount);
      for (std::int64_t i = 0; i < kCount; ++i)
        ASSERT_EQ(format.value(found[i]), format.fraction_bits == 0
                                              ? fill_element<std::int8_t>(fill, 42, i)
                                              : format.nearest(fill_value(fill, 42, i)))
            << traits_of(format.precision).name << " " << name_of(fill) << " " << i;
    }
}

TEST(Fill, OfBytesTakesAllWhoseSignCanChange) {
  std::set<int> found;
  for (std::uint64_t i = 0; i < 10000; ++i)
    found.insert(fill_element<std::int8_t>(Fill::uniform, 1, i));
  EXPECT_EQ(found.size(), 255U);
  EXPECT_EQ(*found.begin(), -127);
  // The largest sum of the longest product that is not refused.
  const std::int64_t longest = traits_of(Precision::s8).longest_sum;
  EXPECT_LT(longest * 128 * 128, std::int64_t{1} << 31);
  EXPECT_GE((longest + 1) * 128 * 128, std::int64_t{1} << 31);
}

TEST(CudaBackend, MultipliesAndJudgesBytesOnTheGpu) {
  SKIP_WITHOUT_GPU();
  for (const ByteFormat& format : kByteFormats) {
    const Problem p{33, 17, 129, format.precision, Layout::nt};
    const PrecisionTraits& traits = traits_of(p.precision);
    ProblemData data(*cuda(), p, Fill::uniform, 1, 1);
    data.poison();
    const Operands& set = data.sets()[0];
    std::vector<std::uint8_t> a(p.m * p.k), b(p.n * p.k);
    cuda()->copy(a.data(), set.a, a.size());
    cuda()->copy(b.data(), set.b, b.size());
    std::vector<std::byte> c;
    for (std::int64_t i = 0; i < p.m * p.n; ++i) {
      double sum = 0;
      for (std::int64_t l = 0; l < p.k; ++l)
        sum +=
            format.value(a[index_in_a(p, i / p.n, l)]) * format.value(b[index_in_b(p, l, i % p.n)]);
      // To the nearest number of BF16, which is the upper half of FP32.
      const auto bits = std::bit_cast<std::uint32_t>(static_cast<float>(sum));
      const std::uint32_t stored = traits.output == ElementType::s32
                                       ? static_cast<std::uint32_t>(std::lround(sum))
                                       : (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
      const auto* bytes = reinterpret_cast<const std::byte*>(&stored);
      c.insert(c.end(), bytes, bytes + traits.output_bytes);
    }
    cuda()->copy(set.c, c.data(), c.size());
    EXPECT_EQ(complaint(p, data.judge(p, 1)).value_or(""), "") << traits.name;
    c.back() ^= std::byte{0x40};  // in the last element's exponent, or near its sign
    cuda()->copy(set.c, c.data(), c.size());
    EXPECT_EQ(data.judge(p, 1).first_wrong, p.m * p.n - 1) << traits.name;
  }
}

TEST(CudaBackend, HasTheCpusReferenceInEveryLayoutAndJudgesAsItDoesOnTheGpu) {
  SKIP_WITHOUT_GPU();
  const auto host = make_host_backend();
  for (const Layout layout : kLayouts) {
    const Problem p{67, 129, 65, Precision::f32, layout};
    std::vector<float> a(p.m * p.k), b(p.k * p.n), c(p.m * p.n);
    std::vector<double> expected(2 * c.size()), found(expected.size());
    host->fill(a.data(), ElementType::f32, p.m * p.k, Fill::uniform, 1);
    host->fill(b.data(), ElementType::f32, p.k * p.n, Fill::uniform, 2);
    host->reference(p, {a.data(), b.data(), nullptr}, expected.data(), expected.data() + c.size());
    const Buffer gpu_a = upload(*cuda(), a.data(), a.size() * 4),
                 gpu_b = upload(*cuda(), b.data(), b.size() * 4);
    const Buffer reference = cuda()->allocate(found.size() * 8);
    auto* gpu_expected = reinterpret_cast<double*>(reference.get());
    cuda()->reference(p, {gpu_a.get(), gpu_b.get(), nullptr}, gpu_expected,
                      gpu_expected + c.size());
    cuda()->copy(found.data(), gpu_expected, found.size() * 8);
    for (std::size_t i = 0; i < found.size(); ++i)
      ASSERT_NEAR(expected[i], found[i], 1e-12) << name_of(layout);

    const auto both_find = [&](std::int64_t wrong, std::int64_t first) {
      const Buffer gpu_c = upload(*cuda(), c.data(), c.size() * 4);
      const double* of_cpu = expected.data();
      for (const Verdict& verdict :
           {host->judge(p, {.c = c.data()}, of_cpu, of_cpu + c.size(), bound_for(p), {}),
            cuda()->judge(p, {.c = gpu_c.get()}, gpu_expected, gpu_expected + c.size(),
                          bound_for(p), {})}) {
        EXPECT_EQ(verdict.wrong, wrong);
        EXPECT_EQ(verdict.first_wrong, first);
      }
    };
    for (std::size_t i = 0; i < c.size(); ++i) c[i] = static_cast<float>(expected[i]);
    both_find(0, -1);
    c[4321] += 1e-2F;
    both_find(1, 4321);
    c[4322] = std::numeric_limits<float>::quiet_NaN();
    c[99] = std::numeric_limits<float>::infinity();
    both_find(3, 99);
  }
}

// The first byte behind C is named before any in front of it.
void expect_guards(Backend& backend) {
  const Problem p{8, 8, 8, Precision::f32};
  ProblemData data(backend, p, Fill::uniform, 1, 2);
  data.poison();
  EXPECT_EQ(data.judge(p, 1).outside_bytes, 0);
  const float zero = 0;
  auto* c = static_cast<float*>(data.sets()[0].c);
  backend.copy(c - 2, &zero, sizeof zero);
  EXPECT_EQ(data.judge(p, 1).outside_bytes, -5);
  backend.copy(c + 64, &zero, sizeof zero);
  EXPECT_EQ(data.judge(p, 1).outside_bytes, 1);
}

TEST(Guards, ShowWhatWasWrittenOutsideOfCOnTheCpu) { expect_guards(*make_host_backend()); }

TEST(Guards, ShowWhatWasWrittenOutsideOfCOnTheGpu) {
  SKIP_WITHOUT_GPU();
  expect_guards(*cuda());
}

// A GPU that hangs: the wait ends, and says so. The kernel ends by itself, after the patience.
TEST(CudaBackend, TimesOutIfTheGpuDoesNotFinishOnTheGpu) {
  SKIP_WITHOUT_GPU();
  std::string reason;
  const auto impatient = make_cuda_backend(0, reason, 0.2);
  const Problem p{8192, 8192, 8192, Precision::f32};
  ProblemData data(*cuda(), p, Fill::zeros, 1, 1);
  const auto cases = make_cases({{p.m, p.n, p.k}}, {p.precision}, Device::Kind::gpu);
  const auto slow = std::ranges::find_if(
      cases, [](const Case& one) { return one.kernel->name == "NaiveUncoalesced"; });
  ASSERT_NE(slow, cases.end());
  const Launch launch = slow->kernel->prepare(p, cuda()->device(), data.sets()[0]);
  EXPECT_THROW(impatient->run(launch), DeviceLost);
  cuda()->run([](Stream) {});
}

// Interleaved with and without the monitor, so that clock and temperature are alike.
TEST(GpuMonitor, CostsNoTimeOnTheGpu) {
  SKIP_WITHOUT_GPU();
  std::string why;
  auto gpu = open_nvml(cuda()->device().pci_bus_id.value_or(""), why);
  if (!gpu) GTEST_SKIP() << why;
  GpuMonitor monitor(std::move(gpu), 0.02);
  for (const std::int64_t size : {512, 2048}) {
    const auto cases = make_cases({{size, size, size}}, {Precision::f32}, Device::Kind::gpu);
    const auto found =
        std::ranges::find_if(cases, [](const Case& one) { return one.kernel->name == "cuBLAS"; });
    ASSERT_NE(found, cases.end());
    ProblemData data(*cuda(), found->problem, Fill::uniform, 1, 2);
    std::vector<Launch> launches;
    for (const Operands& set : data.sets())
      launches.push_back(found->kernel->prepare(found->problem, cuda()->device(), set));
    // Each sample longer than the interval: there is a reading in it.
    Batch batch(*cuda(), launches, size == 512 ? 2000 : 100, size == 512);
    std::vector<double> with, without;
    for (int i = -20; i < 80; ++i) {
      monitor.pause(false);
      const double on = batch.time().seconds;
      monitor.pause(true);
      const double off = batch.time().seconds;
      if (i < 0) continue;  // warms up
      with.push_back(on);
      without.push_back(off);
    }
    const Versus versus = compare_pairs(with, without);
    std::printf("%lld: %.4f %% (95 %%: %.4f to %.4f), a reading takes %.1f us\n",
                static_cast<long long>(size), 100 * (1 / versus.ratio - 1),
                100 * (1 / versus.high - 1), 100 * (1 / versus.low - 1),
                1e6 * monitor.read_seconds().value_or(0));
    EXPECT_NEAR(versus.ratio, 1, 0.002);
  }
}

TEST(Measurement, ShortKernelsGoOutAsAGraphAndAreVerifiedOnTheGpu) {
  SKIP_WITHOUT_GPU();
  ProblemCache cache(*cuda(), Fill::uniform, 1);
  Options options;
  options.timing.warmup_seconds = 0.02;
  options.timing.sampling_seconds = 0.02;
  for (const Case& one : make_cases({{64, 64, 32}}, {}, Device::Kind::gpu)) {
    if (one.kernel->unsupported && one.kernel->unsupported(one.problem, cuda()->device())) continue;
    Measurement measurement(*cuda(), nullptr, cache, options, one);
    measurement.prepare(1e9);
    const Timing timing = measurement.time(options.timing, 1e9);
    EXPECT_GT(timing.quantile_seconds(0), 0) << one.name();
    const bool captured = one.problem.precision != Precision::f64emulated;  // cuBLAS's cannot be
    EXPECT_EQ(measurement.launch(), captured ? "graph" : "stream") << one.name();
    EXPECT_TRUE(measurement.verify().passed()) << one.name();
  }
}

}  // namespace
}  // namespace gemm::bench
