#include "backends/collectives/mpi/watchdog.h"

#include <unistd.h>

#include <chrono>
#include <cstdio>

namespace hlorun::collectives {

Watchdog::Watchdog(double seconds, std::string message, void (*cleanup)()) {
  if (seconds <= 0) return;
  thread_ = std::thread([this, seconds, message = std::move(message), cleanup] {
    std::unique_lock lock(mutex_);
    if (changed_.wait_for(lock, std::chrono::duration<double>(seconds), [this] { return done_; })) return;
    char host[256] = "";
    gethostname(host, sizeof(host) - 1);
    std::fprintf(stderr, "hlorun: %s after %.0f s: %s (--heartbeat=0 waits for ever)\n", host, seconds,
                 message.c_str());
    std::fflush(stderr);
    if (cleanup != nullptr) cleanup();
    _exit(2);
  });
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
