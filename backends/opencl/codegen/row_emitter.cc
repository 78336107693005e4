#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <set>

#include "backends/opencl/codegen/bf16_pairs.h"
#include "backends/opencl/codegen/cache_line.h"
#include "backends/opencl/codegen/emission.h"
#include "backends/opencl/codegen/emitters.h"
#include "backends/opencl/codegen/extent_expr.h"
#include "backends/opencl/codegen/extreme_lanes.h"
#include "backends/opencl/codegen/jam.h"
#include "backends/opencl/codegen/lane_fold.h"
#include "backends/opencl/codegen/reducers.h"
#include "backends/opencl/codegen/row_shape.h"
#include "backends/opencl/codegen/vector_registers.h"
#include "backends/opencl/codegen/written_out.h"
#include "hlo/builder.h"
#include "hlo/error.h"
#include "hlo/rounding.h"

namespace hlorun::opencl {
namespace {

using hlo::Dims;
using hlo::Instruction;
using hlo::Opcode;
using ir::Expr;

// Shorter rows leave the vectors to the kept dimensions, which spares them the lanes' folding and the lanes that stay
// empty; sums of what is only read do so where rows are shorter still, extremes, whose fold is long, where they are not
// much longer.
constexpr int64_t kShortestRow = 16, kShortestSummedRow = 8, kShortestExtremeRow = 36;
constexpr int64_t kSplitRow = 1 << 15;      // elements from which a row may be shared by several groups
constexpr int64_t kPartElements = 1 << 13;  // ... of at least so many each
constexpr int64_t kKeptBytes = 1 << 16;     // of private memory for what several sweeps over a row need
constexpr int64_t kMostParts = 64;          // independent of the device, so that results are
// Rows that are walked two at a time: steps of the longest (longer ones wait for memory), and how many rows there are
// at least.
constexpr int64_t kLongestPairedRow = 32, kFewestPairedRows = 128;

// Groups that share a row; 1: each row is one group's.
int64_t PartsOfRow(const Instruction& instruction, const Instruction& reduce) {
  const RowShape shape = RowShapeOf(reduce);
  const int64_t elements = shape.outer_count() * shape.length();
  if (shape.rows() > 16 || elements < kSplitRow) return 1;
  const auto levels = ReduceLevels(instruction);
  if (levels.size() > 1) return 1;
  for (const Instruction* other : levels[0]) {
    if (!HasLanes(*other) || !ReduceAlike(*other, reduce)) return 1;
  }
  for (const hlo::Shape& leaf : PartShapesOf(instruction)) {
    if (leaf.ElementCount() != shape.rows()) return 1;
  }
  const int64_t whole = shape.outer.empty() ? shape.length() : shape.outer_count();
  const int64_t parts = std::max<int64_t>(1, std::min({kMostParts, elements / kPartElements, whole}));
  // Equal parts need no masks.
  for (int64_t equal = parts; equal > parts / 2; --equal) {
    if (whole % equal == 0) return equal;
  }
  return parts;
}

// A reduce while its rows are walked.
struct Lane {
  const Instruction* reduce;
  Opcode opcode;
  hlo::ElementType type;
  Value neutral;
  ir::BufferRef re, im;             // accumulators: unroll * lanes
  ir::BufferRef signs, magnitudes;  // of an extreme (extreme_lanes.h): one step's lanes
};

class RowKernel {
 public:
  explicit RowKernel(const EmitRequest& request)
      : e_(request.instruction, request.aliases, request.context), shape_(RowShapeOf(*request.hero.instruction)) {
    lanes_ = e_.Lanes();
    while (lanes_ > 1 && lanes_ > shape_.length()) lanes_ /= 2;
    pairs_ = WorthPairs(e_.device(), lanes_, shape_.length()) && IsBf16(request.instruction);
    step_ = pairs_ ? 2 * lanes_ : lanes_;
    unroll_ = StepsTogether();
  }

  Emission& emission() { return e_; }

  // Rows, each by one group: every reduction in turn, then the results.
  EmittedLaunch Whole() {
    OpenRow();
    const auto levels = ReduceLevels(e_.instruction());
    ChooseKept(levels);
    WriteOutParts();
    asking_sweep_ = levels.size() - 1;
    for (sweep_ = 0; sweep_ < levels.size(); ++sweep_) {
      ReduceLevel(levels[sweep_], {0, shape_.outer_count()}, {0, shape_.length()}, nullptr);
      for (const Kept& kept : kept_values_) {
        if (kept.sweep == sweep_) e_.values().Keep(e_.frame(), *kept.value, Frame::InMemory{kept.buffer, shape_.row});
      }
    }
    StoreOutputs();
    return CloseRow(nullptr, 1);
  }

