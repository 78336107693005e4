// Faults on purpose: named points at which tests, and users who test their own recovery, make hlorun fail.
//
//   HLORUN_FAULT=name[@rank][:argument],...     docs/faults.md lists the names
//
// The command line arms them; a program that uses the library is never touched by the variable. Where nothing is armed
// a point costs one load of a flag. Thread-safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

namespace hlorun {

// What the argument counts. kVisit: the point fails at its Nth visit and only then (1 where none is given).
// kSeconds: each visit takes that long (1 where none is given).
enum class FaultArgument : uint8_t { kVisit, kSeconds };

//    enum            name             argument  what happens
#define HLORUN_FAULTS(X)                                                                                      \
  X(kAlloc, "alloc", kVisit, "the device has no memory left for the Nth array")                               \
  X(kKernelBuild, "kernel_build", kVisit, "the Nth program's source has an error in it")                      \
  X(kCacheRead, "cache_read", kVisit, "the Nth entry read from the kernel cache is damaged")                  \
  X(kCacheWrite, "cache_write", kVisit, "the disk is full when the Nth entry of the kernel cache is written") \
  X(kWriteOutput, "write_output", kVisit, "the disk is full in the middle of the Nth file of outputs")        \
  X(kCompileSlow, "compile_slow", kSeconds, "compilation takes N seconds longer")                             \
  X(kWriteSlow, "write_slow", kSeconds, "N seconds pass before written outputs get their names")              \
  X(kStartStop, "start_stop", kVisit, "the process stops (SIGSTOP) before it joins its job")                  \
  X(kStartSlow, "start_slow", kSeconds, "the process joins its job N seconds late")                           \
  X(kRankFail, "rank_fail", kVisit, "an error before the Nth run")                                            \
  X(kRankExit, "rank_exit", kVisit, "the process exits with code 3, without a word, before the Nth run")      \
  X(kRankKill, "rank_kill", kVisit, "the process is killed (SIGKILL) before the Nth run")                     \
  X(kRankStop, "rank_stop", kVisit, "the process stops (SIGSTOP) before the Nth run")                         \
  X(kRankSlow, "rank_slow", kSeconds, "each run starts N seconds late")                                       \
  X(kExchangeFail, "exchange_fail", kVisit, "an error in the Nth exchange with other ranks")                  \
  X(kExchangeKill, "exchange_kill", kVisit, "the process is killed (SIGKILL) in the Nth exchange")            \
  X(kExchangeStop, "exchange_stop", kVisit, "the process stops (SIGSTOP) in the Nth exchange")                \
  X(kExchangeSlow, "exchange_slow", kSeconds, "each exchange begins N seconds late")                          \
  X(kAwaitFail, "await_fail", kVisit, "an error while the Nth exchange beside kernels is under way")          \
  X(kFinishStop, "finish_stop", kVisit, "the process stops (SIGSTOP) when its work is done")

enum class Fault : uint8_t {
#define HLORUN_FAULT_NAME(enumerator, name, argument, meaning) enumerator,
  HLORUN_FAULTS(HLORUN_FAULT_NAME)
#undef HLORUN_FAULT_NAME
};

// Arms what `text` (the variable's value; empty: nothing) names for this rank, and nothing else. Throws Error for a
// name or an argument that does not exist.
void ArmFaults(const std::string& text, int rank);

// "name  meaning" lines, for --help's page and the docs.
std::string FaultTable();

namespace fault_internal {
extern std::atomic<bool> armed;
bool Hits(Fault fault);
void Pause(Fault fault);
}  // namespace fault_internal

// True when the point is to fail now.
inline bool FaultHits(Fault fault) {
  return fault_internal::armed.load(std::memory_order_relaxed) && fault_internal::Hits(fault);
}
// Sleeps when a slow point is armed.
inline void FaultPause(Fault fault) {
  if (fault_internal::armed.load(std::memory_order_relaxed)) fault_internal::Pause(fault);
}

}  // namespace hlorun
