// For tests of passes that compute beside exchanges: a device of which exchanges take as long as kernels, and what all
// devices of a module compute.
#pragma once

#include <vector>

#include "hlo/device_spec.h"
#include "hlo/evaluator/evaluator.h"
#include "hlo/evaluator/leaves.h"
#include "tests/passes/equivalence.h"

namespace hlorun::passes {

// A microsecond for a byte, and products that take half as long.
inline DeviceSpec SlowExchanges(DeviceClass device_class = DeviceClass::kGpu) {
  DeviceSpec device;
  device.device_class = device_class;
  device.cost_table = {{"all_reduce_8_us", 8}, {"all_reduce_1000000_us", 1000000}};
  device.f32_gflops = 0.064;
  return device;
}

// By device, then by leaf of the result.
inline std::vector<std::vector<hlo::Literal>> ResultsOfAll(const hlo::Module& module) {
  std::vector<std::vector<hlo::Literal>> arguments, results;
  for (int64_t device = 0; device < module.num_partitions; ++device)
    arguments.push_back(RandomArguments(module, Inputs::kMild, static_cast<uint64_t>(device) + 1));
  for (const hlo::Literal& result : hlo::EvaluateSpmd(module, arguments))
    results.push_back(hlo::FlattenLiteral(result));
  return results;
}

// Of the module as it was, and as it has become.
inline void ExpectSameResults(const std::vector<std::vector<hlo::Literal>>& before, const hlo::Module& module,
                              const Tolerance& tolerance) {
  const auto after = ResultsOfAll(module);
  ASSERT_EQ(before.size(), after.size());
  for (size_t d = 0; d < before.size(); ++d) {
    ASSERT_EQ(before[d].size(), after[d].size());
    for (size_t i = 0; i < before[d].size(); ++i)
      EXPECT_EQ(Difference(before[d][i], after[d][i], tolerance), "") << hlo::PrintModule(module);
  }
}

}  // namespace hlorun::passes
