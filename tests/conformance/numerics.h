// Elementary functions of a device measured against the C library's f64, which reference_functions_test checks against
// MPFR.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "driver/include/hlorun/hlorun.h"

namespace hlorun::conformance {

struct ElementaryFunction {
  const char* opcode;
  int arguments;
  double (*reference)(double, double);  // the second argument is unused where there is one
  double low, high;                     // where half of the seeded arguments lie; the others are any bits
};
std::span<const ElementaryFunction> ElementaryFunctions();

// The worst error of one function, in units in the last place of the exact result.
struct Accuracy {
  double ulps = 0;
  double x = 0, y = 0;  // where
  double got = 0, exact = 0;
  int64_t values = 0;
};

// How far `got` is from `exact`. Results below the smallest normal may be zero.
template <typename Float>
double ErrorInUlps(Float result, double exact);

// Runs all functions of `arguments` arguments on arrays of `type` (f64, f32, f16 or bf16) and compares.
class Measurement {
 public:
  Measurement(Client& client, ElementType type, int arguments, int64_t count, const std::string& only);
  // x and y: `count` elements each (y empty for one argument). Adds to accuracies().
  void Run(std::span<const double> x, std::span<const double> y);
  const std::vector<const ElementaryFunction*>& functions() const { return functions_; }
  const std::vector<Accuracy>& accuracies() const { return accuracies_; }

 private:
  template <typename Float>
  void Compare(std::span<const double> x, std::span<const double> y);

  Client& client_;
  ElementType type_;
  int64_t count_;
  std::vector<const ElementaryFunction*> functions_;
  std::vector<Accuracy> accuracies_;
  std::shared_ptr<Executable> executable_;
};

}  // namespace hlorun::conformance
