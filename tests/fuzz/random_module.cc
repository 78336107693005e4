#include "tests/fuzz/random_module.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <optional>
#include <random>
#include <string_view>
#include <vector>

#include "tests/random_dims.h"

namespace hlorun::fuzz {
namespace {

using testing_support::Count;
using testing_support::Dims;

struct Value {
  std::string name;
  std::string_view type;
  Dims dims;
};

constexpr std::array<std::string_view, 9> kTypes = {"s32", "f32", "s32", "f32", "u8", "s64", "u32", "bf16", "pred"};
constexpr int64_t kMostElements = 8192;

bool IsFloat(std::string_view type) { return type == "f32" || type == "bf16"; }
bool IsInteger(std::string_view type) { return !IsFloat(type) && type != "pred"; }
std::string ShapeText(std::string_view type, const Dims& dims) {
  return fmt::format("{}[{}]", type, fmt::join(dims, ","));
}

class Generator {
 public:
  explicit Generator(uint64_t seed) : random_(seed) {}

  std::string Make() {
    for (int64_t i = 1 + Below(4); i > 0; --i) Parameter();
    for (int64_t i = 4 + Below(16); i > 0; --i) (this->*kSteps[static_cast<size_t>(Below(std::size(kSteps)))])();
    // The last few values, and some in between, are results.
    std::string names, shapes;
    for (size_t i = 0; i < values_.size(); ++i) {
      if (i + 3 < values_.size() && Below(4) != 0) continue;
      names += (names.empty() ? "" : ", ") + values_[i].name;
      shapes += (shapes.empty() ? "" : ", ") + Text(values_[i]);
    }
    Line(fmt::format("ROOT out = ({}) tuple({})", shapes, names));
    return "HloModule random\n" + computations_ + "ENTRY main {\n" + body_ + "}\n";
  }

 private:
  using Step = void (Generator::*)();
  static const std::array<Step, 30> kSteps;

  int64_t Below(int64_t n) { return testing_support::Below(random_, n); }
  template <size_t kCount>
  std::string_view Pick(const std::array<std::string_view, kCount>& list) {
    return list[static_cast<size_t>(Below(kCount))];
  }
  void Line(const std::string& line) { body_ += "  " + line + "\n"; }
  static std::string Text(const Value& v) { return ShapeText(v.type, v.dims); }
  std::string Fresh(const char* prefix) { return fmt::format("{}{}", prefix, next_++); }
  const Value& Any() { return values_[static_cast<size_t>(Below(static_cast<int64_t>(values_.size())))]; }

  template <typename Condition>
  std::optional<Value> AnyWhere(Condition condition) {
    std::vector<const Value*> fitting;
    for (const Value& v : values_) {
      if (condition(v)) fitting.push_back(&v);
    }
    if (fitting.empty()) return std::nullopt;
    return *fitting[static_cast<size_t>(Below(static_cast<int64_t>(fitting.size())))];
  }
  std::optional<Value> Like(const Value& x) {
    return AnyWhere([&](const Value& v) { return v.type == x.type && v.dims == x.dims; });
  }

  Value Add(std::string_view type, const Dims& dims, const std::string& operation) {
    Value value{Fresh("v"), type, dims};
    if (Count(dims) > kMostElements) return values_[0];
    Line(fmt::format("{} = {} {}", value.name, Text(value), operation));
    values_.push_back(value);
    return value;
  }

  void Parameter() {
    Dims dims(static_cast<size_t>(Below(4)));
    for (int64_t& d : dims) d = Below(30) == 0 ? 0 : Below(8) == 0 ? 1 + Below(70) : 1 + Below(12);
    const Value value{Fresh("p"), Pick(kTypes), dims};
    Line(fmt::format("{} = {} parameter({})", value.name, Text(value), values_.size()));
    values_.push_back(value);
  }

  std::string Constant(std::string_view type, int64_t value) {
    const std::string name = Fresh("c");
    const std::string text = type == "pred" ? (value % 2 != 0 ? "true" : "false") : fmt::format("{}", value);
    Line(fmt::format("{} = {}[] constant({})", name, type, text));
    return name;
  }
  // For reductions and padding: small, and never negative where the type has no sign.
  std::string SmallConstant(std::string_view type) { return Constant(type, Below(4)); }

