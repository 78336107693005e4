// Reductions on GPU class: of rows, columns and what lies between, with results of the operand's shape too (softmax,
// norms). What each group does is a ReductionShare.
//
// An item's share of a short row is written out element by element: its loads are under way together, and what one
// sweep has loaded or computed is still in registers for the next one. Of longer ones, each sweep is a loop over
// batches of loads.
#include <algorithm>

#include "backends/opencl/codegen/ceil_div.h"
#include "backends/opencl/codegen/emission.h"
#include "backends/opencl/codegen/emitters.h"
#include "backends/opencl/codegen/lane_join.h"
#include "backends/opencl/codegen/reduced_shape.h"
#include "backends/opencl/codegen/reducers.h"
#include "backends/opencl/codegen/reduction_share.h"
#include "backends/opencl/codegen/result_items.h"
#include "hlo/builder.h"

namespace hlorun::opencl {
namespace {

using hlo::Dims;
using hlo::Instruction;
using hlo::Opcode;
using ir::Expr;

// Elements of an item that may be written out, and how many instructions' values that may be: registers, and what the
// device's compiler has to read.
constexpr int64_t kMostWrittenOut = 32;
constexpr int64_t kMostValuesWrittenOut = 2048;
constexpr int64_t kLoadsTogether = 8;  // of a batch in a loop

using Levels = std::vector<std::vector<const Instruction*>>;

// Whether partial results are all that one launch has to hand on to another.
bool MaySplit(const Instruction& instruction, const Instruction& hero, const Levels& levels) {
  if (levels.size() > 1) return false;
  const auto is_alike = [&](const Instruction* other) { return HasLanes(*other) && ReduceAlike(*other, hero); };
  const int64_t results = ReducedShapeOf(hero).results();
  const std::vector<hlo::Shape> leaves = PartShapesOf(instruction);
  return std::all_of(levels[0].begin(), levels[0].end(), is_alike) &&
         std::all_of(leaves.begin(), leaves.end(),
                     [&](const hlo::Shape& leaf) { return leaf.ElementCount() == results; });
}

// Of local memory, for each work-item.
int64_t ItemBytes(const Levels& levels) {
  int64_t bytes = 0;
  for (const auto& level : levels) {
    for (const Instruction* reduce : level) bytes += PartialBytes(*reduce);
  }
  return bytes;
}

ReductionShare WholeShareOf(const Instruction& instruction, const Instruction& hero, const DeviceSpec& device) {
  const Levels levels = ReduceLevels(instruction);
  const ReducedShape shape = ReducedShapeOf(hero);
  return ShareOf({shape.results(), shape.elements(), shape.IsRows()}, MaySplit(instruction, hero, levels),
                 ItemBytes(levels), device);
}

// kWhole: one launch does all. Or two of them: kParts leaves partial results in scratch, kJoin makes the results.
enum class Stage : uint8_t { kWhole, kParts, kJoin };

class GroupReduction {
 public:
  GroupReduction(const EmitRequest& request, Stage stage)
      : e_(request.instruction, request.aliases, request.context),
        stage_(stage),
        shape_(ReducedShapeOf(*request.hero.instruction)),
        levels_(ReduceLevels(request.instruction)),
        parts_(WholeShareOf(request.instruction, *request.hero.instruction, request.context.device).parts),
        elements_(stage == Stage::kJoin ? parts_ : shape_.elements()),
        share_(ShareOf({shape_.results(), elements_, shape_.IsRows()}, stage == Stage::kParts, ItemBytes(levels_),
                       request.context.device)),
        items_(e_, {shape_.results(), share_.items, share_.across, shape_.IsRows()}) {
    if (stage != Stage::kWhole) AddScratch();
  }

  EmittedLaunch Emit() {
    OpenGroup();
    if (IsWrittenOut()) written_out_ = ElementsOf(0, CeilDiv(share_.part_elements, share_.lanes));
    for (const auto& level : levels_) ReduceLevel(level);
    if (stage_ != Stage::kParts) {
      StoreResults();
      StoreWideResults();
    }
    return CloseGroup();
  }

 private:
  // One element of an item.
  struct Element {
    size_t slot;  // of the lanes that the item plays
    Index at;
    Indices place;  // in the reduces' operands
    Expr mask;      // null: there is one
  };
  using Elements = std::vector<Element>;

