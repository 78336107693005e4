#include "backends/opencl/runtime/kernel_text.h"

#include <algorithm>
#include <cctype>
#include <string_view>

#include "hlo/error.h"

namespace hlorun::opencl {
namespace {

constexpr std::string_view kKernel = "__kernel", kGroupId = "get_group_id(0)";
// What only a kernel may say or ask, but for what becomes something else in a function.
constexpr const char* kKernelWords[] = {"get_global_id",   "get_local_id",   "get_num_groups",
                                        "get_global_size", "get_local_size", "__local "};

bool IsName(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

// Position of the '(' of "NAME (" after "kernel", or npos.
size_t ParameterList(const std::string& source, const std::string& name) {
  for (size_t at = source.find("kernel"); at != std::string::npos; at = source.find("kernel", at + 1)) {
    for (size_t n = source.find(name, at); n != std::string::npos; n = source.find(name, n + 1)) {
      const size_t end = n + name.size();
      if ((n > 0 && IsName(source[n - 1])) || (end < source.size() && IsName(source[end]))) continue;
      const size_t open = source.find_first_not_of(" \t\n", end);
      if (open != std::string::npos && source[open] == '(') return open;
    }
  }
  return std::string::npos;
}

size_t MatchingParenthesis(const std::string& source, size_t open) {
  int depth = 0;
  for (size_t i = open; i < source.size(); ++i) {
    if (source[i] == '(') ++depth;
    if (source[i] == ')' && --depth == 0) return i;
  }
  return std::string::npos;
}

// The last identifier before `end`.
std::string NameBefore(const std::string& source, size_t end) {
  size_t last = end;
  while (last > 0 && !IsName(source[last - 1])) --last;
  size_t first = last;
  while (first > 0 && IsName(source[first - 1])) --first;
  return source.substr(first, last - first);
}

std::string Trimmed(const std::string& text) {
  const size_t first = text.find_first_not_of(" \t\n");
  return first == std::string::npos ? "" : text.substr(first, text.find_last_not_of(" \t\n") - first + 1);
}

// "__global const float* restrict x" -> "__global const float*"; empty when it is no pointer to global memory.
std::string PointerType(const std::string& parameter) {
  const size_t star = parameter.rfind('*');
  const std::string text = Trimmed(parameter);
  if (star == std::string::npos || text.rfind("__global ", 0) != 0) return "";
  return Trimmed(parameter.substr(0, star + 1));
}

void ReplaceAll(std::string& text, std::string_view from, std::string_view to) {
  for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
}

}  // namespace

bool HasBarrier(const Kernel& kernel) { return kernel.source.find("barrier(") != std::string::npos; }

std::string WithEntryGuard(const Kernel& kernel) {
  const std::string& source = kernel.source;
  if (HasBarrier(kernel)) return source;
  const size_t open = ParameterList(source, kernel.name);
  const size_t close = open == std::string::npos ? open : MatchingParenthesis(source, open);
  const size_t brace = close == std::string::npos ? close : source.find('{', close);
  if (brace == std::string::npos) return source;
  const std::string first = NameBefore(source, std::min(source.find(',', open), close));
  if (first.empty() || first == "void") return source;
  return source.substr(0, brace + 1) + " if (!" + first + ") return;" + source.substr(brace + 1);
}

std::string WithGroupLoop(const std::string& source, const std::string& name) {
  const size_t open = ParameterList(source, name);
  HLORUN_CHECK(open != std::string::npos);
  const size_t close = MatchingParenthesis(source, open);
  HLORUN_CHECK(close != std::string::npos);
  const size_t body = source.find('{', close) + 1, end = source.rfind('}');
  std::string text = source.substr(0, close) + ", int hl_first, int hl_end" + source.substr(close, body - close) +
                     " for (int hl_group = hl_first; hl_group < hl_end; ++hl_group) {" +
                     source.substr(body, end - body) + "}" + source.substr(end);
  ReplaceAll(text, kGroupId, "hl_group");
  return text;
}

bool IsFunction(const Kernel& kernel) {
  if (kernel.foreign || kernel.parameter_count == 0 || HasBarrier(kernel)) return false;
  const bool is_line = std::all_of(kernel.grids.begin(), kernel.grids.end(), [](const Grid& grid) {
    return grid.local == std::array<int64_t, 3>{1, 1, 1} && grid.groups[1] == 1 && grid.groups[2] == 1;
  });
  return is_line && std::none_of(std::begin(kKernelWords), std::end(kKernelWords),
                                 [&](const char* word) { return kernel.source.find(word) != std::string::npos; });
}

KernelFunction AsFunction(const Kernel& kernel, bool shares_groups) {
  KernelFunction function;
  function.text = shares_groups ? WithGroupLoop(kernel.source, kernel.name) : kernel.source;
  std::string& text = function.text;
  const size_t open = ParameterList(text, kernel.name);
  const size_t close = open == std::string::npos ? open : MatchingParenthesis(text, open);
  const size_t qualifier = text.rfind(kKernel, open);
  HLORUN_CHECK(close != std::string::npos && qualifier != std::string::npos);
  for (size_t begin = open + 1, end = 0; begin < close; begin = end + 1) {
    end = std::min(text.find(',', begin), close);
    if (static_cast<int64_t>(function.types.size()) == kernel.parameter_count) break;  // a share's groups
    function.types.push_back(PointerType(text.substr(begin, end - begin)));
    HLORUN_CHECK(!function.types.back().empty());
  }
  if (!shares_groups) text.insert(close, ", int hl_group");
  text.replace(qualifier, kKernel.size(), "static __attribute__((noinline))");
  ReplaceAll(text, kOneItem, "");
  ReplaceAll(text, kGroupId, "hl_group");
  return function;
}

}  // namespace hlorun::opencl
