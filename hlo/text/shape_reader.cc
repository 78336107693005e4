#include "hlo/text/shape_reader.h"

#include <algorithm>

#include "hlo/iota_order.h"
#include "hlo/text/mesh_groups.h"
#include "hlo/text/parser.h"

namespace hlorun::hlo {
namespace {

constexpr int kMaxNesting = 200;  // of tuples; deeper input is an error instead of an exhausted stack
constexpr int64_t kMaxRank = 256;

// Tiles, memory space and annotations: the part of a layout behind the colon, such as T(8,128)(2,1)E(4)S(5).
void ReadLayoutSuffix(Lexer& lexer, Layout& layout) {
  std::string* part = nullptr;
  while (!lexer.Is('}')) {
    std::string name;
    if (!lexer.Is('(')) {
      const bool is_name = lexer.Peek().kind == TokenKind::kWord || lexer.Is('#') || lexer.Is('*');
      if (!is_name) lexer.FailExpected("a layout's tiles, memory space or '}'");
      name = lexer.Next().text;
    }
    const size_t start = lexer.offset();
    const std::string_view group = lexer.ExpectBalanced("'(' in a layout");
    if (name == "S" || name == "E") {
      const std::optional<int64_t> value = ParseInt(group.substr(1, group.size() - 2));
      if (!value) lexer.FailAt(start, fmt::format("expected a number in {}(...) of a layout", name));
      (name == "S" ? layout.memory_space : layout.element_size_in_bits) = *value;
      part = nullptr;
      continue;
    }
    if (!name.empty() || part == nullptr) part = name == "T" ? &layout.tiling : &layout.annotations;
    *part += name;
    *part += group;
  }
}

Layout ReadLayout(Lexer& lexer, int64_t rank) {
  Layout layout;
  const size_t start = lexer.offset();
  lexer.Expect('{', "'{' of a layout");
  while (lexer.Peek().kind == TokenKind::kWord) {
    layout.minor_to_major.push_back(lexer.ExpectInt("a dimension number in a layout"));
    if (!lexer.Accept(',')) break;
  }
  if (lexer.Accept(':')) ReadLayoutSuffix(lexer, layout);
  lexer.Expect('}', "'}' of a layout");
  std::vector<bool> seen(static_cast<size_t>(rank), false);
  for (int64_t dimension : layout.minor_to_major) {
    if (dimension < 0 || dimension >= rank || seen[static_cast<size_t>(dimension)]) {
      lexer.FailAt(start, fmt::format("this layout is no permutation of the {} dimensions of its shape", rank));
    }
    seen[static_cast<size_t>(dimension)] = true;
  }
  if (static_cast<int64_t>(layout.minor_to_major.size()) != rank) {
    lexer.FailAt(start, fmt::format("this layout names {} dimensions, but its shape has {}",
                                    layout.minor_to_major.size(), rank));
  }
  return layout;
}

// A layout follows its shape without a space; a '{' that opens something else is told apart by what it holds.
bool AtLayout(const Lexer& lexer, size_t end_of_shape) {
  if (!lexer.Is('{') || lexer.offset() != end_of_shape) return false;
  Lexer ahead = lexer;
  ahead.Next();
  return ahead.Is(':') || ahead.Is('}') || (ahead.Peek().kind == TokenKind::kWord && ParseInt(ahead.Peek().text));
}

Shape ReadArrayShape(Lexer& lexer) {
  const size_t start = lexer.offset();
  const std::string_view name = lexer.ExpectWord("a shape");
  const std::optional<ElementType> type = ElementTypeFromName(name);
  if (!type) lexer.FailAt(start, fmt::format("expected an element type such as f32, but found '{}'", name));
  lexer.Expect('[', "'[' of a shape's dimensions");
  Dims dimensions;
  std::vector<bool> dynamic;
  while (!lexer.Is(']')) {
    if (!dimensions.empty()) lexer.Expect(',', "',' or ']' in a shape's dimensions");
    if (lexer.IsWord("?")) {
      lexer.FailHere("this dimension has no bound: write <=N with the largest size that it may have");
    }
    dynamic.push_back(lexer.Peek().kind == TokenKind::kLessEqual);
    if (dynamic.back()) lexer.Next();
    const size_t at = lexer.offset();
    dimensions.push_back(lexer.ExpectInt("a dimension's size"));
    if (dimensions.back() < 0) lexer.FailAt(at, fmt::format("a dimension's size is negative: {}", dimensions.back()));
    if (static_cast<int64_t>(dimensions.size()) > kMaxRank)
      lexer.FailAt(at, fmt::format("a shape has more than {} dimensions", kMaxRank));
  }
  const size_t end = lexer.offset() + 1;
  lexer.Expect(']', "']' of a shape's dimensions");
  Shape shape(*type, std::move(dimensions));
  try {
    CheckAddressable(shape);
  } catch (const Error& error) {
    lexer.FailAt(start, error.message());
  }
  for (size_t i = 0; i < dynamic.size(); ++i) {
    if (dynamic[i]) shape.set_dynamic_dimension(static_cast<int64_t>(i), true);
  }
  if (AtLayout(lexer, end)) {
    Layout layout = ReadLayout(lexer, shape.rank());
    const bool is_empty = layout == Layout{};
    if (!is_empty) shape.set_layout(std::move(layout));
  }
  return shape;
}

Shape ReadNestedShape(Lexer& lexer, int depth) {
  if (!lexer.Is('(')) return ReadArrayShape(lexer);
  if (depth > kMaxNesting) lexer.FailHere(fmt::format("tuples are nested more than {} deep here", kMaxNesting));
  lexer.Next();
  std::vector<Shape> elements;
  while (!lexer.Is(')')) {
    if (!elements.empty()) lexer.Expect(',', "',' or ')' in a tuple shape");
    elements.push_back(ReadNestedShape(lexer, depth + 1));
  }
  lexer.Next();
  return Shape::Tuple(std::move(elements));
}

// [4,2]T(1,0), behind "<=".
void ReadIota(Lexer& lexer, std::vector<int64_t>& reshape_dims, std::vector<int64_t>& permutation) {
  const size_t start = lexer.offset();
  reshape_dims = ReadInts(lexer, "a list of dimensions", '[', ']');
  if (lexer.AcceptWord("T")) permutation = ReadInts(lexer, "a permutation", '(', ')');
  std::vector<int64_t> sorted = permutation;
  std::sort(sorted.begin(), sorted.end());
  for (size_t i = 0; i < sorted.size(); ++i) {
    if (sorted[i] != static_cast<int64_t>(i) || sorted.size() != reshape_dims.size()) {
      lexer.FailAt(start, "the list behind T is no permutation of the dimensions before it");
    }
  }
}

constexpr int64_t kMaxDevices = int64_t{1} << 24;

// The product of `dims`, as a number of devices.
int64_t CountDevices(const Lexer& lexer, size_t offset, const std::vector<int64_t>& dims) {
  int64_t count = 1;
  for (int64_t d : dims) {
    if (d < 0 || (d > 0 && count > kMaxDevices / d)) lexer.FailAt(offset, "these dimensions are no number of devices");
    count *= d;
  }
  return count;
}

void ReadTiles(Lexer& lexer, Sharding& sharding) {
  const size_t start = lexer.offset();
  lexer.Expect('=', "'=' behind devices");
  sharding.kind = Sharding::Kind::kTiled;
  sharding.tile_dimensions = ReadInts(lexer, "the sharding's tile dimensions", '[', ']');
  const int64_t tiles = CountDevices(lexer, start, sharding.tile_dimensions);
  if (tiles == 0) lexer.FailAt(start, "a dimension of this sharding has no tiles");
  int64_t devices = 0;
  if (lexer.Peek().kind == TokenKind::kLessEqual) {
    lexer.Next();
    ReadIota(lexer, sharding.iota_reshape_dims, sharding.iota_transpose_perm);
    devices = CountDevices(lexer, start, sharding.iota_reshape_dims);
  } else {
    do {
      sharding.devices.push_back(lexer.ExpectInt("a device number"));
    } while (lexer.Accept(','));
    devices = static_cast<int64_t>(sharding.devices.size());
  }
  if (tiles != devices)
    lexer.FailAt(start, fmt::format("this sharding has {} tiles, but names {} devices", tiles, devices));
}

// The words of a sharding that is no tuple, up to '}'. False when it is not of this (v1) form.
bool ReadSingleSharding(Lexer& lexer, Sharding& sharding) {
  using Kind = Sharding::Kind;
  static constexpr std::pair<std::string_view, Kind> kKinds[] = {{"replicated", Kind::kReplicated},
                                                                 {"manual", Kind::kManual},
                                                                 {"unknown", Kind::kUnknown},
                                                                 {"unreduced", Kind::kUnreduced},
                                                                 {"maximal", Kind::kMaximal}};
  bool has_kind = false;
  while (!lexer.Is('}')) {
    const std::string_view word = lexer.Peek().kind == TokenKind::kWord ? lexer.Next().text : std::string_view();
    const auto* kind =
        std::find_if(std::begin(kKinds), std::end(kKinds), [&](const auto& k) { return k.first == word; });
    if (kind != std::end(kKinds)) {
      sharding.kind = kind->second;
      has_kind = true;
    } else if (word == "device") {
      lexer.Expect('=', "'=' behind device");
      sharding.kind = Kind::kMaximal;
      sharding.maximal_device = lexer.ExpectInt("a device number");
      has_kind = true;
    } else if (word == "devices" && lexer.Is('=')) {
      ReadTiles(lexer, sharding);
      has_kind = true;
    } else if (word == "last_tile_dim_replicate") {
      sharding.replicate_on_last_tile_dim = true;
    } else if (word == "last_tile_dims") {
      lexer.Expect('=', "'=' behind last_tile_dims");
      lexer.Expect('{', "'{' of last_tile_dims");
      while (!lexer.Accept('}')) {
        if (!sharding.last_tile_dims.empty()) lexer.Expect(',', "',' in last_tile_dims");
        sharding.last_tile_dims.emplace_back(lexer.ExpectWord("a kind of sharding"));
      }
    } else if (word == "shard_as" || word == "shard_like") {
      sharding.shard_group = fmt::format("{} {}", word, lexer.ExpectInt("a shard group's number"));
    } else if (word == "metadata") {
      lexer.Expect('=', "'=' behind metadata");
      sharding.metadata = lexer.ExpectBalanced("'{' of a sharding's metadata");
    } else {
      return false;
    }
  }
  return has_kind;
}

Sharding ReadNestedSharding(Lexer& lexer, int depth) {
  if (depth > kMaxNesting) lexer.FailHere(fmt::format("shardings are nested more than {} deep here", kMaxNesting));
  const size_t start = lexer.offset();
  Lexer whole = lexer;
  const std::string_view text = whole.ExpectBalanced("'{' of a sharding");
  lexer.Next();
  Sharding sharding;
  if (lexer.Is('{') || lexer.Is('}')) {
    sharding.kind = Sharding::Kind::kTuple;
    while (!lexer.Accept('}')) {
      if (!sharding.elements.empty()) lexer.Expect(',', "',' or '}' in a tuple sharding");
      sharding.elements.push_back(ReadNestedSharding(lexer, depth + 1));
    }
    return sharding;
  }
  Lexer inside = lexer.Within(start + 1, start + text.size());
  if (!ReadSingleSharding(inside, sharding)) {
    // Named meshes: {mesh['x'=2], [{'x'}]}.
    const bool named = inside.text().substr(start, text.size()).find('[') != std::string_view::npos;
    if (!named) lexer.FailExpected("a sharding such as replicated, maximal device=0 or devices=[2,1]<=[2]");
    sharding = Sharding{};
    sharding.kind = Sharding::Kind::kVerbatim;
    sharding.verbatim = text;
  }
  lexer = whole;
  return sharding;
}

}  // namespace

bool AtShape(const Lexer& lexer) {
  if (lexer.Is('(')) return true;
  return lexer.Peek().kind == TokenKind::kWord && lexer.FollowedBy('[') && ElementTypeFromName(lexer.Peek().text);
}

Shape ReadShape(Lexer& lexer) { return ReadNestedShape(lexer, 0); }

ProgramShape ReadProgramShape(Lexer& lexer) {
  ProgramShape shape;
  lexer.Expect('(', "'(' of the parameters' shapes");
  while (!lexer.Is(')')) {
    if (!shape.parameters.empty()) lexer.Expect(',', "',' or ')' in the parameters' shapes");
    shape.parameters.push_back(ReadShape(lexer));
  }
  lexer.Next();
  lexer.ExpectKind(TokenKind::kArrow, "'->' before the result's shape");
  shape.result = ReadShape(lexer);
  return shape;
}

Sharding ReadSharding(Lexer& lexer) { return ReadNestedSharding(lexer, 0); }

ReplicaGroups ReadReplicaGroups(Lexer& lexer) {
  if (lexer.IsWord("mesh")) return ReadMeshGroups(lexer);
  ReplicaGroups groups;
  const size_t start = lexer.offset();
  if (lexer.Is('{')) {
    lexer.Next();
    while (!lexer.Accept('}')) {
      if (!groups.groups.empty()) lexer.Expect(',', "',' or '}' in the list of groups");
      groups.groups.push_back(ReadInts(lexer, "a group of device numbers"));
    }
    return groups;
  }
  const std::vector<int64_t> counts = ReadInts(lexer, "groups such as {{0,1},{2,3}} or [2,2]<=[4]", '[', ']');
  lexer.ExpectKind(TokenKind::kLessEqual, "'<=' in groups such as [2,2]<=[4]");
  ReadIota(lexer, groups.reshape_dims, groups.transpose_permutation);
  if (counts.size() != 2)
    lexer.FailAt(start, fmt::format("expected [groups,size], but found {} numbers", counts.size()));
  if (counts[0] < 1 || counts[1] < 1 ||
      CountDevices(lexer, start, counts) != CountDevices(lexer, start, groups.reshape_dims)) {
    lexer.FailAt(start, "the number of groups times their size is not the number of devices behind '<='");
  }
  groups.group_count = counts[0];
  groups.group_size = counts[1];
  return groups;
}

std::vector<int64_t> ReadInts(Lexer& lexer, std::string_view what, char open, char close) {
  std::vector<int64_t> values;
  lexer.Expect(open, what);
  while (!lexer.Is(close)) {
    if (!values.empty()) lexer.Expect(',', fmt::format("',' or '{}'", close));
    values.push_back(lexer.ExpectInt("an integer"));
  }
  lexer.Next();
  return values;
}

Shape ParseShape(std::string_view text) {
  Lexer lexer(text, "<shape>");
  Shape shape = ReadShape(lexer);
  lexer.ExpectEnd("nothing behind the shape");
  return shape;
}

Sharding ParseSharding(std::string_view text) {
  Lexer lexer(text, "<sharding>");
  Sharding sharding = ReadSharding(lexer);
  lexer.ExpectEnd("nothing behind the sharding");
  return sharding;
}

ReplicaGroups ParseReplicaGroups(std::string_view text) {
  Lexer lexer(text, "<replica_groups>");
  ReplicaGroups groups = ReadReplicaGroups(lexer);
  lexer.ExpectEnd("nothing behind the groups");
  return groups;
}

}  // namespace hlorun::hlo
