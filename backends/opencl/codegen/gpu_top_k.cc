#include "backends/opencl/codegen/gpu_top_k.h"

#include <algorithm>
#include <functional>
#include <utility>
#include <vector>

#include "backends/opencl/codegen/banked_slots.h"
#include "backends/opencl/codegen/ceil_div.h"
#include "backends/opencl/codegen/emission.h"
#include "backends/opencl/codegen/powers_of_two.h"
#include "backends/opencl/codegen/scratch.h"
#include "backends/opencl/codegen/top_k_row.h"

namespace hlorun::opencl {
namespace {

using hlo::ElementType;
using hlo::Instruction;
using ir::Expr;
using ir::Op;
using ir::Var;

constexpr int64_t kEach = 8;  // entries that an item keeps in registers
constexpr int64_t kMostItems = 512, kFewestItems = 32;
constexpr int64_t kGoodItems = 128;
constexpr int64_t kMostReads = 8;  // times that an item reads as many
constexpr BankedSlots kSlots{16};  // of eight bytes
constexpr ir::Type kU64{ElementType::kU64, 1};

// One launch: pieces of each row, of `length` elements or entries, to lists of k.
struct Round {
  int64_t length;
  int64_t items;  // of a group
  int64_t reads;  // of each item, of kEach elements
  int64_t list;   // entries of the lists that are merged: k or more

  int64_t piece() const { return items * kEach * reads; }
  int64_t pieces() const { return CeilDiv(length, piece()); }
  // Whether the best items are chosen by their first entries before the entries are: no other item has any of the best.
  bool by_heads() const { return list > kEach && items >= 2 * list; }
  int64_t slots() const { return by_heads() ? std::max(items, list + list * kEach) : items * kEach; }
};

int64_t MostItems(const DeviceSpec& device) {
  int64_t items = kMostItems;
  while (items > device.max_work_group_size || kSlots.Count(items * kEach) * 8 > device.local_memory_bytes) items /= 2;
  return items;
}

Round RoundOf(int64_t rows, int64_t length, int64_t k, const DeviceSpec& device) {
  Round round{length, MostItems(device), 1, PowerFrom(std::max(k, kEach))};
  const auto is_large = [&](int64_t items) { return items * kEach >= 2 * std::max(length, round.list); };
  if (round.list == kEach) round.items = std::min(round.items, kGoodItems);
  while (round.items > kFewestItems && is_large(round.items)) round.items /= 2;
  // Longer pieces where enough groups are left to share them.
  const auto keeps_all_busy = [&](int64_t reads) {
    return rows * CeilDiv(length, round.items * kEach * reads) >= 4 * device.compute_units;
  };
  while (round.list == kEach && round.reads < kMostReads && round.piece() < length &&
         (keeps_all_busy(round.reads * 2) || round.piece() * 2 >= length)) {
    round.reads *= 2;
  }
  return round;
}

// The rounds of a topk, and where in scratch each but the last puts its entries.
struct Rounds {
  int64_t rows, k;
  std::vector<Round> all;
  std::vector<int64_t> offsets;
  int64_t scratch_bytes = 0;

  static Rounds Of(const Instruction& top, const DeviceSpec& device) {
    const hlo::Shape& shape = top.operand(0)->shape();
    Rounds rounds{shape.ElementCount() / shape.dimensions().back(), top.As<hlo::attr::TopK>().k, {}, {}};
    int64_t length = shape.dimensions().back();
    while (true) {
      rounds.all.push_back(RoundOf(rounds.rows, length, rounds.k, device));
      const int64_t pieces = rounds.all.back().pieces();
      if (pieces == 1) return rounds;
      length = pieces * rounds.k;
      rounds.offsets.push_back(rounds.scratch_bytes);
      rounds.scratch_bytes += AlignScratch(rounds.rows * length * 8);
    }
  }
};

// Pairs of a network that sorts eight (Batcher's odd-even merges), and of one that sorts what rises and then falls.
using Pairs = std::vector<std::pair<size_t, size_t>>;
const Pairs& SortingPairs() {
  static const Pairs kPairs = {{0, 1}, {2, 3}, {4, 5}, {6, 7}, {0, 2}, {1, 3}, {4, 6}, {5, 7}, {1, 2}, {5, 6},
                               {0, 4}, {1, 5}, {2, 6}, {3, 7}, {2, 4}, {3, 5}, {1, 2}, {3, 4}, {5, 6}};
  return kPairs;
}
const Pairs& MergingPairs() {
  static const Pairs kPairs = {{0, 4}, {1, 5}, {2, 6}, {3, 7}, {0, 2}, {1, 3},
                               {4, 6}, {5, 7}, {0, 1}, {2, 3}, {4, 5}, {6, 7}};
  return kPairs;
}

class GpuTopKKernel {
 public:
  GpuTopKKernel(const EmitRequest& request, const Rounds& rounds, size_t number)
      : e_(request.instruction, request.aliases, request.context),
        top_(*request.hero.instruction),
        rounds_(rounds),
        number_(number),
        round_(rounds.all[number]) {
    e_.GroupOf(round_.items);
    slots_ = e_.LocalArray("slots", ElementType::kU64, kSlots.Count(round_.slots()));
    row_ = e_.IndexVar("row", rounds_.rows);
    piece_ = e_.IndexVar("piece", round_.pieces());
  }