  // The first of two launches: part p of each row, without initial values, into scratch.
  EmittedLaunch Parts(int64_t parts) {
    OpenRow();
    const ir::Var item = e_.IndexVar("part", parts);
    const auto level = ReduceLevels(e_.instruction())[0];
    const int64_t whole = shape_.outer.empty() ? shape_.length() : shape_.outer_count();
    const int64_t size = (whole + parts - 1) / parts;
    const Index part = SizeOf(level, shape_.outer.empty() ? shape_.row : shape_.outer)
                           ? Scattered(e_.math().Of(item), parts)
                           : e_.math().Of(item);
    const Index begin = e_.math().Mul(part, size);
    PartialTarget target{e_.math().Add(e_.math().Mul(row_, parts), part), ScratchFor(level, parts, /*written=*/true)};
    const Bounds piece{begin, std::min(size, whole), whole};
    if (shape_.outer.empty())
      ReduceLevel(level, {0, 1}, piece, &target);
    else
      ReduceLevel(level, piece, {0, shape_.length()}, &target);
    return CloseRow(item, parts);
  }

  // The second: parts in order, then the results.
  EmittedLaunch Join(int64_t parts) {
    OpenRow();
    const auto level = ReduceLevels(e_.instruction())[0];
    const std::vector<ir::BufferRef> scratch = ScratchFor(level, parts, /*written=*/false);
    for (size_t i = 0; i < level.size(); ++i) {
      const Instruction& reduce = *level[i];
      const hlo::ElementType type = reduce.shape().element_type();
      const Value initial = e_.values().Get(e_.frame(), *reduce.operand(1), {});
      const ir::Var re = e_.body().Mutable(initial.re), im = initial.im ? e_.body().Mutable(initial.im) : nullptr;
      e_.values().SerialLoop(parts, [&](const Index& p) {
        const Expr at = e_.math().ToExpr(e_.math().Add(e_.math().Mul(row_, parts), p));
        Value partial{ir::Load(scratch[i], im ? at * 2 : at), im ? ir::Load(scratch[i], at * 2 + 1) : nullptr};
        const Value sum = EmitBinary(*hlo::ReducerOpcode(*reduce.called()), type,
                                     {ir::Ref(re), im ? ir::Ref(im) : nullptr}, partial, e_.body());
        e_.body().Add(ir::Assign(re, sum.re));
        if (im) e_.body().Add(ir::Assign(im, sum.im));
      });
      e_.values().Remember(e_.frame(), reduce, kept_, {{ir::Ref(re), im ? ir::Ref(im) : nullptr}});
    }
    StoreOutputs();
    return CloseRow(nullptr, 1);
  }

  static int64_t ScratchBytes(const Instruction& instruction, const Instruction& hero, int64_t parts) {
    int64_t bytes = 0;
    const auto levels = ReduceLevels(instruction);
    for (const Instruction* reduce : levels[0]) bytes += PartialBytes(*reduce, RowShapeOf(hero).rows() * parts);
    return bytes;
  }

 private:
  // begin .. begin + count of `whole` (count beyond whole - begin is masked).
  struct Bounds {
    Index begin;
    int64_t count;
    int64_t whole;
    Bounds(Index b, int64_t c, int64_t w) : begin(std::move(b)), count(c), whole(w) {}
    Bounds(Index b, int64_t c) : begin(std::move(b)), count(c), whole(c) {}
  };
  struct PartialTarget {
    Index at;
    std::vector<ir::BufferRef> buffers;
  };

  // As many as hide the latency of their sums; of pairs, as divide the row, since those have no scalar rest.
  int64_t StepsTogether() const {
    const int64_t steps = shape_.length() / step_;
    if (!pairs_) return steps >= 16 ? 4 : 1;
    int64_t together = steps >= 16 ? 4 : 2;
    while (steps % together != 0) together /= 2;
    return together;
  }

  // All arrays of the rows' shape that come from memory or go there are bf16.
  bool IsBf16(const Instruction& instruction) const {
    const auto is_other = [&](const hlo::Shape& shape) {
      return shape.ElementCount() > shape_.rows() && shape.element_type() != hlo::ElementType::kBF16;
    };
    for (const Instruction* operand : instruction.operands()) {
      if (!operand->shape().IsArray() || is_other(operand->shape())) return false;
    }
    const std::vector<hlo::Shape> results = PartShapesOf(instruction);
    return std::none_of(results.begin(), results.end(), is_other);
  }

  // What is expensive, of the rows' shape, and needed by several sweeps over a row: the first one keeps it.
  struct Kept {
    const Instruction* value;
    size_t sweep;
    ir::BufferRef buffer;
  };

  void ChooseKept(const std::vector<std::vector<const Instruction*>>& levels) {
    if (shape_.outer_count() != 1 || !e_.instruction().Is(Opcode::kFusion)) return;
    std::vector<std::set<const Instruction*>> sweeps;
    for (const auto& level : levels) {
      std::set<const Instruction*>& needed = sweeps.emplace_back();
      for (const Instruction* reduce : level) {
        if (!HasLanes(*reduce) || !ReducesRows(*reduce, shape_)) continue;
        for (const size_t d : shape_.row) {
          if (passes::NeutralFrom(*reduce, static_cast<int64_t>(d)) != nullptr)
            return;  // sweeps end where the size says
        }
        Reach(reduce->operand(0), needed);
      }
    }
    std::set<const Instruction*>& needed = sweeps.emplace_back();
    for (const auto& output : e_.outputs()) {
      if (output.frame == &e_.frame()) Reach(output.root, needed);
    }
    std::set<const Instruction*> covered;  // by what is computed from it
    const std::vector<Instruction*> order = e_.instruction().called()->PostOrder();
    for (auto op = order.rbegin(); op != order.rend(); ++op) {
      if (!IsExpensive(**op) || covered.count(*op) != 0 || !IsReadInItsRow(**op, shape_)) continue;
      const auto needs = [&](const auto& sweep) { return sweep.count(*op) != 0; };
      const auto first = std::find_if(sweeps.begin(), sweeps.end(), needs);
      if (std::count_if(sweeps.begin(), sweeps.end(), needs) < 2) continue;
      const ir::BufferRef buffer = RowInPrivate(**op);
      if (buffer == nullptr) return;
      kept_values_.push_back({*op, static_cast<size_t>(first - sweeps.begin()), buffer});
      Reach(*op, covered);
    }
  }

