#include "backends/opencl/codegen/gpu_sort.h"

#include <algorithm>

#include "backends/opencl/codegen/banked_slots.h"
#include "backends/opencl/codegen/ceil_div.h"
#include "backends/opencl/codegen/emission.h"
#include "backends/opencl/codegen/powers_of_two.h"
#include "backends/opencl/codegen/scratch.h"
#include "backends/opencl/codegen/sort_element.h"

namespace hlorun::opencl {
namespace {

using hlo::ElementType;
using hlo::Instruction;
using ir::Expr;
using ir::Op;
using ir::Var;
using Element = SortElementForm::Element;

// Elements of an item: with fewer, searches are what takes the time; with more, registers run out.
constexpr int64_t kMostEach = 8;
constexpr int64_t kMostItems = 512, kFewestItems = 32;
// So many items a group hide what they wait for even where the rows are short.
constexpr int64_t kGoodItems = 128;
constexpr BankedSlots kSlots{32};
// For the ends of a group's piece, an answer of each item, and what alignment costs.
constexpr int64_t kOtherLocalBytes = kMostItems + 512;

// How the work is cut. All but the first two are powers of two.
struct Cut {
  int64_t rows, length;
  int64_t items;   // of a group
  int64_t each;    // elements of an item
  int64_t padded;  // slots of a block that a row has

  int64_t block() const { return items * each; }
  int64_t rows_together() const { return block() / padded; }
  int64_t blocks() const { return CeilDiv(length, block()); }  // of a row
  int64_t passes() const { return Log2(PowerFrom(blocks())); }

  static std::optional<Cut> Of(const Instruction& sort, const SortElementForm& form, const DeviceSpec& device) {
    const hlo::Shape& shape = sort.operand(0)->shape();
    const int64_t length = shape.dimension(sort.As<hlo::attr::Sort>().dimension);
    if (device.device_class != DeviceClass::kGpu || length < 1 || length >= INT32_MAX / 2) return std::nullopt;
    Cut cut{shape.ElementCount() / length, length, 0, std::min(kMostEach, PowerFrom(length)), PowerFrom(length)};
    cut.items = PowerUpTo(std::min(kMostItems, device.max_work_group_size));
    const int64_t room = device.local_memory_bytes - kOtherLocalBytes;
    while (cut.items >= kFewestItems && kSlots.Count(cut.block()) * form.bytes() > room) cut.items /= 2;
    if (cut.items < kFewestItems) return std::nullopt;
    // Short rows need no large groups, and few long ones are better shared by more of them.
    const auto is_large = [&] {
      const bool leaves_idle = cut.blocks() > 1 && cut.rows * cut.blocks() < 2 * device.compute_units;
      return leaves_idle || cut.block() > cut.padded;
    };
    while (cut.items > kGoodItems && is_large()) cut.items /= 2;
    cut.padded = std::min(cut.padded, cut.block());
    return cut;
  }
};

// The scratch of rows longer than a block, in bytes from its start: two halves between which runs go to and fro, and
// the number of the pass.
struct ScratchPlan {
  std::vector<int64_t> halves[2];  // by field
  int64_t cells = 0, end = 0;

  static ScratchPlan Of(const Cut& cut, const SortElementForm& form) {
    ScratchPlan plan;
    if (cut.passes() == 0) return plan;
    const auto take = [&](int64_t bytes) {
      const int64_t begin = plan.end;
      plan.end += AlignScratch(bytes);
      return begin;
    };
    for (int64_t half = 0; half < std::min<int64_t>(2, cut.passes()); ++half) {
      for (const ElementType field : form.fields())
        plan.halves[half].push_back(take(cut.rows * cut.length * hlo::BytesOf(field)));
    }
    plan.cells = take(int64_t{2} * 4);
    return plan;
  }
};

class GpuSortKernel {
 public:
  GpuSortKernel(const EmitRequest& request, const Cut& cut)
      : e_(request.instruction, request.aliases, request.context),
        sort_(*request.hero.instruction),
        form_(sort_),
        cut_(cut),
        scratch_(ScratchPlan::Of(cut_, form_)),
        others_(sort_.operand(0)->shape().dimensions()),
        dimension_(static_cast<size_t>(sort_.As<hlo::attr::Sort>().dimension)) {
    others_[dimension_] = 1;
    e_.GroupOf(cut_.items);
    for (const ElementType field : form_.fields())
      slots_.push_back(e_.LocalArray("slots", field, kSlots.Count(cut_.block())));
    rows_var_ = e_.IndexVar("rows", CeilDiv(cut_.rows, cut_.rows_together()));
    block_var_ = e_.IndexVar("block", cut_.blocks());
    e_.values().Open();
    for (const ElementType field : form_.fields()) mine_.push_back(e_.PrivateArray("mine", field, cut_.each));
  }

