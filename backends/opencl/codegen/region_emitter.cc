#include "backends/opencl/codegen/region_emitter.h"

#include <algorithm>
#include <map>
#include <set>

#include "backends/opencl/codegen/emission.h"
#include "backends/opencl/codegen/lane_fold.h"
#include "backends/opencl/codegen/scatter_updates.h"
#include "backends/opencl/codegen/schedule.h"
#include "hlo/cost_analysis.h"
#include "hlo/cumulative_window.h"
#include "hlo/error.h"
#include "passes/control/time_model.h"
#include "passes/fusion/cumulative_fusion.h"
#include "passes/fusion/updated_part.h"
#include "passes/memory/operand_cut.h"
#include "passes/memory/region_cut.h"
#include "passes/memory/region_layout.h"

namespace hlorun::opencl {
namespace {

using hlo::Computation;
using hlo::Dims;
using hlo::Instruction;
using hlo::Opcode;
using passes::KernelKind;
using passes::RegionPlace;

constexpr int64_t kUnrolledElements = 4;  // results this small are written out, so that their arrays become registers
constexpr int64_t kShortVector = 4;       // shorter minor dimensions are walked element by element
// Elements of the minor dimensions that are written out. Nine, rotations too, took twice as long to compile and ran no
// faster; sixteen four times, and slower.
constexpr int64_t kLongestRow = 4;
constexpr int64_t kLongLoop = int64_t{1} << 30;
constexpr double kCutMicroseconds = 20;  // of work by one, from which on several are worth their waking
constexpr int64_t kWorthLanes = 32;      // elements of a GPU's longest loop, from which on a group's items share loops

// Who runs a region on a GPU: one work-item, whose small arrays are its own; or, of a region without loops and
// branches, all of a group, each its share of every array's elements. They meet between one array and the next, and
// share arrays in local memory, but for those small enough to be written out, of which every item has its own. (With
// loops too, PoCL 3.1 crashed where one of unknown length came after another loop, and Intel's runtime dropped stores
// of loops of known length in large kernels; a simulator found nothing wrong with either.)
enum class Team : uint8_t { kOneItem, kGroup };

class RegionKernel {
 public:
  RegionKernel(const EmitRequest& request, const passes::KernelModel& kernels, Team team)
      : e_(request.instruction, request.aliases, request.context),
        team_(team),
        kernels_(kernels),
        layout_(request.instruction, request.context.device, request.context.options, kernels),
        waits_(WaitingResults(request)),
        cut_(CutOf(request)) {
    if (cut_) share_ = e_.IndexVar("share", cut_->shares());
  }

  // None where a group's arrays find no room.
  std::optional<EmittedLaunch> Emit() {
    e_.values().Open();
    Walk(*layout_.module().entry());
    Flush();
    WriteResults();
    const ir::Stmt statements = e_.values().Close();
    std::vector<ir::Stmt> body = std::move(declarations_);
    body.push_back(statements);
    if (local_bytes_ > e_.device().local_memory_bytes) return std::nullopt;
    ir::Stmt all = ir::Block(std::move(body));
    // One work-item of the group: what it stores, only it reads.
    if (e_.IsGpu() && team_ == Team::kOneItem) all = OnFirstLane(all);
    if (cut_) all = ir::For(ir::LoopRole::kParallel, share_, e_.IndexInt(0), e_.IndexInt(cut_->shares()), all);
    return e_.Finish(all, 1);
  }

  bool IsWorthGroup() const { return e_.IsGpu() && !branches_ && !runs_on_ && longest_loop_ >= kWorthLanes; }

 private:
  // An array to compute, element by element: leaf `element` of `root` in `frame`.
  struct Output {
    const Frame* frame;
    const Instruction* root;
    size_t element;
    hlo::Shape shape;
    RegionPlace place;
    int64_t cut;            // the dimension of which a share has a part; -1: none
    bool is_fused = false;  // `root` is in a computation of its kernel's own
  };
  // Loops that wait to be written as one: of the same dimensions, none reading what another of them makes.
  struct Pending {
    const Instruction* instruction;
    std::vector<Output> outputs;
  };