  std::string Computation(const std::string& text) {
    const std::string name = Fresh("f");
    computations_ += name + " " + text + "\n";
    return name;
  }
  std::string Reducer(std::string_view type, std::string_view op) {
    return Computation(
        fmt::format("{{ a = {0}[] parameter(0)\n b = {0}[] parameter(1)\n ROOT r = {0}[] {1}(a, b) }}", type, op));
  }
  std::string_view ReducerOp(std::string_view type) {
    static constexpr std::array<std::string_view, 3> kOfFloats = {"add", "maximum", "minimum"};
    static constexpr std::array<std::string_view, 5> kOfIntegers = {"add", "maximum", "minimum", "multiply", "xor"};
    static constexpr std::array<std::string_view, 2> kOfPredicates = {"or", "and"};
    return IsFloat(type) ? Pick(kOfFloats) : IsInteger(type) ? Pick(kOfIntegers) : Pick(kOfPredicates);
  }

  // A scalar s32 that depends on data.
  std::string Index() {
    const auto from = AnyWhere([](const Value& v) { return v.type == "s32" && Count(v.dims) > 0; });
    if (!from) return Constant("s32", Below(6) - 1);
    const std::string one = Fresh("i"), scalar = Fresh("i");
    if (from->dims.empty()) return from->name;
    Line(fmt::format("{} = s32[{}] slice({}), slice={{{}}}", one, fmt::join(Dims(from->dims.size(), 1), ","),
                     from->name, fmt::join(std::vector<std::string>(from->dims.size(), "[0:1]"), ", ")));
    Line(fmt::format("{} = s32[] reshape({})", scalar, one));
    return scalar;
  }

  // --- elementwise ---

  void Unary() {
    const Value x = Any();
    static constexpr std::array<std::string_view, 9> kOfFloats = {
        "negate", "abs", "tanh", "logistic", "floor", "sine", "cosine", "sign", "round-nearest-even"};
    static constexpr std::array<std::string_view, 6> kOfIntegers = {
        "negate", "not", "abs", "popcnt", "count-leading-zeros", "sign"};
    std::string_view op = IsFloat(x.type) ? Pick(kOfFloats) : IsInteger(x.type) ? Pick(kOfIntegers) : "not";
    // floor and the rest jump where rounding may decide.
    const bool jumps = op == "floor" || op == "sign" || op == "round-nearest-even";
    if (IsFloat(x.type) && jumps) op = "negate";
    const bool is_unsigned = x.type[0] == 'u';
    if (is_unsigned && (op == "abs" || op == "sign")) op = "not";
    Add(x.type, x.dims, fmt::format("{}({})", op, x.name));
  }

  void Binary() {
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
    const std::string_view op = IsFloat(x.type)     ? Pick(kOfFloats)
                                : IsInteger(x.type) ? Pick(kOfIntegers)
                                                    : Pick(kOfPredicates);
    Add(x.type, x.dims, fmt::format("{}({}, {})", op, x.name, y.name));
  }

  void Compare() {
    const auto x = AnyWhere([](const Value& v) { return !IsFloat(v.type); });
    if (!x) return;
    static constexpr std::array<std::string_view, 6> kDirections = {"EQ", "NE", "LT", "LE", "GT", "GE"};
    Add("pred", x->dims, fmt::format("compare({}, {}), direction={}", x->name, Like(*x)->name, Pick(kDirections)));
  }

  void Select() {
    const auto p = AnyWhere([](const Value& v) { return v.type == "pred"; });
    if (!p) return;
    const auto x = AnyWhere([&](const Value& v) { return v.dims == p->dims; });
    Add(x->type, x->dims, fmt::format("select({}, {}, {})", p->name, x->name, Like(*x)->name));
  }

  void Clamp() {
    const Value x = Any();
    if (x.type == "pred") return;
    Add(x.type, x.dims,
        fmt::format("clamp({}, {}, {})", Constant(x.type, Below(3)), x.name, Constant(x.type, 3 + Below(100))));
  }

