// Conformance cases: each op, in each type, on values where implementations differ.
//
// A case is a small module with its inputs. The evaluator says what it must compute;
// scripts/conformance_against_jaxlib.py holds the evaluator against XLA:CPU on the same cases, and
// device_conformance_test holds the devices against the evaluator.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "hlo/literal.h"

namespace hlorun::conformance {

struct Case {
  std::string name;  // "add/f32", unique
  std::string text;  // a whole module
  std::vector<hlo::Literal> inputs;
  // How far results of another implementation may be, in units in the last place of the result's type, where results
  // are floating; 0: the same value (NaN equals NaN).
  double ulps = 0;
  // Differences below this times the largest magnitude of the result do not count: for sums with cancellation.
  double relative = 0;
  // Adds in an order that is free, and so is the sign of a sum that is zero.
  bool sums = false;
  // Reads what a run keeps for the whole program (the random state), so that no other case may be in its module.
  bool alone = false;
  // Where XLA:CPU is known to be wrong: how. The evaluator then does what the op says.
  std::string oracle_fault = {};
};

// Every op in every type, in a fixed order, with seeded inputs, whether or not the op has a meaning for the type.
std::vector<Case> Candidates();
// Those of them that the verifier accepts.
std::vector<Case> AllCases();

// By family; each is defined in the file of its name.
void AddElementwiseCases(std::vector<Case>& cases);
void AddConversionCases(std::vector<Case>& cases);
void AddTemplateCases(std::vector<Case>& cases);

// Of arrays: the columns of docs/ops.md.
inline constexpr std::array kArrayTypes = {hlo::ElementType::kPred,       hlo::ElementType::kS2,
                                           hlo::ElementType::kS4,         hlo::ElementType::kS8,
                                           hlo::ElementType::kS16,        hlo::ElementType::kS32,
                                           hlo::ElementType::kS64,        hlo::ElementType::kU2,
                                           hlo::ElementType::kU4,         hlo::ElementType::kU8,
                                           hlo::ElementType::kU16,        hlo::ElementType::kU32,
                                           hlo::ElementType::kU64,        hlo::ElementType::kF16,
                                           hlo::ElementType::kBF16,       hlo::ElementType::kF32,
                                           hlo::ElementType::kF64,        hlo::ElementType::kC64,
                                           hlo::ElementType::kC128,       hlo::ElementType::kF8E5M2,
                                           hlo::ElementType::kF8E4M3FN,   hlo::ElementType::kF8E4M3B11FNUZ,
                                           hlo::ElementType::kF8E5M2FNUZ, hlo::ElementType::kF8E4M3FNUZ,
                                           hlo::ElementType::kF8E4M3,     hlo::ElementType::kF8E3M4,
                                           hlo::ElementType::kF4E2M1FN,   hlo::ElementType::kF8E8M0FNU};

// Values where arithmetic on `type` has edges: zeros, ones, extremes, infinities, NaN, denormals.
std::vector<double> EdgeValues(hlo::ElementType type);
// Element i is values[i], rounded to the type.
hlo::Literal ArrayOf(hlo::ElementType type, const std::vector<double>& values);

}  // namespace hlorun::conformance
