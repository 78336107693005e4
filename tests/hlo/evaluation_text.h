// Evaluates HLO text in tests: values are written as C++ lists.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "hlo/evaluator/evaluator.h"
#include "hlo/text/parser.h"

namespace hlorun::hlo {

// An array of `type` and `dimensions` from numbers, rounded to the type.
inline Literal Values(ElementType type, const Dims& dimensions, const std::vector<double>& values) {
  Literal literal(Shape(type, dimensions));
  for (size_t i = 0; i < values.size(); ++i) literal.SetDouble(static_cast<int64_t>(i), values[i]);
  return literal;
}
inline Literal Floats(const std::vector<double>& values) {
  return Values(ElementType::kF32, {static_cast<int64_t>(values.size())}, values);
}
inline Literal Ints(const std::vector<double>& values) {
  return Values(ElementType::kS32, {static_cast<int64_t>(values.size())}, values);
}

inline std::vector<double> Numbers(const Literal& literal) {
  std::vector<double> values;
  for (int64_t i = 0; i < literal.ElementCount(); ++i) values.push_back(literal.GetDouble(i));
  return values;
}

inline Literal EvaluateText(const std::string& text, const std::vector<Literal>& arguments,
                            const EvaluatorOptions& options = {}) {
  return Evaluate(*ParseModule(text), arguments, options);
}
// The entry's instructions only.
inline Literal EvaluateEntry(const std::string& body, const std::vector<Literal>& arguments) {
  return EvaluateText("HloModule m\nENTRY e {\n" + body + "\n}\n", arguments);
}

}  // namespace hlorun::hlo
