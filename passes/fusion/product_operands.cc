#include "passes/fusion/product_operands.h"

#include <algorithm>
#include <functional>
#include <optional>

#include "hlo/computation.h"
#include "hlo/module.h"
#include "passes/dynamic/extents.h"
#include "passes/fusion/cluster.h"
#include "passes/fusion/hero.h"
#include "passes/fusion/updated_part.h"

namespace hlorun::passes {
namespace {

using hlo::Instruction;
using hlo::Opcode;

// Of an operand. More would make the kernel wait for arithmetic instead of memory.
constexpr int64_t kMostOperations = 12;

int64_t RunOf(const hlo::Shape& shape) { return shape.rank() == 0 ? 1 : shape.dimensions().back(); }

// Elements that lie side by side in the result come from elements that lie side by side, or are one.
bool KeepsRuns(const Instruction& op) {
  switch (op.opcode()) {
    case Opcode::kParameter:
    case Opcode::kBroadcast:
    case Opcode::kDynamicSlice:
    case Opcode::kClamp: return true;
    case Opcode::kBitcast:
    case Opcode::kReshape: return RunOf(op.shape()) == RunOf(op.operand(0)->shape());
    case Opcode::kConstant: return IsScalarConstant(op);
    case Opcode::kSlice: {
      const auto& slice = op.As<hlo::attr::Slice>();
      return slice.strides.empty() || slice.strides.back() == 1;
    }
    default: return op.Has(hlo::kElementwise);
  }
}

bool IsPlainArray(const hlo::Shape& shape) {
  return shape.IsArray() && shape.IsStatic() && !hlo::IsComplex(shape.element_type()) &&
         shape.element_type() != hlo::ElementType::kPred;
}

// What makes an operand and is joined with the product: a kernel, and a reshape of its result where there is one.
struct Maker {
  Instruction* reshape = nullptr;  // null: the kernel's result is the operand
  Instruction* kernel = nullptr;
};

bool HasOneUser(const Instruction& instruction, const Instruction& user) {
  return instruction.users().size() == 1 && !instruction.IsRoot() &&
         std::count(user.operands().begin(), user.operands().end(), &instruction) == 1;
}

// Whether it makes one array of ops that may be computed at any place.
bool IsPointwise(const Instruction& kernel) {
  if (HeroOf(kernel).kind != KernelKind::kLoop || !IsPlainArray(kernel.shape())) return false;
  if (!ExtentsOf(kernel).empty() || !kernel.control_predecessors().empty()) return false;
  if (!kernel.Is(Opcode::kFusion)) return !kernel.Is(Opcode::kIota) && KeepsRuns(kernel);
  const auto& inner = kernel.called()->instructions();
  return std::all_of(inner.begin(), inner.end(), [](const auto& op) { return KeepsRuns(*op); });
}

// Whether something may overwrite an array that `kernel` reads part of: what reads that part behind it needs a copy of
// all of the array.
bool ReadsPartOfWhatChanges(const Instruction& kernel) {
  const auto changes = [&](const Instruction* user) {
    const KernelKind kind = HeroOf(*user).kind;
    return user != &kernel && (UpdateAtRoot(*user) != nullptr || kind == KernelKind::kScatter ||
                               kind == KernelKind::kRegion || user->Has(hlo::kControl));
  };
  return std::any_of(kernel.operands().begin(), kernel.operands().end(), [&](const Instruction* array) {
    return array->shape().IsArray() && array->shape().ByteSize() >= 2 * kernel.shape().ByteSize() &&
           std::any_of(array->users().begin(), array->users().end(), changes);
  });
}

// Whether `product` stores a part of an array that `kernel` reads, which a product that does so, too, would copy first.
bool UpdatesOperandOf(const Instruction& product, const Instruction& kernel) {
  const Instruction* array = UpdatedOperand(product);
  return array != nullptr && kernel.OperandIndex(array) >= 0;
}

int64_t OperationsIn(const Instruction& kernel) {
  if (!kernel.Is(Opcode::kFusion)) return 1;
  const auto& inner = kernel.called()->instructions();
  return static_cast<int64_t>(inner.size()) - kernel.operand_count();
}

// What makes `operand` of `user`, for it alone.
std::optional<Maker> MakerOf(Instruction* operand, const Instruction& user) {
  if (!HasOneUser(*operand, user)) return std::nullopt;
  Maker maker{nullptr, operand};
  if (operand->Is(Opcode::kBitcast)) {
    maker = {operand, operand->operand(0)};
    if (!HasOneUser(*maker.kernel, *operand) || !IsPlainArray(operand->shape()) || !KeepsRuns(*operand)) return {};
  }
  if (!IsPointwise(*maker.kernel) || ReadsPartOfWhatChanges(*maker.kernel)) return std::nullopt;
  return UpdatesOperandOf(user, *maker.kernel) ? std::nullopt : std::optional(maker);
}

// The computation of the joined kernel, filled from two that call each other's results.
class Joined {
 public:
  explicit Joined(hlo::Computation* body) : body_(body) {}

  const std::vector<Instruction*>& operands() const { return operands_; }

