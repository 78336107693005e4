#include "passes/simplify/product_readers.h"

#include <algorithm>

namespace hlorun::passes {

using hlo::Instruction;
using hlo::Opcode;

bool OnlyProductsRead(const Instruction& value) {
  return !value.IsRoot() && std::all_of(value.users().begin(), value.users().end(), [](const Instruction* user) {
    const bool rearranges = user->Is(Opcode::kTranspose) || user->Is(Opcode::kReshape);
    return user->Is(Opcode::kDot) || (rearranges && OnlyProductsRead(*user));
  });
}

}  // namespace hlorun::passes
