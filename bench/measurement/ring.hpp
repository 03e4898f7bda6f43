// The samples of a kernel: each is one pass over a ring of operand sets that have just got new
// values.
//
// Before each pass the harness writes new values of A and B of every set, and NaN into C, in the
// stream. Then the launches run through the ring without a pause. What is timed begins at a place
// that is drawn for the pass, after at least a quarter of it (the lead), and lasts for the same
// number of launches each time. Then some of the timed launches are drawn, and their sets are
// checked (Backend::check_renewed), always with the last one. No kernel can tell which launches are
// timed, which are checked, or what the values will be; and whatever it does ahead in the lead is
// timed too.
//
// Passes are queued ahead of the device: nothing waits for the host between them.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "bench/base/outcome.hpp"
#include "bench/cases/cases.hpp"
#include "bench/device/backend.hpp"
#include "bench/timing/timing.hpp"
#include "bench/timing/versus.hpp"

namespace gemm::bench {

// A time without the whole work; what() says why.
struct Suspect : Failure {
  explicit Suspect(const std::string& what) : Failure(what, Outcome::cheats) {}
};

// Right as far as was checked, which was too little for a rate; what() says how to check more.
struct NotChecked : Failure {
  explicit NotChecked(const std::string& what) : Failure(what, Outcome::timeout) {}
};

// The kernel computed something else; what() says where and by how much.
struct WrongResult : Failure {
  WrongResult(const std::string& what, const Verdict& v)
      : Failure(what, Outcome::wrong), verdict(v) {}
  Verdict verdict;
};

struct RingPlan {
  std::int64_t sets, launches;  // of a pass; launches go round if there are fewer sets
  std::int64_t timed;           // of the launches; the others are before or after these
  std::int64_t drawn;           // of the timed ones, to be checked in each pass
  bool graph;
};

// As many launches as four times the last-level cache needs, and as last for
// plan.sample_seconds beside the lead: at most 1,000, and no longer than 50 ms. Above 0.1 s a
// launch one, without a lead; in a burst plan.burst_launches, without one. Sets are fewer if
// `free_bytes` are not enough for that many, or with `rotate` off one.
RingPlan plan_ring(const TimingPlan& plan, double seconds_per_launch, const Problem& p,
                   const Device& device, double free_bytes, bool rotate);

class Ring {
 public:
  // Throws OutOfMemory, and what the kernel's prepare() does.
  Ring(Backend& backend, const Case& which, Fill fill, const RingPlan& plan);

  // One for each set, which now has some values.
  std::span<const Launch> launches() const { return launches_; }
  const RingPlan& plan() const { return plan_; }
  std::string_view launch() const { return timed_[0]->launch(); }

  // Enqueues a pass, and so many repetitions of its timed launches behind it.
  void enqueue(std::int64_t repetitions);
  std::int64_t queued() const { return std::ssize(queued_); }
  // Of the passes that are queued the first: the time of its timed launches. Throws WrongResult.
  Elapsed read();
  // How often timed launches must be repeated behind a pass so that launches fill 95 % of the time.
  std::int64_t repetitions_at_cap() const;

  // Whether enough launches were checked: leaving out 5 % of them would have been found with 99 %,
  // 2 % with 90 %. And whether those of the lead took as long as the timed ones, or surely longer.
  bool judged() const;
  // Of all passes. Throws Suspect if launches of the lead took longer, NotChecked if it was not
  // judged.
  Checks checks() const;

 private:
  struct Pass {
    std::unique_ptr<Mark> begin, lead, start, stop, end;
    std::unique_ptr<PendingVerdict> verdict;
    std::int64_t leading = 0;
  };

  void prepare();
  void submit();
  std::unique_ptr<Sequence> sequence(std::int64_t first, std::int64_t count);
  std::vector<std::int64_t> draw(std::int64_t lead);
  bool enough_checks() const;
  bool slow_lead() const;
  bool works_ahead() const;

  Backend& backend_;
  Case case_;
  RingPlan plan_;
  Buffer buffer_;
  RingMemory memory_;
  std::vector<Launch> launches_;
  double slow_from_;                 // of the lead's time over that of as many timed launches
  std::vector<std::int64_t> leads_;  // launches before the timed ones, to draw from
  std::vector<std::unique_ptr<Sequence>> lead_, timed_;  // one for each of these
  std::mt19937_64 random_{secret_bits()};
  std::deque<Pass> queued_, free_;
  Checks checks_;
  std::vector<double> lead_ratios_, launch_shares_, pass_seconds_;
};

}  // namespace gemm::bench