  void Convert() {
    const Value x = Any();
    const std::string_view to = Pick(kTypes);
    const bool from_float = IsFloat(x.type) && !IsFloat(to);  // rounding would decide
    const bool large = IsInteger(x.type) && IsFloat(to);
    if (from_float) return;
    if (!large) {
      Add(to, x.dims, fmt::format("convert({})", x.name));
      return;
    }
    const Value mask = Add(x.type, x.dims, fmt::format("broadcast({}), dimensions={{}}", Constant(x.type, 15)));
    if (mask.dims != x.dims || mask.type != x.type) return;
    const Value low = Add(x.type, x.dims, fmt::format("and({}, {})", x.name, mask.name));
    Add(to, x.dims, fmt::format("convert({})", low.name));
  }

  // --- movement ---

  void Transpose() {
    const Value x = Any();
    const std::vector<size_t> order = testing_support::RandomOrder(random_, x.dims.size());
    Add(x.type, testing_support::Permuted(x.dims, order),
        fmt::format("transpose({}), dimensions={{{}}}", x.name, fmt::join(order, ",")));
  }

  void Reshape() {
    const Value x = Any();
    const int64_t count = Count(x.dims);
    const Dims dims = testing_support::RandomFactors(random_, count, count > 0 ? Below(4) : 0);
    Add(x.type, dims, fmt::format("reshape({})", x.name));
  }

  void Broadcast() {
    const Value x = Any();
    if (x.dims.size() > 3) return;
    const auto [dims, map] = testing_support::WithRandomDimension(random_, x.dims);
    Add(x.type, dims, fmt::format("broadcast({}), dimensions={{{}}}", x.name, fmt::join(map, ",")));
  }

  void Slice() {
    const Value x = Any();
    Dims dims;
    std::vector<std::string> ranges;
    for (const int64_t size : x.dims) {
      const int64_t start = size == 0 ? 0 : Below(size), limit = size == 0 ? 0 : start + 1 + Below(size - start),
                    stride = 1 + Below(2);
      dims.push_back((limit - start + stride - 1) / stride);
      ranges.push_back(fmt::format("[{}:{}:{}]", start, limit, stride));
    }
    if (!x.dims.empty()) Add(x.type, dims, fmt::format("slice({}), slice={{{}}}", x.name, fmt::join(ranges, ", ")));
  }

  void Pad() {
    const Value x = Any();
    Dims dims;
    std::vector<std::string> padding;
    for (const int64_t size : x.dims) {
      const int64_t low = Below(5) - 2, high = Below(5) - 2, interior = Below(4) == 0 ? 1 : 0;
      const int64_t total = size + low + high + std::max<int64_t>(size - 1, 0) * interior;
      if (total < 0) return;
      dims.push_back(total);
      padding.push_back(fmt::format("{}_{}_{}", low, high, interior));
    }
    if (x.dims.empty()) return;
    Add(x.type, dims, fmt::format("pad({}, {}), padding={}", x.name, SmallConstant(x.type), fmt::join(padding, "x")));
  }

  void Concatenate() {
    const Value x = Any();
    if (x.dims.empty()) return;
    const auto d = static_cast<size_t>(Below(static_cast<int64_t>(x.dims.size())));
    const auto y = AnyWhere([&](const Value& v) {
      bool fits = v.dims.size() == x.dims.size() && v.type == x.type;
      for (size_t i = 0; fits && i < v.dims.size(); ++i) fits = i == d || v.dims[i] == x.dims[i];
      return fits;
    });
    Dims dims = x.dims;
    dims[d] += y->dims[d];
    Add(x.type, dims, fmt::format("concatenate({}, {}), dimensions={{{}}}", x.name, y->name, d));
  }

  void Reverse() {
    const Value x = Any();
    if (x.dims.empty()) return;
    Add(x.type, x.dims,
        fmt::format("reverse({}), dimensions={{{}}}", x.name, Below(static_cast<int64_t>(x.dims.size()))));
  }

  void Iota() {
    const Value x = Any();
    if (x.dims.empty() || x.type == "pred") return;
    Add(x.type, x.dims, fmt::format("iota(), iota_dimension={}", Below(static_cast<int64_t>(x.dims.size()))));
  }