  EmittedLaunch Emit() {
    const hlo::Dims& dims = top_.operand(0)->shape().dimensions();
    TopKRow row(e_, top_, e_.math().Delinearize(e_.math().Of(row_), hlo::Dims(dims.begin(), dims.end() - 1)));
    e_.values().Open();
    std::vector<Var> mine;
    for (int64_t i = 0; i < kEach; ++i) mine.push_back(e_.body().Mutable(ir::Int(0, kU64), "mine"));
    Lanes(e_.IndexInt(round_.items), [&](const Expr& item) { ReadMine(item, row, mine); });
    StoreList(row, round_.by_heads() ? BestOfBestItems(mine) : BestOfAllItems(mine));
    ir::Stmt body = e_.values().Close();
    body = ir::For(ir::LoopRole::kParallel, piece_, e_.IndexInt(0), e_.IndexInt(round_.pieces()), body);
    return e_.Finish(ir::For(ir::LoopRole::kParallel, row_, e_.IndexInt(0), e_.IndexInt(rounds_.rows), body), 1);
  }

 private:
  using Statements = std::function<void(const Expr&)>;
  using Entries = std::vector<Expr>;

  void Lanes(const Expr& count, const Statements& body) {
    const Var item = e_.IndexVar(e_.body().FreshName("item"), std::max(round_.slots(), round_.items));
    e_.values().Open();
    body(ir::Ref(item));
    e_.body().Add(ir::For(ir::LoopRole::kVector, item, e_.IndexInt(0), count, e_.values().Close()));
  }

  Expr Over(const Expr& x, int64_t by) const { return ir::Binary(Op::kShr, x, e_.IndexInt(Log2(by))); }
  Expr Rest(const Expr& x, int64_t by) const { return ir::Binary(Op::kAnd, x, e_.IndexInt(by - 1)); }
  Expr InSlots(const Expr& entry) { return kSlots.At(e_.body(), entry); }

  // --- entries of an item ---

  // Of place `s` of the piece; 0 beyond the end.
  Expr Read(const Expr& s, TopKRow& row) {
    const Expr in_row = e_.body().Name(ir::Ref(piece_) * round_.piece() + s, "in_row");
    const Var j = e_.IndexVar(e_.body().FreshName("j"), round_.length);
    e_.body().Add(ir::Let(j, ir::Min(in_row, e_.IndexInt(round_.length - 1))));
    Expr entry;
    if (number_ == 0)
      entry = TopKRow::Entry(row.KeyAt(e_.math().Of(j)), ir::Ref(j));
    else
      entry = ir::Load(from_, ir::Ref(row_) * round_.length + ir::Ref(j));
    if (round_.length % round_.piece() != 0)
      entry = ir::Select(in_row < e_.IndexInt(round_.length), entry, ir::Int(0, kU64));
    return e_.body().Name(entry, "entry");
  }

  Entries Ordered(Entries entries, const Pairs& pairs) {
    for (const auto& [first, second] : pairs) {
      const Expr a = entries[first], b = entries[second];
      entries[first] = e_.body().Name(ir::Max(a, b), "high");
      entries[second] = e_.body().Name(ir::Min(a, b), "low");
    }
    return entries;
  }

  // The best of what an item reads, sorted.
  void ReadMine(const Expr& item, TopKRow& row, const std::vector<Var>& mine) {
    if (number_ > 0) {
      from_ = e_.Scratch("from", ElementType::kU64, rounds_.rows * round_.length, rounds_.offsets[number_ - 1],
                         /*written=*/false);
    }
    const auto read = [&](const Expr& first) {
      Entries entries;
      for (int64_t i = 0; i < kEach; ++i) entries.push_back(Read(first + i * round_.items, row));
      return Ordered(entries, SortingPairs());
    };
    const auto keep = [&](const Entries& entries) {
      for (size_t i = 0; i < mine.size(); ++i) e_.body().Add(ir::Assign(mine[i], entries[i]));
    };
    keep(read(item));
    if (round_.reads == 1) return;
    const Var turn = e_.IndexVar("turn", round_.reads);
    e_.values().Open();
    const Entries more = read(item + ir::Ref(turn) * (round_.items * kEach));
    Entries both;
    for (size_t i = 0; i < mine.size(); ++i)
      both.push_back(e_.body().Name(ir::Max(ir::Ref(mine[i]), more[more.size() - 1 - i]), "both"));
    keep(Ordered(both, MergingPairs()));
    e_.body().Add(ir::For(ir::LoopRole::kSerial, turn, e_.IndexInt(1), e_.IndexInt(round_.reads), e_.values().Close()));
  }

