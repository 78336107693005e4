#include "passes/spmd/windowed_dots.h"

#include <algorithm>
#include <optional>

#include "hlo/builder.h"
#include "hlo/communication_cost.h"
#include "passes/control/time_model.h"
#include "passes/spmd/channels.h"
#include "passes/spmd/group_positions.h"
#include "passes/spmd/link.h"
#include "passes/spmd/product_parts.h"

namespace hlorun::passes {
namespace {

using hlo::Computation;
using hlo::ElementType;
using hlo::Instruction;
using hlo::Opcode;
using Instructions = std::vector<Instruction*>;

class Windower {
 public:
  Windower(Computation* computation, const PassContext& context, int64_t& next_channel)
      : computation_(computation),
        kernels_(context.device),
        link_(spmd::LinkOf(context.device)),
        next_channel_(next_channel) {}

  bool Run() {
    bool changed = false;
    Instructions collectives = computation_->PostOrder();  // products go meanwhile
    std::erase_if(collectives,
                  [](const Instruction* i) { return !i->Is(Opcode::kAllGather) && !i->Is(Opcode::kReduceScatter); });
    for (Instruction* collective : collectives)
      changed |= collective->Is(Opcode::kAllGather) ? WindowGather(collective) : WindowScatter(collective);
    return changed;
  }

 private:
  static bool IsPlain(const Instruction& i) {
    return i.shape().IsArray() && i.operand_count() <= 2 && !HasControlEdges(i);
  }

  // Whether `parts` products of which all but one wait for a message, or send one, take less time than exchange and
  // product one after the other.
  bool IsWorth(const Instruction& dot, const Instruction& collective, int64_t parts, int64_t part_bytes) const {
    const double message = link_.Microseconds(static_cast<double>(part_bytes));
    if (message < spmd::kWorthMicroseconds) return false;
    const double whole = kernels_.Launched(dot);
    const double part = kernels_.launch() + (whole - kernels_.launch()) / static_cast<double>(parts);
    const double exchange = link_.Microseconds(hlo::RingBytes(collective));
    const double windowed = part + static_cast<double>(parts - 1) * std::max(part, message);
    return windowed * kWorthGain < exchange + whole;
  }

  bool WindowGather(Instruction* gather) {
    if (!IsPlain(*gather) || gather->IsRoot() || gather->operand_count() != 1 || gather->users().size() != 1)
      return false;
    Instruction* dot = gather->users()[0];
    if (!dot->Is(Opcode::kDot) || !IsPlain(*dot) || dot->operand(0) == dot->operand(1)) return false;
    const int64_t along = gather->As<hlo::attr::Collective>().dimension.value_or(-1);
    const int64_t operand = dot->operand(0) == gather ? 0 : 1;
    const auto free = FreeDimensions(*dot);
    const auto kept = std::find_if(free.begin(), free.end(), [&](const FreeDimension& f) {
      return f.operand == operand && f.of_operand == along;
    });
    const std::optional<spmd::GroupPositions> positions = spmd::PositionsIn(*gather);
    if (kept == free.end() || !positions || positions->group_size > kMostParts) return false;
    const hlo::Shape& shard = gather->operand(0)->shape();
    if (!IsWorth(*dot, *gather, positions->group_size, shard.ByteSize())) return false;

    hlo::Builder build(computation_, dot);
    build.before = dot;
    Instruction* whole = build.Splat(dot->shape(), int64_t{0});
    Instruction* part = gather->operand(0);
    for (int64_t step = 0; step < positions->group_size; ++step) {
      if (step > 0) part = Permute(build, part, *positions, -1);
      Instructions operands = dot->operands();
      operands[static_cast<size_t>(operand)] = part;
      const hlo::Dims starts = positions->Ahead(step, shard.dimension(along));
      whole = Write(build, whole, Product(build, *dot, operands), kept->of_result, Number(build, starts));
    }
    computation_->Replace(dot, whole);
    computation_->Remove(gather);
    return true;
  }

