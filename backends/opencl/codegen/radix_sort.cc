#include "backends/opencl/codegen/radix_sort.h"

#include <algorithm>

#include "backends/opencl/codegen/emission.h"
#include "backends/opencl/codegen/scratch.h"
#include "backends/opencl/codegen/sort_word.h"

namespace hlorun::opencl {
namespace {

using hlo::ElementType;
using hlo::Instruction;
using ir::Expr;
using ir::Op;
using ir::Var;

constexpr int64_t kDigits = 256;  // eight bits: eleven lose (experiments/memory, part 4)
constexpr int kDigitBits = 8;
constexpr int64_t kShortRow = 40;             // insertion costs less than clearing the counts
constexpr int64_t kPrivateBytes = 256 << 10;  // both halves of a row's words: within the second-level cache
constexpr int64_t kPartElements = 1 << 15;
constexpr int64_t kMostParts = 16;
constexpr int kUnroll = 8;
constexpr ir::Type kU32{ElementType::kU32, 1};

// How the work is cut.
struct SortShape {
  int64_t rows, length;
  bool is_private, is_short;
  int64_t parts;

  static SortShape Of(const Instruction& sort, const WordForm& form) {
    const hlo::Shape& shape = sort.operand(0)->shape();
    SortShape s{};
    s.length = shape.dimension(sort.As<hlo::attr::Sort>().dimension);
    s.rows = s.length == 0 ? 0 : shape.ElementCount() / s.length;
    s.is_short = s.length <= kShortRow;
    s.is_private = s.length * form.bytes() * 2 <= kPrivateBytes;
    s.parts = s.is_private ? 1 : std::clamp<int64_t>(s.length / kPartElements, 1, kMostParts);
    return s;
  }
  int64_t elements() const { return rows * length; }
};

// The scratch of a long sort, in bytes from its start.
struct ScratchPlan {
  int64_t words[2], positions[2], counts, pass, end;

  static ScratchPlan Of(const SortShape& shape, const WordForm& form) {
    ScratchPlan plan{};
    int64_t at = 0;
    const auto take = [&](int64_t bytes) {
      const int64_t begin = at;
      at += AlignScratch(bytes);
      return begin;
    };
    for (int half = 0; half < 2; ++half) {
      plan.words[half] = take(shape.elements() * hlo::BytesOf(form.word));
      plan.positions[half] = form.has_positions() ? take(shape.elements() * 4) : 0;
    }
    plan.counts = take(shape.rows * shape.parts * kDigits * 4);
    plan.pass = take(int64_t{2} * 4);
    plan.end = at;
    return plan;
  }
};

// Words in memory, and their positions where they are apart.
struct Words {
  ir::BufferRef words, positions;
};

class RadixKernel {
 public:
  RadixKernel(const EmitRequest& request, const WordForm& form)
      : e_(request.instruction, request.aliases, request.context),
        sort_(*request.hero.instruction),
        form_(form),
        shape_(SortShape::Of(sort_, form)),
        scratch_(ScratchPlan::Of(shape_, form)),
        dims_(sort_.operand(0)->shape().dimensions()),
        dimension_(static_cast<size_t>(sort_.As<hlo::attr::Sort>().dimension)) {
    others_ = dims_;
    others_[dimension_] = 1;
    row_var_ = e_.IndexVar("row", shape_.rows);
    part_var_ = e_.IndexVar("part", shape_.parts);
    row_ = e_.math().Delinearize(e_.math().Of(row_var_), others_);
    e_.values().Open();
  }

  // A row from operands to results.
  EmittedLaunch WholeRow() {
    const Words both = PrivateWords(shape_.is_short ? 1 : 2);
    OverRow([&](const Index& j) { PutWord(both, e_.math().ToExpr(j), WordAt(j)); });
    e_.body().Add(ir::Barrier());
    if (shape_.is_short) {
      InsertionSort(both);
      OverRow([&](const Index& j) { StoreResults(j, GetWord(both, e_.math().ToExpr(j))); });
    } else {
      const Expr begin = RadixPasses(both);
      OverRow([&](const Index& j) { StoreResults(j, GetWord(both, begin + e_.math().ToExpr(j))); });
    }
    return Close(/*by_part=*/false);
  }

