#include "bench/run/child.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <stdexcept>

#include "bench/base/clock.hpp"
#include "bench/base/durable.hpp"
#include "bench/base/interrupt.hpp"
#include "bench/base/text.hpp"
#include "bench/timing/timing.hpp"

namespace gemm::bench {
namespace {

constexpr char kMore = 'm', kEnough = 'e', kNoMore = 'n';
constexpr std::size_t kMostPrinted = 8 << 10, kMostAnswered = 256 << 20;

struct Pipe {
  File read, write;
  Pipe() {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0)
      throw std::runtime_error(std::string("cannot make a pipe for a child process: ") +
                               std::strerror(errno));
    // Above those that the child gets, which would replace them.
    const File low[] = {File(ends[0]), File(ends[1])};
    read = File(fcntl(ends[0], F_DUPFD_CLOEXEC, kTurnOver + 1));
    write = File(fcntl(ends[1], F_DUPFD_CLOEXEC, kTurnOver + 1));
    fcntl(read.descriptor(), F_SETFL, O_NONBLOCK);
  }
};

// Some of what is there now; false at the end of the file.
bool read_some(const File& from, std::string& into, std::size_t most) {
  std::array<char, 1 << 16> part;  // as much as a pipe holds
  const ssize_t count = read(from.descriptor(), part.data(), part.size());
  if (count <= 0) return count < 0;
  into.append(part.data(), static_cast<std::size_t>(count));
  if (into.size() > most) into.erase(0, into.size() - most);
  return true;
}

pid_t start(const std::vector<std::string>& command, const File& input, const Pipe& printed,
            const Pipe& answer, const Pipe& turn, const Pipe& turn_over) {
  std::vector<char*> argv;
  for (const std::string& argument : command) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_adddup2(&files, input.descriptor(), STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&files, printed.write.descriptor(), STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&files, printed.write.descriptor(), STDERR_FILENO);
  posix_spawn_file_actions_adddup2(&files, answer.write.descriptor(), kAnswer);
  posix_spawn_file_actions_adddup2(&files, turn.read.descriptor(), kTurn);
  posix_spawn_file_actions_adddup2(&files, turn_over.write.descriptor(), kTurnOver);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  // A group of its own: Ctrl-C is ours, and what it starts can be ended with it.
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
  posix_spawnattr_setpgroup(&attributes, 0);
  pid_t child = 0;
  const int error = posix_spawnp(&child, argv[0], &files, &attributes, argv.data(), environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&files);
  if (error != 0)
    throw std::runtime_error("cannot start '" + command[0] + "': " + std::strerror(error));
  return child;
}

std::string ending(int status) {
  if (WIFEXITED(status))
    return WEXITSTATUS(status) == 0 ? ""
                                    : "it called exit(" + std::to_string(WEXITSTATUS(status)) + ")";
  switch (const int signal = WTERMSIG(status)) {
    case SIGKILL:
      return "it was killed, probably because memory ran out";
    case SIGABRT:
      return "it called abort()";
    default:
      return strsignal(signal);
  }
}

// Orphans are handed to the nearest ancestor that is a subreaper, to its main thread.
void end_orphans() {
  const std::string list = formatted("/proc/self/task/%d/children", getpid());
  for (bool more = true; more;) {
    more = false;
    std::ifstream children(list);
    for (pid_t child = 0; children >> child; more = true) {
      kill(child, SIGKILL);
      waitpid(child, nullptr, 0);
    }
  }
}

// Has it ended? It stays a zombie, so that its process id is not used again.
bool has_ended(pid_t child) {
  siginfo_t info{};
  return waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOHANG | WNOWAIT) != 0 ||
         info.si_pid == child;
}

}  // namespace

ChildEnd run_child(const std::vector<std::string>& command, double seconds,
                   const std::string& input, const BetweenTurns& between) {
  constexpr int kPollMilliseconds = 20;
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  Pipe printed, answer, turn, turn_over;
  const File given(memfd_create("request", MFD_CLOEXEC));
  if (write(given.descriptor(), input.data(), input.size()) != std::ssize(input))
    throw std::runtime_error("cannot write the request of a child process");
  lseek(given.descriptor(), 0, SEEK_SET);
  const double started = now_seconds();
  const pid_t child = start(command, given, printed, answer, turn, turn_over);
  printed.write = File();
  answer.write = File();
  turn_over.write = File();
  fcntl(turn.read.descriptor(), F_SETFL, 0);  // the child waits
  fcntl(turn.write.descriptor(), F_SETFL, O_NONBLOCK);
  const double deadline = started + seconds;
  ChildEnd end{.answered_after = started};
  int status = 0;
  const auto listen = [&] {
    const bool silent = end.answer.empty();
    const double looked = now_seconds();
    std::array<pollfd, 3> ready = {pollfd{printed.read.descriptor(), POLLIN, 0},
                                   pollfd{answer.read.descriptor(), POLLIN, 0},
                                   pollfd{between ? turn_over.read.descriptor() : -1, POLLIN, 0}};
    poll(ready.data(), ready.size(), kPollMilliseconds);
    if (char over = 0; between && read(turn_over.read.descriptor(), &over, 1) == 1) {
      kill(-child, SIGSTOP);
      const char more = between(over == kEnough) ? kMore : kNoMore;
      kill(-child, SIGCONT);
      if (write(turn.write.descriptor(), &more, 1) != 1) return false;  // it has ended
    }
    const bool more = read_some(printed.read, end.printed, kMostPrinted);
    const bool answers = read_some(answer.read, end.answer, kMostAnswered);
    if (silent) end.answered_before = now_seconds();
    if (silent && end.answer.empty()) end.answered_after = looked;
    return answers || more;
  };
  try {
    while (!has_ended(child)) {
      end.late = now_seconds() > deadline;
      if (end.late || interrupted()) break;
      if (!listen()) idle(1e-3 * kPollMilliseconds);  // it closed both, and lives on
    }
  } catch (...) {  // of `between`
    kill(-child, SIGKILL);
    waitpid(child, &status, 0);
    end_orphans();
    throw;
  }
  kill(-child, SIGKILL);
  waitpid(child, &status, 0);
  end_orphans();  // they may hold the pipes
  listen();
  listen();
  end.seconds = now_seconds() - started;
  if (interrupted()) throw Interrupted();
  end.how = end.late ? formatted("it did not end within %.3g s", seconds) : ending(status);
  return end;
}

void become_child() {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  const rlimit none{0, 0};
  setrlimit(RLIMIT_CORE, &none);
  std::ofstream("/proc/self/oom_score_adj") << 1000;
}

bool next_turn(bool enough) {
  const char over = enough ? kEnough : kMore;
  char next = 0;
  return write(kTurnOver, &over, 1) == 1 && read(kTurn, &next, 1) == 1 && next == kMore;
}

std::string take_request() {
  std::string request;
  std::array<char, 4096> part;
  for (ssize_t count; (count = read(STDIN_FILENO, part.data(), part.size())) > 0;)
    request.append(part.data(), static_cast<std::size_t>(count));
  const File empty(open("/dev/null", O_RDONLY | O_CLOEXEC));
  dup2(empty.descriptor(), STDIN_FILENO);
  return request;
}

}  // namespace gemm::bench
