#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "tests/fuzz/generator.h"

namespace hlorun::fuzz {

using testing_support::Count;

void Generator::While() {
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
  Add(x.type, x.dims, x.most, fmt::format("get-tuple-element({}), index=1", loop));
}

// Some of the values, small ones.
std::vector<Value> Generator::Some(int64_t count) {
  std::vector<Value> some;
  for (; count > 0; --count) some.push_back(Small(Any()));
  return some;
}

std::string Generator::Tuple(const std::vector<Value>& elements, const char* root) {
  std::vector<std::string> names;
  for (const Value& v : elements) names.push_back(v.name);
  const std::string name = Fresh("t");
  Line(fmt::format("{}{} = {} tuple({})", root, name, TupleText(elements), fmt::join(names, ", ")));
  return name;
}

void Generator::Elements(const std::string& tuple, const std::vector<Value>& elements) {
  for (size_t i = 0; i < elements.size(); ++i) {
    const Value& v = elements[i];
    Add(v.type, v.dims, v.most, fmt::format("get-tuple-element({}), index={}", tuple, i));
  }
}

// A computation of a tuple of `inputs`: steps, and a tuple of such values as `results` are. `counts`: the first is a
// loop's counter.
std::string Generator::Nested(const std::vector<Value>& inputs, const std::vector<Value>& results, bool counts) {
  scopes_.emplace_back();
  const std::string state = Fresh("s");
  Line(fmt::format("{} = {} parameter(0)", state, TupleText(inputs)));
  Elements(state, inputs);
  std::vector<Value> ends;
  if (counts) {
    const std::string counter = values()[0].name;
    scope().counter = counter;
    ends.push_back(Add("s32", {}, 0, fmt::format("add({}, {})", counter, Constant("s32", 1))));
  }
  Steps(4 + Below(24));
  for (size_t i = ends.size(); i < results.size(); ++i) ends.push_back(Small(*Like(results[i])));
  const std::string name = Fresh("f");
  Tuple(ends, "ROOT ");
  computations_ += fmt::format("{} {{\n{}}}\n", name, scope().body);
  scopes_.pop_back();
  return name;
}

void Generator::Loop() {
  if (scopes_.size() > 2) return;
  std::vector<Value> state = Some(2 + Below(5));
  // Known, or of the data and at most 5.
  const int64_t trips = 1 + Below(5);
  std::string start = Constant("s32", 0);
  if (Below(2) == 0) {
    const std::string index = Index(), clamped = Fresh("i");
    Line(fmt::format("{} = s32[] clamp({}, {}, {})", clamped, start, index, Constant("s32", 9)));
    start = clamped;
  }
  state.insert(state.begin(), Value{start, "s32", {}, 0});
  const std::string init = Tuple(state), shape = TupleText(state), body = Nested(state, state, true);
  const std::string condition = Computation(fmt::format(
      "{{ s = {} parameter(0)\n i = s32[] get-tuple-element(s), index=0\n n = s32[] constant({})\n ROOT r = pred[] compare(i, n), direction=LT }}",
      shape, trips));
  const std::string loop = Fresh("t");
  Line(fmt::format("{} = {} while({}), condition={}, body={}", loop, shape, init, condition, body));
  Elements(loop, state);
}

void Generator::Branches() {
  if (scopes_.size() > 2) return;
  const std::string index = Index();
  std::vector<std::string> operands, branches;
  const std::vector<Value> results = Some(1 + Below(3));
  for (int64_t count = 2 + Below(2); count > 0; --count) {
    std::vector<Value> inputs = results;
    for (const Value& v : Some(1 + Below(2))) inputs.push_back(v);
    operands.push_back(Tuple(inputs));
    branches.push_back(Nested(inputs, results, false));
  }
  const std::string chosen = Fresh("t");
  Line(fmt::format("{} = {} conditional({}, {}), branch_computations={{{}}}", chosen, TupleText(results), index,
                   fmt::join(operands, ", "), fmt::join(branches, ", ")));
  Elements(chosen, results);
}

void Generator::Conditional() {
  const Value x = Any();
  const std::string same = Computation(fmt::format("{{ x = {0} parameter(0)\n ROOT r = {0} copy(x) }}", Text(x)));
  const std::string_view op = IsFloat(x.type) ? "tanh" : "not";
  const std::string other = Computation(fmt::format("{{ x = {0} parameter(0)\n ROOT r = {0} {1}(x) }}", Text(x), op));
  const std::string third = Computation(fmt::format("{{ x = {0} parameter(0)\n ROOT r = {0} {1}(x, x) }}", Text(x),
                                                    x.type == "pred" ? "xor" : "maximum"));
  const auto last = Like(x);
  Add(x.type, x.dims, x.most,
      fmt::format("conditional({}, {}, {}, {}), branch_computations={{{}, {}, {}}}", Index(), x.name, last->name,
                  x.name, same, other, third));
}

void Generator::Call() {
  const Value x = Any();
  const std::string callee = Computation(
      fmt::format("{{ x = {0} parameter(0)\n ROOT r = {0} {1}(x) }}", Text(x), IsFloat(x.type) ? "logistic" : "not"));
  Add(x.type, x.dims, x.most, fmt::format("call({}), to_apply={}", x.name, callee));
}

}  // namespace hlorun::fuzz
