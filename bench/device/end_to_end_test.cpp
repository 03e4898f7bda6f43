// Cases with a transfer: their names and shares, the pipeline that they run (over a bus
// that copies from memory to memory), and (label GPU) the real one: what the program receives is
// right.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <functional>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <stdexcept>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "bench/device/backend.hpp"
#include "bench/device/test_backend.hpp"
#include "bench/run/session.hpp"

namespace gemm::bench {
namespace {

TEST(EndToEnd, ComesBeforeTheNameOfTheKernel) {
  RegisteredKernel tiled;
  tiled.name = "Tiled";
  tiled.parameters = {{"tile", "16"}};
  EXPECT_EQ((Case{&tiled, {5, 7, 23, Precision::f32}, Transfer::pinned}.name()),
            "EndToEnd/pinned/Tiled/tile:16/f32/5x7x23");
}

TEST(EndToEnd, IsEachCaseWithEachTransfer) {
  const std::vector<Case> cases = make_cases({{8, 8, 8}, {16, 8, 4}}, {}, Device::Kind::cpu);
  EXPECT_TRUE(
      std::ranges::none_of(cases, [](const Case& one) { return one.transfer.has_value(); }));
  const std::vector<Case> all = end_to_end_cases(cases);
  ASSERT_EQ(all.size(), 2 * cases.size());
  for (std::size_t i = 0; i < all.size(); ++i) {
    EXPECT_EQ(all[i].kernel, cases[i / 2].kernel);
    EXPECT_EQ(all[i].problem, cases[i / 2].problem);
    EXPECT_EQ(all[i].transfer, kTransfers[i % 2]);
  }
}

// What was rearranged when it was prepared is not what is copied to the device.
TEST(EndToEnd, LeavesOutKernelsThatRearrangeTheirOperands) {
  RegisteredKernel transposed;
  transposed.rearranges = true;
  EXPECT_TRUE(end_to_end_cases({{&transposed, {8, 8, 8, Precision::f32}}}).empty());
}

TEST(EndToEnd, IsThereForAFilterThatNamesItOnly) {
  for (const char* filter : {"EndToEnd", "^EndToEnd/pinned/Tiled", "Tiled|EndToEnd"})
    EXPECT_TRUE(asks_for_end_to_end(filter)) << filter;
  for (const char* filter : {"", "all", ".", "Tiled", "pinned", "-EndToEnd"})
    EXPECT_FALSE(asks_for_end_to_end(filter)) << filter;
}

TEST(PartTimes, ShareOfTheCopiesThatTheWholeDoesNotShow) {
  constexpr PartTimes kParts{2, 5, 1};
  EXPECT_DOUBLE_EQ(kParts.hidden_share(8), 0);
  EXPECT_DOUBLE_EQ(kParts.hidden_share(5), 1);
  EXPECT_DOUBLE_EQ(kParts.hidden_share(6.5), 0.5);
  EXPECT_DOUBLE_EQ(kParts.hidden_share(9.5), -0.5);
}

TEST(PartTimes, BytesOfTheTwoWaysAreThoseOfTheMatrices) {
  constexpr Problem kProblem{10, 20, 30, Precision::bf16};
  EXPECT_EQ(to_device_bytes(kProblem), 2 * (10 * 30 + 30 * 20));
  EXPECT_EQ(from_device_bytes(kProblem), 2 * 10 * 20);
}

TEST(Results, ARowThatCopiesStandsBesideNeitherRoofNorLibrary) {
  RegisteredKernel library;
  library.name = "Library";
  library.family = "library";
  const Problem p{10, 20, 30, Precision::f32};
  Results results({.peaks = {{.name = "FP32 FMA", .precision = p.precision, .per_second = 1e12},
                             {.name = "DRAM", .per_second = 1e12}}});
  Row row{.which = {&library, p, Transfer::pinned}};
  row.timing.samples_seconds = {8e-3, 8e-3, 8e-3};
  row.parts = {4e-3, 6e-3, 1e-3};
  results.add("row", row);
  EXPECT_EQ(results.library_rate(p), std::nullopt) << "it is no baseline for others";
  results.set_library_rate(p, {"other", 1e9});
  const auto json = results.to_json(row);
  EXPECT_EQ(json["transfer"], "pinned");
  for (const char* key : {"roof", "of_roof_nominal", "roof_at_clock", "of_roof_at_clock", "library",
                          "of_library", "versus"})
    EXPECT_TRUE(json[key].is_null()) << key;
  EXPECT_EQ(json["end_to_end"]["to_device_bytes"], 4 * (10 * 30 + 30 * 20));
  EXPECT_DOUBLE_EQ(json["end_to_end"]["from_device_bytes_per_second"], 4 * 10 * 20 / 1e-3);
  EXPECT_DOUBLE_EQ(json["end_to_end"]["hidden_share"], 0.6);

  row.which.transfer.reset();
  row.parts.reset();
  const auto without = results.to_json(row);
  EXPECT_TRUE(without["transfer"].is_null());
  EXPECT_TRUE(without["end_to_end"].is_null());
  EXPECT_FALSE(without["roof"].is_null());
}

// Copies within the memory of the host. `copies_back` says whether the next copy of C is made.
class FakeBus : public EndToEnd {
 public:
  FakeBus(Backend& host, const Transferred& what, std::span<const Operands> sets,
          std::function<bool()> copies_back, std::chrono::milliseconds delay)
      : host_(host), layout_(what.problem), copies_back_(std::move(copies_back)), delay_(delay) {
    const auto bytes = static_cast<std::size_t>(layout_.total);
    for (const Operands& given : sets) {
      Set set{given, host.allocate(bytes), host.allocate(bytes), {}};
      std::memcpy(set.there.get() + layout_.a, given.a, static_cast<std::size_t>(layout_.a_bytes));
      std::memcpy(set.there.get() + layout_.b, given.b, static_cast<std::size_t>(layout_.b_bytes));
      std::byte* device = set.device.get();
      set.kernel = what.prepare({device + layout_.a, device + layout_.b, device + layout_.c});
      sets_.push_back(std::move(set));
    }
  }
  std::vector<Launch> launches(Part part) override {
    std::vector<Launch> all;
    for (const Set& set : sets_)
      all.emplace_back([this, &set, part](Stream stream) {
        const auto whole = part == Part::whole;
        const auto copy = [this](const Buffer& to, const Buffer& from, std::int64_t begin,
                                 std::int64_t end) {
          std::this_thread::sleep_for(delay_);
          std::memcpy(to.get() + begin, from.get() + begin, static_cast<std::size_t>(end - begin));
        };
        if (whole || part == Part::to_device)
          copy(set.device, set.there, layout_.a, layout_.b + layout_.b_bytes);
        if (whole || part == Part::kernel) set.kernel(stream);
        if ((whole && copies_back_()) || part == Part::from_device)
          copy(set.there, set.device, layout_.c, layout_.c + layout_.c_bytes);
      });
    return all;
  }
  void poison() override {
    for (const Set& set : sets_) {
      host_.poison(set.device.get(), static_cast<std::size_t>(layout_.total));
      host_.poison(set.there.get() + layout_.c, static_cast<std::size_t>(layout_.c_bytes));
    }
  }
  void deliver(std::int64_t count) override {
    for (std::int64_t i = 0; i < count; ++i) {
      const Set& set = sets_[static_cast<std::size_t>(i)];
      std::memcpy(set.given.c, set.there.get() + layout_.c,
                  static_cast<std::size_t>(layout_.c_bytes));
    }
  }