  // Where waking the other cores costs little beside the work.
  std::optional<passes::RegionCut> CutOf(const EmitRequest& request) const {
    const bool waits = std::find(waits_.begin(), waits_.end(), true) != waits_.end();
    const double alone = passes::TimeModel(request.context.device).Sequential(request.instruction);
    if (e_.IsGpu() || waits || alone < kCutMicroseconds) return std::nullopt;
    return passes::RegionCut::Of(request.instruction, layout_, e_.Lanes(), request.context.device.compute_units);
  }
  int64_t CutDimension(const Instruction& instruction, int64_t leaf = 0) const {
    return cut_ ? cut_->DimensionOf(&instruction, leaf) : -1;
  }

  // --- memory ---

  // Results that share an operand's memory, which may still be read when they are known, wait in private memory until
  // the end. (A large array that is changed in part is changed where it lies.)
  static std::vector<bool> WaitingResults(const EmitRequest& request) {
    std::vector<int64_t> in_place = passes::RegionAliases(request.instruction);
    std::vector<bool> waits;
    for (size_t leaf = 0; leaf < in_place.size(); ++leaf) {
      const bool is_shared = leaf < request.aliases.size() && request.aliases[leaf] >= 0;
      waits.push_back(is_shared && request.aliases[leaf] != in_place[leaf]);
    }
    return waits;
  }
  const ir::BufferRef& ResultBuffer(int64_t leaf) { return e_.outputs()[static_cast<size_t>(leaf)].buffer; }

  ir::BufferRef BufferAt(const RegionPlace& place, hlo::ElementType type) {
    const bool is_result = place.kind == RegionPlace::Kind::kResult;
    if (place.kind == RegionPlace::Kind::kOperand) return e_.OperandBuffer(place.index);
    if (is_result && !waits_[static_cast<size_t>(place.index)]) return ResultBuffer(place.index);
    ir::BufferRef& buffer = buffers_[{place.kind, place.index}];
    if (buffer != nullptr) return buffer;
    const int64_t elements = place.bytes / std::max<int64_t>(1, hlo::BytesOf(type));
    if (place.kind == RegionPlace::Kind::kScratch) {
      buffer = e_.Scratch("scratch" + std::to_string(buffers_.size()), type, elements, place.offset, true);
      buffer->restrict_ = false;  // scratch is used again by values that live later
      return buffer;
    }
    const int64_t reals = elements * (hlo::IsComplex(type) ? 2 : 1);
    const bool is_shared = team_ == Team::kGroup && elements > kUnrolledElements;
    buffer = ir::MakeBuffer("local" + std::to_string(buffers_.size()), hlo::RealOf(type), reals,
                            is_shared ? ir::Buffer::Space::kLocal : ir::Buffer::Space::kPrivate, true);
    if (is_shared) local_bytes_ += reals * hlo::BytesOf(buffer->storage);
    declarations_.push_back(ir::DeclareArray(buffer));
    if (place.kind == RegionPlace::Kind::kConstant) Initialise(buffer, place.constant->literal());
    return buffer;
  }

  void Initialise(const ir::BufferRef& buffer, const hlo::Literal& literal) {
    const bool complex = hlo::IsComplex(literal.element_type());
    std::vector<ir::Stmt> stores;
    for (int64_t i = 0; i < literal.shape().ElementCount(); ++i) {
      const Value value = ConstantValue(literal, i);
      stores.push_back(ir::Store(buffer, e_.IndexInt(complex ? 2 * i : i), value.re));
      if (complex) stores.push_back(ir::Store(buffer, e_.IndexInt(2 * i + 1), value.im));
    }
    const ir::Stmt all = ir::Block(std::move(stores));
    declarations_.push_back(buffer->space == ir::Buffer::Space::kLocal ? OnFirstLane(all) : all);
  }

  // Before items read, or overwrite, what others may have written or still have to read.
  void Meet() {
    if (team_ == Team::kGroup) e_.body().Add(ir::Barrier());
  }

  // A frame in which the operands of `instruction` are what memory holds.
  const Frame& FrameOf(const Instruction& instruction) {
    Frame& frame = e_.values().NewFrame();
    for (const Instruction* operand : instruction.operands()) Bind(frame, operand);
    return frame;
  }

