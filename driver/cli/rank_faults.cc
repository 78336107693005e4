#include "driver/cli/rank_faults.h"

#include <unistd.h>
#include <csignal>

#include "hlo/error.h"
#include "hlo/fault.h"

namespace hlorun::cli {
namespace {

constexpr int kSilentExit = 3;

}  // namespace

void StartFaults() {
  FaultPause(Fault::kStartSlow);
  if (FaultHits(Fault::kStartStop)) raise(SIGSTOP);
}

void RunFaults() {
  FaultPause(Fault::kRankSlow);
  if (FaultHits(Fault::kRankFail)) Fail(ErrorCode::kInternal, "HLORUN_FAULT=rank_fail: this rank fails on purpose");
  if (FaultHits(Fault::kRankExit)) _exit(kSilentExit);
  if (FaultHits(Fault::kRankKill)) raise(SIGKILL);
  if (FaultHits(Fault::kRankStop)) raise(SIGSTOP);
}

void FinishFaults() {
  if (FaultHits(Fault::kFinishStop)) raise(SIGSTOP);
}

}  // namespace hlorun::cli
