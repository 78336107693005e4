// The cases themselves: names are unique, the evaluator takes nearly all, and packing changes no result.
#include "tests/conformance/packing.h"

#include <gtest/gtest.h>

#include <set>

#include "hlo/evaluator/evaluator.h"
#include "hlo/evaluator/leaves.h"
#include "hlo/text/parser.h"
#include "hlo/verifier.h"

namespace hlorun::conformance {
namespace {

TEST(ConformanceCasesTest, NamesAreUnique) {
  std::set<std::string> names;
  for (const Case& c : AllCases()) EXPECT_TRUE(names.insert(c.name).second) << c.name;
}

TEST(ConformanceCasesTest, AllAreValidHlo) {
  for (const Case& c : AllCases()) {
    EXPECT_NO_THROW(hlo::VerifyModule(*hlo::ParseModule(c.text, {.file_name = c.name}))) << c.name;
  }
}

TEST(ConformanceCasesTest, PackedCasesGiveWhatTheyGiveAlone) {
  std::vector<Case> cases;
  std::vector<std::vector<hlo::Literal>> alone;
  size_t index = 0;
  for (Case& c : AllCases()) {
    if (index++ % 7 != 0) continue;
    alone.push_back(hlo::FlattenLiteral(hlo::Evaluate(*hlo::ParseModule(c.text, {.file_name = c.name}), c.inputs)));
    cases.push_back(std::move(c));
  }
  const hlo::Literal together = hlo::Evaluate(*Packed(cases), PackedInputs(cases));
  ASSERT_EQ(together.elements().size(), cases.size());
  for (size_t i = 0; i < cases.size(); ++i) {
    const std::vector<hlo::Literal> leaves = hlo::FlattenLiteral(together.elements()[i]);
    ASSERT_EQ(leaves.size(), alone[i].size()) << cases[i].name;
    for (size_t k = 0; k < leaves.size(); ++k)
      EXPECT_EQ(Difference(cases[i], leaves[k], alone[i][k]), "") << cases[i].name;
  }
}

TEST(ConformanceCasesTest, DifferencesAreSeen) {
  Case c;
  c.ulps = 2;
  const hlo::Literal expected = ArrayOf(hlo::ElementType::kF32, {1, 0});
  EXPECT_EQ(Difference(c, ArrayOf(hlo::ElementType::kF32, {1 + 0x1p-22, 0}), expected), "");
  EXPECT_NE(Difference(c, ArrayOf(hlo::ElementType::kF32, {1 + 0x1p-21, 0}), expected), "");
  EXPECT_NE(Difference(c, ArrayOf(hlo::ElementType::kF32, {1, -0.0}), expected), "");
}

}  // namespace
}  // namespace hlorun::conformance