  EmittedLaunch MakeWords() {
    const Words to = ScratchWords("to", 0, true);
    const ir::BufferRef pass = PassCells();
    OverPart([&](const Index& j) { PutWord(to, InRow(e_.math().ToExpr(j)), WordAt(j)); });
    AtFirst([&] { e_.body().Add(ir::Store(pass, e_.IndexInt(0), ir::Int(0, kU32))); });
    return Close(true);
  }

  // The pass's number is kept in memory, so that all passes run the same two kernels: counting reads the first cell and
  // sets the second, moving the other way round.
  EmittedLaunch CountDigits(int half) {
    const Words from = ScratchWords("from", half, false);
    const ir::BufferRef pass = PassCells(), counts = Counts(true);
    const Expr number = e_.body().Name(ir::Load(pass, e_.IndexInt(0)), "pass");
    AtFirst([&] { e_.body().Add(ir::Store(pass, e_.IndexInt(1), number)); });
    const Expr shift = ShiftOf(number);
    const ir::BufferRef mine = e_.PrivateArray("mine", ElementType::kU32, kDigits);
    OverDigits([&](const Expr& d) { e_.body().Add(ir::Store(mine, d, ir::Int(0, kU32))); });
    OverElementsOfPart([&](const Expr& j) { Increment(mine, DigitOf(ir::Load(from.words, InRow(j)), shift)); });
    OverDigits([&](const Expr& d) {
      e_.body().Add(ir::Store(counts, CountAt(ir::Ref(part_var_), d), e_.body().Name(ir::Load(mine, d))));
    });
    return Close(true);
  }

  EmittedLaunch MoveWords(int half) {
    const Words from = ScratchWords("from", half, false), to = ScratchWords("to", 1 - half, true);
    const ir::BufferRef pass = PassCells(), counts = Counts(false);
    const Expr number = e_.body().Name(ir::Load(pass, e_.IndexInt(1)), "pass");
    AtFirst([&] { e_.body().Add(ir::Store(pass, e_.IndexInt(0), number + 1)); });
    const Expr shift = ShiftOf(number);
    const ir::BufferRef place = PlacesOfPart(counts);
    OverElementsOfPart([&](const Expr& j) {
      const Word word = Named(GetWord(from, InRow(j)));
      const Expr digit = DigitOf(word.word, shift);
      const Expr at = e_.body().Name(ir::Load(place, digit), "to");
      PutWord(to, InRow(ir::Cast(at, e_.math().type().element)), word);
      e_.body().Add(ir::Store(place, digit, at + 1));
    });
    return Close(true);
  }

  EmittedLaunch ReadWords(int half) {
    const Words from = ScratchWords("from", half, false);
    OverPart([&](const Index& j) { StoreResults(j, GetWord(from, InRow(e_.math().ToExpr(j)))); });
    return Close(true);
  }

  const SortShape& shape() const { return shape_; }

 private:
  using Statements = std::function<void(const Expr&)>;

  // --- words ---

  Indices Place(const Index& j) const {
    Indices at = row_;
    at[dimension_] = j;
    return at;
  }

  Word WordAt(const Index& j) { return form_.At(e_, sort_, Place(j), j); }

  Word GetWord(const Words& from, const Expr& at) const {
    return {ir::Load(from.words, at), from.positions ? ir::Load(from.positions, at) : nullptr};
  }
  void PutWord(const Words& to, const Expr& at, const Word& word) {
    e_.body().Add(ir::Store(to.words, at, word.word));
    if (to.positions) e_.body().Add(ir::Store(to.positions, at, word.position));
  }
  Word Named(const Word& word) {
    return {e_.body().Name(word.word, "word"), word.position ? e_.body().Name(word.position, "position") : nullptr};
  }

  void StoreResults(const Index& j, const Word& sorted) {
    const auto place = [this](const Index& at) { return Place(at); };
    form_.StoreResults(e_, sort_, Named(sorted), place, j, shape_.length);
  }

  // --- memory ---

