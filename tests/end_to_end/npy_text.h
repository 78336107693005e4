// Files of NumPy's format, byte by byte.
#pragma once

#include <string>
#include <vector>

namespace hlorun::testing_support {

// NpyText("<i4", "(2, 3)", bytes); nothing checks that they fit.
inline std::string NpyText(const std::string& descr, const std::string& shape, const std::string& data,
                           bool fortran = false) {
  const std::string header =
      "{'descr': '" + descr + "', 'fortran_order': " + (fortran ? "True" : "False") + ", 'shape': " + shape + ", }\n";
  std::string text("\x93NUMPY\x01\x00", 8);
  text += static_cast<char>(header.size());
  text += '\0';
  return text + header + data;
}

template <typename T>
std::string BytesOf(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

inline std::string NpyText(const std::vector<float>& values) {
  return NpyText("<f4", "(" + std::to_string(values.size()) + ",)", BytesOf(values));
}

}  // namespace hlorun::testing_support
