#include "hlo/text/attribute_reader.h"

#include <algorithm>

#include "hlo/text/attribute_fields.h"
#include "hlo/text/shape_reader.h"

namespace hlorun::hlo {

AttributeList::AttributeList(Lexer& lexer) : lexer_(lexer) {
  while (lexer.Accept(',')) {
    const size_t offset = lexer.offset();
    Entry entry{lexer.ExpectWord("an attribute's name"), {}, 0};
    if (Find(entry.name) != nullptr) lexer.FailAt(offset, fmt::format("attribute {} is given twice", entry.name));
    lexer.Expect('=', fmt::format("'=' behind {}", entry.name));
    entry.value = lexer.RawValue(&entry.begin);
    // "mesh[...], device_ids=(...) {...}" is one value with a comma in it.
    if (entry.name == "device_ids" && !entries_.empty() && entries_.back().value.starts_with("mesh[")) {
      Entry& mesh = entries_.back();
      mesh.value = lexer.text().substr(mesh.begin, entry.begin + entry.value.size() - mesh.begin);
      continue;
    }
    entries_.push_back(entry);
  }
}

AttributeList::Entry* AttributeList::Find(std::string_view name) {
  for (Entry& entry : entries_) {
    if (entry.name == name) return &entry;
  }
  return nullptr;
}

bool AttributeList::Has(std::string_view name) const {
  return std::any_of(entries_.begin(), entries_.end(), [&](const Entry& e) { return e.name == name && !e.taken; });
}

std::optional<Lexer> AttributeList::Take(std::string_view name) {
  Entry* entry = Find(name);
  if (entry == nullptr || entry->taken) return std::nullopt;
  entry->taken = true;
  return lexer_.Within(entry->begin, entry->begin + entry->value.size());
}

std::optional<std::string_view> AttributeList::TakeRaw(std::string_view name) {
  Entry* entry = Find(name);
  if (entry == nullptr || entry->taken) return std::nullopt;
  entry->taken = true;
  return entry->value;
}

std::vector<std::pair<std::string, std::string>> AttributeList::TakeRest() {
  std::vector<std::pair<std::string, std::string>> rest;
  for (Entry& entry : entries_) {
    if (!entry.taken) rest.emplace_back(entry.name, entry.value);
    entry.taken = true;
  }
  return rest;
}

namespace {

// "1x2x3" -> "1", "2", "3"; one part at least, and none when the word is empty.
std::vector<std::string_view> SplitAt(std::string_view word, char separator) {
  std::vector<std::string_view> parts;
  if (word.empty()) return parts;
  size_t begin = 0;
  while (true) {
    const size_t end = std::min(word.find(separator, begin), word.size());
    parts.push_back(word.substr(begin, end - begin));
    if (end == word.size()) return parts;
    begin = end + 1;
  }
}

int64_t PartAsInt(const Lexer& lexer, size_t offset, std::string_view part) {
  const std::optional<int64_t> value = ParseInt(part);
  if (!value) lexer.FailAt(offset, fmt::format("expected an integer, but found '{}'", part));
  return *value;
}

// size=3x3 stride=2x2 pad=0_1x0_1 lhs_dilate=.. rhs_dilate=.. rhs_reversal=1x0
Window ReadWindow(Lexer& lexer) {
  Window window;
  const size_t start = lexer.offset();
  lexer.Expect('{', "'{' of a window");
  bool first = true;
  while (!lexer.Accept('}')) {
    const size_t offset = lexer.offset();
    const std::string_view name = lexer.ExpectWord("size, stride, pad, lhs_dilate, rhs_dilate or rhs_reversal");
    lexer.Expect('=', "'=' in a window");
    const std::vector<std::string_view> parts = SplitAt(lexer.ExpectWord("numbers joined by x"), 'x');
    if (name != "size" && first) lexer.FailAt(offset, "a window starts with its size");
    if (name == "size") window.resize(parts.size());
    first = false;
    if (parts.size() != window.size()) {
      lexer.FailAt(
          offset, fmt::format("{} has {} dimensions, but the window's size has {}", name, parts.size(), window.size()));
    }
    for (size_t i = 0; i < parts.size(); ++i) {
      WindowDimension& dimension = window[i];
      if (name == "pad") {
        const std::vector<std::string_view> ends = SplitAt(parts[i], '_');
        if (ends.size() != 2) lexer.FailAt(offset, fmt::format("expected low_high, but found '{}'", parts[i]));
        dimension.padding_low = PartAsInt(lexer, offset, ends[0]);
        dimension.padding_high = PartAsInt(lexer, offset, ends[1]);
        continue;
      }
      const int64_t value = PartAsInt(lexer, offset, parts[i]);
      if (name == "size") {
        dimension.size = value;
      } else if (name == "stride") {
        dimension.stride = value;
      } else if (name == "lhs_dilate") {
        dimension.base_dilation = value;
      } else if (name == "rhs_dilate") {
        dimension.window_dilation = value;
      } else if (name == "rhs_reversal") {
        dimension.window_reversal = value != 0;
      } else {
        lexer.FailAt(offset, fmt::format("a window has no field '{}'", name));
      }
    }
    lexer.Accept(',');
  }
  for (const WindowDimension& d : window) {
    if (d.size < 1 || d.stride < 1 || d.base_dilation < 1 || d.window_dilation < 1) {
      lexer.FailAt(start, "a window's sizes, strides and dilations must be positive");
    }
  }
  return window;
}

// One of the three parts of b01f_01io->b01f: which dimension each letter and digit stands at.
void ReadLabels(const Lexer& lexer, size_t offset, std::string_view labels, char first, char second, int64_t& first_at,
                int64_t& second_at, std::vector<int64_t>& spatial) {
  if (labels.size() < 2)
    lexer.FailAt(offset, fmt::format("expected labels such as b01f_01io->b01f, but found '{}'", labels));
  first_at = second_at = -1;
  spatial.assign(labels.size() - 2, -1);
  for (size_t i = 0; i < labels.size(); ++i) {
    const char c = labels[i];
    int64_t* slot = c == first ? &first_at : c == second ? &second_at : nullptr;
    if (slot == nullptr && c >= '0' && static_cast<size_t>(c - '0') < spatial.size())
      slot = &spatial[static_cast<size_t>(c - '0')];
    if (slot == nullptr || *slot != -1) {
      lexer.FailAt(offset, fmt::format("'{}' in '{}' is not {}, {} or the number of a spatial dimension, each once", c,
                                       labels, first, second));
    }
    *slot = static_cast<int64_t>(i);
  }
}

attr::ConvolutionDimensions ReadConvolutionLabels(Lexer& lexer) {
  const size_t offset = lexer.offset();
  const std::vector<std::string_view> sides = SplitAt(lexer.ExpectWord("labels such as b01f_01io->b01f"), '_');
  if (sides.size() != 2) lexer.FailAt(offset, "expected labels such as b01f_01io->b01f");
  lexer.ExpectKind(TokenKind::kArrow, "'->' in dim_labels");
  const std::string_view output = lexer.ExpectWord("the output's labels");
  attr::ConvolutionDimensions d;
  ReadLabels(lexer, offset, sides[0], 'b', 'f', d.input_batch, d.input_feature, d.input_spatial);
  ReadLabels(lexer, offset, sides[1], 'i', 'o', d.kernel_input_feature, d.kernel_output_feature, d.kernel_spatial);
  ReadLabels(lexer, offset, output, 'b', 'f', d.output_batch, d.output_feature, d.output_spatial);
  if (d.input_spatial.size() != d.kernel_spatial.size() || d.input_spatial.size() != d.output_spatial.size()) {
    lexer.FailAt(offset, "the three parts of dim_labels have different numbers of spatial dimensions");
  }
  return d;
}

template <typename Names, typename Enum>
void ReadEnum(Lexer& lexer, const Names& names, Enum& value) {
  const size_t offset = lexer.offset();
  const std::string_view word = lexer.ExpectWord("a name");
  for (const auto& candidate : names) {
    if (candidate.name == word) {
      value = candidate.value;
      return;
    }
  }
  std::string known;
  for (const auto& candidate : names) known += fmt::format("{}{}", known.empty() ? "" : ", ", candidate.name);
  lexer.FailAt(offset, fmt::format("expected one of {}, but found '{}'", known, word));
}

// The visitor of attribute_fields.h that reads.
class PayloadReader {
 public:
  static constexpr bool kReading = true;
  const Opcode opcode;