  // A reduce while an item walks its elements.
  struct Running {
    const Instruction* reduce;
    size_t number;  // among the level's
    Opcode opcode;
    hlo::ElementType type;
    Value neutral;
    std::vector<ir::Var> re, im;  // one a slot
  };

  size_t slots() const { return static_cast<size_t>(share_.lanes / share_.items); }

  void AddScratch() {
    int64_t offset = 0;
    for (const Instruction* reduce : levels_[0]) {
      const hlo::ElementType type = reduce->shape().element_type();
      const int64_t count = shape_.results() * parts_ * (hlo::IsComplex(type) ? 2 : 1);
      scratch_.push_back(e_.Scratch("part" + std::to_string(scratch_.size()), PartialType(type), count, offset,
                                    stage_ == Stage::kParts));
      offset += PartialBytes(*reduce, shape_.results() * parts_);
    }
  }
  // Where part `part` of this item's result is in scratch: parts side by side for rows, results for columns.
  Expr ScratchPlace(const Index& part) {
    const Index at = shape_.IsRows() ? e_.math().Add(e_.math().Mul(items_.result(), parts_), part)
                                     : e_.math().Add(e_.math().Mul(part, shape_.results()), items_.result());
    return e_.math().ToExpr(at);
  }

  void OpenGroup() {
    if (stage_ == Stage::kParts) part_var_ = e_.IndexVar("part", parts_);
    items_.Open();
    kept_ = e_.math().Delinearize(items_.result(), shape_.Of(shape_.kept));
  }

  EmittedLaunch CloseGroup() {
    ir::Stmt body = items_.Close();
    if (part_var_) body = ir::For(ir::LoopRole::kParallel, part_var_, e_.IndexInt(0), e_.IndexInt(parts_), body);
    e_.GroupOf(share_.group());
    return e_.Finish(body, 1);
  }

  bool IsWrittenOut() const {
    const int64_t mine = CeilDiv(share_.part_elements, share_.lanes) * static_cast<int64_t>(slots());
    const int64_t instructions = e_.instruction().Is(Opcode::kFusion)
                                     ? static_cast<int64_t>(e_.instruction().called()->instructions().size())
                                     : 1;
    return mine <= kMostWrittenOut && mine * instructions <= kMostValuesWrittenOut;
  }

  Expr Both(const Expr& a, const Expr& b) { return e_.values().Both(a, b); }

  // This item's elements of `count` steps from step `first` on; a step is one element a lane.
  Elements ElementsOf(const Index& first, int64_t count) {
    IndexMath& math = e_.math();
    const Index begin = part_var_ ? math.Mul(math.Of(part_var_), share_.part_elements) : Index(0);
    const Dims dims = shape_.Of(shape_.reduced);
    Elements elements;
    for (int64_t step = 0; step < count; ++step) {
      for (size_t slot = 0; slot < slots(); ++slot) {
        const Index within = math.Add(math.Add(math.Mul(math.Add(first, step), share_.lanes), items_.lane()),
                                      static_cast<int64_t>(slot) * share_.items);
        Element element{slot, math.Add(begin, within), {}, nullptr};
        element.mask =
            Both(Both(nullptr, math.Within(within, 0, share_.part_elements)), math.Within(element.at, 0, elements_));
        if (stage_ != Stage::kJoin) element.place = shape_.Place(kept_, math.Delinearize(element.at, dims));
        elements.push_back(std::move(element));
      }
    }
    return elements;
  }

  // One sweep: all of the item's elements in their order, by batches.
  void Sweep(const std::function<void(const Elements&)>& body) {
    if (!written_out_.empty()) return body(written_out_);
    const int64_t whole = share_.part_elements / share_.lanes;  // steps
    const int64_t steps = std::max<int64_t>(1, kLoadsTogether / static_cast<int64_t>(slots()));
    const int64_t batches = whole / steps;
    if (batches > 0) {
      e_.values().SerialLoop(batches,
                             [&](const Index& batch) { body(ElementsOf(e_.math().Mul(batch, steps), steps)); });
    }
    const int64_t rest = CeilDiv(share_.part_elements, share_.lanes) - batches * steps;
    if (rest > 0) body(ElementsOf(batches * steps, rest));
  }

