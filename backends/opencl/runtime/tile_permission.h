// Leave to use the registers of x86's matrix unit, 8 KiB for each thread that does: Linux keeps them from processes
// that have not asked. No OpenCL: hlorun-probe asks too.
#pragma once

#include <sys/syscall.h>
#include <unistd.h>

namespace hlorun::opencl {

// For all threads of this process, also those that it has not started yet; again and again is fine. False where the
// system does not know the unit, or a thread's alternate signal stack is too small for its registers.
inline bool AskForTiles() {
#if defined(__x86_64__) && defined(SYS_arch_prctl)
  constexpr int kRequestPermission = 0x1023;  // ARCH_REQ_XCOMP_PERM of asm/prctl.h
  constexpr int kTileData = 18;               // the state component's number
  return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
#else
  return false;
#endif
}

}  // namespace hlorun::opencl
