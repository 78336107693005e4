// Reducers in another precision than the arrays that they combine. A reduction has the reducer's type, a scatter the
// operand's.
#include <string>

#include "tests/conformance/template_cases.h"

// Tables, one case a row.
// clang-format off

namespace hlorun::conformance {
namespace {

// Types of the array, of what is combined with it (updates, initial value), of the reducer's accumulator and of its value.
struct Mix {
  const char *array, *other, *accumulator, *value;
};

constexpr Mix kMixes[] = {
    {"bf16", "bf16", "f32", "f32"}, {"f32", "f32", "bf16", "bf16"}, {"f32", "f32", "f64", "f64"}, {"bf16", "f32", "f32", "f32"},
    {"bf16", "bf16", "f32", "bf16"}, {"f32", "f32", "bf16", "f32"}, {"f16", "bf16", "f32", "f64"}, {"f8e4m3fn", "f8e4m3fn", "bf16", "bf16"},
};

void ReplaceAll(std::string& text, const std::string& from, const std::string& to) {
  for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size())) text.replace(at, from.size(), to);
}

// `text` with the mix's types for $X (array), $O, $A and $V, and a sum in place of $SUM.
Template Mixed(const std::string& name, const Mix& mix, std::string text, std::vector<std::pair<int, std::vector<double>>> given = {}) {
  const std::string widened = std::string(mix.accumulator) == mix.value ? "copy" : "convert";
  ReplaceAll(text, "$SUM", "sum { a = $A[] parameter(0)\n b = $V[] parameter(1)\n w = $A[] " + widened + "(b)\n ROOT c = $A[] add(a, w) }\n");
  ReplaceAll(text, "$ADD2", "sum { a = $A[] parameter(0)\n b = $V[] parameter(1)\n ROOT c = $A[] add(a, b) }\n");
  for (const auto& [hole, type] : {std::pair{"$X", mix.array}, {"$O", mix.other}, {"$A", mix.accumulator}, {"$V", mix.value}}) ReplaceAll(text, hole, type);
  return {"mixed-" + name + "-" + mix.other + "-" + mix.accumulator + "-" + mix.value, mix.array, text, 0, 0, std::move(given)};
}

}  // namespace

std::vector<Template> MixedTemplates() {
  std::vector<Template> templates;
  for (const Mix& mix : kMixes) {
    const std::string sum = std::string(mix.accumulator) == mix.value ? "$ADD2" : "$SUM";
    templates.push_back(Mixed("scatter", mix, sum + "ENTRY e { x = $X[5,4] parameter(0)\n i = s32[3,1] parameter(1)\n u = $O[3,4] parameter(2)\n ROOT r = $X[5,4] scatter(x, i, u), update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=sum }", {{1, {4, 0, 4}}}));
    templates.push_back(Mixed("scatter-many", mix, sum + "ENTRY e { x = $X[2] parameter(0)\n i = s32[600,1] parameter(1)\n u = $O[600] parameter(2)\n ROOT r = $X[2] scatter(x, i, u), update_window_dims={}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=sum }", {{0, {0}}, {1, {0}}, {2, {1}}}));
    templates.push_back(Mixed("scatter-general", mix, "$SUMENTRY e { x = $X[5,4] parameter(0)\n y = $X[5,4] add(x, x)\n i = s32[3,1] parameter(1)\n u = $O[3,4] parameter(2)\n s = $X[5,4] scatter(y, i, u), update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=sum\n ROOT r = $X[5,4] negate(s) }", {{1, {4, 0, 4}}}));
    templates.push_back(Mixed("reduce", mix, sum + "ENTRY e { x = $X[7,9] parameter(0)\n z = $O[] parameter(1)\n ROOT r = $A[7] reduce(x, z), dimensions={1}, to_apply=sum }"));
    templates.push_back(Mixed("reduce-outer", mix, sum + "ENTRY e { x = $X[7,9] parameter(0)\n z = $O[] parameter(1)\n ROOT r = $A[9] reduce(x, z), dimensions={0}, to_apply=sum }"));
    templates.push_back(Mixed("reduce-window", mix, sum + "ENTRY e { x = $X[8,9] parameter(0)\n z = $O[] constant(0)\n ROOT r = $A[4,4] reduce-window(x, z), window={size=2x3 stride=2x2}, to_apply=sum }"));
    templates.push_back(Mixed("select-and-scatter", mix, "ge { a = $X[] parameter(0)\n b = $X[] parameter(1)\n ROOT c = pred[] compare(a, b), direction=GE }\n" + sum + "ENTRY e { x = $X[5,5] parameter(0)\n s = $O[3,3] parameter(1)\n z = $O[] constant(1)\n ROOT r = $X[5,5] select-and-scatter(x, s, z), window={size=3x3}, select=ge, scatter=sum }"));
  }
  // Several operands, one of them mixed.
  templates.push_back({"mixed-scatter-two-operands", "f32", "f { a = $T[] parameter(0)\n b = s32[] parameter(1)\n c = $T[] parameter(2)\n d = s32[] parameter(3)\n s = $T[] add(a, c)\n m = s32[] maximum(b, d)\n ROOT t = ($T[], s32[]) tuple(s, m) }\nENTRY e { x = bf16[5] parameter(0)\n y = s32[5] parameter(1)\n i = s32[3,1] parameter(2)\n u = bf16[3] parameter(3)\n v = s32[3] parameter(4)\n ROOT r = (bf16[5], s32[5]) scatter(x, y, i, u, v), update_window_dims={}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=f }", 0, 0, {{2, {1, 4, 1}}}});
  return templates;
}

}  // namespace hlorun::conformance
