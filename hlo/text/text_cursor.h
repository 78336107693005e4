// A cursor over the text of an attribute that the module's own lexer does not know, such as a sharding. Errors say what
// was expected, and at which column of the text.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace hlorun::hlo {

class TextCursor {
 public:
  // Characters of `blanks` may stand before each token. The text must outlive the cursor; `what` names it in errors.
  TextCursor(std::string_view text, std::string_view what, std::string_view blanks = " ")
      : text_(text), what_(what), blanks_(blanks) {}

  bool AtEnd();
  bool Is(char c);
  bool Accept(std::string_view token);
  void Expect(std::string_view token);
  int64_t Int();
  // A name of letters, digits and underscores.
  std::string Word();
  // A name in single or double quotes, without them.
  std::string Quoted();
  // What is left; Skip() steps over some of it.
  std::string_view Rest();
  void Skip(size_t characters) { at_ += characters; }

  // Throws Error(kInvalidArgument).
  [[noreturn]] void Reject(std::string_view expected) const;

 private:
  void SkipBlanks();

  std::string_view text_, what_, blanks_;
  size_t at_ = 0;
};

}  // namespace hlorun::hlo