  void Bind(Frame& frame, const Instruction* value) {
    if (!value->shape().IsArray()) return;
    const RegionPlace place = layout_.PlaceOf(value);
    const bool inlined =
        place.kind == RegionPlace::Kind::kConstant && place.constant->literal().IsAllSame() && value->IsConstant();
    if (inlined || value->shape().ElementCount() == 0) return;
    frame.Bind(value, Frame::InMemory{BufferAt(place, value->shape().element_type())});
  }

  Value LoadScalar(const Instruction* value) {
    Frame& frame = e_.values().NewFrame();
    Bind(frame, value);
    return e_.values().Get(frame, *value, {});
  }

  // --- statements ---

  void Walk(const Computation& computation) {
    for (const auto& owned : computation.instructions()) {
      const Instruction& instruction = *owned;
      switch (instruction.opcode()) {
        case Opcode::kWhile: EmitWhile(instruction); break;
        case Opcode::kConditional: EmitConditional(instruction); break;
        case Opcode::kCall: Walk(*instruction.called()); break;
        case Opcode::kCopy: EmitCopy(instruction); break;
        default: EmitKernel(instruction);
      }
    }
    Flush();
  }

  ir::Stmt Block(const Computation& computation) {
    e_.values().Open();
    Walk(computation);
    return e_.values().Close();
  }

  void EmitWhile(const Instruction& loop) {
    Flush();
    branches_ = true;
    if (const std::optional<int64_t> trips = hlo::KnownTripCount(loop)) {
      const ir::Type type = *trips < kLongLoop ? ir::kIndex32 : ir::kIndex;
      const ir::Var trip = ir::MakeVar(e_.body().FreshName("trip"), type);
      const ir::Stmt body = Block(*loop.while_body());
      e_.body().Add(ir::For(ir::LoopRole::kSerial, trip, ir::Int(0, type), ir::Int(*trips, type), body));
      return;
    }
    const Instruction* predicate = loop.while_condition()->root();
    Walk(*loop.while_condition());
    const ir::Var goes_on = e_.body().Mutable(LoadScalar(predicate).re, "goes_on");
    e_.values().Open();
    Walk(*loop.while_body());
    Walk(*loop.while_condition());
    e_.body().Add(ir::Assign(goes_on, LoadScalar(predicate).re));
    e_.body().Add(ir::While(ir::Ref(goes_on), e_.values().Close()));
  }

  void EmitConditional(const Instruction& conditional) {
    Flush();
    branches_ = true;
    const ir::Expr selector = LoadScalar(conditional.operand(0)).re;
    const auto count = static_cast<int64_t>(conditional.called_computations().size());
    ir::Stmt rest = Block(*conditional.called(count - 1));  // an index out of range takes the last branch
    for (int64_t b = count - 1; b-- > 0;) {
      const bool is_predicate = selector->type == ir::kPredType;
      const ir::Expr taken = is_predicate ? selector : ir::Compare(ir::Op::kEq, selector, ir::Int(b, selector->type));
      rest = ir::If(taken, Block(*conditional.called(b)), rest);
    }
    e_.body().Add(rest);
  }

  void EmitCopy(const Instruction& copy) {
    if (layout_.PlaceOf(&copy) == layout_.PlaceOf(copy.operand(0))) return;
    Await({&copy, {{&FrameOf(copy), copy.operand(0), 0, copy.shape(), layout_.PlaceOf(&copy), CutDimension(copy)}}});
  }

  void EmitKernel(const Instruction& instruction) {
    const passes::Hero hero = passes::HeroOf(instruction);
    if (hero.kind == KernelKind::kNone) return;
    if (const Instruction* update = passes::UpdateAtRoot(instruction)) return EmitUpdate(instruction, *update);
    if (hero.kind == KernelKind::kScatter) return EmitScatter(instruction);
    if (const auto window = RunningWindow(instruction, hero))
      return EmitCumulative(instruction, *hero.instruction, *window);
    const Frame* frame = &FrameOf(instruction);
    const Instruction* root = &instruction;
    if (instruction.Is(Opcode::kFusion)) {
      frame = &e_.values().Enter(*frame, instruction);
      root = instruction.called()->root();
    }
    Pending pending{&instruction, {}};
    int64_t leaf = 0;
    hlo::ForEachLeaf(instruction.shape(), [&](const hlo::ShapeIndex&, const hlo::Shape& shape) {
      const bool tuple = root->Is(Opcode::kTuple);
      pending.outputs.push_back({frame, tuple ? root->operand(leaf) : root, tuple ? 0 : static_cast<size_t>(leaf),
                                 shape, layout_.PlaceOf(&instruction, leaf), CutDimension(instruction, leaf),
                                 instruction.Is(Opcode::kFusion)});
      ++leaf;
    });
    Await(std::move(pending));
  }

