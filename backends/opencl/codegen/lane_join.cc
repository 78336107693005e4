#include "backends/opencl/codegen/lane_join.h"

#include <algorithm>

#include "backends/opencl/codegen/lane_exchange.h"

namespace hlorun::opencl {
namespace {

using ir::Expr;

// So many values are read by every item, in place of another step that ends with a barrier.
constexpr int64_t kReadByAll = 16;
// Values that an item joins in one step, and the least that a step leaves.
constexpr int64_t kJoinedAtOnce = 16, kFewestLeft = 8;

// The places of one kind of value.
struct LaneArray {
  ir::BufferRef re, im;
};

class LaneJoin {
 public:
  LaneJoin(Emission& e, const LaneTeam& team, std::vector<LaneValue> lanes)
      : e_(e),
        team_(team),
        lanes_(std::move(lanes)),
        sub_group_(team.stride == 1 ? std::min(SubGroupSizeFor(team.group, e.device()), team.items) : 1) {}

  std::vector<Value> Totals() {
    std::vector<Value> values;
    values.reserve(lanes_.size());
    for (const LaneValue& lane : lanes_) values.push_back(lane.value);
    if (team_.items > sub_group_) values = JoinedInMemory();
    if (sub_group_ > 1) JoinSubGroup(values);
    return values;
  }

 private:
  // Of each, the total; or, in each sub-group, what its lanes have left to join.
  std::vector<Value> JoinedInMemory() {
    for (const LaneValue& lane : lanes_) {
      LaneArray array{Array(lane.type), nullptr};
      if (hlo::IsComplex(lane.type)) array.im = Array(lane.type);
      arrays_.push_back(array);
    }
    for (size_t i = 0; i < lanes_.size(); ++i) StoreOwn(i, lanes_[i].value);
    int64_t count = team_.items;
    while (count > kReadByAll * sub_group_) {
      const int64_t left = std::max({kFewestLeft, sub_group_, count / kJoinedAtOnce});
      e_.body().Add(ir::Barrier());
      e_.values().Open();
      for (size_t i = 0; i < lanes_.size(); ++i) StoreOwn(i, Joined(i, team_.lane, count, left));
      e_.body().Add(ir::If(e_.math().Within(team_.lane, 0, left), e_.values().Close()));
      count = left;
    }
    e_.body().Add(ir::Barrier());
    const Index own = sub_group_ > 1 ? e_.math().Mod(team_.lane, sub_group_) : Index(0);
    std::vector<Value> values;
    for (size_t i = 0; i < lanes_.size(); ++i) values.push_back(Joined(i, own, count, sub_group_));
    return values;
  }

  // Value i and value i + distance, halving: both lanes have the result.
  void JoinSubGroup(std::vector<Value>& values) {
    LaneExchange exchange(e_, PlaceOf(team_.lane), team_.group);
    const Expr lane = e_.math().ToExpr(team_.lane);
    for (int64_t distance = sub_group_ / 2; distance >= 1; distance /= 2) {
      const Expr bit = ir::And(lane, e_.IndexInt(distance));
      const Expr is_upper = ir::Compare(ir::Op::kNe, bit, e_.IndexInt(0));
      for (size_t i = 0; i < lanes_.size(); ++i) {
        const hlo::Opcode opcode = lanes_[i].opcode;
        const hlo::ElementType type = lanes_[i].type;
        const Value there = exchange.Across(values[i], distance);
        Value lower = values[i], upper = there;
        if (!IsSymmetric(opcode, type)) {
          lower = Named(SelectValue(is_upper, there, values[i]));
          upper = Named(SelectValue(is_upper, values[i], there));
        }
        values[i] = Named(EmitBinary(opcode, type, lower, upper, e_.body()));
      }
    }
  }

  // Whether x op y has the bits of y op x: not a product of complex numbers, whose compiler may fuse one of two
  // multiplications with the addition, nor the larger of two NaNs, which is the first. (Which of them a sum is, is up
  // to the device and its compiler, here and in memory.)
  static bool IsSymmetric(hlo::Opcode opcode, hlo::ElementType type) {
    if (hlo::IsComplex(type)) return opcode == hlo::Opcode::kAdd;
    return !hlo::IsFloating(type) || opcode == hlo::Opcode::kAdd || opcode == hlo::Opcode::kMultiply;
  }

  Value Named(const Value& value) { return {e_.body().Name(value.re), value.im ? e_.body().Name(value.im) : nullptr}; }

  ir::BufferRef Array(hlo::ElementType type) { return e_.LocalArray("lanes", ValueType(type).element, team_.group); }
  Expr PlaceOf(const Index& lane) {
    return e_.math().ToExpr(e_.math().Add(team_.first, e_.math().Mul(lane, team_.stride)));
  }
  void StoreOwn(size_t i, const Value& value) {
    const Expr place = PlaceOf(team_.lane);
    e_.body().Add(ir::Store(arrays_[i].re, place, value.re));
    if (value.im) e_.body().Add(ir::Store(arrays_[i].im, place, value.im));
  }
  // Those at lane, lane + left, lane + 2 * left ... of `count`.
  Value Joined(size_t i, const Index& lane, int64_t count, int64_t left) {
    std::vector<Value> values;
    for (int64_t first = 0; first < count; first += left) {
      const Expr place = PlaceOf(e_.math().Add(lane, first));
      const auto load = [&](const ir::BufferRef& from) {
        return from ? e_.body().Name(ir::Load(from, place)) : nullptr;
      };
      values.push_back({load(arrays_[i].re), load(arrays_[i].im)});
    }
    return JoinHalving(lanes_[i].opcode, lanes_[i].type, std::move(values), e_.body());
  }

  Emission& e_;
  LaneTeam team_;
  std::vector<LaneValue> lanes_;
  int64_t sub_group_;  // lanes of the team in a sub-group that hand each other values; 1: none do
  std::vector<LaneArray> arrays_;
};

}  // namespace

Value JoinHalving(hlo::Opcode opcode, hlo::ElementType type, std::vector<Value> values, Body& body) {
  for (size_t half = values.size() / 2; half >= 1; half /= 2) {
    for (size_t i = 0; i < half; ++i) values[i] = EmitBinary(opcode, type, values[i], values[i + half], body);
  }
  return values[0];
}

std::vector<Value> JoinLanes(Emission& e, const LaneTeam& team, std::vector<LaneValue> lanes) {
  if (team.items > 1) return LaneJoin(e, team, std::move(lanes)).Totals();
  std::vector<Value> totals;
  totals.reserve(lanes.size());
  for (const LaneValue& lane : lanes) totals.push_back(lane.value);
  return totals;
}

}  // namespace hlorun::opencl