  void ReduceLevel(const std::vector<const Instruction*>& level) {
    std::vector<Running> running;
    for (size_t i = 0; i < level.size(); ++i) {
      // Others are computed where they are needed, in serial loops.
      if (HasLanes(*level[i]) && IsLikeHero(*level[i])) running.push_back(Start(*level[i], i));
    }
    if (running.empty()) return;
    Sweep([&](const Elements& elements) { Accumulate(running, elements); });
    std::vector<LaneValue> lanes;
    for (const Running& r : running) {
      std::vector<Value> sums;
      for (size_t slot = 0; slot < slots(); ++slot) sums.push_back(SumOf(r, slot));
      lanes.push_back({r.opcode, r.type, JoinHalving(r.opcode, r.type, std::move(sums), e_.body())});
    }
    const std::vector<Value> totals = JoinLanes(e_, items_.Team(), std::move(lanes));
    if (stage_ == Stage::kParts) return StorePartials(totals);
    for (size_t i = 0; i < running.size(); ++i) {
      const Value initial = e_.values().Get(e_.frame(), *running[i].reduce->operand(1), {});
      const Value result = EmitBinary(running[i].opcode, running[i].type, initial, totals[i], e_.body());
      e_.values().Remember(e_.frame(), *running[i].reduce, kept_, {result});
    }
  }

  bool IsLikeHero(const Instruction& reduce) const {
    const ReducedShape other = ReducedShapeOf(reduce);
    return other.dimensions == shape_.dimensions && other.kept == shape_.kept;
  }

  Running Start(const Instruction& reduce, size_t number) {
    const Opcode opcode = hlo::ReducerOpcode(*reduce.called()).value();
    const hlo::ElementType type = reduce.shape().element_type();
    Running running{&reduce, number, opcode, type, NeutralOf(opcode, type).value(), {}, {}};
    for (size_t slot = 0; slot < slots(); ++slot) {
      running.re.push_back(e_.body().Mutable(running.neutral.re));
      running.im.push_back(running.neutral.im ? e_.body().Mutable(running.neutral.im) : nullptr);
    }
    return running;
  }
  static Value SumOf(const Running& r, size_t slot) {
    return {ir::Ref(r.re[slot]), r.im[slot] ? ir::Ref(r.im[slot]) : nullptr};
  }

  // All loads first, so that they are under way together.
  void Accumulate(const std::vector<Running>& running, const Elements& elements) {
    std::vector<std::vector<Value>> values;
    for (const Element& element : elements) {
      std::vector<Value>& of_element = values.emplace_back();
      for (const Running& r : running) {
        const Value x = ValueAt(r, element);
        of_element.push_back(element.mask ? SelectValue(element.mask, x, r.neutral) : x);
      }
    }
    for (size_t i = 0; i < elements.size(); ++i) {
      const size_t slot = elements[i].slot;
      for (size_t j = 0; j < running.size(); ++j) {
        const Running& r = running[j];
        const Value sum = EmitBinary(r.opcode, r.type, SumOf(r, slot), values[i][j], e_.body());
        e_.body().Add(ir::Assign(r.re[slot], sum.re));
        if (sum.im) e_.body().Add(ir::Assign(r.im[slot], sum.im));
      }
    }
  }

  Value ValueAt(const Running& r, const Element& element) {
    if (stage_ != Stage::kJoin) return e_.values().Get(e_.frame(), *r.reduce->operand(0), element.place, element.mask);
    const Expr at = ScratchPlace(element.at);
    const bool is_complex = hlo::IsComplex(r.type);
    const auto load = [&](const Expr& place) {
      return e_.body().Name(ir::Load(scratch_[r.number], place, element.mask));
    };
    return {load(is_complex ? at * 2 : at), is_complex ? load(at * 2 + 1) : nullptr};
  }

  void StorePartials(const std::vector<Value>& totals) {
    items_.OnFirstLaneOfEach([&] {
      const Expr at = ScratchPlace(e_.math().Of(part_var_));
      for (size_t i = 0; i < totals.size(); ++i) {
        e_.body().Add(ir::Store(scratch_[i], totals[i].im ? at * 2 : at, totals[i].re));
        if (totals[i].im) e_.body().Add(ir::Store(scratch_[i], at * 2 + 1, totals[i].im));
      }
    });
  }