  // Blocks of the operands, sorted, into the results or the first half of the scratch.
  EmittedLaunch SortBlocks() {
    const bool is_all = cut_.passes() == 0;
    const std::vector<ir::BufferRef> to = is_all ? std::vector<ir::BufferRef>() : Half("to", 0, true);
    if (!is_all) AtFirst(ir::Store(PassCells(), e_.IndexInt(0), e_.IndexInt(0)));
    OverSlots([&](const Expr& s) {
      const Slot slot = SlotOf(s);
      PutSlot(slot.number, form_.At(e_, PlaceOf(slot.row)(slot.j), slot.j));
    });
    e_.body().Add(ir::Barrier());
    Lanes(cut_.items, [&](const Expr& item) { SortMine(item); });
    MergeRunsOfBlock();
    OverSlots([&](const Expr& s) {
      const Slot slot = SlotOf(s);
      PutResult(to, slot, GetSlot(slot.number));
    });
    return Close();
  }

  // Pairs of runs of one half, merged, into the other or the results.
  EmittedLaunch MergeRuns(int64_t pass) {
    const auto half = static_cast<int>(pass % 2);
    const std::vector<ir::BufferRef> from = Half("from", half, false), to = pass + 1 == cut_.passes()
                                                                                ? std::vector<ir::BufferRef>()
                                                                                : Half("to", 1 - half, true);
    // All passes run the same two kernels: each reads its number and writes the next one's beside it.
    const ir::BufferRef cells = PassCells();
    const Expr number = e_.body().Name(ir::Load(cells, e_.IndexInt(half)), "pass");
    AtFirst(ir::Store(cells, e_.IndexInt(1 - half), number + 1));
    const Pair pair = PairOf(number);
    const Expr from_left = LoadPiece(from, pair);
    Lanes(cut_.items, [&](const Expr& item) {
      MergeToMine(e_.IndexInt(0), from_left, pair.count, ir::Min(item * cut_.each, pair.count));
    });
    e_.body().Add(ir::Barrier());
    PutMine();
    OverSlots([&](const Expr& s) {
      const Slot slot = SlotOf(s);
      PutResult(to, slot, GetSlot(s));
    });
    return Close();
  }

 private:
  // An element's place in the block and among all. Beyond the end it stands for the last one there is.
  struct Slot {
    Expr number;
    Index row, j;
    Expr is_there;
  };
  // The two runs that a group's block is merged from, from their row's beginning on, and which piece of them it is.
  struct Pair {
    Expr base, middle, end;
    Expr first, count;  // of the merged run's elements
  };

  // --- places ---

