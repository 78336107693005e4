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
    : body_(std::move(body)), along_(std::move(along)), lanes_(lanes), loop_(loop), loads_(std::move(loads)) {
  arrays_ = loads_.Declare(lanes_, Length());
}

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

Stmt TurnedRows::Loop(const Expr& begin, const Expr& end) const {
  const ir::Type index = along_->type;
  const ir::Var strip = ir::MakeIndex("strip", along_->min, along_->max, index),
                rows = ir::MakeIndex("rows", along_->min, along_->max, index);
  const int64_t length = Length(), whole = length / lanes_ * lanes_;
  const TurnedLoads::Block all{ir::Ref(rows), ir::Int(0, index), lanes_, length, lanes_, 0, /*reads_ahead=*/false};
  TurnedLoads::Block squares = all, last = all;
  squares.side = whole;
  last.side = lanes_;
  last.first = ir::Int(length - lanes_, index);
  last.at = length - lanes_;

  const ir::StmtNode& walk = *body_->body[loop_];
  std::vector<Stmt> statements = body_->body;
  statements[loop_] = ir::For(ir::LoopRole::kSerial, walk.var, walk.begin, walk.end, loads_.Body(all));
  const ir::Var lane = ir::MakeIndex("lane", 0, lanes_ - 1, index);
  const Stmt row = Substitute(ir::Block(std::move(statements)), along_, ir::Ref(rows) + ir::Ref(lane));
  std::vector<Stmt> inside = arrays_;
  inside.push_back(ir::Let(rows, ir::Min(ir::Ref(strip), end - lanes_)));
  inside.push_back(ir::Scope(loads_.Fill(squares)));
  if (whole < length) inside.push_back(ir::Scope(loads_.Fill(last)));
  inside.push_back(ir::For(ir::LoopRole::kVector, lane, ir::Int(0, index), ir::Int(lanes_, index), row, 1, lanes_));
  if (ConstantDifference(end, begin) == lanes_) return ir::Block({ir::Let(strip, begin), ir::Block(std::move(inside))});
  // A reducer waits for what it made of the row's element before.
  const Stmt two = Jammed(ir::Block(std::move(inside)), strip, ir::Ref(strip), ir::Ref(strip) + lanes_);
  return ir::For(ir::LoopRole::kSerial, strip, begin, end, two, int64_t{2} * lanes_);
}

}  // namespace hlorun::opencl