  bool IsWide(const Emission::Output& output) const { return output.shape.ElementCount() != shape_.results(); }

  void StoreResults() {
    items_.OnFirstLaneOfEach([&] {
      for (const Emission::Output& output : e_.outputs()) {
        if (IsWide(output)) continue;
        const Indices at = output.shape.dimensions() == shape_.Of(shape_.kept)
                               ? kept_
                               : e_.math().Delinearize(items_.result(), output.shape.dimensions());
        e_.Store(output, at, e_.ValueOf(output, at));
      }
    });
  }

  void StoreWideResults() {
    const auto is_wide = [&](const Emission::Output& output) { return IsWide(output); };
    if (std::none_of(e_.outputs().begin(), e_.outputs().end(), is_wide)) return;
    Sweep([&](const Elements& elements) {
      struct Result {
        const Emission::Output& output;
        Indices at;
        Value value;
      };
      for (const Element& element : elements) {
        std::vector<Result> results;
        const Index linear = e_.math().Linearize(element.place, shape_.dimensions);
        for (const Emission::Output& output : e_.outputs()) {
          if (!IsWide(output)) continue;
          const Indices at = output.shape.dimensions() == shape_.dimensions
                                 ? element.place
                                 : e_.math().Delinearize(linear, output.shape.dimensions());
          results.push_back(
              {output, at, e_.values().GetAll(*output.frame, *output.root, at, element.mask)[output.element]});
        }
        e_.values().Open();
        for (const Result& r : results) e_.Store(r.output, r.at, r.value);
        const ir::Stmt stores = e_.values().Close();
        const Expr mask = Both(element.mask, items_.has_result());
        e_.body().Add(mask ? ir::If(mask, stores) : stores);
      }
    });
  }

  Emission e_;
  Stage stage_;
  ReducedShape shape_;
  Levels levels_;
  int64_t parts_;
  int64_t elements_;  // that are reduced: the parts, where they are joined
  ReductionShare share_;
  std::vector<ir::BufferRef> scratch_;
  ResultItems items_;
  ir::Var part_var_;
  Indices kept_;
  Elements written_out_;
};

}  // namespace

bool HasGroupReduction(const Instruction& instruction, const Instruction& reduce, const DeviceSpec& device) {
  if (device.device_class != DeviceClass::kGpu) return false;
  const ReducedShape shape = ReducedShapeOf(reduce);
  const int64_t all = shape.results() * shape.elements();
  if (all == 0) return false;
  for (const hlo::Shape& leaf : PartShapesOf(instruction)) {
    if (leaf.ElementCount() != shape.results() && leaf.ElementCount() != all) return false;
  }
  // Every other reduce is serial here as well as in a loop, but a loop has more items.
  const Levels levels = ReduceLevels(instruction);
  return std::any_of(levels.begin(), levels.end(), [](const auto& level) {
    return std::any_of(level.begin(), level.end(), [](const Instruction* op) { return HasLanes(*op); });
  });
}

int64_t GroupReductionScratchBytes(const Instruction& instruction, const Instruction& reduce,
                                   const DeviceSpec& device) {
  const ReductionShare share = WholeShareOf(instruction, reduce, device);
  if (share.parts == 1) return 0;
  const Levels levels = ReduceLevels(instruction);
  int64_t bytes = 0;
  for (const Instruction* each : levels[0])
    bytes += PartialBytes(*each, ReducedShapeOf(reduce).results() * share.parts);
  return bytes;
}

Launches EmitGroupReduction(const EmitRequest& request) {
  const ReductionShare share = WholeShareOf(request.instruction, *request.hero.instruction, request.context.device);
  Launches launches;
  if (share.parts == 1) {
    launches.push_back(GroupReduction(request, Stage::kWhole).Emit());
    return launches;
  }
  launches.push_back(GroupReduction(request, Stage::kParts).Emit());
  launches.push_back(GroupReduction(request, Stage::kJoin).Emit());
  return launches;
}

}  // namespace hlorun::opencl