  WordForm::PlaceOf PlaceOf(const Index& row) {
    const Indices others = e_.math().Delinearize(row, others_);
    return [this, others](const Index& j) {
      Indices at = others;
      at[dimension_] = j;
      return at;
    };
  }
  Index Clamped(const std::string& name, const Expr& x, int64_t count) {
    const Var variable = e_.IndexVar(e_.body().FreshName(name), count);
    e_.body().Add(ir::Let(variable, ir::Min(x, e_.IndexInt(count - 1))));
    return e_.math().Of(variable);
  }
  // Neighbours among `s` are neighbours in memory.
  Slot SlotOf(const Expr& s) {
    const int64_t together = cut_.rows_together();
    const auto behind = others_.begin() + static_cast<std::ptrdiff_t>(dimension_);
    const bool is_minor = hlo::CheckedProduct(hlo::Dims(behind, others_.end())) == 1;
    Expr row = e_.IndexInt(0), at = s;
    if (together > 1) {
      row = e_.body().Name(is_minor ? Over(s, cut_.padded) : Rest(s, together), "row");
      at = e_.body().Name(is_minor ? Rest(s, cut_.padded) : Over(s, together), "at");
    }
    const Expr all_row = e_.body().Name(ir::Ref(rows_var_) * together + row),
               all_j = e_.body().Name(ir::Ref(block_var_) * cut_.block() + at);
    const Expr has_row = all_row < e_.IndexInt(cut_.rows), has_j = all_j < e_.IndexInt(cut_.length);
    return {row * cut_.padded + at, Clamped("row", all_row, cut_.rows), Clamped("j", all_j, cut_.length),
            ir::And(cut_.rows % together == 0 ? ir::Pred(true) : has_row, IsFull() ? ir::Pred(true) : has_j)};
  }
  // By a power of two; what is divided is never negative.
  Expr Over(const Expr& x, int64_t by) const { return ir::Binary(Op::kShr, x, e_.IndexInt(Log2(by))); }
  Expr Rest(const Expr& x, int64_t by) const { return ir::Binary(Op::kAnd, x, e_.IndexInt(by - 1)); }
  // Whether every slot that a row has holds an element.
  bool IsFull() const { return cut_.length % cut_.padded == 0; }
  Expr InRow(const Index& row, const Expr& j) { return e_.math().ToExpr(row) * cut_.length + j; }

  // --- memory ---

  std::vector<ir::BufferRef> Half(const std::string& name, int half, bool written) {
    std::vector<ir::BufferRef> buffers;
    for (size_t f = 0; f < form_.fields().size(); ++f) {
      buffers.push_back(e_.Scratch(name + std::to_string(f), form_.fields()[f], cut_.rows * cut_.length,
                                   scratch_.halves[half][f], written));
    }
    return buffers;
  }
  ir::BufferRef PassCells() { return e_.Scratch("pass_cells", ElementType::kS32, 2, scratch_.cells, true); }

  Element Named(const std::vector<ir::BufferRef>& buffers, const Expr& at) {
    Element element;
    for (const ir::BufferRef& buffer : buffers) element.push_back(e_.body().Name(ir::Load(buffer, at)));
    return element;
  }
  void Put(const std::vector<ir::BufferRef>& buffers, const Expr& at, const Element& element) {
    for (size_t f = 0; f < buffers.size(); ++f) e_.body().Add(ir::Store(buffers[f], at, element[f]));
  }
  Expr InSlots(const Expr& number) { return kSlots.At(e_.body(), number); }
  Element GetSlot(const Expr& number) { return Named(slots_, InSlots(number)); }
  void PutSlot(const Expr& number, const Element& element) { Put(slots_, InSlots(number), element); }
  // What the items hold, in their order.
  void PutMine() {
    Lanes(cut_.items, [&](const Expr& item) {
      OverMine(cut_.each, [&](const Expr& i) { PutSlot(item * cut_.each + i, Named(mine_, i)); });
    });
    e_.body().Add(ir::Barrier());
  }
  void PutResult(const std::vector<ir::BufferRef>& to, const Slot& slot, const Element& element) {
    e_.values().Open();
    if (to.empty())
      form_.StoreResults(e_, element, PlaceOf(slot.row), slot.j, cut_.length);
    else
      Put(to, InRow(slot.row, e_.math().ToExpr(slot.j)), element);
    const ir::Stmt store = e_.values().Close();
    e_.body().Add(ir::If(slot.is_there, store));
  }
  Element Either(const Expr& condition, const Element& a, const Element& b) {
    Element either;
    for (size_t f = 0; f < a.size(); ++f) either.push_back(ir::Select(condition, a[f], b[f]));
    return either;
  }

  // --- loops ---

