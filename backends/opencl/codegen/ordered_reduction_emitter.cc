// Reductions on GPU class whose reducer is no single opcode (argmax, several operands): nothing is known of it but that
// it is associative. Each lane takes a run of neighbouring elements, and lanes are joined in their order; none starts
// from an initial value, which may be no identity.
#include <algorithm>
#include <functional>
#include <optional>

#include "backends/opencl/codegen/ceil_div.h"
#include "backends/opencl/codegen/emission.h"
#include "backends/opencl/codegen/emitters.h"
#include "backends/opencl/codegen/lane_exchange.h"
#include "backends/opencl/codegen/powers_of_two.h"
#include "backends/opencl/codegen/reduced_shape.h"
#include "backends/opencl/codegen/reducers.h"
#include "backends/opencl/codegen/result_items.h"

namespace hlorun::opencl {
namespace {

using hlo::Instruction;
using ir::Expr;

// Fewer elements are an item's own; EmitLoop has them.
constexpr int64_t kFewestElements = 32;
constexpr int64_t kShareOfLane = 8;
constexpr int64_t kGroup = 128;   // a constant, so that results do not depend on the device
constexpr int64_t kColumns = 32;  // that a group reads side by side
constexpr int kUnroll = 4;

ResultItems::Size SizeOf(const ReducedShape& shape) {
  ResultItems::Size size{.results = shape.results(), .is_rows = shape.IsRows()};
  if (size.is_rows) {
    size.items = std::min(PowerFrom(CeilDiv(shape.elements(), kShareOfLane)), kGroup);
    size.across = kGroup / size.items;
  } else {
    size.across = std::min(PowerFrom(shape.results()), kColumns);
    size.items = std::min(PowerFrom(CeilDiv(shape.elements(), kShareOfLane)), kGroup / size.across);
  }
  return size;
}

class OrderedReduction {
 public:
  explicit OrderedReduction(const EmitRequest& request)
      : e_(request.instruction, request.aliases, request.context),
        reduce_(*request.hero.instruction),
        shape_(ReducedShapeOf(reduce_)),
        size_(SizeOf(shape_)),
        items_(e_, size_),
        run_(CeilDiv(shape_.elements(), size_.items)),
        operands_(reduce_.operand_count() / 2) {}

  EmittedLaunch Emit() {
    items_.Open();
    kept_ = e_.math().Delinearize(items_.result(), shape_.Of(shape_.kept));
    SumRun();
    JoinLanesInOrder();
    items_.OnFirstLaneOfEach([&] { StoreResults(); });
    e_.GroupOf(size_.group());
    return e_.Finish(items_.Close(), 1);
  }

 private:
  Values Current() const {
    Values values;
    for (size_t i = 0; i < re_.size(); ++i) values.push_back({ir::Ref(re_[i]), im_[i] ? ir::Ref(im_[i]) : nullptr});
    return values;
  }
  // The reducer of what is there and `next`.
  void Add(const Values& next) {
    Values arguments = Current();
    arguments.insert(arguments.end(), next.begin(), next.end());
    const Values sums = e_.values().Apply(*reduce_.called(), std::move(arguments));
    // Values of one sum may be read by the next one.
    std::vector<Value> named;
    for (const Value& sum : sums) named.push_back({e_.body().Name(sum.re), sum.im ? e_.body().Name(sum.im) : nullptr});
    for (size_t i = 0; i < re_.size(); ++i) {
      e_.body().Add(ir::Assign(re_[i], named[i].re));
      if (im_[i]) e_.body().Add(ir::Assign(im_[i], named[i].im));
    }
  }

  Values ElementAt(const Index& at) {
    const Indices place = shape_.Place(kept_, e_.math().Delinearize(at, shape_.Of(shape_.reduced)));
    Values values;
    for (int64_t i = 0; i < operands_; ++i) values.push_back(e_.values().Get(e_.frame(), *reduce_.operand(i), place));
    return values;
  }

  // This lane's run. Lanes behind the last element take that one, and nobody takes what they have.
  void SumRun() {
    const int64_t last = shape_.elements() - 1;
    const Expr lane = e_.math().ToExpr(items_.lane());
    const ir::Var begin = e_.IndexVar("begin", last + 1), end = e_.IndexVar("end", last + 2);
    e_.body().Add(ir::Let(begin, ir::Min(lane * run_, e_.IndexInt(last))));
    e_.body().Add(ir::Let(end, ir::Min(ir::Ref(begin) + run_, e_.IndexInt(last + 1))));
    for (const Value& first : ElementAt(e_.math().Of(begin))) {
      re_.push_back(e_.body().Mutable(first.re));
      im_.push_back(first.im ? e_.body().Mutable(first.im) : nullptr);
    }
    const ir::Var at = e_.IndexVar("at", last + 1);
    e_.values().Open();
    Add(ElementAt(e_.math().Of(at)));
    e_.body().Add(ir::Unrolled(
        ir::For(ir::LoopRole::kSerial, at, ir::Ref(begin) + 1, ir::Ref(end), e_.values().Close()), kUnroll));
  }