  // Private memory for a row of `op`, which is computed in f32; null when there is no room.
  ir::BufferRef RowInPrivate(const Instruction& op) {
    const bool is_bf16 = op.shape().element_type() == hlo::ElementType::kBF16 && pairs_;
    const hlo::ElementType type = is_bf16 ? hlo::ElementType::kBF16 : hlo::ElementType::kF32;
    const int64_t size = shape_.length() + step_ * unroll_;  // the last vector may pass the end
    room_ -= size * hlo::BytesOf(type);
    return room_ < 0 ? nullptr : e_.PrivateArray("kept", type, size);
  }

  void WriteOutParts() {
    for (const Instruction* value : ValuesToWriteOut(e_.instruction(), shape_, step_)) {
      const hlo::ElementType type = value->shape().element_type();
      if (ValueType(type).element != hlo::ElementType::kF32 || hlo::IsComplex(type)) continue;
      const ir::BufferRef buffer = RowInPrivate(*value);
      if (buffer == nullptr) return;
      WriteOut(
          e_, *value, shape_, [&](const Index& j) { return Place(0, j); }, buffer, lanes_);
      e_.values().Keep(e_.frame(), *value, Frame::InMemory{buffer, shape_.row});
    }
  }

  // `op` and what it is computed from element by element.
  void Reach(const Instruction* op, std::set<const Instruction*>& reached) const {
    if (op->shape().dimensions() != shape_.dimensions || !IsElementwise(*op) || !reached.insert(op).second) return;
    for (const Instruction* operand : op->operands()) Reach(operand, reached);
  }

  // Rounding to bf16 takes as long as several ops of f32.
  static bool IsExpensive(const Instruction& op) {
    const hlo::ElementType type = op.shape().IsArray() ? op.shape().element_type() : hlo::ElementType::kPred;
    const bool rounds = type == hlo::ElementType::kBF16 && !hlo::NeverRounds(op.opcode());
    return (hlo::HasTrait(op.opcode(), hlo::kExpensive) || rounds) &&
           ValueType(type).element == hlo::ElementType::kF32 && !hlo::IsComplex(type);
  }

  std::vector<ir::BufferRef> ScratchFor(const std::vector<const Instruction*>& level, int64_t parts, bool written) {
    std::vector<ir::BufferRef> buffers;
    int64_t offset = 0;
    for (const Instruction* reduce : level) {
      const hlo::ElementType type = reduce->shape().element_type();
      const int64_t count = shape_.rows() * parts * (hlo::IsComplex(type) ? 2 : 1);
      buffers.push_back(e_.Scratch("part" + std::to_string(buffers.size()), PartialType(type), count, offset, written));
      offset += PartialBytes(*reduce, shape_.rows() * parts);
    }
    return buffers;
  }

  // One loop over all rows; one a dimension where the results' sizes end some of them early.
  void OpenRow() {
    std::vector<std::optional<passes::OperandExtent>> extents;
    for (size_t i = 0; i < shape_.kept.size(); ++i) extents.push_back(KeptExtent(i));
    const bool sized = std::any_of(extents.begin(), extents.end(), [](const auto& e) { return e.has_value(); });
    if (!sized) {
      row_loops_.push_back({e_.IndexVar("row", shape_.rows()), e_.IndexInt(shape_.rows())});
      row_ = e_.math().Of(row_loops_[0].first);
      kept_ = e_.math().Delinearize(row_, shape_.Of(shape_.kept));
    } else {
      for (size_t i = 0; i < shape_.kept.size(); ++i) {
        const int64_t size = shape_.dimensions[shape_.kept[i]];
        row_loops_.push_back({e_.IndexVar("row" + std::to_string(i), size),
                              extents[i] ? e_.ValueOf(*extents[i], size) : e_.IndexInt(size)});
        kept_.push_back(e_.math().Of(row_loops_.back().first));
      }
      row_ = e_.math().Linearize(kept_, shape_.Of(shape_.kept));
    }
    e_.values().Open();
  }

  // How far kept dimension `i` is needed.
  std::optional<passes::OperandExtent> KeptExtent(size_t i) const {
    return e_.SharedExtent([&](const Emission::Output& output) {
      if (output.shape.dimensions() == shape_.Of(shape_.kept)) return static_cast<int64_t>(i);
      return output.shape.dimensions() == shape_.dimensions ? static_cast<int64_t>(shape_.kept[i]) : Emission::kUnknown;
    });
  }

