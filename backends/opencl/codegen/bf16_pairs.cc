#include "backends/opencl/codegen/bf16_pairs.h"

#include <algorithm>
#include <map>

#include "backends/opencl/codegen/widener.h"

namespace hlorun::opencl {
namespace {

using namespace ir;  // NOLINT: this file is about nothing else

constexpr int kLanes = 16;
constexpr int kPairElements = 2 * kLanes;
constexpr Type kWords{ElementType::kU32, kLanes};
constexpr Type kFloats{ElementType::kF32, kLanes};

bool IsCall(const Expr& x, const char* function) { return x->kind == ExprKind::kCall && x->function == function; }

bool Loads(const Expr& x) {
  return x->kind == ExprKind::kLoad ||
         std::any_of(x->args.begin(), x->args.end(), [](const Expr& a) { return Loads(a); });
}

// Even and odd iterations side by side.
class PairWidener {
 public:
  PairWidener(const Var& loop_var, const Expr& base, const LoopEffects& effects)
      : even_(loop_var, base, 2, kLanes, effects), odd_(loop_var, base + 1, 2, kLanes, effects, "_odd") {
    if (!effects.assigned.empty()) throw CannotWiden{};
  }

  Stmt Widen(const Stmt& s) {
    switch (s->kind) {
      case StmtKind::kBlock: {
        std::vector<Stmt> body;
        for (const Stmt& b : s->body) body.push_back(Widen(b));
        return Block(std::move(body));
      }
      case StmtKind::kLet: return WidenLet(s);
      case StmtKind::kStore: return WidenStore(even_.Widen(s), odd_.Widen(s), s->value);
      case StmtKind::kBarrier:
      case StmtKind::kComment: return s;
      default: throw CannotWiden{};
    }
  }

  // Something was read or written as pairs: else they are not worth it.
  bool used() const { return used_; }

 private:
  // A value as pairs; where arithmetic gave it, also that before it was rounded.
  struct Pairs {
    Expr words;
    Expr even, odd;
  };

  Stmt WidenLet(const Stmt& s) {
    const Stmt even = even_.Widen(s), odd = odd_.Widen(s);
    const Expr &x = even->value, &y = odd->value;
    if (even->var == s->var) return even;  // the same for all
    if (x->type.lanes == 1) return Block({even, odd});
    if (x->kind == ExprKind::kLoad) return WidenLoad(s->var, even, odd);
    if (Loads(x)) throw CannotWiden{};
    if (IsCall(x, "hl_result_bf16")) {
      Pairs pairs{nullptr, x->args[0], y->args[0]};
      return Unpacked(s->var, Call(kWords, kRoundToPairs, {x->args[0], y->args[0]}), pairs, even->var, odd->var);
    }
    if (IsCall(x, kAddBf16)) {
      const Pairs* pairs = Find(s->value->args[1]);
      if (pairs == nullptr) return Block({even, odd});
      const Expr words = pairs->even ? Call(kWords, kRoundToAnyPairs, {pairs->even, pairs->odd}) : pairs->words;
      return Block({Let(even->var, Call(kFloats, kSumOfPairs, {x->args[0], words})), Let(odd->var, y->args[0])});
    }
    return Block({even, odd});
  }

  // Where the even iterations' vector begins if the two together are contiguous.
  static Expr FirstOf(const Expr& even, const Expr& odd) {
    const bool is_ramp = even->kind == ExprKind::kRamp && IsIntConstant(even->args[1], 2);
    if (!is_ramp || odd->kind != ExprKind::kRamp || ConstantDifference(odd->args[0], even->args[0]) != 1)
      throw CannotWiden{};
    return even->args[0];
  }

