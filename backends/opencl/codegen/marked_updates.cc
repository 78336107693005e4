#include "backends/opencl/codegen/marked_updates.h"

#include <algorithm>

#include "backends/opencl/codegen/ceil_div.h"

namespace hlorun::opencl {
namespace {

using ir::Expr;

constexpr ir::Type kWord{hlo::ElementType::kU32, 1};
constexpr int64_t kBits = 32;

// The bit that counting leading zeros finds as `number`.
Expr Bit(const Expr& number) {
  return ir::Binary(ir::Op::kShr, ir::Int(int64_t{1} << (kBits - 1), kWord), ir::Cast(number, kWord.element));
}

}  // namespace

MarkedUpdates::MarkedUpdates(Emission& e, int64_t count, int64_t items, const Index& item)
    : e_(e),
      count_(count),
      items_(items),
      rounds_(std::min(kBits, CeilDiv(count, items))),
      block_(rounds_ * items),
      words_(CeilDiv(block_, kBits)),
      item_(item),
      marks_(e.LocalArray("marks", kWord.element, words_)),
      marked_words_(e.LocalArray("marked_words", kWord.element, CeilDiv(words_, kBits))) {}

void MarkedUpdates::ForEach(const std::function<Expr(const Index&, const Expr&)>& is_mine,
                            const std::function<void(const Index&)>& visit) {
  e_.values().SerialLoop(CeilDiv(count_, block_), [&](const Index& block) {
    Clear();
    e_.body().Add(ir::Barrier());
    Mark(block, is_mine);
    e_.body().Add(ir::Barrier());
    Walk(block, visit);
    if (!block.IsConstant()) e_.body().Add(ir::Barrier());
  });
}

void MarkedUpdates::Clear() {
  for (const ir::BufferRef& buffer : {marks_, marked_words_}) {
    const ir::Stmt store = ir::Store(buffer, e_.math().ToExpr(item_), ir::Zero(kWord));
    e_.body().Add(ir::If(e_.math().Within(item_, 0, buffer->size), store));
  }
}

// Several rounds at a time, so that what they load is under way together.
void MarkedUpdates::Mark(const Index& block, const std::function<Expr(const Index&, const Expr&)>& is_mine) {
  IndexMath& math = e_.math();
  const auto rounds = [&](const Index& first, int64_t count) {
    std::vector<std::pair<Index, Expr>> found;
    for (int64_t round = 0; round < count; ++round) {
      const Index within = math.Add(math.Mul(math.Add(first, round), items_), item_);
      const Index number = math.Add(math.Mul(block, block_), within);
      const Expr mask = e_.values().Both(nullptr, math.Within(number, 0, count_));
      found.emplace_back(within, e_.values().Both(mask, is_mine(number, mask)));
    }
    for (const auto& [within, is_marked] : found) {
      const auto set = [&](const ir::BufferRef& buffer, const Index& bit) {
        return ir::SetBits(buffer, math.ToExpr(math.FloorDiv(bit, kBits)), Bit(math.ToExpr(math.Mod(bit, kBits))));
      };
      const ir::Stmt both = ir::Block({set(marks_, within), set(marked_words_, math.FloorDiv(within, kBits))});
      e_.body().Add(is_marked ? ir::If(is_marked, both) : both);
    }
  };
  const int64_t steps = rounds_ / kTogether, rest = rounds_ % kTogether;
  if (steps > 0)
    e_.values().SerialLoop(steps, [&](const Index& step) { rounds(math.Mul(step, kTogether), kTogether); });
  if (rest > 0) rounds(steps * kTogether, rest);
}

void MarkedUpdates::Walk(const Index& block, const std::function<void(const Index&)>& visit) {
  IndexMath& math = e_.math();
  e_.values().SerialLoop(marked_words_->size, [&](const Index& words) {
    ForEachBit(marked_words_, words, [&](const Expr& word_bit) {
      const Index word = Named("word", math.ToExpr(math.Mul(words, kBits)) + word_bit, words_);
      ForEachBit(marks_, word, [&](const Expr& bit) {
        const Index first = math.Add(math.Mul(block, block_), math.Mul(word, kBits));
        visit(Named("update", math.ToExpr(first) + bit, count_));
      });
    });
  });
}

void MarkedUpdates::ForEachBit(const ir::BufferRef& buffer, const Index& at,
                               const std::function<void(const Expr&)>& visit) {
  const ir::Var left = e_.body().Mutable(ir::Load(buffer, e_.math().ToExpr(at)), "left");
  e_.values().Open();
  const Expr number = e_.body().Name(ir::Call(kWord, "clz", {ir::Ref(left)}), "bit");
  e_.body().Add(ir::Assign(left, ir::Binary(ir::Op::kXor, ir::Ref(left), Bit(number))));
  visit(ir::Cast(number, e_.math().type().element));
  const Expr is_any = ir::Compare(ir::Op::kNe, ir::Ref(left), ir::Zero(kWord));
  e_.body().Add(ir::While(is_any, e_.values().Close()));
}

Index MarkedUpdates::Named(const std::string& name, const Expr& value, int64_t extent) {
  const ir::Var variable = e_.IndexVar(e_.body().FreshName(name), extent);
  e_.body().Add(ir::Let(variable, value));
  return e_.math().Of(variable);
}

}  // namespace hlorun::opencl