  PayloadReader(Opcode op, AttributeList& attributes, const Lexer& lexer, size_t offset, ElidedValues* elided)
      : opcode(op), attributes_(attributes), lexer_(lexer), offset_(offset), elided_(elided) {}

  void Int(std::string_view name, int64_t& value) {
    Required(name, [&](Lexer& in) { value = in.ExpectInt("an integer"); });
  }
  void OptionalInt(std::string_view name, int64_t& value, int64_t) {
    Optional(name, [&](Lexer& in) { value = in.ExpectInt("an integer"); });
  }
  void MaybeInt(std::string_view name, std::optional<int64_t>& value) {
    Optional(name, [&](Lexer& in) { value = in.ExpectInt("an integer"); });
  }
  void Single(std::string_view name, int64_t& value) {
    Required(name, [&](Lexer& in) { value = ReadSingle(in, name); });
  }
  void MaybeSingle(std::string_view name, std::optional<int64_t>& value) {
    const bool needed =
        opcode == Opcode::kAllGather || opcode == Opcode::kAllGatherStart || opcode == Opcode::kReduceScatter;
    if (needed && !attributes_.Has(name)) FailMissing(name);
    Optional(name, [&](Lexer& in) { value = ReadSingle(in, name); });
  }
  void Ints(std::string_view name, std::vector<int64_t>& values) {
    Required(name, [&](Lexer& in) { values = ReadInts(in, "integers in braces"); });
  }
  void OptionalInts(std::string_view name, std::vector<int64_t>& values) {
    Optional(name, [&](Lexer& in) { values = ReadInts(in, "integers in braces"); });
  }
  void DefaultInts(std::string_view name, std::vector<int64_t>& values) { OptionalInts(name, values); }
  void ScalarList(std::string_view name, std::vector<int64_t>& values) {
    Required(name, [&](Lexer& in) { values = {in.ExpectInt("an integer")}; });
  }
  void OptionalIntLists(std::string_view name, std::vector<std::vector<int64_t>>& lists) {
    Optional(name, [&](Lexer& in) { lists = ReadIntLists(in); });
  }
  void Pairs(std::string_view name, std::vector<std::pair<int64_t, int64_t>>& pairs) {
    Required(name, [&](Lexer& in) {
      const size_t offset = in.offset();
      for (const std::vector<int64_t>& pair : ReadIntLists(in)) {
        if (pair.size() != 2)
          in.FailAt(offset, fmt::format("{} holds pairs, but one has {} numbers", name, pair.size()));
        pairs.emplace_back(pair[0], pair[1]);
      }
    });
  }
  void Flag(std::string_view name, bool& value) {
    value = false;
    DefaultBool(name, value);
  }
  void DefaultBool(std::string_view name, bool& value) {
    Optional(name, [&](Lexer& in) { value = in.ExpectBool("true or false"); });
  }
  void OptionalBools(std::string_view name, std::vector<bool>& values) {
    Optional(name, [&](Lexer& in) {
      in.Expect('{', "'{'");
      while (!in.Is('}')) {
        values.push_back(in.ExpectBool("true or false"));
        if (!in.Accept(',')) break;
      }
      in.Expect('}', "',' or '}'");
    });
  }
  void Float(std::string_view name, float& value) {
    Required(name, [&](Lexer& in) { value = static_cast<float>(in.ExpectDouble("a number")); });
  }
  void Text(std::string_view name, std::string& value) {
    Required(name, [&](Lexer& in) { value = in.ExpectString("a string"); });
  }
  void OptionalText(std::string_view name, std::string& value) {
    Optional(name, [&](Lexer& in) { value = in.ExpectString("a string"); });
  }
  void OptionalWord(std::string_view name, std::string& value) {
    Optional(name, [&](Lexer& in) { value = in.ExpectWord("a word"); });
  }
  template <typename Names, typename EnumType>
  void Enum(std::string_view name, const Names& names, EnumType& value) {
    Required(name, [&](Lexer& in) { ReadEnum(in, names, value); });
  }
  template <typename Names, typename EnumType>
  void DefaultEnum(std::string_view name, const Names& names, EnumType& value) {
    Optional(name, [&](Lexer& in) { ReadEnum(in, names, value); });
  }
  template <typename Names, typename EnumType>
  void OptionalEnum(std::string_view name, const Names& names, std::optional<EnumType>& value) {
    Optional(name, [&](Lexer& in) { ReadEnum(in, names, value.emplace()); });
  }
  void SliceRanges(std::string_view name, attr::Slice& slice) {
    Required(name, [&](Lexer& in) {
      in.Expect('{', "'{' of slice ranges");
      while (!in.Accept('}')) {
        if (!slice.starts.empty()) in.Expect(',', "',' or '}' between slice ranges");
        in.Expect('[', "'[' of a slice range");
        slice.starts.push_back(in.ExpectInt("where the slice starts"));
        in.Expect(':', "':' in a slice range");
        slice.limits.push_back(in.ExpectInt("where the slice ends"));
        slice.strides.push_back(in.Accept(':') ? in.ExpectInt("the slice's stride") : 1);
        in.Expect(']', "']' of a slice range");
      }
    });
  }
  void PaddingConfig(std::string_view name, std::vector<PaddingDimension>& padding) {
    Required(name, [&](Lexer& in) {
      if (in.AtEnd()) return;  // of a scalar
      const size_t offset = in.offset();
      for (std::string_view dimension : SplitAt(in.ExpectWord("paddings such as 0_1x0_1_2"), 'x')) {
        const std::vector<std::string_view> parts = SplitAt(dimension, '_');
        if (parts.size() != 2 && parts.size() != 3) {
          in.FailAt(offset, fmt::format("expected low_high or low_high_interior, but found '{}'", dimension));
        }
        padding.push_back({PartAsInt(in, offset, parts[0]), PartAsInt(in, offset, parts[1]),
                           parts.size() == 3 ? PartAsInt(in, offset, parts[2]) : 0});
      }
    });
  }
  void WindowDims(std::string_view name, Window& window) {
    Optional(name, [&](Lexer& in) { window = ReadWindow(in); });
  }
  void OptionalWindow(std::string_view name, std::optional<Window>& window) {
    Optional(name, [&](Lexer& in) { window = ReadWindow(in); });
  }
  void ConvolutionLabels(std::string_view name, attr::ConvolutionDimensions& dimensions) {
    Required(name, [&](Lexer& in) { dimensions = ReadConvolutionLabels(in); });
  }
  void OptionalLabels(std::string_view name, std::optional<attr::ConvolutionDimensions>& dimensions) {
    Optional(name, [&](Lexer& in) { dimensions = ReadConvolutionLabels(in); });
  }
  void Precisions(std::string_view name, std::vector<Precision>& precisions) {
    Optional(name, [&](Lexer& in) {
      in.Expect('{', "'{' of precisions");
      while (!in.Accept('}')) {
        if (!precisions.empty()) in.Expect(',', "',' or '}'");
        ReadEnum(in, kPrecisionNames, precisions.emplace_back());
      }
    });
  }
  void Groups(std::string_view name, ReplicaGroups& groups) {
    Optional(name, [&](Lexer& in) { groups = ReadReplicaGroups(in); });
  }
  void Aliasing(std::string_view name, std::vector<std::pair<ShapeIndex, std::pair<int64_t, ShapeIndex>>>& aliasing) {
    Optional(name, [&](Lexer& in) { aliasing = ReadAliasing(in); });
  }
  void OperandLayouts(std::string_view name, bool& constrained, std::vector<Shape>& layouts) {
    Optional(name, [&](Lexer& in) {
      constrained = true;
      in.Expect('{', "'{' of the operands' layouts");
      while (!in.Accept('}')) {
        if (!layouts.empty()) in.Expect(',', "',' or '}' between shapes");
        layouts.push_back(ReadShape(in));
      }
    });
  }
  void OptionalShape(std::string_view name, std::optional<Shape>& shape) {
    Optional(name, [&](Lexer& in) { shape = ReadShape(in); });
  }
  void OptionalLiteral(std::string_view name, std::optional<Literal>& literal) {
    Optional(name, [&](Lexer& in) {
      const Shape shape = ReadShape(in);
      literal = ReadLiteral(in, shape, elided_);
    });
  }
  void Raw(std::string_view name, std::string& text) {
    const std::optional<std::string_view> value = attributes_.TakeRaw(name);
    if (!value) FailMissing(name);
    text = *value;
  }

