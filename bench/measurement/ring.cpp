#include "bench/measurement/ring.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <utility>

#include "bench/base/text.hpp"
#include "kernels/tokens.hpp"

namespace gemm::bench {
namespace {

constexpr std::int64_t kMostLaunches = 1000;
constexpr double kLongestPass = 0.05, kLongLaunch = 0.1;  // seconds
constexpr double kCaches = 4;                             // last-level caches that a pass fills
// Leads of a pass of so many launches: these shares of it.
constexpr double kLeads[] = {1.0 / 4, 5.0 / 16, 3.0 / 8};
constexpr double kMostMemory = 0.5;  // of what is free

// ln(0.1) / ln(0.98), which exceeds ln(0.01) / ln(0.95).
constexpr std::int64_t kEnoughChecks = 114, kFewestDrawn = 3;
constexpr double kFewestPasses = 3;

// Launches of an honest kernel take as long in the lead as later, but for what the first one finds
// in no cache. On a CPU threads sleep until then, and other programs run: it may take much longer.
constexpr double kSlowLead = 1.03, kSlowLeadOnCpu = 1.5, kColdStartSeconds = 10e-6;
constexpr double kHeadStart = 20e-6;
constexpr double kShareAtCap = 0.95;

double median(std::vector<double> values) {
  const auto middle = values.begin() + std::ssize(values) / 2;
  std::ranges::nth_element(values, middle);
  return *middle;
}

std::vector<std::int64_t> leads_of(std::int64_t launches) {
  std::vector<std::int64_t> leads;
  for (const double share : kLeads)
    leads.push_back(static_cast<std::int64_t>(std::ceil(share * static_cast<double>(launches))));
  leads.erase(std::unique(leads.begin(), leads.end()), leads.end());
  return leads;
}

}  // namespace

RingPlan plan_ring(const TimingPlan& plan, double seconds_per_launch, const Problem& p,
                   const Device& device, double free_bytes, bool rotate) {
  const double seconds = std::max(seconds_per_launch, 1e-7);
  const double timed_share = 1 - kLeads[std::size(kLeads) - 1];
  const auto cache = static_cast<double>(device.last_level_cache_bytes);
  const double room =
      rotate ? std::max(1.0, std::floor(kMostMemory * free_bytes / OperandLayout::most_bytes(p)))
             : 1;
  // More launches than sets fill no cache.
  double launches = std::max(std::min(kCaches * cache / compulsory_bytes(p), room),
                             plan.sample_seconds / timed_share / seconds);
  launches = std::clamp(std::ceil(std::min(launches, kLongestPass / seconds)), 2.0,
                        static_cast<double>(kMostLaunches));
  if (seconds >= kLongLaunch) launches = 1;
  if (plan.state == State::burst) launches = static_cast<double>(plan.burst_launches);
  RingPlan ring{.sets = 1,
                .launches = static_cast<std::int64_t>(launches),
                .timed = static_cast<std::int64_t>(launches),
                .drawn = 1,
                .graph = device.kind == Device::Kind::gpu && seconds < plan.graph_below_seconds};
  if (ring.launches > 1 && plan.state != State::burst) ring.timed -= leads_of(ring.launches).back();
  ring.sets = static_cast<std::int64_t>(std::min(room, launches));
  const double passes = plan.samples
                            ? static_cast<double>(*plan.samples)
                            : std::max(plan.sampling_seconds / (launches * seconds), kFewestPasses);
  const auto each = static_cast<std::int64_t>(std::ceil(kEnoughChecks / passes));
  ring.drawn = std::min(
      {std::max(each, kFewestDrawn), ring.sets, ring.timed, std::int64_t{Backend::kMostPlaces}});
  return ring;
}

Ring::Ring(Backend& backend, const Case& which, Fill fill, const RingPlan& plan)
    : backend_(backend),
      case_(which),
      plan_(plan),
      buffer_(backend.allocate(plan.sets * OperandLayout(which.problem).total)),
      memory_{which.problem, fill, buffer_.get(), plan.sets},
      slow_from_(backend.device().kind == Device::Kind::gpu ? kSlowLead : kSlowLeadOnCpu),
      leads_{plan.launches - plan.timed} {
  if (leads_[0] > 0) leads_ = leads_of(plan.launches);
  backend.poison(memory_.base, plan.sets * memory_.layout().total);
  backend.renew(memory_, random_());
  backend.finish_all();
  prepare();
  submit();
}

void Ring::prepare() {
  launches_.clear();
  for (std::int64_t set = 0; set < plan_.sets; ++set)
    launches_.push_back(
        case_.kernel->prepare(case_.problem, backend_.device(), memory_.operands(set)));
}

void Ring::submit() {
  lead_.clear();
  timed_.clear();
  for (const std::int64_t lead : leads_) {
    if (lead > 0) lead_.push_back(sequence(0, lead));
    timed_.push_back(sequence(lead, plan_.timed));
  }
}

std::unique_ptr<Sequence> Ring::sequence(std::int64_t first, std::int64_t count) {
  std::vector<const Launch*> launches;
  for (std::int64_t i = first; i < first + count; ++i)
    launches.push_back(&launches_[static_cast<std::size_t>(i % plan_.sets)]);
  return backend_.sequence(std::move(launches), plan_.graph);
}

// Of launches that wrote to their set last.
std::vector<std::int64_t> Ring::draw(std::int64_t lead) {
  const std::int64_t end = lead + plan_.timed;
  std::vector<std::int64_t> places(std::min(plan_.sets, plan_.timed));
  std::iota(places.begin(), places.end(), end - std::ssize(places));
  std::shuffle(places.begin(), places.end() - 1, random_);
  std::swap(places.front(), places.back());
  places.resize(plan_.drawn);
  for (std::int64_t& place : places) place %= plan_.sets;
  return places;
}

void Ring::enqueue(std::int64_t repetitions) {
  if (free_.empty())
    free_.push_back({backend_.mark(), backend_.mark(), backend_.mark(), backend_.mark(),
                     backend_.mark(), nullptr});
  Pass pass = std::move(free_.front());
  free_.pop_front();
  const std::size_t which = random_() % leads_.size();
  const std::uint64_t seed = random_();
  pass.leading = leads_[which];
  pass.begin->set();
  backend_.renew(memory_, seed);
  if (case_.kernel->rearranges) {  // what it rearranged has the old values
    backend_.finish_all();
    prepare();
    submit();
  }
  pass.lead->set(Mark::Clock::before, kHeadStart);
  if (pass.leading > 0) lead_[which]->enqueue();
  pass.start->set();
  timed_[which]->enqueue();
  pass.stop->set(Mark::Clock::after);
  pass.verdict = backend_.check_renewed(memory_, seed, draw(pass.leading), secret_bits());
  pass.end->set();
  for (std::int64_t i = 0; i < repetitions; ++i) timed_[which]->enqueue();
  queued_.push_back(std::move(pass));
}

Elapsed Ring::read() {
  Pass& pass = queued_.front();
  const Verdict verdict = pass.verdict->read();
  if (const auto wrong = complaint(case_.problem, verdict))
    throw WrongResult("in a sample: " + *wrong, verdict);
  const double all = backend_.between(*pass.begin, *pass.end).seconds,
               lead = backend_.between(*pass.lead, *pass.start).seconds;
  const Elapsed launches = backend_.between(*pass.lead, *pass.stop),
                timed = backend_.between(*pass.start, *pass.stop);
  ++checks_.passes;
  checks_.launches += plan_.timed;
  checks_.checked += plan_.drawn;
  launch_shares_.push_back(launches.seconds / all);
  pass_seconds_.push_back(all);
  if (pass.leading > 0)
    lead_ratios_.push_back((lead - kColdStartSeconds) / static_cast<double>(pass.leading) /
                           (timed.seconds / static_cast<double>(plan_.timed)));
  free_.push_back(std::move(pass));
  queued_.pop_front();
  return {timed.seconds, launches.sm_hz};
}

std::int64_t Ring::repetitions_at_cap() const {
  if (pass_seconds_.empty()) return 0;
  const double all = median(pass_seconds_), launches = median(launch_shares_) * all,
               timed = launches * static_cast<double>(plan_.timed) /
                       static_cast<double>(plan_.timed + leads_.back());
  const double missing = kShareAtCap / (1 - kShareAtCap) * (all - launches) - launches;
  return static_cast<std::int64_t>(std::ceil(std::clamp(missing, 0.0, kLongestPass) / timed));
}

bool Ring::slow_lead() const {
  return !lead_ratios_.empty() && !(median(lead_ratios_) <= slow_from_);
}

bool Ring::enough_checks() const {
  return checks_.checked >= std::min(kEnoughChecks, checks_.launches);
}

// But for a chance of 1 in 30,000 (4 deviations of a coin).
bool Ring::works_ahead() const {
  const auto passes = static_cast<double>(lead_ratios_.size());
  const auto slow = static_cast<double>(
      std::ranges::count_if(lead_ratios_, [this](double ratio) { return !(ratio <= slow_from_); }));
  return slow > passes / 2 + 2 * std::sqrt(passes);
}

bool Ring::judged() const { return enough_checks() && (!slow_lead() || works_ahead()); }

Checks Ring::checks() const {
  Checks checks = checks_;
  checks.uses = (plan_.launches + plan_.sets - 1) / plan_.sets;
  if (!launch_shares_.empty()) checks.launch_share = median(launch_shares_);
  if (!lead_ratios_.empty()) checks.lead_ratio = median(lead_ratios_);
  if (!enough_checks())
    throw NotChecked("not checked: only " + std::to_string(checks.checked) + " of " +
                     std::to_string(kEnoughChecks) +
                     " launches, before its time was spent: raise --gemm_row_budget");
  if (!slow_lead()) return checks;
  if (works_ahead())
    throw Suspect(
        formatted("right, but launches before the timed ones take %.3g times as long as "
                  "these: does it work ahead?",
                  checks.lead_ratio));
  throw NotChecked(
      formatted("not checked: launches before the timed ones take %.3g times as long "
                "as these, which may be chance: raise --gemm_row_budget",
                checks.lead_ratio));
}

}  // namespace gemm::bench
