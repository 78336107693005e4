// Index arithmetic that simplifies itself: linear forms over loop variables and over floor-divisions and remainders of
// such forms, with ranges.
//
//   ((i * 8 + j) / 8)           ->  i           where 0 <= j < 8
//   (x / 12) * 12 + x % 12      ->  x
//   ((x / 4) % 3) * 4 + x % 4   ->  x % 12
//
// A reshape delinearises and linearises again; here the two cancel, so that what is left of a chain of reshapes,
// transposes and slices is what a person would have written.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "backends/opencl/codegen/kernel_ir.h"
#include "hlo/shape.h"

namespace hlorun::opencl {

struct IndexAtom;
using AtomRef = const IndexAtom*;  // owned and made unique by an IndexMath

// constant + sum of coefficient * atom; terms ordered by the atom's number, no zero coefficients. Equal forms of one
// IndexMath compare equal.
struct Index {
  std::vector<std::pair<AtomRef, int64_t>> terms;
  int64_t constant = 0;
  Index() = default;
  Index(int64_t value) : constant(value) {}  // NOLINT: constants are indices
  bool IsConstant() const { return terms.empty(); }
  bool operator==(const Index&) const = default;
  auto operator<=>(const Index&) const = default;  // NOLINT(modernize-use-nullptr): clang-tidy 15 sees a 0 in it
};
using Indices = std::vector<Index>;

struct Range {
  int64_t min = 0, max = 0;  // inclusive
};

struct IndexAtom {
  enum class Kind : uint8_t { kVariable, kFloorDiv, kMod };
  Kind kind = Kind::kVariable;
  int64_t number = 0;
  ir::Var variable;     // kVariable
  Index inner;          // kFloorDiv, kMod
  int64_t divisor = 1;  // > 0
  Range range;
};

// Makes and keeps the atoms of one kernel. Not synchronised.
class IndexMath {
 public:
  explicit IndexMath(ir::Type index_type = ir::kIndex32) : type_(index_type) {}
  IndexMath(const IndexMath&) = delete;
  IndexMath& operator=(const IndexMath&) = delete;

  ir::Type type() const { return type_; }
  Index Of(const ir::Var& variable);  // its type must be type()
  Index Add(const Index& x, const Index& y);
  Index Sub(const Index& x, const Index& y) { return Add(x, Mul(y, -1)); }
  Index Mul(const Index& x, int64_t factor);
  Index FloorDiv(const Index& x, int64_t divisor);
  Index Mod(const Index& x, int64_t divisor);
  Range RangeOf(const Index& x) const;

  Index Linearize(const Indices& index, const hlo::Dims& dimensions);
  Indices Delinearize(const Index& linear, const hlo::Dims& dimensions);

  ir::Expr ToExpr(const Index& x) const;
  // begin <= x < end as a predicate; a constant where the range proves it.
  ir::Expr Within(const Index& x, int64_t begin, int64_t end) const;

 private:
  Index Atom(IndexAtom::Kind kind, const Index& inner, int64_t divisor, Range range);
  // x = unit * high + low with 0 <= low < unit, for a common factor of `divisor` and one of x's coefficients; returns 1
  // when there is none.
  int64_t SplitAtCommonFactor(const Index& x, int64_t divisor, Index& high, Index& low) const;
  bool JoinRemainder(Index& x);

  ir::Type type_;
  std::vector<std::unique_ptr<IndexAtom>> atoms_;
  std::map<const ir::Variable*, AtomRef> variables_;
  std::map<std::string, AtomRef> divided_;
};

}  // namespace hlorun::opencl
