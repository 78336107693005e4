#include "hlo/text/attribute_writer.h"

#include <fmt/format.h>

#include <algorithm>

#include "hlo/text/attribute_fields.h"
#include "hlo/text/lexer.h"
#include "hlo/text/literal_text.h"
#include "hlo/text/printer.h"

namespace hlorun::hlo {
namespace {

template <typename Names, typename Enum>
std::string_view NameOf(const Names& names, Enum value) {
  const auto it =
      std::find_if(names.begin(), names.end(), [&](const auto& candidate) { return candidate.value == value; });
  HLORUN_CHECK(it != names.end());
  return it->name;
}

// Joins what `format` gives for each dimension: "3x3".
template <typename Format>
std::string ByDimension(const Window& window, const Format& format) {
  std::string text;
  for (const WindowDimension& dimension : window) text += (text.empty() ? "" : "x") + format(dimension);
  return text;
}

std::string PrintWindow(const Window& window) {
  const auto any = [&](const auto& is_set) { return std::any_of(window.begin(), window.end(), is_set); };
  using D = WindowDimension;
  std::string text = "{size=" + ByDimension(window, [](const D& d) { return std::to_string(d.size); });
  if (any([](const D& d) { return d.stride != 1; })) {
    text += " stride=" + ByDimension(window, [](const D& d) { return std::to_string(d.stride); });
  }
  if (any([](const D& d) { return d.padding_low != 0 || d.padding_high != 0; })) {
    text +=
        " pad=" + ByDimension(window, [](const D& d) { return fmt::format("{}_{}", d.padding_low, d.padding_high); });
  }
  if (any([](const D& d) { return d.base_dilation != 1; })) {
    text += " lhs_dilate=" + ByDimension(window, [](const D& d) { return std::to_string(d.base_dilation); });
  }
  if (any([](const D& d) { return d.window_dilation != 1; })) {
    text += " rhs_dilate=" + ByDimension(window, [](const D& d) { return std::to_string(d.window_dilation); });
  }
  if (any([](const D& d) { return d.window_reversal; })) {
    text +=
        " rhs_reversal=" + ByDimension(window, [](const D& d) { return std::string(d.window_reversal ? "1" : "0"); });
  }
  return text + "}";
}

std::string PrintLabels(const attr::ConvolutionDimensions& d) {
  const auto side = [](char first, int64_t first_at, char second, int64_t second_at,
                       const std::vector<int64_t>& spatial) {
    std::string labels(spatial.size() + 2, '?');
    labels[static_cast<size_t>(first_at)] = first;
    labels[static_cast<size_t>(second_at)] = second;
    for (size_t i = 0; i < spatial.size(); ++i) labels[static_cast<size_t>(spatial[i])] = static_cast<char>('0' + i);
    return labels;
  };
  return fmt::format("{}_{}->{}", side('b', d.input_batch, 'f', d.input_feature, d.input_spatial),
                     side('i', d.kernel_input_feature, 'o', d.kernel_output_feature, d.kernel_spatial),
                     side('b', d.output_batch, 'f', d.output_feature, d.output_spatial));
}

// The visitor of attribute_fields.h that prints.
class PayloadWriter {
 public:
  static constexpr bool kReading = false;
  const Opcode opcode;
  std::string text;

  explicit PayloadWriter(Opcode op) : opcode(op) {}

