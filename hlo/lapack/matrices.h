// The batch of matrices or vectors that an array of a LAPACK call is: [batch..., rows, columns], row-major, where
// LAPACK wants columns.
#pragma once

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstdint>
#include <cstring>
#include <vector>

#include "hlo/custom_calls/host_call.h"
#include "hlo/custom_calls/signature.h"

namespace hlorun::hlo::lapack {

// One call of a routine: its arrays, and what the names of its signature stand for.
class Arrays {
 public:
  Arrays(const HostCall& call, Bindings bindings) : call_(call), bindings_(std::move(bindings)) {}

  int64_t batch() const { return bindings_.BatchCount(); }
  int Size(std::string_view name) const { return static_cast<int>(bindings_.sizes.find(name)->second); }
  char Option(std::string_view key) const { return static_cast<char>(ConfigInteger(call_.config, key)); }
  int Integer(std::string_view key) const { return static_cast<int>(ConfigInteger(call_.config, key)); }

  // Matrix `b` of an operand, by columns.
  template <typename T>
  std::vector<T> Columns(size_t operand, int64_t b) const {
    const HostArray& array = call_.operands[operand];
    const auto [rows, columns] = Extents(array);
    const T* from = reinterpret_cast<const T*>(array.data) + b * rows * columns;
    std::vector<T> matrix(static_cast<size_t>(std::max<int64_t>(rows * columns, 1)));
    for (int64_t i = 0; i < rows; ++i) {
      for (int64_t j = 0; j < columns; ++j) matrix[static_cast<size_t>(j * rows + i)] = from[i * columns + j];
    }
    return matrix;
  }
  template <typename T>
  void SetColumns(size_t result, int64_t b, const std::vector<T>& matrix) const {
    const HostArray& array = call_.results[result];
    const auto [rows, columns] = Extents(array);
    T* to = reinterpret_cast<T*>(array.data) + b * rows * columns;
    for (int64_t i = 0; i < rows; ++i) {
      for (int64_t j = 0; j < columns; ++j) to[i * columns + j] = matrix[static_cast<size_t>(j * rows + i)];
    }
  }

  // Vector `b`: the last dimension. Never empty, so that LAPACK has an address to be given.
  template <typename T>
  std::vector<T> Vector(size_t operand, int64_t b) const {
    const HostArray& array = call_.operands[operand];
    const int64_t size = array.shape.dimensions().back();
    std::vector<T> vector(static_cast<size_t>(std::max<int64_t>(size, 1)));
    std::memcpy(vector.data(), reinterpret_cast<const T*>(array.data) + b * size,
                static_cast<size_t>(size) * sizeof(T));
    return vector;
  }
  template <typename T>
  void SetVector(size_t result, int64_t b, const std::vector<T>& vector) const {
    const HostArray& array = call_.results[result];
    const int64_t size = array.shape.dimensions().back();
    std::memcpy(reinterpret_cast<T*>(array.data) + b * size, vector.data(), static_cast<size_t>(size) * sizeof(T));
  }
  void SetScalar(size_t result, int64_t b, int value) const {
    reinterpret_cast<int32_t*>(call_.results[result].data)[b] = value;
  }

 private:
  struct RowsAndColumns {
    int64_t rows, columns;
  };
  static RowsAndColumns Extents(const HostArray& array) {
    const int64_t rank = array.shape.rank();
    return {array.shape.dimension(rank - 2), array.shape.dimension(rank - 1)};
  }

  const HostCall& call_;
  Bindings bindings_;
};

template <typename T>
bool IsFinite(const std::vector<T>& values) {
  return std::all_of(values.begin(), values.end(),
                     [](T value) { return std::isfinite(std::real(value)) && std::isfinite(std::imag(value)); });
}

template <typename T>
std::vector<T> Room(int64_t count) {
  return std::vector<T>(static_cast<size_t>(std::max<int64_t>(count, 1)));
}

// What LAPACK returns for a matrix that has a NaN.
inline constexpr int kNotFinite = -4;

// LAPACK's type that holds the absolute value of a T.
template <typename T>
using RealOf = decltype(std::abs(T()));

template <typename T>
inline constexpr bool kIsComplex = !std::is_floating_point_v<T>;

}  // namespace hlorun::hlo::lapack
