#include "hlo/proto/shape_proto.h"

#include <algorithm>
#include <limits>

#include "hlo/error.h"
#include "hlo/text/lexer.h"

namespace hlorun::hlo {
namespace {

constexpr int kMaxRank = 256;
// XLA's mark for "combined with the next dimension"; prints as '*'.
constexpr int64_t kCombineDimension = std::numeric_limits<int64_t>::min();

ElementType ElementTypeFromProto(proto::PrimitiveType type) {
  if (type == proto::PRIMITIVE_TYPE_INVALID || !proto::PrimitiveType_IsValid(type)) {
    Invalid("element type {} is not known to hlorun", static_cast<int>(type));
  }
  return static_cast<ElementType>(type);
}

std::string TilingText(const proto::LayoutProto& message) {
  std::string text;
  for (const proto::TileProto& tile : message.tiles()) {
    std::string dims;
    for (int64_t d : tile.dimensions()) {
      dims += fmt::format("{}{}", dims.empty() ? "" : ",", d == kCombineDimension ? "*" : std::to_string(d));
    }
    text += fmt::format("{}({})", text.empty() ? "T" : "", dims);
  }
  return text;
}

std::string AnnotationsText(const proto::LayoutProto& message) {
  std::string text;
  if (message.tail_padding_alignment_in_elements() > 1) {
    text += fmt::format("L({})", message.tail_padding_alignment_in_elements());
  }
  if (message.index_primitive_type() != 0) {
    text += fmt::format("#({})", ElementTypeName(ElementTypeFromProto(message.index_primitive_type())));
  }
  if (message.pointer_primitive_type() != 0) {
    text += fmt::format("*({})", ElementTypeName(ElementTypeFromProto(message.pointer_primitive_type())));
  }
  for (int i = 0; i < message.split_configs_size(); ++i) {
    const proto::SplitConfigProto& split = message.split_configs(i);
    text += fmt::format("{}({}:{})", i == 0 ? "SC" : "", split.dimension(), fmt::join(split.split_indices(), ","));
  }
  if (message.dynamic_shape_metadata_prefix_bytes() != 0) {
    text += fmt::format("M({})", message.dynamic_shape_metadata_prefix_bytes());
  }
  return text;
}

Layout LayoutFromProto(const proto::LayoutProto& message, int64_t rank) {
  Layout layout;
  layout.minor_to_major = ToVector(message.minor_to_major());
  std::vector<int64_t> sorted = layout.minor_to_major;
  std::sort(sorted.begin(), sorted.end());
  bool permutation = static_cast<int64_t>(sorted.size()) == rank;
  for (int64_t d = 0; permutation && d < rank; ++d) permutation = sorted[static_cast<size_t>(d)] == d;
  if (!permutation) {
    Invalid("the layout {{{}}} is no permutation of the {} dimensions of its shape",
            fmt::join(layout.minor_to_major, ","), rank);
  }
  layout.tiling = TilingText(message);
  layout.annotations = AnnotationsText(message);
  layout.memory_space = message.memory_space();
  layout.element_size_in_bits = message.element_size_in_bits();
  return layout;
}

// "(8,128)(2,1)" or one "(4)": the groups' numbers.
std::vector<std::vector<int64_t>> ReadGroups(Lexer& lexer) {
  std::vector<std::vector<int64_t>> groups;
  while (lexer.Accept('(')) {
    std::vector<int64_t>& group = groups.emplace_back();
    while (!lexer.Accept(')')) {
      group.push_back(lexer.Accept('*') ? kCombineDimension : lexer.ExpectInt("a number in a layout"));
      if (!lexer.Accept(',') && !lexer.Accept(':') && !lexer.Is(')')) lexer.FailExpected("',' or ')' in a layout");
    }
  }
  return groups;
}

void TilingToProto(const std::string& tiling, proto::LayoutProto* message) {
  if (tiling.empty()) return;
  Lexer lexer(tiling, "<layout>");
  lexer.AcceptWord("T");
  for (const std::vector<int64_t>& tile : ReadGroups(lexer)) Assign(tile, message->add_tiles()->mutable_dimensions());
}

void AnnotationToProto(const std::string& name, Lexer& lexer, proto::LayoutProto* message) {
  if (name == "#" || name == "*") {
    lexer.Expect('(', "'(' in a layout");
    const std::optional<ElementType> type = ElementTypeFromName(lexer.ExpectWord("an element type"));
    if (!type) lexer.FailHere("expected an element type in a layout");
    lexer.Expect(')', "')' in a layout");
    const auto value = static_cast<proto::PrimitiveType>(*type);
    name == "#" ? message->set_index_primitive_type(value) : message->set_pointer_primitive_type(value);
    return;
  }
  const std::vector<std::vector<int64_t>> groups = ReadGroups(lexer);
  if (groups.empty() || groups[0].empty()) lexer.FailExpected("a number in a layout");
  if (name == "L") {
    message->set_tail_padding_alignment_in_elements(groups[0][0]);
  } else if (name == "M") {
    message->set_dynamic_shape_metadata_prefix_bytes(groups[0][0]);
  } else if (name == "SC") {
    for (const std::vector<int64_t>& group : groups) {
      proto::SplitConfigProto* split = message->add_split_configs();
      if (group.empty()) continue;
      split->set_dimension(group[0]);
      Assign(std::vector<int64_t>(group.begin() + 1, group.end()), split->mutable_split_indices());
    }
  } else {
    lexer.FailHere(fmt::format("the layout's annotation {} has no binary form", name));
  }
}

void LayoutToProto(const Layout& layout, proto::LayoutProto* message) {
  Assign(layout.minor_to_major, message->mutable_minor_to_major());
  message->set_memory_space(layout.memory_space);
  message->set_element_size_in_bits(layout.element_size_in_bits);
  message->set_tail_padding_alignment_in_elements(1);
  TilingToProto(layout.tiling, message);
  if (layout.annotations.empty()) return;
  Lexer lexer(layout.annotations, "<layout>");
  while (!lexer.AtEnd()) {
    const std::string name(lexer.Next().text);
    AnnotationToProto(name, lexer, message);
  }
}

Shape ArrayFromProto(const proto::ShapeProto& message, ElementType type) {
  if (message.dimensions_size() > kMaxRank) {
    Invalid("a shape has {} dimensions; hlorun takes {} at most", message.dimensions_size(), kMaxRank);
  }
  Shape shape(type, ToVector(message.dimensions()));
  for (int64_t d : shape.dimensions()) {
    if (d == std::numeric_limits<int64_t>::min())
      Invalid("a dynamic dimension has no bound; export the module with one");
    if (d < 0) Invalid("a shape has the negative dimension {}", d);
  }
  CheckAddressable(shape);
  if (message.is_dynamic_dimension_size() > message.dimensions_size()) {
    Invalid("a shape has {} dynamic flags for {} dimensions", message.is_dynamic_dimension_size(),
            message.dimensions_size());
  }
  for (int i = 0; i < message.is_dynamic_dimension_size(); ++i) {
    if (message.is_dynamic_dimension(i)) shape.set_dynamic_dimension(i, true);
  }
  if (message.has_layout() && IsArrayType(type)) {
    Layout layout = LayoutFromProto(message.layout(), shape.rank());
    if (!(layout == Layout{})) shape.set_layout(std::move(layout));
  }
  return shape;
}

}  // namespace

Shape ShapeFromProto(const proto::ShapeProto& message) {
  const ElementType type = ElementTypeFromProto(message.element_type());
  if (type != ElementType::kTuple) return ArrayFromProto(message, type);
  std::vector<Shape> elements;
  elements.reserve(static_cast<size_t>(message.tuple_shapes_size()));
  for (const proto::ShapeProto& element : message.tuple_shapes()) elements.push_back(ShapeFromProto(element));
  return Shape::Tuple(std::move(elements));
}

void ShapeToProto(const Shape& shape, proto::ShapeProto* message) {
  message->set_element_type(static_cast<proto::PrimitiveType>(shape.element_type()));
  if (shape.IsTuple()) {
    for (const Shape& element : shape.tuple_shapes()) ShapeToProto(element, message->add_tuple_shapes());
    return;
  }
  if (!shape.IsArray()) return;
  Assign(shape.dimensions(), message->mutable_dimensions());
  for (int64_t d = 0; d < shape.rank(); ++d) message->add_is_dynamic_dimension(shape.is_dynamic_dimension(d));
  if (shape.has_layout()) {
    LayoutToProto(*shape.layout(), message->mutable_layout());
  } else if (shape.rank() == 0) {
    LayoutToProto(Layout{}, message->mutable_layout());
  }
}

ProgramShape ProgramShapeFromProto(const proto::ProgramShapeProto& message) {
  ProgramShape shape;
  for (const proto::ShapeProto& parameter : message.parameters()) shape.parameters.push_back(ShapeFromProto(parameter));
  shape.parameter_names.assign(message.parameter_names().begin(), message.parameter_names().end());
  shape.result = ShapeFromProto(message.result());
  return shape;
}

void ProgramShapeToProto(const ProgramShape& shape, proto::ProgramShapeProto* message) {
  for (const Shape& parameter : shape.parameters) ShapeToProto(parameter, message->add_parameters());
  for (const std::string& name : shape.parameter_names) message->add_parameter_names(name);
  ShapeToProto(shape.result, message->mutable_result());
}

}  // namespace hlorun::hlo