  using Statements = std::function<void(const Expr&)>;
  void Lanes(int64_t count, const Statements& body) {
    const Var item = e_.IndexVar(e_.body().FreshName("item"), count);
    e_.values().Open();
    body(ir::Ref(item));
    e_.body().Add(ir::For(ir::LoopRole::kVector, item, e_.IndexInt(0), e_.IndexInt(count), e_.values().Close()));
  }
  void OverMine(int64_t count, const Statements& body) {
    const Var i = e_.IndexVar(e_.body().FreshName("i"), count);
    e_.values().Open();
    body(ir::Ref(i));
    const ir::Stmt loop = ir::For(ir::LoopRole::kSerial, i, e_.IndexInt(0), e_.IndexInt(count), e_.values().Close());
    // Written out, what an item holds stays in registers.
    e_.body().Add(ir::Unrolled(loop, static_cast<int>(count)));
  }
  void OverSlots(const Statements& body) {
    Lanes(cut_.items, [&](const Expr& item) {
      OverMine(cut_.each, [&](const Expr& i) { body(e_.body().Name(i * cut_.items + item, "s")); });
    });
  }
  void AtFirst(const ir::Stmt& store) {
    const Expr number = ir::Ref(rows_var_) + ir::Ref(block_var_);
    e_.body().Add(ir::If(ir::Compare(Op::kEq, number, e_.IndexInt(0)), store));
  }
  EmittedLaunch Close() {
    ir::Stmt body = e_.values().Close();
    body = ir::For(ir::LoopRole::kParallel, block_var_, e_.IndexInt(0), e_.IndexInt(cut_.blocks()), body);
    const Expr groups_of_rows = e_.IndexInt(CeilDiv(cut_.rows, cut_.rows_together()));
    return e_.Finish(ir::For(ir::LoopRole::kParallel, rows_var_, e_.IndexInt(0), groups_of_rows, body), 1);
  }

  // --- sorting ---

  // Elements that a row has in this block.
  Expr Live() {
    if (cut_.blocks() == 1) return e_.IndexInt(cut_.length);
    return ir::Min(e_.IndexInt(cut_.length) - ir::Ref(block_var_) * cut_.block(), e_.IndexInt(cut_.block()));
  }

  // Neighbours change places where they must, even and odd pairs in turn: as often as there are elements.
  void SortMine(const Expr& item) {
    const Expr first = e_.body().Name(item * cut_.each, "first"),
               in_row = e_.body().Name(Rest(first, cut_.padded), "in_row");
    OverMine(cut_.each, [&](const Expr& i) { Put(mine_, i, GetSlot(first + i)); });
    const auto order = [&](const Expr& at) {
      const Element a = Named(mine_, at), b = Named(mine_, at + 1);
      Expr swap = form_.Before(e_, b, a);
      if (!IsFull()) swap = ir::And(in_row + at + 1 < Live(), swap);
      swap = e_.body().Name(swap, "swap");
      Put(mine_, at, Either(swap, b, a));
      Put(mine_, at + 1, Either(swap, a, b));
    };
    const int64_t pairs = cut_.each / 2;
    if (pairs == 0) return;
    OverMine(pairs, [&](const Expr&) {
      OverMine(pairs, [&](const Expr& i) { order(i * 2); });
      if (pairs > 1) OverMine(pairs - 1, [&](const Expr& i) { order(i * 2 + 1); });
    });
  }

  // Runs of an item's elements, twice as long each time, until they are a row's; they lie in the slots then.
  void MergeRunsOfBlock() {
    const int64_t levels = Log2(cut_.padded / cut_.each);
    PutMine();
    if (levels == 0) return;
    const Var level = e_.IndexVar("level", levels);
    e_.values().Open();
    Lanes(cut_.items, [&](const Expr& item) {
      const Expr first = e_.body().Name(item * cut_.each, "first");
      const Expr run = e_.body().Name(ir::Binary(Op::kShl, e_.IndexInt(cut_.each), ir::Ref(level)), "run");
      const Expr begin = e_.body().Name(first - ir::Binary(Op::kAnd, first, run * 2 - 1), "begin");
      const Expr row_end = first - Rest(first, cut_.padded) + Live();
      const Expr limit = IsFull() ? e_.IndexInt(cut_.block()) : e_.body().Name(ir::Max(row_end, begin), "limit");
      const Expr middle = e_.body().Name(ir::Min(begin + run, limit), "middle"),
                 end = e_.body().Name(ir::Min(begin + run * 2, limit), "end");
      MergeToMine(begin, middle, end, ir::Min(first, end) - begin);
    });
    e_.body().Add(ir::Barrier());
    PutMine();
    e_.body().Add(ir::For(ir::LoopRole::kSerial, level, e_.IndexInt(0), e_.IndexInt(levels), e_.values().Close()));
  }

