#include "backends/opencl/runtime/program_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <map>

#include "backends/opencl/runtime/cache_directory.h"
#include "backends/opencl/runtime/kernel_text.h"

namespace hlorun::opencl {
namespace {

constexpr size_t kLeastPointers = 4;

std::string Renamed(const std::string& name, const std::string& symbol, const std::string& text) {
  return fmt::format("#define {0} {1}\n{2}\n#undef {0}\n", name, symbol, text);
}

std::string AloneText(const Kernel& kernel, const ProgramForm& form, const std::string& symbol) {
  const std::string text = form.shares_groups                ? WithGroupLoop(kernel.source, kernel.name)
                           : form.guarded && !kernel.foreign ? WithEntryGuard(kernel)
                                                             : kernel.source;
  return Renamed(kernel.name, symbol, text);
}

// One member of a joined kernel.
struct Case {
  size_t member;
  std::string name, symbol;  // the symbol is the function's
  KernelFunction function;
};

// void SYMBOL(p0 ..., which): calls the function whose number it is given.
std::string JoinedText(const std::vector<Case>& cases, size_t pointers, const ProgramForm& form,
                       const std::string& symbol) {
  std::string parameters, text;
  for (size_t i = 0; i < pointers; ++i) parameters += fmt::format("__global char* p{}, ", i);
  const char* shares = form.shares_groups ? ", int hl_first, int hl_end" : "";
  const char* groups = form.shares_groups ? "hl_first, hl_end" : "(int)get_group_id(0)";
  for (const Case& c : cases) text += Renamed(c.name, c.symbol, c.function.text);
  text += fmt::format("__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void {}({}int which{}) {{\n", symbol,
                      parameters, shares);
  text += form.guarded ? "  if (!p0) return;\n  switch (which) {\n" : "  switch (which) {\n";
  for (size_t i = 0; i < cases.size(); ++i) {
    std::string arguments;
    for (size_t a = 0; a < cases[i].function.types.size(); ++a)
      arguments += fmt::format("({})p{}, ", cases[i].function.types[a], a);
    text += fmt::format("    case {}: {}({}{}); break;\n", i, cases[i].symbol, arguments, groups);
  }
  return text + "  }\n}\n";
}

}  // namespace

std::string SymbolOf(const Kernel& kernel) { return kernel.name + "_" + HashText(kernel.source).substr(0, 12); }

bool IsLargeGrid(const Grid& grid, int64_t large_grid_groups) {
  return std::any_of(grid.groups.begin(), grid.groups.end(),
                     [&](int64_t n) { return large_grid_groups > 0 && n >= large_grid_groups; });
}

ProgramText TextOf(const std::vector<Kernel>& kernels, std::span<const int32_t> members, const ProgramForm& form) {
  ProgramText program;
  program.entries.resize(members.size());
  // A pointer that a kernel does not have costs its launches a little: few kernels get twice as many as they need.
  std::map<size_t, std::vector<Case>> joined;
  for (size_t m = 0; m < members.size(); ++m) {
    const Kernel& kernel = kernels[static_cast<size_t>(members[m])];
    program.entries[m] = {SymbolOf(kernel), -1, static_cast<uint32_t>(kernel.parameter_count)};
    // A kernel's variant for large grids would be one of all that are joined.
    const bool is_large = std::any_of(kernel.grids.begin(), kernel.grids.end(),
                                      [&](const Grid& g) { return IsLargeGrid(g, form.large_grid_groups); });
    if (!form.joined || is_large) continue;
    if (std::optional<KernelFunction> function = AsFunction(kernel, form.shares_groups)) {
      const size_t pointers = std::bit_ceil(std::max(function->types.size(), kLeastPointers));
      joined[pointers].push_back({m, kernel.name, SymbolOf(kernel), std::move(*function)});
    }
  }
  for (auto& [pointers, cases] : joined) {
    if (cases.size() < 2) continue;
    std::string symbol;
    for (const Case& c : cases) symbol += c.symbol;
    symbol = "joined_" + HashText(symbol).substr(0, 12);
    for (size_t i = 0; i < cases.size(); ++i)
      program.entries[cases[i].member] = {symbol, static_cast<int32_t>(i), static_cast<uint32_t>(pointers)};
    program.source += JoinedText(cases, pointers, form, symbol);
  }
  for (size_t m = 0; m < members.size(); ++m) {
    if (program.entries[m].which >= 0) continue;
    program.source += AloneText(kernels[static_cast<size_t>(members[m])], form, program.entries[m].symbol);
  }
  return program;
}

}  // namespace hlorun::opencl
