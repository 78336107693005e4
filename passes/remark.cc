#include "passes/remark.h"

#include <fmt/format.h>

namespace hlorun::passes {

std::string OneLine(const Remark& remark) {
  std::string line;
  if (!remark.instruction.empty()) line += "%" + remark.instruction;
  if (!remark.source.empty()) line += " at " + remark.source;
  if (!line.empty()) line += ": ";
  return line + (remark.choice.empty() ? "" : remark.choice + ": ") + remark.reason;
}

}  // namespace hlorun::passes
