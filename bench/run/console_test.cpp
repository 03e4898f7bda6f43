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

// All that a run with two rows, a failed one and an aggregate prints.
std::string console_of(Console::Width width) {
  Conditions run = on_a_gpu();
  std::erase_if(run.peaks, [](const Peak& peak) {
    return peak.precision && !peak.name.starts_with("TF32") && *peak.precision != Precision::s8;
  });
  for (Peak& peak : run.peaks)
    if (peak.name.starts_with("TF32")) peak.contradiction = "TF32_wgmma reaches 0.25 of the table";
  run.environment = {{{"OMP_NUM_THREADS", "4"}},
                     {{"CUBLAS_EMULATION_STRATEGY", "eager"}},
                     {"libToolsInjection64.so"}};
  run.gpu_processes = 3;
  Results results(run);
  Row ours = timed(kOurs, Precision::s8, 1000);
  ours.versus = Versus{.kernel = "cuBLAS", .ratio = 0.9, .low = 0.8, .high = 1, .samples = 9};
  const Row library = timed(kLibrary, Precision::s8, 1250);
  for (const Row& row : {ours, library}) results.add(row.which.name(), row);
  Console console(results, {ours.which, library.which});
  const Row failed{.which = ours.which, .failed = std::string(99, 'x') + " is wrong"};
  std::string all = console.head(width);
  for (const Row& row : {ours, library, failed})
    all += console.result(row, width ? "" : "[1/9, 0:12 left]", width);
  all += console.aggregate(ours.which, "mean", "1.5 ms", "3 TOP/s", width);
  const std::string summary = console.summary(width);  // with the libraries of other tests
  return all + summary.substr(0, summary.find("\n\n") + 1);
}

TEST(Console, SaysTheEnergyOfBlocksAndWhereTheyWereNotAtTheLimit) {
  Conditions run = on_a_gpu();
  run.options.timing.state = State::limit;
  Row row = timed(kOurs, Precision::s8, 1000);
  row.timing.blocks.assign(2, {.seconds = 2, .launch_seconds = 1e-3, .launches = 2000});
  const auto said = [&] {
    const Results results(run);
    return Console(results, {row.which}).result(row, "", {});
  };
  EXPECT_NE(said().find("energy not measured: no warm-up"), std::string::npos) << said();
  EXPECT_NE(said().find("at the power limit in 0 % of the readings only"), std::string::npos);
  for (Block& block : row.timing.blocks) block.energy.watts = 700;
  row.timing.gpu.reasons = {{"power cap", 1.0}};
  row.versus = Versus{.kernel = "cuBLAS", .ratio = 1, .low = 0.99, .high = 1.01, .samples = 2};
  row.versus->energy_ratio = Estimate{0.97, 0.96, 0.98};
  EXPECT_NE(said().find("0.7 J a launch (95 % interval of 2 blocks: 0.7 to 0.7)"),
            std::string::npos)
      << said();
  EXPECT_NE(said().find("0.9700 times its energy (0.9600 to 0.9800)"), std::string::npos);
  EXPECT_EQ(said().find("power limit"), std::string::npos);
}

TEST(Console, HasWhatThereIsRoomFor) {
  EXPECT_EQ(console_of(60), R"(NVIDIA H200, 132 SMs, 1980 MHz
Peaks: TF32 tensor core 494.7 TFLOP/s (table), TF32 tensor
    core / 3 164.9 TFLOP/s (table), INT8 tensor core 1979
    TOP/s (table), DRAM 4814 GB/s (queried)
Table and probe disagree: TF32_wgmma reaches 0.25 of the
    table; % peak is of the probe
Environment: OMP_NUM_THREADS=4; removed:
    CUBLAS_EMULATION_STRATEGY=eager; injected:
    libToolsInjection64.so; other processes on the GPU: 3
Time is the median of the samples, ±% half of its 95 %
interval. Each result was verified before and after it was
timed.

Benchmark           Type Size      Time          Rate   ±%
----------------------------------------------------------
Async..NameOfItsOwn s8   4096  137.4 us    1000 TOP/s 0.00
    0.9000 times as fast as cuBLAS, interleaved (95 %
      interval of this process: 0.8000 to 1.0000)
cuBLASLt            s8   4096    110 us    1250 TOP/s 0.00
Async..NameOfItsOwn s8   4096 FAILED:
    xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx
    xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx is wrong
Async..fItsOwn_mean s8   4096    1.5 ms       3 TOP/s

Type Size Fastest of ours                   Rate   ±%  Ratio
s8   4096 AsyncCo..ongNameOfItsOwn    1000 TOP/s 0.00  0.800
)");
  const std::string wide = console_of(98), unbounded = console_of(std::nullopt);
  for (const char* line :
       {"Benchmark         Type Size      Time          Rate   ±% % peak % at clock % library SM "
        "MHz    W\n",
        "Async..meOfItsOwn s8   4096  137.4 us    1000 TOP/s 0.00   50.5       52.7      80.0   "
        "1755  651\n",
        "Type Size Fastest of ours                         Rate   ±%  Ratio   ±% to library\n",
        "s8   4096 AsyncCopyWithALongNameOfItsOwn    1000 TOP/s 0.00  0.800 0.00 cuBLASLt\n"})
    EXPECT_NE(wide.find(line), std::string::npos) << wide;
  const std::string row =
      "\nAsyncCopyWithALongNameOfItsOwn/s8/4096x4096x4096  137.4 us    1000 TOP/s 0.00   50.5      "
      " "
      "52.7      80.0   1755  651  [1/9, 0:12 left]\n";
  EXPECT_NE(unbounded.find(row), std::string::npos) << unbounded;
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

TEST(Console, ShortensNamesInTheMiddleAndKeepsMoreOfTheEnd) {
  EXPECT_EQ(shortened("Tiled/tile:16/f32/1024x1024x768", 20), "Tiled/..024x1024x768");
  EXPECT_EQ(shortened("short", 20), "short");
  EXPECT_EQ(shortened("abcdef", 1), "a");
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