  // The slowest of `numbers` that is not 1: so many of its elements are one run of those that are counted together.
  std::optional<size_t> SlowestOf(const std::vector<size_t>& numbers) const {
    const auto found =
        std::find_if(numbers.begin(), numbers.end(), [&](size_t d) { return shape_.dimensions[d] != 1; });
    return found == numbers.end() ? std::nullopt : std::optional(*found);
  }

  // The size of the slowest of these dimensions beyond which all of these reductions meet neutral elements only; null
  // when there is none that is known.
  const Instruction* SizeOf(const std::vector<const Instruction*>& reduces, const std::vector<size_t>& numbers) const {
    const std::optional<size_t> d = SlowestOf(numbers);
    return d ? CommonSize(reduces, static_cast<int64_t>(*d)) : nullptr;
  }

  // As a count over `numbers` together, of which there are `whole`; null when SizeOf is.
  Expr LiveCount(const std::vector<Lane>& lanes, const std::vector<size_t>& numbers, int64_t whole) {
    std::vector<const Instruction*> reduces;
    reduces.reserve(lanes.size());
    for (const Lane& lane : lanes) reduces.push_back(lane.reduce);
    const Instruction* size = SizeOf(reduces, numbers);
    if (size == nullptr) return nullptr;
    const int64_t slowest = shape_.dimensions[*SlowestOf(numbers)];
    const Expr value = ir::Cast(e_.values().Get(e_.frame(), *size, {}).re, e_.math().type().element);
    return e_.body().Name(ExtentExpr(value, {}, slowest) * (whole / slowest), "live");
  }

  // Another order of 0 .. parts, in which the first few are far from one another: where only they have work, groups
  // that take a run of parts each share it.
  Index Scattered(const Index& part, int64_t parts) {
    int64_t stride = std::max<int64_t>(1, parts * 5 / 8);
    while (std::gcd(stride, parts) != 1) ++stride;
    return e_.math().Mod(e_.math().Mul(part, stride), parts);
  }

  EmittedLaunch CloseRow(const ir::Var& part, int64_t parts) {
    ir::Stmt body = e_.values().Close();
    if (!part && GoesByTwoRows()) body = ByTwoRows(body);
    const int64_t grain = GrainOfVectors(WorkOf(body), lanes_);
    if (part) body = ir::For(ir::LoopRole::kParallel, part, e_.IndexInt(0), e_.IndexInt(parts), body);
    for (auto loop = row_loops_.rbegin(); loop != row_loops_.rend(); ++loop) {
      body = ir::For(ir::LoopRole::kParallel, loop->first, e_.IndexInt(0), loop->second, body);
    }
    return e_.Finish(body, grain);
  }

  // Whether two short rows at a time hide what each waits for, and the vectors of both stay in registers. What comes
  // from memory waits for that.
  bool GoesByTwoRows() const {
    const bool has_registers = VectorRegisters(e_.device()) == 32;
    const bool is_short = shape_.length() <= kLongestPairedRow * step_;
    const bool all_there = row_loops_.size() == 1 && ir::IsIntConstant(row_loops_[0].second, shape_.rows());
    return has_registers && is_short && all_there && shape_.rows() % 2 == 0 && shape_.rows() >= kFewestPairedRows &&
           shape_.outer_count() == 1 && BytesMoved() <= e_.device().l3_bytes / 2;
  }

  int64_t BytesMoved() const {
    int64_t bytes = e_.instruction().shape().ByteSize();
    for (const Instruction* operand : e_.instruction().operands()) bytes += operand->shape().ByteSize();
    return bytes;
  }

  ir::Stmt ByTwoRows(const ir::Stmt& body) {
    const ir::Var row = row_loops_[0].first, two = e_.IndexVar("rows", shape_.rows() / 2);
    row_loops_[0] = {two, e_.IndexInt(shape_.rows() / 2)};
    return Jammed(body, row, ir::Ref(two) * 2, ir::Ref(two) * 2 + 1);
  }

  // The operand's index at a place of a row.
  Indices Place(const Index& outer, const Index& j) {
    Indices place(shape_.dimensions.size());
    const auto put = [&](const std::vector<size_t>& numbers, const Indices& at) {
      for (size_t i = 0; i < numbers.size(); ++i) place[numbers[i]] = at[i];
    };
    put(shape_.kept, kept_);
    put(shape_.outer, e_.math().Delinearize(outer, shape_.Of(shape_.outer)));
    put(shape_.row, e_.math().Delinearize(j, shape_.Of(shape_.row)));
    return place;
  }

