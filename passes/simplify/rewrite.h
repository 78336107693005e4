// Applies the table of rewrite rules until none of them matches.
#pragma once

#include <cstdint>
#include <map>
#include <string_view>

#include "passes/pass.h"
#include "passes/simplify/rule.h"

namespace hlorun::passes {

class RewriteByRules : public Pass {
 public:
  std::string_view name() const override { return "rules"; }
  bool Run(hlo::Module& module, PassContext& context) override;
};

// Applies `rules` to every computation until none matches. Returns how often each fired.
std::map<std::string_view, int64_t> ApplyRules(hlo::Module& module, const std::vector<Rule>& rules);

// How often each rule has fired in this process since it started, for --stats. Safe from any thread.
std::map<std::string_view, int64_t> RuleFirings();

}  // namespace hlorun::passes
