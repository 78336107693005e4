#include "hlo/lapack/library.h"

#include <dlfcn.h>

#include "hlo/error.h"

namespace hlorun::hlo::lapack {
namespace {

// Loaded when first needed: an optimised BLAS starts threads as soon as it is linked in.
void* Load() {
  void* library = dlopen("liblapacke.so.3", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    Fail(ErrorCode::kFailedPrecondition, "LAPACK is needed for this module's linear algebra: {}; install liblapacke",
         dlerror());
  }
  // A sum's order would depend on the number of threads.
  for (const char* name : {"openblas_set_num_threads", "bli_thread_set_num_threads"}) {
    if (void* set_threads = dlsym(library, name)) reinterpret_cast<void (*)(int)>(set_threads)(1);
  }
  // NaN goes through LAPACK as through any other function, instead of being an error.
  if (void* check = dlsym(library, "LAPACKE_set_nancheck")) reinterpret_cast<void (*)(int)>(check)(0);
  return library;
}

}  // namespace

void* FindSymbol(const char* name) {
  static void* const library = Load();
  void* symbol = dlsym(library, name);
  if (symbol == nullptr) Fail(ErrorCode::kFailedPrecondition, "the system's LAPACK has no function {}", name);
  return symbol;
}

}  // namespace hlorun::hlo::lapack
