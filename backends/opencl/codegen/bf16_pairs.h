// Vector loops over bf16 by pairs: 32 elements are one vector of 32-bit words, the even ones in the lower halves, the
// odd ones in the upper. A shift and a mask widen them to two vectors of floats, one instruction rounds both (and a
// shuffle brings the words together again), and the sum of both takes one multiplication by pairs of ones. Four
// instructions of AVX512_BF16 do the work of ten.
#pragma once

#include <optional>

#include "backends/opencl/codegen/kernel_ir.h"
#include "hlo/device_spec.h"

namespace hlorun::opencl {

// What the printer knows by name (opencl_helpers.h); p is a u32 vector of pairs, x and y are f32 vectors.
inline constexpr const char* kLoadPairs = "hl_load_pairs";           // of a load's place: p
inline constexpr const char* kEvenOfPairs = "hl_even_bf16";          // p -> x
inline constexpr const char* kOddOfPairs = "hl_odd_bf16";            // p -> y
inline constexpr const char* kRoundToPairs = "hl_pack_bf16";         // x, y, no denormals -> p
inline constexpr const char* kRoundToAnyPairs = "hl_pack_any_bf16";  // the same, in an order of its own (word_dot.h)
inline constexpr const char* kJoinPairs = "hl_join_bf16";            // x, y, rounded to bf16 -> p
inline constexpr const char* kSumOfPairs = "hl_sum_bf16";            // sum + x + y of p
inline constexpr const char* kAddBf16 = "hl_add_bf16";               // sum + x where x has a bf16's value

// Whether loops of such vectors, so many elements long, should ask for it.
bool WorthPairs(const DeviceSpec& device, int lanes, int64_t length);

// `loop`, a kFor with role kVector, `pairs` and a constant extent. Null where its body reads or writes anything but
// bf16 side by side, values that do not depend on the loop, and unordered private arrays.
std::optional<ir::Stmt> WidenToPairs(const ir::Stmt& loop);

}  // namespace hlorun::opencl