  // Lane by lane + 1, by lane + 2 ...: each step joins neighbours, within sub-groups by exchanges where there are such.
  void JoinLanesInOrder() {
    const LaneTeam team = items_.Team();
    const int64_t live = CeilDiv(shape_.elements(), run_);  // lanes
    if (live == 1) return;
    const auto place = [&](const Index& lane) {
      return e_.math().ToExpr(e_.math().Add(team.first, e_.math().Mul(lane, team.stride)));
    };
    int64_t apart = 1;
    const int64_t sub_group = team.stride == 1 ? SubGroupSizeFor(team.group, e_.device()) : 1;
    if (sub_group > 1) {
      LaneExchange exchange(e_, place(team.lane), team.group);
      for (; apart < std::min(live, sub_group); apart *= 2) {
        Values next;
        for (const Value& own : Current()) next.push_back(exchange.Across(own, apart));
        OnFirstOfTwo(team.lane, apart, live, [&] { Add(next); });
      }
    }
    if (apart >= live) return;
    MakeArrays();
    StoreAt(place(team.lane));
    for (; apart < live; apart *= 2) {
      e_.body().Add(ir::Barrier());
      OnFirstOfTwo(team.lane, apart, live, [&] {
        Add(LoadFrom(place(e_.math().Add(team.lane, apart))));
        StoreAt(place(team.lane));
      });
    }
  }
  // What `body` writes, by the first lane of each two that a step joins.
  void OnFirstOfTwo(const Index& lane, int64_t apart, int64_t live, const std::function<void()>& body) {
    const Expr is_first = ir::Compare(ir::Op::kEq, e_.math().ToExpr(e_.math().Mod(lane, 2 * apart)), e_.IndexInt(0));
    e_.values().Open();
    body();
    const Expr is_live = e_.math().Within(e_.math().Add(lane, apart), 0, live);
    e_.body().Add(ir::If(ir::And(is_first, is_live), e_.values().Close()));
  }

  void MakeArrays() {
    const auto make = [&](const ir::Var& sum) {
      arrays_.push_back(e_.LocalArray("lanes", sum->type.element, size_.group()));
    };
    for (size_t i = 0; i < re_.size(); ++i) {
      make(re_[i]);
      if (im_[i]) make(im_[i]);
    }
  }
  void StoreAt(const Expr& place) {
    auto array = arrays_.begin();
    for (size_t i = 0; i < re_.size(); ++i) {
      e_.body().Add(ir::Store(*array++, place, ir::Ref(re_[i])));
      if (im_[i]) e_.body().Add(ir::Store(*array++, place, ir::Ref(im_[i])));
    }
  }
  Values LoadFrom(const Expr& place) {
    Values values;
    auto array = arrays_.begin();
    for (size_t i = 0; i < re_.size(); ++i) {
      const Expr re = e_.body().Name(ir::Load(*array++, place));
      values.push_back({re, im_[i] ? e_.body().Name(ir::Load(*array++, place)) : nullptr});
    }
    return values;
  }

  void StoreResults() {
    Values arguments;
    for (int64_t i = 0; i < operands_; ++i)
      arguments.push_back(e_.values().Get(e_.frame(), *reduce_.operand(operands_ + i), {}));
    for (const Value& sum : Current()) arguments.push_back(sum);
    e_.values().Remember(e_.frame(), reduce_, kept_, e_.values().Apply(*reduce_.called(), std::move(arguments)));
    for (const Emission::Output& output : e_.outputs()) {
      const Indices at = output.shape.dimensions() == shape_.Of(shape_.kept)
                             ? kept_
                             : e_.math().Delinearize(items_.result(), output.shape.dimensions());
      e_.Store(output, at, e_.ValueOf(output, at));
    }
  }

  Emission e_;
  const Instruction& reduce_;
  ReducedShape shape_;
  ResultItems::Size size_;
  ResultItems items_;
  int64_t run_;
  int64_t operands_;
  Indices kept_;
  std::vector<ir::Var> re_, im_;
  std::vector<ir::BufferRef> arrays_;
};

}  // namespace

bool HasOrderedReduction(const Instruction& instruction, const Instruction& reduce, const DeviceSpec& device) {
  if (device.device_class != DeviceClass::kGpu || HasLanes(reduce)) return false;
  const auto levels = ReduceLevels(instruction);
  if (levels.size() != 1 || levels[0].size() != 1) return false;
  const ReducedShape shape = ReducedShapeOf(reduce);
  if (shape.elements() < kFewestElements || shape.results() == 0) return false;
  if (device.max_work_group_size < kGroup || PartialBytes(reduce) * kGroup > device.local_memory_bytes) return false;
  const std::vector<hlo::Shape> leaves = PartShapesOf(instruction);
  return std::all_of(leaves.begin(), leaves.end(),
                     [&](const hlo::Shape& leaf) { return leaf.ElementCount() == shape.results(); });
}

Launches EmitOrderedReduction(const EmitRequest& request) {
  Launches launches;
  launches.push_back(OrderedReduction(request).Emit());
  return launches;
}

}  // namespace hlorun::opencl
