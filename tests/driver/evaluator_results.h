// A program on the first device beside the evaluator.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "driver/api/literals.h"
#include "hlo/evaluator/evaluator.h"
#include "hlo/evaluator/leaves.h"
#include "hlorun/hlorun.h"
#include "tests/passes/equivalence.h"

namespace hlorun {

// Expects the program's first result to be the evaluator's, up to rounding, for some seeded arguments.
inline void ExpectEvaluatorsResult(const std::string& text, const ClientOptions& options = {}) {
  const auto client = Client::Create(options);
  const auto executable = client->Compile(Module::FromText(text), {});
  const auto module = passes::Parse(text);
  for (uint64_t seed = 1; seed <= 3; ++seed) {
    const std::vector<Literal> arguments = passes::RandomArguments(*module, passes::Inputs::kMild, seed);
    const Literal expected = hlo::FlattenLiteral(hlo::Evaluate(*module, arguments))[0];
    const Literal result = ToLiterals(executable->Run(ToDevice(*client, arguments)))[0];
    EXPECT_EQ(passes::Difference(expected, result, passes::kRounding), "");
  }
}

}  // namespace hlorun
