#include "bench/record/record.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

namespace gemm::bench {
namespace {

RegisteredKernel kernel(std::string_view name, const char* family) {
  RegisteredKernel kernel;
  kernel.name = name;
  kernel.family = family;
  kernel.parameters = {{"tile", "16"}};
  return kernel;
}

const RegisteredKernel kTiled = kernel("Tiled", "simt"), kLibrary = kernel("Library", "library");
const Problem kProblem{10, 20, 30, Precision::f32};

Row timed(const RegisteredKernel& which, double seconds) {
  Row row{.which = {&which, kProblem}};
  row.checks = Checks{.passes = 1, .launches = 1, .checked = 1};
  row.timing.samples_seconds = {seconds, seconds, seconds};
  return row;
}

TEST(Results, PercentOfLibraryIsOfTheFastestLibraryRow) {
  Results results({});
  results.add("Tiled", timed(kTiled, 4e-3));
  EXPECT_EQ(results.of_library(timed(kTiled, 4e-3)), std::nullopt);
  results.set_library_rate(kProblem, {"stand-in", flop(kProblem) / 1e-3});
  EXPECT_DOUBLE_EQ(*results.of_library(timed(kTiled, 4e-3)), 0.25);
  results.add("slow", timed(kLibrary, 8e-3));
  results.add("fast", timed(kLibrary, 2e-3));
  EXPECT_DOUBLE_EQ(*results.of_library(timed(kTiled, 4e-3)), 0.5);
  EXPECT_EQ(results.to_json(timed(kTiled, 4e-3))["library"], "Library/tile:16");
}

TEST(Results, ALibraryOfAnotherLayoutIsNoYardstick) {
  Results results({});
  results.add("library", timed(kLibrary, 2e-3));
  Row row = timed(kTiled, 4e-3);
  row.which.problem.layout = Layout::tn;
  EXPECT_EQ(results.to_json(row)["layout"], "tn");
  EXPECT_EQ(results.of_library(row), std::nullopt);
}

TEST(Results, ReportedRowsAreTheLastOnes) {
  Results results({});
  for (const double seconds : {1.0, 2.0, 3.0, 4.0}) results.add("Tiled", timed(kTiled, seconds));
  EXPECT_EQ(results.reported("Tiled", 0, 2).seconds(), 3);
  EXPECT_EQ(results.reported("Tiled", 1, 2).seconds(), 4);
}

TEST(Results, ARowIsReadBackAsItWasWritten) {
  const Results results({});
  Row row = timed(kTiled, 2e-3);
  row.rotation_sets = 3;
  row.batch = 7;
  row.host = OthersLoad{.cpus = 8, .busy_share = 0.25, .steal_share = 0};
  row.launch = "graph";
  row.launched = {{"tiled"}, {{.name = "tiled", .registers = 40, .threads = 256, .blocks = 9}}};
  row.verdict = Verdict{.max_error = 1e-6, .max_of_bound = 0.5, .bound_at_max = 2e-6};
  row.versus = Versus{.kernel = "cuBLAS",
                      .library = true,
                      .ratio = 0.9,
                      .low = 0.8,
                      .high = 1,
                      .seconds = 1e-3,
                      .samples = 3};
  row.timing.samples_sm_hz = {1e9, 2e9, 3e9};
  row.timing.samples_throttled = {false, true, false};
  row.timing.warmup = {.seconds = 0.4, .settled = true, .watched = "SM clock"};
  row.timing.converged = true;
  row.timing.gpu = {.readings = 5,
                    .sm_hz = Range{1, 2, 3},
                    .power_w = Range{4, 5, 6},
                    .throttled_share = 0.25,
                    .reasons = {{"power cap", 0.25}, {"thermal", 0.1}}};
  const auto same = [&](const Row& one) {
    const auto written = results.to_json(one);
    EXPECT_EQ(results.to_json(row_from(written, one.which)), written);
  };
  same(row);
  const Block block{.seconds = 2.5,
                    .launch_seconds = 2e-3,
                    .launches = 1240,
                    .energy = {.watts = 700, .seconds = 2.4, .changes = 24, .why_not = ""},
                    .temperature_c = 60};
  row.timing.blocks = row.versus->blocks = {block, block};
  row.versus->energy_ratio = Estimate{0.98, 0.97, 0.99};
  same(row);
  EXPECT_DOUBLE_EQ(results.to_json(row)["joules_per_launch"]["value"], 700 * 2.5 / 1240);
  row.timing.blocks.clear();
  EXPECT_FALSE(results.to_json(row).contains("joules_per_launch"));
  row.versus.reset();
  same(row);
  same({.which = {&kTiled, kProblem}, .skipped = "why"});
  EXPECT_FALSE(results.to_json(row).contains("batch_count"));
  EXPECT_FALSE(results.to_json(row).contains("epilogue"));
  row.which.problem.activation = Activation::bias_gelu;
  same(row);
  EXPECT_EQ(results.to_json(row)["epilogue"], "bias-gelu");
  row.which.problem.batch = 3;
  same(row);
  EXPECT_EQ(results.to_json(row)["batch_count"], 3);
  EXPECT_FALSE(results.to_json(row).contains("tokens"));
  row.which.problem.tokens = Tokens::zipf;
  row.which.problem.tokens_seed = 7;
  const nlohmann::json groups = results.to_json(row);
  EXPECT_EQ(groups["tokens"], "zipf:7");
  const auto rows = groups["group_rows"].get<std::vector<std::int64_t>>();
  ASSERT_EQ(rows.size(), 3);
  EXPECT_EQ(rows[0] + rows[1] + rows[2], 3 * row.which.problem.m);
  EXPECT_EQ(results.to_json(row)["flop"], 3 * flop(kProblem));
  Row failed{.which = {&kTiled, kProblem}, .failed = "c[0,0] = nan"};
  failed.verdict = Verdict{.wrong = 1, .max_error = std::nan("")};
  same(failed);
  failed.verdict = Verdict{.outside_bytes = -4};
  same(failed);
}

TEST(Results, LibrariesOfAChildAreAddedToThoseOfThisProcess) {
  const auto child = [](const char* version) {
    return nlohmann::ordered_json{
        {{"name", "Blas"}, {"version", version}, {"file", "libblas.so.1"}, {"detail", nullptr}}};
  };
  const std::size_t before = libraries_json().size();
  for (const char* version : {"1.2", "1.3", "1.2"}) note_libraries(child(version));
  const auto named = Results({}).run_to_json()["libraries"];
  ASSERT_EQ(named.size(), before + 2);
  EXPECT_EQ(named[before], child("1.2")[0]);
  EXPECT_EQ(named[before + 1], child("1.3")[0]);
}

TEST(Results, NeitherNaNNorInfinityReachesTheJson) {
  Row row{.which = {&kTiled, kProblem}, .failed = "c[0,0] = nan"};
  row.verdict = Verdict{.wrong = 1,
                        .max_error = std::nan(""),
                        .max_of_bound = std::numeric_limits<double>::infinity()};
  const auto json = Results({}).to_json(row);
  for (const char* key : {"max_error", "of_bound"})
    EXPECT_TRUE(json["verification"][key].is_null()) << key;
  EXPECT_FALSE(json["verification"]["passed"].get<bool>());
  EXPECT_FALSE(json.contains("seconds"));
}

TEST(Results, TheCodeOfALaunchIsThatOfAllItsKernels) {
  Row row = timed(kTiled, 1e-3);
  EXPECT_TRUE(Results({}).to_json(row)["fingerprint"].is_null());
  row.launched = {{"memset", "ours"},
                  {{.name = "ours", .fingerprint = "0123456789abcdef", .shared_bytes = 0}}};
  auto json = Results({}).to_json(row);
  EXPECT_EQ(json["device_kernels"].dump(), R"(["memset","ours"])");
  EXPECT_EQ(json["fingerprint"], "0123456789abcdef");
  EXPECT_EQ(json["device_code"][0]["shared_bytes"], 0);
  EXPECT_TRUE(json["device_code"][0]["local_bytes"].is_null());
  row.launched.code.push_back({.name = "library"});
  json = Results({}).to_json(row);
  EXPECT_TRUE(json["fingerprint"].is_null()) << "half of it would mislead";
  EXPECT_EQ(json["device_code"][0]["fingerprint"], "0123456789abcdef");
}

TEST(Results, AFailedRowCountsASkippedOneDoesNot) {
  Results results({});
  results.add("skipped", {.which = {&kTiled, kProblem}, .skipped = "too large"});
  EXPECT_FALSE(results.any_failed());
  results.add("failed", {.which = {&kTiled, kProblem}, .failed = "wrong"});
  EXPECT_TRUE(results.any_failed());
}

TEST(Device, NamesBecomeFolders) {
  EXPECT_EQ(slug("NVIDIA H200"), "nvidia-h200");
  EXPECT_EQ(slug("AMD EPYC 9654 (96-Core) @ 2.4GHz"), "amd-epyc-9654-96-core-2-4ghz");
  EXPECT_EQ(slug("../.."), "device");
}

// An H200 as it reports itself has the rates for which the models' costs were measured; what is not
// reported stays theirs.
TEST(Device, TakesTheRatesOfTimeModelsFromTheQueriedClocks) {
  DeviceInfo device;
  device.sm_count = 132;
  set_queried_rates(device);
  EXPECT_EQ(device.dram_bytes_per_second, Device{}.dram_bytes_per_second);
  device.clock_hz = 1.98e9;
  device.memory_clock_hz = 3.201e9;
  device.bus_width_bits = 6016;
  set_queried_rates(device);
  EXPECT_NEAR(device.dram_bytes_per_second / Device{}.dram_bytes_per_second, 1, 0.002);
  EXPECT_NEAR(device.l2_bytes_per_second / Device{}.l2_bytes_per_second, 1, 0.002);
  device.clock_hz = 0.99e9;
  device.memory_clock_hz = 2.619e9;  // H100: 3.35 TB/s
  device.bus_width_bits = 5120;
  set_queried_rates(device);
  EXPECT_NEAR(device.dram_bytes_per_second, 0.961 * 3.352e12, 1e9);
}

TEST(Device, SaysWhyThereIsNoGpu) {
  EXPECT_EQ(cuda_problem("x", 0, 13000), "no NVIDIA driver is installed");
  const std::string old = cuda_problem("x", 12040, 13000);
  EXPECT_NE(old.find("CUDA 12.4"), std::string::npos) << old;
  EXPECT_NE(old.find("CUDA 13.0"), std::string::npos) << old;
  EXPECT_NE(cuda_problem("no device", 13000, 13000).find("no device"), std::string::npos);
}

}  // namespace
}  // namespace gemm::bench
