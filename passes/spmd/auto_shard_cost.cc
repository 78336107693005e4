#include "passes/spmd/auto_shard_cost.h"

#include <algorithm>
#include <cstdlib>
#include <string_view>

#include "hlo/communication_cost.h"
#include "hlo/cost_analysis.h"
#include "passes/control/trip_count.h"
#include "passes/spmd/link.h"

namespace hlorun::passes::spmd {
namespace {

using hlo::Computation;
using hlo::Instruction;
using hlo::Opcode;

// What a device is taken for where bench/roofline did not measure it.
constexpr double kNominalFlopsPerLane = 2 * 3e9;  // one multiply-add a cycle and lane
constexpr double kNominalBandwidth = 15e9;
// Shares that our kernels reach (docs/products.md, docs/performance.md).
constexpr double kProductEfficiency = 0.8;
constexpr double kFusedTraffic = 0.35;  // of an elementwise op's bytes: the rest stays in registers and caches
constexpr double kTranscendentalFlops = 12;

double PeakFlops(const DeviceSpec& device) {
  if (device.f32_gflops > 0) return device.f32_gflops * 1e9;
  return static_cast<double>(device.compute_units * device.vector_bytes / 4) * kNominalFlopsPerLane;
}

double Bandwidth(const DeviceSpec& device) {
  return device.bandwidth_gbps > 0 ? device.bandwidth_gbps * 1e9 : kNominalBandwidth;
}

bool IsProduct(const Instruction& i) {
  return i.Is(Opcode::kDot) || i.Is(Opcode::kConvolution) || i.Is(Opcode::kRaggedDot) || i.Is(Opcode::kScaledDot);
}

class Counter {
 public:
  explicit Counter(const DeviceSpec& device) : device_(device), link_(LinkOf(device)) {}

  ProgramCost CostOf(const Computation& computation) const {
    ProgramCost cost;
    for (const auto& instruction : computation.instructions()) Add(*instruction, cost);
    return cost;
  }

 private:
  void Add(const Instruction& i, ProgramCost& cost) const {
    if (i.Has(hlo::kControl)) {
      AddControl(i, cost);
    } else if (i.Has(hlo::kCollective)) {
      const double bytes = hlo::RingBytes(i);
      cost.ring_bytes += bytes;
      if (!i.Is(Opcode::kAllReduceDone) && !i.Is(Opcode::kAllGatherDone)) {
        cost.collective_seconds += link_.Microseconds(bytes) / 1e6;
      }
    } else {
      cost.compute_seconds += SecondsOf(i, device_);
    }
  }

  void AddControl(const Instruction& i, ProgramCost& cost) const {
    const double trips = i.Is(Opcode::kWhile) ? static_cast<double>(TripsOf(i)) : 1;
    ProgramCost inside;
    for (const Computation* callee : i.called_computations()) {
      const ProgramCost one = CostOf(*callee);
      if (i.Is(Opcode::kConditional)) {
        if (one.seconds() > inside.seconds()) inside = one;
        continue;
      }
      inside.compute_seconds += one.compute_seconds * trips;
      inside.collective_seconds += one.collective_seconds * trips;
      inside.ring_bytes += one.ring_bytes * trips;
    }
    cost.compute_seconds += inside.compute_seconds;
    cost.collective_seconds += inside.collective_seconds;
    cost.ring_bytes += inside.ring_bytes;
  }

  const DeviceSpec& device_;
  Link link_;
};

}  // namespace

int64_t TripsOf(const Instruction& loop) {
  if (const auto known = hlo::KnownTripCount(loop)) return *known;
  return TripCountOf(loop).value_or(1);
}

double SecondsOf(const Instruction& instruction, const DeviceSpec& device) {
  const hlo::Cost cost = hlo::CostOf(instruction);
  const double bytes = cost.bytes_read + cost.bytes_written;
  const double peak = PeakFlops(device);
  if (IsProduct(instruction)) return std::max(cost.flops / (peak * kProductEfficiency), bytes / Bandwidth(device));
  const double arithmetic = (cost.flops + kTranscendentalFlops * cost.transcendentals) / peak;
  const bool is_fused = instruction.Has(hlo::kElementwise) || instruction.Has(hlo::kDataMovement);
  return std::max(arithmetic, bytes * (is_fused ? kFusedTraffic : 1) / Bandwidth(device));
}

ProgramCost CostOfProgram(const hlo::Module& module, const DeviceSpec& device) {
  ProgramCost cost = Counter(device).CostOf(*module.entry());
  for (const Instruction* parameter : module.entry()->parameters())
    cost.argument_bytes += static_cast<double>(parameter->shape().ByteSize());
  cost.result_bytes = static_cast<double>(module.entry()->root()->shape().ByteSize());
  return cost;
}

}  // namespace hlorun::passes::spmd
