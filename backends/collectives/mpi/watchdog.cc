#include "backends/collectives/mpi/watchdog.h"

#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>

#include "hlo/error.h"

namespace hlorun::collectives {
namespace {

constexpr double kPollSeconds = 0.05;
// Ranks that see the same speak one after another, so that the first ends the others before they do.
constexpr double kTurnSeconds = 0.4;

// A rank that was told to leave stays for so long, so that the others of the node see who left before they were told.
constexpr double kLingerSeconds = 0.3;

static_assert(std::atomic<bool>::is_always_lock_free, "a signal handler sets it");
std::atomic<bool> g_told_to_leave{false};

// A launcher ends a job of which a rank was killed at once; one with a stopped rank, not always.
constexpr double kLauncherSeconds = 2;

// While it lives, SIGTERM is noted.
class TermNoted {
 public:
  TermNoted() {
    struct sigaction action {};
    action.sa_handler = [](int) { g_told_to_leave = true; };
    action.sa_flags = SA_RESTART;
    sigemptyset(&action.sa_mask);
    sigaction(SIGTERM, &action, &before_);
  }
  ~TermNoted() {
    sigaction(SIGTERM, &before_, nullptr);
    if (g_told_to_leave) raise(SIGTERM);
  }
  TermNoted(const TermNoted&) = delete;
  TermNoted& operator=(const TermNoted&) = delete;

 private:
  struct sigaction before_ {};
};

std::string HostName() {
  char host[256] = "";
  gethostname(host, sizeof(host) - 1);
  return host;
}

void Say(const std::string& message) {
  std::fprintf(stderr, "hlorun: %s\n", message.c_str());
  std::fflush(stderr);
}

[[noreturn]] void Leave(void (*cleanup)()) {
  if (cleanup != nullptr) cleanup();
  _exit(2);
}

}  // namespace

Watchdog::Watchdog(Limits limits, std::string doing, void (*cleanup)()) {
  if (limits.heartbeat <= 0) return;
  thread_ = std::thread([this, limits, doing = std::move(doing), cleanup] { Watch(limits, doing, cleanup); });
}

bool Watchdog::DoneAfter(double seconds) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, std::chrono::duration<double>(seconds), [this] { return done_; });
}

void Watchdog::LeaveAsTold(const NodeSiblings& siblings, void (*cleanup)()) {
  const int missing = siblings.Missing();
  if (missing >= 0 && siblings.LowerRanksRunning() == 0) {
    Say(fmt::format("rank {} on {} has left while the job started: it was killed", missing, HostName()));
  }
  DoneAfter(kLingerSeconds);
  if (cleanup != nullptr) cleanup();
  _exit(128 + SIGTERM);
}

void Watchdog::Watch(Limits limits, const std::string& doing, void (*cleanup)()) {
  std::optional<TermNoted> noted;
  if (limits.all_stay) noted.emplace();
  NodeSiblings siblings;
  siblings.Look(limits.heartbeat);
  const auto start = std::chrono::steady_clock::now();
  while (!DoneAfter(kPollSeconds)) {
    if (noted.has_value() && g_told_to_leave) LeaveAsTold(siblings, cleanup);
    if (const auto stopped = siblings.Look(limits.heartbeat)) {
      if (DoneAfter(kTurnSeconds * siblings.LowerRanksRunning())) return;
      Say(fmt::format("rank {} on {} has been stopped for {:.1f} s: {} (--heartbeat=0 waits for ever)", stopped->rank,
                      HostName(), stopped->seconds, doing));
      noted.reset();  // told to leave, this process goes
      kill(stopped->process, SIGKILL);
      if (DoneAfter(kLauncherSeconds)) return;
      Leave(cleanup);
    }
    const double passed = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    if (passed > limits.seconds) {
      Say(fmt::format(
          "{} after {:.0f} s: {}: another rank was killed or stopped, or its host does not answer (--heartbeat=0 waits for ever)",
          HostName(), passed, doing));
      Leave(cleanup);
    }
  }
}

Watchdog::~Watchdog() {
  if (!thread_.joinable()) return;
  {
    std::lock_guard lock(mutex_);
    done_ = true;
    changed_.notify_all();
  }
  thread_.join();
}

}  // namespace hlorun::collectives