  Words PrivateWords(int64_t halves) {
    return {e_.PrivateArray("words", form_.word, shape_.length * halves),
            form_.has_positions() ? e_.PrivateArray("positions", ElementType::kU32, shape_.length * halves) : nullptr};
  }
  Words ScratchWords(const std::string& name, int half, bool written) {
    const auto h = static_cast<size_t>(half);
    return {e_.Scratch(name, form_.word, shape_.elements(), scratch_.words[h], written),
            form_.has_positions()
                ? e_.Scratch(name + "_at", ElementType::kU32, shape_.elements(), scratch_.positions[h], written)
                : nullptr};
  }
  ir::BufferRef PassCells() { return e_.Scratch("pass_cells", ElementType::kU32, 2, scratch_.pass, true); }
  ir::BufferRef Counts(bool written) {
    return e_.Scratch("counts", ElementType::kU32, shape_.rows * shape_.parts * kDigits, scratch_.counts, written);
  }
  Expr CountAt(const Expr& part, const Expr& digit) const {
    return (ir::Ref(row_var_) * shape_.parts + part) * kDigits + digit;
  }
  Expr InRow(const Expr& j) const { return ir::Ref(row_var_) * shape_.length + j; }

  // --- loops ---

  void VectorLoop(const Var& j, const Expr& begin, const Expr& end, const std::function<void(const Index&)>& body) {
    e_.values().Open();
    body(e_.math().Of(j));
    e_.body().Add(ir::For(ir::LoopRole::kVector, j, begin, end, e_.values().Close(), 1, e_.Lanes()));
  }
  void Serial(const std::string& name, int64_t most, const Expr& begin, const Expr& end, const Statements& body,
              int unroll = 1) {
    const Var j = e_.IndexVar(e_.body().FreshName(name), most);
    e_.values().Open();
    body(ir::Ref(j));
    const ir::Stmt loop = ir::For(ir::LoopRole::kSerial, j, begin, end, e_.values().Close());
    e_.body().Add(ir::Unrolled(loop, unroll));
  }
  // Counts or moves elements. Each waits for the count that it changes; written out one after another, their loads are
  // told apart by the CPU, which otherwise takes each for one that waits for the store before it.
  void OverElements(const Expr& begin, const Expr& end, const Statements& body) {
    Serial("j", shape_.length, begin, end, body, kUnroll);
  }
  void OverRow(const std::function<void(const Index&)>& body) {
    VectorLoop(e_.IndexVar(e_.body().FreshName("j"), shape_.length), e_.IndexInt(0), e_.IndexInt(shape_.length), body);
  }
  void OverDigits(const Statements& body) {
    VectorLoop(e_.IndexVar(e_.body().FreshName("d"), kDigits), e_.IndexInt(0), e_.IndexInt(kDigits),
               [&](const Index& d) { body(e_.math().ToExpr(d)); });
  }
  std::pair<Expr, Expr> PartBounds() {
    const int64_t size = (shape_.length + shape_.parts - 1) / shape_.parts;
    const Expr begin = e_.body().Name(ir::Ref(part_var_) * size, "begin");
    return {begin, e_.body().Name(ir::Min(begin + size, e_.IndexInt(shape_.length)), "end")};
  }
  void OverPart(const std::function<void(const Index&)>& body) {
    const auto [begin, end] = PartBounds();
    VectorLoop(e_.IndexVar(e_.body().FreshName("j"), shape_.length), begin, end, body);
  }
  void OverElementsOfPart(const Statements& body) {
    const auto [begin, end] = PartBounds();
    OverElements(begin, end, body);
  }
  void AtFirst(const std::function<void()>& body) {
    e_.values().Open();
    body();
    const Expr first = ir::Compare(Op::kEq, ir::Ref(row_var_) + ir::Ref(part_var_), e_.IndexInt(0));
    const ir::Stmt then = e_.values().Close();
    e_.body().Add(ir::If(first, then));
  }

  EmittedLaunch Close(bool by_part) {
    ir::Stmt body = e_.values().Close();
    // A part is worth a group of its own, whatever its loops' run-time bounds look like.
    const int64_t grain = by_part ? 1 : GrainOf(WorkOf(body));
    if (by_part) body = ir::For(ir::LoopRole::kParallel, part_var_, e_.IndexInt(0), e_.IndexInt(shape_.parts), body);
    body = ir::For(ir::LoopRole::kParallel, row_var_, e_.IndexInt(0), e_.IndexInt(shape_.rows), body);
    return e_.Finish(body, grain);
  }

  // --- sorting ---

