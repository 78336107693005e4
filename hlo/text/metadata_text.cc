#include "hlo/text/metadata_text.h"

#include <algorithm>
#include <array>

namespace hlorun::hlo {
namespace {

struct StringField {
  std::string_view name;
  std::string Metadata::*member;
};
struct IntField {
  std::string_view name;
  int64_t Metadata::*member;
};

// Each group in the order in which XLA prints it.
constexpr std::array kNames = {StringField{"op_type", &Metadata::op_type}, StringField{"op_name", &Metadata::op_name},
                               StringField{"source_file", &Metadata::source_file}};
constexpr std::array kPositions = {
    IntField{"source_line", &Metadata::source_line}, IntField{"source_end_line", &Metadata::source_end_line},
    IntField{"source_column", &Metadata::source_column}, IntField{"source_end_column", &Metadata::source_end_column}};
constexpr std::array kFrame = {IntField{"stack_frame_id", &Metadata::stack_frame_id}};
constexpr std::array kLateNames = {StringField{"deduplicated_name", &Metadata::deduplicated_name},
                                   StringField{"scheduling_name", &Metadata::scheduling_name}};

template <typename Fields>
bool ReadStringField(const Fields& fields, std::string_view name, Lexer& lexer, Metadata& metadata) {
  const auto field = std::find_if(fields.begin(), fields.end(), [&](const auto& f) { return f.name == name; });
  if (field == fields.end()) return false;
  metadata.*field->member = lexer.ExpectString(fmt::format("{} as a string", name));
  return true;
}

template <typename Fields>
bool ReadIntField(const Fields& fields, std::string_view name, Lexer& lexer, Metadata& metadata) {
  const auto field = std::find_if(fields.begin(), fields.end(), [&](const auto& f) { return f.name == name; });
  if (field == fields.end()) return false;
  metadata.*field->member = lexer.ExpectInt(fmt::format("{} as an integer", name));
  return true;
}

// A field that hlorun does not interpret, as written.
void ReadVerbatim(std::string_view name, Lexer& lexer, Metadata& metadata) {
  const size_t begin = lexer.offset();
  size_t end = begin;
  if (lexer.Is('{')) {
    end = begin + lexer.ExpectBalanced("a value").size();
  } else if (lexer.Peek().kind == TokenKind::kString) {
    end = begin + lexer.Next().text.size() + 2;
  } else {
    end = begin + lexer.ExpectWord("a value").size();
  }
  if (!metadata.verbatim.empty()) metadata.verbatim += ' ';
  metadata.verbatim += fmt::format("{}={}", name, lexer.text().substr(begin, end - begin));
}

class Joiner {
 public:
  void Add(const std::string& field) { text_ += (text_.empty() ? "" : " ") + field; }
  template <typename Fields>
  void AddStrings(const Fields& fields, const Metadata& metadata) {
    for (const auto& field : fields) {
      const std::string& value = metadata.*field.member;
      if (!value.empty()) Add(fmt::format("{}=\"{}\"", field.name, Escape(value)));
    }
  }
  template <typename Fields>
  void AddInts(const Fields& fields, const Metadata& metadata) {
    for (const auto& field : fields) {
      const int64_t value = metadata.*field.member;
      if (value != 0) Add(fmt::format("{}={}", field.name, value));
    }
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

// One "{name=1 name=2}" of the location and frame tables.
template <typename Row, size_t N>
Row ReadRow(Lexer& lexer, const std::array<std::pair<std::string_view, int64_t Row::*>, N>& columns) {
  Row row;
  lexer.Expect('{', "'{' of a table's row");
  while (!lexer.Accept('}')) {
    const size_t at = lexer.offset();
    const std::string_view name = lexer.ExpectWord("a column's name or '}'");
    const auto column = std::find_if(columns.begin(), columns.end(), [&](const auto& c) { return c.first == name; });
    if (column == columns.end()) lexer.FailAt(at, fmt::format("this table has no column '{}'", name));
    lexer.Expect('=', "'=' behind a column's name");
    row.*column->second = lexer.ExpectInt("an integer");
    lexer.Accept(',');
  }
  return row;
}

template <typename Row, size_t N>
std::string PrintRow(const Row& row, const std::array<std::pair<std::string_view, int64_t Row::*>, N>& columns) {
  std::string text = "{";
  for (const auto& [name, member] : columns)
    text += fmt::format("{}{}={}", text.size() > 1 ? " " : "", name, row.*member);
  return text + "}";
}

using Location = StackFrameTables::Location;
using Frame = StackFrameTables::Frame;
constexpr std::array<std::pair<std::string_view, int64_t Location::*>, 6> kLocationColumns = {
    {{"file_name_id", &Location::file_name_id},
     {"function_name_id", &Location::function_name_id},
     {"line", &Location::line},
     {"end_line", &Location::end_line},
     {"column", &Location::column},
     {"end_column", &Location::end_column}}};
constexpr std::array<std::pair<std::string_view, int64_t Frame::*>, 2> kFrameColumns = {
    {{"file_location_id", &Frame::file_location_id}, {"parent_frame_id", &Frame::parent_frame_id}}};

// Rows start with their number, which is their position.
template <typename ReadOne>
void ReadNumbered(Lexer& lexer, const ReadOne& read) {
  while (lexer.Peek().kind == TokenKind::kWord && ParseInt(lexer.Peek().text)) {
    lexer.Next();
    read();
  }
}

}  // namespace

Metadata ReadMetadata(Lexer& lexer) {
  Metadata metadata;
  lexer.Expect('{', "'{' of metadata");
  while (!lexer.Accept('}')) {
    const std::string_view name = lexer.ExpectWord("a metadata field or '}'");
    lexer.Expect('=', "'=' behind a metadata field");
    const bool known = ReadStringField(kNames, name, lexer, metadata) ||
                       ReadIntField(kPositions, name, lexer, metadata) || ReadIntField(kFrame, name, lexer, metadata) ||
                       ReadStringField(kLateNames, name, lexer, metadata);
    if (!known && name == "preserve_layout") {
      metadata.preserve_layout = lexer.ExpectBool("true or false");
    } else if (!known) {
      ReadVerbatim(name, lexer, metadata);
    }
    lexer.Accept(',');
  }
  return metadata;
}

std::string PrintMetadata(const Metadata& metadata) {
  Joiner fields;
  fields.AddStrings(kNames, metadata);
  fields.AddInts(kPositions, metadata);
  if (!metadata.verbatim.empty()) fields.Add(metadata.verbatim);
  fields.AddStrings(kLateNames, metadata);
  if (metadata.preserve_layout) fields.Add("preserve_layout=true");
  fields.AddInts(kFrame, metadata);
  return "{" + fields.text() + "}";
}

void ReadStackFrames(Lexer& lexer, StackFrameTables& tables) {
  while (true) {
    if (lexer.AcceptWord("FileNames")) {
      ReadNumbered(lexer, [&] { tables.file_names.push_back(lexer.ExpectString("a file's name as a string")); });
    } else if (lexer.AcceptWord("FunctionNames")) {
      ReadNumbered(lexer,
                   [&] { tables.function_names.push_back(lexer.ExpectString("a function's name as a string")); });
    } else if (lexer.AcceptWord("FileLocations")) {
      ReadNumbered(lexer, [&] { tables.locations.push_back(ReadRow<Location>(lexer, kLocationColumns)); });
    } else if (lexer.AcceptWord("StackFrames")) {
      ReadNumbered(lexer, [&] { tables.frames.push_back(ReadRow<Frame>(lexer, kFrameColumns)); });
    } else {
      return;
    }
  }
}

std::string PrintStackFrames(const StackFrameTables& tables) {
  if (tables.empty()) return "";
  std::string text;
  const auto heading = [&](std::string_view name) { text += fmt::format("{}{}\n", text.empty() ? "" : "\n", name); };
  heading("FileNames");
  for (size_t i = 0; i < tables.file_names.size(); ++i)
    text += fmt::format("{} \"{}\"\n", i + 1, Escape(tables.file_names[i]));
  heading("FunctionNames");
  for (size_t i = 0; i < tables.function_names.size(); ++i)
    text += fmt::format("{} \"{}\"\n", i + 1, Escape(tables.function_names[i]));
  heading("FileLocations");
  for (size_t i = 0; i < tables.locations.size(); ++i)
    text += fmt::format("{} {}\n", i + 1, PrintRow(tables.locations[i], kLocationColumns));
  heading("StackFrames");
  for (size_t i = 0; i < tables.frames.size(); ++i)
    text += fmt::format("{} {}\n", i + 1, PrintRow(tables.frames[i], kFrameColumns));
  return text;
}

}  // namespace hlorun::hlo
