#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "tests/fuzz/generator.h"

namespace hlorun::fuzz {

using testing_support::Count;

void Generator::Reduce() {
  const Value x = Any();
  if (x.dims.empty()) return;
  const auto d = static_cast<size_t>(Below(static_cast<int64_t>(x.dims.size())));
  Dims dims = x.dims;
  dims.erase(dims.begin() + static_cast<int64_t>(d));
  const std::string_view op = ReducerOp(x.type);
  Add(x.type, dims, MostOf(op, x.most, x.dims[d]),
      fmt::format("reduce({}, {}), dimensions={{{}}}, to_apply={}", x.name, SmallConstant(x.type), d,
                  Reducer(x.type, op)));
}

void Generator::ReduceWindow() {
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
  const std::string_view op = ReducerOp(x.type);
  Add(x.type, dims, MostOf(op, std::max<int64_t>(x.most, 3), Count(sizes)),
      fmt::format("reduce-window({}, {}), window={{size={} stride={} pad={}}}, to_apply={}", x.name,
                  SmallConstant(x.type), fmt::join(sizes, "x"), fmt::join(strides, "x"), fmt::join(pads, "x"),
                  Reducer(x.type, op)));
}

// A running sum or maximum, as XLA writes it.
void Generator::Cumulate() {
  const Value x = Any();
  if (x.dims.empty() || Count(x.dims) == 0) return;
  const auto d = static_cast<size_t>(Below(static_cast<int64_t>(x.dims.size())));
  Dims sizes(x.dims.size(), 1);
  std::vector<std::string> pads(x.dims.size(), "0_0");
  sizes[d] = x.dims[d];
  pads[d] = fmt::format("{}_0", x.dims[d] - 1);
  const std::string_view op = ReducerOp(x.type);
  Add(x.type, x.dims, MostOf(op, std::max<int64_t>(x.most, 3), x.dims[d]),
      fmt::format("reduce-window({}, {}), window={{size={} pad={}}}, to_apply={}", x.name, SmallConstant(x.type),
                  fmt::join(sizes, "x"), fmt::join(pads, "x"), Reducer(x.type, op)));
}

void Generator::Dot() {
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
  Add(x.type, dims, x.most * y->most * x.dims[i],
      fmt::format("dot({}, {}), lhs_contracting_dims={{{}}}, rhs_contracting_dims={{{}}}", x.name, y->name, i, j));
}

void Generator::Sort() {
  const Value x = Any();
  if (x.dims.empty() || x.type == "pred") return;
  const auto d = Below(static_cast<int64_t>(x.dims.size()));
  const std::string order = Computation(fmt::format(
      "{{ a = {0}[] parameter(0)\n b = {0}[] parameter(1)\n ROOT r = pred[] compare(a, b), direction={1} }}", x.type,
      Below(2) == 0 ? "LT" : "GT"));
  Add(x.type, x.dims, x.most,
      fmt::format("sort({}), dimensions={{{}}}, is_stable=true, to_apply={}", x.name, d, order));
}

void Generator::TopK() {
  const auto x = AnyWhere([](const Value& v) { return v.type == "s32" && !v.dims.empty() && v.dims.back() > 0; });
  if (!x) return;
  Dims dims = x->dims;
  dims.back() = 1 + Below(std::min<int64_t>(dims.back(), 9));
  const std::string top = Fresh("t");
  Line(fmt::format("{} = ({}, {}) topk({}), k={}, largest={}", top, ShapeText(x->type, dims), ShapeText("s32", dims),
                   x->name, dims.back(), Below(2) == 0));
  Add(x->type, dims, x->most, fmt::format("get-tuple-element({}), index=0", top));
  Add("s32", dims, 0, fmt::format("get-tuple-element({}), index=1", top));
}

// --- gather, scatter: rows at the elements of a vector ---

std::optional<Value> Generator::Rows() {
  return AnyWhere([](const Value& v) { return v.type == "s32" && v.dims.size() == 1; });
}

void Generator::Gather() {
  const Value x = Any();
  const auto i = Rows();
  if (!i || x.dims.empty() || x.dims[0] == 0) return;
  Dims dims = {i->dims[0]}, sizes = x.dims, offsets;
  for (size_t d = 1; d < x.dims.size(); ++d) {
    dims.push_back(x.dims[d]);
    offsets.push_back(static_cast<int64_t>(d));
  }
  sizes[0] = 1;
  Add(x.type, dims, x.most,
      fmt::format("gather({}, {}), offset_dims={{{}}}, collapsed_slice_dims={{0}}, start_index_map={{0}}, "
                  "index_vector_dim=1, slice_sizes={{{}}}",
                  x.name, i->name, fmt::join(offsets, ","), fmt::join(sizes, ",")));
}

void Generator::Scatter() {
  const Value x = Any();
  const auto i = Rows();
  if (!i || x.dims.empty() || x.dims[0] == 0) return;
  Dims dims = {i->dims[0]}, window;
  for (size_t d = 1; d < x.dims.size(); ++d) {
    dims.push_back(x.dims[d]);
    window.push_back(static_cast<int64_t>(d));
  }
  const auto own = AnyWhere([&](const Value& v) { return v.type == x.type && v.dims == dims; });
  const Value updates =
      own ? *own : Add(x.type, dims, 3, fmt::format("broadcast({}), dimensions={{}}", SmallConstant(x.type)));
  if (updates.dims != dims || updates.type != x.type) return;
  const std::string_view op = ReducerOp(x.type);
  Add(x.type, x.dims, op == "add" ? x.most + updates.most * dims[0] : std::max(x.most, updates.most),
      fmt::format("scatter({}, {}, {}), update_window_dims={{{}}}, inserted_window_dims={{0}}, "
                  "scatter_dims_to_operand_dims={{0}}, index_vector_dim=1, to_apply={}",
                  x.name, i->name, updates.name, fmt::join(window, ","), Reducer(x.type, op)));
}

}  // namespace hlorun::fuzz
