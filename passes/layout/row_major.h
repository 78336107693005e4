// Layout assignment: afterwards every shape is row-major and every move of data explicit.
//
// Arrays at the edges are logical row-major arrays (as .npy files and literals are), so an entry layout in the text
// says how XLA would store an argument, not which element is where; it is dropped, and so are layouts inside. A `copy`
// that only changed layout is a plain copy then. A bitcast reads its operand's memory in another layout: with the
// layouts as written it becomes reshape, transpose or both. Dots, convolutions and others ask for nothing here: the
// kernels take row-major operands in the few forms that the canonical passes leave.
#pragma once

#include "passes/pass.h"

namespace hlorun::passes {

class AssignRowMajorLayouts : public Pass {
 public:
  std::string_view name() const override { return "layout"; }
  bool Run(hlo::Module& module, PassContext& context) override;
};

}  // namespace hlorun::passes
