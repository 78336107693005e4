#include "passes/simplify/symmetry.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "hlo/elementwise.h"
#include "hlo/exchanged_dimensions.h"

namespace hlorun::passes {
namespace {

using hlo::Instruction;
using hlo::Opcode;

// Of ops looked at for one answer: chains of elementwise ops are longer only where nobody writes them.
constexpr int kMostOps = 256;

bool MayExchangeOperands(const Instruction& x) {
  if (x.operand_count() != 2) return false;
  if (!x.Is(Opcode::kCompare)) return x.Has(hlo::kCommutative);
  const hlo::ComparisonDirection direction = x.As<hlo::attr::Compare>().direction;
  return direction == hlo::ComparisonDirection::kEq || direction == hlo::ComparisonDirection::kNe;
}

// Whether it exchanges the last two dimensions and no others.
bool IsMatrixTranspose(const Instruction& x) {
  if (!x.Is(Opcode::kTranspose)) return false;
  const std::vector<int64_t> exchanged = hlo::ExchangedDimensions(x);
  return std::is_sorted(exchanged.begin(), exchanged.end());
}

// An operand of a dot, and the dimensions of it that are contracted, behind transposes.
struct Contracted {
  const Instruction* array;
  std::vector<int64_t> batch, contracting;
  bool operator==(const Contracted&) const = default;
};

Contracted BehindTransposes(const Instruction* array, std::vector<int64_t> batch, std::vector<int64_t> contracting) {
  for (; array->Is(Opcode::kTranspose); array = array->operand(0)) {
    for (std::vector<int64_t>* dimensions : {&batch, &contracting}) {
      for (int64_t& d : *dimensions) d = array->dimensions()[static_cast<size_t>(d)];
    }
  }
  return {array, std::move(batch), std::move(contracting)};
}

class Question {
 public:
  bool IsSymmetric(const Instruction& x) {
    const hlo::Shape& shape = x.shape();
    if (++ops_ > kMostOps || !shape.IsArray() || !shape.IsStatic() || shape.rank() < 2) return false;
    const int64_t row = shape.rank() - 2, column = shape.rank() - 1;
    if (shape.dimension(row) != shape.dimension(column)) return false;
    switch (x.opcode()) {
      case Opcode::kConstant: return x.literal().IsAllSame();
      case Opcode::kIota: return x.dimensions()[0] < row;
      case Opcode::kBroadcast:
        return std::all_of(x.dimensions().begin(), x.dimensions().end(), [&](int64_t d) { return d < row; });
      case Opcode::kTranspose: return IsMatrixTranspose(x) && IsSymmetric(*x.operand(0));
      case Opcode::kDot: return IsSymmetricProduct(x);
      default: break;
    }
    if (!hlo::IsElementwise(x)) return false;
    if (MayExchangeOperands(x) && AreTransposes(*x.operand(0), *x.operand(1))) return true;
    return std::all_of(x.operands().begin(), x.operands().end(), [&](const Instruction* operand) {
      return operand->shape().rank() == 0 || IsSymmetric(*operand);
    });
  }

 private:
  // One free dimension a side, so that the result's last two are those.
  bool IsSymmetricProduct(const Instruction& dot) {
    const auto& attributes = dot.As<hlo::attr::Dot>();
    if (attributes.lhs_contracting.size() != 1 || !attributes.lhs_ragged.empty() || !attributes.rhs_group.empty() ||
        dot.operand(0)->shape().rank() != static_cast<int64_t>(attributes.lhs_batch.size()) + 2) {
      return false;
    }
    const Contracted lhs = BehindTransposes(dot.operand(0), attributes.lhs_batch, attributes.lhs_contracting),
                     rhs = BehindTransposes(dot.operand(1), attributes.rhs_batch, attributes.rhs_contracting);
    if (lhs == rhs) return true;
    const int64_t matrix = static_cast<int64_t>(lhs.batch.size());
    return lhs.array == rhs.array && lhs.batch == rhs.batch && lhs.contracting[0] >= matrix &&
           rhs.contracting[0] >= matrix && IsSymmetric(*lhs.array);
  }

  bool AreTransposes(const Instruction& x, const Instruction& y) {
    if (++ops_ > kMostOps || !x.shape().SameAs(y.shape()) || x.shape().rank() < 2) return false;
    if (&x == &y) return IsSymmetric(x);
    if (IsMatrixTranspose(x) && x.operand(0) == &y) return true;
    if (IsMatrixTranspose(y) && y.operand(0) == &x) return true;
    if (!x.Is(y.opcode()) || x.operand_count() != y.operand_count()) return false;
    if (x.Is(Opcode::kIota) || x.Is(Opcode::kBroadcast)) {
      return (x.operand_count() == 0 || x.operand(0) == y.operand(0)) && hlo::ExchangedDimensions(x) == y.dimensions();
    }
    if (!hlo::IsElementwise(x) || x.attributes() != y.attributes()) return false;
    for (int64_t i = 0; i < x.operand_count(); ++i) {
      const bool same_scalar = x.operand(i)->shape().rank() == 0 && x.operand(i) == y.operand(i);
      if (!same_scalar && !AreTransposes(*x.operand(i), *y.operand(i))) return false;
    }
    return true;
  }

  int ops_ = 0;
};

}  // namespace

bool IsSymmetric(const Instruction& x) { return Question().IsSymmetric(x); }

}  // namespace hlorun::passes