  void DynamicSlice() {
    const Value x = Any();
    Dims dims;
    std::vector<std::string> operands = {x.name};
    for (const int64_t size : x.dims) {
      dims.push_back(size == 0 || Below(2) == 0 ? size : 1 + Below(size));
      operands.push_back(Index());
    }
    if (x.dims.empty()) return;
    Add(x.type, dims,
        fmt::format("dynamic-slice({}), dynamic_slice_sizes={{{}}}", fmt::join(operands, ", "), fmt::join(dims, ",")));
  }

  void DynamicUpdateSlice() {
    const Value x = Any();
    const auto u = AnyWhere([&](const Value& v) {
      bool fits = v.type == x.type && v.dims.size() == x.dims.size() && !x.dims.empty() && v.name != x.name;
      for (size_t i = 0; fits && i < v.dims.size(); ++i) fits = v.dims[i] <= x.dims[i];
      return fits;
    });
    if (!u) return;
    std::vector<std::string> operands = {x.name, u->name};
    for (size_t i = 0; i < x.dims.size(); ++i) operands.push_back(Index());
    Add(x.type, x.dims, fmt::format("dynamic-update-slice({})", fmt::join(operands, ", ")));
  }

  // --- reductions, products ---

  void Reduce() {
    const Value x = Any();
    if (x.dims.empty()) return;
    const auto d = static_cast<size_t>(Below(static_cast<int64_t>(x.dims.size())));
    Dims dims = x.dims;
    dims.erase(dims.begin() + static_cast<int64_t>(d));
    Add(x.type, dims,
        fmt::format("reduce({}, {}), dimensions={{{}}}, to_apply={}", x.name, SmallConstant(x.type), d,
                    Reducer(x.type, ReducerOp(x.type))));
  }

  void ReduceWindow() {
    const Value x = Any();
    if (x.dims.empty()) return;
    Dims dims;
    std::vector<int64_t> sizes, strides;
    std::vector<std::string> pads;
    for (const int64_t size : x.dims) {
      const int64_t window = 1 + Below(3), stride = 1 + Below(2), low = Below(3), high = Below(3);
      const int64_t padded = size + low + high;
      dims.push_back(padded < window ? 0 : (padded - window) / stride + 1);
      sizes.push_back(window);
      strides.push_back(stride);
      pads.push_back(fmt::format("{}_{}", low, high));
    }
    Add(x.type, dims,
        fmt::format("reduce-window({}, {}), window={{size={} stride={} pad={}}}, to_apply={}", x.name,
                    SmallConstant(x.type), fmt::join(sizes, "x"), fmt::join(strides, "x"), fmt::join(pads, "x"),
                    Reducer(x.type, ReducerOp(x.type))));
  }

  // A running sum or maximum, as XLA writes it.
  void Cumulate() {
    const Value x = Any();
    if (x.dims.empty() || Count(x.dims) == 0) return;
    const auto d = static_cast<size_t>(Below(static_cast<int64_t>(x.dims.size())));
    Dims sizes(x.dims.size(), 1);
    std::vector<std::string> pads(x.dims.size(), "0_0");
    sizes[d] = x.dims[d];
    pads[d] = fmt::format("{}_0", x.dims[d] - 1);
    Add(x.type, x.dims,
        fmt::format("reduce-window({}, {}), window={{size={} pad={}}}, to_apply={}", x.name, SmallConstant(x.type),
                    fmt::join(sizes, "x"), fmt::join(pads, "x"), Reducer(x.type, ReducerOp(x.type))));
  }