  // Of a cumulative op whose results are made in turn, each from the one before.
  std::optional<hlo::CumulativeWindow> RunningWindow(const Instruction& instruction, const passes::Hero& hero) const {
    if (hero.kind != KernelKind::kReduceWindow || team_ == Team::kGroup) return std::nullopt;
    const Instruction* root = instruction.Is(Opcode::kFusion) ? instruction.called()->root() : &instruction;
    if (!passes::GivesAllResultsOf(*root, *hero.instruction)) return std::nullopt;
    auto window = hlo::CumulativeWindowOf(*hero.instruction);
    return window && CutDimension(instruction) != window->dimension ? window : std::nullopt;
  }

  void EmitCumulative(const Instruction& instruction, const Instruction& op, const hlo::CumulativeWindow& window) {
    Flush();
    runs_on_ = true;
    const Frame* frame = &FrameOf(instruction);
    if (instruction.Is(Opcode::kFusion)) frame = &e_.values().Enter(*frame, instruction);
    // Each operand stands for the results of its own dimensions.
    const hlo::Shape& shape = op.operand(0)->shape();
    const int64_t arrays = op.operand_count() / 2;
    std::vector<ir::BufferRef> buffers;
    std::vector<Frame*> made;
    for (int64_t i = 0; i < arrays; ++i) {
      buffers.push_back(BufferAt(layout_.PlaceOf(&instruction, i), op.operand(i)->shape().element_type()));
      made.push_back(&e_.values().NewFrame());
      made.back()->Bind(op.operand(i), Frame::InMemory{buffers.back()});
    }
    const auto along = static_cast<size_t>(window.dimension);
    const int64_t length = shape.dimension(window.dimension);
    Dims others = shape.dimensions();
    others[along] = 1;
    // Results `step` steps from where the op begins.
    const auto results = [&](const Index& step, bool is_first) {
      const auto place = [&](Indices at, int64_t back) {
        const Index forth = e_.math().Add(step, -back);
        at[along] = window.reverse ? e_.math().Add(e_.math().Mul(forth, -1), length - 1) : forth;
        return at;
      };
      Loops(team_, others, CutDimension(instruction), [&](const Indices& at) {
        const Indices here = place(at, 0);
        Values before, next;
        for (int64_t i = 0; i < arrays; ++i) {
          before.push_back(is_first ? e_.values().Get(*frame, *op.operand(arrays + i), {})
                                    : e_.values().Get(*made[static_cast<size_t>(i)], *op.operand(i), place(at, 1)));
          next.push_back(e_.values().Get(*frame, *op.operand(i), here));
        }
        // In the order of the window's elements, which is not the order of the steps where those go backwards.
        if (window.reverse) std::swap(before, next);
        before.insert(before.end(), next.begin(), next.end());
        const Values sum = e_.values().Apply(*op.called(), std::move(before));
        for (size_t i = 0; i < buffers.size(); ++i)
          StoreElement(e_.values(), buffers[i], op.operand(static_cast<int64_t>(i))->shape(), here, sum[i]);
      });
    };
    results(0, true);
    if (length > 1) e_.values().SerialLoop(length - 1, [&](const Index& i) { results(e_.math().Add(i, 1), false); });
  }

