#include "backends/opencl/runtime/program_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <functional>
#include <map>

#include "backends/opencl/runtime/cache_directory.h"
#include "backends/opencl/runtime/kernel_text.h"
#include "backends/opencl/runtime/launch_table.h"

namespace hlorun::opencl {
namespace {

constexpr size_t kLeastPointers = 4;

std::string Renamed(const std::string& name, const std::string& symbol, const std::string& text) {
  return fmt::format("#define {0} {1}\n{2}\n#undef {0}\n", name, symbol, text);
}

std::string AloneText(const Kernel& kernel, const ProgramForm& form, const std::string& symbol) {
  return Renamed(kernel.name, symbol, form.guarded && !kernel.foreign ? WithEntryGuard(kernel) : kernel.source);
}

// One member of a joined kernel.
struct Case {
  size_t member;
  std::string name, symbol;  // the symbol is the function's
  KernelFunction function;
};

// How a joined kernel spells what it is given.
struct JoinedKernel {
  std::string parameters, which, groups;
  std::function<std::string(size_t)> pointer;
};

JoinedKernel WithArguments(size_t pointers) {
  std::string parameters;
  for (size_t i = 0; i < pointers; ++i) parameters += fmt::format("__global char* p{}, ", i);
  return {parameters + "int which", "which", "(int)get_group_id(0)", [](size_t i) { return fmt::format("p{}", i); }};
}

JoinedKernel WithTable() {
  const auto word = [](size_t i) { return fmt::format("p0[{}]", i); };
  return {"__global const ulong* p0", "(int)" + word(LaunchTable::kWhich),
          fmt::format("(int){}, (int){}", word(LaunchTable::kFirstGroup), word(LaunchTable::kEndGroup)),
          [word](size_t i) { return word(LaunchTable::kArrays + i); }};
}

// A switch over the functions' numbers.
std::string SwitchText(const std::vector<Case>& cases, const JoinedKernel& kernel) {
  std::string text = fmt::format("  switch ({}) {{\n", kernel.which);
  for (size_t i = 0; i < cases.size(); ++i) {
    std::string arguments;
    for (size_t a = 0; a < cases[i].function.types.size(); ++a)
      arguments += fmt::format("({}){}, ", cases[i].function.types[a], kernel.pointer(a));
    text += fmt::format("    case {}: {}({}{}); break;\n", i, cases[i].symbol, arguments, kernel.groups);
  }
  return text + "  }\n";
}

// The switch as a function of its own, and a kernel that says where it lies. (OpenCL C has no addresses of functions,
// but the assembler does.)
std::string NativeText(const std::vector<Case>& cases, const JoinedKernel& kernel, const ProgramForm& form,
                       const std::string& symbol) {
  const std::string call =
      form.kernels_call ? fmt::format("  if ({} != {}) {}_call(p0);\n", kernel.which, LaunchTable::kWhere, symbol) : "";
  return fmt::format(R"(__attribute__((noinline, used)) void {0}_call({1}) {{
{2}}}
__kernel {3} void {0}(__global ulong* p0) {{
  if (!p0) return;
{4}  ulong where;
  __asm__("leaq {0}_call(%%rip), %0" : "=r"(where));
  p0[{5}] = where;
}}
)",
                     symbol, kernel.parameters, SwitchText(cases, kernel), kOneItem, call, LaunchTable::kFirstGroup);
}

// void SYMBOL(p0 ...): calls the function whose number it is given.
std::string JoinedText(const std::vector<Case>& cases, const ProgramForm& form, size_t pointers,
                       const std::string& symbol) {
  std::string text;
  for (const Case& c : cases) text += Renamed(c.name, c.symbol, c.function.text);
  const JoinedKernel kernel = form.shares_groups ? WithTable() : WithArguments(pointers);
  if (form.native_calls) return text + NativeText(cases, kernel, form, symbol);
  return text + fmt::format("__kernel {} void {}({}) {{\n{}{}}}\n", kOneItem, symbol, kernel.parameters,
                            form.guarded ? "  if (!p0) return;\n" : "", SwitchText(cases, kernel));
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
  // A pointer that a kernel does not have costs its launches a little: few kernels get twice as many as they need. Of a
  // table all get what they need.
  std::map<size_t, std::vector<Case>> joined;
  for (size_t m = 0; m < members.size(); ++m) {
    const Kernel& kernel = kernels[static_cast<size_t>(members[m])];
    program.entries[m] = {SymbolOf(kernel), -1, static_cast<uint32_t>(kernel.parameter_count)};
    // A kernel's variant for large grids would be one of all that are joined.
    const bool is_large = std::any_of(kernel.grids.begin(), kernel.grids.end(),
                                      [&](const Grid& g) { return IsLargeGrid(g, form.large_grid_groups); });
    const bool joins = form.shares_groups || (form.joined && !is_large && IsFunction(kernel));
    if (!joins) continue;
    KernelFunction function = AsFunction(kernel, form.shares_groups);
    const size_t pointers = form.shares_groups ? (form.joined || form.native_calls ? 0 : m)
                                               : std::bit_ceil(std::max(function.types.size(), kLeastPointers));
    joined[pointers].push_back({m, kernel.name, SymbolOf(kernel), std::move(function)});
  }
  for (auto& [pointers, cases] : joined) {
    if (cases.size() < 2 && !form.shares_groups) continue;
    std::string symbol;
    for (const Case& c : cases) symbol += c.symbol;
    symbol = "joined_" + HashText(symbol).substr(0, 12);
    for (size_t i = 0; i < cases.size(); ++i)
      program.entries[cases[i].member] = {symbol, static_cast<int32_t>(i),
                                          static_cast<uint32_t>(form.shares_groups ? 0 : pointers), form.shares_groups};
    program.source += JoinedText(cases, form, pointers, symbol);
  }
  for (size_t m = 0; m < members.size(); ++m) {
    if (program.entries[m].which >= 0) continue;
    program.source += AloneText(kernels[static_cast<size_t>(members[m])], form, program.entries[m].symbol);
  }
  return program;
}

}  // namespace hlorun::opencl
