// The shape rule of a custom-call, as text: {"f32[n,m]", "T[...,m]"} -> {"T[...,n]", "s32[min(n,m)]"}.
//
// A pattern is an element type and dimensions. A type that starts with an upper-case letter is a variable; so is a
// dimension that is a name. A variable takes its value where it appears first and must agree later; "..." in front
// stands for any number of leading dimensions, the same in all patterns. A dimension may also be an expression of
// names and numbers with + - * / ( ) min(a,b) max(a,b) ceildiv(a,b).
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "hlo/shape.h"

namespace hlorun::hlo {

// What a signature's variables stand for in one call.
struct Bindings {
  std::map<std::string, int64_t, std::less<>> sizes;
  std::map<std::string, ElementType, std::less<>> types;
  std::optional<Dims> batch;  // what "..." stands for

  int64_t BatchCount() const;  // product of `batch`, 1 for none
};

// The value of an expression. Throws kInvalidArgument for one that is malformed, names what is not bound, divides by
// zero or overflows.
int64_t EvaluateSizeExpression(std::string_view text, const Bindings& bindings);

class Signature {
 public:
  // Throws kInvalidArgument naming the pattern that is malformed.
  Signature(const std::vector<std::string>& operands, const std::vector<std::string>& results);

  // Throws kInvalidArgument saying which operand or result differs and how. `known` are values given beforehand.
  Bindings Match(std::span<const Shape> operands, std::span<const Shape> results, Bindings known = {}) const;

  std::string ToString() const;  // "(f32[n,m]) -> f32[n]"

 private:
  struct Pattern {
    std::string text, type;
    bool has_batch = false;
    std::vector<std::string> dimensions;
  };
  static Pattern Parse(const std::string& text);
  static void Bind(const Pattern& pattern, const Shape& shape, Bindings& bindings);

  std::vector<Pattern> operands_, results_;
};

}  // namespace hlorun::hlo