  // Into kEach slots from `first` on.
  void PutMine(const Expr& first, const std::vector<Var>& mine) {
    for (int64_t i = 0; i < kEach; ++i)
      e_.body().Add(ir::Store(slots_, InSlots(first + i), ir::Ref(mine[static_cast<size_t>(i)])));
  }

  // Both give the slot at which the sorted list of the best begins.
  int64_t BestOfAllItems(const std::vector<Var>& mine) {
    Lanes(e_.IndexInt(round_.items), [&](const Expr& item) { PutMine(item * kEach, mine); });
    e_.body().Add(ir::Barrier());
    Reduce({0, round_.items * kEach}, kEach);
    return 0;
  }
  int64_t BestOfBestItems(const std::vector<Var>& mine) {
    const int64_t list = round_.list;
    Lanes(e_.IndexInt(round_.items),
          [&](const Expr& item) { e_.body().Add(ir::Store(slots_, InSlots(item), ir::Ref(mine[0]))); });
    e_.body().Add(ir::Barrier());
    Reduce({0, round_.items}, 1);
    // There may be fewer items with entries than the list is long.
    const Region survivors{list, list * kEach};
    Lanes(e_.IndexInt(survivors.entries),
          [&](const Expr& entry) { e_.body().Add(ir::Store(slots_, InSlots(entry + list), ir::Int(0, kU64))); });
    e_.body().Add(ir::Barrier());
    Lanes(e_.IndexInt(round_.items), [&](const Expr&) { PutIfAmongBest(mine); });
    e_.body().Add(ir::Barrier());
    Reduce(survivors, kEach);
    return list;
  }
  // The item's entries, in the place of its first one among those of the best items.
  void PutIfAmongBest(const std::vector<Var>& mine) {
    const Expr head = ir::Ref(mine[0]), last = ir::Load(slots_, InSlots(e_.IndexInt(round_.list - 1)));
    const Expr is_among = ir::And(ir::Compare(Op::kGe, head, last), ir::Compare(Op::kNe, head, ir::Int(0, kU64)));
    e_.values().Open();
    const Var low = e_.body().Mutable(e_.IndexInt(0), "low"), high = e_.body().Mutable(e_.IndexInt(round_.list - 1));
    e_.values().Open();
    const Expr half = e_.body().Name(Over(ir::Ref(low) + ir::Ref(high), 2), "half");
    const Expr is_behind = e_.body().Name(ir::Compare(Op::kGt, ir::Load(slots_, InSlots(half)), head), "is_behind");
    e_.body().Add(ir::Assign(low, ir::Select(is_behind, half + 1, ir::Ref(low))));
    e_.body().Add(ir::Assign(high, ir::Select(is_behind, ir::Ref(high), half)));
    const ir::Stmt step = e_.values().Close();
    e_.body().Add(ir::While(ir::Ref(low) < ir::Ref(high), step));
    PutMine(ir::Ref(low) * kEach + round_.list, mine);
    const ir::Stmt put = e_.values().Close();
    e_.body().Add(ir::If(is_among, put));
  }

  // --- lists of the group ---

  // Slots of which whole lists are made.
  struct Region {
    int64_t begin, entries;
  };
  // A region's sorted lists of `size` become one of the best.
  void Reduce(const Region& region, int64_t size) {
    for (int64_t merged = 2 * size; merged <= round_.list; merged *= 2) MergeLists(region, merged);
    HalveLists(region);
  }