  int64_t digits() const { return form_.key.bits() / kDigitBits; }

  Expr ShiftOf(const Expr& pass) {
    const Expr shift = pass * kDigitBits + form_.payload_bits;
    return e_.body().Name(ir::Cast(shift, form_.word), "shift");
  }
  Expr DigitOf(const Expr& word, const Expr& shift) {
    const Expr digit = ir::Binary(Op::kAnd, ir::Binary(Op::kShr, word, shift), ir::Int(kDigits - 1, form_.type()));
    return e_.body().Name(ir::Cast(digit, e_.math().type().element), "digit");
  }
  void Increment(const ir::BufferRef& counts, const Expr& at) {
    e_.body().Add(ir::Store(counts, at, e_.body().Name(ir::Load(counts, at)) + 1));
  }

  // counts[at ..] become the places where each digit's first element goes.
  void CountsToPlaces(const ir::BufferRef& counts, const Expr& at) {
    const Var sum = e_.body().Mutable(ir::Int(0, kU32), "sum");
    Serial("d", kDigits, e_.IndexInt(0), e_.IndexInt(kDigits), [&](const Expr& d) {
      const Expr count = e_.body().Name(ir::Load(counts, at + d), "count");
      e_.body().Add(ir::Store(counts, at + d, ir::Ref(sum)));
      e_.body().Add(ir::Assign(sum, ir::Ref(sum) + count));
    });
  }

  // Sorts the words of the first half; returns the index of the half that holds them then.
  Expr RadixPasses(const Words& both) {
    const int64_t passes = digits();
    const ir::BufferRef counts = e_.PrivateArray("counts", ElementType::kU32, kDigits * passes);
    const Var c = e_.IndexVar(e_.body().FreshName("c"), kDigits * passes);
    VectorLoop(c, e_.IndexInt(0), e_.IndexInt(kDigits * passes),
               [&](const Index& at) { e_.body().Add(ir::Store(counts, e_.math().ToExpr(at), ir::Int(0, kU32))); });
    const Expr end = e_.IndexInt(shape_.length);
    OverElements(e_.IndexInt(0), end, [&](const Expr& j) {
      const Expr word = e_.body().Name(ir::Load(both.words, j), "word");
      for (int64_t p = 0; p < passes; ++p) Increment(counts, DigitOf(word, ShiftOf(ir::Int(p, kU32))) + p * kDigits);
    });
    e_.body().Add(ir::Barrier());
    const Var half = e_.body().Mutable(e_.IndexInt(0), "half");
    Serial("pass", passes, e_.IndexInt(0), e_.IndexInt(passes), [&](const Expr& pass) {
      const Expr shift = ShiftOf(ir::Cast(pass, ElementType::kU32)), mine = e_.body().Name(pass * kDigits, "mine");
      // A digit that all elements share moves nothing.
      const Expr some = DigitOf(ir::Load(both.words, ir::Ref(half)), shift);
      const Expr differ = ir::Compare(Op::kNe, ir::Load(counts, mine + some), ir::Int(shape_.length, kU32));
      e_.values().Open();
      CountsToPlaces(counts, mine);
      const Expr from = e_.body().Name(ir::Ref(half), "from_half"), to = e_.body().Name(end - from, "to_half");
      OverElements(e_.IndexInt(0), end, [&](const Expr& j) {
        const Word word = Named(GetWord(both, from + j));
        const Expr slot = e_.body().Name(mine + DigitOf(word.word, shift), "slot");
        const Expr at = e_.body().Name(ir::Load(counts, slot), "to");
        PutWord(both, to + ir::Cast(at, e_.math().type().element), word);
        e_.body().Add(ir::Store(counts, slot, at + 1));
      });
      e_.body().Add(ir::Assign(half, to));
      const ir::Stmt move = e_.values().Close();
      e_.body().Add(ir::If(differ, move));
    });
    return e_.body().Name(ir::Ref(half), "sorted");
  }

