// A thread that does little, but must do it when a message arrives.
#pragma once

namespace hlorun::collectives {

// Asks the scheduler for short slices for the calling thread. Where a core is shared with threads that compute, a
// thread that wakes up otherwise waits for the end of their slice, some milliseconds; with shorter slices than theirs
// it comes first (Linux 6.12, sched_setattr(2): sched_runtime of SCHED_OTHER). It gets no more of the core than before.
// Does nothing where the kernel knows of no such wish.
void AskForShortSlices();
// Whether the calling thread has asked.
bool HasShortSlices();

}  // namespace hlorun::collectives
