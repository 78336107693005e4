#include <algorithm>

#include "backends/opencl/codegen/emission.h"
#include "backends/opencl/codegen/emitters.h"

namespace hlorun::opencl {

using hlo::Instruction;

Launches CopyUpdated(const EmitRequest& request, const Instruction& update) {
  Launches launches;
  for (size_t leaf = 0; leaf < hlo::FlattenShape(update.shape()).size(); ++leaf) {
    if (leaf < request.aliases.size() && request.aliases[leaf] >= 0) continue;
    Emission copy(request.instruction, request.aliases, request.context);
    launches.push_back(CopyInto(copy, leaf, copy.frame(), *update.operand(static_cast<int64_t>(leaf))));
  }
  return launches;
}

Launches EmitInPlaceUpdate(const EmitRequest& request) {
  const Instruction& update = *request.hero.instruction;
  Launches launches = CopyUpdated(request, update);
  Emission e(request.instruction, request.aliases, request.context);
  const auto& output = e.outputs()[0];
  const hlo::Shape& region = update.operand(1)->shape();
  if (region.ElementCount() == 0) return launches;
  hlo::Dims dims = region.dimensions();
  if (dims.empty()) dims = {1};
  launches.push_back(OverElements(e, dims, [&](const Indices& loop) {
    const Indices at = region.rank() == 0 ? Indices{} : loop;
    Indices place;
    for (int64_t d = 0; d < region.rank(); ++d) {
      const int64_t limit = output.shape.dimension(d) - region.dimension(d);
      const bool packed =
          update.operand_count() == 3 && update.operand(2)->shape().rank() == 1;  // old form: one s32[n]
      const Value start = packed ? e.values().Get(e.frame(), *update.operand(2), {Index(d)})
                                 : e.values().Get(e.frame(), *update.operand(2 + d), {});
      place.push_back(
          e.math().Add(at[static_cast<size_t>(d)], limit == 0 ? Index(0) : e.values().RuntimeIndex(start, limit)));
    }
    e.Store(output, place, e.values().Get(e.frame(), *update.operand(1), at));
  }));
  return launches;
}

}  // namespace hlorun::opencl
