#include "passes/expand/concatenate_in_place.h"

#include <algorithm>
#include <unordered_set>
#include <utility>
#include <vector>

#include "hlo/builder.h"
#include "hlo/evaluator/custom_calls.h"
#include "passes/dynamic/signature.h"
#include "passes/fusion/hero.h"
#include "passes/fusion/updated_part.h"
#include "passes/kernel_model.h"

namespace hlorun::passes {
namespace {

using hlo::Computation;
using hlo::Instruction;
using hlo::Opcode;

// Of the result that are stored one after another: below, kernels of products store pieces of vectors.
constexpr int64_t kFewestBytesTogether = 64;
// Of elementwise ops between a product and its place.
constexpr size_t kMostFinishing = 64;

bool HasOneUse(const Instruction& x) {
  return !x.IsRoot() && x.users().size() == 1 && x.control_successors().empty() && x.control_predecessors().empty();
}

// Whether a kernel that stores `part` is one of a product or a convolution: nobody else needs those, and elementwise
// ops finish them.
bool IsMadeByProduct(const Instruction& part, const KernelModel& kernels) {
  std::vector<const Instruction*> work = {&part};
  std::unordered_set<const Instruction*> seen = {&part};
  int products = 0;
  while (!work.empty() && seen.size() <= kMostFinishing) {
    const Instruction* x = work.back();
    work.pop_back();
    if (x->Is(Opcode::kDot) || x->Is(Opcode::kConvolution)) {
      if (!HasOneUse(*x) || kernels.RunsAlone(*x)) return false;
      ++products;
    }
    for (const Instruction* operand : x->operands()) {
      if (ReadsSamePlace(*x, *operand) && seen.insert(operand).second) work.push_back(operand);
    }
  }
  return products == 1 && HasOneUse(part);
}

// Whether users compute their operands where they read them.
bool IsComputedByUsers(const Instruction& concatenate) {
  return std::any_of(concatenate.users().begin(), concatenate.users().end(), [](const Instruction* user) {
    const KernelKind kind = HeroOf(*user).kind;
    return kind == KernelKind::kLoop || kind == KernelKind::kReduction || kind == KernelKind::kInPlace;
  });
}

int64_t BytesTogether(const Instruction& part, int64_t dimension) {
  const hlo::Dims& dimensions = part.shape().dimensions();
  int64_t bytes = hlo::BytesOf(part.shape().element_type());
  for (auto d = static_cast<size_t>(dimension); d < dimensions.size(); ++d) bytes *= dimensions[d];
  return bytes;
}

// What the second cache holds is copied from there as fast as the launches of a chain take.
bool Pays(const Instruction& concatenate, const PassContext& context) {
  const int64_t dimension = concatenate.dimensions()[0];
  if (hlo::IsComplex(concatenate.shape().element_type()) || IsComputedByUsers(concatenate)) return false;
  int64_t bytes = 0;
  for (const Instruction* part : concatenate.operands()) {
    const auto times = std::count(concatenate.operands().begin(), concatenate.operands().end(), part);
    if (times == 1 && BytesTogether(*part, dimension) >= kFewestBytesTogether &&
        IsMadeByProduct(*part, context.kernels))
      bytes += part->shape().ByteSize();
  }
  return bytes > context.device.l2_bytes;
}

void UpdateParts(Instruction* concatenate) {
  hlo::Builder build(concatenate->parent(), concatenate);
  build.before = concatenate;
  hlo::attr::CustomCall call;
  call.target = kUninitializedTarget;
  Instruction* array = build.Make(Opcode::kCustomCall, {}, std::move(call), {}, concatenate->shape());
  const auto dimension = static_cast<size_t>(concatenate->dimensions()[0]);
  Instruction* zero = build.ScalarConstant(hlo::ElementType::kS64, 0);
  int64_t start = 0;
  for (Instruction* part : concatenate->operands()) {
    std::vector<Instruction*> starts(static_cast<size_t>(part->shape().rank()), zero);
    if (start > 0) starts[dimension] = build.ScalarConstant(hlo::ElementType::kS64, start);
    array = build.DynamicUpdateSlice(array, part, std::move(starts));
    start += part->shape().dimension(static_cast<int64_t>(dimension));
  }
  concatenate->parent()->Replace(concatenate, array);
}

hlo::Literal Zeros(hlo::OpCall& call) { return hlo::Literal(call.shape); }

}  // namespace

bool IsUninitialized(const Instruction& instruction) {
  return instruction.Is(Opcode::kCustomCall) && instruction.As<hlo::attr::CustomCall>().target == kUninitializedTarget;
}

void RegisterUninitializedEvaluator() {
  static const bool kOnce = (hlo::RegisterCustomCallEvaluator(kUninitializedTarget, Zeros), true);
  static_cast<void>(kOnce);
}

bool ConcatenateInPlace::Run(hlo::Module& module, PassContext& context) {
  // Kernels of products whose sizes vary end at the sizes.
  if (!SignatureOf(module).empty()) return false;
  bool changed = false;
  for (Computation* computation : module.ControlComputations()) {
    for (Instruction* instruction : computation->PostOrder()) {
      if (!instruction->Is(Opcode::kConcatenate) || !Pays(*instruction, context)) continue;
      RegisterUninitializedEvaluator();
      UpdateParts(instruction);
      changed = true;
    }
  }
  return changed;
}

}  // namespace hlorun::passes