  Stmt WidenLoad(const Var& scalar, const Stmt& even, const Stmt& odd) {
    const Expr& load = even->value;
    if (load->args.size() > 1) throw CannotWiden{};
    const Expr first = FirstOf(load->args[0], odd->value->args[0]);
    if (load->buffer->unordered) {
      return Block({Let(even->var, Load(load->buffer, Ramp(first, kLanes))),
                    Let(odd->var, Load(load->buffer, Ramp(first + kLanes, kLanes)))});
    }
    if (load->buffer->storage != ElementType::kBF16) throw CannotWiden{};
    used_ = true;
    const Expr place = Load(load->buffer, Ramp(first, kLanes));
    return Unpacked(scalar, Call(kWords, kLoadPairs, {place}), {}, even->var, odd->var);
  }

  Stmt Unpacked(const Var& scalar, const Expr& words, Pairs pairs, const Var& even, const Var& odd) {
    const Var packed = MakeVar(scalar->name + "_pairs", kWords);
    pairs.words = Ref(packed);
    pairs_[scalar.get()] = pairs;
    return Block({Let(packed, words), Let(even, Call(kFloats, kEvenOfPairs, {Ref(packed)})),
                  Let(odd, Call(kFloats, kOddOfPairs, {Ref(packed)}))});
  }

  Stmt WidenStore(const Stmt& even, const Stmt& odd, const Expr& scalar) {
    const BufferRef& buffer = even->buffer;
    const Expr first = FirstOf(even->index, odd->index);
    if (Loads(even->value)) throw CannotWiden{};
    if (buffer->unordered) {
      return Block(
          {Store(buffer, Ramp(first, kLanes), even->value), Store(buffer, Ramp(first + kLanes, kLanes), odd->value)});
    }
    if (buffer->storage != ElementType::kBF16) throw CannotWiden{};
    used_ = true;
    const Pairs* pairs = Find(scalar);
    const Expr words = pairs ? pairs->words : Call(kWords, kJoinPairs, {even->value, odd->value});
    return Store(buffer, Ramp(first, kLanes), words,
                 buffer->streams && KnownFactor(first, kPairElements) == kPairElements);
  }

  const Pairs* Find(const Expr& scalar) const {
    const auto found = scalar->kind == ExprKind::kVar ? pairs_.find(scalar->var.get()) : pairs_.end();
    return found == pairs_.end() ? nullptr : &found->second;
  }

  Widener even_, odd_;
  std::map<const Variable*, Pairs> pairs_;
  bool used_ = false;
};

}  // namespace

bool WorthPairs(const DeviceSpec& device, int lanes, int64_t length) {
  return device.device_class == DeviceClass::kCpu && !device.bf16_dot.empty() && lanes == kLanes &&
         length >= kPairElements;
}

std::optional<Stmt> WidenToPairs(const Stmt& loop) {
  const std::optional<int64_t> extent = ConstantDifference(loop->end, loop->begin);
  if (!loop->pairs || loop->width != kLanes || !extent || *extent < kPairElements) return std::nullopt;
  const LoopEffects effects = EffectsOf(loop->body[0]);
  if (*extent % kPairElements != 0 && !IsRepeatable(effects)) return std::nullopt;
  try {
    const auto widened = [&](const Expr& base) {
      PairWidener widener(loop->var, base, effects);
      Stmt body = widener.Widen(loop->body[0]);
      if (!widener.used()) throw CannotWiden{};
      return body;
    };
    if (*extent == kPairElements) return widened(loop->begin);
    const Var at = MakeVar(loop->var->name, loop->var->type);
    at->factor = KnownFactor(loop->begin, kPairElements);
    if (*extent % kPairElements == 0)
      return For(LoopRole::kSerial, at, loop->begin, loop->end, widened(Ref(at)), kPairElements);
    // The last words reach back over elements already done.
    const Var last = MakeVar(loop->var->name + "_v", loop->var->type);
    const Stmt body = Block({Let(last, Min(Ref(at), loop->end - kPairElements)), widened(Ref(last))});
    return For(LoopRole::kSerial, at, loop->begin, loop->end, body, kPairElements);
  } catch (const CannotWiden&) {
    return std::nullopt;
  }
}

}  // namespace hlorun::opencl
