#include "passes/expand/parts_in_place.h"

#include <algorithm>
#include <optional>
#include <unordered_set>
#include <utility>
#include <vector>

#include "hlo/builder.h"
#include "hlo/known_starts.h"
#include "passes/dynamic/signature.h"
#include "passes/expand/uninitialized.h"
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
bool IsComputedByUsers(const Instruction& whole) {
  return std::any_of(whole.users().begin(), whole.users().end(), [](const Instruction* user) {
    const KernelKind kind = HeroOf(*user).kind;
    return kind == KernelKind::kLoop || kind == KernelKind::kReduction || kind == KernelKind::kInPlace;
  });
}

// Bytes of `part` from its dimension `dimension` on.
int64_t BytesTogether(const Instruction& part, int64_t dimension) {
  const hlo::Dims& dimensions = part.shape().dimensions();
  int64_t bytes = hlo::BytesOf(part.shape().element_type());
  for (auto d = static_cast<size_t>(dimension); d < dimensions.size(); ++d) bytes *= dimensions[d];
  return bytes;
}

// A part of an array that is all one number.
struct Edge {
  hlo::Dims sizes, starts;
};

// What an array is made of: values, and where each begins; edges; and the first dimension from which on a value's
// elements lie together.
struct Parts {
  std::vector<Instruction*> values;
  std::vector<hlo::Dims> starts;
  std::vector<Edge> edges;
  int64_t dimension = 0;
};

Parts PartsOfConcatenate(const Instruction& concatenate) {
  return {.values = concatenate.operands(),
          .starts = hlo::OperandStarts(concatenate),
          .edges = {},
          .dimension = concatenate.dimensions()[0]};
}

// None where it leaves something out, or puts something between elements. Edges below and above a dimension have all of
// those behind it, and of those before it what the operand has.
std::optional<Parts> PartsOfPad(const Instruction& pad) {
  const auto& padding = pad.As<hlo::attr::Pad>().padding;
  const hlo::Dims& part = pad.operand(0)->shape().dimensions();
  Parts parts{.values = {pad.operand(0)}, .starts = {{}}, .edges = {}, .dimension = 0};
  for (const hlo::PaddingDimension& d : padding) {
    if (d.low < 0 || d.high < 0 || d.interior != 0) return std::nullopt;
    parts.starts[0].push_back(d.low);
  }
  for (size_t d = 0; d < padding.size(); ++d) {
    Edge edge{pad.shape().dimensions(), hlo::Dims(padding.size(), 0)};
    std::copy_n(part.begin(), d, edge.sizes.begin());
    std::copy_n(parts.starts[0].begin(), d, edge.starts.begin());
    for (const auto& [size, start] :
         {std::pair{padding[d].low, int64_t{0}}, {padding[d].high, padding[d].low + part[d]}}) {
      edge.sizes[d] = size;
      edge.starts[d] = start;
      if (size > 0) parts.edges.push_back(edge);
    }
    if (padding[d] != hlo::PaddingDimension{}) parts.dimension = static_cast<int64_t>(d);
  }
  return parts;
}

// What the second cache holds is copied from there as fast as the launches of a chain take.
bool Pays(const Instruction& whole, const Parts& parts, const PassContext& context) {
  if (hlo::IsComplex(whole.shape().element_type()) || IsComputedByUsers(whole)) return false;
  int64_t bytes = 0;
  for (const Instruction* part : parts.values) {
    const auto times = std::count(whole.operands().begin(), whole.operands().end(), part);
    if (times == 1 && BytesTogether(*part, parts.dimension) >= kFewestBytesTogether &&
        IsMadeByProduct(*part, context.kernels))
      bytes += part->shape().ByteSize();
  }
  return bytes > context.device.l2_bytes;
}

void UpdateParts(Instruction* whole, const Parts& parts) {
  hlo::Builder build(whole->parent(), whole);
  build.before = whole;
  Instruction* array = Uninitialized(build, whole->shape());
  for (const Edge& edge : parts.edges)
    array = build.UpdateSlice(array, build.Broadcast(whole->operand(1), edge.sizes, {}), edge.starts);
  for (size_t i = 0; i < parts.values.size(); ++i) array = build.UpdateSlice(array, parts.values[i], parts.starts[i]);
  whole->parent()->Replace(whole, array);
}

std::optional<Parts> PartsOf(const Instruction& whole) {
  if (whole.Is(Opcode::kConcatenate)) return PartsOfConcatenate(whole);
  return whole.Is(Opcode::kPad) ? PartsOfPad(whole) : std::nullopt;
}

}  // namespace

bool PartsInPlace::Run(hlo::Module& module, PassContext& context) {
  // Kernels of products whose sizes vary end at the sizes.
  if (!SignatureOf(module).empty()) return false;
  bool changed = false;
  for (Computation* computation : module.ControlComputations()) {
    for (Instruction* instruction : computation->PostOrder()) {
      const std::optional<Parts> parts = PartsOf(*instruction);
      if (!parts || !Pays(*instruction, *parts, context)) continue;
      UpdateParts(instruction, *parts);
      changed = true;
    }
  }
  return changed;
}

}  // namespace hlorun::passes