  // dynamic-update-slice: only the updated region, after a copy of the rest where it is not in place.
  void EmitUpdate(const Instruction& instruction, const Instruction& update) {
    Flush();
    const Frame* frame = &FrameOf(instruction);
    if (instruction.Is(Opcode::kFusion)) frame = &e_.values().Enter(*frame, instruction);
    const RegionPlace place = layout_.PlaceOf(&instruction);
    const int64_t cut = CutDimension(instruction);
    if (!IsInPlace(instruction)) EmitLoops({{frame, update.operand(0), 0, instruction.shape(), place, cut}});
    const hlo::Shape& shape = instruction.shape();
    const hlo::Shape& part = update.operand(1)->shape();
    if (part.ElementCount() == 0) return;
    const ir::BufferRef buffer = BufferAt(place, shape.element_type());
    Meet();
    const bool is_own = buffer->space == ir::Buffer::Space::kPrivate;
    Loops(is_own ? Team::kOneItem : team_, part.dimensions(), cut, [&](const Indices& at) {
      Indices target;
      for (int64_t d = 0; d < part.rank(); ++d) {
        const int64_t limit = shape.dimension(d) - part.dimension(d);
        const bool packed =
            update.operand_count() == 3 && update.operand(2)->shape().rank() == 1;  // old form: one s32[n]
        const Instruction& start = *update.operand(packed ? 2 : 2 + d);
        const Value first = e_.values().Get(*frame, start, packed ? Indices{Index(d)} : Indices{});
        target.push_back(
            e_.math().Add(at[static_cast<size_t>(d)], limit == 0 ? Index(0) : e_.values().RuntimeIndex(first, limit)));
      }
      StoreElement(e_.values(), buffer, shape, target, e_.values().Get(*frame, *update.operand(1), at));
    });
  }

  // One update after another, after a copy of the operand where it is not in place. Only whole arrays: a share knows
  // nothing of which updates lie in its part.
  void EmitScatter(const Instruction& scatter) {
    Flush();
    runs_on_ = true;
    const Frame& frame = FrameOf(scatter);
    const RegionPlace place = layout_.PlaceOf(&scatter);
    if (!IsInPlace(scatter)) EmitLoops({{&frame, scatter.operand(0), 0, scatter.shape(), place, passes::kWhole}});
    ScatterUpdates updates(e_, scatter, frame, {{BufferAt(place, scatter.shape().element_type()), scatter.shape()}});
    const auto extents = [&](const std::vector<int64_t>& dims) {
      Dims extents;
      for (const int64_t d : dims) extents.push_back(updates.updates_shape().dimension(d));
      return extents;
    };
    Indices update(static_cast<size_t>(updates.updates_shape().rank()));
    const auto place_in = [&](const std::vector<int64_t>& dims, const Indices& at) {
      for (size_t i = 0; i < at.size(); ++i) update[static_cast<size_t>(dims[i])] = at[i];
    };
    e_.values().SerialLoops(extents(updates.batch_dims()), [&](const Indices& batch) {
      place_in(updates.batch_dims(), batch);
      const ScatterUpdates::Start start = updates.StartOf(update);
      e_.values().Open();
      Loops(Team::kOneItem, extents(updates.window_dims()), passes::kWhole, [&](const Indices& at) {
        place_in(updates.window_dims(), at);
        updates.Store(updates.Combined(start, update));
      });
      const ir::Stmt window = e_.values().Close();
      e_.body().Add(ir::If(e_.body().Name(start.inside, "inside"), window));
    });
  }

  // Whether the array that `instruction` changes in part is changed where it lies.
  bool IsInPlace(const Instruction& instruction) const {
    const RegionPlace place = layout_.PlaceOf(&instruction);
    return std::any_of(instruction.operands().begin(), instruction.operands().end(),
                       [&](const Instruction* o) { return o->shape().IsArray() && layout_.PlaceOf(o) == place; });
  }

  // What is not yet where it belongs: operands and constants as they stand, then results that waited, which may lie
  // where those operands are.
  void WriteResults() {
    const Instruction* root = layout_.module().entry()->root();
    const auto count = static_cast<int64_t>(e_.outputs().size());
    for (int64_t leaf = 0; leaf < count; ++leaf) {
      const Instruction* value = root->Is(Opcode::kTuple) ? root->operand(leaf) : root;
      const RegionPlace from = layout_.PlaceOf(root, leaf), to = ResultPlace(leaf);
      if (from == to) continue;
      CopyArray(value, BufferAt(from, value->shape().element_type()), to, CutDimension(*root, leaf));
    }
    for (int64_t leaf = 0; leaf < count; ++leaf) {
      if (!waits_[static_cast<size_t>(leaf)]) continue;
      const Instruction* value = root->Is(Opcode::kTuple) ? root->operand(leaf) : root;
      const ir::BufferRef waiting = BufferAt(ResultPlace(leaf), value->shape().element_type());
      waits_[static_cast<size_t>(leaf)] = false;
      CopyArray(value, waiting, ResultPlace(leaf), CutDimension(*root, leaf));
    }
  }

