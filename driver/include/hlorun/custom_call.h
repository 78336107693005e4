/* A custom-call's function in C: what a shared library exports for `custom-call` instructions to call.
 *
 * Stable: fields are only ever added at the end of hlorun_call, and `struct_size` says how many there are.
 *
 *   int square(const hlorun_call* call) {
 *     const float* x = call->operands[0].data;
 *     float* y = call->results[0].data;
 *     for (int64_t i = 0; i < call->results[0].element_count; ++i) y[i] = x[i] * x[i];
 *     return 0;
 *   }
 *
 * The function may be called from several threads at once, for different runs. */
#ifndef HLORUN_CUSTOM_CALL_H_
#define HLORUN_CUSTOM_CALL_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A row-major array in host memory. `type` is HLO's name of the element type: "f32", "s32", "bf16", "pred" ... */
typedef struct hlorun_array {
  void* data;
  const char* type;
  int64_t rank;
  const int64_t* dimensions;
  int64_t element_count;
  int64_t byte_count;
} hlorun_array;

typedef struct hlorun_call {
  size_t struct_size;
  const char* target;         /* custom_call_target */
  const char* backend_config; /* as written in the module; "" for none */
  int64_t operand_count;
  const hlorun_array*
      operands; /* tuples flattened. Read only, except where output_to_operand_aliasing gives an operand
                   the same `data` as a result: it holds the operand's value and becomes the result's. */
  int64_t result_count;
  const hlorun_array* results; /* tuples flattened */
  char* error;                 /* room for a message, for a call that fails */
  size_t error_size;
} hlorun_call;

/* Returns 0, or another number after writing a zero-terminated message into call->error. Must not throw. */
typedef int (*hlorun_custom_call)(const hlorun_call* call);

#ifdef __cplusplus
}
#endif

#endif /* HLORUN_CUSTOM_CALL_H_ */
