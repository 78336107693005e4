#include "passes/dynamic/dimension_remarks.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "passes/dynamic/extents.h"
#include "passes/dynamic/sized_dimensions.h"
#include "passes/fusion/hero.h"

namespace hlorun::passes {
namespace {

using hlo::Instruction;
using hlo::Opcode;

struct KindText {
  KernelKind kind;
  const char* why;
};

// Kernels whose loops do not end at sizes; what the others lack is said by extents.cc.
constexpr std::array<KindText, 9> kWhole = {{
    {KernelKind::kInPlace, "an update in place leaves the rest of the array as it is"},
    {KernelKind::kScatter, "a scatter goes through all of its updates"},
    {KernelKind::kSort, "a sort moves padding to the end, among all elements"},
    {KernelKind::kSelectAndScatter, "its windows go over the whole array"},
    {KernelKind::kRng, "random numbers are made for the bound, as each depends on the shape"},
    {KernelKind::kCustom, "its kernel is written for whole arrays"},
    {KernelKind::kRegion, "it is small, and part of a region that one work-item runs"},
    {KernelKind::kCollective, "all ranks exchange as many elements, whatever their sizes"},
    {KernelKind::kHost, "the host works on whole arrays"},
}};

struct Tally {
  int64_t followed = 0, padded = 0;
};

class Explainer {
 public:
  Explainer(const hlo::Module& module, const SizeSignature& signature, const WholeDimensions& whole)
      : module_(module),
        signature_(signature),
        whole_(whole),
        sized_(module, signature),
        tallies_(signature.parameters.size()) {}

  std::vector<Remark> Run() {
    for (const hlo::Computation* computation : module_.ControlComputations()) {
      for (const auto& instruction : computation->instructions()) Visit(*instruction);
    }
    std::vector<Remark> remarks;
    for (size_t i = 0; i < signature_.parameters.size(); ++i) remarks.push_back(OfParameter(i));
    remarks.insert(remarks.end(), padded_.begin(), padded_.end());
    return remarks;
  }

 private:
  Remark About(const Instruction& instruction, int64_t dimension) const {
    Remark remark;
    remark.subject = Remark::Subject::kDimension;
    remark.instruction = fmt::format("{}:{}", instruction.name(), dimension);
    remark.source = module_.SourceOf(instruction);
    return remark;
  }

  void Visit(const Instruction& op) {
    const KernelKind kind = HeroOf(op).kind;
    if (kind == KernelKind::kNone) return;
    const KernelExtents extents = ExtentsOf(op);
    VisitReduced(op, extents);
    const std::vector<hlo::Shape> leaves = hlo::FlattenShape(op.shape());
    std::vector<int> seen;  // several results of one kernel are one loop
    for (size_t i = 0; i < leaves.size(); ++i) {
      const auto leaf = static_cast<int64_t>(i);
      for (int64_t d = 0; leaves[i].IsArray() && d < leaves[i].rank(); ++d) {
        const int origin = sized_.OriginOf(&op, leaf, d);
        if (origin == SizedDimensions::kFixed || std::find(seen.begin(), seen.end(), origin) != seen.end()) continue;
        seen.push_back(origin);
        Tally& tally = tallies_[static_cast<size_t>(origin)];
        if (extents.Of(leaf, d)) {
          ++tally.followed;
        } else {
          ++tally.padded;
          padded_.push_back(Padded(op, kind, leaf, d));
        }
      }
    }
  }

  // Dimensions that a kernel reduces or contracts, which its result lacks.
  void VisitReduced(const Instruction& op, const KernelExtents& extents) {
    const Instruction* hero = HeroOf(op).instruction;
    std::vector<const Instruction*> reductions = {hero};
    if (op.Is(Opcode::kFusion)) {
      for (const auto& inner : op.called()->instructions()) {
        if (inner.get() != hero && inner->Is(Opcode::kReduce)) reductions.push_back(inner.get());
      }
    }
    std::vector<int> seen;  // over both operands of a product, or several reductions of one kernel: one loop
    const auto count = [&](const Instruction& over, int64_t operand, int64_t d, bool ends) {
      const int origin = sized_.OriginOf(over.operand(operand), 0, d);
      if (origin == SizedDimensions::kFixed || std::find(seen.begin(), seen.end(), origin) != seen.end()) return;
      seen.push_back(origin);
      Tally& tally = tallies_[static_cast<size_t>(origin)];
      ++(ends ? tally.followed : tally.padded);
      if (!ends) padded_.push_back(PaddedReduction(op, over, over.operand(operand)->shape().dimension(d)));
    };
    for (const Instruction* over : reductions) {
      if (over->Is(Opcode::kReduce)) {
        for (const int64_t d : over->dimensions()) count(*over, 0, d, NeutralFrom(*over, d) != nullptr);
      } else if (over->Is(Opcode::kDot)) {
        const auto& dot = over->As<hlo::attr::Dot>();
        for (const int64_t d : dot.lhs_contracting) count(*over, 0, d, extents.contraction.has_value());
        for (const int64_t d : dot.rhs_contracting) count(*over, 1, d, extents.contraction.has_value());
      }
    }
  }