  void Dot() {
    const Value x = Any();
    if (x.type == "pred" || x.dims.empty()) return;
    const auto i = static_cast<size_t>(Below(static_cast<int64_t>(x.dims.size())));
    const auto y = AnyWhere([&](const Value& v) {
      return v.type == x.type && v.dims.size() + x.dims.size() < 6 &&
             std::find(v.dims.begin(), v.dims.end(), x.dims[i]) != v.dims.end();
    });
    if (!y) return;
    const auto j = static_cast<size_t>(std::find(y->dims.begin(), y->dims.end(), x.dims[i]) - y->dims.begin());
    Dims dims;
    for (size_t d = 0; d < x.dims.size(); ++d) {
      if (d != i) dims.push_back(x.dims[d]);
    }
    for (size_t d = 0; d < y->dims.size(); ++d) {
      if (d != j) dims.push_back(y->dims[d]);
    }
    Add(x.type, dims,
        fmt::format("dot({}, {}), lhs_contracting_dims={{{}}}, rhs_contracting_dims={{{}}}", x.name, y->name, i, j));
  }

  void Sort() {
    const Value x = Any();
    if (x.dims.empty() || x.type == "pred") return;
    const auto d = Below(static_cast<int64_t>(x.dims.size()));
    const std::string order = Computation(fmt::format(
        "{{ a = {0}[] parameter(0)\n b = {0}[] parameter(1)\n ROOT r = pred[] compare(a, b), direction={1} }}", x.type,
        Below(2) == 0 ? "LT" : "GT"));
    Add(x.type, x.dims, fmt::format("sort({}), dimensions={{{}}}, is_stable=true, to_apply={}", x.name, d, order));
  }

  void TopK() {
    const auto x = AnyWhere([](const Value& v) { return v.type == "s32" && !v.dims.empty() && v.dims.back() > 0; });
    if (!x) return;
    Dims dims = x->dims;
    dims.back() = 1 + Below(std::min<int64_t>(dims.back(), 9));
    const std::string top = Fresh("t");
    Line(fmt::format("{} = ({}, {}) topk({}), k={}, largest={}", top, ShapeText(x->type, dims), ShapeText("s32", dims),
                     x->name, dims.back(), Below(2) == 0));
    Add(x->type, dims, fmt::format("get-tuple-element({}), index=0", top));
    Add("s32", dims, fmt::format("get-tuple-element({}), index=1", top));
  }

  // --- gather, scatter: rows at the elements of a vector ---

  std::optional<Value> Rows() {
    return AnyWhere([](const Value& v) { return v.type == "s32" && v.dims.size() == 1; });
  }

  void Gather() {
    const Value x = Any();
    const auto i = Rows();
    if (!i || x.dims.empty() || x.dims[0] == 0) return;
    Dims dims = {i->dims[0]}, sizes = x.dims, offsets;
    for (size_t d = 1; d < x.dims.size(); ++d) {
      dims.push_back(x.dims[d]);
      offsets.push_back(static_cast<int64_t>(d));
    }
    sizes[0] = 1;
    Add(x.type, dims,
        fmt::format("gather({}, {}), offset_dims={{{}}}, collapsed_slice_dims={{0}}, start_index_map={{0}}, "
                    "index_vector_dim=1, slice_sizes={{{}}}",
                    x.name, i->name, fmt::join(offsets, ","), fmt::join(sizes, ",")));
  }

  void Scatter() {
    const Value x = Any();
    const auto i = Rows();
    if (!i || x.dims.empty() || x.dims[0] == 0) return;
    Dims dims = {i->dims[0]}, window;
    for (size_t d = 1; d < x.dims.size(); ++d) {
      dims.push_back(x.dims[d]);
      window.push_back(static_cast<int64_t>(d));
    }
    const Value updates = Add(x.type, dims, fmt::format("broadcast({}), dimensions={{}}", SmallConstant(x.type)));
    if (updates.dims != dims || updates.type != x.type) return;
    Add(x.type, x.dims,
        fmt::format("scatter({}, {}, {}), update_window_dims={{{}}}, inserted_window_dims={{0}}, "
                    "scatter_dims_to_operand_dims={{0}}, index_vector_dim=1, to_apply={}",
                    x.name, i->name, updates.name, fmt::join(window, ","), Reducer(x.type, ReducerOp(x.type))));
  }

  // --- control ---

