// Literal: a host array (or tuple of arrays) with its shape.
//
// Elements lie row-major whatever the shape's layout says; types narrower than a byte take one byte an element; pred is
// one byte, 0 or 1. Storage is shared between copies until one of them asks for mutable_data(), so copies are cheap.
// Not synchronised: concurrent readers are fine, a writer needs the literal for itself.
#pragma once

#include <complex>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "hlo/element_type.h"
#include "hlo/error.h"
#include "hlo/shape.h"

namespace hlorun::hlo {

class Literal {
 public:
  Literal() = default;
  // Zero-filled.
  explicit Literal(const Shape& shape);
  static Literal Tuple(std::vector<Literal> elements);
  // Wraps memory that `owner` keeps alive; never written through (mutable_data() copies first).
  static Literal View(const Shape& shape, const void* data, std::shared_ptr<const void> owner);
  template <typename T>
  static Literal Scalar(ElementType type, T value);

  const Shape& shape() const { return shape_; }
  // Replaces layout and dynamic flags, or reinterprets dimensions of the same element count and byte size.
  void set_shape(const Shape& shape);
  ElementType element_type() const { return shape_.element_type(); }
  int64_t ElementCount() const { return shape_.ElementCount(); }
  int64_t ByteSize() const { return shape_.ByteSize(); }

  const std::byte* data() const { return data_.get(); }
  std::byte* mutable_data();  // makes the storage unique first
  template <typename T>
  std::span<const T> values() const {
    return {reinterpret_cast<const T*>(data()), static_cast<size_t>(ElementCount())};
  }
  template <typename T>
  std::span<T> mutable_values() {
    return {reinterpret_cast<T*>(mutable_data()), static_cast<size_t>(ElementCount())};
  }

  const std::vector<Literal>& elements() const { return elements_; }  // of a tuple
  std::vector<Literal>& mutable_elements() { return elements_; }

  // The element at a row-major linear index, converted; for code where speed does not matter.
  double GetDouble(int64_t linear) const;                 // real types, pred as 0 or 1
  std::complex<double> GetComplex(int64_t linear) const;  // every array type
  int64_t GetInt(int64_t linear) const;                   // integer types and pred; u64 wraps
  void SetDouble(int64_t linear, double value);           // rounds to the type (nearest even; integers truncate)
  void SetComplex(int64_t linear, std::complex<double> value);
  void SetInt(int64_t linear, int64_t value);  // wraps to the type

  // Bitwise equality of element type, dimensions and contents; layouts are ignored.
  bool operator==(const Literal& other) const;
  // True when every element has the same bits as the first.
  bool IsAllSame() const;
  size_t Hash() const;

 private:
  Shape shape_;
  std::shared_ptr<std::byte> data_;
  bool shared_view_ = false;
  std::vector<Literal> elements_;
};

template <typename T>
Literal Literal::Scalar(ElementType type, T value) {
  Literal literal{Shape::Scalar(type)};
  if constexpr (std::is_integral_v<T>) {
    if (IsComplex(type) || IsFloating(type)) {
      literal.SetComplex(0, static_cast<double>(value));
    } else {
      literal.SetInt(0, static_cast<int64_t>(value));
    }
  } else {
    literal.SetComplex(0, value);
  }
  return literal;
}

}  // namespace hlorun::hlo
