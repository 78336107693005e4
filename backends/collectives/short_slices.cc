#include "backends/collectives/short_slices.h"

#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>

namespace hlorun::collectives {
namespace {

constexpr uint64_t kSliceNs = 100'000;  // the shortest that the kernel grants

// The first version of the kernel's sched_attr, for which the C library has no declaration.
struct SchedulingWish {
  uint32_t size = sizeof(SchedulingWish);
  uint32_t policy = 0;
  uint64_t flags = 0;
  int32_t nice = 0;
  uint32_t priority = 0;
  uint64_t runtime = 0, deadline = 0, period = 0;
};
static_assert(sizeof(SchedulingWish) == 48);

thread_local bool has_short_slices = false;

}  // namespace

bool HasShortSlices() { return has_short_slices; }

void AskForShortSlices() {
  has_short_slices = true;
  prctl(PR_SET_TIMERSLACK, 1000UL);
  SchedulingWish wish;
  // As it is, but for the slice.
  if (syscall(SYS_sched_getattr, 0, &wish, sizeof(wish), 0) != 0) return;
  constexpr uint32_t kSchedOther = 0;
  if (wish.policy != kSchedOther) return;
  wish.runtime = kSliceNs;
  syscall(SYS_sched_setattr, 0, &wish, 0);
}

}  // namespace hlorun::collectives
