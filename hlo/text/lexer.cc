#include "hlo/text/lexer.h"

#include <algorithm>
#include <array>
#include <charconv>

namespace hlorun::hlo {
namespace {

constexpr std::array<bool, 256> WordCharacters() {
  std::array<bool, 256> table{};
  for (int c = '0'; c <= '9'; ++c) table[static_cast<size_t>(c)] = true;
  for (int c = 'a'; c <= 'z'; ++c) table[static_cast<size_t>(c)] = true;
  for (int c = 'A'; c <= 'Z'; ++c) table[static_cast<size_t>(c)] = true;
  for (char c : {'_', '.', '-', '+', '?'}) table[static_cast<size_t>(c)] = true;
  return table;
}
constexpr std::array<bool, 256> kIsWordCharacter = WordCharacters();
bool IsWordCharacter(char c) { return kIsWordCharacter[static_cast<unsigned char>(c)]; }
bool IsBlank(char c) { return c == ' ' || c == '\n' || c == '\t' || c == '\r'; }

// What a message shows of a line: all of it, or a window around the column.
constexpr size_t kExcerptWidth = 160;

}  // namespace

Lexer::Lexer(std::string_view text, std::string_view file_name, size_t begin, size_t end)
    : text_(text), file_name_(file_name), end_(end), position_(begin) {
  Scan();
}

size_t Lexer::SkipBlank(size_t at) const {
  while (at < end_) {
    if (IsBlank(text_[at])) {
      ++at;
    } else if (text_[at] == '/' && at + 1 < end_ && text_[at + 1] == '*') {
      const size_t close = text_.find("*/", at + 2);
      if (close == std::string_view::npos || close + 2 > end_) FailAt(at, "this comment is never closed: expected */");
      at = close + 2;
    } else if (text_[at] == '/' && at + 1 < end_ && text_[at + 1] == '/') {
      at = std::min(text_.find('\n', at), end_);
    } else {
      break;
    }
  }
  return at;
}

size_t Lexer::EndOfString(size_t quote) const {
  for (size_t i = quote + 1; i < end_; ++i) {
    if (text_[i] == '\\') {
      ++i;
    } else if (text_[i] == '"') {
      return i;
    }
  }
  FailAt(quote, "this string is never closed: expected \"");
}

size_t Lexer::EndOfBalanced(size_t open) const {
  std::string closers;
  for (size_t i = open; i < end_; ++i) {
    switch (text_[i]) {
      case '{': closers += '}'; break;
      case '(': closers += ')'; break;
      case '[': closers += ']'; break;
      case '}':
      case ')':
      case ']':
        if (text_[i] != closers.back()) {
          FailAt(i, fmt::format("expected '{}' here, to close a bracket, but found '{}'", closers.back(), text_[i]));
        }
        closers.pop_back();
        if (closers.empty()) return i + 1;
        break;
      case '"': i = EndOfString(i); break;
      case '/':
        if (i + 1 < end_ && text_[i + 1] == '*') i = SkipBlank(i) - 1;
        break;
      default: break;
    }
  }
  FailAt(open, fmt::format("this '{}' is never closed", text_[open]));
}

void Lexer::Scan() {
  const size_t at = SkipBlank(position_);
  token_.offset = at;
  if (at >= end_) {
    token_ = {TokenKind::kEnd, {}, end_};
    position_ = end_;
    return;
  }
  const char c = text_[at];
  const char next = at + 1 < end_ ? text_[at + 1] : '\0';
  if (c == '"') {
    const size_t close = EndOfString(at);
    token_.kind = TokenKind::kString;
    token_.text = text_.substr(at + 1, close - at - 1);
    position_ = close + 1;
    return;
  }
  size_t length = 1;
  if (c == '-' && next == '>') {
    token_.kind = TokenKind::kArrow;
    length = 2;
  } else if (c == '<' && next == '=') {
    token_.kind = TokenKind::kLessEqual;
    length = 2;
  } else if (IsWordCharacter(c)) {
    token_.kind = TokenKind::kWord;
    while (at + length < end_ && IsWordCharacter(text_[at + length]) &&
           !(text_[at + length] == '-' && at + length + 1 < end_ && text_[at + length + 1] == '>')) {
      ++length;
    }
  } else {
    token_.kind = TokenKind::kPunctuation;
  }
  token_.text = text_.substr(at, length);
  position_ = at + length;
}

Token Lexer::Next() {
  const Token token = token_;
  Scan();
  return token;
}

bool Lexer::FollowedBy(char c) const { return position_ < end_ && text_[position_] == c; }

bool Lexer::Accept(char punctuation) {
  if (!Is(punctuation)) return false;
  Scan();
  return true;
}

bool Lexer::AcceptWord(std::string_view word) {
  if (!IsWord(word)) return false;
  Scan();
  return true;
}

void Lexer::Expect(char punctuation, std::string_view what) {
  if (!Accept(punctuation)) FailExpected(what);
}

void Lexer::ExpectKind(TokenKind kind, std::string_view what) {
  if (token_.kind != kind) FailExpected(what);
  Scan();
}

void Lexer::ExpectEnd(std::string_view what) {
  if (!AtEnd()) FailExpected(what);
}

std::string_view Lexer::ExpectWord(std::string_view what) {
  if (token_.kind != TokenKind::kWord) FailExpected(what);
  return Next().text;
}

int64_t Lexer::ExpectInt(std::string_view what) {
  if (token_.kind != TokenKind::kWord) FailExpected(what);
  const std::optional<int64_t> value = ParseInt(token_.text);
  if (!value) FailExpected(what);
  Scan();
  return *value;
}

bool Lexer::ExpectBool(std::string_view what) {
  if (AcceptWord("true") || AcceptWord("1")) return true;
  if (AcceptWord("false") || AcceptWord("0")) return false;
  FailExpected(what);
}

double Lexer::ExpectDouble(std::string_view what) {
  if (token_.kind != TokenKind::kWord) FailExpected(what);
  const std::optional<double> value = ParseDouble(token_.text);
  if (!value) FailExpected(what);
  Scan();
  return *value;
}

std::string Lexer::ExpectString(std::string_view what) {
  if (token_.kind != TokenKind::kString) FailExpected(what);
  return Unescape(Next().text);
}

std::string_view Lexer::ExpectName(std::string_view what) {
  Accept('%');
  return ExpectWord(what);
}

std::string_view Lexer::ExpectBalanced(std::string_view what) {
  if (!Is('{') && !Is('(') && !Is('[')) FailExpected(what);
  const size_t begin = token_.offset;
  position_ = EndOfBalanced(begin);
  const std::string_view value = text_.substr(begin, position_ - begin);
  Scan();
  return value;
}

std::string_view Lexer::RawValue(size_t* begin) {
  const size_t start = token_.offset;
  *begin = start;
  // "padding=" of a scalar has no value: then the next token lies on the next line.
  size_t before = start;
  while (before > 0 && IsBlank(text_[before - 1])) --before;
  if (before > 0 && text_[before - 1] == '=' &&
      text_.substr(before, start - before).find('\n') != std::string_view::npos) {
    return {};
  }
  size_t at = start;
  while (at < end_) {
    const char c = text_[at];
    if (c == ',' || c == '\n' || c == '}' || c == ')' || c == ']') break;
    if (c == '{' || c == '(' || c == '[') {
      at = EndOfBalanced(at);
    } else if (c == '"') {
      at = EndOfString(at) + 1;
    } else if (c == ' ' || c == '\t' || c == '\r') {
      // A space ends the value, unless what follows can only belong to it: "s32[2]{0} {1, 2}", "s32[] 5".
      size_t next = at;
      while (next < end_ && (text_[next] == ' ' || text_[next] == '\t' || text_[next] == '\r')) ++next;
      const char follower = next < end_ ? text_[next] : '\n';
      const bool is_number = (follower >= '0' && follower <= '9') || follower == '-';
      if (!is_number && follower != '{' && follower != '(' && follower != '[') break;
      at = next;
    } else {
      ++at;
    }
  }
  position_ = at;
  Scan();
  return text_.substr(start, at - start);
}

int Lexer::LineOf(size_t offset) const {
  const auto end = text_.begin() + static_cast<int64_t>(std::min(offset, text_.size()));
  return 1 + static_cast<int>(std::count(text_.begin(), end, '\n'));
}

void Lexer::FailAt(size_t offset, const std::string& message, ErrorCode code) const {
  // At the end of the text the message points behind its last visible character.
  offset = std::min(offset, text_.size());
  if (offset == text_.size()) {
    while (offset > 0 && IsBlank(text_[offset - 1])) --offset;
  }
  const size_t newline = offset == 0 ? std::string_view::npos : text_.rfind('\n', offset - 1);
  const size_t line_begin = newline == std::string_view::npos ? 0 : newline + 1;
  const size_t line_end = std::min(text_.find('\n', offset), text_.size());
  const size_t column = offset - line_begin;
  size_t first = line_begin;
  if (column > kExcerptWidth * 3 / 4) first = offset - kExcerptWidth / 2;
  const std::string_view line = text_.substr(first, std::min(line_end - first, kExcerptWidth));
  const std::string lead = first > line_begin ? "..." : "";
  const std::string trail = first + line.size() < line_end ? "..." : "";
  std::string visible(line);
  std::replace_if(
      visible.begin(), visible.end(), [](char c) { return static_cast<unsigned char>(c) < 32; }, ' ');
  SourceLocation location;
  location.file = std::string(file_name_);
  location.line = LineOf(offset);
  location.column = static_cast<int>(column) + 1;
  location.excerpt =
      fmt::format("  {}{}{}\n  {}^", lead, visible, trail, std::string(lead.size() + (offset - first), ' '));
  throw Error(code, message, std::move(location));
}

void Lexer::FailExpected(std::string_view what) const {
  if (AtEnd()) FailHere(fmt::format("expected {}, but the text ends here", what));
  constexpr size_t kShown = 40;
  const std::string_view found = token_.text;
  FailHere(
      fmt::format("expected {}, but found '{}{}'", what, found.substr(0, kShown), found.size() > kShown ? "..." : ""));
}

std::optional<int64_t> ParseInt(std::string_view word) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (error != std::errc() || end != word.data() + word.size()) return std::nullopt;
  return value;
}