  RegionPlace ResultPlace(int64_t leaf) {
    return {RegionPlace::Kind::kResult, leaf, 0, e_.outputs()[static_cast<size_t>(leaf)].shape.ByteSize(), nullptr};
  }

  void CopyArray(const Instruction* value, const ir::BufferRef& from, const RegionPlace& to, int64_t cut) {
    if (value->shape().ElementCount() == 0) return;
    Frame& frame = e_.values().NewFrame();
    frame.Bind(value, Frame::InMemory{from});
    EmitLoops({{&frame, value, 0, value->shape(), to, cut}});
  }

  // --- loops over elements ---

  // Joins loops of the same dimensions: what both compute, the device's compiler computes once.
  void Await(Pending next) {
    std::erase_if(next.outputs, [](const Output& o) { return o.shape.ElementCount() == 0; });
    if (next.outputs.empty()) return;
    if (!pending_.empty() && !MayJoin(next)) Flush();
    pending_.push_back(std::move(next));
  }

  bool MayJoin(const Pending& next) const {
    const Output& first = pending_.front().outputs.front();
    const Dims& dims = first.shape.dimensions();
    if (std::any_of(next.outputs.begin(), next.outputs.end(),
                    [&](const Output& o) { return o.shape.dimensions() != dims || o.cut != first.cut; }))
      return false;
    for (const Pending& before : pending_) {
      for (const Output& made : before.outputs) {
        if (made.shape.dimensions() != dims || made.cut != first.cut) return false;
        if (Reads(*next.instruction, made.place)) return false;
        for (const Output& o : next.outputs) {
          if (o.place.Overlaps(made.place)) return false;
        }
      }
      // What a loop before reads may be overwritten only element by element.
      for (const Output& o : next.outputs) {
        for (int64_t i = 0; i < before.instruction->operand_count(); ++i) {
          const Instruction* operand = before.instruction->operand(i);
          if (!operand->shape().IsArray() || !layout_.PlaceOf(operand).Overlaps(o.place)) continue;
          if (!(layout_.PlaceOf(operand) == o.place)) return false;
          if (!passes::MayShareInRegion(kernels_, *before.instruction, i, 0)) return false;
        }
      }
    }
    return true;
  }

  bool Reads(const Instruction& instruction, const RegionPlace& place) const {
    return std::any_of(instruction.operands().begin(), instruction.operands().end(), [&](const Instruction* o) {
      return o->shape().IsArray() && layout_.PlaceOf(o).Overlaps(place);
    });
  }

  void Flush() {
    std::map<std::pair<Dims, int64_t>, std::vector<Output>> alike;
    for (Pending& pending : pending_) {
      for (Output& output : pending.outputs)
        alike[{output.shape.dimensions(), output.cut}].push_back(std::move(output));
    }
    pending_.clear();
    for (const auto& [dims, outputs] : alike) EmitLoops(outputs);
  }

  // Outputs of equal dimensions, cut alike. All loads of an element come before the stores: a result may share an
  // operand's memory.
  void EmitLoops(const std::vector<Output>& outputs) {
    const Dims& dims = outputs[0].shape.dimensions();
    const int64_t cut = outputs[0].cut, count = outputs[0].shape.ElementCount();
    Meet();
    const auto element = [&](const Indices& at) { Store(outputs, {at}); };
    if (cut < 0 && count <= kUnrolledElements) return EmitUnrolled(outputs, count);
    if (team_ == Team::kGroup) return Loops(team_, dims, cut, element);
    if (EmitAsOneLoop(dims, cut, element)) return;
    if (const Dims rows = RowsOf(dims, cut); !rows.empty()) return EmitRows(outputs, rows);
    Loops(team_, dims, cut, element);
  }

  // Where that needs no division.
  bool EmitAsOneLoop(const Dims& all, int64_t cut, const std::function<void(const Indices&)>& element) {
    Dims dims = all;
    if (cut >= 0) dims[static_cast<size_t>(cut)] = cut_->part();
    if (dims.size() < 2) return false;
    const int64_t count = hlo::CheckedProduct(dims);
    const ir::Var flat = e_.IndexVar(e_.body().FreshName("i"), count);
    e_.values().Open();
    element(OfShare(e_.math().Delinearize(e_.math().Of(flat), dims), cut));
    const ir::Stmt body = e_.values().Close();
    if (DivisionsIn(body) > 0) return false;
    longest_loop_ = std::max(longest_loop_, count);
    e_.body().Add(LoopOver(flat, count, body));
    return true;
  }

