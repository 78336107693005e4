#include "backends/opencl/codegen/turned_rows.h"

#include <algorithm>
#include <utility>

#include "backends/opencl/codegen/jam.h"

namespace hlorun::opencl {
namespace {

using ir::Expr;
using ir::Stmt;
using ir::StmtKind;

// Of a row, and of what is kept of all rows that are walked together: more comes from the second cache, twice.
constexpr int64_t kLongestRow = 256, kMostBytes = 64 << 10;
constexpr int kFewestLanes = 4;  // fewer are no vectors
constexpr int64_t kManySquares = 3;

// Variables that a statement sets.
void CollectSet(const Stmt& s, std::vector<ir::Var>& set) {
  if (s->kind == StmtKind::kLet || s->kind == StmtKind::kAssign || s->kind == StmtKind::kFor) set.push_back(s->var);
  for (const Stmt& inner : s->body) CollectSet(inner, set);
}

// A loop over a whole row, known to be one.
bool WalksRow(const Stmt& s, int lanes) {
  return s->kind == StmtKind::kFor && s->role == ir::LoopRole::kSerial && ir::IsIntConstant(s->begin, 0) &&
         ir::IsIntConstant(s->step, 1) && s->end->kind == ir::ExprKind::kIntConstant && s->end->integer >= lanes &&
         s->end->integer <= kLongestRow;
}

}  // namespace

TurnedRows::TurnedRows(Stmt body, ir::Var along, int lanes, size_t loop, TurnedLoads loads)
    : body_(std::move(body)), along_(std::move(along)), lanes_(lanes), loop_(loop), loads_(std::move(loads)) {}

std::optional<TurnedRows> TurnedRows::Of(const Stmt& body, const ir::Var& along, int lanes) {
  if (body->kind != StmtKind::kBlock || lanes < kFewestLanes) return std::nullopt;
  std::vector<ir::Var> set;
  CollectSet(body, set);
  for (size_t i = 0; i < body->body.size(); ++i) {
    const Stmt& loop = body->body[i];
    if (!WalksRow(loop, lanes)) continue;
    TurnedLoads loads(loop->body[0], along, loop->var);
    // Rows are read in front of the body, where nothing of it is known yet.
    const bool is_known =
        std::all_of(loads.crossings().begin(), loads.crossings().end(), [&](const TurnedLoads::Crossing& crossing) {
          return crossing.stride && std::none_of(set.begin(), set.end(), [&](const ir::Var& var) {
                   return var != loop->var && ir::Uses(crossing.place, var);
                 });
        });
    int64_t bytes = 0;
    for (const TurnedLoads::Crossing& crossing : loads.crossings())
      bytes += int64_t{2} * lanes * loop->end->integer * hlo::BytesOf(crossing.load->type.element);
    if (!loads.empty() && is_known && bytes <= kMostBytes) return TurnedRows(body, along, lanes, i, std::move(loads));
  }
  return std::nullopt;
}

int64_t TurnedRows::Length() const { return body_->body[loop_]->end->integer; }

std::vector<Stmt> TurnedRows::Filled(const Expr& rows, int64_t count) const {
  const ir::Type index = along_->type;
  const int64_t length = Length(), whole = length / lanes_ * lanes_;
  TurnedLoads::Block squares{rows, ir::Int(0, index), count, whole, lanes_, 0, /*reads_ahead=*/false};
  std::vector<Stmt> filled = {ir::Scope(loads_.Fill(squares))};
  if (whole == length) return filled;
  squares.side = lanes_;
  squares.first = ir::Int(length - lanes_, index);
  squares.at = length - lanes_;
  filled.push_back(ir::Scope(loads_.Fill(squares)));
  return filled;
}

Stmt TurnedRows::Reduced(const Expr& first, const Expr& rows, int64_t count) const {
  const ir::Type index = along_->type;
  const TurnedLoads::Block all{rows, ir::Int(0, index), count, Length(), lanes_, 0, /*reads_ahead=*/false};
  const ir::StmtNode& walk = *body_->body[loop_];
  std::vector<Stmt> statements = body_->body;
  statements[loop_] = ir::For(ir::LoopRole::kSerial, walk.var, walk.begin, walk.end, loads_.Body(all));
  const ir::Var lane = ir::MakeIndex("lane", 0, lanes_ - 1, index);
  const Stmt row = Substitute(ir::Block(std::move(statements)), along_, first + ir::Ref(lane));
  return ir::For(ir::LoopRole::kVector, lane, ir::Int(0, index), ir::Int(lanes_, index), row, 1, lanes_);
}

Stmt TurnedRows::Loop(const Expr& begin, const Expr& end) {
  const ir::Type index = along_->type;
  const int64_t pair = int64_t{2} * lanes_;
  const ir::Var strip = ir::MakeIndex("strip", along_->min, along_->max, index),
                rows = ir::MakeIndex("rows", along_->min, along_->max, index),
                first = ir::MakeIndex("first", along_->min, along_->max, index);
  const auto strip_of = [&](int64_t count, const std::vector<Stmt>& arrays, const Stmt& reduced) {
    std::vector<Stmt> inside = arrays;
    inside.push_back(ir::Let(rows, ir::Min(ir::Ref(strip), end - count)));
    for (const Stmt& filled : Filled(ir::Ref(rows), count)) inside.push_back(filled);
    inside.push_back(reduced);
    return ir::Block(std::move(inside));
  };
  // A reducer waits for what it made of the row's element before: two vectors of rows at a time. Where there are always
  // as many, the same code reads the squares of both, which compiles in half the time; rows of few squares take 1.2
  // times as long so.
  const auto known = ConstantDifference(end, begin);
  if (known && *known >= pair && Length() >= kManySquares * lanes_) {
    const std::vector<Stmt> arrays = loads_.Declare(pair, Length());
    const Stmt two = Jammed(Reduced(ir::Ref(first), ir::Ref(rows), pair), first, ir::Ref(rows), ir::Ref(rows) + lanes_);
    return ir::For(ir::LoopRole::kSerial, strip, begin, end, strip_of(pair, arrays, two), pair);
  }
  const std::vector<Stmt> arrays = loads_.Declare(lanes_, Length());
  const Stmt one = strip_of(lanes_, arrays, Reduced(ir::Ref(rows), ir::Ref(rows), lanes_));
  if (known == lanes_) return ir::Block({ir::Let(strip, begin), one});
  const Stmt two = Jammed(one, strip, ir::Ref(strip), ir::Ref(strip) + lanes_);
  return ir::For(ir::LoopRole::kSerial, strip, begin, end, two, pair);
}

}  // namespace hlorun::opencl
