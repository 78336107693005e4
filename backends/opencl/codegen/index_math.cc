#include "backends/opencl/codegen/index_math.h"

#include <algorithm>
#include <cstdlib>
#include <numeric>

#include "hlo/error.h"

namespace hlorun::opencl {
namespace {

// Ranges saturate here, so that sums of unbounded run-time values do not overflow.
constexpr int64_t kFar = int64_t{1} << 60;

int64_t FloorDivide(int64_t a, int64_t b) { return a / b - (a % b < 0 ? 1 : 0); }

int64_t SaturatingMul(int64_t a, int64_t b) {
  int64_t product = 0;
  if (__builtin_mul_overflow(a, b, &product)) return (a < 0) != (b < 0) ? -kFar : kFar;
  return std::clamp(product, -kFar, kFar);
}

std::string KeyOf(IndexAtom::Kind kind, const Index& inner, int64_t divisor) {
  std::string key = kind == IndexAtom::Kind::kMod ? "%" : "/";
  key += std::to_string(divisor) + ":" + std::to_string(inner.constant);
  for (const auto& [atom, coefficient] : inner.terms) {
    key += "+" + std::to_string(coefficient) + "*" + std::to_string(atom->number);
  }
  return key;
}

// x = divisor * whole + rest, term by term; the constant of rest is in [0, divisor).
void SplitMultiples(const Index& x, int64_t divisor, Index& whole, Index& rest) {
  whole = Index(FloorDivide(x.constant, divisor));
  rest = Index(x.constant - whole.constant * divisor);
  for (const auto& [atom, coefficient] : x.terms) {
    if (coefficient % divisor == 0)
      whole.terms.emplace_back(atom, coefficient / divisor);
    else
      rest.terms.emplace_back(atom, coefficient);
  }
}

}  // namespace

Index IndexMath::Of(const ir::Var& variable) {
  HLORUN_CHECK(variable->type == type_);
  AtomRef& atom = variables_[variable.get()];
  if (atom == nullptr) {
    const bool known = variable->min <= variable->max;
    atoms_.push_back(std::make_unique<IndexAtom>(
        IndexAtom{.kind = IndexAtom::Kind::kVariable,
                  .number = static_cast<int64_t>(atoms_.size()),
                  .variable = variable,
                  .inner = {},
                  .range = known ? Range{variable->min, variable->max} : Range{-kFar, kFar}}));
    atom = atoms_.back().get();
  }
  if (atom->range.min == atom->range.max) return atom->range.min;
  Index index;
  index.terms = {{atom, 1}};
  return index;
}

Index IndexMath::Atom(IndexAtom::Kind kind, const Index& inner, int64_t divisor, Range range) {
  AtomRef& atom = divided_[KeyOf(kind, inner, divisor)];
  if (atom == nullptr) {
    atoms_.push_back(std::make_unique<IndexAtom>(IndexAtom{.kind = kind,
                                                           .number = static_cast<int64_t>(atoms_.size()),
                                                           .variable = nullptr,
                                                           .inner = inner,
                                                           .divisor = divisor,
                                                           .range = range}));
    atom = atoms_.back().get();
  }
  Index index;
  index.terms = {{atom, 1}};
  return index;
}

Range IndexMath::RangeOf(const Index& x) const {
  Range range{x.constant, x.constant};
  for (const auto& [atom, coefficient] : x.terms) {
    const int64_t a = SaturatingMul(atom->range.min, coefficient), b = SaturatingMul(atom->range.max, coefficient);
    range.min = std::clamp(range.min + std::min(a, b), -kFar, kFar);
    range.max = std::clamp(range.max + std::max(a, b), -kFar, kFar);
  }
  return range;
}

Index IndexMath::Add(const Index& x, const Index& y) {
  Index sum(x.constant + y.constant);
  size_t i = 0, j = 0;
  while (i < x.terms.size() || j < y.terms.size()) {
    if (j == y.terms.size() || (i < x.terms.size() && x.terms[i].first->number < y.terms[j].first->number)) {
      sum.terms.push_back(x.terms[i++]);
    } else if (i == x.terms.size() || y.terms[j].first->number < x.terms[i].first->number) {
      sum.terms.push_back(y.terms[j++]);
    } else {
      const int64_t coefficient = x.terms[i].second + y.terms[j].second;
      if (coefficient != 0) sum.terms.emplace_back(x.terms[i].first, coefficient);
      ++i, ++j;
    }
  }
  while (JoinRemainder(sum)) {
  }
  return sum;
}

namespace {

// The atom that the index is; nullptr where it is more.
AtomRef AtomOf(const Index& x) {
  return x.terms.size() == 1 && x.constant == 0 && x.terms[0].second == 1 ? x.terms[0].first : nullptr;
}

// y % M, of which the two atoms are quotient and remainder by D, which divides M: ((y % M) / D and y % D); else
// nullptr.
const Index* RemainderOf(const IndexAtom& div, const IndexAtom& mod) {
  if (div.kind != IndexAtom::Kind::kFloorDiv || div.divisor != mod.divisor) return nullptr;
  const AtomRef whole = AtomOf(div.inner);
  const bool fits = whole != nullptr && whole->kind == IndexAtom::Kind::kMod && whole->divisor % mod.divisor == 0 &&
                    whole->inner == mod.inner;
  return fits ? &div.inner : nullptr;
}

}  // namespace

// k*D * (y / D) + k * (y % D)  ->  k * y, once; the same of a remainder y % M in place of y, whose own remainder by D
// is y % D. False when there is nothing to join.
bool IndexMath::JoinRemainder(Index& x) {
  for (const auto& [mod, k] : x.terms) {
    if (mod->kind != IndexAtom::Kind::kMod) continue;
    const AtomRef quotient = AtomOf(FloorDiv(mod->inner, mod->divisor));
    for (const auto& [div, coefficient] : x.terms) {
      if (coefficient != k * mod->divisor) continue;
      const Index* joined = div == quotient ? &mod->inner : RemainderOf(*div, *mod);
      if (joined == nullptr) continue;
      Index rest(x.constant);
      for (const auto& term : x.terms) {
        if (term.first != mod && term.first != div) rest.terms.push_back(term);
      }
      x = Add(rest, Mul(*joined, k));
      return true;
    }
  }
  return false;
}

Index IndexMath::Mul(const Index& x, int64_t factor) {
  if (factor == 0) return 0;
  Index product(x.constant * factor);
  for (const auto& [atom, coefficient] : x.terms) product.terms.emplace_back(atom, coefficient * factor);
  return product;
}

int64_t IndexMath::SplitAtCommonFactor(const Index& x, int64_t divisor, Index& high, Index& low) const {
  for (const auto& term : x.terms) {
    const int64_t unit = std::gcd(term.second, divisor);
    if (unit <= 1) continue;
    SplitMultiples(x, unit, high, low);
    const Range range = RangeOf(low);
    if (range.min >= 0 && range.max < unit) return unit;
  }
  return 1;
}

Index IndexMath::FloorDiv(const Index& x, int64_t divisor) {
  HLORUN_CHECK(divisor > 0);
  if (divisor == 1) return x;
  // Multiples of the divisor leave at once.
  Index whole, rest;
  SplitMultiples(x, divisor, whole, rest);
  const Range range = RangeOf(rest);
  const int64_t quotient = FloorDivide(range.min, divisor);
  if (quotient == FloorDivide(range.max, divisor)) return Add(whole, quotient);
  // Divide by a common factor once what is below it cannot carry.
  Index high, low;
  if (const int64_t unit = SplitAtCommonFactor(rest, divisor, high, low); unit > 1) {
    return Add(whole, FloorDiv(high, divisor / unit));
  }
  // (y / a) / b -> y / (a * b)
  if (rest.terms.size() == 1 && rest.terms[0].second == 1 && rest.terms[0].first->kind == IndexAtom::Kind::kFloorDiv) {
    const IndexAtom& inner = *rest.terms[0].first;
    return Add(whole, FloorDiv(Add(inner.inner, rest.constant * inner.divisor), inner.divisor * divisor));
  }
  return Add(whole, Atom(IndexAtom::Kind::kFloorDiv, rest, divisor, {quotient, FloorDivide(range.max, divisor)}));
}

Index IndexMath::Mod(const Index& x, int64_t divisor) {
  HLORUN_CHECK(divisor > 0);
  if (divisor == 1) return 0;
  Index whole, rest;
  SplitMultiples(x, divisor, whole, rest);
  const Range range = RangeOf(rest);
  const int64_t quotient = FloorDivide(range.min, divisor);
  if (quotient == FloorDivide(range.max, divisor)) return Add(rest, -quotient * divisor);
  Index high, low;
  if (const int64_t unit = SplitAtCommonFactor(rest, divisor, high, low); unit > 1) {
    return Add(Mul(Mod(high, divisor / unit), unit), low);
  }
  if (rest.terms.size() == 1 && rest.terms[0].second == 1 && rest.terms[0].first->kind == IndexAtom::Kind::kMod &&
      rest.terms[0].first->divisor % divisor == 0) {
    return Mod(Add(rest.terms[0].first->inner, rest.constant), divisor);
  }
  return Atom(IndexAtom::Kind::kMod, rest, divisor, {0, divisor - 1});
}

Index IndexMath::Linearize(const Indices& index, const hlo::Dims& dimensions) {
  HLORUN_CHECK(index.size() == dimensions.size());
  Index linear;
  int64_t stride = 1;
  for (size_t d = dimensions.size(); d-- > 0;) {
    linear = Add(linear, Mul(index[d], stride));
    stride *= dimensions[d];
  }
  return linear;
}

Indices IndexMath::Delinearize(const Index& linear, const hlo::Dims& dimensions) {
  Indices index(dimensions.size());
  int64_t stride = 1;
  for (size_t d = dimensions.size(); d-- > 0;) {
    if (dimensions[d] <= 1) continue;
    index[d] = Mod(FloorDiv(linear, stride), dimensions[d]);
    // The leading dimension needs no remainder: the index is within the array.
    const bool leading = std::all_of(dimensions.begin(), dimensions.begin() + static_cast<ptrdiff_t>(d),
                                     [](int64_t n) { return n == 1; });
    if (leading) index[d] = FloorDiv(linear, stride);
    stride *= dimensions[d];
  }
  return index;
}

ir::Expr IndexMath::ToExpr(const Index& x) const {
  ir::Expr sum;
  for (const auto& [atom, coefficient] : x.terms) {
    ir::Expr term;
    if (atom->kind == IndexAtom::Kind::kVariable) {
      term = ir::Ref(atom->variable);
    } else {
      // C's division truncates: shift the operand to where both agree.
      const int64_t below = RangeOf(atom->inner).min;
      const int64_t shift = below < 0 ? FloorDivide(-below + atom->divisor - 1, atom->divisor) : 0;
      Index inner = atom->inner;
      inner.constant += shift * atom->divisor;
      const bool is_mod = atom->kind == IndexAtom::Kind::kMod;
      term = ir::Binary(is_mod ? ir::Op::kFloorMod : ir::Op::kFloorDiv, ToExpr(inner), ir::Int(atom->divisor, type_));
      if (!is_mod) term = term - shift;
    }
    term = term * coefficient;
    sum = sum ? sum + term : term;
  }
  if (!sum) return ir::Int(x.constant, type_);
  return sum + x.constant;
}

ir::Expr IndexMath::Within(const Index& x, int64_t begin, int64_t end) const {
  const Range range = RangeOf(x);
  if (range.max < begin || range.min >= end) return ir::Pred(false);
  // 2 * i - 1 >= 0 is i >= 1, which says where the answer changes.
  int64_t common = 0;
  for (const auto& [atom, coefficient] : x.terms) common = std::gcd(common, coefficient);
  if (common > 1) {
    Index part;
    for (const auto& [atom, coefficient] : x.terms) part.terms.emplace_back(atom, coefficient / common);
    const auto bound = [&](int64_t value) { return FloorDivide(value - x.constant + common - 1, common); };
    return Within(part, bound(begin), bound(end));
  }
  ir::Expr inside = ir::Pred(true);
  if (range.min < begin) inside = ir::And(inside, ir::Compare(ir::Op::kGe, ToExpr(x), ir::Int(begin, type_)));
  if (range.max >= end) inside = ir::And(inside, ir::Compare(ir::Op::kLt, ToExpr(x), ir::Int(end, type_)));
  return inside;
}

}  // namespace hlorun::opencl
