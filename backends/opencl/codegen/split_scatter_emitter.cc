// Scatters of CPU class by one opcode whose updates are several times what they update: sums by segments, histograms,
// messages along the edges of a graph.
//
// In order, one after another, is the work of one core, unless windows are wide enough to be shared. So updates are cut
// into parts, each of which has an array of all places in scratch; a second launch combines what is there with the
// parts, in their order. How updates are cut follows from the shapes alone, so that results are the same on every run
// and device. 16-bit floats stay in order: the sum that is rounded at each step is another one.
#include <algorithm>

#include "backends/opencl/codegen/ceil_div.h"
#include "backends/opencl/codegen/emitters.h"
#include "backends/opencl/codegen/powers_of_two.h"
#include "backends/opencl/codegen/reducers.h"
#include "backends/opencl/codegen/scatter_updates.h"
#include "hlo/builder.h"

namespace hlorun::opencl {
namespace {

using hlo::Instruction;
using ir::Expr;

constexpr int64_t kFewestElements = 1 << 13;  // of updates: what is worth a second launch
constexpr int64_t kMostParts = 16;
constexpr int64_t kElementsPerPlace = 2;  // of a part, so that clearing and combining are little beside it
constexpr int64_t kMostScratchBytes = 16 << 20;

int64_t PartsOf(const Instruction& scatter) {
  const int64_t elements = scatter.operand(2)->shape().ElementCount();
  const hlo::Shape& operand = scatter.operand(0)->shape();
  if (elements < kFewestElements || operand.ElementCount() == 0) return 1;
  const int64_t array = operand.ElementCount() * hlo::BytesOf(PartialType(operand.element_type()));
  const int64_t most =
      std::min({kMostParts, elements / (kElementsPerPlace * operand.ElementCount()), kMostScratchBytes / array});
  return most < 2 ? 1 : PowerUpTo(most);
}

// Whether several work-items have elements of each window.
bool SharesWindows(const Instruction& scatter) {
  const std::vector<int64_t>& dims = scatter.As<hlo::attr::Scatter>().update_window_dims;
  const hlo::Shape& updates = scatter.operand(2)->shape();
  if (dims.empty()) return false;
  int64_t outer = 1;
  for (size_t i = 0; i + 1 < dims.size(); ++i) outer *= updates.dimension(dims[i]);
  const int64_t minor = updates.dimension(dims.back());
  return outer > 1 || ScatterTileOf(minor) < minor;
}

class SplitScatter {
 public:
  explicit SplitScatter(const EmitRequest& request)
      : e_(request.instruction, request.aliases, request.context),
        scatter_(*request.hero.instruction),
        updates_(e_, scatter_),
        opcode_(hlo::ReducerOpcode(*scatter_.called()).value()),
        type_(scatter_.operand(0)->shape().element_type()),
        places_(scatter_.operand(0)->shape().ElementCount()),
        parts_(PartsOf(scatter_)) {
    for (const int64_t d : updates_.batch_dims()) batch_.push_back(updates_.updates_shape().dimension(d));
    for (const int64_t d : updates_.window_dims()) window_.push_back(updates_.updates_shape().dimension(d));
  }

  EmittedLaunch Parts() {
    partials_ = Partials(/*written=*/true);
    const ir::Var part = e_.IndexVar("part", parts_);
    first_place_ = e_.math().Mul(e_.math().Of(part), places_);
    e_.values().Open();
    VectorLoop(places_, [&](const Index& place) { e_.body().Add(ir::Store(partials_, PlaceOf(place), Neutral().re)); });
    const int64_t count = hlo::CheckedProduct(batch_), of_part = CeilDiv(count, parts_);
    const Expr begin = e_.body().Name(ir::Ref(part) * of_part, "begin");
    const ir::Var update = e_.IndexVar("update", count);
    e_.values().Open();
    Apply(e_.math().Delinearize(e_.math().Of(update), batch_));
    e_.body().Add(ir::For(ir::LoopRole::kSerial, update, begin, ir::Min(begin + of_part, e_.IndexInt(count)),
                          e_.values().Close()));
    const ir::Stmt body = e_.values().Close();
    return e_.Finish(ir::For(ir::LoopRole::kParallel, part, e_.IndexInt(0), e_.IndexInt(parts_), body), 1);
  }

