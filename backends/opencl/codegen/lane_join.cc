#include "backends/opencl/codegen/lane_join.h"

#include <algorithm>

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
      : e_(e), team_(team), lanes_(std::move(lanes)) {
    for (const LaneValue& lane : lanes_) {
      LaneArray array{Array(lane.type), nullptr};
      if (hlo::IsComplex(lane.type)) array.im = Array(lane.type);
      arrays_.push_back(array);
    }
  }

  std::vector<Value> Totals() {
    for (size_t i = 0; i < lanes_.size(); ++i) StoreOwn(i, lanes_[i].value);
    int64_t count = team_.items;
    while (count > kReadByAll) {
      const int64_t left = std::max(kFewestLeft, count / kJoinedAtOnce);
      e_.body().Add(ir::Barrier());
      e_.values().Open();
      for (size_t i = 0; i < lanes_.size(); ++i) StoreOwn(i, Joined(i, team_.lane, count, left));
      e_.body().Add(ir::If(e_.math().Within(team_.lane, 0, left), e_.values().Close()));
      count = left;
    }
    e_.body().Add(ir::Barrier());
    std::vector<Value> totals;
    for (size_t i = 0; i < lanes_.size(); ++i) totals.push_back(Joined(i, 0, count, 1));
    return totals;
  }

 private:
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