  void While() {
    const Value x = Any();
    if (x.dims.empty() || x.type == "pred") return;
    const std::string tuple = fmt::format("(s32[], {})", Text(x));
    const std::string body = Computation(fmt::format(
        "{{ s = {0} parameter(0)\n i = s32[] get-tuple-element(s), index=0\n x = {1} get-tuple-element(s), index=1\n one = s32[] constant(1)\n"
        " n = s32[] add(i, one)\n y = {1} reverse(x), dimensions={{0}}\n z = {1} {2}(x, y)\n ROOT t = {0} tuple(n, z) }}",
        tuple, Text(x), Below(2) == 0 ? "subtract" : "maximum"));
    // Known, or of the data and at most 5.
    const bool known = Below(2) == 0;
    const std::string condition = Computation(fmt::format(
        "{{ s = {} parameter(0)\n i = s32[] get-tuple-element(s), index=0\n n = s32[] constant({})\n ROOT r = pred[] compare(i, n), direction=LT }}",
        tuple, known ? Below(4) : 5));
    std::string start = known ? Constant("s32", 0) : Index();
    if (!known) {
      const std::string clamped = Fresh("i");
      Line(fmt::format("{} = s32[] clamp({}, {}, {})", clamped, Constant("s32", 0), start, Constant("s32", 9)));
      start = clamped;
    }
    const std::string init = Fresh("t"), loop = Fresh("t");
    Line(fmt::format("{} = {} tuple({}, {})", init, tuple, start, x.name));
    Line(fmt::format("{} = {} while({}), condition={}, body={}", loop, tuple, init, condition, body));
    Add(x.type, x.dims, fmt::format("get-tuple-element({}), index=1", loop));
  }

  void Conditional() {
    const Value x = Any();
    const std::string same = Computation(fmt::format("{{ x = {0} parameter(0)\n ROOT r = {0} copy(x) }}", Text(x)));
    const std::string_view op = IsFloat(x.type) ? "tanh" : "not";
    const std::string other = Computation(fmt::format("{{ x = {0} parameter(0)\n ROOT r = {0} {1}(x) }}", Text(x), op));
    const std::string third = Computation(fmt::format("{{ x = {0} parameter(0)\n ROOT r = {0} {1}(x, x) }}", Text(x),
                                                      x.type == "pred" ? "xor" : "maximum"));
    const auto last = Like(x);
    Add(x.type, x.dims,
        fmt::format("conditional({}, {}, {}, {}), branch_computations={{{}, {}, {}}}", Index(), x.name, last->name,
                    x.name, same, other, third));
  }

  void Call() {
    const Value x = Any();
    const std::string callee = Computation(
        fmt::format("{{ x = {0} parameter(0)\n ROOT r = {0} {1}(x) }}", Text(x), IsFloat(x.type) ? "logistic" : "not"));
    Add(x.type, x.dims, fmt::format("call({}), to_apply={}", x.name, callee));
  }

  std::mt19937_64 random_;
  std::string body_, computations_;
  std::vector<Value> values_;
  int64_t next_ = 0;
};

// More weight where a step stands twice.
const std::array<Generator::Step, 30> Generator::kSteps = {&Generator::Unary,
                                                           &Generator::Unary,
                                                           &Generator::Binary,
                                                           &Generator::Binary,
                                                           &Generator::Compare,
                                                           &Generator::Select,
                                                           &Generator::Clamp,
                                                           &Generator::Convert,
                                                           &Generator::Transpose,
                                                           &Generator::Reshape,
                                                           &Generator::Broadcast,
                                                           &Generator::Broadcast,
                                                           &Generator::Slice,
                                                           &Generator::Pad,
                                                           &Generator::Concatenate,
                                                           &Generator::Reverse,
                                                           &Generator::Iota,
                                                           &Generator::DynamicSlice,
                                                           &Generator::DynamicUpdateSlice,
                                                           &Generator::Reduce,
                                                           &Generator::ReduceWindow,
                                                           &Generator::Cumulate,
                                                           &Generator::Dot,
                                                           &Generator::Sort,
                                                           &Generator::TopK,
                                                           &Generator::Gather,
                                                           &Generator::Scatter,
                                                           &Generator::While,
                                                           &Generator::Conditional,
                                                           &Generator::Call};

}  // namespace

std::string RandomModule(uint64_t seed) { return Generator(seed).Make(); }

}  // namespace hlorun::fuzz
