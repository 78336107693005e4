#include "backends/opencl/codegen/gpu_cumulative.h"

#include <algorithm>

#include "backends/opencl/codegen/banked_slots.h"
#include "backends/opencl/codegen/ceil_div.h"
#include "backends/opencl/codegen/cumulative_chains.h"
#include "backends/opencl/codegen/powers_of_two.h"
#include "backends/opencl/codegen/scratch.h"

namespace hlorun::opencl {
namespace {

using hlo::ElementType;
using hlo::Instruction;
using ir::Expr;
using ir::Op;
using ir::Var;

constexpr int64_t kItems = 128;
constexpr int64_t kMostEach = 8;
constexpr int64_t kChunkBytes = 12 << 10;  // of local memory, for the elements of a group's items
constexpr BankedSlots kSlots{32};
constexpr int64_t kShortRow = 64;    // an item each: a group would have little to share
constexpr int64_t kManyRows = 1024;  // groups that hide what each waits for
constexpr int64_t kMostPartsOfRow = 512;
constexpr int64_t kManyItems = 1 << 16;
constexpr int64_t kShortestPart = 32, kMostParts = 256;  // of an item's chain
constexpr int kUnroll = 8;                               // an item's loads that are under way together

// How the work is cut, from shapes and types alone.
struct Cut {
  bool by_groups;  // rows
  int64_t each;    // elements of an item in a chunk
  int64_t chains, length;
  int64_t part;  // elements of a part
  std::vector<ElementType> fields;

  int64_t chunk() const { return kItems * each; }
  int64_t parts() const { return CeilDiv(length, part); }
  int64_t field_bytes() const {
    int64_t bytes = 0;
    for (const ElementType field : fields) bytes += hlo::BytesOf(field);
    return bytes;
  }
  int64_t local_bytes() const { return by_groups ? (kSlots.Count(chunk()) + 2 * kItems) * field_bytes() : 0; }

  static Cut Of(const Instruction& op, const hlo::CumulativeWindow& form) {
    const hlo::Shape& shape = op.operand(0)->shape();
    Cut cut{};
    cut.length = shape.dimension(form.dimension);
    cut.chains = shape.ElementCount() / cut.length;
    for (int64_t i = 0; i < op.operand_count() / 2; ++i) {
      const ElementType type = op.operand(i)->shape().element_type();
      cut.fields.insert(cut.fields.end(), hlo::IsComplex(type) ? 2 : 1, ValueType(type).element);
    }
    const hlo::Dims& dims = shape.dimensions();
    const bool is_minor = hlo::CheckedProduct(hlo::Dims(dims.begin() + form.dimension + 1, dims.end())) == 1;
    cut.by_groups = is_minor && cut.length > kShortRow;
    cut.each = kMostEach;
    while (cut.each > 1 && (cut.chunk() * cut.field_bytes() > kChunkBytes || cut.chunk() >= 2 * cut.length))
      cut.each /= 2;
    const int64_t unit = cut.by_groups ? cut.chunk() : kShortestPart;
    const int64_t wanted = cut.by_groups ? kManyRows : kManyItems, most = cut.by_groups ? kMostPartsOfRow : kMostParts;
    const int64_t parts = std::clamp<int64_t>(wanted / cut.chains, 1, std::min(most, CeilDiv(cut.length, unit)));
    cut.part = parts == 1 ? cut.length : CeilDiv(CeilDiv(cut.length, parts), unit) * unit;
    return cut;
  }
  bool Fits(const DeviceSpec& device) const {
    const int64_t alignment = int64_t{64} * 2 * static_cast<int64_t>(fields.size());
    return device.max_work_group_size >= kItems && local_bytes() + alignment <= device.local_memory_bytes;
  }
};

class GpuCumulativeKernel : private CumulativeChains {
 public:
  GpuCumulativeKernel(const EmitRequest& request, const hlo::CumulativeWindow& form, const Cut& cut)
      : CumulativeChains(request, form), cut_(cut) {
    e_.GroupOf(kItems);
    outer_var_ = e_.IndexVar("outer", outer_.count);
    part_ = e_.IndexVar("part", cut_.parts());
  }

  // Of each part but what is behind the end: its elements, combined.
  EmittedLaunch Totals() { return Emit(/*is_total=*/true); }
  EmittedLaunch Results() { return Emit(/*is_total=*/false); }

 private:
  EmittedLaunch Emit(bool is_total) {
    is_total_ = is_total;
    if (cut_.parts() > 1) totals_ = TotalsOfParts();
    return cut_.by_groups ? Rows() : Chains();
  }

  // --- parts ---