  // Of the first `diagonal` elements of the merged run, how many are the left one's; the runs lie in slots
  // begin .. middle .. end.
  Expr Split(const Expr& begin, const Expr& middle, const Expr& end, const Expr& diagonal) {
    const Var low = e_.body().Mutable(ir::Max(diagonal - (end - middle), e_.IndexInt(0)), "low"),
              high = e_.body().Mutable(ir::Min(diagonal, middle - begin), "high");
    e_.values().Open();
    const Expr half = e_.body().Name(ir::Binary(Op::kShr, ir::Ref(low) + ir::Ref(high), e_.IndexInt(1)), "half");
    const Element l = GetSlot(begin + half), r = GetSlot(middle + (diagonal - 1 - half));
    const Expr right_first = e_.body().Name(form_.Before(e_, r, l), "right_first");
    e_.body().Add(ir::Assign(high, ir::Select(right_first, half, ir::Ref(high))));
    e_.body().Add(ir::Assign(low, ir::Select(right_first, ir::Ref(low), half + 1)));
    const ir::Stmt step = e_.values().Close();
    e_.body().Add(ir::While(ir::Ref(low) < ir::Ref(high), step));
    return ir::Ref(low);
  }

  // As many elements as an item has, from number `diagonal` on, of the runs in slots begin .. middle .. end.
  void MergeToMine(const Expr& begin, const Expr& middle, const Expr& end, const Expr& diagonal) {
    const Expr from = e_.body().Name(diagonal, "diagonal");
    const Expr split = Split(begin, middle, end, from);
    const Expr top = e_.IndexInt(cut_.block() - 1);
    const Var left = e_.body().Mutable(begin + split, "left"),
              right = e_.body().Mutable(middle + from - split, "right");
    std::vector<Var> l, r;
    for (const Expr& x : GetSlot(ir::Min(ir::Ref(left), top))) l.push_back(e_.body().Mutable(x, "l"));
    for (const Expr& x : GetSlot(ir::Min(ir::Ref(right), top))) r.push_back(e_.body().Mutable(x, "r"));
    const auto current = [](const std::vector<Var>& variables) {
      Element element;
      for (const Var& v : variables) element.push_back(ir::Ref(v));
      return element;
    };
    OverMine(cut_.each, [&](const Expr& i) {
      const Expr left_ended = ir::Compare(Op::kGe, ir::Ref(left), middle), right_there = ir::Ref(right) < end;
      const Expr right_first = form_.Before(e_, current(r), current(l));
      const Expr take_right = e_.body().Name(ir::Or(left_ended, ir::And(right_there, right_first)), "take_right");
      Put(mine_, i, Either(take_right, current(r), current(l)));
      const Expr one = e_.body().Name(ir::Cast(take_right, e_.math().type().element), "one");
      e_.body().Add(ir::Assign(right, ir::Ref(right) + one));
      e_.body().Add(ir::Assign(left, ir::Ref(left) + (e_.IndexInt(1) - one)));
      const Element next = GetSlot(ir::Min(ir::Select(take_right, ir::Ref(right), ir::Ref(left)), top));
      for (size_t f = 0; f < next.size(); ++f) {
        e_.body().Add(ir::Assign(r[f], ir::Select(take_right, next[f], ir::Ref(r[f]))));
        e_.body().Add(ir::Assign(l[f], ir::Select(take_right, ir::Ref(l[f]), next[f])));
      }
    });
  }

  // --- merging in global memory ---

