// Attention tile by tile on devices: the evaluator's values, without the scores in memory, and the same bits whatever
// the number of units.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "driver/api/literals.h"
#include "hlo/evaluator/evaluator.h"
#include "hlo/evaluator/leaves.h"
#include "hlorun/hlorun.h"
#include "tests/passes/attention_programs.h"
#include "tests/passes/equivalence.h"

namespace hlorun {
namespace {

using hlo::Literal;

class TilesOnDevicesTest : public ::testing::TestWithParam<AttentionProgram> {};

TEST_P(TilesOnDevicesTest, EqualTheEvaluatorWhateverTheUnits) {
  const auto module = passes::Parse(GetParam().text);
  const std::vector<Literal> arguments = passes::RandomArguments(*module, passes::Inputs::kMild, 1);
  const std::vector<Literal> expected = hlo::FlattenLiteral(hlo::Evaluate(*module, arguments));
  std::vector<Literal> of_two;
  for (const int units : {2, 5}) {
    ClientOptions options;
    options.device_spec = fmt::format(R"({{"l2_bytes": {}, "compute_units": {}}})", kAttentionCache, units);
    const auto client = Client::Create(options);
    const auto executable = client->Compile(Module::FromText(GetParam().text), {});
    const std::vector<Literal> results = ToLiterals(executable->Run(ToDevice(*client, arguments)));
    for (size_t i = 0; i < results.size(); ++i)
      EXPECT_EQ(passes::Difference(expected[i], results[i], passes::kRounding), "") << units << " units, " << i;
    if (of_two.empty()) of_two = results;
    for (size_t i = 0; i < results.size(); ++i)
      EXPECT_EQ(passes::Difference(of_two[i], results[i], passes::kBitwise), "") << units << " units, " << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Programs, TilesOnDevicesTest, ::testing::ValuesIn(AttentionPrograms()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace hlorun
