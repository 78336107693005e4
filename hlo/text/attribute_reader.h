// Attributes of an instruction or a module's header: "name=value" after commas. First all are located, then each is
// read by whoever expects it; what nobody reads is kept as written.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "hlo/attributes.h"
#include "hlo/opcode.h"
#include "hlo/text/lexer.h"
#include "hlo/text/literal_text.h"

namespace hlorun::hlo {

class AttributeList {
 public:
  // Reads every ", name=value" from the lexer's place on.
  explicit AttributeList(Lexer& lexer);
  // Of an instruction that has none, such as one written in the place of an operand.
  static AttributeList Empty(const Lexer& lexer) { return AttributeList(lexer, std::nullopt); }

  // A lexer over the value, which then counts as read; nullopt when there is no such attribute.
  std::optional<Lexer> Take(std::string_view name);
  // As Take; the value's text.
  std::optional<std::string_view> TakeRaw(std::string_view name);
  bool Has(std::string_view name) const;
  // Those not taken: name -> text as written.
  std::vector<std::pair<std::string, std::string>> TakeRest();

 private:
  struct Entry {
    std::string_view name;
    std::string_view value;
    size_t begin;
    bool taken = false;
  };
  AttributeList(const Lexer& lexer, std::nullopt_t) : lexer_(lexer) {}
  Entry* Find(std::string_view name);

  Lexer lexer_;
  std::vector<Entry> entries_;
};

// Reads the payload of `opcode` from `attributes`. `offset` is where a message about a missing attribute points.
Attributes ReadPayload(Opcode opcode, AttributeList& attributes, const Lexer& lexer, size_t offset,
                       ElidedValues* elided);

// {{0,1}: (2, {}), ...} pairs, which aliasing attributes share: output index, then (operand, index).
std::vector<std::pair<ShapeIndex, std::pair<int64_t, ShapeIndex>>> ReadAliasing(Lexer& lexer);

}  // namespace hlorun::hlo
