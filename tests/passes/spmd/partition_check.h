// Runs a module whole and partitioned, both by the evaluator, and compares.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "hlo/module.h"
#include "passes/pass.h"

namespace hlorun::passes {

struct PartitionOutcome {
  std::string difference;  // empty: equal
  std::string text;        // the partitioned module
  std::vector<Remark> remarks;
};

// Integer-valued arguments from `seed`: floats -3 .. 3, integers -2 .. 9, so that sums are exact in any order.
std::vector<hlo::Literal> IntegerArguments(const hlo::Module& module, uint64_t seed);

// What the evaluator gives for the whole program, its annotations ignored: one literal a leaf.
std::vector<hlo::Literal> WholeResults(const hlo::Module& module, const std::vector<hlo::Literal>& arguments);
// Empty when equal (NaNs are), else the first element that differs.
std::string ExactDifference(const hlo::Literal& expected, const hlo::Literal& actual);

// The module for `partitions` devices, verified.
std::unique_ptr<hlo::Module> Partitioned(const hlo::Module& module, int64_t partitions,
                                         std::vector<Remark>* remarks = nullptr);

// Padding of the parameters' parts is filled with NaN-like bytes: results must not depend on it.
PartitionOutcome PartitionAndCompare(const hlo::Module& module, int64_t partitions, uint64_t seed);

}  // namespace hlorun::passes