  // Where the part's elements of each digit go: after all smaller digits, and after the same digit of the parts before.
  ir::BufferRef PlacesOfPart(const ir::BufferRef& counts) {
    const ir::BufferRef total = e_.PrivateArray("total", ElementType::kU32, kDigits),
                        place = e_.PrivateArray("place", ElementType::kU32, kDigits);
    OverDigits([&](const Expr& d) {
      e_.body().Add(ir::Store(total, d, ir::Int(0, kU32)));
      e_.body().Add(ir::Store(place, d, ir::Int(0, kU32)));
    });
    Serial("q", shape_.parts, e_.IndexInt(0), e_.IndexInt(shape_.parts), [&](const Expr& q) {
      const Expr before =
          e_.body().Name(ir::Cast(ir::Compare(Op::kLt, q, ir::Ref(part_var_)), ElementType::kU32), "before");
      OverDigits([&](const Expr& d) {
        const Expr count = e_.body().Name(ir::Load(counts, CountAt(q, d)), "count");
        e_.body().Add(ir::Store(total, d, ir::Load(total, d) + count));
        e_.body().Add(ir::Store(place, d, ir::Load(place, d) + count * before));
      });
    });
    const Var sum = e_.body().Mutable(ir::Int(0, kU32), "sum");
    Serial("d", kDigits, e_.IndexInt(0), e_.IndexInt(kDigits), [&](const Expr& d) {
      e_.body().Add(ir::Store(place, d, ir::Load(place, d) + ir::Ref(sum)));
      e_.body().Add(ir::Assign(sum, ir::Ref(sum) + ir::Load(total, d)));
    });
    return place;
  }

  // Insertion from the left; equal keys stay in order.
  void InsertionSort(const Words& words) {
    Serial("j", shape_.length, e_.IndexInt(1), e_.IndexInt(shape_.length), [&](const Expr& j) {
      const Word moving = Named(GetWord(words, j));
      const Var at = e_.body().Mutable(j, "at");
      const Expr above = ir::Ref(at) - 1;
      const Expr bounded = ir::Max(above, e_.IndexInt(0));
      const Expr goes_on =
          ir::And(ir::Compare(Op::kGt, ir::Ref(at), e_.IndexInt(0)),
                  ir::Compare(Op::kGt, form_.Order(ir::Load(words.words, bounded)), form_.Order(moving.word)));
      e_.values().Open();
      PutWord(words, ir::Ref(at), Named(GetWord(words, above)));
      e_.body().Add(ir::Assign(at, above));
      const ir::Stmt step = e_.values().Close();
      e_.body().Add(ir::While(goes_on, step));
      PutWord(words, ir::Ref(at), moving);
    });
  }

  Emission e_;
  const Instruction& sort_;
  WordForm form_;
  SortShape shape_;
  ScratchPlan scratch_;
  hlo::Dims dims_, others_;
  size_t dimension_;
  Var row_var_, part_var_;
  Indices row_;
};

bool Takes(const Instruction& sort, const DeviceSpec& device) {
  const hlo::Dims& dims = sort.operand(0)->shape().dimensions();
  const int64_t length = dims[static_cast<size_t>(sort.As<hlo::attr::Sort>().dimension)];
  return device.device_class == DeviceClass::kCpu && length > 1 && length < INT32_MAX;
}

}  // namespace

std::optional<int64_t> RadixSortScratchBytes(const Instruction& sort, const DeviceSpec& device) {
  const auto form = Takes(sort, device) ? WordForm::Of(sort) : std::nullopt;
  if (!form) return std::nullopt;
  const SortShape shape = SortShape::Of(sort, *form);
  return shape.is_private ? 0 : ScratchPlan::Of(shape, *form).end;
}

std::optional<Launches> EmitRadixSort(const EmitRequest& request) {
  const Instruction& sort = *request.hero.instruction;
  const auto form = Takes(sort, request.context.device) ? WordForm::Of(sort) : std::nullopt;
  if (!form) return std::nullopt;
  Launches launches;
  if (SortShape::Of(sort, *form).is_private) {
    launches.push_back(RadixKernel(request, *form).WholeRow());
    return launches;
  }
  launches.push_back(RadixKernel(request, *form).MakeWords());
  int half = 0;
  for (int pass = 0; pass < form->key.bits() / kDigitBits; ++pass) {
    launches.push_back(RadixKernel(request, *form).CountDigits(half));
    launches.push_back(RadixKernel(request, *form).MoveWords(half));
    half = 1 - half;
  }
  launches.push_back(RadixKernel(request, *form).ReadWords(half));
  return launches;
}

}  // namespace hlorun::opencl
