#include "backends/opencl/runtime/loaded_constants.h"

#if defined(__linux__)
#include <link.h>
#endif

#include <cstdint>
#include <mutex>
#include <set>
#include <string>
#include <utility>

namespace hlorun::opencl {

#if defined(__linux__)
namespace {

constexpr size_t kPageBytes = 4096;
// Kernels' libraries have some 30 KB; a compiler's would take milliseconds.
constexpr size_t kLargestSegment = size_t{1} << 20;

struct Walk {
  std::set<std::pair<uintptr_t, std::string>> seen;  // where a library lies, and its name
  unsigned long long loads = 0;                      // that the process had made at the last call
  unsigned long long loads_now = 0;
  size_t pages = 0;
};

size_t Touch(uintptr_t begin, size_t bytes) {
  size_t pages = 0;
  for (uintptr_t page = begin / kPageBytes * kPageBytes; page < begin + bytes; page += kPageBytes, ++pages) {
    static_cast<void>(*reinterpret_cast<const volatile char*>(page));
  }
  return pages;
}

int Visit(dl_phdr_info* library, size_t, void* data) {
  auto& walk = *static_cast<Walk*>(data);
  walk.loads_now = library->dlpi_adds;
  if (walk.loads_now == walk.loads) return 1;  // nothing new
  if (!walk.seen.emplace(library->dlpi_addr, library->dlpi_name).second) return 0;
  for (int i = 0; i < library->dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = library->dlpi_phdr[i];
    const bool is_constant =
        segment.p_type == PT_LOAD && (segment.p_flags & PF_R) != 0 && (segment.p_flags & PF_W) == 0;
    if (!is_constant || segment.p_filesz > kLargestSegment) continue;
    walk.pages += Touch(library->dlpi_addr + segment.p_vaddr, segment.p_filesz);
  }
  return 0;
}

}  // namespace

size_t TouchLoadedConstants() {
  static std::mutex mutex;
  static Walk walk;
  std::lock_guard lock(mutex);
  walk.pages = 0;
  dl_iterate_phdr(Visit, &walk);
  walk.loads = walk.loads_now;
  return walk.pages;
}
#else
size_t TouchLoadedConstants() { return 0; }
#endif

}  // namespace hlorun::opencl
