#include "hlo/custom_calls/registry.h"

#include <algorithm>
#include <array>
#include <numeric>

#include "hlo/custom_calls/named_ops.h"
#include "hlo/error.h"
#include "hlo/lapack/lapack.h"

namespace hlorun::hlo {
namespace {

// Targets that call the Python function object that JAX had when it traced the program.
constexpr std::array<std::string_view, 5> kPythonCallbacks = {
    "xla_ffi_python_cpu_callback", "xla_ffi_partitioned_python_cpu_callback", "xla_python_cpu_callback",
    "xla_buffer_python_cpu_callback", "CallbackCustomCall"};

// Levenshtein's distance.
size_t Distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 0; i < a.size(); ++i) {
    size_t diagonal = std::exchange(row[0], i + 1);
    for (size_t j = 0; j < b.size(); ++j) {
      const size_t change = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({change, row[j] + 1, diagonal + 1});
    }
  }
  return row.back();
}

}  // namespace

void CustomCallRegistry::Add(CustomCallDefinition definition) {
  if (definition.target.empty()) Invalid("a custom-call target has no name");
  const std::vector<std::string> named = NamedTargets();
  const bool is_named = std::find(named.begin(), named.end(), definition.target) != named.end();
  if (definition.target.starts_with("hlorun.") || is_named || HasLapackRoutine(definition.target)) {
    Invalid("the custom-call target {} is hlorun's own", definition.target);
  }
  std::string target = definition.target;
  if (!definitions_.try_emplace(target, std::move(definition)).second) {
    Invalid("the custom-call target {} is registered twice", target);
  }
}

const CustomCallDefinition* CustomCallRegistry::Find(std::string_view target) const {
  const auto found = definitions_.find(target);
  return found == definitions_.end() ? nullptr : &found->second;
}

std::vector<std::string> CustomCallRegistry::Targets() const {
  std::vector<std::string> targets;
  for (const auto& [target, definition] : definitions_) targets.push_back(target);
  return targets;
}

HostFunction FindHostFunction(const CustomCallRegistry* registry, const std::string& target) {
  const CustomCallDefinition* definition = registry == nullptr ? nullptr : registry->Find(target);
  if (definition == nullptr) return FindLapackRoutine(target);
  return definition->host;
}

void FailUnknownTarget(const CustomCallRegistry* registry, const std::string& target) {
  if (std::find(kPythonCallbacks.begin(), kPythonCallbacks.end(), target) != kPythonCallbacks.end()) {
    Fail(ErrorCode::kUnimplemented,
         "custom-call target \"{}\" calls back into the Python process that exported the module, which is not there; "
         "export without pure_callback, io_callback and debug.print, or register a function of that name with "
         "--custom_calls",
         target);
  }
  std::vector<std::pair<size_t, std::string>> nearest;
  std::vector<std::string> known = LapackTargets();
  const std::vector<std::string> named = NamedTargets();
  known.insert(known.end(), named.begin(), named.end());
  if (registry != nullptr) {
    const std::vector<std::string> own = registry->Targets();
    known.insert(known.end(), own.begin(), own.end());
  }
  for (std::string& name : known) nearest.emplace_back(Distance(target, name), std::move(name));
  std::sort(nearest.begin(), nearest.end());
  std::string names;
  for (size_t i = 0; i < std::min<size_t>(nearest.size(), 3); ++i) {
    names += fmt::format("{}\"{}\"", i == 0 ? "" : ", ", nearest[i].second);
  }
  Fail(ErrorCode::kUnimplemented,
       "custom-call target \"{}\" is not known; the nearest known ones are {}; --custom_calls=FILE.json registers more",
       target, names);
}

}  // namespace hlorun::hlo