  EmittedLaunch Join() {
    partials_ = Partials(/*written=*/false);
    const auto& output = e_.outputs()[0];
    return OverElements(e_, {places_}, [&](const Indices& linear) {
      const Indices at = e_.math().Delinearize(linear[0], output.shape.dimensions());
      Value sum = e_.values().Get(e_.frame(), *scatter_.operand(0), at);
      for (int64_t part = 0; part < parts_; ++part) {
        const Expr place = e_.math().ToExpr(e_.math().Add(linear[0], part * places_));
        sum = EmitBinary(opcode_, type_, sum, {e_.body().Name(ir::Load(partials_, place)), nullptr}, e_.body());
      }
      e_.Store(output, at, sum);
    });
  }

 private:
  Value Neutral() const { return NeutralOf(opcode_, type_).value(); }
  ir::BufferRef Partials(bool written) {
    return e_.Scratch("partials", PartialType(type_), parts_ * places_, 0, written);
  }
  // Of the part's array.
  Expr PlaceOf(const Index& place) { return e_.math().ToExpr(e_.math().Add(first_place_, place)); }

  void VectorLoop(int64_t count, const std::function<void(const Index&)>& body) {
    const ir::Var i = e_.IndexVar(e_.body().FreshName("i"), count);
    e_.values().Open();
    body(e_.math().Of(i));
    e_.body().Add(
        ir::For(ir::LoopRole::kVector, i, e_.IndexInt(0), e_.IndexInt(count), e_.values().Close(), 1, e_.Lanes()));
  }

  // One update, whose window is walked in vectors along its last dimension.
  void Apply(const Indices& number) {
    Indices update(static_cast<size_t>(updates_.updates_shape().rank()));
    for (size_t i = 0; i < number.size(); ++i) update[static_cast<size_t>(updates_.batch_dims()[i])] = number[i];
    const ScatterUpdates::Start start = updates_.StartOf(update);
    const auto set = [&](size_t i, const Index& at) { update[static_cast<size_t>(updates_.window_dims()[i])] = at; };
    e_.values().Open();
    if (window_.empty()) {
      Combine(start, update);
    } else {
      e_.values().SerialLoops({window_.begin(), window_.end() - 1}, [&](const Indices& outer) {
        for (size_t i = 0; i < outer.size(); ++i) set(i, outer[i]);
        VectorLoop(window_.back(), [&](const Index& last) {
          set(window_.size() - 1, last);
          Combine(start, update);
        });
      });
    }
    const ir::Stmt window = e_.values().Close();
    e_.body().Add(ir::If(e_.body().Name(start.inside, "inside"), window));
  }

  void Combine(const ScatterUpdates::Start& start, const Indices& update) {
    const Indices at = updates_.PlaceOf(start, update);
    const Expr place = PlaceOf(e_.math().Linearize(at, updates_.operand_shape().dimensions()));
    const Value before = {e_.body().Name(ir::Load(partials_, place)), nullptr};
    const Value value = e_.values().Get(e_.frame(), *scatter_.operand(2), update);
    e_.body().Add(ir::Store(partials_, place, EmitBinary(opcode_, type_, before, value, e_.body()).re));
  }

  Emission e_;
  const Instruction& scatter_;
  ScatterUpdates updates_;
  hlo::Opcode opcode_;
  hlo::ElementType type_;
  int64_t places_, parts_;
  hlo::Dims batch_, window_;  // sizes of the updates' dimensions
  Index first_place_;
  ir::BufferRef partials_;
};

}  // namespace

bool HasSplitScatter(const Instruction& scatter, const DeviceSpec& device) {
  return device.device_class == DeviceClass::kCpu && CombinesInParts(scatter) && PartsOf(scatter) > 1 &&
         !SharesWindows(scatter);
}

int64_t SplitScatterScratchBytes(const Instruction& scatter) {
  const hlo::Shape& operand = scatter.operand(0)->shape();
  return PartsOf(scatter) * operand.ElementCount() * hlo::BytesOf(PartialType(operand.element_type()));
}

Launches EmitSplitScatter(const EmitRequest& request) {
  Launches launches;
  launches.push_back(SplitScatter(request).Parts());
  launches.push_back(SplitScatter(request).Join());
  return launches;
}

}  // namespace hlorun::opencl
