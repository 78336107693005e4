#include "passes/fusion/product_operands.h"

#include <algorithm>

#include "hlo/computation.h"
#include "hlo/module.h"
#include "passes/dynamic/extents.h"
#include "passes/fusion/cluster.h"
#include "passes/fusion/hero.h"

namespace hlorun::passes {
namespace {

using hlo::Instruction;
using hlo::Opcode;

// More would make the kernel wait for arithmetic instead of memory.
constexpr int64_t kMostOperations = 12;

// Elements that lie side by side in the result come from elements that lie side by side, or are one.
bool KeepsRuns(const Instruction& op) {
  switch (op.opcode()) {
    case Opcode::kParameter:
    case Opcode::kBroadcast:
    case Opcode::kBitcast:
    case Opcode::kReshape:
    case Opcode::kDynamicSlice:
    case Opcode::kClamp: return true;
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

// Whether `maker` makes one array, for `user` alone, of ops that may be computed at any place.
bool IsForOne(const Instruction& maker, const Instruction& user) {
  if (maker.users().size() != 1 || maker.IsRoot() || HeroOf(maker).kind != KernelKind::kLoop) return false;
  if (!IsPlainArray(maker.shape()) || !ExtentsOf(maker).empty() || !maker.control_predecessors().empty()) return false;
  if (std::count(user.operands().begin(), user.operands().end(), &maker) != 1) return false;
  if (!maker.Is(Opcode::kFusion)) return !maker.Is(Opcode::kIota) && KeepsRuns(maker);
  const auto& inner = maker.called()->instructions();
  return static_cast<int64_t>(inner.size()) <= kMostOperations + maker.operand_count() &&
         std::all_of(inner.begin(), inner.end(), [](const auto& op) { return KeepsRuns(*op); });
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

Instruction* Join(Instruction* product, Instruction* maker) {
  hlo::Computation* computation = product->parent();
  Joined joined(computation->module()->AddComputation("fused_computation"));
  const auto parameter = [&](Instruction* operand) { return joined.Parameter(operand); };
  hlo::Computation* body = computation->module()->computations().back().get();
  body->set_root(joined.Add(*product, [&](Instruction* operand) {
    return operand == maker ? joined.Add(*maker, parameter) : parameter(operand);
  }));
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

// The instruction that makes operand number `of_dot` of the product; null: a parameter of the computation, or one that
// is computed already.
Instruction* MakerOf(const Instruction& product, const Instruction& dot, int64_t of_dot) {
  if (&product == &dot) return product.operand(of_dot);
  const Instruction* inner = dot.operand(of_dot);
  return inner->Is(Opcode::kParameter) && inner->users().size() == 1 ? product.operand(inner->parameter_number())
                                                                     : nullptr;
}

bool FuseInto(Instruction* product, const KernelModel& kernels) {
  bool changed = false;
  for (const int64_t of_dot : {1, 0}) {
    const Hero hero = HeroOf(*product);
    Instruction* maker = MakerOf(*product, *hero.instruction, of_dot);
    if (maker == nullptr || !IsForOne(*maker, *product) || !kernels.ComputesOperand(*product, of_dot)) continue;
    product = Join(product, maker);
    changed = true;
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
