#include "bench/run/exchange.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <numeric>
#include <stdexcept>

#include "bench/base/clock.hpp"
#include "bench/base/text.hpp"

namespace gemm::bench {
namespace {

using json = nlohmann::ordered_json;

// What a loaded machine may put between reading the clock and sending the answer.
constexpr double kClockPatience = 0.5;  // seconds

constexpr std::size_t kMostLibraries = 100;

Answer row_of(const json& answer, const ChildEnd& end, const Case& which) {
  Answer found{row_from(answer.at("row"), which), answer.at("kernel_seconds").get<double>()};
  const auto outcome = std::ranges::find(kOutcomes, answer.at("outcome").get<std::string>());
  if (outcome == kOutcomes.end()) throw std::runtime_error("outcome");
  found.row.outcome = static_cast<Outcome>(outcome - kOutcomes.begin());
  const bool passed = found.row.skipped.empty() && found.row.failed.empty();
  if (passed != (found.row.outcome == Outcome::passed)) throw std::runtime_error("outcome");
  const std::vector<double>& samples = found.row.timing.samples_seconds;
  const double longest = 1.01 * end.seconds;
  const double sampled = std::accumulate(samples.begin(), samples.end(), 0.0) *
                         static_cast<double>(std::max<std::int64_t>(1, found.row.batch));
  for (const double seconds : {found.kernel_seconds, sampled})
    if (!(seconds >= 0 && seconds <= longest))
      throw std::runtime_error(
          formatted("%.3g s of kernels in a process that lived %.3g s", seconds, end.seconds));
  return found;
}

}  // namespace

json json_of(const Case& which) {
  const Problem& p = which.problem;
  return {{"kernel", which.kernel->label()},
          {"precision", traits_of(p.precision).name},
          {"layout", name_of(p.layout)},
          {"m", p.m},
          {"n", p.n},
          {"k", p.k},
          {"batch_count", p.batch},
          {"tokens", p.tokens},
          {"tokens_seed", p.tokens_seed},
          {"epilogue", name_of(p.activation)}};
}

Case case_of(const json& which, Device::Kind kind) {
  const auto text = [&](const char* key) { return which.at(key).get<std::string>(); };
  const auto size = [&](const char* key) { return which.at(key).get<std::int64_t>(); };
  const auto kernel = std::ranges::find_if(registry(), [&](const RegisteredKernel& one) {
    return one.runs_on == kind && one.label() == text("kernel");
  });
  const auto precision = precision_named(text("precision"));
  const auto layout = layout_named(text("layout"));
  const auto activation = activation_named(text("epilogue"));
  if (kernel == registry().end() || !precision || !layout || !activation)
    throw std::runtime_error("there is no case " + which.dump());
  Case found{
      &*kernel,
      problem_of({size("m"), size("n"), size("k"), which.at("batch_count").get<std::int32_t>(),
                  which.at("tokens").get<Tokens>(), which.at("tokens_seed").get<std::uint16_t>()},
                 *precision, *layout)};
  found.problem.activation = *activation;
  return found;
}

std::string answer_text(const std::string& token, const json& row, double kernel_seconds,
                        Outcome outcome) {
  const json whole = {{"token", token},
                      {"row", row},
                      {"outcome", name_of(outcome)},
                      {"libraries", libraries_json()},
                      {"kernel_seconds", kernel_seconds},
                      {"now", now_seconds()}};
  return whole.dump(-1, ' ', false, json::error_handler_t::replace);
}

Answer answer_from(const ChildEnd& end, const std::string& token, const Case& which) {
  if (end.answer.empty()) throw Failure("it called exit(0)", Outcome::crashed);
  const json answer = json::parse(end.answer, nullptr, false);
  if (!answer.is_object() || !answer.contains("token") || answer["token"] != token)
    throw Failure("it wrote to the descriptor of the result, or forked", Outcome::cheats);
  double now = 0;
  json libraries;
  Answer found;
  try {
    found = row_of(answer, end, which);
    now = answer.at("now").get<double>();
    libraries = answer.at("libraries");
    if (!libraries.is_array() || libraries.size() > kMostLibraries)
      throw std::runtime_error("libraries");
  } catch (const std::exception& error) {
    throw Failure("its answer is not a row: " + one_line(error.what(), 200), Outcome::cheats);
  }
  if (!(now >= end.answered_after - kClockPatience && now <= end.answered_before + kClockPatience))
    throw Failure(
        formatted("its clock is %.3g s off: does it replace clock_gettime?",
                  now < end.answered_after ? now - end.answered_after : now - end.answered_before),
        Outcome::cheats);
  try {
    note_libraries(libraries);
  } catch (const json::exception& error) {
    throw Failure("its answer is not a row: " + one_line(error.what(), 200), Outcome::cheats);
  }
  return found;
}

}  // namespace gemm::bench
