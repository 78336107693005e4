#include "passes/control/time_model.h"

#include <algorithm>

#include "hlo/computation.h"
#include "hlo/cost_analysis.h"
#include "hlo/cumulative_window.h"
#include "passes/fusion/hero.h"

namespace hlorun::passes {
namespace {

using hlo::Instruction;
using hlo::Opcode;

// Defaults where bench/roofline has not measured (two AVX-512 cores under PoCL, docs/control-flow.md).
constexpr double kLaunchUs = 3;
constexpr double kGflopsOfUnit = 32;
// Cores that are reckoned with, whatever the device has: what becomes a region decides the order of sums, which must
// not depend on how many threads a process is given.
constexpr double kUnits = 2;
constexpr double kGbytes = 20;
// Products and convolutions come this much nearer to the peak than other arithmetic (docs/products.md).
constexpr double kProducts = 2;
// One function call costs as much as this many additions.
constexpr double kTranscendental = 10;
// One work-item: elements a nanosecond where rows are long enough for vectors, and where they are not.
constexpr double kVectorOps = 32, kScalarOps = 1.5;
// A loop or a statement of its own inside a kernel.
constexpr double kStatementUs = 0.004;
constexpr double kGpuWorkItemSlower = 30;

double Seconds1e6(double work, double giga) { return work / giga * 1e-3; }

double Operations(const hlo::Cost& cost) { return cost.flops + kTranscendental * cost.transcendentals; }

// Loops of their own that one work-item goes through: each update of a scatter is one.
double Statements(const Instruction& instruction) {
  if (!instruction.Is(Opcode::kScatter)) return 1;
  const hlo::Shape& updates = instruction.operand(instruction.operand_count() / 2 + 1)->shape();
  double count = 1;
  for (int64_t d = 0; d < updates.rank(); ++d) {
    if (!hlo::Contains(instruction.As<hlo::attr::Scatter>().update_window_dims, d))
      count *= static_cast<double>(updates.dimension(d));
  }
  return count;
}

// Elements come from elsewhere than their own place: short rows cannot be walked as one.
bool MovesElements(const Instruction& instruction) {
  constexpr Opcode kInOrder[] = {Opcode::kReshape, Opcode::kBitcast, Opcode::kCopy, Opcode::kBroadcast};
  return instruction.Has(hlo::kDataMovement) &&
         std::find(std::begin(kInOrder), std::end(kInOrder), instruction.opcode()) == std::end(kInOrder);
}

// Whether one work-item computes the result in vectors: its minor dimension is long, and no reduction runs along it; or
// all dimensions are walked as one.
bool IsVectorised(const Instruction& instruction) {
  const hlo::Shape shape = hlo::FlattenShape(instruction.shape())[0];
  const int64_t elements = shape.ElementCount();
  const Hero hero = HeroOf(instruction);
  if (elements < 8 || (hero.instruction != nullptr && hlo::CumulativeWindowOf(*hero.instruction))) return false;
  if (shape.rank() == 1 || shape.dimension(shape.rank() - 1) >= 8) return true;
  if (elements < 64) return false;
  if (!instruction.Is(Opcode::kFusion)) return !MovesElements(instruction);
  const auto& fused = instruction.called()->instructions();
  return std::none_of(fused.begin(), fused.end(), [](const auto& inner) { return MovesElements(*inner); });
}

}  // namespace

TimeModel::TimeModel(const DeviceSpec& device)
    : launch_(device.launch_us > 0 ? device.launch_us : kLaunchUs),
      gflops_(device.f32_gflops > 0 ? device.f32_gflops / 4 : kGflopsOfUnit * kUnits),
      gbytes_(device.bandwidth_gbps > 0 ? device.bandwidth_gbps : kGbytes),
      is_gpu_(device.device_class == DeviceClass::kGpu) {}

double TimeModel::Moved(int64_t bytes) const { return Seconds1e6(2 * static_cast<double>(bytes), gbytes_); }

double TimeModel::Trips(const Instruction& loop) const {
  return static_cast<double>(hlo::KnownTripCount(loop).value_or(static_cast<int64_t>(kAssumedTrips)));
}

double TimeModel::Work(const hlo::Computation& computation) const {
  double operations = 0, bytes = 0;
  for (const auto& instruction : computation.instructions()) {
    if (instruction->Is(Opcode::kParameter)) continue;
    if (instruction->Is(Opcode::kWhile)) {
      operations += Trips(*instruction) * gflops_ * 1e3 *
                    (Work(*instruction->while_body()) + Work(*instruction->while_condition()));
    } else if (instruction->Has(hlo::kControl)) {
      for (const hlo::Computation* called : instruction->called_computations())
        operations += Work(*called) * gflops_ * 1e3;
    } else {
      const hlo::Cost cost = hlo::CostOf(*instruction);
      operations += Operations(cost);
      // Elementwise chains become one loop: what counts is what heavy ops read and what comes out at the end.
      if (!instruction->Has(hlo::kElementwise) && !instruction->Has(hlo::kDataMovement))
        bytes += cost.bytes_read + cost.bytes_written;
    }
  }
  for (const hlo::Shape& leaf : hlo::FlattenShape(computation.root()->shape())) {
    if (leaf.IsArray()) bytes += static_cast<double>(leaf.ByteSize());
  }
  return Seconds1e6(operations, gflops_) + Seconds1e6(bytes, gbytes_);
}

double TimeModel::Launched(const Instruction& instruction) const {
  if (instruction.Is(Opcode::kWhile)) {
    const double iteration = Launched(*instruction.while_body());
    if (hlo::KnownTripCount(instruction).has_value()) return Trips(instruction) * iteration;
    return Trips(instruction) * (iteration + Launched(*instruction.while_condition()) + round_trip());
  }
  if (instruction.Is(Opcode::kConditional)) {
    double longest = 0;
    for (const hlo::Computation* branch : instruction.called_computations())
      longest = std::max(longest, Launched(*branch));
    return longest + round_trip();
  }
  if (instruction.Is(Opcode::kCall)) return Launched(*instruction.called());
  const KernelKind kind = HeroOf(instruction).kind;
  if (instruction.Is(Opcode::kCopy) || kind != KernelKind::kNone) {
    const hlo::Cost cost = hlo::CostOf(instruction);
    return launch_ + std::max(Seconds1e6(Operations(cost), Multiplies(kind) ? kProducts * gflops_ : gflops_),
                              Seconds1e6(cost.bytes_read + cost.bytes_written, gbytes_));
  }
  return 0;
}

double TimeModel::Launched(const hlo::Computation& computation) const {
  double sum = 0;
  for (const auto& instruction : computation.instructions()) sum += Launched(*instruction);
  return sum;
}

double TimeModel::Launches(const hlo::Computation& computation) const {
  double count = 0;
  for (const auto& instruction : computation.instructions()) {
    if (instruction->Is(Opcode::kWhile)) {
      count += Trips(*instruction) * (Launches(*instruction->while_body()) + Launches(*instruction->while_condition()));
    } else if (instruction->Has(hlo::kControl)) {
      for (const hlo::Computation* called : instruction->called_computations()) count += Launches(*called);
    } else if (HeroOf(*instruction).kind != KernelKind::kNone) {
      count += 1;
    }
  }
  return count;
}

double TimeModel::Sequential(const Instruction& instruction) const {
  if (instruction.Is(Opcode::kWhile)) {
    return Trips(instruction) * (Sequential(*instruction.while_body()) + Sequential(*instruction.while_condition()));
  }
  if (instruction.Is(Opcode::kConditional)) {
    double longest = 0;
    for (const hlo::Computation* branch : instruction.called_computations())
      longest = std::max(longest, Sequential(*branch));
    return longest;
  }
  if (instruction.Is(Opcode::kCall)) return Sequential(*instruction.called());
  if (!instruction.Is(Opcode::kCopy) && HeroOf(instruction).kind == KernelKind::kNone) return 0;
  const hlo::Cost cost = hlo::CostOf(instruction);
  const double giga = IsVectorised(instruction) ? kVectorOps : kScalarOps;
  const double time =
      Statements(instruction) * kStatementUs +
      std::max(Seconds1e6(Operations(cost), giga), Seconds1e6(cost.bytes_read + cost.bytes_written, gbytes_ / kUnits));
  return is_gpu_ ? kGpuWorkItemSlower * time : time;
}

double TimeModel::Sequential(const hlo::Computation& computation) const {
  double sum = 0;
  for (const auto& instruction : computation.instructions()) sum += Sequential(*instruction);
  return sum;
}

}  // namespace hlorun::passes
