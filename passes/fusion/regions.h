// Regions: runs of small kernels, whole loops and branches included, that one work-item executes in turn inside of one
// kernel. What they save is launches, and where a loop's length or a branch is data, the host's wait for it.
//
//   before: a = fusion(x)  w = while((i, a)), body={ three fusions }  r = fusion(w.1, y)
//   after:  r = fusion(x, y), kind=kCustom, calls={ all of it }, backend_config={"region":"sequential"}
//
// Runs after Fusion, so that its members are kernels. A kernel joins when one work-item does its work in less time than
// launching it takes; a loop or branch when running it there is faster than launching its kernels (TimeModel). Of a
// computation, what is between two larger kernels becomes one region. Nothing with effects, no collective, sort,
// scatter or host call.
#pragma once

#include "passes/pass.h"

namespace hlorun::passes {

class FormRegions : public Pass {
 public:
  std::string_view name() const override { return "regions"; }
  bool Run(hlo::Module& module, PassContext& context) override;
};

}  // namespace hlorun::passes
