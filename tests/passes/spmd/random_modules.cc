#include "tests/passes/spmd/random_modules.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <vector>

#include "tests/random_dims.h"

namespace hlorun::passes {
namespace {

using testing_support::Count;
using testing_support::Dims;

struct Value {
  std::string name;
  Dims dims;
};

class Generator {
 public:
  Generator(uint64_t seed, int64_t partitions) : random_(seed), partitions_(partitions) {}

  std::string Make() {
    const int64_t parameters = 1 + Below(3);
    for (int64_t i = 0; i < parameters; ++i) Parameter();
    const int64_t steps = 3 + Below(10);
    for (int64_t i = 0; i < steps; ++i) Step();
    // Everything without a user is a result.
    std::string names, shapes;
    for (size_t i = values_.size() > 3 ? values_.size() - 3 : 0; i < values_.size(); ++i) {
      names += (names.empty() ? "" : ", ") + values_[i].name;
      shapes += (shapes.empty() ? "" : ", ") + Type(values_[i].dims);
    }
    Line(fmt::format("ROOT out = ({}) tuple({})", shapes, names));
    return "HloModule random\n" + computations_ + "ENTRY main {\n" + body_ + "}\n";
  }

 private:
  int64_t Below(int64_t n) { return testing_support::Below(random_, n); }
  void Line(const std::string& line) { body_ += "  " + line + "\n"; }
  static std::string Type(const Dims& dims) { return fmt::format("s32[{}]", fmt::join(dims, ",")); }
  const Value& Any() { return values_[static_cast<size_t>(Below(static_cast<int64_t>(values_.size())))]; }

  std::string RandomSharding(int64_t rank) {
    // Random axes of a random factorisation, for random dimensions.
    std::vector<int64_t> left;
    for (int64_t n = partitions_, p = 2; n > 1;) {
      if (n % p == 0) {
        left.push_back(p);
        n /= p;
      } else {
        ++p;
      }
    }
    Dims tiles(static_cast<size_t>(rank), 1);
    int64_t rest = 1;
    for (const int64_t factor : left) {
      const int64_t d = Below(rank + 1);
      (d == rank ? rest : tiles[static_cast<size_t>(d)]) *= factor;
    }
    if (rest == partitions_) return "{replicated}";
    std::string text = fmt::format("{{devices=[{}", fmt::join(tiles, ","));
    if (rest > 1) text += fmt::format(",{}", rest);
    const bool swap = partitions_ % 2 == 0 && partitions_ > 2 && Below(3) == 0;
    text += swap ? fmt::format("]<=[2,{}]T(1,0)", partitions_ / 2) : fmt::format("]<=[{}]", partitions_);
    return text + (rest > 1 ? " last_tile_dim_replicate}" : "}");
  }

  std::string Sharding(const Dims& dims, int64_t one_in) {
    if (Below(one_in) != 0 || dims.empty()) return "";
    return ", sharding=" + RandomSharding(static_cast<int64_t>(dims.size()));
  }

  void Add(const Dims& dims, const std::string& operation) {
    if (Count(dims) > 4096) return;
    const std::string name = fmt::format("v{}", next_++);
    Line(fmt::format("{} = {} {}{}", name, Type(dims), operation, Sharding(dims, 4)));
    values_.push_back({name, dims});
  }

  void Parameter() {
    Dims dims(static_cast<size_t>(1 + Below(3)));
    for (int64_t& d : dims) d = 1 + Below(12);
    const std::string name = fmt::format("p{}", values_.size());
    Line(fmt::format("{} = {} parameter({}){}", name, Type(dims), values_.size(),
                     Sharding(dims, values_.empty() ? 1 : 2)));
    values_.push_back({name, dims});
  }

  std::string Constant(int64_t value) {
    const std::string name = fmt::format("c{}", next_++);
    Line(fmt::format("{} = s32[] constant({})", name, value));
    return name;
  }

  // An index that depends on data.
  std::string Index(const Value& from) {
    const std::string one = fmt::format("i{}", next_++), scalar = fmt::format("i{}", next_++);
    Line(fmt::format("{} = s32[{}] slice({}), slice={{{}}}", one, fmt::join(Dims(from.dims.size(), 1), ","), from.name,
                     fmt::join(std::vector<std::string>(from.dims.size(), "[0:1]"), ", ")));
    Line(fmt::format("{} = s32[] reshape({})", scalar, one));
    return scalar;
  }

  std::string Computation(const std::string& text) {
    const std::string name = fmt::format("f{}", next_++);
    computations_ += name + " " + text + "\n";
    return name;
  }
  std::string Reducer(const char* op) {
    return Computation(fmt::format("{{ a = s32[] parameter(0) b = s32[] parameter(1) ROOT r = s32[] {}(a, b) }}", op));
  }

