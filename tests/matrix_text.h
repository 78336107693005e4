// The literal of a matrix in HLO text, for tests.
#pragma once

#include <fmt/format.h>

#include <string>

namespace hlorun {

// "{{a, b}, {c, d}}": `element` of each row and column.
template <typename Element>
std::string MatrixText(int rows, int columns, const Element& element) {
  std::string text = "{";
  for (int i = 0; i < rows; ++i) {
    text += i == 0 ? "{" : ", {";
    for (int j = 0; j < columns; ++j) text += fmt::format("{}{}", j == 0 ? "" : ", ", element(i, j));
    text += "}";
  }
  return text + "}";
}

}  // namespace hlorun
