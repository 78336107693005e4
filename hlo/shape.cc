#include "hlo/shape.h"

#include <fmt/format.h>
#include <limits>

#include <algorithm>

#include "hlo/error.h"

namespace hlorun::hlo {

Layout Layout::RowMajor(int64_t rank) {
  Layout layout;
  for (int64_t i = rank - 1; i >= 0; --i) layout.minor_to_major.push_back(i);
  return layout;
}

bool Layout::IsRowMajor() const {
  for (size_t i = 0; i < minor_to_major.size(); ++i) {
    if (minor_to_major[i] != static_cast<int64_t>(minor_to_major.size() - 1 - i)) return false;
  }
  return true;
}

Shape Shape::Tuple(std::vector<Shape> elements) {
  Shape shape;
  shape.element_type_ = ElementType::kTuple;
  shape.tuple_shapes_ = std::move(elements);
  return shape;
}

void Shape::set_dynamic_dimension(int64_t i, bool dynamic) {
  if (!dynamic && dynamic_.empty()) return;
  dynamic_.resize(dimensions_.size(), false);
  dynamic_[static_cast<size_t>(i)] = dynamic;
  if (std::find(dynamic_.begin(), dynamic_.end(), true) == dynamic_.end()) dynamic_.clear();
}

bool Shape::IsStatic() const {
  return dynamic_.empty() &&
         std::all_of(tuple_shapes_.begin(), tuple_shapes_.end(), [](const Shape& s) { return s.IsStatic(); });
}

Shape Shape::WithoutLayout() const {
  Shape shape = *this;
  shape.layout_.reset();
  for (Shape& element : shape.tuple_shapes_) element = element.WithoutLayout();
  return shape;
}

Shape Shape::WithRowMajorLayout() const {
  Shape shape = *this;
  if (IsArray()) shape.layout_ = Layout::RowMajor(rank());
  for (Shape& element : shape.tuple_shapes_) element = element.WithRowMajorLayout();
  return shape;
}

int64_t Shape::ElementCount() const { return CheckedProduct(dimensions_); }

int64_t Shape::ByteSize() const {
  if (IsTuple()) {
    int64_t bytes = 0;
    for (const Shape& element : tuple_shapes_) bytes += element.ByteSize();
    return bytes;
  }
  return IsArray() ? ElementCount() * BytesOf(element_type_) : 0;
}

void CheckAddressable(const Shape& shape) {
  for (const Shape& element : shape.tuple_shapes()) CheckAddressable(element);
  for (int64_t d = 0; shape.IsArray() && d < shape.rank(); ++d) {
    if (shape.is_dynamic_dimension(d) && shape.dimension(d) > std::numeric_limits<int32_t>::max())
      Invalid("{}: a size of type s32 cannot be as large as the bound of dimension {}", shape.ToString(false), d);
  }
  int64_t bytes = 0;
  if (shape.IsArray() && __builtin_mul_overflow(shape.ElementCount(), int64_t{16}, &bytes))
    Invalid("{} is larger than any memory", shape.ToString(false));
}

Dims Shape::Strides() const {
  Dims strides(dimensions_.size(), 1);
  for (int64_t i = rank() - 2; i >= 0; --i) {
    strides[static_cast<size_t>(i)] = strides[static_cast<size_t>(i + 1)] * dimensions_[static_cast<size_t>(i + 1)];
  }
  return strides;
}

bool Shape::SameAs(const Shape& other) const {
  if (element_type_ != other.element_type_ || dimensions_ != other.dimensions_ || dynamic_ != other.dynamic_ ||
      tuple_shapes_.size() != other.tuple_shapes_.size()) {
    return false;
  }
  for (size_t i = 0; i < tuple_shapes_.size(); ++i) {
    if (!tuple_shapes_[i].SameAs(other.tuple_shapes_[i])) return false;
  }
  return true;
}

bool Shape::SameDimensions(const Shape& other) const {
  if (IsTuple() != other.IsTuple() || dimensions_ != other.dimensions_ ||
      tuple_shapes_.size() != other.tuple_shapes_.size()) {
    return false;
  }
  for (size_t i = 0; i < tuple_shapes_.size(); ++i) {
    if (!tuple_shapes_[i].SameDimensions(other.tuple_shapes_[i])) return false;
  }
  return true;
}

bool Shape::operator==(const Shape& other) const {
  return element_type_ == other.element_type_ && dimensions_ == other.dimensions_ && dynamic_ == other.dynamic_ &&
         tuple_shapes_ == other.tuple_shapes_ && layout_ == other.layout_;
}

std::string Shape::ToString(bool with_layout) const {
  if (IsTuple()) {
    std::string text = "(";
    for (size_t i = 0; i < tuple_shapes_.size(); ++i) {
      if (i > 0) text += ", ";
      if (i > 0 && i % 5 == 0) text += fmt::format("/*index={}*/", i);
      text += tuple_shapes_[i].ToString(with_layout);
    }
    return text + ")";
  }
  std::string text(ElementTypeName(element_type_));
  text += '[';
  for (size_t i = 0; i < dimensions_.size(); ++i) {
    if (i > 0) text += ',';
    if (is_dynamic_dimension(static_cast<int64_t>(i))) text += "<=";
    text += std::to_string(dimensions_[i]);
  }
  text += ']';
  if (!with_layout || !layout_) return text;
  // In XLA's order: tiles, paddings and index types, element size, memory space, and what splits or prefixes the array.
  const std::string& annotations = layout_->annotations;
  const size_t late = std::min({annotations.find("SC("), annotations.find("M("), annotations.size()});
  std::string suffix = layout_->tiling + annotations.substr(0, late);
  if (layout_->element_size_in_bits != 0) suffix += fmt::format("E({})", layout_->element_size_in_bits);
  if (layout_->memory_space != 0) suffix += fmt::format("S({})", layout_->memory_space);
  suffix += annotations.substr(late);
  if (layout_->minor_to_major.empty() && suffix.empty()) return text;
  return text + fmt::format("{{{}{}{}}}", fmt::join(layout_->minor_to_major, ","), suffix.empty() ? "" : ":", suffix);
}

namespace {

void VisitLeaves(const Shape& shape, ShapeIndex& index,
                 const std::function<void(const ShapeIndex&, const Shape&)>& visit) {
  if (!shape.IsTuple()) {
    visit(index, shape);
    return;
  }
  for (size_t i = 0; i < shape.tuple_shapes().size(); ++i) {
    index.push_back(static_cast<int64_t>(i));
    VisitLeaves(shape.tuple_shapes()[i], index, visit);
    index.pop_back();
  }
}

}  // namespace

void ForEachLeaf(const Shape& shape, const std::function<void(const ShapeIndex&, const Shape&)>& visit) {
  ShapeIndex index;
  VisitLeaves(shape, index, visit);
}

std::vector<Shape> FlattenShape(const Shape& shape) {
  std::vector<Shape> leaves;
  ForEachLeaf(shape, [&](const ShapeIndex&, const Shape& leaf) { leaves.push_back(leaf); });
  return leaves;
}

int64_t LeafCount(const Shape& shape) {
  if (!shape.IsTuple()) return 1;
  int64_t count = 0;
  for (const Shape& element : shape.tuple_shapes()) count += LeafCount(element);
  return count;
}

int64_t LeafNumber(const Shape& shape, std::span<const int64_t> index) {
  int64_t leaf = 0;
  const Shape* inner = &shape;
  for (const int64_t i : index) {
    for (int64_t before = 0; before < i; ++before) leaf += LeafCount(inner->tuple_shape(before));
    inner = &inner->tuple_shape(i);
  }
  return leaf;
}

const Shape& SubshapeAt(const Shape& shape, std::span<const int64_t> index) {
  const Shape* at = &shape;
  for (int64_t i : index) {
    HLORUN_CHECK(at->IsTuple() && i >= 0 && i < static_cast<int64_t>(at->tuple_shapes().size()));
    at = &at->tuple_shape(i);
  }
  return *at;
}

int64_t CheckedProduct(std::span<const int64_t> dimensions) {
  int64_t product = 1;
  for (int64_t d : dimensions) {
    if (__builtin_mul_overflow(product, d, &product)) {
      Invalid("the dimensions [{}] multiply to more than 2^63 - 1 elements", fmt::join(dimensions, ","));
    }
  }
  return product;
}

bool Contains(std::span<const int64_t> dimensions, int64_t d) {
  return std::find(dimensions.begin(), dimensions.end(), d) != dimensions.end();
}

bool NextIndex(std::span<int64_t> index, std::span<const int64_t> dimensions) {
  for (size_t i = index.size(); i-- > 0;) {
    if (++index[i] < dimensions[i]) return true;
    index[i] = 0;
  }
  return false;
}

}  // namespace hlorun::hlo