  void Step() {
    switch (Below(17)) {
      case 0:
      case 1: return Binary();
      case 2: return Transpose();
      case 3: return Reshape();
      case 4: return Broadcast();
      case 5: return Reduce();
      case 6:
      case 7: return Dot();
      case 8: return Slice();
      case 9: return Pad();
      case 10: return Concatenate();
      case 11: return Reverse();
      case 12: return DynamicSlice();
      case 13: return DynamicUpdateSlice();
      case 14: return Gather();
      case 15: return Constrain();
      default: return Below(2) == 0 ? While() : Conditional();
    }
  }

  void Binary() {
    const Value x = Any();
    std::vector<Value> same;
    for (const Value& v : values_) {
      if (v.dims == x.dims) same.push_back(v);
    }
    static constexpr const char* kOps[] = {"add", "subtract", "maximum", "multiply", "xor"};
    Add(x.dims, fmt::format("{}({}, {})", kOps[Below(5)], x.name,
                            same[static_cast<size_t>(Below(static_cast<int64_t>(same.size())))].name));
  }

  void Transpose() {
    const Value x = Any();
    const std::vector<size_t> order = testing_support::RandomOrder(random_, x.dims.size());
    Add(testing_support::Permuted(x.dims, order),
        fmt::format("transpose({}), dimensions={{{}}}", x.name, fmt::join(order, ",")));
  }

  void Reshape() {
    const Value x = Any();
    const Dims dims = testing_support::RandomFactors(random_, Count(x.dims), Below(3));
    Add(dims, fmt::format("reshape({})", x.name));
  }

  void Broadcast() {
    const Value x = Any();
    if (x.dims.size() > 2) return;
    const auto [dims, map] = testing_support::WithRandomDimension(random_, x.dims);
    Add(dims, fmt::format("broadcast({}), dimensions={{{}}}", x.name, fmt::join(map, ",")));
  }

  void Reduce() {
    const Value x = Any();
    const auto d = static_cast<size_t>(Below(static_cast<int64_t>(x.dims.size())));
    Dims dims = x.dims;
    dims.erase(dims.begin() + static_cast<int64_t>(d));
    if (dims.empty()) return;
    const bool sum = Below(2) == 0;
    Add(dims, fmt::format("reduce({}, {}), dimensions={{{}}}, to_apply={}", x.name, Constant(sum ? Below(3) : -5), d,
                          Reducer(sum ? "add" : "maximum")));
  }

  void Dot() {
    const Value x = Any(), y = Any();
    for (size_t i = 0; i < x.dims.size(); ++i) {
      for (size_t j = 0; j < y.dims.size(); ++j) {
        if (x.dims[i] != y.dims[j] || x.dims.size() + y.dims.size() > 5) continue;
        Dims dims;
        for (size_t d = 0; d < x.dims.size(); ++d) {
          if (d != i) dims.push_back(x.dims[d]);
        }
        for (size_t d = 0; d < y.dims.size(); ++d) {
          if (d != j) dims.push_back(y.dims[d]);
        }
        if (dims.empty()) return;
        return Add(dims, fmt::format("dot({}, {}), lhs_contracting_dims={{{}}}, rhs_contracting_dims={{{}}}", x.name,
                                     y.name, i, j));
      }
    }
  }

  void Slice() {
    const Value x = Any();
    Dims dims;
    std::vector<std::string> ranges;
    for (const int64_t size : x.dims) {
      const int64_t start = Below(size), limit = start + 1 + Below(size - start), stride = 1 + Below(2);
      dims.push_back((limit - start + stride - 1) / stride);
      ranges.push_back(fmt::format("[{}:{}:{}]", start, limit, stride));
    }
    Add(dims, fmt::format("slice({}), slice={{{}}}", x.name, fmt::join(ranges, ", ")));
  }

  void Pad() {
    const Value x = Any();
    Dims dims;
    std::vector<std::string> padding;
    for (const int64_t size : x.dims) {
      const int64_t low = Below(4) - 1, high = Below(4) - 1, interior = Below(4) == 0 ? 1 : 0;
      const int64_t total = size + low + high + (size - 1) * interior;
      if (total < 1) return;
      dims.push_back(total);
      padding.push_back(fmt::format("{}_{}_{}", low, high, interior));
    }
    Add(dims, fmt::format("pad({}, {}), padding={}", x.name, Constant(Below(5)), fmt::join(padding, "x")));
  }

  void Concatenate() {
    const Value x = Any();
    const auto d = static_cast<size_t>(Below(static_cast<int64_t>(x.dims.size())));
    std::vector<Value> fitting;
    for (const Value& v : values_) {
      bool fits = v.dims.size() == x.dims.size();
      for (size_t i = 0; fits && i < v.dims.size(); ++i) fits = i == d || v.dims[i] == x.dims[i];
      if (fits) fitting.push_back(v);
    }
    const Value y = fitting[static_cast<size_t>(Below(static_cast<int64_t>(fitting.size())))];
    Dims dims = x.dims;
    dims[d] += y.dims[d];
    Add(dims, fmt::format("concatenate({}, {}), dimensions={{{}}}", x.name, y.name, d));
  }