  // The instruction as one of the body, its operands' values given.
  using ValueOf = std::function<Instruction*(Instruction* operand)>;
  Instruction* Add(const Instruction& instruction, const ValueOf& value_of) {
    if (!instruction.Is(Opcode::kFusion)) {
      std::vector<Instruction*> inner;
      for (Instruction* operand : instruction.operands()) inner.push_back(value_of(operand));
      return body_->Add(instruction.CloneWithOperands(instruction.shape(), std::move(inner)));
    }
    const hlo::Computation& called = *instruction.called();
    hlo::InstructionMap map;
    for (const Instruction* op : called.PostOrder()) {
      if (op->Is(Opcode::kParameter)) {
        map[op] = value_of(instruction.operand(op->parameter_number()));
        continue;
      }
      std::vector<Instruction*> inner;
      for (const Instruction* operand : op->operands()) inner.push_back(map.at(operand));
      map[op] = body_->Add(op->CloneWithOperands(op->shape(), std::move(inner)));
    }
    return map.at(called.root());
  }

  Instruction* Parameter(Instruction* operand) {
    const auto known = std::find(operands_.begin(), operands_.end(), operand);
    if (known != operands_.end()) return body_->parameter(known - operands_.begin());
    const auto number = static_cast<int64_t>(operands_.size());
    operands_.push_back(operand);
    return body_->AddParameter(number, operand->shape(), fmt::format("p{}", number));
  }

 private:
  hlo::Computation* body_;
  std::vector<Instruction*> operands_;
};

Instruction* Join(Instruction* product, const Maker& maker) {
  hlo::Computation* computation = product->parent();
  hlo::Computation* body = computation->module()->AddComputation("fused_computation");
  Joined joined(body);
  const Joined::ValueOf value_of = [&](Instruction* operand) {
    if (operand == maker.kernel) return joined.Add(*operand, [&](Instruction* x) { return joined.Parameter(x); });
    return operand == maker.reshape ? joined.Add(*operand, value_of) : joined.Parameter(operand);
  };
  body->set_root(joined.Add(*product, value_of));
  auto made = std::make_unique<Instruction>(Opcode::kFusion, product->shape(), joined.operands(), hlo::attr::Fusion{},
                                            std::vector<hlo::Computation*>{body});
  made->MutableAs<hlo::attr::Fusion>().kind = hlo::FusionKind::kOutput;
  made->set_name("dot_fusion");
  made->metadata = product->metadata;
  Instruction* fusion = computation->Add(std::move(made), product);
  product->ReplaceAllUsesWith(fusion);
  computation->RemoveWithDeadOperands(product);
  return fusion;
}

// The operands of the product that operand `of_dot` of the dot is made of, and nothing else.
std::vector<Instruction*> SourcesOf(const Instruction& product, const Instruction& dot, int64_t of_dot) {
  if (&product == &dot) return {product.operand(of_dot)};
  std::vector<Instruction*> sources;
  std::vector<const Instruction*> work = {dot.operand(of_dot)};
  while (!work.empty()) {
    const Instruction* at = work.back();
    work.pop_back();
    if (at->users().size() != 1) continue;
    if (at->Is(Opcode::kParameter)) sources.push_back(product.operand(at->parameter_number()));
    work.insert(work.end(), at->operands().begin(), at->operands().end());
  }
  return sources;
}

// Joins what makes one more source of an operand; null: there is none that may.
Instruction* JoinOne(Instruction* product, int64_t of_dot, int64_t& operations, const KernelModel& kernels) {
  for (Instruction* source : SourcesOf(*product, *HeroOf(*product).instruction, of_dot)) {
    const std::optional<Maker> maker = MakerOf(source, *product);
    if (!maker || operations + OperationsIn(*maker->kernel) > kMostOperations) continue;
    if (!kernels.ComputesOperand(*product, of_dot, *maker->kernel)) continue;
    operations += OperationsIn(*maker->kernel);
    return Join(product, *maker);
  }
  return nullptr;
}

bool FuseInto(Instruction* product, const KernelModel& kernels) {
  // A matrix by its own transpose (a covariance) would be computed on both sides.
  const Instruction& dot = *HeroOf(*product).instruction;
  if (dot.operand(0) == dot.operand(1)) return false;
  bool changed = false;
  for (const int64_t of_dot : {1, 0}) {
    int64_t operations = 0;
    while (Instruction* joined = JoinOne(product, of_dot, operations, kernels)) {
      product = joined;
      changed = true;
    }
  }
  return changed;
}

}  // namespace

bool FuseOperands::Run(hlo::Module& module, PassContext& context) {
  bool changed = false;
  for (hlo::Computation* computation : module.ControlComputations()) {
    for (Instruction* instruction : computation->PostOrder()) {
      const Hero hero = HeroOf(*instruction);
      if (hero.kind != KernelKind::kDot || !hero.instruction->Is(Opcode::kDot)) continue;
      if (!ExtentsOf(*instruction).empty() || context.kernels.RunsAlone(*instruction)) continue;
      changed |= FuseInto(instruction, context.kernels);
    }
  }
  return changed;
}

}  // namespace hlorun::passes
