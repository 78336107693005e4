// A custom-call that the host computes: arrays in host memory, row-major, in and out.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "hlo/shape.h"

namespace hlorun::hlo {

struct HostArray {
  Shape shape;  // static, an array's
  std::byte* data = nullptr;
};

// One call. Operands are read only, except that an operand which the call aliases with a result has that result's
// address. Results do not overlap anything else.
struct HostCall {
  std::string_view target;
  std::string_view config;              // backend_config as written: a dictionary {mode = 65 : ui8} or a string
  std::span<const HostArray> operands;  // flattened leaves, tokens left out
  std::span<const HostArray> results;
};

// Throws Error when the call fails. Called from several threads at once.
using HostFunction = std::function<void(const HostCall& call)>;
// Calls it. An exception of another type becomes an Error kAborted with its message.
void CallHostFunction(const HostFunction& function, const HostCall& call);
// Whether the calling thread is in one.
bool IsInHostFunction();

// The text of `key` in a dictionary `{key = 65 : ui8, other = true}` or `{"key": 65}` without its type; nothing when it
// is absent.
std::optional<std::string> ConfigText(std::string_view config, std::string_view key);
// The same as a number; true is 1. Throws kInvalidArgument naming the key when it is absent or no number.
int64_t ConfigInteger(std::string_view config, std::string_view key);

}  // namespace hlorun::hlo