  void ReduceLevel(const std::vector<const Instruction*>& level, const Bounds& outer, const Bounds& inner,
                   const PartialTarget* target) {
    std::vector<Lane> lanes;
    for (const Instruction* reduce : level) {
      // Reduces of other rows, or by any computation, are computed where they are needed, in serial loops.
      if (!HasLanes(*reduce) || !ReducesRows(*reduce, shape_)) continue;
      const Opcode opcode = hlo::ReducerOpcode(*reduce->called()).value();
      const hlo::ElementType type = reduce->shape().element_type();
      Lane lane{reduce, opcode, type, NeutralOf(opcode, type).value(), Accumulator(type), nullptr, nullptr, nullptr};
      if (hlo::IsComplex(type)) lane.im = Accumulator(type);
      if (IsExtreme(opcode) && PartialType(type) == hlo::ElementType::kF32) {
        lane.signs = PrivateLanes(hlo::ElementType::kS32, step_);
        lane.magnitudes = PrivateLanes(hlo::ElementType::kS32, step_);
      }
      lanes.push_back(lane);
    }
    if (lanes.empty()) return;
    for (int64_t first = 0; first < step_ * unroll_; first += lanes_) {
      ForLanes(lanes_, [&](const Index& l) {
        for (const Lane& lane : lanes) StoreLane(lane, e_.math().Add(l, first), lane.neutral);
        for (const Lane& lane : lanes) {
          if (lane.signs && first < step_) StoreMarks(lane, e_.math().Add(l, first), ExtremeOfNone(lane.opcode));
        }
      });
    }
    Accumulate(lanes, outer, inner);
    for (size_t i = 0; i < lanes.size(); ++i) {
      const Value total = Horizontal(lanes[i]);
      if (target != nullptr) {
        const Expr at = e_.math().ToExpr(target->at);
        e_.body().Add(ir::Store(target->buffers[i], total.im ? at * 2 : at, total.re));
        if (total.im) e_.body().Add(ir::Store(target->buffers[i], at * 2 + 1, total.im));
        continue;
      }
      const Value initial = e_.values().Get(e_.frame(), *lanes[i].reduce->operand(1), {});
      const Value result = EmitBinary(lanes[i].opcode, lanes[i].type, initial, total, e_.body());
      e_.values().Remember(e_.frame(), *lanes[i].reduce, kept_, {result});
    }
  }

  ir::BufferRef Accumulator(hlo::ElementType type) {
    ir::BufferRef buffer = e_.PrivateArray("lanes", PartialType(type), step_ * unroll_);
    buffer->unordered = true;
    return buffer;
  }

  ir::BufferRef PrivateLanes(hlo::ElementType type, int64_t size) {
    ir::BufferRef buffer = e_.PrivateArray("marks", type, size);
    buffer->unordered = true;
    return buffer;
  }
  void StoreMarks(const Lane& lane, const Index& l, const ExtremeSoFar& state) {
    e_.body().Add(ir::Store(lane.signs, e_.math().ToExpr(l), state.signs));
    e_.body().Add(ir::Store(lane.magnitudes, e_.math().ToExpr(l), state.magnitude));
  }

  Value LoadLane(const Lane& lane, const Index& l) {
    const Expr at = e_.math().ToExpr(l);
    return {e_.body().Name(ir::Load(lane.re, at)), lane.im ? e_.body().Name(ir::Load(lane.im, at)) : nullptr};
  }
  void StoreLane(const Lane& lane, const Index& l, const Value& value) {
    const Expr at = e_.math().ToExpr(l);
    e_.body().Add(ir::Store(lane.re, at, value.re));
    if (lane.im) e_.body().Add(ir::Store(lane.im, at, value.im));
  }

  // Lanes 0 .. count, side by side.
  void ForLanes(int64_t count, const std::function<void(const Index&)>& body) {
    const ir::Stmt loop = LoopOfLanes(e_, count, static_cast<int>(std::min<int64_t>(lanes_, count)), body);
    e_.body().Add(pairs_ ? ir::WithPairs(loop) : loop);
  }

  // Element j of a row into lane l, which is lane `within` of its step.
  void Step(const std::vector<Lane>& lanes, const Index& outer, const Index& j, const Index& l, const Index& within,
            const Expr& mask) {
    const Indices place = Place(outer, j);
    std::vector<Value> sums;
    for (const Lane& lane : lanes) {
      Value x = e_.values().Get(e_.frame(), *lane.reduce->operand(0), place, mask);
      if (mask) x = SelectValue(mask, x, lane.neutral);
      sums.push_back(lane.signs ? Marked(lane, LoadLane(lane, l), x, within) : Combined(lane, LoadLane(lane, l), x));
    }
    for (size_t i = 0; i < lanes.size(); ++i) StoreLane(lanes[i], l, sums[i]);
    for (const Kept& kept : kept_values_) {
      if (kept.sweep != sweep_) continue;
      e_.body().Add(
          ir::Store(kept.buffer, e_.math().ToExpr(j), e_.values().Get(e_.frame(), *kept.value, place, mask).re));
    }
  }

  Value Marked(const Lane& lane, const Value& so_far, const Value& x, const Index& within) {
    const Expr at = e_.math().ToExpr(within);
    const ExtremeSoFar before{so_far.re, e_.body().Name(ir::Load(lane.signs, at)),
                              e_.body().Name(ir::Load(lane.magnitudes, at))};
    const ExtremeSoFar both = ExtremeOfBoth(lane.opcode, before, ExtremeOf(x.re), e_.body());
    StoreMarks(lane, within, both);
    return {both.best, nullptr};
  }

