#include "tests/fuzz/random_module.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "tests/fuzz/generator.h"

namespace hlorun::fuzz {
namespace {

using testing_support::Count;

constexpr std::array<std::string_view, 9> kTypes = {"s32", "f32", "s32", "f32", "u8", "s64", "u32", "bf16", "pred"};
constexpr std::array<std::string_view, 12> kSmallTypes = {"f32", "f32", "f32", "f32",  "f32",  "f32",
                                                          "f32", "s32", "s32", "pred", "bf16", "f64"};
constexpr int64_t kMostElements = 8192, kMostSmallElements = 2048, kMostShared = 65536;
constexpr int64_t kSmall = 8;

// Whole numbers up to here, and sums of two of them, are exact. (f64 could do with more; products of so many sums would
// not fit `most`.)
int64_t MostExact(std::string_view type) { return int64_t{1} << (type == "bf16" ? 7 : 23); }

}  // namespace

bool IsFloat(std::string_view type) { return type == "f32" || type == "bf16" || type == "f64"; }
bool IsInteger(std::string_view type) { return !IsFloat(type) && type != "pred"; }
std::string ShapeText(std::string_view type, const Dims& dims) {
  return fmt::format("{}[{}]", type, fmt::join(dims, ","));
}
std::string Text(const Value& value) { return ShapeText(value.type, value.dims); }
std::string TupleText(const std::vector<Value>& elements) {
  std::vector<std::string> shapes;
  for (const Value& v : elements) shapes.push_back(Text(v));
  return fmt::format("({})", fmt::join(shapes, ", "));
}

// --- values ---

std::string Generator::Fresh(const char* prefix) { return fmt::format("{}{}", prefix, next_++); }

std::optional<Value> Generator::Like(const Value& x) {
  return AnyWhere([&](const Value& v) { return v.type == x.type && v.dims == x.dims; });
}

Value Generator::Add(std::string_view type, const Dims& dims, int64_t most, const std::string& operation) {
  if (Count(dims) > most_elements_) return values()[0];
  Value value{Fresh("v"), type, dims, IsFloat(type) ? most : 0};
  Line(fmt::format("{} = {} {}", value.name, Text(value), operation));
  if (small() && IsFloat(type) && most > MostExact(type)) {
    // What is too large was rounded one way or another; nothing may look at it.
    Line(fmt::format("w{0} = {1} subtract({0}, {0})", value.name, Text(value)));
    value = {"w" + value.name, type, dims, 0};
  }
  values().push_back(value);
  return value;
}

Value Generator::Small(const Value& x) {
  if (!small() || !IsFloat(x.type) || x.most <= kSmall) return x;
  return Add(x.type, x.dims, kSmall,
             fmt::format("clamp({}, {}, {})", Constant(x.type, -kSmall), x.name, Constant(x.type, kSmall)));
}

std::string_view Generator::RandomType() { return small() ? Pick(kSmallTypes) : Pick(kTypes); }

Dims Generator::RandomDims() {
  if (small()) return shapes_[static_cast<size_t>(Below(static_cast<int64_t>(shapes_.size())))];
  Dims dims(static_cast<size_t>(Below(4)));
  for (int64_t& d : dims) d = Below(30) == 0 ? 0 : Below(8) == 0 ? 1 + Below(70) : 1 + Below(12);
  return dims;
}

void Generator::Parameter(int64_t number) {
  const Value value{Fresh("p"), RandomType(), RandomDims(), 0};
  Line(fmt::format("{} = {} parameter({})", value.name, Text(value), number));
  if (!small() || !IsFloat(value.type)) {
    values().push_back(value);
    return;
  }
  // Four times the number, rounded.
  const std::string four = Fresh("q"), scaled = Fresh("q"), whole = Fresh("q");
  Line(fmt::format("{} = {} broadcast({}), dimensions={{}}", four, Text(value), Constant(value.type, 4)));
  Line(fmt::format("{} = {} multiply({}, {})", scaled, Text(value), value.name, four));
  Line(fmt::format("{} = {} round-nearest-even({})", whole, Text(value), scaled));
  Small({whole, value.type, value.dims, MostExact(value.type)});
}

std::string Generator::Constant(std::string_view type, int64_t value) {
  const std::string name = Fresh("c");
  const std::string text = type == "pred" ? (value % 2 != 0 ? "true" : "false") : fmt::format("{}", value);
  Line(fmt::format("{} = {}[] constant({})", name, type, text));
  return name;
}

// For reductions and padding: at most 3, and never negative where the type has no sign.
std::string Generator::SmallConstant(std::string_view type) { return Constant(type, Below(4)); }

std::string Generator::Computation(const std::string& text) {
  const std::string name = Fresh("f");
  computations_ += name + " " + text + "\n";
  return name;
}

std::string Generator::Reducer(std::string_view type, std::string_view op) {
  return Computation(
      fmt::format("{{ a = {0}[] parameter(0)\n b = {0}[] parameter(1)\n ROOT r = {0}[] {1}(a, b) }}", type, op));
}

std::string_view Generator::ReducerOp(std::string_view type) {
  static constexpr std::array<std::string_view, 3> kOfFloats = {"add", "maximum", "minimum"};
  static constexpr std::array<std::string_view, 5> kOfIntegers = {"add", "maximum", "minimum", "multiply", "xor"};
  static constexpr std::array<std::string_view, 2> kOfPredicates = {"or", "and"};
  return IsFloat(type) ? Pick(kOfFloats) : IsInteger(type) ? Pick(kOfIntegers) : Pick(kOfPredicates);
}

int64_t Generator::MostOf(std::string_view op, int64_t most, int64_t count) {
  return op == "add" ? most * count + 3 : std::max<int64_t>(most, 3);
}

// A scalar s32 that depends on data, or counts a loop.
std::string Generator::Index() {
  if (!scope().counter.empty() && Below(2) == 0) return scope().counter;
  const auto from = AnyWhere([](const Value& v) { return v.type == "s32" && Count(v.dims) > 0; });
  if (!from) return Constant("s32", Below(6) - 1);
  const std::string one = Fresh("i"), scalar = Fresh("i");
  if (from->dims.empty()) return from->name;
  Line(fmt::format("{} = s32[{}] slice({}), slice={{{}}}", one, fmt::join(Dims(from->dims.size(), 1), ","), from->name,
                   fmt::join(std::vector<std::string>(from->dims.size(), "[0:1]"), ", ")));
  Line(fmt::format("{} = s32[] reshape({})", scalar, one));
  return scalar;
}

// --- modules ---

void Generator::Steps(int64_t count) {
  int64_t total = 0;
  const auto weight_of = [&](const Family& family) { return small() ? family.weight_of_small : family.weight; };
  for (const Family& family : kFamilies) total += weight_of(family);
  for (; count > 0; --count) {
    int64_t drawn = Below(total);
    for (const Family& family : kFamilies) {
      drawn -= weight_of(family);
      if (drawn >= 0) continue;
      (this->*family.step)();
      break;
    }
  }
}

std::string Generator::Make() {
  // Some are large enough that both cores share a loop.
  const bool shared = Below(4) == 0;
  const int64_t n = 1 + Below(shared ? 2000 : 48), m = 1 + Below(shared ? 32 : 20);
  most_elements_ = !small() ? kMostElements : shared ? kMostShared : kMostSmallElements;
  shapes_ = {{}, {3}, {n, 3}, {m}, {n, 4}, {n, 3, 3}, {n, m}, {m, n}, {1, n}};
  std::shuffle(shapes_.begin(), shapes_.end(), random_);
  shapes_.resize(3);
  shapes_.push_back({n});
  const int64_t parameters = small() ? 5 + Below(5) : 1 + Below(4);
  for (int64_t i = 0; i < parameters; ++i) Parameter(i);
  if (small()) Loop();
  Steps(small() ? 10 + Below(30) : 4 + Below(16));
  // The last few values, and some in between, are results.
  std::vector<Value> results;
  for (size_t i = 0; i < values().size(); ++i) {
    if (i + 3 >= values().size() || Below(small() ? 8 : 4) == 0) results.push_back(values()[i]);
  }
  Tuple(results, "ROOT ");
  return "HloModule random\n" + computations_ + "ENTRY main {\n" + scope().body + "}\n";
}

const std::vector<Generator::Family> Generator::kFamilies = {
    {&Generator::Unary, 2, 4},        {&Generator::Binary, 2, 12},
    {&Generator::Compare, 1, 3},      {&Generator::Select, 1, 6},
    {&Generator::Clamp, 1, 2},        {&Generator::Convert, 1, 3},
    {&Generator::Transpose, 1, 2},    {&Generator::Reshape, 1, 1},
    {&Generator::Broadcast, 2, 1},    {&Generator::Slice, 1, 2},
    {&Generator::Pad, 1, 1},          {&Generator::Concatenate, 1, 2},
    {&Generator::Reverse, 1, 1},      {&Generator::Iota, 1, 1},
    {&Generator::DynamicSlice, 1, 3}, {&Generator::DynamicUpdateSlice, 1, 4},
    {&Generator::Part, 0, 6},         {&Generator::Stack, 0, 4},
    {&Generator::Spread, 0, 8},       {&Generator::Reduce, 1, 3},
    {&Generator::ReduceWindow, 1, 1}, {&Generator::Cumulate, 1, 1},
    {&Generator::Dot, 1, 3},          {&Generator::Sort, 1, 1},
    {&Generator::TopK, 1, 1},         {&Generator::Gather, 1, 3},
    {&Generator::Scatter, 1, 2},      {&Generator::While, 1, 0},
    {&Generator::Loop, 0, 3},         {&Generator::Conditional, 1, 0},
    {&Generator::Branches, 0, 1},     {&Generator::Call, 1, 0}};

std::string RandomModule(uint64_t seed, ModuleStyle style) { return Generator(seed, style).Make(); }

}  // namespace hlorun::fuzz
