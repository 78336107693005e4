// Many scalar updates of few places, by one opcode, on GPU class: histograms, gradients of short tables.
//
// Each group takes a part of the updates and has an array of all places in local memory, which its items own in turn;
// what they end with is combined by a second launch, part by part. How updates are cut into parts follows from their
// number, so that results are the same on every run and device.
#include <algorithm>

#include "backends/opencl/codegen/ceil_div.h"
#include "backends/opencl/codegen/emitters.h"
#include "backends/opencl/codegen/powers_of_two.h"
#include "backends/opencl/codegen/reducers.h"
#include "backends/opencl/codegen/result_items.h"
#include "backends/opencl/codegen/scatter_updates.h"
#include "hlo/builder.h"

namespace hlorun::opencl {
namespace {

using hlo::ElementType;
using hlo::Instruction;
using ir::Expr;

constexpr int64_t kFewestUpdates = 1 << 14;
constexpr int64_t kBlock = 1 << 10;       // updates that a group looks at between barriers
constexpr int64_t kMostParts = 1 << 11;   // several groups for each unit of a large GPU
constexpr int64_t kMostPlaces = 1 << 12;  // with more, few updates of a part would share one
constexpr int64_t kGroup = 128;
constexpr int64_t kJoinedAcross = 32, kJoinLanes = 8, kJoinedAtOnce = 8, kLookedAtOnce = 8;

int64_t UpdatesOf(const Instruction& scatter) { return scatter.operand(2)->shape().ElementCount(); }
int64_t PartUpdates(const Instruction& scatter) {
  return CeilDiv(CeilDiv(UpdatesOf(scatter), kMostParts), kBlock) * kBlock;
}
int64_t Parts(const Instruction& scatter) { return CeilDiv(UpdatesOf(scatter), PartUpdates(scatter)); }

class ScatterParts {
 public:
  explicit ScatterParts(const EmitRequest& request)
      : e_(request.instruction, request.aliases, request.context),
        scatter_(*request.hero.instruction),
        updates_(e_, scatter_),
        opcode_(hlo::ReducerOpcode(*scatter_.called()).value()),
        type_(scatter_.operand(0)->shape().element_type()),
        count_(UpdatesOf(scatter_)),
        places_(scatter_.operand(0)->shape().ElementCount()),
        parts_(Parts(scatter_)) {}

  EmittedLaunch Combine() {
    IndexMath& math = e_.math();
    partials_ = Partials(/*written=*/true);
    place_of_ = e_.LocalArray("place_of", ElementType::kS32, kBlock);
    value_of_ = e_.LocalArray("value_of", PartialType(type_), kBlock);
    // One more, for what lies outside.
    sums_ = e_.LocalArray("sums", PartialType(type_), places_ + 1);
    const int64_t group = PowerUpTo(std::min(kGroup, e_.device().max_work_group_size));
    const ir::Var part = e_.IndexVar("part", parts_), item = e_.IndexVar("item", group);
    items_ = group;
    item_ = math.Of(item);
    e_.values().Open();
    OverOwnPlaces(places_ + 1, [&](const Expr& place) { e_.body().Add(ir::Store(sums_, place, Neutral().re)); });
    const int64_t blocks = PartUpdates(scatter_) / kBlock;
    e_.values().SerialLoop(blocks, [&](const Index& block) {
      const Index number = math.Add(math.Mul(math.Of(part), blocks), block);
      Stage(math.Mul(number, kBlock));
      e_.body().Add(ir::Barrier());
      AddOwn();
      e_.body().Add(ir::Barrier());
    });
    OverOwnPlaces(places_, [&](const Expr& place) {
      const Expr at = math.ToExpr(math.Mul(math.Of(part), places_)) + place;
      e_.body().Add(ir::Store(partials_, at, e_.body().Name(ir::Load(sums_, place))));
    });
    const ir::Stmt body =
        ir::For(ir::LoopRole::kVector, item, e_.IndexInt(0), e_.IndexInt(group), e_.values().Close(), 1, e_.Lanes());
    e_.GroupOf(group);
    return e_.Finish(ir::For(ir::LoopRole::kParallel, part, e_.IndexInt(0), e_.IndexInt(parts_), body), 1);
  }

  EmittedLaunch Join() {
    IndexMath& math = e_.math();
    partials_ = Partials(/*written=*/false);
    const int64_t across = std::min(kJoinedAcross, PowerUpTo(e_.device().max_work_group_size) / kJoinLanes);
    ResultItems items(e_, {places_, kJoinLanes, across, /*is_rows=*/false});
    items.Open();
    const ir::Var sum = e_.body().Mutable(Neutral().re, "sum");
    e_.values().SerialLoop(CeilDiv(parts_, kJoinLanes * kJoinedAtOnce),
                           [&](const Index& batch) { JoinBatch(sum, items, batch); });
    const std::vector<Value> totals = JoinLanes(e_, items.Team(), {{opcode_, type_, {ir::Ref(sum), nullptr}}});
    items.OnFirstLaneOfEach([&] {
      const auto& output = e_.outputs()[0];
      const Indices place = math.Delinearize(items.result(), output.shape.dimensions());
      const Expr before = e_.body().Name(ir::Load(output.buffer, math.ToExpr(items.result())));
      e_.Store(output, place, EmitBinary(opcode_, type_, {before, nullptr}, totals[0], e_.body()));
    });
    e_.GroupOf(kJoinLanes * across);
    return e_.Finish(items.Close(), 1);
  }

 private:
  Value Neutral() const { return NeutralOf(opcode_, type_).value(); }

  ir::BufferRef Partials(bool written) {
    return e_.Scratch("partials", PartialType(type_), parts_ * places_, 0, written);
  }

