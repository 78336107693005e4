#include "backends/opencl/runtime/clblast_library.h"

#include <dlfcn.h>

#include "hlo/error.h"

namespace hlorun::opencl {
namespace {

constexpr const char* kLibrary = "libclblast.so.1";

// Never unloaded: kernels that it compiled stay in its cache.
void* Library() {
  static void* const library = dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);
  return library;
}

}  // namespace

void* FindClblastSymbol(const std::string& name) {
  if (Library() == nullptr) {
    Fail(ErrorCode::kNotFound,
         "CLBlast cannot be loaded ({}): install the package libclblast1, or use --dot_library=own", kLibrary);
  }
  return dlsym(Library(), name.c_str());
}

void* ClblastSymbol(const std::string& name) {
  void* const symbol = FindClblastSymbol(name);
  if (symbol == nullptr) Fail(ErrorCode::kNotFound, "{} has no {}: it is not CLBlast 1.5", kLibrary, name);
  return symbol;
}

int ClblastPrecision(hlo::ElementType type) {
  switch (type) {
    case hlo::ElementType::kF16: return 16;
    case hlo::ElementType::kF32: return 32;
    case hlo::ElementType::kF64: return 64;
    case hlo::ElementType::kC64: return 3232;
    case hlo::ElementType::kC128: return 6464;
    default: return 0;
  }
}

}  // namespace hlorun::opencl
