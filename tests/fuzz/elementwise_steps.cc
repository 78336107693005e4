#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "tests/fuzz/generator.h"

namespace hlorun::fuzz {

using testing_support::Count;

void Generator::Unary() {
  const Value x = Any();
  static constexpr std::array<std::string_view, 9> kOfFloats = {
      "negate", "abs", "tanh", "logistic", "floor", "sine", "cosine", "sign", "round-nearest-even"};
  static constexpr std::array<std::string_view, 6> kOfIntegers = {
      "negate", "not", "abs", "popcnt", "count-leading-zeros", "sign"};
  static constexpr std::array<std::string_view, 5> kOfWhole = {"negate", "abs", "sign", "floor", "round-nearest-even"};
  std::string_view op = IsInteger(x.type)  ? Pick(kOfIntegers)
                        : !IsFloat(x.type) ? "not"
                        : small()          ? Pick(kOfWhole)
                                           : Pick(kOfFloats);
  // floor and the rest jump where rounding may decide.
  const bool jumps = op == "floor" || op == "sign" || op == "round-nearest-even";
  if (!small() && IsFloat(x.type) && jumps) op = "negate";
  const bool is_unsigned = x.type[0] == 'u';
  if (is_unsigned && (op == "abs" || op == "sign")) op = "not";
  Add(x.type, x.dims, x.most, fmt::format("{}({})", op, x.name));
}

void Generator::Binary() {
  const Value x = Any();
  const Value y = *Like(x);
  static constexpr std::array<std::string_view, 4> kOfFloats = {"add", "subtract", "maximum", "minimum"};
  static constexpr std::array<std::string_view, 13> kOfIntegers = {"add",
                                                                   "subtract",
                                                                   "multiply",
                                                                   "maximum",
                                                                   "minimum",
                                                                   "and",
                                                                   "or",
                                                                   "xor",
                                                                   "divide",
                                                                   "remainder",
                                                                   "shift-left",
                                                                   "shift-right-logical",
                                                                   "shift-right-arithmetic"};
  static constexpr std::array<std::string_view, 3> kOfPredicates = {"and", "or", "xor"};
  static constexpr std::array<std::string_view, 5> kOfWhole = {"add", "subtract", "multiply", "maximum", "minimum"};
  const std::string_view op = IsInteger(x.type)  ? Pick(kOfIntegers)
                              : !IsFloat(x.type) ? Pick(kOfPredicates)
                              : small()          ? Pick(kOfWhole)
                                                 : Pick(kOfFloats);
  const int64_t most = op == "multiply"                     ? x.most * y.most
                       : op == "maximum" || op == "minimum" ? std::max(x.most, y.most)
                                                            : x.most + y.most;
  Add(x.type, x.dims, most, fmt::format("{}({}, {})", op, x.name, y.name));
}

void Generator::Compare() {
  const auto x = AnyWhere([&](const Value& v) { return small() || !IsFloat(v.type); });
  if (!x) return;
  static constexpr std::array<std::string_view, 6> kDirections = {"EQ", "NE", "LT", "LE", "GT", "GE"};
  Add("pred", x->dims, 0, fmt::format("compare({}, {}), direction={}", x->name, Like(*x)->name, Pick(kDirections)));
}

void Generator::Select() {
  const auto p = AnyWhere([](const Value& v) { return v.type == "pred"; });
  if (!p) return;
  const auto x = AnyWhere([&](const Value& v) { return v.dims == p->dims; });
  const Value y = *Like(*x);
  Add(x->type, x->dims, std::max(x->most, y.most), fmt::format("select({}, {}, {})", p->name, x->name, y.name));
}

void Generator::Clamp() {
  const Value x = Any();
  if (x.type == "pred") return;
  const int64_t low = Below(3), high = 3 + Below(100);
  Add(x.type, x.dims, high, fmt::format("clamp({}, {}, {})", Constant(x.type, low), x.name, Constant(x.type, high)));
}

void Generator::Convert() {
  const Value x = Any();
  const std::string_view to = RandomType();
  const bool from_float = !small() && IsFloat(x.type) && !IsFloat(to);  // rounding would decide
  const bool large = IsInteger(x.type) && IsFloat(to);
  if (from_float) return;
  if (!large) {
    Add(to, x.dims, x.type == "pred" ? 1 : x.most, fmt::format("convert({})", x.name));
    return;
  }
  const Value mask = Add(x.type, x.dims, x.most, fmt::format("broadcast({}), dimensions={{}}", Constant(x.type, 15)));
  if (mask.dims != x.dims || mask.type != x.type) return;
  const Value low = Add(x.type, x.dims, x.most, fmt::format("and({}, {})", x.name, mask.name));
  Add(to, x.dims, 15, fmt::format("convert({})", low.name));
}

}  // namespace hlorun::fuzz
