#include "hlo/text/text_cursor.h"

#include <algorithm>
#include <cctype>
#include <charconv>

#include "hlo/error.h"

namespace hlorun::hlo {

void TextCursor::SkipBlanks() { at_ = std::min(text_.find_first_not_of(blanks_, at_), text_.size()); }

bool TextCursor::AtEnd() { return Rest().empty(); }

bool TextCursor::Is(char c) { return Rest().starts_with(c); }

std::string_view TextCursor::Rest() {
  SkipBlanks();
  return text_.substr(at_);
}

bool TextCursor::Accept(std::string_view token) {
  if (!Rest().starts_with(token)) return false;
  at_ += token.size();
  return true;
}

void TextCursor::Expect(std::string_view token) {
  if (!Accept(token)) Reject(token);
}

int64_t TextCursor::Int() {
  const std::string_view rest = Rest();
  int64_t value = 0;
  const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), value);
  if (error != std::errc()) Reject("an integer");
  at_ += static_cast<size_t>(end - rest.data());
  return value;
}

std::string TextCursor::Word() {
  const std::string_view rest = Rest();
  const auto end =
      std::find_if_not(rest.begin(), rest.end(), [](unsigned char c) { return std::isalnum(c) != 0 || c == '_'; });
  const std::string word(rest.begin(), end);
  if (word.empty()) Reject("a name");
  at_ += word.size();
  return word;
}

std::string TextCursor::Quoted() {
  const std::string_view rest = Rest();
  if (!rest.starts_with('"') && !rest.starts_with('\'')) Reject("a name in quotes");
  const std::string_view quote = rest.substr(0, 1);
  // A blank that is no space, such as a backslash, may stand before the closing quote too.
  size_t end = rest.find(quote, 1);
  if (end == std::string_view::npos) Reject("a closing quote");
  at_ += end + 1;
  while (end > 1 && rest[end - 1] != ' ' && blanks_.find(rest[end - 1]) != std::string_view::npos) --end;
  return std::string(rest.substr(1, end - 1));
}

void TextCursor::Reject(std::string_view expected) const {
  Invalid("expected {} at column {} of the {} {}", expected, at_ + 1, what_, text_);
}

}  // namespace hlorun::hlo
