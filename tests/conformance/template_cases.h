// Cases that are HLO text with a hole for the type.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace hlorun::conformance {

// `text` is what stands in the module after its first line; every $T becomes each of `types` (separated by spaces) in
// turn, and $ADD, $MUL, $MAX, $MIN, ... the definition of a reducer named add, mul, max, min of that type.
// Parameters not given are filled with seeded small integers, whose sums and products are exact.
struct Template {
  std::string name;
  std::string types;
  std::string text;
  double ulps = 0;
  double relative = 0;
  std::vector<std::pair<int, std::vector<double>>> given = {};  // parameter number -> values, repeated to fill
  std::string oracle_fault = {};                                // see Case
};

std::vector<Template> MovementTemplates();
std::vector<Template> ReductionTemplates();
std::vector<Template> ProductTemplates();
std::vector<Template> IndexingTemplates();
std::vector<Template> NumericTemplates();
std::vector<Template> ControlTemplates();
std::vector<Template> StructureTemplates();
std::vector<Template> GridTemplates();
std::vector<Template> TypeTemplates();
std::vector<Template> MixedTemplates();

}  // namespace hlorun::conformance
