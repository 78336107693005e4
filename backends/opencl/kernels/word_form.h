// How a CPU-class device multiplies several elements along the depth of a product with one instruction.
#pragma once

#include <cstdint>
#include <string>

#include "hlo/device_spec.h"
#include "hlo/element_type.h"

namespace hlorun::opencl {

// Elements along k that one instruction multiplies and sums, as a word of 32 bits.
enum class WordKind : uint8_t { kNone, kBf16Pairs, kS8Quads };

struct WordForm {
  WordKind kind = WordKind::kNone;
  int64_t elements = 1;                               // of a word
  hlo::ElementType element = hlo::ElementType::kU32;  // the unsigned integer of as many bits
  std::string dot;                                    // which function multiplies them (codegen/word_dot.h)

  explicit operator bool() const { return kind != WordKind::kNone; }
};

// For operands of type `operands`, `depth` of them in a row, and sums of type `sums`; kNone: one by one. Kernels of
// GPU class read single elements, and the instructions take vectors of 16 words.
WordForm WordFormOf(hlo::ElementType operands, hlo::ElementType sums, int64_t depth, const DeviceSpec& device);

}  // namespace hlorun::opencl