  bool WindowScatter(Instruction* scatter) {
    if (scatter->operand_count() != 1 || !scatter->shape().IsArray()) return false;
    Instruction* dot = scatter->operand(0);
    if (!dot->Is(Opcode::kDot) || !IsPlain(*dot) || dot->IsRoot() || dot->users().size() != 1) return false;
    const ElementType type = scatter->shape().element_type();
    const bool adds = hlo::ReducerOpcode(*scatter->called()) == Opcode::kAdd;
    if (!adds || (type != ElementType::kF32 && type != ElementType::kF64)) return false;  // others are summed wider
    if (HasControlEdges(*scatter)) return false;
    const int64_t along = scatter->As<hlo::attr::Collective>().dimension.value_or(-1);
    const auto free = FreeDimensions(*dot);
    const auto kept =
        std::find_if(free.begin(), free.end(), [&](const FreeDimension& f) { return f.of_result == along; });
    const std::optional<spmd::GroupPositions> positions = spmd::PositionsIn(*scatter);
    if (kept == free.end() || !positions || positions->group_size > kMostParts) return false;
    if (!IsWorth(*dot, *scatter, positions->group_size, scatter->shape().ByteSize())) return false;

    hlo::Builder build(computation_, dot);
    build.before = scatter;
    const int64_t parts = positions->group_size;
    hlo::Dims stacked = scatter->shape().dimensions();
    stacked.insert(stacked.begin(), parts);
    Instruction* stack = build.Splat(hlo::Shape(type, stacked), int64_t{0});
    // Its own part last: it runs beside the last message.
    for (int64_t step = 1; step <= parts; ++step) {
      const hlo::Dims starts = positions->Ahead(step, scatter->shape().dimension(along));
      Instructions operands = dot->operands();
      Instruction*& cut = operands[static_cast<size_t>(kept->operand)];
      cut = Read(build, cut, kept->of_operand, scatter->shape().dimension(along), Number(build, starts));
      Instruction* part = Product(build, *dot, operands);
      if (step < parts) part = Permute(build, part, *positions, step);
      hlo::Dims one = stacked;
      one[0] = 1;
      stack = Write(build, stack, build.Reshape(part, one), 0, Number(build, positions->Ahead(parts - step, 1)));
    }
    computation_->Replace(scatter, Sum(build, stack, 0, parts));
    computation_->RemoveWithDeadOperands(dot);
    return true;
  }

  // In the order in which reductions associate: a binary tree over the position in the group.
  Instruction* Sum(hlo::Builder& build, Instruction* stack, int64_t low, int64_t high) {
    if (high - low == 1) {
      hlo::Dims starts(static_cast<size_t>(stack->shape().rank()), 0), limits = stack->shape().dimensions();
      starts[0] = low;
      limits[0] = high;
      Instruction* part = build.Slice(stack, starts, limits, hlo::Dims(starts.size(), 1));
      return build.Reshape(part, hlo::Dims(limits.begin() + 1, limits.end()));
    }
    int64_t half = 1;
    while (half * 2 < high - low) half *= 2;
    return build.Binary(Opcode::kAdd, Sum(build, stack, low, low + half), Sum(build, stack, low + half, high));
  }

  // From each position to the one `distance` further on.
  Instruction* Permute(hlo::Builder& build, Instruction* x, const spmd::GroupPositions& positions, int64_t distance) {
    hlo::attr::CollectivePermute permute;
    for (const std::vector<int64_t>& group : positions.groups) {
      const auto size = static_cast<int64_t>(group.size());
      for (int64_t i = 0; i < size; ++i) {
        permute.source_target_pairs.emplace_back(group[static_cast<size_t>(i)],
                                                 group[static_cast<size_t>((i + distance + size) % size)]);
      }
    }
    permute.channel_id = next_channel_++;
    return build.Make(Opcode::kCollectivePermute, {x}, std::move(permute));
  }

  // The number (s32[]) that each device has in the table.
  Instruction* Number(hlo::Builder& build, const hlo::Dims& by_device) {
    hlo::Literal table(hlo::Shape(ElementType::kS32, {static_cast<int64_t>(by_device.size())}));
    for (size_t i = 0; i < by_device.size(); ++i) table.SetInt(static_cast<int64_t>(i), by_device[i]);
    Instruction* device =
        build.Make(Opcode::kPartitionId, {}, hlo::attr::None{}, {}, hlo::Shape::Scalar(ElementType::kU32));
    Instruction* own =
        build.DynamicSlice(build.Constant(std::move(table)), {build.Convert(device, ElementType::kS32)}, {1});
    return build.Reshape(own, {});
  }

  static Instructions StartsAt(hlo::Builder& build, const Instruction& x, int64_t dimension, Instruction* start) {
    Instructions starts(static_cast<size_t>(x.shape().rank()), build.ScalarConstant(ElementType::kS32, int64_t{0}));
    starts[static_cast<size_t>(dimension)] = start;
    return starts;
  }
  static Instruction* Read(hlo::Builder& build, Instruction* x, int64_t dimension, int64_t size, Instruction* start) {
    hlo::Dims sizes = x->shape().dimensions();
    sizes[static_cast<size_t>(dimension)] = size;
    return build.DynamicSlice(x, StartsAt(build, *x, dimension, start), sizes);
  }
  static Instruction* Write(hlo::Builder& build, Instruction* x, Instruction* part, int64_t dimension,
                            Instruction* start) {
    return build.DynamicUpdateSlice(x, part, StartsAt(build, *x, dimension, start));
  }

  Computation* computation_;
  TimeModel kernels_;
  spmd::Link link_;
  int64_t& next_channel_;
};

}  // namespace

bool WindowDots::Run(hlo::Module& module, PassContext& context) {
  if (module.replica_count != 1 || !ExchangesBesideKernels(module, context)) return false;
  int64_t next_channel = spmd::FirstFreeChannel(module);
  bool changed = false;
  for (Computation* computation : module.ControlComputations()) {
    changed |= Windower(computation, context, next_channel).Run();
  }
  return changed;
}

}  // namespace hlorun::passes
