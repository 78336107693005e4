#include "hlo/custom_calls/named_ops.h"

#include <array>

namespace hlorun::hlo {
namespace {

struct Named {
  std::string_view name;
  Opcode opcode;
};
constexpr std::array kNamed = {
    Named{"acos", Opcode::kAcos},   Named{"acosh", Opcode::kAcosh}, Named{"asin", Opcode::kAsin},
    Named{"asinh", Opcode::kAsinh}, Named{"atanh", Opcode::kAtanh}, Named{"cosh", Opcode::kCosh},
    Named{"erf", Opcode::kErf},     Named{"sinh", Opcode::kSinh},   Named{"tan", Opcode::kTan},
};

}  // namespace

std::optional<Opcode> OpcodeNamedBy(std::string_view target) {
  if (!target.starts_with("mhlo.") && !target.starts_with("chlo.")) return std::nullopt;
  for (const Named& named : kNamed) {
    if (named.name == target.substr(5)) return named.opcode;
  }
  return std::nullopt;
}

}  // namespace hlorun::hlo
