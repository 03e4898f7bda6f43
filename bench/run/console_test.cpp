// The console's columns at every width, on a GPU that the test makes up.
#include "bench/run/console.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <optional>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include "bench/base/terminal.hpp"
#include "bench/base/text.hpp"
#include "kernels/libraries.hpp"

namespace gemm::bench {
namespace {

RegisteredKernel kernel(const char* name, const char* family) {
  RegisteredKernel one;
  one.name = name;
  one.family = family;
  return one;
}
const RegisteredKernel kOurs = kernel("AsyncCopyWithALongNameOfItsOwn", "simt");
const RegisteredKernel kLibrary = kernel("cuBLASLt", "library");

Conditions on_a_gpu() {
  Conditions run;
  run.device.kind = Device::Kind::gpu;
  run.device.name = "NVIDIA H200";
  run.device.sm_count = 132;
  run.device.compute_capability = 90;
  run.device.clock_hz = 1980e6;
  run.device.memory_clock_hz = 3201e6;
  run.device.bus_width_bits = 6016;
  run.peaks = peaks_of(run.device);
  run.gpu = GpuFacts{};
  return run;
}

Row timed(const RegisteredKernel& kernel, Precision precision, double tera) {
  Row row{.which = {&kernel, {4096, 4096, 4096, precision}}};
  row.checks = Checks{.passes = 1, .launches = 1, .checked = 1};
  row.rotation_sets = 2;
  row.timing.samples_seconds.assign(100, flop(row.which.problem) / (tera * 1e12));
  row.timing.samples_sm_hz.assign(100, 1755e6);
  row.timing.converged = true;
  row.timing.warmup.energy.watts = 651;
  return row;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

class ConsoleAtWidths : public testing::TestWithParam<std::size_t> {};

TEST_P(ConsoleAtWidths, NoLineIsLongerAndNameAndRateAreThere) {
  Results results(on_a_gpu());
  const Row ours = timed(kOurs, Precision::s8, 1000),
            library = timed(kLibrary, Precision::s8, 1250);
  results.add(ours.which.name(), ours);
  results.add(library.which.name(), library);
  Console console(results, {ours.which, library.which});
  Row failed{.which = ours.which};
  failed.failed = std::string(300, 'x') + " is wrong, and so is much else that is told here";
  std::string all = console.head(GetParam());
  const std::string result = console.result(ours, "", GetParam());
  all += result + console.result(failed, "", GetParam());
  all += console.aggregate(ours.which, "mean", "1.5 ms", "3 TOP/s", GetParam());
  all += console.summary(GetParam());
  for (const std::string& line : lines_of(all)) EXPECT_LE(columns_of(line), GetParam()) << line;
  const std::string first = lines_of(result)[0];
  EXPECT_TRUE(first.starts_with("Async")) << first;
  EXPECT_NE(first.find(" s8   4096 "), std::string::npos) << first;
  EXPECT_EQ(first.find("4096x"), std::string::npos) << first;
  EXPECT_NE(first.find("1000 TOP/s 0.00"), std::string::npos) << "interval: " << first;
  EXPECT_NE(first.find("1000 TOP/s"), std::string::npos) << first;
  EXPECT_EQ(first.find("651") != std::string::npos, GetParam() >= 120) << first;
  EXPECT_EQ(first.find(" 80.0") != std::string::npos, GetParam() >= 80) << "% library: " << first;
  const std::string last = console.summary(GetParam());
  EXPECT_NE(last.find("\ns8   4096 Async"), std::string::npos) << last;
  EXPECT_NE(last.find("  0.800"), std::string::npos) << last;
}

INSTANTIATE_TEST_SUITE_P(Terminals, ConsoleAtWidths, testing::Values(60, 80, 120, 200));

TEST(Console, WithoutAWidthHasEachResultInOneLineWithItsWholeName) {
  Results results(on_a_gpu());
  const Row row = timed(kOurs, Precision::f32, 40);
  results.add(row.which.name(), row);
  Console console(results, {});
  const std::string first = lines_of(console.result(row, "[1/9, 0:12 left]", std::nullopt))[0];
  EXPECT_TRUE(first.starts_with(row.which.name() + " ")) << first;
  for (const char* part : {" 40 TFLOP/s", " 1755 ", " 651  [1/9, 0:12 left]"})
    EXPECT_NE(first.find(part), std::string::npos) << first;
}

TEST(Console, NamesTheLibrariesAtTheEnd) {
  note_loaded({"Named", "1.2", "libnamed.so.1", "Zen, 2 threads"});
  const Results results(on_a_gpu());
  const std::string last = Console(results, {}).summary(std::nullopt);
  EXPECT_NE(last.find("Named 1.2 (Zen, 2 threads)"), std::string::npos) << last;
}

TEST(Console, SeparatesALargeRatioFromItsNeighbour) {
  Results results(on_a_gpu());
  for (const Row& row : {timed(kOurs, Precision::s8, 1000), timed(kLibrary, Precision::s8, 5)})
    results.add(row.which.name(), row);
  const std::string last = Console(results, {}).summary(std::nullopt);
  EXPECT_TRUE(std::regex_search(last, std::regex(" 200 +0.00 cuBLASLt"))) << last;
}

Row doubtful(Row row) {
  row.timing.converged = false;
  return row;
}

TEST(Console, MarksAndExplainsEachKindOfDoubtOnce) {
  Results results(on_a_gpu());
  Console console(results, {});
  const Row row = timed(kOurs, Precision::f32, 40);
  EXPECT_EQ(console.result(row, "", std::nullopt).find('*'), std::string::npos)
      << "few settings of the run are met, and the figure is sure";
  const auto first = lines_of(console.result(doubtful(row), "", std::nullopt));
  ASSERT_EQ(first.size(), 2U);
  EXPECT_TRUE(first[0].ends_with("*")) << first[0];
  EXPECT_EQ(first[1].find("    * in doubt: median-uncertain"), 0U) << first[1];
  EXPECT_EQ(lines_of(console.result(doubtful(row), "", std::nullopt)).size(), 1U);
}

TEST(Console, NamesTheWinnerOfEachSizeWithoutRowsInDoubt) {
  Results results(on_a_gpu());
  Row small = timed(kOurs, Precision::f32, 10);
  small.which.problem.m = small.which.problem.n = small.which.problem.k = 64;
  small.timing.samples_seconds.assign(100, 1e-6);
  for (const Row& row : {timed(kOurs, Precision::f32, 40), timed(kLibrary, Precision::f32, 50),
                         small, timed(kOurs, Precision::s8, 1000)})
    results.add(row.which.name(), row);
  const auto all = results.fastest();
  ASSERT_EQ(all.size(), 3U);
  EXPECT_EQ(all[0].row->which.problem.m, 64);
  EXPECT_FALSE(all[0].ratio);
  EXPECT_NEAR(all[1].ratio.value_or(0), 0.8, 1e-9);
  EXPECT_EQ(all[1].library, "cuBLASLt");

  const Row library = timed(kLibrary, Precision::f32, 50), fast = timed(kOurs, Precision::s8, 1000);
  results.add(library.which.name(), doubtful(library));
  results.add(fast.which.name(), doubtful(fast));
  const auto sure = results.fastest();
  ASSERT_EQ(sure.size(), 2U);
  EXPECT_FALSE(sure[1].ratio) << "its library is in doubt";
  const std::string last = Console(results, {}).summary(std::nullopt);
  EXPECT_NE(last.find("in doubt: 2 of 4"), std::string::npos) << last;
}

TEST(Console, HasColoursOnlyWhereTheyAreWanted) {
  Results results(on_a_gpu());
  const Row ours = timed(kOurs, Precision::f32, 50), library = timed(kLibrary, Precision::f32, 40);
  for (const Row& row : {ours, library}) results.add(row.which.name(), row);
  for (const bool colours : {false, true}) {
    Console console(results, {}, colours);
    EXPECT_EQ(console.result(ours, "", 80).find('\033'), std::string::npos);
    EXPECT_EQ(console.result(doubtful(ours), "", 80).starts_with("\033[33m"), colours);
    EXPECT_EQ(console.summary(80).find("\033[1mf32 ") != std::string::npos, colours);
  }
}

TEST(Console, BeginsWithABusyHost) {
  const Results results(on_a_gpu());
  const OthersLoad busy{.cpus = 2, .busy_share = 0.5}, quiet{.cpus = 2, .busy_share = 0.01};
  Console console(results, {});
  EXPECT_TRUE(console.head(80, busy).starts_with("Busy host: other programs use 1 of 2 CPUs"));
  EXPECT_TRUE(console.head(80, quiet).starts_with("NVIDIA H200"));
}

TEST(Console, ExplainsOnceWhyARowIsAboveThePeak) {
  Conditions run = on_a_gpu();
  run.device.name = "NVIDIA GeForce RTX 5090";
  run.device.sm_count = 170;
  run.device.compute_capability = 120;
  run.device.clock_hz = 1700e6;
  run.device.memory_clock_hz = 14001e6;
  run.peaks = peaks_of(run.device);
  const Results results(run);
  Console console(results, {});
  const auto text = [&](Precision precision, double tera) {
    return console.result(timed(kOurs, precision, tera), "", std::nullopt);
  };
  const auto peak = [&](Precision precision) {
    return *compute_peak(run.peaks, precision)->per_second * 1e-12;
  };
  EXPECT_EQ(text(Precision::f32, 0.99 * peak(Precision::f32)).find("above 100"), std::string::npos);
  const std::string first = text(Precision::f32, 1.02 * peak(Precision::f32));
  EXPECT_NE(first.find("ran at 1755 MHz"), std::string::npos) << first;
  EXPECT_NE(first.find("1700"), std::string::npos) << first;
  EXPECT_EQ(text(Precision::f32, 1.02 * peak(Precision::f32)).find("above 100"), std::string::npos);
  const std::string scaled =
      Console(results, {})
          .result(timed(kOurs, Precision::e4m3, 1.9 * peak(Precision::e4m3)), "", std::nullopt);
  EXPECT_NE(scaled.find("block-scaled"), std::string::npos) << scaled;
}

TEST(Console, BeginsWithWhereTableAndProbeDisagree) {
  Conditions run = on_a_gpu();
  for (Peak& peak : run.peaks)
    if (peak.precision == Precision::tf32 || peak.precision == Precision::tf32x3)
      peak.contradiction = "TF32_wgmma reaches 0.25 of the table";
  const Results results(run);
  const std::string head = Console(results, {}).head(std::nullopt);
  const auto at = head.find("TF32_wgmma reaches 0.25");
  ASSERT_NE(at, std::string::npos) << head;
  EXPECT_EQ(head.find("TF32_wgmma", at + 1), std::string::npos) << "once for both precisions";
}

TEST(Console, ShortensNamesInTheMiddleAndKeepsMoreOfTheEnd) {
  EXPECT_EQ(shortened("Tiled/tile:16/f32/1024x1024x768", 20), "Tiled/..024x1024x768");
  EXPECT_EQ(shortened("short", 20), "short");
  EXPECT_EQ(shortened("abcdef", 1), "a");
}

TEST(Console, TellsWhatIsUnusualAroundTheRun) {
  Conditions run = on_a_gpu();
  run.gpu_processes = 0;
  const auto head = [&] { return Console(Results(run), {}).head(std::nullopt); };
  EXPECT_EQ(head().find("Environment:"), std::string::npos) << head();
  run.environment = {{{"OMP_NUM_THREADS", "4"}},
                     {{"CUBLAS_EMULATION_STRATEGY", "eager"}},
                     {"libToolsInjection64.so"}};
  run.gpu_processes = 3;
  for (const char* part : {"OMP_NUM_THREADS=4", "removed: CUBLAS_EMULATION_STRATEGY=eager",
                           "libToolsInjection64.so", "processes on the GPU: 3"})
    EXPECT_NE(head().find(part), std::string::npos) << head();
}

TEST(Console, OfACpuHasNoColumnsThatNothingCouldFill) {
  Conditions run;
  run.device.kind = Device::Kind::cpu;
  run.peaks = peaks_of(run.device);
  const Results results(run);
  const std::string head = Console(results, {}).head(std::nullopt);
  for (const char* column : {"SM MHz", "% at clock", " W", "% peak"})
    EXPECT_EQ(head.find(column), std::string::npos) << head;
  EXPECT_NE(head.find("% library"), std::string::npos) << head;
}

TEST(StatusLine, FitsAndHasTheCaseItsPhaseAndABar) {
  const Case which{&kOurs, {4096, 4096, 4096, Precision::f32}};
  Progress progress({which}, 3);
  progress.begin(which, 0);
  progress.end(1000);
  show_phase("warm-up");
  for (const std::size_t width : {10U, 30U, 60U, 200U}) {
    const std::string line = status_line(progress, which, nullptr, width);
    EXPECT_LE(line.size(), width);
    EXPECT_EQ(line.find("f32 4096") != std::string::npos, width >= 60) << line;
  }
  EXPECT_TRUE(
      status_line(progress, which, nullptr, 60).starts_with("1/3  33:20 left  warm-up  As"));
  EXPECT_TRUE(status_line(progress, which, nullptr, 120)
                  .starts_with("[#######-------------] 1/3  33:20 left  warm-up  Async"));
  show_phase("");
}

}  // namespace
}  // namespace gemm::bench
