// Answers that no measurement gives are refused, with what is wrong in them.
#include "bench/run/exchange.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>

#include "bench/base/clock.hpp"

namespace gemm::bench {
namespace {

using json = nlohmann::ordered_json;

const RegisteredKernel kKernel{{.name = "my_kernel"}};
const Case kCase{&kKernel, {10, 20, 30, Precision::f32}};
constexpr double kLife = 10;  // seconds

json honest() {
  Row row{.which = kCase};
  row.checks = Checks{.passes = 1, .launches = 1, .checked = 1};
  row.rotation_sets = 3;
  row.batch = 7;
  row.launch = "graph";
  row.launched = {{"mine"}, {{.name = "mine", .registers = 40, .occupancy = 0.5}}};
  row.verdict = Verdict{.max_error = 1e-6, .max_of_bound = 0.5, .bound_at_max = 2e-6};
  row.versus = Versus{
      .kernel = "cuBLAS", .ratio = 0.9, .low = 0.8, .high = 1, .seconds = 1e-3, .samples = 2};
  row.timing.samples_seconds = {1e-3, 2e-3};
  row.timing.samples_sm_hz = {1e9, 2e9};
  row.timing.blocks = {{.seconds = 2.5, .launch_seconds = 1e-3, .launches = 2500}};
  row.timing.warmup = {.seconds = 0.4};
  row.timing.gpu = {.readings = 5,
                    .sm_hz = Range{1, 2, 3},
                    .throttled_share = 0.25,
                    .reasons = {{"power cap", 0.25}}};
  return Results({}).to_json(row);
}

// Why the answer is refused; "" if it is not.
std::string complaint(const json& row, double kernel_seconds = 1, double clock_off = 0,
                      Outcome outcome = Outcome::passed) {
  json answer = json::parse(answer_text("token", row, kernel_seconds, outcome));
  answer["now"] = answer["now"].get<double>() + clock_off;
  const double now = now_seconds();
  const ChildEnd end{.answer = answer.dump(),
                     .seconds = kLife,
                     .answered_after = now - 0.1,
                     .answered_before = now};
  try {
    (void)answer_from(end, "token", kCase);
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return "";
}

TEST(Request, ACaseIsReadBackWithItsBatch) {
  const auto kernel = std::ranges::find(registry(), "CpuNaive", &RegisteredKernel::name);
  for (const Shape& shape :
       {Shape{10, 20, 30}, Shape{10, 20, 30, 3}, Shape{10, 20, 30, 3, Tokens::zipf, 7}}) {
    const Case which{&*kernel, problem_of(shape, Precision::f32)};
    EXPECT_EQ(case_of(json_of(which), Device::Kind::cpu), which);
  }
}

TEST(Request, ACaseIsReadBackWithItsEpilogue) {
  const auto kernel = std::ranges::find(registry(), "CpuNaive", &RegisteredKernel::name);
  for (const Activation activation : kActivations) {
    Case which{&*kernel, {10, 20, 30, Precision::f32}};
    which.problem.activation = activation;
    EXPECT_EQ(case_of(json_of(which), Device::Kind::cpu), which);
  }
}

TEST(Answer, OfAnHonestChildIsItsRow) {
  EXPECT_EQ(complaint(honest()), "");
  EXPECT_EQ(complaint(Results({}).to_json({.which = kCase, .skipped = "odd"}), 1, 0,
                      Outcome::unsupported),
            "");
  json noisy = honest();
  noisy["checks"]["lead_ratio"] = -0.3;
  EXPECT_EQ(complaint(noisy), "");
  Row wrong{.which = kCase, .failed = "c[0,0] = 1"};
  wrong.verdict = Verdict{.wrong = 3, .max_error = 1};
  EXPECT_EQ(complaint(Results({}).to_json(wrong), 1, 0, Outcome::wrong), "");
}

TEST(Answer, OfTypesAndRangesThatNoRowHasIsNone) {
  const struct {
    const char *at, *value;
  } kForged[] = {
      {"/samples_seconds", "[-1]"},
      {"/samples_seconds", "[0, 0]"},
      {"/samples_seconds", "[]"},
      {"/samples_seconds", "[1e-3, null]"},
      {"/samples_seconds", "[\"1e-3\", 1]"},
      {"/samples_seconds", "{}"},
      {"/samples_seconds", "[1e-3, 1e300]"},
      {"/samples_sm_hz", "[1e9]"},
      {"/samples_throttled", "[true, false, true]"},
      {"/samples_throttled", "[1, 0]"},
      {"/batch", "0"},
      {"/batch", "-7"},
      {"/batch", "1.5"},
      {"/batch", "true"},
      {"/rotation_sets", "1e300"},
      {"/rotation_sets", "null"},
      {"/clocks/readings", "1180591620717411303424"},  // 2^70
      {"/clocks/readings", "-1"},
      {"/clocks/throttled_share", "-1e300"},
      {"/clocks/throttled_share", "1.5"},
      {"/clocks/reasons/power cap", "7"},
      {"/clocks/sm_hz/min", "4"},
      {"/clocks/sm_hz", "7"},
      {"/blocks/0/launches", "0"},
      {"/blocks/0/seconds", "null"},
      {"/blocks/0/energy/watts", "-700"},
      {"/versus/ratio", "0"},
      {"/versus/low", "null"},
      {"/versus/seconds", "-1"},
      {"/versus/samples", "-3"},
      {"/warmup/seconds", "-1"},
      {"/warmup/settled", "2"},
      {"/verification", "null"},
      {"/verification/wrong", "1"},
      {"/verification/wrong", "0.5"},
      {"/verification/max_error", "-1"},
      {"/verification/inputs_changed", "true"},
      {"/device_code/0/registers", "-1"},
      {"/device_code/0/occupancy", "2"},
      {"/device_code/0/fingerprint", "\"no hash\""},
      {"/device_kernels", "[7]"},
      {"/skipped", "7"},
      {"/suspect", "true"},
      {"/memory_kept_bytes", "-1"},
  };
  for (const auto& [at, value] : kForged) {
    json row = honest();
    row[json::json_pointer(at)] = json::parse(value);
    EXPECT_TRUE(complaint(row).starts_with("its answer is not a row: ")) << at << " = " << value;
  }
  for (const char* key : {"samples_seconds", "verification", "clocks", "batch"}) {
    json row = honest();
    row.erase(key);
    EXPECT_TRUE(complaint(row).starts_with("its answer is not a row: ")) << key;
  }
  EXPECT_TRUE(complaint(json::array()).starts_with("its answer is not a row: "));
  json both = Results({}).to_json({.which = kCase, .skipped = "odd"});
  both["failed"] = "odd, too";
  EXPECT_TRUE(complaint(both).starts_with("its answer is not a row: "));
}

TEST(Answer, OfMoreTimeThanTheChildLivedIsNone) {
  json row = honest();
  row["batch"] = 10000;  // of 1 and 2 ms: 30 s
  EXPECT_NE(complaint(row).find("30 s of kernels in a process that lived 10 s"), std::string::npos);
  for (const double kernel_seconds : {11.0, -1.0})
    EXPECT_NE(complaint(honest(), kernel_seconds), "") << kernel_seconds;
}

TEST(Answer, OfAClockThatIsNotOursIsNone) {
  EXPECT_EQ(complaint(honest(), 1, -0.3), "");
  for (const double off : {-2.0, 2.0})
    EXPECT_NE(complaint(honest(), 1, off).find("its clock is"), std::string::npos) << off;
}

TEST(Answer, NeedsTheToken) {
  const ChildEnd end{.answer = answer_text("another", honest(), 1)};
  EXPECT_THROW(answer_from(end, "token", kCase), std::runtime_error);
  EXPECT_THROW(answer_from({.answer = "{}"}, "token", kCase), std::runtime_error);
  EXPECT_THROW(answer_from({}, "token", kCase), std::runtime_error);
}

}  // namespace
}  // namespace gemm::bench