  Value Combined(const Lane& lane, const Value& sum, const Value& x) {
    const Instruction& operand = *lane.reduce->operand(0);
    const bool adds_bf16 = pairs_ && lane.opcode == Opcode::kAdd && lane.type == hlo::ElementType::kF32 &&
                           operand.Is(Opcode::kConvert) &&
                           operand.operand(0)->shape().element_type() == hlo::ElementType::kBF16;
    if (!adds_bf16) return EmitBinary(lane.opcode, lane.type, sum, x, e_.body());
    return {e_.body().Name(ir::Call(ir::kF32Type, kAddBf16, {sum.re, x.re})), nullptr};
  }

  // `limit` times at most, until `end` where it is not null.
  void SerialUntil(int64_t limit, const Expr& end, const std::function<void(const Index&)>& body) {
    if (end == nullptr) return e_.values().SerialLoop(limit, body);
    const ir::Var variable = e_.IndexVar(e_.body().FreshName("k"), limit);
    e_.values().Open();
    body(e_.math().Of(variable));
    e_.body().Add(ir::For(ir::LoopRole::kSerial, variable, e_.IndexInt(0), ir::Min(end, e_.IndexInt(limit)),
                          e_.values().Close()));
  }

  void Accumulate(const std::vector<Lane>& lanes, const Bounds& outer, const Bounds& inner) {
    IndexMath& math = e_.math();
    const auto live_of = [&](const std::vector<size_t>& numbers, const Bounds& bounds) {
      Expr live = LiveCount(lanes, numbers, bounds.whole);
      if (!live || bounds.begin == Index(0)) return live;
      return e_.body().Name(ir::Max(live - math.ToExpr(bounds.begin), e_.IndexInt(0)), "live");
    };
    const Expr live = live_of(shape_.row, inner);
    // Steps of `size` elements after `first` that reach all live ones.
    const auto steps = [&](int64_t first, int64_t size) -> Expr {
      if (!live) return nullptr;
      const Expr room = ir::Max(live + (size - 1 - first), e_.IndexInt(0));
      return e_.body().Name(ir::Binary(ir::Op::kFloorDiv, room, e_.IndexInt(size)), "steps");
    };
    SerialUntil(outer.count, live_of(shape_.outer, outer), [&](const Index& o) {
      const Index at_outer = math.Add(outer.begin, o);
      Expr outer_mask = math.Within(at_outer, 0, outer.whole);
      outer_mask = ir::IsIntConstant(outer_mask, 1) ? nullptr : e_.body().Name(outer_mask, "m");
      const bool ragged = math.RangeOf(math.Add(inner.begin, inner.count - 1)).max >= inner.whole;
      const int64_t chunk = step_ * unroll_;
      const int64_t chunks = ragged ? 0 : inner.count / chunk;
      if (chunks > 0) {
        const std::vector<RowOperand> next =
            asking_sweep_ == sweep_ ? OperandsOfNextRow(lanes, live != nullptr) : std::vector<RowOperand>();
        SerialUntil(chunks, steps(0, chunk), [&](const Index& c) {
          const Index first = math.Add(inner.begin, math.Mul(c, chunk));
          PrefetchNextRow(next, at_outer, first);
          for (int64_t u = 0; u < unroll_; ++u) {
            ForLanes(step_, [&](const Index& l) {
              const Index in_chunk = math.Add(l, u * step_);
              Step(lanes, at_outer, math.Add(first, in_chunk), in_chunk, l, outer_mask);
            });
          }
        });
      }
      int64_t done = chunks * chunk;
      if (const int64_t whole = ragged ? 0 : (inner.count - done) / lanes_; whole > 0) {
        SerialUntil(whole, steps(done, lanes_), [&](const Index& c) {
          ForLanes(lanes_, [&](const Index& l) {
            const Index offset = math.Add(math.Add(math.Mul(c, lanes_), l), done);
            Step(lanes, at_outer, math.Add(inner.begin, offset), l, l, outer_mask);
          });
        });
        done += whole * lanes_;
      }
      const int64_t rest = inner.count - done;
      if (rest == 0) return;
      SerialUntil((rest + lanes_ - 1) / lanes_, steps(done, lanes_), [&](const Index& c) {
        ForLanes(lanes_, [&](const Index& l) {
          const Index offset = math.Add(math.Add(math.Mul(c, lanes_), l), done);
          const Index j = math.Add(inner.begin, offset);
          Expr inside = ir::And(math.Within(offset, 0, inner.count), math.Within(j, 0, inner.whole));
          Step(lanes, at_outer, j, l, l, e_.values().Both(outer_mask, inside));
        });
      });
    });
  }

  // An operand that is read element by element along the rows.
  struct RowOperand {
    const hlo::Shape* shape;
    ir::BufferRef buffer;
  };