 private:
  struct Set {
    Operands given;
    Buffer there, device;
    Launch kernel;
  };
  Backend& host_;
  OperandLayout layout_;
  std::function<bool()> copies_back_;
  std::chrono::milliseconds delay_;
  std::vector<Set> sets_;
};

// The CPU with such a bus, which makes so many copies of C.
class HostWithBus : public ForwardingBackend {
 public:
  explicit HostWithBus(int copies = std::numeric_limits<int>::max(),
                       std::chrono::milliseconds delay = {})
      : HostWithBus(make_host_backend(), copies, delay) {}
  std::unique_ptr<EndToEnd> end_to_end(const Transferred& what,
                                       std::span<const Operands> sets) override {
    return std::make_unique<FakeBus>(
        *host_, what, sets, [this] { return copies_-- > 0; }, delay_);
  }

 private:
  HostWithBus(std::unique_ptr<Backend> host, int copies, std::chrono::milliseconds delay)
      : ForwardingBackend(*host), host_(std::move(host)), copies_(copies), delay_(delay) {}

  std::unique_ptr<Backend> host_;
  int copies_;
  std::chrono::milliseconds delay_;  // of a copy
};

Options quick() {
  Options options;
  options.peaks_from = PeaksFrom::nominal;
  options.rotate = false;
  options.timing.warmup_seconds = 0.01;
  options.timing.samples = 3;
  return options;
}

Case cpu_case(std::string_view kernel, const Shape& shape) {
  for (const Case& one : make_cases({shape}, {Precision::f32}, Device::Kind::cpu))
    if (one.kernel->name == kernel) return {one.kernel, one.problem, Transfer::pinned};
  throw std::runtime_error("no such kernel");
}

TEST(EndToEnd, TakesTheRoadOfEveryCaseAndHasItsParts) {
  Session session(std::make_unique<HostWithBus>(), quick(), {"gemm_bench"});
  const Case which = cpu_case("CpuNaive", {33, 65, 17});
  Row row{.which = which};
  session.measure(which, row);
  EXPECT_EQ(row.timing.samples_seconds.size(), 3U);
  EXPECT_TRUE(row.verdict->passed());
  ASSERT_TRUE(row.parts);
  EXPECT_GT(row.parts->to_device_seconds, 0);
  EXPECT_GT(row.parts->kernel_seconds, row.parts->from_device_seconds);
  EXPECT_EQ(session.results().library_rate(which.problem), std::nullopt)
      << "no library is measured for it";
}

TEST(EndToEnd, IsPredictedWithItsCopies) {
  Options options = quick();
  options.timing.budget_seconds = 2;
  HostWithBus slow(std::numeric_limits<int>::max(), std::chrono::milliseconds(300));
  ProblemCache cache(slow, Fill::uniform, 1, false);
  RegisteredKernel idle;
  idle.prepare = [](const Problem&, const Device&, const Operands&) -> Launch {
    return [](Stream) {};
  };
  Case which{&idle, {2048, 2048, 1, Precision::f32}};
  EXPECT_THROW(Measurement(slow, nullptr, cache, options, which).prepare(1e9), WrongResult)
      << "it was tried";
  which.transfer = Transfer::pageable;
  EXPECT_THROW(Measurement(slow, nullptr, cache, options, which).prepare(1e9), Skipped);
}

TEST(EndToEnd, JudgesWhatTheHostReceives) {
  const Options options = quick();
  HostWithBus backend(0);
  ProblemCache cache(backend, Fill::uniform, 1, false);
  const Case which = cpu_case("CpuNaive", {9, 11, 13});
  EXPECT_THROW(Measurement(backend, nullptr, cache, options, which).prepare(1e9), WrongResult);

  HostWithBus stops(1);
  ProblemCache other(stops, Fill::uniform, 1, false);
  Measurement measurement(stops, nullptr, other, options, which);
  measurement.prepare(1e9);
  measurement.time(options.timing, 1e9);
  EXPECT_THROW(measurement.verify(), WrongResult);
}

// --- On the GPU ----------------------------------------------------------------------------------

TEST(EndToEnd, EveryKernelIsRightOnTheHostOnTheGpu) {
  SKIP_WITHOUT_GPU();
  const Options options = quick();
  ProblemCache cache(*cuda(), Fill::uniform, 1, false);
  int right = 0;
  for (const Shape& shape : {Shape{5, 7, 23}, Shape{300, 72, 40}, Shape{2049, 130, 65}})
    for (const Case& one : end_to_end_cases(make_cases({shape}, {}, Device::Kind::gpu))) {
      Measurement measurement(*cuda(), nullptr, cache, options, one);
      try {
        measurement.prepare(1e9);
        ++right;
      } catch (const Skipped&) {
      } catch (const std::exception& error) {
        ADD_FAILURE() << one.name() << ": " << error.what();
      }
    }
  EXPECT_GT(right, 0);
}

Case gpu_case(std::string_view kernel, const Shape& shape, Transfer transfer) {
  for (const Case& one : make_cases({shape}, {Precision::f32}, Device::Kind::gpu))
    if (one.kernel->name == kernel) return {one.kernel, one.problem, transfer};
  throw std::runtime_error("no such kernel");
}

// With as many operand sets as a run rotates through.
TEST(EndToEnd, StaysRightWhenItIsTimedOnTheGpu) {
  SKIP_WITHOUT_GPU();
  const Options options = quick();
  ProblemCache cache(*cuda(), Fill::uniform, 1);
  for (const Transfer transfer : kTransfers)
    for (const char* kernel : {"Naive", "cuBLAS"}) {
      const Case which = gpu_case(kernel, {2100, 1030, 517}, transfer);
      Measurement measurement(*cuda(), nullptr, cache, options, which);
      measurement.prepare(1e9);
      const double whole = measurement.time(options.timing, 1e9).quantile_seconds(0.5);
      EXPECT_TRUE(measurement.verify().passed()) << which.name();
      EXPECT_EQ(measurement.launch(), "stream") << which.name();
      const PartTimes parts = measurement.time_parts();
      for (const double part :
           {parts.to_device_seconds, parts.kernel_seconds, parts.from_device_seconds}) {
        EXPECT_GT(part, 0) << which.name();
        EXPECT_GT(whole, 0.7 * part) << which.name();
      }
    }
}

TEST(EndToEnd, FindsAKernelThatLeavesCUnwrittenOnTheGpu) {
  SKIP_WITHOUT_GPU();
  const Options options = quick();
  ProblemCache cache(*cuda(), Fill::uniform, 1, false);
  RegisteredKernel idle;
  idle.name = "Idle";
  idle.prepare = [](const Problem&, const Device&, const Operands&) -> Launch {
    return [](Stream) {};
  };
  for (const Transfer transfer : kTransfers) {
    const Case which{&idle, {600, 64, 64, Precision::f32}, transfer};
    Measurement measurement(*cuda(), nullptr, cache, options, which);
    EXPECT_THROW(measurement.prepare(1e9), WrongResult) << which.name();
  }
}

TEST(EndToEnd, FindsWhatIsWrittenOutsideOfCOnTheGpu) {
  SKIP_WITHOUT_GPU();
  const Options options = quick();
  ProblemCache cache(*cuda(), Fill::uniform, 1, false);
  const Case right = gpu_case("Naive", {64, 64, 64}, Transfer::pinned);
  RegisteredKernel beyond = *right.kernel;
  beyond.prepare = [naive = right.kernel->prepare](const Problem& p, const Device& device,
                                                   const Operands& o) -> Launch {
    return [launch = naive(p, device, o), o, p](Stream stream) {
      launch(stream);
      const auto* c = static_cast<const std::byte*>(o.c);
      cuda()->copy(static_cast<std::byte*>(o.c) + p.m * p.n * sizeof(float), c, sizeof(float));
    };
  };
  Measurement measurement(*cuda(), nullptr, cache, options,
                          {&beyond, right.problem, right.transfer});
  try {
    measurement.prepare(1e9);
    FAIL() << "passed";
  } catch (const WrongResult& wrong) {
    EXPECT_EQ(wrong.verdict.outside_bytes, 1) << wrong.what();
  }
}

TEST(EndToEnd, GivesItsMemoryBackOnTheGpu) {
  SKIP_WITHOUT_GPU();
  const Options options = quick();
  ProblemCache cache(*cuda(), Fill::uniform, 1);
  const auto measure = [&](Transfer transfer) {
    Measurement measurement(*cuda(), nullptr, cache, options,
                            gpu_case("Naive", {2048, 2048, 2048}, transfer));
    measurement.prepare(1e9);
    return cuda()->free_bytes();
  };
  measure(Transfer::pinned);  // loads the code
  const double before = cuda()->free_bytes();
  for (const Transfer transfer : kTransfers) {
    EXPECT_LT(measure(transfer), before - 3 * 2048 * 2048 * sizeof(float)) << name_of(transfer);
    EXPECT_NEAR(cuda()->free_bytes(), before, 8 << 20) << name_of(transfer);
  }
}

}  // namespace
}  // namespace gemm::bench
