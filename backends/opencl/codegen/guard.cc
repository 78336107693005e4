#include "backends/opencl/codegen/guard.h"

#include <fmt/format.h>

#include "backends/opencl/codegen/opencl_c.h"

namespace hlorun::opencl {
namespace {

std::string ConditionOf(const Guard& guard, size_t number) {
  if (guard.is_predicate) return fmt::format("guard{}[0] {} 0", number, guard.branch == 0 ? "!=" : "==");
  const int64_t last = guard.branches - 1;
  if (guard.branch < last) return fmt::format("guard{}[0] == {}", number, guard.branch);
  return fmt::format("guard{0}[0] < 0 || guard{0}[0] >= {1}", number, last);
}

}  // namespace

EmittedLaunch Guarded(EmittedLaunch launch, const std::vector<Guard>& guards) {
  if (guards.empty()) return launch;
  std::vector<GuardText> texts;
  for (const Guard& guard : guards)
    texts.push_back({guard.is_predicate ? "uchar" : "int", ConditionOf(guard, texts.size())});
  launch.source = WithGuards(std::move(launch.source), kKernelName, texts);
  for (const GuardText& text : texts) launch.kernel_ir += fmt::format("guard: {}\n", text.condition);
  return launch;
}

}  // namespace hlorun::opencl