 private:
  [[noreturn]] void FailMissing(std::string_view name) {
    lexer_.FailAt(offset_, fmt::format("{} needs the attribute {}=", OpcodeName(opcode), name));
  }
  template <typename Read>
  bool Optional(std::string_view name, const Read& read) {
    std::optional<Lexer> value = attributes_.Take(name);
    if (!value) return false;
    read(*value);
    value->ExpectEnd(fmt::format("nothing more in {}", name));
    return true;
  }
  template <typename Read>
  void Required(std::string_view name, const Read& read) {
    if (!Optional(name, read)) FailMissing(name);
  }
  static int64_t ReadSingle(Lexer& in, std::string_view name) {
    const size_t offset = in.offset();
    const std::vector<int64_t> values = ReadInts(in, "an integer in braces");
    if (values.size() != 1)
      in.FailAt(offset, fmt::format("{} takes exactly one dimension here, but has {}", name, values.size()));
    return values[0];
  }
  static std::vector<std::vector<int64_t>> ReadIntLists(Lexer& in) {
    std::vector<std::vector<int64_t>> lists;
    in.Expect('{', "lists of integers in braces");
    while (!in.Accept('}')) {
      if (!lists.empty()) in.Expect(',', "',' or '}' between lists");
      lists.push_back(ReadInts(in, "integers in braces"));
    }
    return lists;
  }

