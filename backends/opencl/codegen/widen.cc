#include "backends/opencl/codegen/widen.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <vector>

#include "backends/opencl/codegen/bf16_pairs.h"
#include "backends/opencl/codegen/cache_line.h"
#include "backends/opencl/codegen/emission.h"
#include "backends/opencl/codegen/loop_pieces.h"
#include "backends/opencl/codegen/widener.h"

namespace hlorun::opencl {
namespace {

using namespace ir;  // NOLINT: this file is about nothing else

constexpr int64_t kMostVectors = 4;  // that a step takes
constexpr int64_t kShortest = 4;     // loop that is worth a vector
// Work of an iteration from which on a tail is worth vectors of its own, which are as much code again.
constexpr int64_t kWorkOfTail = 64;

Stmt Serial(const Stmt& loop, const Expr& begin, const Expr& end) {
  return For(LoopRole::kSerial, loop->var, begin, end, loop->body[0]);
}

Stmt WidenPiece(const Stmt& loop);

std::vector<Stmt> StatementsOf(const Stmt& body) {
  return body->kind == StmtKind::kBlock ? body->body : std::vector<Stmt>{body};
}

// Whether elements of several values lie side by side, so that they are whole lines already. (Parts of one array lie
// further apart.)
bool LieInTurn(const std::vector<Stmt>& statements) {
  std::map<const Buffer*, std::vector<Expr>> places;
  for (const Stmt& s : statements) {
    if (s->kind == StmtKind::kStore) places[s->buffer.get()].push_back(s->index);
  }
  return std::any_of(places.begin(), places.end(), [](const auto& stored) {
    const std::vector<Expr>& indices = stored.second;
    if (indices.size() == 1) return false;
    const std::optional<int64_t> apart = ConstantDifference(indices[1], indices[0]);
    return !apart || std::abs(*apart) < static_cast<int64_t>(indices.size());
  });
}

// As many vectors as make a cache line of the narrowest result that is written past the caches: a line that is written
// in parts, other loads and lines in between, may leave its buffer in parts too.
int64_t VectorsOfLine(const Stmt& body, const LoopEffects& effects, int width) {
  const std::vector<Stmt> statements = StatementsOf(body);
  const bool is_plain = std::all_of(statements.begin(), statements.end(), [](const Stmt& s) {
    return s->kind == StmtKind::kLet || s->kind == StmtKind::kStore;
  });
  if (!is_plain || LieInTurn(statements) || !IsRepeatable(effects)) return 1;
  int64_t vectors = 1;
  for (const Buffer* buffer : effects.stored) {
    if (buffer->streams)
      vectors = std::max<int64_t>(vectors, kLineBytes / (int64_t{width} * hlo::BytesOf(buffer->storage)));
  }
  return std::min(vectors, kMostVectors);
}

// A vector loop as one of steps of `vectors` vectors of `width`.
class Steps {
 public:
  Steps(const Stmt& loop, const LoopEffects& effects, int width, int64_t vectors)
      : loop_(loop), effects_(effects), width_(width), vectors_(vectors) {}

  // Throws CannotWiden.
  Stmt Build(const std::optional<int64_t>& extent) const {
    const int64_t step = width_ * vectors_;
    if (extent && *extent == step) return At(loop_->begin);
    const Type type = loop_->var->type;
    const Var at = MakeVar(loop_->var->name, type);
    at->factor = KnownFactor(loop_->begin, step);
    const auto over = [&](const Expr& end, const Stmt& body) {
      return For(LoopRole::kSerial, at, loop_->begin, end, body, step);
    };
    if (extent && *extent % step == 0) return over(loop_->end, At(Ref(at)));
    if (extent && IsRepeatable(effects_)) {
      // The last step reaches back over elements already done, instead of a scalar tail.
      const Var last = MakeVar(loop_->var->name + "_v", type);
      last->factor = std::gcd(at->factor, KnownFactor(loop_->end, step));
      return over(loop_->end, Block({Let(last, Min(Ref(at), loop_->end - step)), At(Ref(last))}));
    }
    if (extent && (HasLoop(loop_->body[0]) || WorkOf(loop_->body[0]) >= kWorkOfTail)) {
      const Expr begin = Add(loop_->begin, Int(*extent / step * step, type));
      const Stmt tail = For(LoopRole::kVector, loop_->var, begin, loop_->end, loop_->body[0], 1, width_);
      return Block({over(begin, At(Ref(at))), Scope(WidenPiece(tail))});
    }
    const Var split = MakeVar(loop_->var->name + "_split", type);
    const Expr whole = Mul(Binary(Op::kDiv, Sub(loop_->end, loop_->begin), Int(step, type)), Int(step, type));
    return Block(
        {Let(split, Add(loop_->begin, whole)), over(Ref(split), At(Ref(at))), Serial(loop_, Ref(split), loop_->end)});
  }

 private:
  // The iterations from `base` on, each statement for all vectors before the next.
  Stmt At(const Expr& base) const {
    std::vector<Widener> wideners;
    for (int64_t i = 0; i < vectors_; ++i) {
      wideners.emplace_back(loop_->var, base + i * width_, 1, width_, effects_, i == 0 ? "" : "_" + std::to_string(i));
    }
    std::vector<Stmt> widened;
    for (const Stmt& s : StatementsOf(loop_->body[0])) {
      widened.push_back(wideners[0].Widen(s));
      const Stmt first = widened.back();
      for (size_t i = 1; i < wideners.size(); ++i) {
        const Stmt next = wideners[i].Widen(s);
        const bool is_shared = s->kind == StmtKind::kLet && next->var == s->var;
        // A scalar that all lanes of a vector share may differ between vectors: it has no name of its own.
        if (is_shared && !Equal(next->value, first->value)) throw CannotWiden{};
        if (!is_shared) widened.push_back(next);
      }
    }
    return Block(std::move(widened));
  }

  const Stmt& loop_;
  const LoopEffects& effects_;
  int width_;
  int64_t vectors_;
};

Stmt WidenPiece(const Stmt& loop) {
  const LoopEffects effects = EffectsOf(loop->body[0]);
  const std::optional<int64_t> extent = ConstantDifference(loop->end, loop->begin);
  int width = loop->width;
  if (extent) {
    while (width > 1 && width > *extent) width /= 2;
  }
  if (width == 1 || extent.value_or(kShortest) < kShortest) return Serial(loop, loop->begin, loop->end);
  int64_t vectors = extent ? VectorsOfLine(loop->body[0], effects, width) : 1;
  while (vectors > 1 && vectors * width > extent.value_or(0)) vectors /= 2;
  for (; vectors >= 1; vectors = vectors > 1 ? 1 : 0) {
    try {
      return Steps(loop, effects, width, vectors).Build(extent);
    } catch (const CannotWiden&) {
    }
  }
  return Serial(loop, loop->begin, loop->end);
}

}  // namespace

Stmt WidenVectorLoop(const Stmt& loop) {
  if (const std::optional<Stmt> pairs = WidenToPairs(loop)) return *pairs;
  std::vector<Stmt> pieces = PiecesOf(loop);
  if (pieces.size() == 1) return WidenPiece(loop);
  for (Stmt& piece : pieces) piece = Scope(WidenPiece(piece));
  return Block(std::move(pieces));
}

}  // namespace hlorun::opencl
