#include "passes/spmd/device_values.h"

#include <algorithm>

#include "hlo/element_type.h"
#include "hlo/error.h"
#include "hlo/evaluator/evaluator.h"

namespace hlorun::passes::spmd {
namespace {

using hlo::Instruction;
using hlo::Opcode;

// Bounds of what is evaluated for each device: index arithmetic is far below.
constexpr size_t kMostInstructions = 256;
constexpr int64_t kMostElements = 1 << 16;
constexpr int64_t kMostDevices = 4096;

bool IsDeviceNumber(const Instruction& i) { return i.Is(Opcode::kPartitionId) || i.Is(Opcode::kReplicaId); }

bool IsPlain(const Instruction& i) {
  if (IsDeviceNumber(i) || i.IsConstant()) return i.shape().IsArray() && i.shape().ElementCount() <= kMostElements;
  const bool depends_on_more = i.Is(Opcode::kParameter) || i.HasSideEffect() || !i.called_computations().empty() ||
                               i.Is(Opcode::kCustomCall) || i.Has(hlo::kAsync);
  return !depends_on_more && i.shape().IsArray() && i.shape().ElementCount() <= kMostElements;
}

// All that `scalar` is computed from, operands first; empty when that is more than device numbers and constants.
std::vector<Instruction*> SourcesOf(const Instruction* scalar) {
  std::vector<const Instruction*> work = {scalar}, seen = {scalar};
  while (!work.empty()) {
    const Instruction* next = work.back();
    work.pop_back();
    if (!IsPlain(*next) || seen.size() > kMostInstructions) return {};
    for (const Instruction* operand : next->operands()) {
      if (std::find(seen.begin(), seen.end(), operand) != seen.end()) continue;
      seen.push_back(operand);
      work.push_back(operand);
    }
  }
  std::vector<Instruction*> order = scalar->parent()->PostOrder();
  std::erase_if(order, [&](const Instruction* i) { return std::find(seen.begin(), seen.end(), i) == seen.end(); });
  return order;
}

// The sources as a program of (partition, replica).
std::unique_ptr<hlo::Module> ProgramOf(const std::vector<Instruction*>& sources, const Instruction* scalar) {
  auto module = std::make_unique<hlo::Module>("device_value");
  hlo::Computation* main = module->AddComputation("main");
  const hlo::Shape number = hlo::Shape::Scalar(hlo::ElementType::kU32);
  Instruction* partition = main->AddParameter(0, number, "partition");
  Instruction* replica = main->AddParameter(1, number, "replica");
  std::unordered_map<const Instruction*, Instruction*> images;
  for (const Instruction* source : sources) {
    if (IsDeviceNumber(*source)) {
      images[source] = source->Is(Opcode::kPartitionId) ? partition : replica;
      continue;
    }
    std::vector<Instruction*> operands;
    for (const Instruction* operand : source->operands()) operands.push_back(images.at(operand));
    auto copy = source->CloneWithOperands(source->shape(), std::move(operands));
    copy->sharding.reset();
    images[source] = main->Add(std::move(copy));
  }
  main->set_root(images.at(scalar));
  module->set_entry(main);
  return module;
}

std::optional<std::vector<int64_t>> Evaluated(const Instruction* scalar) {
  if (!scalar->shape().IsScalar() || !hlo::IsInteger(scalar->shape().element_type())) return std::nullopt;
  const int64_t replicas = scalar->module()->replica_count, partitions = scalar->module()->num_partitions;
  if (replicas * partitions > kMostDevices) return std::nullopt;
  const std::vector<Instruction*> sources = SourcesOf(scalar);
  if (sources.empty()) return std::nullopt;
  const std::unique_ptr<hlo::Module> program = ProgramOf(sources, scalar);
  std::vector<int64_t> values;
  for (int64_t replica = 0; replica < replicas; ++replica) {
    for (int64_t partition = 0; partition < partitions; ++partition) {
      const std::vector<hlo::Literal> device = {hlo::Literal::Scalar(hlo::ElementType::kU32, partition),
                                                hlo::Literal::Scalar(hlo::ElementType::kU32, replica)};
      values.push_back(hlo::Evaluate(*program, device).GetInt(0));
    }
  }
  return values;
}

}  // namespace

const std::optional<std::vector<int64_t>>& DeviceValues::Of(const Instruction* scalar) {
  const auto known = known_.find(scalar);
  if (known != known_.end()) return known->second;
  return known_.emplace(scalar, Evaluated(scalar)).first->second;
}

}  // namespace hlorun::passes::spmd
