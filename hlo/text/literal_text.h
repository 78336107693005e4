// The value of a constant, to and from text.
#pragma once

#include <cstdint>
#include <string>

#include "hlo/literal.h"
#include "hlo/text/lexer.h"

namespace hlorun::hlo {

// Values of elided constants "{...}". XLA fills them from two counters that run through the module: 32-bit words 0, 1,
// 2 ... over the array's bytes, and, where those are no multiple of four, bytes 0, 1, 2 ... from byte (size / 4) on.
// (The odd place of these bytes is XLA's, kept so that results agree.)
class ElidedValues {
 public:
  Literal Make(const Shape& shape);

 private:
  uint32_t word_ = 0;
  uint8_t byte_ = 0;
};

// Reads a value of `shape`. `elided` fills "{...}"; null makes it an error that names the exporter's flag.
Literal ReadLiteral(Lexer& lexer, const Shape& shape, ElidedValues* elided);

// One real number of floating type `type` with as few digits as read back to the same value (as XLA chooses them).
std::string FormatReal(ElementType type, double value);

}  // namespace hlorun::hlo