  std::vector<ir::BufferRef> TotalsOfParts() {
    std::vector<ir::BufferRef> totals;
    int64_t offset = 0;
    for (const ElementType field : cut_.fields) {
      const int64_t count = cut_.chains * cut_.parts();
      totals.push_back(e_.Scratch("totals" + std::to_string(totals.size()), field, count, offset, is_total_));
      offset += AlignScratch(count * hlo::BytesOf(field));
    }
    return totals;
  }
  Expr TotalAt(const Expr& part, const Index& outer, const Index& inner) {
    Indices others = Place(outer, 0, inner);
    hlo::Dims sizes = shape_.dimensions();
    others.erase(others.begin() + form_.dimension);
    sizes.erase(sizes.begin() + form_.dimension);
    return part * cut_.chains + e_.math().ToExpr(e_.math().Linearize(others, sizes));
  }

  // What the elements before this part come to.
  Running Earlier(const Index& outer, const Index& inner) {
    Running running = Variables(Initial());
    if (cut_.parts() == 1) return running;
    const Var before = e_.IndexVar(e_.body().FreshName("before"), cut_.parts());
    e_.values().Open();
    running.Set(e_.body(), Combine(running.Current(), LoadAll(totals_, TotalAt(ir::Ref(before), outer, inner))));
    e_.body().Add(ir::For(ir::LoopRole::kSerial, before, e_.IndexInt(0), ir::Ref(part_), e_.values().Close()));
    return running;
  }

  struct Steps {
    Expr begin, end;
  };
  Steps StepsOfPart() {
    if (cut_.parts() == 1) return {e_.IndexInt(0), end_};
    const Expr begin = e_.body().Name(ir::Ref(part_) * cut_.part, "begin");
    return {begin, e_.body().Name(ir::Min(begin + cut_.part, end_), "end")};
  }
  // The element that is combined in this step; some element where there is no such step.
  Index ElementOf(const Expr& step) {
    const Var at = e_.IndexVar(e_.body().FreshName("at"), length_);
    const Expr last = end_ - 1;
    const Expr element = form_.reverse ? last - step : step;
    const Expr bound = form_.reverse ? ir::Max(element, e_.IndexInt(0)) : ir::Min(element, last);
    e_.body().Add(ir::Let(at, is_sized_ ? ir::Max(bound, e_.IndexInt(0)) : bound));
    return e_.math().Of(at);
  }

  // --- values in memory ---

  // Fields are the arrays' values one after the other, complex ones as two.
  Values LoadAll(const std::vector<ir::BufferRef>& from, const Expr& at) {
    Values values;
    size_t field = 0;
    const auto next = [&] { return e_.body().Name(ir::Load(from[field++], at)); };
    for (int64_t i = 0; i < arrays_; ++i) {
      const Expr re = next();
      values.push_back({re, hlo::IsComplex(op_.operand(i)->shape().element_type()) ? next() : nullptr});
    }
    return values;
  }
  void StoreAll(const std::vector<ir::BufferRef>& to, const Expr& at, const Values& values) {
    size_t field = 0;
    for (const Value& value : values) {
      e_.body().Add(ir::Store(to[field++], at, value.re));
      if (value.im) e_.body().Add(ir::Store(to[field++], at, value.im));
    }
  }
  Values Either(const Expr& condition, const Values& a, const Values& b) {
    Values either;
    for (size_t i = 0; i < a.size(); ++i) either.push_back(SelectValue(condition, a[i], b[i]));
    return either;
  }
  std::vector<ir::BufferRef> LocalArrays(const std::string& name, int64_t elements) {
    std::vector<ir::BufferRef> arrays;
    arrays.reserve(cut_.fields.size());
    for (const ElementType field : cut_.fields) arrays.push_back(e_.LocalArray(name, field, elements));
    return arrays;
  }
  Expr InSlots(const Expr& number) { return kSlots.At(e_.body(), number); }

  // --- loops ---

  using Statements = std::function<void(const Expr&)>;
  void Items(const Statements& body) {
    const Var item = e_.IndexVar(e_.body().FreshName("item"), kItems);
    e_.values().Open();
    body(ir::Ref(item));
    e_.body().Add(ir::For(ir::LoopRole::kVector, item, e_.IndexInt(0), e_.IndexInt(kItems), e_.values().Close()));
  }
  void Serial(const std::string& name, int64_t most, const Expr& begin, const Expr& end, int unroll,
              const Statements& body) {
    const Var i = e_.IndexVar(e_.body().FreshName(name), most);
    e_.values().Open();
    body(ir::Ref(i));
    const ir::Stmt loop = ir::For(ir::LoopRole::kSerial, i, begin, end, e_.values().Close());
    e_.body().Add(ir::Unrolled(loop, unroll));
  }
  void OverMine(int64_t begin, const Statements& body) {
    Serial("i", cut_.each, e_.IndexInt(begin), e_.IndexInt(cut_.each), static_cast<int>(cut_.each), body);
  }
  // The chunk's places, neighbours for neighbouring items.
  void OverChunk(const Statements& body) {
    Items([&](const Expr& item) { OverMine(0, [&](const Expr& i) { body(e_.body().Name(i * kItems + item, "s")); }); });
  }
  void Barrier() { e_.body().Add(ir::Barrier()); }

