// The inputs of --vary_inputs: other values for each run.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <vector>

#include "hlo/literal.h"

namespace hlorun {

// Making values keeps one core busy for many times as long as a short run takes, and meanwhile the others fall asleep:
// a run that comes right behind pays for waking them (2.0 instead of 1.2 ms: docs/performance.md). So the values of
// several runs are made at once, and each run gets a copy, written just before it by one thread. Not thread-safe.
class VariedInputs {
 public:
  using Make = std::function<std::vector<hlo::Literal>(int64_t run)>;

  // Of runs 1 .. `runs`; `make` gives those of one run.
  VariedInputs(int64_t runs, Make make);
  // Those of the next run, in memory of their own.
  std::vector<hlo::Literal> Next();

 private:
  void MakeAhead();

  int64_t runs_, made_ = 0;
  Make make_;
  std::deque<std::vector<hlo::Literal>> ahead_;
};

}  // namespace hlorun