  void Int(std::string_view name, int64_t value) { Add(name, std::to_string(value)); }
  void OptionalInt(std::string_view name, int64_t value, int64_t absent) {
    if (value != absent) Int(name, value);
  }
  void MaybeInt(std::string_view name, const std::optional<int64_t>& value) {
    if (value) Int(name, *value);
  }
  void Single(std::string_view name, int64_t value) { Ints(name, {value}); }
  void MaybeSingle(std::string_view name, const std::optional<int64_t>& value) {
    if (value) Single(name, *value);
  }
  void Ints(std::string_view name, const std::vector<int64_t>& values) { Add(name, PrintInts(values)); }
  void DefaultInts(std::string_view name, const std::vector<int64_t>& values) { Ints(name, values); }
  void OptionalInts(std::string_view name, const std::vector<int64_t>& values) {
    if (!values.empty()) Ints(name, values);
  }
  void ScalarList(std::string_view name, const std::vector<int64_t>& values) { Int(name, values.at(0)); }
  void OptionalIntLists(std::string_view name, const std::vector<std::vector<int64_t>>& lists) {
    if (!lists.empty()) AddList(name, lists, ",", PrintInts);
  }
  void Pairs(std::string_view name, const std::vector<std::pair<int64_t, int64_t>>& pairs) {
    AddList(name, pairs, ",", [](const auto& pair) { return fmt::format("{{{},{}}}", pair.first, pair.second); });
  }
  void Flag(std::string_view name, bool value) {
    if (value) DefaultBool(name, value);
  }
  void DefaultBool(std::string_view name, bool value) { Add(name, value ? "true" : "false"); }
  void OptionalBools(std::string_view name, const std::vector<bool>& values) {
    if (values.empty()) return;
    AddList(name, values, ",", [](bool value) { return std::string(value ? "true" : "false"); });
  }
  void Float(std::string_view name, float value) {
    Add(name, FormatReal(ElementType::kF32, static_cast<double>(value)));
  }
  void Text(std::string_view name, const std::string& value) { Add(name, '"' + Escape(value) + '"'); }
  void OptionalText(std::string_view name, const std::string& value) {
    if (!value.empty()) Text(name, value);
  }
  void OptionalWord(std::string_view name, const std::string& value) {
    if (!value.empty()) Add(name, value);
  }
  template <typename Names, typename EnumType>
  void Enum(std::string_view name, const Names& names, EnumType value) {
    Add(name, NameOf(names, value));
  }
  template <typename Names, typename EnumType>
  void DefaultEnum(std::string_view name, const Names& names, EnumType value) {
    Enum(name, names, value);
  }
  template <typename Names, typename EnumType>
  void OptionalEnum(std::string_view name, const Names& names, const std::optional<EnumType>& value) {
    if (value) Enum(name, names, *value);
  }
  void SliceRanges(std::string_view name, const attr::Slice& slice) {
    const bool strided = std::any_of(slice.strides.begin(), slice.strides.end(), [](int64_t s) { return s != 1; });
    std::string ranges;
    for (size_t i = 0; i < slice.starts.size(); ++i) {
      ranges += fmt::format("{}[{}:{}", i > 0 ? ", " : "", slice.starts[i], slice.limits[i]);
      ranges += strided ? fmt::format(":{}]", slice.strides[i]) : "]";
    }
    Add(name, "{" + ranges + "}");
  }
  void PaddingConfig(std::string_view name, const std::vector<PaddingDimension>& padding) {
    const bool interior = std::any_of(padding.begin(), padding.end(), [](const auto& p) { return p.interior != 0; });
    std::string value;
    for (const PaddingDimension& p : padding) {
      value += fmt::format("{}{}_{}", value.empty() ? "" : "x", p.low, p.high);
      if (interior) value += fmt::format("_{}", p.interior);
    }
    Add(name, value);
  }
  void WindowDims(std::string_view name, const Window& window) {
    if (!window.empty()) Add(name, PrintWindow(window));
  }
  void OptionalWindow(std::string_view name, const std::optional<Window>& window) {
    if (window) WindowDims(name, *window);
  }
  void ConvolutionLabels(std::string_view name, const attr::ConvolutionDimensions& dimensions) {
    Add(name, PrintLabels(dimensions));
  }
  void OptionalLabels(std::string_view name, const std::optional<attr::ConvolutionDimensions>& dimensions) {
    if (dimensions) ConvolutionLabels(name, *dimensions);
  }
  void Precisions(std::string_view name, const std::vector<Precision>& precisions) {
    if (precisions.empty()) return;
    AddList(name, precisions, ",", [](Precision p) { return std::string(NameOf(kPrecisionNames, p)); });
  }
  void Groups(std::string_view name, const ReplicaGroups& groups) { Add(name, PrintReplicaGroups(groups)); }
  void Aliasing(std::string_view name,
                const std::vector<std::pair<ShapeIndex, std::pair<int64_t, ShapeIndex>>>& aliasing) {
    if (aliasing.empty()) return;
    AddList(name, aliasing, ", ", [](const auto& entry) {
      return fmt::format("{}: ({}, {})", PrintInts(entry.first), entry.second.first, PrintInts(entry.second.second));
    });
  }
  void OperandLayouts(std::string_view name, bool constrained, const std::vector<Shape>& layouts) {
    if (constrained) AddList(name, layouts, ", ", [](const Shape& shape) { return shape.ToString(); });
  }
  void OptionalShape(std::string_view name, const std::optional<Shape>& shape) {
    if (shape) Add(name, shape->ToString());
  }
  void OptionalLiteral(std::string_view name, const std::optional<Literal>& literal) {
    if (literal) Add(name, literal->shape().ToString() + " " + PrintLiteral(*literal));
  }
  void Raw(std::string_view name, const std::string& value) { Add(name, value); }

 private:
  void Add(std::string_view name, std::string_view value) { text += fmt::format(", {}={}", name, value); }
  template <typename List, typename Format>
  void AddList(std::string_view name, const List& list, std::string_view separator, const Format& format) {
    std::string body;
    bool first = true;
    for (const auto& element : list) {
      if (!first) body += separator;
      first = false;
      body += format(element);
    }
    Add(name, "{" + body + "}");
  }
};

}  // namespace

std::string PrintPayload(const Instruction& instruction) {
  PayloadWriter writer(instruction.opcode());
  std::visit([&](const auto& fields) { Fields(writer, fields); }, instruction.attributes());
  return std::move(writer.text);
}

std::string PrintReplicaGroups(const ReplicaGroups& groups) {
  if (!groups.mesh_form.empty()) return groups.mesh_form;
  if (groups.group_count > 0) {
    std::string text =
        fmt::format("[{},{}]<=[{}]", groups.group_count, groups.group_size, fmt::join(groups.reshape_dims, ","));
    if (!groups.transpose_permutation.empty())
      text += fmt::format("T({})", fmt::join(groups.transpose_permutation, ","));
    return text;
  }
  std::string text = "{";
  for (const auto& group : groups.groups) text += (text.size() > 1 ? "," : "") + PrintInts(group);
  return text + "}";
}

std::string PrintInts(const std::vector<int64_t>& values) { return fmt::format("{{{}}}", fmt::join(values, ",")); }

}  // namespace hlorun::hlo