  void Order(const Expr& first, const Expr& second) {
    const Expr a_at = InSlots(first), b_at = InSlots(second);
    const Expr a = e_.body().Name(ir::Load(slots_, a_at)), b = e_.body().Name(ir::Load(slots_, b_at));
    e_.body().Add(ir::Store(slots_, a_at, ir::Max(a, b)));
    e_.body().Add(ir::Store(slots_, b_at, ir::Min(a, b)));
  }
  // Lists of `size` that rise and then fall, each `apart` from the next, sorted; `pairs`: half their entries.
  void MergeBitonic(const Region& region, int64_t size, const Expr& apart, const Expr& pairs) {
    for (int64_t distance = size / 2; distance >= 1; distance /= 2) {
      Lanes(pairs, [&](const Expr& pair) {
        const Expr within = e_.body().Name(Rest(pair, size / 2), "within");
        const Expr first = Over(pair, size / 2) * apart + (within + (within - Rest(within, distance)));
        const Expr at = e_.body().Name(first + region.begin, "first");
        Order(at, at + distance);
      });
      e_.body().Add(ir::Barrier());
    }
  }

  // Pairs of neighbouring sorted lists become one of `size`.
  void MergeLists(const Region& region, int64_t size) {
    const Expr pairs = e_.IndexInt(region.entries / 2);
    Lanes(pairs, [&](const Expr& pair) {
      const Expr within = e_.body().Name(Rest(pair, size / 2), "within");
      const Expr begin = e_.body().Name(Over(pair, size / 2) * size + region.begin, "begin");
      Order(begin + within, begin + (e_.IndexInt(size - 1) - within));
    });
    e_.body().Add(ir::Barrier());
    // Both halves rise or fall as they should now.
    if (size > 2) MergeBitonic(region, size / 2, e_.IndexInt(size / 2), pairs);
  }

  // Of every two lists the better half, until there is one.
  void HalveLists(const Region& region) {
    const int64_t list = round_.list, levels = Log2(region.entries / list);
    if (levels == 0) return;
    const Var level = e_.IndexVar("level", levels);
    e_.values().Open();
    const Expr apart = e_.body().Name(ir::Binary(Op::kShl, e_.IndexInt(list), ir::Ref(level)), "apart");
    const Expr entries = e_.body().Name(ir::Binary(Op::kShr, e_.IndexInt(region.entries / 2), ir::Ref(level)), "left");
    Lanes(entries, [&](const Expr& entry) {
      const Expr within = e_.body().Name(Rest(entry, list), "within");
      const Expr begin = e_.body().Name(Over(entry, list) * apart * 2 + region.begin, "begin");
      const Expr to = InSlots(begin + within);
      const Expr other = ir::Load(slots_, InSlots(begin + apart + (e_.IndexInt(list - 1) - within)));
      e_.body().Add(ir::Store(slots_, to, ir::Max(ir::Load(slots_, to), other)));
    });
    e_.body().Add(ir::Barrier());
    MergeBitonic(region, list, apart * 2, Over(entries, 2));
    e_.body().Add(ir::For(ir::LoopRole::kSerial, level, e_.IndexInt(0), e_.IndexInt(levels), e_.values().Close()));
  }

  void StoreList(TopKRow& row, int64_t first) {
    const bool is_last = number_ + 1 == rounds_.all.size();
    const ir::BufferRef to = is_last ? nullptr
                                     : e_.Scratch("to", ElementType::kU64, rounds_.rows * round_.pieces() * rounds_.k,
                                                  rounds_.offsets[number_], /*written=*/true);
    const Var i = e_.IndexVar("place", rounds_.k);
    e_.values().Open();
    const Expr entry = e_.body().Name(ir::Load(slots_, InSlots(ir::Ref(i) + first)), "entry");
    if (is_last) {
      for (const auto& output : e_.outputs()) row.StoreResult(output, e_.math().Of(i), entry);
    } else {
      const Expr list = ir::Ref(row_) * round_.pieces() + ir::Ref(piece_);
      e_.body().Add(ir::Store(to, list * rounds_.k + ir::Ref(i), entry));
    }
    e_.body().Add(ir::For(ir::LoopRole::kVector, i, e_.IndexInt(0), e_.IndexInt(rounds_.k), e_.values().Close()));
  }

  Emission e_;
  const Instruction& top_;
  const Rounds& rounds_;
  size_t number_;
  const Round& round_;
  Var row_, piece_;
  ir::BufferRef slots_, from_;
};

}  // namespace

bool FitsGpuTopK(const DeviceSpec& device) { return MostItems(device) >= kGoodItems; }

int64_t GpuTopKScratchBytes(const Instruction& top, const DeviceSpec& device) {
  return Rounds::Of(top, device).scratch_bytes;
}

Launches EmitGpuTopK(const EmitRequest& request) {
  const Rounds rounds = Rounds::Of(*request.hero.instruction, request.context.device);
  Launches launches;
  for (size_t i = 0; i < rounds.all.size(); ++i) launches.push_back(GpuTopKKernel(request, rounds, i).Emit());
  return launches;
}

}  // namespace hlorun::opencl