  Pair PairOf(const Expr& pass) {
    const ir::Type type = e_.math().type();
    const Expr block = ir::Ref(block_var_), length = e_.IndexInt(cut_.length);
    const Expr level = e_.body().Name(ir::Cast(pass, type.element), "level");
    const Expr run = e_.body().Name(ir::Binary(Op::kShl, e_.IndexInt(1), level), "run");  // in blocks
    Pair pair;
    pair.base = e_.body().Name((block - ir::Binary(Op::kAnd, block, run * 2 - 1)) * cut_.block(), "base");
    // In blocks first: twice the last run may be beyond what 32 bits hold.
    const auto after = [&](const Expr& blocks) {
      const Expr most = e_.IndexInt(cut_.blocks());
      return ir::Min(pair.base + ir::Min(blocks, most) * cut_.block(), length);
    };
    pair.middle = e_.body().Name(after(run), "middle");
    pair.end = e_.body().Name(after(run * 2), "end");
    pair.first = e_.body().Name(block * cut_.block() - pair.base, "first");
    pair.count = e_.body().Name(ir::Min(pair.end - pair.base - pair.first, e_.IndexInt(cut_.block())), "count");
    return pair;
  }
  // A search of the group for one end of its piece, half of the items each: how many of the first `diagonal` elements
  // of the merged run are the left one's is at least low and at most high.
  struct Search {
    Expr number, item;  // of the search, and in its half
    Expr low, high, stride;
    Expr at;  // that this item asks about
  };
  Search SearchOf(const Expr& item, const ir::BufferRef& lows, const ir::BufferRef& highs, const Expr& half) {
    const int64_t items = cut_.items / 2;
    Search search;
    search.number = e_.body().Name(Over(item, items), "end_number");
    search.item = e_.body().Name(Rest(item, items), "asker");
    search.low = e_.body().Name(ir::Load(lows, half * 2 + search.number), "low");
    search.high = e_.body().Name(ir::Load(highs, half * 2 + search.number), "high");
    search.stride = e_.body().Name(Over(search.high - search.low + (items - 1), items), "stride");
    search.at = e_.body().Name(search.low + search.item * search.stride, "at");
    return search;
  }

  // As Split, of both ends of the piece at once, in memory: each round narrows a search down by as many times as half
  // the group has items, since what takes the time is to wait for memory.
  ir::BufferRef SplitsOfPiece(const Pair& pair, const std::function<Element(const Expr&)>& get) {
    const ElementType type = e_.math().type().element;
    // Two halves: of this round and of the next.
    const ir::BufferRef lows = e_.LocalArray("lows", type, 4), highs = e_.LocalArray("highs", type, 4),
                        answers = e_.LocalArray("answers", ElementType::kPred, cut_.items);
    const auto diagonal = [&](const Expr& number) { return pair.first + number * pair.count; };
    const auto least = [&](const Expr& all) { return ir::Max(all - (pair.end - pair.middle), e_.IndexInt(0)); };
    const auto most = [&](const Expr& all) { return ir::Min(all, pair.middle - pair.base); };
    Lanes(2, [&](const Expr& number) {
      const Expr all = e_.body().Name(diagonal(number), "diagonal");
      e_.body().Add(ir::Store(lows, number, least(all)));
      e_.body().Add(ir::Store(highs, number, most(all)));
    });
    e_.body().Add(ir::Barrier());
    int64_t rounds = 0;
    for (int64_t left = cut_.length; left > 0; left = CeilDiv(left, cut_.items / 2) - 1) ++rounds;
    const Var round = e_.IndexVar("round", rounds);
    e_.values().Open();
    const Expr half = e_.body().Name(Rest(ir::Ref(round), 2), "half"), other = e_.IndexInt(1) - half;
    Lanes(cut_.items, [&](const Expr& item) {
      const Search search = SearchOf(item, lows, highs, half);
      const auto bounded = [&](const Expr& at) {
        return e_.body().Name(ir::Max(ir::Min(at, e_.IndexInt(cut_.length - 1)), e_.IndexInt(0)), "bounded");
      };
      const Element l = get(bounded(pair.base + search.at)),
                    r = get(bounded(pair.middle + diagonal(search.number) - 1 - search.at));
      const Expr is_beyond = ir::Compare(Op::kGe, search.at, search.high);
      e_.body().Add(ir::Store(answers, item, ir::Or(is_beyond, form_.Before(e_, r, l))));
    });
    e_.body().Add(ir::Barrier());
    Lanes(cut_.items, [&](const Expr& item) { Narrow(item, lows, highs, answers, half, other); });
    e_.body().Add(ir::Barrier());
    e_.body().Add(ir::For(ir::LoopRole::kSerial, round, e_.IndexInt(0), e_.IndexInt(rounds), e_.values().Close()));
    // Within bounds, whatever the comparator said.
    ir::BufferRef splits = e_.LocalArray("splits", type, 2);
    Lanes(2, [&](const Expr& number) {
      const Expr all = e_.body().Name(diagonal(number), "diagonal");
      const Expr found = ir::Load(lows, e_.IndexInt(rounds % 2 * 2) + number);
      e_.body().Add(ir::Store(splits, number, ir::Max(ir::Min(found, most(all)), least(all))));
    });
    e_.body().Add(ir::Barrier());
    return splits;
  }

