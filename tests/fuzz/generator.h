// How random modules are made: a scope of values, and steps that each add a few to it.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "tests/fuzz/random_module.h"
#include "tests/random_dims.h"

namespace hlorun::fuzz {

using testing_support::Dims;

struct Value {
  std::string name;
  std::string_view type;
  Dims dims;
  int64_t most = 0;  // of floats that are whole numbers: no larger absolute value
};

bool IsFloat(std::string_view type);
bool IsInteger(std::string_view type);
std::string ShapeText(std::string_view type, const Dims& dims);
std::string Text(const Value& value);
std::string TupleText(const std::vector<Value>& elements);

class Generator {
 public:
  explicit Generator(uint64_t seed, ModuleStyle style) : random_(seed), style_(style) {}
  std::string Make();

 private:
  using Step = void (Generator::*)();
  struct Family {
    Step step;
    int64_t weight, weight_of_small;  // how often, in ModuleStyle::kMixed and kSmallLoops
  };
  static const std::vector<Family> kFamilies;

  // The lines of a computation in the making and what they define.
  struct Scope {
    std::string body;
    std::vector<Value> values;
    std::string counter;  // of the loop whose body this is; empty elsewhere
  };

  bool small() const { return style_ == ModuleStyle::kSmallLoops; }
  Scope& scope() { return scopes_.back(); }
  std::vector<Value>& values() { return scopes_.back().values; }

  int64_t Below(int64_t n) { return testing_support::Below(random_, n); }
  template <size_t kCount>
  std::string_view Pick(const std::array<std::string_view, kCount>& list) {
    return list[static_cast<size_t>(Below(kCount))];
  }
  void Line(const std::string& line) { scope().body += "  " + line + "\n"; }
  std::string Fresh(const char* prefix);
  const Value& Any() { return values()[static_cast<size_t>(Below(static_cast<int64_t>(values().size())))]; }
  template <typename Condition>
  std::optional<Value> AnyWhere(Condition condition) {
    std::vector<const Value*> fitting;
    for (const Value& v : values()) {
      if (condition(v)) fitting.push_back(&v);
    }
    if (fitting.empty()) return std::nullopt;
    return *fitting[static_cast<size_t>(Below(static_cast<int64_t>(fitting.size())))];
  }
  std::optional<Value> Like(const Value& x);

  void Steps(int64_t count);
  // Any of the scope's values if it would be too large. `most`: of the result, where floats are whole numbers; past
  // what its type holds exactly it is replaced by zeros.
  Value Add(std::string_view type, const Dims& dims, int64_t most, const std::string& operation);
  // x between -8 and 8 where floats are whole numbers.
  Value Small(const Value& x);
  void Parameter(int64_t number);
  std::string_view RandomType();
  Dims RandomDims();
  std::string Constant(std::string_view type, int64_t value);
  std::string SmallConstant(std::string_view type);
  std::string Computation(const std::string& text);
  std::string Reducer(std::string_view type, std::string_view op);
  std::string_view ReducerOp(std::string_view type);
  // Of `count` elements and a small constant, joined by `op`.
  static int64_t MostOf(std::string_view op, int64_t most, int64_t count);
  std::string Index();

  void Unary();
  void Binary();
  void Compare();
  void Select();
  void Clamp();
  void Convert();

  void Transpose();
  void Reshape();
  void Broadcast();
  void Slice();
  void Pad();
  void Concatenate();
  void Reverse();
  void Iota();
  void DynamicSlice();
  void DynamicUpdateSlice();
  void Part();
  void Stack();
  void Spread();

  void Reduce();
  void ReduceWindow();
  void Cumulate();
  void Dot();
  void Sort();
  void TopK();
  std::optional<Value> Rows();
  void Gather();
  void Scatter();

  std::vector<Value> Some(int64_t count);
  std::string Tuple(const std::vector<Value>& elements, const char* root = "");
  void Elements(const std::string& tuple, const std::vector<Value>& elements);
  std::string Nested(const std::vector<Value>& inputs, const std::vector<Value>& results, bool counts);
  void While();
  void Loop();
  void Conditional();
  void Branches();
  void Call();

  std::mt19937_64 random_;
  ModuleStyle style_;
  std::string computations_;
  std::vector<Scope> scopes_ = {{}};
  std::vector<Dims> shapes_;   // that arrays of kSmallLoops have
  int64_t most_elements_ = 0;  // of an array
  int64_t next_ = 0;
};

}  // namespace hlorun::fuzz