  // The dimensions without the last ones, whose few elements (a point's coordinates, a quaternion's parts) are written
  // out, so that what is moved between them, or concatenated, is known when the kernel is compiled, and vectors
  // go along another dimension; none where there are no such.
  Dims RowsOf(const Dims& dims, int64_t cut) const {
    size_t outer = dims.size();
    int64_t row = 1;
    while (outer > 0 && row * dims[outer - 1] <= kLongestRow) row *= dims[--outer];
    const Dims rows(dims.begin(), dims.begin() + static_cast<ptrdiff_t>(outer));
    const bool is_worth = row > 1 && !e_.IsGpu() && cut < static_cast<int64_t>(outer);
    return is_worth && hlo::CheckedProduct(rows) >= kShortVector ? rows : Dims{};
  }

  void EmitRows(const std::vector<Output>& outputs, const Dims& rows) {
    const Dims& dims = outputs[0].shape.dimensions();
    const Dims row(dims.begin() + static_cast<ptrdiff_t>(rows.size()), dims.end());
    const auto elements = [&](const Indices& at) {
      std::vector<Indices> places;
      for (int64_t i = 0; i < hlo::CheckedProduct(row); ++i) {
        places.push_back(at);
        for (const Index& place : e_.math().Delinearize(Index(i), row)) places.back().push_back(place);
      }
      Store(outputs, places);
    };
    if (!EmitAsOneLoop(rows, outputs[0].cut, elements)) Loops(team_, rows, outputs[0].cut, elements);
  }

  void EmitUnrolled(const std::vector<Output>& outputs, int64_t count) {
    e_.values().Open();
    if (count == 1 && !e_.IsGpu()) FoldLongSums(outputs);
    std::vector<Indices> places;
    for (int64_t i = 0; i < count; ++i)
      places.push_back(e_.math().Delinearize(Index(i), outputs[0].shape.dimensions()));
    Store(outputs, places, /*together=*/true);
    e_.body().Add(e_.values().Close());
  }

  // What the outputs need of long sums, in front of them and by vectors: of a fusion's outputs once.
  void FoldLongSums(const std::vector<Output>& outputs) {
    std::set<const Frame*> done;
    for (const Output& o : outputs) {
      if (!done.insert(o.frame).second) continue;
      if (!o.is_fused) {
        FoldInLanes(e_, *o.frame, *o.root);
        continue;
      }
      for (const auto& op : o.root->parent()->instructions()) FoldInLanes(e_, *o.frame, *op);
    }
  }

  // `together`: all items compute the same elements, of which one item writes those that are not every item's own.
  void Store(const std::vector<Output>& outputs, const std::vector<Indices>& places, bool together = false) {
    std::vector<Value> values;
    for (const Indices& at : places) {
      for (const Output& o : outputs) values.push_back(e_.values().GetAll(*o.frame, *o.root, at)[o.element]);
    }
    if (together) Meet();
    for (size_t o = 0; o < outputs.size(); ++o) {
      const ir::BufferRef& buffer = BufferAt(outputs[o].place, outputs[o].shape.element_type());
      for (size_t i = 0; i < places.size(); ++i)
        StoreElement(e_.values(), buffer, outputs[o].shape, places[i], values[i * outputs.size() + o]);
    }
  }

  // Along dimension `cut` a share's part. `team`: who does it; one item is each for itself.
  void Loops(Team team, const Dims& all, int64_t cut, const std::function<void(const Indices&)>& element) {
    longest_loop_ = std::max(longest_loop_, hlo::CheckedProduct(all));
    if (team == Team::kGroup) return ItemsOfGroup(all, element);
    Dims dims = all;
    if (cut >= 0) dims[static_cast<size_t>(cut)] = cut_->part();
    std::vector<ir::Var> variables;
    Indices at;
    for (const int64_t extent : dims) {
      variables.push_back(extent == 1 ? nullptr : e_.IndexVar(e_.body().FreshName("i"), extent));
      at.push_back(extent == 1 ? Index(0) : e_.math().Of(variables.back()));
    }
    e_.values().Open();
    element(OfShare(std::move(at), cut));
    ir::Stmt body = e_.values().Close();
    // Vectors go along the last dimension that is long enough for them, inside of the others.
    const auto is_long = [](int64_t extent) { return extent >= kShortVector; };
    const auto last = std::find_if(dims.rbegin(), dims.rend(), is_long);
    const size_t inner = last == dims.rend() ? dims.size() : static_cast<size_t>(dims.rend() - last) - 1;
    if (inner < dims.size()) body = LoopOver(variables[inner], dims[inner], body);
    for (size_t d = dims.size(); d-- > 0;) {
      if (variables[d] != nullptr && d != inner) body = Serial(variables[d], dims[d], body);
    }
    e_.body().Add(body);
  }

