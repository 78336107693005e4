// NumPy's .npy format (versions 1 to 3): https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "hlo/literal.h"

namespace hlorun {

// An array as the file holds it.
struct NpyArray {
  char kind = 'f';  // numpy's dtype.kind: b i u f c V
  int item_bytes = 4;
  bool big_endian = false;
  bool fortran_order = false;
  hlo::Dims dimensions;
  std::string bytes;  // the elements as in the file

  std::string TypeName() const;  // "float32", "V2"
};

// `name` is for messages. Throws Error for anything that is not a whole .npy.
NpyArray ParseNpy(std::string contents, const std::string& name);
NpyArray ReadNpy(const std::string& path);

// The array as a literal of `shape`'s type and dimensions, row-major, native endianness. bf16 and f16 also come from
// 'V2', types of a byte from 'u1', 'i1', 'V1'; int64 narrows to s32 (uint64 to u32) only where no value changes.
// Throws Error (without saying which parameter: the caller knows).
hlo::Literal ToLiteral(const NpyArray& array, const hlo::Shape& shape);

// The header for a row-major array of `shape`; elements follow it. bf16 is '<V2', other types that numpy lacks a byte.
std::string NpyHeader(const hlo::Shape& shape);

}  // namespace hlorun
