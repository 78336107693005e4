// What kernels of cumulative ops (hlo/cumulative_window.h) have in common: the chains of elements along one
// dimension, the dimensions before and behind it, and the values that run along a chain.
#pragma once

#include <optional>
#include <vector>

#include "backends/opencl/codegen/emission.h"
#include "backends/opencl/codegen/emitters.h"
#include "hlo/cumulative_window.h"

namespace hlorun::opencl {

// One running value of each array, in a variable or two.
struct Running {
  std::vector<ir::Var> re, im;

  Values Current() const;
  void Set(Body& body, const Values& values) const;
};

class CumulativeChains {
 public:
  CumulativeChains(const EmitRequest& request, const hlo::CumulativeWindow& form);

 protected:
  // The dimensions before or behind the one that values run along. Up to the last whose size is data each is a parallel
  // loop of its own; from there on they are counted together.
  struct Side {
    std::vector<ir::Var> loops;
    hlo::Dims sizes;  // of the loops
    std::vector<ir::Expr> ends;
    hlo::Dims together;
    int64_t count = 1;  // of all elements together
    ir::Expr end;       // how many of them are needed
    bool is_sized = false;
  };

  // The index of element `i` of a chain: its numbers among the elements that each side counts together.
  Indices Place(const Index& outer, const Index& i, const Index& inner);
  Values Initial();
  // Elements are combined in the order in which they lie.
  Values Combine(Values before, Values here);
  Values ElementsAt(const Indices& place);
  Values Next(Values before, const Indices& place) { return Combine(std::move(before), ElementsAt(place)); }
  void StoreAt(const Indices& place, const Values& values);
  Running Variables(const Values& initial);
  // `loops` inside of those of the dimensions that are not counted together.
  EmittedLaunch Finish(ir::Stmt loops, const ir::Stmt& body);

  Emission e_;
  const hlo::Instruction& op_;
  hlo::CumulativeWindow form_;
  int64_t arrays_;
  const hlo::Shape& shape_;  // of each array
  int64_t length_;
  Side outer_, inner_;
  bool is_sized_ = false;
  ir::Expr end_;  // of the steps

 private:
  std::optional<passes::OperandExtent> ExtentOf(int64_t dimension);
  Side SideOf(int64_t begin, int64_t end);
  void AppendPlace(const Side& side, const Index& linear, Indices& place);
};

}  // namespace hlorun::opencl
