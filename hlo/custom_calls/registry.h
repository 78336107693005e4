// Custom-calls that the user defines: what each target takes, and what computes it.
#pragma once

#include <array>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "hlo/custom_calls/host_call.h"
#include "hlo/custom_calls/signature.h"

namespace hlorun::hlo {

// A kernel in the user's own OpenCL C, with the launch as expressions of the signature's names.
struct OpenClCall {
  std::string file;  // for messages
  std::string source;
  std::string kernel;  // the __kernel function
  // What its parameters are, in order: operands (true) or results by number.
  struct Argument {
    bool is_operand = true;
    int64_t number = 0;
  };
  std::vector<Argument> arguments;
  std::vector<std::string> global, local;          // 1 to 3 expressions each
  std::map<std::string, std::string> definitions;  // macro -> expression, or a type variable's name
};

struct CustomCallDefinition {
  std::string target;
  Signature signature;
  HostFunction host;  // may be empty when `kernel` is set; --reference and hosts need it
  std::optional<OpenClCall> kernel;
};

// Targets by name. Fill it, then share it as const: reading is thread-safe.
class CustomCallRegistry {
 public:
  // Throws kInvalidArgument for a target that is defined already or that hlorun itself defines.
  void Add(CustomCallDefinition definition);
  const CustomCallDefinition* Find(std::string_view target) const;  // null when there is none
  std::vector<std::string> Targets() const;

 private:
  std::map<std::string, CustomCallDefinition, std::less<>> definitions_;
};

// What the host computes for `target`: the user's function, else LAPACK's; empty when neither has it.
HostFunction FindHostFunction(const CustomCallRegistry* registry, const std::string& target);

// Throws the Error of a target that nothing defines: names it and the nearest ones that are known, or says why it
// cannot run (a callback into Python).
[[noreturn]] void FailUnknownTarget(const CustomCallRegistry* registry, const std::string& target);

}  // namespace hlorun::hlo