  AttributeList& attributes_;
  const Lexer& lexer_;
  size_t offset_;
  ElidedValues* elided_;
};

// A default payload for each opcode, from the opcode table.
Attributes MakePayload(Opcode opcode) {
  using Maker = Attributes (*)();
  static constexpr Maker kMakers[] = {
#define HLO_PAYLOAD_MAKER(enumerator, name, arity, traits, payload) [] { return Attributes(attr::payload{}); },
      HLO_OPCODES(HLO_PAYLOAD_MAKER)
#undef HLO_PAYLOAD_MAKER
  };
  return kMakers[static_cast<size_t>(opcode)]();
}

}  // namespace

Attributes ReadPayload(Opcode opcode, AttributeList& attributes, const Lexer& lexer, size_t offset,
                       ElidedValues* elided) {
  Attributes payload = MakePayload(opcode);
  PayloadReader reader(opcode, attributes, lexer, offset, elided);
  std::visit([&](auto& fields) { Fields(reader, fields); }, payload);
  return payload;
}

std::vector<std::pair<ShapeIndex, std::pair<int64_t, ShapeIndex>>> ReadAliasing(Lexer& lexer) {
  std::vector<std::pair<ShapeIndex, std::pair<int64_t, ShapeIndex>>> entries;
  lexer.Expect('{', "'{' of aliasing pairs");
  while (!lexer.Accept('}')) {
    if (!entries.empty()) lexer.Expect(',', "',' or '}' between aliasing pairs");
    auto& [output, operand] = entries.emplace_back();
    output = ReadInts(lexer, "the output's index in braces");
    lexer.Expect(':', "':' in an aliasing pair");
    lexer.Expect('(', "'(' in an aliasing pair");
    operand.first = lexer.ExpectInt("an operand's number");
    if (lexer.Accept(',')) operand.second = ReadInts(lexer, "the operand's index in braces");
    lexer.Expect(')', "')' in an aliasing pair");
  }
  return entries;
}

}  // namespace hlorun::hlo