std::optional<double> ParseDouble(std::string_view word) {
  double value = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (end != word.data() + word.size() || word.empty()) return std::nullopt;
  if (error == std::errc::result_out_of_range) {
    // Too small for a double rounds to zero, as everywhere; too large has no value.
    const bool tiny = word.find("e-") != std::string_view::npos || word.find("E-") != std::string_view::npos;
    if (tiny) return word.front() == '-' ? -0.0 : 0.0;
    return std::nullopt;
  }
  if (error != std::errc()) return std::nullopt;
  return value;
}

std::string Unescape(std::string_view text) {
  if (text.find('\\') == std::string_view::npos) return std::string(text);
  std::string result;
  result.reserve(text.size());
  const auto digit = [&](size_t i, int base) {
    if (i >= text.size()) return -1;
    const char c = text[i];
    const int value = c >= '0' && c <= '9'   ? c - '0'
                      : c >= 'a' && c <= 'f' ? c - 'a' + 10
                      : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                             : 99;
    return value < base ? value : -1;
  };
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\' || i + 1 == text.size()) {
      result += text[i];
      continue;
    }
    const char c = text[++i];
    const bool hex = c == 'x' || c == 'X';
    if (hex ? digit(i + 1, 16) >= 0 : digit(i, 8) >= 0) {
      int value = 0;
      const size_t most = hex ? 2 : 3;
      if (hex) ++i;
      for (size_t n = 0; n < most && digit(i, hex ? 16 : 8) >= 0; ++n)
        value = value * (hex ? 16 : 8) + digit(i++, hex ? 16 : 8);
      --i;
      result += static_cast<char>(value);
      continue;
    }
    static constexpr std::string_view kNames = "abfnrtv";
    static constexpr std::string_view kValues = "\a\b\f\n\r\t\v";
    const size_t known = kNames.find(c);
    result += known == std::string_view::npos ? c : kValues[known];
  }
  return result;
}

std::string Escape(std::string_view text) {
  std::string result;
  result.reserve(text.size());
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '\n') {
      result += "\\n";
    } else if (c == '\r') {
      result += "\\r";
    } else if (c == '\t') {
      result += "\\t";
    } else if (c == '"' || c == '\'' || c == '\\') {
      result += '\\';
      result += c;
    } else if (byte < 32 || byte >= 127) {
      result += fmt::format("\\{:03o}", byte);
    } else {
      result += c;
    }
  }
  return result;
}

}  // namespace hlorun::hlo
