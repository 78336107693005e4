#include "driver/cli/explain.h"

#include <algorithm>
#include <array>

#include "driver/cli/json_text.h"

namespace hlorun::cli {
namespace {

constexpr std::array<const char*, 9> kSubjects = {"conditional", "while",      "dimension", "host call", "product",
                                                  "sharding",    "collective", "memory",    "launch"};

constexpr const char* kNoSource =
    "the module does not tell source lines: export it with metadata (jax: compiler_ir(\"hlo\").as_hlo_module().to_string() "
    "keeps stack frames; torch: scripts/export_torch.py)";

std::string Name(const Remark& remark) {
  const std::string place = remark.source.empty() ? "" : " at " + remark.source;
  const std::string name = remark.instruction.empty() ? "" : " %" + remark.instruction;
  return kSubjects[static_cast<size_t>(remark.subject)] + name + place;
}

bool LacksSource(const std::vector<Remark>& remarks) {
  return std::any_of(remarks.begin(), remarks.end(), [](const Remark& r) { return r.source.empty(); });
}

}  // namespace

std::string ExplainText(const std::vector<Remark>& remarks) {
  if (remarks.empty()) return "explain: no conditional, loop, dynamic dimension or host call is left to decide\n";
  std::string text;
  for (const Remark& remark : remarks) {
    text += fmt::format("explain: {}: {}\n", Name(remark), remark.choice);
    const auto line = [&](const char* what, const std::string& value) {
      if (!value.empty()) text += fmt::format("  {:<6}{}\n", what, value);
    };
    line("why", remark.reason);
    line("cost", remark.cost);
    line("avoid", remark.advice);
  }
  if (LacksSource(remarks)) text += fmt::format("explain: {}\n", kNoSource);
  return text;
}

std::string ExplainJson(const std::vector<Remark>& remarks) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const Remark& remark : remarks) {
    list.push_back({{"subject", kSubjects[static_cast<size_t>(remark.subject)]},
                    {"instruction", remark.instruction},
                    {"source", remark.source},
                    {"choice", remark.choice},
                    {"reason", remark.reason},
                    {"cost", remark.cost},
                    {"advice", remark.advice},
                    {"host_waits", remark.host_waits}});
  }
  return TextOf(nlohmann::ordered_json{{"explain", list}}) + "\n";
}

std::string HostWaits(const std::vector<Remark>& remarks) {
  std::vector<Remark> waits;
  std::copy_if(remarks.begin(), remarks.end(), std::back_inserter(waits), [](const Remark& r) { return r.host_waits; });
  std::string text;
  for (const Remark& remark : waits) {
    text += fmt::format("hlorun: strict: {}: {}{}\n", Name(remark), remark.reason,
                        remark.advice.empty() ? "" : "; " + remark.advice);
  }
  if (LacksSource(waits)) text += fmt::format("hlorun: strict: {}\n", kNoSource);
  return text;
}

}  // namespace hlorun::cli
