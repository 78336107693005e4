// Tokens of HLO text, as views into it; nothing is copied.
//
// A word is any run of letters, digits and "_.-+?": names, numbers, opcodes and patterns such as 3x3_0 or b01f_01io are
// all words, and what a word means is decided where it is expected. Comments are skipped everywhere.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "hlo/error.h"

namespace hlorun::hlo {

enum class TokenKind : uint8_t { kEnd, kWord, kString, kArrow, kLessEqual, kPunctuation };

struct Token {
  TokenKind kind = TokenKind::kEnd;
  std::string_view text;  // of a string: without its quotes, escapes not resolved
  size_t offset = 0;      // into the whole text
};

// A cursor over a text that outlives it. Copyable, so that a value can be read apart from what surrounds it.
class Lexer {
 public:
  Lexer(std::string_view text, std::string_view file_name) : Lexer(text, file_name, 0, text.size()) {}
  // Another cursor over text[begin, end) of the same text; errors still count lines from the start of the whole.
  Lexer Within(size_t begin, size_t end) const { return Lexer(text_, file_name_, begin, end); }

  const Token& Peek() const { return token_; }
  Token Next();
  bool AtEnd() const { return token_.kind == TokenKind::kEnd; }
  size_t offset() const { return token_.offset; }
  std::string_view text() const { return text_; }

  bool Is(char punctuation) const { return token_.kind == TokenKind::kPunctuation && token_.text[0] == punctuation; }
  bool IsWord(std::string_view word) const { return token_.kind == TokenKind::kWord && token_.text == word; }
  // True when the character right behind the current token is `c`.
  bool FollowedBy(char c) const;

  bool Accept(char punctuation);
  bool AcceptWord(std::string_view word);
  // `what` completes "expected ...".
  void Expect(char punctuation, std::string_view what);
  void ExpectKind(TokenKind kind, std::string_view what);
  void ExpectEnd(std::string_view what);
  std::string_view ExpectWord(std::string_view what);
  int64_t ExpectInt(std::string_view what);
  bool ExpectBool(std::string_view what);
  double ExpectDouble(std::string_view what);
  std::string ExpectString(std::string_view what);     // escapes resolved
  std::string_view ExpectName(std::string_view what);  // '%' is optional and left out

  // Consumes one balanced {...}, (...) or [...] and returns it, brackets included.
  std::string_view ExpectBalanced(std::string_view what);
  // The value of an attribute, from the current token on: up to a comma, a line's end or a closing bracket that lies
  // outside of its own brackets. May be empty. `*begin` is its offset.
  std::string_view RawValue(size_t* begin);

  // Throws kInvalidArgument with the place of `offset`, its line and a caret.
  [[noreturn]] void FailAt(size_t offset, const std::string& message,
                           ErrorCode code = ErrorCode::kInvalidArgument) const;
  [[noreturn]] void FailHere(const std::string& message) const { FailAt(token_.offset, message); }
  // "expected <what>, but found <the current token>".
  [[noreturn]] void FailExpected(std::string_view what) const;
  int LineOf(size_t offset) const;

 private:
  Lexer(std::string_view text, std::string_view file_name, size_t begin, size_t end);
  void Scan();                              // reads the token at position_
  size_t SkipBlank(size_t at) const;        // over spaces and comments
  size_t EndOfString(size_t quote) const;   // offset of the closing quote
  size_t EndOfBalanced(size_t open) const;  // offset behind the closing bracket

  std::string_view text_;
  std::string_view file_name_;
  size_t end_;
  size_t position_;  // behind the current token
  Token token_;
};

// Numbers as HLO text writes them; nullopt when `word` is not entirely one (or does not fit).
std::optional<int64_t> ParseInt(std::string_view word);
std::optional<double> ParseDouble(std::string_view word);

// C escapes: \n \t \" \' \\ \x41 \303.
std::string Unescape(std::string_view text);
std::string Escape(std::string_view text);

}  // namespace hlorun::hlo
