// Ends the process when a call that cannot be interrupted takes too long.
#pragma once

#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

namespace hlorun::collectives {

// While it lives, `seconds` may pass (0: any number); then it prints the message, calls `cleanup` and exits with 2.
class Watchdog {
 public:
  Watchdog(double seconds, std::string message, void (*cleanup)() = nullptr);
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool done_ = false;
  std::thread thread_;
};

}  // namespace hlorun::collectives