  void Reverse() {
    const Value x = Any();
    Add(x.dims, fmt::format("reverse({}), dimensions={{{}}}", x.name, Below(static_cast<int64_t>(x.dims.size()))));
  }

  void DynamicSlice() {
    const Value x = Any();
    Dims dims;
    std::vector<std::string> starts;
    for (const int64_t size : x.dims) {
      dims.push_back(Below(2) == 0 ? size : 1 + Below(size));
      starts.push_back(Index(Any()));
    }
    Add(dims, fmt::format("dynamic-slice({}, {}), dynamic_slice_sizes={{{}}}", x.name, fmt::join(starts, ", "),
                          fmt::join(dims, ",")));
  }

  void DynamicUpdateSlice() {
    const Value x = Any();
    for (const Value& u : values_) {
      bool fits = u.dims.size() == x.dims.size() && u.name != x.name;
      for (size_t i = 0; fits && i < u.dims.size(); ++i) fits = u.dims[i] <= x.dims[i];
      if (!fits) continue;
      std::vector<std::string> starts;
      for (size_t i = 0; i < x.dims.size(); ++i) starts.push_back(Index(Any()));
      return Add(x.dims, fmt::format("dynamic-update-slice({}, {}, {})", x.name, u.name, fmt::join(starts, ", ")));
    }
  }

  // Rows of x at the elements of a vector.
  void Gather() {
    const Value x = Any(), i = Any();
    if (x.dims.size() > 2 || i.dims.size() > 1) return;
    Dims dims = {i.dims[0]}, sizes = x.dims, offsets;
    for (size_t d = 1; d < x.dims.size(); ++d) {
      dims.push_back(x.dims[d]);
      offsets.push_back(static_cast<int64_t>(d));
    }
    sizes[0] = 1;
    Add(dims,
        fmt::format(
            "gather({}, {}), offset_dims={{{}}}, collapsed_slice_dims={{0}}, start_index_map={{0}}, index_vector_dim=1, slice_sizes={{{}}}",
            x.name, i.name, fmt::join(offsets, ","), fmt::join(sizes, ",")));
  }

  void Constrain() {
    const Value x = Any();
    const std::string name = fmt::format("v{}", next_++);
    Line(fmt::format("{} = {} custom-call({}), custom_call_target=\"Sharding\", sharding={}", name, Type(x.dims),
                     x.name, RandomSharding(static_cast<int64_t>(x.dims.size()))));
    values_.push_back({name, x.dims});
  }

  void While() {
    const Value x = Any();
    const std::string tuple = fmt::format("(s32[], {})", Type(x.dims));
    const std::string body = Computation(fmt::format(
        "{{ s = {0} parameter(0) i = s32[] get-tuple-element(s), index=0 x = {1} get-tuple-element(s), index=1 one = s32[] constant(1) "
        "n = s32[] add(i, one) y = {1} reverse(x), dimensions={{0}}{2} z = {1} subtract(x, y) ROOT t = {0} tuple(n, z) }}",
        tuple, Type(x.dims), Sharding(x.dims, 2)));
    const std::string condition = Computation(fmt::format(
        "{{ s = {} parameter(0) i = s32[] get-tuple-element(s), index=0 n = s32[] constant({}) ROOT r = pred[] compare(i, n), direction=LT }}",
        tuple, Below(4)));
    const std::string init = fmt::format("t{}", next_++), loop = fmt::format("t{}", next_++);
    Line(fmt::format("{} = {} tuple({}, {})", init, tuple, Constant(0), x.name));
    Line(fmt::format("{} = {} while({}), condition={}, body={}", loop, tuple, init, condition, body));
    Add(x.dims, fmt::format("get-tuple-element({}), index=1", loop));
  }

  // The branch depends on data; one of them communicates.
  void Conditional() {
    const Value x = Any();
    const std::string twice =
        Computation(fmt::format("{{ x = {0} parameter(0) ROOT r = {0} add(x, x) }}", Type(x.dims)));
    const std::string flip = Computation(fmt::format(
        "{{ x = {0} parameter(0) ROOT r = {0} reverse(x), dimensions={{0}}{1} }}", Type(x.dims), Sharding(x.dims, 2)));
    Add(x.dims, fmt::format("conditional({}, {}, {}), branch_computations={{{}, {}}}", Index(Any()), x.name, x.name,
                            twice, flip));
  }

  std::mt19937_64 random_;
  int64_t partitions_;
  std::string body_, computations_;
  std::vector<Value> values_;
  int64_t next_ = 0;
};

}  // namespace

std::string RandomAnnotatedModule(uint64_t seed, int64_t partitions) { return Generator(seed, partitions).Make(); }

}  // namespace hlorun::passes