  // The item between whose answer and the one before it the truth lies says so; the last one, where it lies behind all.
  void Narrow(const Expr& item, const ir::BufferRef& lows, const ir::BufferRef& highs, const ir::BufferRef& answers,
              const Expr& half, const Expr& other) {
    const Search search = SearchOf(item, lows, highs, half);
    const auto set = [&](const Expr& condition, const Expr& low, const Expr& high) {
      const Expr to = other * 2 + search.number;
      e_.body().Add(ir::If(condition, ir::Block({ir::Store(lows, to, low), ir::Store(highs, to, high)})));
    };
    const auto answer = [&](const Expr& number) { return ir::Load(answers, number); };
    const Expr is_first = e_.body().Name(ir::Compare(Op::kEq, search.item, e_.IndexInt(0)), "is_first");
    const Expr yes = e_.body().Name(answer(item), "yes");
    const Expr no_before = ir::Or(is_first, ir::Not(answer(ir::Max(item - 1, e_.IndexInt(0)))));
    set(e_.body().Name(ir::And(yes, no_before), "is_here"),
        ir::Select(is_first, search.low, search.at - search.stride + 1), ir::Min(search.at, search.high));
    const Expr is_last = ir::Compare(Op::kEq, search.item, e_.IndexInt(cut_.items / 2 - 1));
    set(ir::And(is_last, ir::Not(yes)), search.at + 1, search.high);
  }

  // The group's piece of the merged run, into the slots: the left run's part, then the right one's. Gives how many are
  // the left one's.
  Expr LoadPiece(const std::vector<ir::BufferRef>& from, const Pair& pair) {
    const Index row = e_.math().Of(rows_var_);
    const auto get = [&](const Expr& j) { return Named(from, InRow(row, j)); };
    const ir::BufferRef splits = SplitsOfPiece(pair, get);
    const Expr begin = e_.body().Name(ir::Load(splits, e_.IndexInt(0)), "left_begin"),
               end = ir::Load(splits, e_.IndexInt(1));
    // Of a comparator that orders nothing the second may lie before the first.
    Expr from_left = e_.body().Name(ir::Max(ir::Min(end - begin, pair.count), e_.IndexInt(0)), "from_left");
    const Expr left = e_.body().Name(pair.base + begin, "left_at"),
               right = e_.body().Name(pair.middle + pair.first - begin - from_left, "right_at");
    OverSlots([&](const Expr& s) {
      const Expr at = ir::Select(s < from_left, left, right) + s;
      PutSlot(s, get(e_.body().Name(ir::Min(at, e_.IndexInt(cut_.length - 1)), "at")));
    });
    e_.body().Add(ir::Barrier());
    return from_left;
  }

  Emission e_;
  const Instruction& sort_;
  SortElementForm form_;
  Cut cut_;
  ScratchPlan scratch_;
  hlo::Dims others_;
  size_t dimension_;
  std::vector<ir::BufferRef> slots_, mine_;
  Var rows_var_, block_var_;
};

}  // namespace

std::optional<int64_t> GpuSortScratchBytes(const Instruction& sort, const DeviceSpec& device) {
  const SortElementForm form(sort);
  const auto cut = Cut::Of(sort, form, device);
  return cut ? std::optional(ScratchPlan::Of(*cut, form).end) : std::nullopt;
}

std::optional<Launches> EmitGpuSort(const EmitRequest& request) {
  const Instruction& sort = *request.hero.instruction;
  const auto cut = Cut::Of(sort, SortElementForm(sort), request.context.device);
  if (!cut) return std::nullopt;
  Launches launches;
  launches.push_back(GpuSortKernel(request, *cut).SortBlocks());
  for (int64_t pass = 0; pass < cut->passes(); ++pass) launches.push_back(GpuSortKernel(request, *cut).MergeRuns(pass));
  return launches;
}

}  // namespace hlorun::opencl
