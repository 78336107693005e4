// mylib::square as a C function of a shared library.
#include <cstdint>
#include <cstdio>

#include "hlorun/custom_call.h"

extern "C" int square(const hlorun_call* call) {
  const auto* x = static_cast<const float*>(call->operands[0].data);
  auto* y = static_cast<float*>(call->results[0].data);
  for (int64_t i = 0; i < call->results[0].element_count; ++i) y[i] = x[i] * x[i];
  return 0;
}

// In place: the module aliases the result with the operand, so `data` of both is the same.
extern "C" int square_in_place(const hlorun_call* call) {
  auto* x = static_cast<float*>(call->results[0].data);
  for (int64_t i = 0; i < call->results[0].element_count; ++i) x[i] *= x[i];
  return 0;
}

// A call that fails says why.
extern "C" int refuse_negative(const hlorun_call* call) {
  const auto* x = static_cast<const float*>(call->operands[0].data);
  for (int64_t i = 0; i < call->operands[0].element_count; ++i) {
    if (x[i] >= 0) continue;
    std::snprintf(call->error, call->error_size, "element %lld is %g", static_cast<long long>(i),
                  static_cast<double>(x[i]));
    return 1;
  }
  return square(call);
}
