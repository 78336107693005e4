// Shapes and layouts: value types.
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "hlo/element_type.h"

namespace hlorun::hlo {

using Dims = std::vector<int64_t>;

// How an array lies in memory. minor_to_major[0] is the dimension whose stride is 1. What hlorun does not use (tiles,
// memory space) is kept so that it prints as it was read.
struct Layout {
  std::vector<int64_t> minor_to_major;
  std::string tiling;       // "T(8,128)(2,1)" as in text, without the colon; empty for none
  std::string annotations;  // whatever else follows in the text: "E(4)", "SC(...)", ...; empty for none
  int64_t memory_space = 0;
  int64_t element_size_in_bits = 0;  // 0: the type's own

  static Layout RowMajor(int64_t rank);
  bool IsRowMajor() const;  // dimension order only
  bool operator==(const Layout&) const = default;
};

// Element type and dimensions of an array, or the shapes of a tuple's elements. A dimension that is dynamic holds its
// upper bound.
class Shape {
 public:
  Shape() = default;
  Shape(ElementType type, Dims dimensions) : element_type_(type), dimensions_(std::move(dimensions)) {}
  static Shape Tuple(std::vector<Shape> elements);
  static Shape Token() { return Shape(ElementType::kToken, {}); }
  static Shape Scalar(ElementType type) { return Shape(type, {}); }

  ElementType element_type() const { return element_type_; }
  void set_element_type(ElementType type) { element_type_ = type; }
  bool IsTuple() const { return element_type_ == ElementType::kTuple; }
  bool IsToken() const { return element_type_ == ElementType::kToken; }
  bool IsArray() const { return IsArrayType(element_type_); }
  bool IsScalar() const { return IsArray() && dimensions_.empty(); }

  int64_t rank() const { return static_cast<int64_t>(dimensions_.size()); }
  const Dims& dimensions() const { return dimensions_; }
  Dims& mutable_dimensions() { return dimensions_; }
  int64_t dimension(int64_t i) const { return dimensions_[static_cast<size_t>(i)]; }

  bool is_dynamic_dimension(int64_t i) const {
    return static_cast<size_t>(i) < dynamic_.size() && dynamic_[static_cast<size_t>(i)];
  }
  void set_dynamic_dimension(int64_t i, bool dynamic);
  bool IsStatic() const;  // no dimension, of any leaf, is dynamic

  const std::vector<Shape>& tuple_shapes() const { return tuple_shapes_; }
  std::vector<Shape>& mutable_tuple_shapes() { return tuple_shapes_; }
  const Shape& tuple_shape(int64_t i) const { return tuple_shapes_[static_cast<size_t>(i)]; }

  bool has_layout() const { return layout_.has_value(); }
  const std::optional<Layout>& layout() const { return layout_; }
  void set_layout(std::optional<Layout> layout) { layout_ = std::move(layout); }
  // Drops the layouts of all leaves.
  Shape WithoutLayout() const;
  // Row-major layouts on all leaves.
  Shape WithRowMajorLayout() const;

  int64_t ElementCount() const;  // of an array; the bound's where dynamic
  int64_t ByteSize() const;      // of all leaves, one byte at least for each element of a narrow type
  // Row-major strides in elements.
  Dims Strides() const;

  // Equal up to layouts.
  bool SameAs(const Shape& other) const;
  // Same dimensions (and tuple structure), whatever the element types and layouts.
  bool SameDimensions(const Shape& other) const;
  bool operator==(const Shape& other) const;  // layouts too

  std::string ToString(bool with_layout = true) const;  // as in HLO text: "f32[2,<=3]{1,0}"

 private:
  ElementType element_type_ = ElementType::kInvalid;
  Dims dimensions_;
  std::vector<bool> dynamic_;  // empty: all static
  std::vector<Shape> tuple_shapes_;
  std::optional<Layout> layout_;
};

// A path into a tuple shape: {} is the shape itself, {1,0} element 0 of element 1.
using ShapeIndex = std::vector<int64_t>;

// Throws Error kInvalidArgument for arrays of more elements than any memory holds, so that sizes in bytes fit 64 bits,
// and for bounds that a size, which is an s32, cannot reach.
void CheckAddressable(const Shape& shape);

// Visits leaves (arrays and tokens) in flattened order, which is the order of parameters and results everywhere.
void ForEachLeaf(const Shape& shape, const std::function<void(const ShapeIndex&, const Shape&)>& visit);
std::vector<Shape> FlattenShape(const Shape& shape);
int64_t LeafCount(const Shape& shape);
// The number, among the leaves of `shape`, of the first leaf at `index`.
int64_t LeafNumber(const Shape& shape, std::span<const int64_t> index);
const Shape& SubshapeAt(const Shape& shape, std::span<const int64_t> index);

struct ProgramShape {
  std::vector<Shape> parameters;
  std::vector<std::string> parameter_names;
  Shape result;
};

// Product of dimensions; throws Error when it overflows 63 bits.
int64_t CheckedProduct(std::span<const int64_t> dimensions);
bool Contains(std::span<const int64_t> dimensions, int64_t d);

// Steps a multi-index in row-major order; false after the last. Starts from all zeros.
bool NextIndex(std::span<int64_t> index, std::span<const int64_t> dimensions);

}  // namespace hlorun::hlo