  // Those of which more rows follow, all of which the second cache has room for. While one row is worked on, memory
  // would wait: the hardware's prefetcher stops at pages, and starts anew with each row that ends at a size (`apart`).
  std::vector<RowOperand> OperandsOfNextRow(const std::vector<Lane>& lanes, bool apart) const {
    constexpr int64_t kFewestBytes = 8192;
    std::vector<RowOperand> operands;
    if (shape_.kept.empty() || shape_.outer_count() != 1 || !e_.instruction().Is(Opcode::kFusion) ||
        shape_.row.back() + 1 != shape_.dimensions.size()) {
      return operands;
    }
    // Two rows of bf16 take longer than their bytes do to arrive, and the window in which a core looks ahead is shorter
    // than what two rows take.
    const bool is_computed_longer = pairs_ && GoesByTwoRows();
    int64_t room = e_.device().l2_bytes / 4;
    std::set<const Instruction*> reached;
    for (const Lane& lane : lanes) Reach(lane.reduce->operand(0), reached);
    for (const Instruction* parameter : e_.instruction().called()->parameters()) {
      const bool is_read = std::any_of(parameter->users().begin(), parameter->users().end(),
                                       [&](const Instruction* user) { return reached.count(user) != 0; });
      if (!is_read || parameter->shape().dimensions() != shape_.dimensions) continue;
      const int64_t row_bytes = shape_.length() * hlo::BytesOf(parameter->shape().element_type());
      if (!apart && !is_computed_longer && row_bytes < kFewestBytes) continue;
      room -= row_bytes;
      operands.push_back({&parameter->shape(), e_.OperandBuffer(parameter->parameter_number())});
    }
    return room < 0 ? std::vector<RowOperand>() : operands;
  }

  // What the next row has where this one's chunk from `j` on is.
  void PrefetchNextRow(const std::vector<RowOperand>& operands, const Index& outer, const Index& j) {
    const int64_t rows_on = GoesByTwoRows() ? 2 : 1;
    for (const RowOperand& operand : operands) {
      const int64_t in_line = kLineBytes / hlo::BytesOf(operand.shape->element_type());
      for (int64_t ahead = 0; ahead < step_ * unroll_; ahead += in_line) {
        Indices place = Place(outer, e_.math().Add(j, ahead));
        Index& row = place[shape_.kept.back()];
        row = e_.math().Add(row, rows_on);
        e_.body().Add(
            ir::Prefetch(operand.buffer, StoreIndex(e_.math(), *operand.shape, place), ir::CacheLevel::kSecond));
      }
    }
  }

  // All lanes into lane 0, halving.
  Value Horizontal(const Lane& lane) {
    if (lane.signs) return OfMarked(lane);
    if (lane.im == nullptr && lane.re->storage != hlo::ElementType::kPred) return OfVectors(lane);
    for (int64_t u = 1; u < unroll_; ++u) {
      ForLanes(lanes_, [&](const Index& l) {
        StoreLane(lane, l,
                  EmitBinary(lane.opcode, lane.type, LoadLane(lane, l), LoadLane(lane, e_.math().Add(l, u * lanes_)),
                             e_.body()));
      });
    }
    for (int64_t half = lanes_ / 2; half >= 1; half /= 2) {
      ForLanes(half, [&](const Index& l) {
        StoreLane(
            lane, l,
            EmitBinary(lane.opcode, lane.type, LoadLane(lane, l), LoadLane(lane, e_.math().Add(l, half)), e_.body()));
      });
    }
    return LoadLane(lane, 0);
  }

  // The same on values that are vectors: parts of an array that are read in other sizes than they were written would
  // not stay in registers.
  Value OfVectors(const Lane& lane) {
    const auto both = [&](const Expr& a, const Expr& b) {
      return e_.body().Name(EmitBinary(lane.opcode, lane.type, {a, nullptr}, {b, nullptr}, e_.body()).re);
    };
    Expr total;
    for (int64_t first = 0; first < step_ * unroll_; first += lanes_) {
      const Expr part = e_.body().Name(ir::Load(lane.re, ir::Ramp(e_.IndexInt(first), lanes_)));
      total = total ? both(total, part) : part;
    }
    return JoinVector(lane.opcode, lane.type, total, e_.body());
  }

  Value OfMarked(const Lane& lane) {
    const auto vector = [&](const ir::BufferRef& buffer, int64_t first) {
      return e_.body().Name(ir::Load(buffer, ir::Ramp(e_.IndexInt(first), lanes_)));
    };
    std::optional<ExtremeSoFar> all;
    for (int64_t first = 0; first < step_ * unroll_; first += lanes_) {
      // Beyond the first step there are no marks of their own.
      const int64_t marks = first < step_ ? first : 0;
      const ExtremeSoFar part{vector(lane.re, first), vector(lane.signs, marks), vector(lane.magnitudes, marks)};
      all = all ? ExtremeOfBoth(lane.opcode, *all, part, e_.body()) : part;
    }
    while (all->best->type.lanes > 1) {
      const auto half = [&](const char* which) {
        return ExtremeSoFar{e_.body().Name(ir::Half(all->best, which)), e_.body().Name(ir::Half(all->signs, which)),
                            e_.body().Name(ir::Half(all->magnitude, which))};
      };
      const ExtremeSoFar lower = half(ir::kLowerHalf);
      all = ExtremeOfBoth(lane.opcode, lower, half(ir::kUpperHalf), e_.body());
    }
    return {ExtremeResult(*all, e_.body()), nullptr};
  }