  // `body` for each part.
  EmittedLaunch Close(const ir::Stmt& body) {
    // The last part's total is nobody's.
    const int64_t parts = is_total_ ? cut_.parts() - 1 : cut_.parts();
    ir::Stmt loops = ir::For(ir::LoopRole::kParallel, part_, e_.IndexInt(0), e_.IndexInt(parts), body);
    if (cut_.by_groups) loops = ir::For(ir::LoopRole::kParallel, outer_var_, e_.IndexInt(0), outer_.end, loops);
    return CumulativeChains::Finish(loops, body);
  }

  // --- a row a group ---

  EmittedLaunch Rows() {
    slots_ = LocalArrays("slots", kSlots.Count(cut_.chunk()));
    sums_ = LocalArrays("sums", 2 * kItems);
    const Index row = e_.math().Of(outer_var_);
    e_.values().Open();
    const Steps steps = StepsOfPart();
    const Running carry = is_total_ ? Variables(Initial()) : Earlier(row, 0);
    const int64_t most = CeilDiv(cut_.part, cut_.chunk());
    const Expr chunks = ir::Binary(Op::kFloorDiv, ir::Max(steps.end - steps.begin, e_.IndexInt(0)) + (cut_.chunk() - 1),
                                   e_.IndexInt(cut_.chunk()));
    Serial("chunk", most, e_.IndexInt(0), chunks, 1, [&](const Expr& chunk) {
      const Expr first = e_.body().Name(steps.begin + chunk * cut_.chunk(), "chunk_begin");
      ReadChunk(row, first);
      const Expr sums = ScanItems();
      if (!is_total_) RunMine(carry, sums);
      const Values total = LoadAll(sums_, sums + (kItems - 1));
      const Values both = Combine(carry.Current(), total);
      // A total has nothing before its first chunk.
      const Expr is_first = ir::Compare(Op::kEq, chunk, e_.IndexInt(0));
      carry.Set(e_.body(), is_total_ ? Either(is_first, total, both) : both);
      Barrier();
      if (!is_total_) WriteChunk(row, first, steps.end);
    });
    if (is_total_) StoreAll(totals_, TotalAt(ir::Ref(part_), row, 0), carry.Current());
    return Close(e_.values().Close());
  }

  void ReadChunk(const Index& row, const Expr& first) {
    OverChunk([&](const Expr& s) { StoreAll(slots_, InSlots(s), ElementsAt(Place(row, ElementOf(first + s), 0))); });
    Barrier();
  }

  // The items' totals, each with those before it, into one half of the sums. Gives where that half begins. Behind the
  // end of a row they hold anything, and nothing that is before it depends on them.
  Expr ScanItems() {
    Items([&](const Expr& item) {
      const Expr begin = e_.body().Name(item * cut_.each, "mine");
      const Running total = Variables(LoadAll(slots_, InSlots(begin)));
      OverMine(1, [&](const Expr& i) {
        total.Set(e_.body(), Combine(total.Current(), LoadAll(slots_, InSlots(begin + i))));
      });
      StoreAll(sums_, item, total.Current());
    });
    Barrier();
    const int64_t levels = Log2(kItems);
    Serial("level", levels, e_.IndexInt(0), e_.IndexInt(levels), 1, [&](const Expr& level) {
      const Expr from = e_.body().Name(ir::Binary(Op::kAnd, level, e_.IndexInt(1)) * kItems, "from");
      const Expr to = e_.IndexInt(kItems) - from, by = ir::Binary(Op::kShl, e_.IndexInt(1), level);
      Items([&](const Expr& item) {
        const Expr before = e_.body().Name(item - by, "before");
        const Values mine = LoadAll(sums_, from + item),
                     others = LoadAll(sums_, from + ir::Max(before, e_.IndexInt(0)));
        const Expr has_before = ir::Compare(Op::kGe, before, e_.IndexInt(0));
        StoreAll(sums_, to + item, Either(has_before, Combine(others, mine), mine));
      });
      Barrier();
    });
    return e_.IndexInt(levels % 2 * kItems);
  }

