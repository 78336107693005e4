#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "tests/fuzz/generator.h"

namespace hlorun::fuzz {

using testing_support::Count;

void Generator::Transpose() {
  const Value x = Any();
  const std::vector<size_t> order = testing_support::RandomOrder(random_, x.dims.size());
  Add(x.type, testing_support::Permuted(x.dims, order), x.most,
      fmt::format("transpose({}), dimensions={{{}}}", x.name, fmt::join(order, ",")));
}

void Generator::Reshape() {
  const Value x = Any();
  const int64_t count = Count(x.dims);
  const Dims dims = testing_support::RandomFactors(random_, count, count > 0 ? Below(4) : 0);
  Add(x.type, dims, x.most, fmt::format("reshape({})", x.name));
}

void Generator::Broadcast() {
  const Value x = Any();
  if (x.dims.size() > 3) return;
  const auto [dims, map] = testing_support::WithRandomDimension(random_, x.dims);
  Add(x.type, dims, x.most, fmt::format("broadcast({}), dimensions={{{}}}", x.name, fmt::join(map, ",")));
}

void Generator::Slice() {
  const Value x = Any();
  Dims dims;
  std::vector<std::string> ranges;
  for (const int64_t size : x.dims) {
    const int64_t start = size == 0 ? 0 : Below(size), limit = size == 0 ? 0 : start + 1 + Below(size - start),
                  stride = 1 + Below(2);
    dims.push_back((limit - start + stride - 1) / stride);
    ranges.push_back(fmt::format("[{}:{}:{}]", start, limit, stride));
  }
  if (!x.dims.empty())
    Add(x.type, dims, x.most, fmt::format("slice({}), slice={{{}}}", x.name, fmt::join(ranges, ", ")));
}

void Generator::Pad() {
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
  Add(x.type, dims, std::max<int64_t>(x.most, 3),
      fmt::format("pad({}, {}), padding={}", x.name, SmallConstant(x.type), fmt::join(padding, "x")));
}

void Generator::Concatenate() {
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
  Add(x.type, dims, std::max(x.most, y->most),
      fmt::format("concatenate({}, {}), dimensions={{{}}}", x.name, y->name, d));
}

void Generator::Reverse() {
  const Value x = Any();
  if (x.dims.empty()) return;
  Add(x.type, x.dims, x.most,
      fmt::format("reverse({}), dimensions={{{}}}", x.name, Below(static_cast<int64_t>(x.dims.size()))));
}

void Generator::Iota() {
  const Value x = Any();
  if (x.dims.empty() || x.type == "pred") return;
  Add(x.type, x.dims, Count(x.dims),
      fmt::format("iota(), iota_dimension={}", Below(static_cast<int64_t>(x.dims.size()))));
}

void Generator::DynamicSlice() {
  const Value x = Any();
  Dims dims;
  std::vector<std::string> operands = {x.name};
  for (const int64_t size : x.dims) {
    dims.push_back(size == 0 || Below(2) == 0 ? size : 1 + Below(size));
    operands.push_back(Index());
  }
  if (x.dims.empty()) return;
  Add(x.type, dims, x.most,
      fmt::format("dynamic-slice({}), dynamic_slice_sizes={{{}}}", fmt::join(operands, ", "), fmt::join(dims, ",")));
}

void Generator::DynamicUpdateSlice() {
  const Value x = Any();
  const auto u = AnyWhere([&](const Value& v) {
    bool fits = v.type == x.type && v.dims.size() == x.dims.size() && !x.dims.empty() && v.name != x.name;
    for (size_t i = 0; fits && i < v.dims.size(); ++i) fits = v.dims[i] <= x.dims[i];
    return fits;
  });
  if (!u) return;
  std::vector<std::string> operands = {x.name, u->name};
  for (size_t i = 0; i < x.dims.size(); ++i) operands.push_back(Index());
  Add(x.type, x.dims, std::max(x.most, u->most), fmt::format("dynamic-update-slice({})", fmt::join(operands, ", ")));
}

// One index of a dimension, which is gone then: a coordinate of points.
void Generator::Part() {
  const Value x = Any();
  if (x.dims.empty() || Count(x.dims) == 0) return;
  const auto d = Below(3) == 0 ? static_cast<size_t>(Below(static_cast<int64_t>(x.dims.size()))) : x.dims.size() - 1;
  const int64_t at = Below(x.dims[d]);
  Dims one = x.dims, dims = x.dims;
  one[d] = 1;
  dims.erase(dims.begin() + static_cast<int64_t>(d));
  std::vector<std::string> ranges;
  for (size_t i = 0; i < x.dims.size(); ++i) {
    ranges.push_back(i == d ? fmt::format("[{}:{}]", at, at + 1) : fmt::format("[0:{}]", x.dims[i]));
  }
  const std::string slice = Fresh("s");
  Line(fmt::format("{} = {} slice({}), slice={{{}}}", slice, ShapeText(x.type, one), x.name, fmt::join(ranges, ", ")));
  Add(x.type, dims, x.most, fmt::format("reshape({})", slice));
}

// Two to four arrays of one shape along a new dimension: points of their coordinates.
void Generator::Stack() {
  const Value x = Any();
  const auto d = Below(3) == 0 ? static_cast<size_t>(Below(static_cast<int64_t>(x.dims.size()) + 1)) : x.dims.size();
  Dims dims = x.dims;
  dims.insert(dims.begin() + static_cast<int64_t>(d), 1);
  std::vector<std::string> parts;
  int64_t most = 0;
  for (int64_t count = 2 + Below(3); count > 0; --count) {
    const Value y = *Like(x);
    most = std::max(most, y.most);
    parts.push_back(Fresh("s"));
    Line(fmt::format("{} = {} reshape({})", parts.back(), ShapeText(x.type, dims), y.name));
  }
  dims[d] = static_cast<int64_t>(parts.size());
  Add(x.type, dims, most, fmt::format("concatenate({}), dimensions={{{}}}", fmt::join(parts, ", "), d));
}

// An array repeated to the shape of another one whose first dimensions that fit it has.
void Generator::Spread() {
  const Dims to = Any().dims;
  Dims map;
  const auto x = AnyWhere([&](const Value& v) { return v.dims.size() < to.size(); });
  if (!x) return;
  for (size_t d = 0; d < to.size() && map.size() < x->dims.size(); ++d) {
    if (to[d] == x->dims[map.size()]) map.push_back(static_cast<int64_t>(d));
  }
  if (map.size() == x->dims.size()) {
    Add(x->type, to, x->most, fmt::format("broadcast({}), dimensions={{{}}}", x->name, fmt::join(map, ",")));
  }
}

}  // namespace hlorun::fuzz