  void StoreOutputs() {
    for (const auto& output : e_.outputs()) {
      if (output.shape.ElementCount() == shape_.rows()) {
        const Indices at = output.shape.dimensions() == shape_.Of(shape_.kept)
                               ? kept_
                               : e_.math().Delinearize(row_, output.shape.dimensions());
        e_.Store(output, at, e_.ValueOf(output, at));
      }
    }
    const auto is_wide = [&](const Emission::Output& o) { return o.shape.ElementCount() != shape_.rows(); };
    if (std::none_of(e_.outputs().begin(), e_.outputs().end(), is_wide)) return;
    e_.values().SerialLoop(shape_.outer_count(), [&](const Index& o) {
      const int64_t length = shape_.length();
      const ir::Var j = e_.IndexVar(e_.body().FreshName("j"), length);
      e_.values().Open();
      const Indices place = Place(o, e_.math().Of(j));
      const Index linear = e_.math().Linearize(place, shape_.dimensions);
      std::vector<std::pair<const Emission::Output*, Value>> results;
      const auto at_of = [&](const Emission::Output& output) {
        return output.shape.dimensions() == shape_.dimensions
                   ? place
                   : e_.math().Delinearize(linear, output.shape.dimensions());
      };
      for (const auto& output : e_.outputs()) {
        if (is_wide(output)) results.emplace_back(&output, e_.ValueOf(output, at_of(output)));
      }
      for (const auto& [output, value] : results) e_.Store(*output, at_of(*output), value);
      const std::optional<size_t> d = SlowestOf(shape_.row);
      const auto extent = e_.SharedExtent([&](const Emission::Output& output) {
        if (!is_wide(output)) return Emission::kNotAsked;
        return d && output.shape.dimensions() == shape_.dimensions ? static_cast<int64_t>(*d) : Emission::kUnknown;
      });
      const int64_t slowest = d ? shape_.dimensions[*d] : 1;
      const Expr end = extent ? e_.ValueOf(*extent, slowest) * (length / slowest) : e_.IndexInt(length);
      const ir::Stmt loop = ir::For(ir::LoopRole::kVector, j, e_.IndexInt(0), end, e_.values().Close(), 1, e_.Lanes());
      e_.body().Add(pairs_ ? ir::WithPairs(loop) : loop);
    });
  }

  Emission e_;
  RowShape shape_;
  int lanes_ = 1;
  bool pairs_ = false;  // steps are vectors of pairs of bf16
  int64_t step_ = 1;    // elements: lanes_, or twice as many
  int64_t unroll_ = 1;  // steps side by side
  std::vector<std::pair<ir::Var, Expr>> row_loops_;
  Index row_;
  Indices kept_;
  int64_t room_ = kKeptBytes;
  std::vector<Kept> kept_values_;
  size_t sweep_ = 0;
  std::optional<size_t> asking_sweep_;  // in which the next row is asked for
};

}  // namespace

bool HasRows(const Instruction& instruction, const Instruction& reduce) {
  const RowShape shape = RowShapeOf(reduce);
  // Some output is neither a row's nor of the rows' shape: the loop emitter takes it.
  const int64_t all = shape.rows() * shape.outer_count() * shape.length();
  const std::vector<hlo::Shape> parts = PartShapesOf(instruction);
  for (const hlo::Shape& part : parts) {
    if (part.ElementCount() != shape.rows() && part.ElementCount() != all) return false;
  }
  if (all == 0) return false;
  if (shape.length() < kShortestSummedRow) return false;
  // Every reduce by a computation of its own is serial in a row as well as in a loop, but the loop has lanes.
  const auto levels = ReduceLevels(instruction);
  bool has_lanes = false, only_sums = levels.size() == 1, only_extremes = only_sums;
  for (const auto& level : levels) {
    for (const Instruction* op : level) {
      has_lanes |= HasLanes(*op);
      const bool is_read = !instruction.Is(Opcode::kFusion) || op->operand(0)->Is(Opcode::kParameter);
      const bool is_extreme = HasLanes(*op) && IsExtreme(*hlo::ReducerOpcode(*op->called()));
      only_sums &= is_read && HasLanes(*op) && !is_extreme;
      only_extremes &= is_read && is_extreme;
    }
  }
  const bool gives_rows = instruction.shape().IsArray() &&
                          std::all_of(parts.begin(), parts.end(),
                                      [&](const hlo::Shape& part) { return part.ElementCount() == shape.rows(); });
  if (only_extremes && gives_rows && shape.length() < kShortestExtremeRow) return false;
  return has_lanes && (shape.length() >= kShortestRow || (only_sums && gives_rows));
}

int64_t RowsScratchBytes(const Instruction& instruction, const Instruction& reduce) {
  if (!HasRows(instruction, reduce)) return 0;
  const int64_t parts = PartsOfRow(instruction, reduce);
  return parts == 1 ? 0 : RowKernel::ScratchBytes(instruction, reduce, parts);
}

Launches EmitRows(const EmitRequest& request) {
  const int64_t parts = PartsOfRow(request.instruction, *request.hero.instruction);
  Launches launches;
  if (parts == 1) {
    launches.push_back(RowKernel(request).Whole());
    return launches;
  }
  launches.push_back(RowKernel(request).Parts(parts));
  launches.push_back(RowKernel(request).Join(parts));
  return launches;
}

}  // namespace hlorun::opencl