  void OverOwnPlaces(int64_t places, const std::function<void(const Expr&)>& body) {
    const ir::Var place = e_.IndexVar(e_.body().FreshName("place"), places);
    e_.values().Open();
    body(ir::Ref(place));
    e_.body().Add(ir::For(ir::LoopRole::kSerial, place, e_.math().ToExpr(item_), e_.IndexInt(places),
                          e_.values().Close(), items_));
  }

  // Where the updates from `first` on go, and what they are.
  void Stage(const Index& first) {
    IndexMath& math = e_.math();
    const hlo::Shape& shape = updates_.updates_shape();
    const ir::Var within = e_.IndexVar(e_.body().FreshName("within"), kBlock);
    e_.values().Open();
    const Index number = math.Add(first, math.Of(within));
    const Expr mask = e_.values().Both(nullptr, math.Within(number, 0, count_));
    const Indices update = math.Delinearize(number, shape.dimensions());
    const ScatterUpdates::Start start = updates_.StartOf(update, mask);
    const Expr place = math.ToExpr(math.Linearize(start.at, updates_.operand_shape().dimensions()));
    const Expr is_there = e_.values().Both(mask, start.inside);
    const Expr named = is_there ? ir::Select(is_there, place, e_.IndexInt(places_)) : place;
    e_.body().Add(ir::Store(place_of_, ir::Ref(within), ir::Cast(named, ElementType::kS32)));
    const Value value = e_.values().Get(e_.frame(), *scatter_.operand(2), update, mask);
    e_.body().Add(ir::Store(value_of_, ir::Ref(within), value.re));
    e_.body().Add(
        ir::For(ir::LoopRole::kSerial, within, math.ToExpr(item_), e_.IndexInt(kBlock), e_.values().Close(), items_));
  }

  // Each item those of its places, in their order.
  void AddOwn() {
    e_.values().SerialLoop(kBlock / kLookedAtOnce, [&](const Index& batch) {
      std::vector<std::pair<ir::Var, Value>> found;
      for (int64_t i = 0; i < kLookedAtOnce; ++i) {
        const Expr at = e_.math().ToExpr(e_.math().Add(e_.math().Mul(batch, kLookedAtOnce), i));
        const ir::Var place = ir::MakeVar(e_.body().FreshName("place"), ir::kIndex32);
        e_.body().Add(ir::Let(place, ir::Load(place_of_, at)));
        found.emplace_back(place, Value{e_.body().Name(ir::Load(value_of_, at)), nullptr});
      }
      for (const auto& [place, value] : found) {
        e_.values().Open();
        const Value sum = {e_.body().Name(ir::Load(sums_, ir::Ref(place))), nullptr};
        e_.body().Add(ir::Store(sums_, ir::Ref(place), EmitBinary(opcode_, type_, sum, value, e_.body()).re));
        const ir::Stmt add = e_.values().Close();
        const Expr owner = ir::Cast(ir::And(ir::Ref(place), ir::Int(items_ - 1)), e_.math().type().element);
        e_.body().Add(ir::If(ir::Compare(ir::Op::kEq, owner, e_.math().ToExpr(item_)), add));
      }
    });
  }

  // Some of a lane's parts of one place. All loads come first, so that they are under way together.
  void JoinBatch(const ir::Var& sum, const ResultItems& items, const Index& batch) {
    IndexMath& math = e_.math();
    std::vector<Value> values;
    for (int64_t i = 0; i < kJoinedAtOnce; ++i) {
      const Index step = math.Add(math.Mul(batch, kJoinedAtOnce), i);
      const Index part = math.Add(math.Mul(step, kJoinLanes), items.lane());
      const Expr mask = e_.values().Both(nullptr, math.Within(part, 0, parts_));
      const Expr at = math.ToExpr(math.Add(math.Mul(part, places_), items.result()));
      const Value value = {e_.body().Name(ir::Load(partials_, at, mask)), nullptr};
      values.push_back(mask ? SelectValue(mask, value, Neutral()) : value);
    }
    for (const Value& value : values)
      e_.body().Add(ir::Assign(sum, EmitBinary(opcode_, type_, {ir::Ref(sum), nullptr}, value, e_.body()).re));
  }

  Emission e_;
  const Instruction& scatter_;
  ScatterUpdates updates_;
  hlo::Opcode opcode_;
  ElementType type_;
  int64_t count_, places_, parts_;
  int64_t items_ = 1;
  Index item_;
  ir::BufferRef place_of_, value_of_, sums_, partials_;
};

}  // namespace

bool HasScatterParts(const Instruction& scatter, const DeviceSpec& device) {
  if (device.device_class != DeviceClass::kGpu || device.max_work_group_size < kJoinLanes) return false;
  if (!CombinesInParts(scatter) || UpdatesOf(scatter) < kFewestUpdates) return false;
  const auto& attributes = scatter.As<hlo::attr::Scatter>();
  const ElementType type = scatter.operand(0)->shape().element_type();
  if (!attributes.update_window_dims.empty() || !attributes.input_batching_dims.empty()) return false;
  const int64_t places = scatter.operand(0)->shape().ElementCount(), bytes = hlo::BytesOf(PartialType(type));
  return places <= kMostPlaces && kBlock * (4 + bytes) + (places + 1) * bytes <= device.local_memory_bytes;
}

int64_t ScatterPartsScratchBytes(const Instruction& scatter) {
  const int64_t places = scatter.operand(0)->shape().ElementCount();
  return Parts(scatter) * places * hlo::BytesOf(PartialType(scatter.operand(0)->shape().element_type()));
}

Launches EmitScatterParts(const EmitRequest& request) {
  Launches launches;
  launches.push_back(ScatterParts(request).Combine());
  launches.push_back(ScatterParts(request).Join());
  return launches;
}

}  // namespace hlorun::opencl
