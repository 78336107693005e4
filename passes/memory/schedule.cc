#include "passes/memory/schedule.h"

#include <limits>

#include "passes/memory/schedule_graph.h"

namespace hlorun::passes {

bool Schedule::Run(hlo::Module& module, PassContext& context) {
  CalledPeaks peaks;
  bool changed = !module.is_scheduled;
  for (hlo::Computation* computation : module.ControlComputations()) {
    const ScheduleGraph graph(*computation, context.kernels, peaks);
    ScheduleGraph::Order best;
    int64_t best_peak = std::numeric_limits<int64_t>::max();
    for (const ScheduleGraph::Order& order : {graph.TextOrder(), graph.DepthFirst(), graph.Greedy()}) {
      const int64_t peak = graph.PeakOf(order);
      if (peak >= best_peak) continue;
      best = order;
      best_peak = peak;
    }
    peaks[computation] = best_peak - graph.given_bytes();
    std::vector<hlo::Instruction*> order;
    for (const int node : best) order.push_back(graph.instruction(node));
    size_t position = 0;
    for (const auto& instruction : computation->instructions()) changed |= instruction.get() != order[position++];
    computation->SetOrder(order);
  }
  module.is_scheduled = true;
  return changed;
}

}  // namespace hlorun::passes