  Remark PaddedReduction(const Instruction& op, const Instruction& over, int64_t bound) const {
    Remark remark = About(op, 0);
    remark.instruction = op.name();
    remark.choice = "padded";
    remark.reason = over.Is(Opcode::kDot)
                        ? "the product multiplies the zeros behind the size of the dimension that it contracts"
                        : "the reduction goes over all elements, those behind the size are masked";
    remark.cost = fmt::format("computed up to its bound of {}, whatever the size", bound);
    return remark;
  }

  Remark Padded(const Instruction& op, KernelKind kind, int64_t leaf, int64_t d) const {
    Remark remark = About(op, d);
    const int64_t bound = hlo::FlattenShape(op.shape())[static_cast<size_t>(leaf)].dimension(d);
    remark.choice = "padded";
    const auto* text = std::find_if(kWhole.begin(), kWhole.end(), [&](const KindText& t) { return t.kind == kind; });
    const auto noted = whole_.find(&op);
    if (text != kWhole.end())
      remark.reason = text->why;
    else if (noted != whole_.end())
      remark.reason = noted->second[static_cast<size_t>(leaf)][static_cast<size_t>(d)];
    if (remark.reason.empty()) remark.reason = "its readers do not say how much of it they need";
    remark.cost = fmt::format("computed up to its bound of {}, whatever the size", bound);
    if (kind != KernelKind::kRegion)
      remark.advice = "a bound nearer to the sizes that occur, or --bucket=pow2: one executable for each power of two";
    return remark;
  }

  // Of the first reader, also inside of a fusion, that has one.
  std::string SourceOfReader(const Instruction& value) const {
    for (const Instruction* user : value.users()) {
      const bool inside = user->Is(Opcode::kFusion);
      const std::string source =
          inside ? SourceOfReader(*user->called()->parameter(user->OperandIndex(&value))) : module_.SourceOf(*user);
      if (!source.empty()) return source;
    }
    return "";
  }

  Remark OfParameter(size_t i) const {
    const DimensionOfLeaf& at = signature_.parameters[i];
    int64_t leaf = at.leaf;
    const Instruction* parameter = nullptr;
    for (const Instruction* p : module_.entry()->parameters()) {
      const int64_t count = hlo::LeafCount(p->shape());
      parameter = p;
      if (leaf < count) break;
      leaf -= count;
    }
    Remark remark = About(*parameter, at.dimension);
    // Exporters leave parameters without a source line: that of the first reader.
    if (remark.source.empty()) remark.source = SourceOfReader(*parameter);
    const int64_t bound = hlo::FlattenShape(parameter->shape())[static_cast<size_t>(leaf)].dimension(at.dimension);
    const auto& [followed, padded] = tallies_[i];
    remark.choice = padded == 0 ? "followed" : followed == 0 ? "padded" : "followed in part";
    const auto first = std::find_if(signature_.equal.begin(), signature_.equal.end(),
                                    [&](const auto& pair) { return pair.second == static_cast<int64_t>(i); });
    if (followed + padded == 0 && first != signature_.equal.end()) {
      const DimensionOfLeaf& other = signature_.parameters[static_cast<size_t>(first->first)];
      remark.choice = "followed";
      remark.reason =
          fmt::format("it equals dimension {} of argument {}, which is followed", other.dimension, other.leaf);
    } else {
      remark.reason = fmt::format("its size is data that kernels read: {} end{} at it, {} work{} up to the bound",
                                  followed, followed == 1 ? "s" : "", padded, padded == 1 ? "s" : "");
    }
    remark.cost = fmt::format("memory for the bound of {}", bound);
    return remark;
  }

  const hlo::Module& module_;
  const SizeSignature& signature_;
  const WholeDimensions& whole_;
  const SizedDimensions sized_;
  std::vector<Tally> tallies_;
  std::vector<Remark> padded_;
};

}  // namespace

void ExplainDimensions(const hlo::Module& module, const SizeSignature& signature, const WholeDimensions& whole,
                       std::vector<Remark>& remarks) {
  const std::vector<Remark> all = Explainer(module, signature, whole).Run();
  remarks.insert(remarks.end(), all.begin(), all.end());
}

}  // namespace hlorun::passes