  // Each item's elements, with all that came before them, in their places.
  void RunMine(const Running& carry, const Expr& sums) {
    Items([&](const Expr& item) {
      const Expr begin = e_.body().Name(item * cut_.each, "mine");
      const Values before = LoadAll(sums_, sums + ir::Max(item - 1, e_.IndexInt(0)));
      const Expr is_first = ir::Compare(Op::kEq, item, e_.IndexInt(0));
      const Running run = Variables(Either(is_first, carry.Current(), Combine(carry.Current(), before)));
      OverMine(0, [&](const Expr& i) {
        const Expr slot = InSlots(begin + i);
        run.Set(e_.body(), Combine(run.Current(), LoadAll(slots_, slot)));
        StoreAll(slots_, slot, run.Current());
      });
    });
  }

  void WriteChunk(const Index& row, const Expr& first, const Expr& end) {
    OverChunk([&](const Expr& s) {
      const Expr step = e_.body().Name(first + s, "step");
      e_.values().Open();
      StoreAt(Place(row, ElementOf(step), 0), LoadAll(slots_, InSlots(s)));
      const ir::Stmt store = e_.values().Close();
      e_.body().Add(ir::If(step < end, store));
    });
    Barrier();
  }

  // --- a chain an item ---

  EmittedLaunch Chains() {
    const int64_t count = outer_.count * inner_.count;
    const Var block = e_.IndexVar("block", CeilDiv(count, kItems));
    e_.values().Open();
    Items([&](const Expr& item) {
      const Expr number = e_.body().Name(ir::Ref(block) * kItems + item, "number");
      const Var chain = e_.IndexVar("chain", count);
      e_.body().Add(ir::Let(chain, ir::Min(number, e_.IndexInt(count - 1))));
      const Index outer = e_.math().FloorDiv(e_.math().Of(chain), inner_.count),
                  inner = e_.math().Mod(e_.math().Of(chain), inner_.count);
      Expr is_needed = ir::Pred(true);
      if (count % kItems != 0) is_needed = number < e_.IndexInt(count);
      if (outer_.is_sized) is_needed = ir::And(is_needed, e_.math().ToExpr(outer) < outer_.end);
      if (inner_.is_sized) is_needed = ir::And(is_needed, e_.math().ToExpr(inner) < inner_.end);
      e_.values().Open();
      if (is_total_)
        TotalOfChain(outer, inner);
      else
        RunChain(outer, inner);
      const ir::Stmt chain_steps = e_.values().Close();
      e_.body().Add(ir::If(is_needed, chain_steps));
    });
    const ir::Stmt items = e_.values().Close();
    return Close(ir::For(ir::LoopRole::kParallel, block, e_.IndexInt(0), e_.IndexInt(CeilDiv(count, kItems)), items));
  }

  void TotalOfChain(const Index& outer, const Index& inner) {
    const Steps steps = StepsOfPart();
    const Running total = Variables(ElementsAt(Place(outer, ElementOf(steps.begin), inner)));
    Serial("step", length_, steps.begin + 1, steps.end, kUnroll, [&](const Expr& step) {
      total.Set(e_.body(), Next(total.Current(), Place(outer, ElementOf(step), inner)));
    });
    StoreAll(totals_, TotalAt(ir::Ref(part_), outer, inner), total.Current());
  }

  void RunChain(const Index& outer, const Index& inner) {
    const Steps steps = StepsOfPart();
    const Running run = Earlier(outer, inner);
    Serial("step", length_, steps.begin, steps.end, kUnroll, [&](const Expr& step) {
      const Indices place = Place(outer, ElementOf(step), inner);
      run.Set(e_.body(), Next(run.Current(), place));
      StoreAt(place, run.Current());
    });
  }

  const Cut& cut_;
  bool is_total_ = false;
  Var outer_var_, part_;
  std::vector<ir::BufferRef> totals_, slots_, sums_;
};

}  // namespace

int64_t GpuCumulativeScratchBytes(const Instruction& op, const DeviceSpec& device) {
  if (device.device_class != DeviceClass::kGpu || op.operand(0)->shape().ElementCount() == 0) return 0;
  const Cut cut = Cut::Of(op, *hlo::CumulativeWindowOf(op));
  if (!cut.Fits(device) || cut.parts() == 1) return 0;
  int64_t bytes = 0;
  for (const ElementType field : cut.fields) bytes += AlignScratch(cut.chains * cut.parts() * hlo::BytesOf(field));
  return bytes;
}

std::optional<Launches> EmitGpuCumulative(const EmitRequest& request) {
  const hlo::CumulativeWindow form = *hlo::CumulativeWindowOf(*request.hero.instruction);
  if (request.context.device.device_class != DeviceClass::kGpu) return std::nullopt;
  const Cut cut = Cut::Of(*request.hero.instruction, form);
  if (!cut.Fits(request.context.device)) return std::nullopt;
  Launches launches;
  if (cut.parts() > 1) launches.push_back(GpuCumulativeKernel(request, form, cut).Totals());
  launches.push_back(GpuCumulativeKernel(request, form, cut).Results());
  return launches;
}

}  // namespace hlorun::opencl