  // `at` counts from where a share's part begins.
  Indices OfShare(Indices at, int64_t cut) {
    if (cut < 0) return at;
    Index& place = at[static_cast<size_t>(cut)];
    place = e_.math().Add(e_.math().Mul(e_.math().Of(share_), cut_->part()), place);
    return at;
  }

  void ItemsOfGroup(const Dims& dims, const std::function<void(const Indices&)>& element) {
    const int64_t count = hlo::CheckedProduct(dims);
    const ir::Var flat = e_.IndexVar(e_.body().FreshName("i"), count);
    e_.values().Open();
    element(e_.math().Delinearize(e_.math().Of(flat), dims));
    e_.body().Add(ir::For(ir::LoopRole::kVector, flat, e_.IndexInt(0), e_.IndexInt(count), e_.values().Close()));
  }

  ir::Stmt LoopOver(const ir::Var& variable, int64_t extent, const ir::Stmt& body) {
    if (e_.IsGpu() || extent < kShortVector) return Serial(variable, extent, body);
    return ir::For(ir::LoopRole::kVector, variable, e_.IndexInt(0), e_.IndexInt(extent), body, 1, e_.Lanes());
  }
  ir::Stmt Serial(const ir::Var& variable, int64_t extent, const ir::Stmt& body) {
    return ir::For(ir::LoopRole::kSerial, variable, e_.IndexInt(0), e_.IndexInt(extent), body);
  }

  Emission e_;
  const Team team_;
  const passes::KernelModel& kernels_;
  const passes::RegionLayout layout_;
  std::vector<bool> waits_;  // by result leaf
  const std::optional<passes::RegionCut> cut_;
  ir::Var share_;
  std::map<std::pair<RegionPlace::Kind, int64_t>, ir::BufferRef> buffers_;
  std::vector<ir::Stmt> declarations_;
  std::vector<Pending> pending_;
  int64_t local_bytes_ = 0, longest_loop_ = 0;
  bool branches_ = false, runs_on_ = false;  // results are made from those before
};

EmittedLaunch CopyOperand(const EmitRequest& request, int64_t operand, size_t leaf) {
  Emission e(request.instruction, request.aliases, request.context);
  const Instruction* from = request.instruction.operand(operand);
  Frame& frame = e.values().NewFrame();
  frame.Bind(from, Frame::InMemory{e.OperandBuffer(operand)});
  return CopyInto(e, leaf, frame, *from);
}

}  // namespace

Launches EmitRegion(const EmitRequest& request, const passes::KernelModel& kernels) {
  Launches launches;
  const std::vector<int64_t> aliases = passes::RegionAliases(request.instruction);
  for (size_t leaf = 0; leaf < aliases.size(); ++leaf) {
    const bool is_shared = leaf < request.aliases.size() && request.aliases[leaf] == aliases[leaf];
    if (aliases[leaf] >= 0 && !is_shared) launches.push_back(CopyOperand(request, aliases[leaf], leaf));
  }
  RegionKernel by_one(request, kernels, Team::kOneItem);
  EmittedLaunch launch = by_one.Emit().value();
  if (by_one.IsWorthGroup()) launch = RegionKernel(request, kernels, Team::kGroup).Emit().value_or(launch);
  launches.push_back(std::move(launch));
  return launches;
}

int64_t RegionScratchBytes(const Instruction& region, const EmitContext& context, const passes::KernelModel& kernels) {
  return passes::RegionLayout(region, context.device, context.options, kernels).scratch_bytes();
}

}  // namespace hlorun::opencl
