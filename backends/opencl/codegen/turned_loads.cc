#include "backends/opencl/codegen/turned_loads.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <set>

#include "backends/opencl/codegen/cache_line.h"
#include "backends/opencl/codegen/load_strides.h"
#include "backends/opencl/codegen/prefetch_lines.h"
#include "backends/opencl/codegen/transpose_square.h"

namespace hlorun::opencl {
namespace {

using ir::Expr;
using ir::Stmt;

// Blocks of more arrays leave the first-level cache, and each has its squares as code.
constexpr size_t kMostLoads = 4;
constexpr int64_t kBlocksAhead = 2;

void Collect(const Expr& x, std::vector<Expr>& loads) {
  if (x->kind == ir::ExprKind::kLoad &&
      std::none_of(loads.begin(), loads.end(), [&](const Expr& known) { return Equal(known, x); })) {
    loads.push_back(x);
  }
  for (const Expr& a : x->args) Collect(a, loads);
}

// Those that each iteration makes, whatever it finds.
std::vector<Expr> LoadsOf(const Stmt& body) {
  std::vector<Expr> loads;
  for (const Stmt& s : body->kind == ir::StmtKind::kBlock ? body->body : std::vector<Stmt>{body}) {
    if (s->kind != ir::StmtKind::kLet && s->kind != ir::StmtKind::kStore) continue;
    for (const Expr* e : {&s->value, &s->index}) {
      if (*e) Collect(*e, loads);
    }
  }
  return loads;
}

bool CanTurn(const Expr& load) {
  const hlo::ElementType type = load->type.element;
  return load->args.size() == 1 && load->buffer->space == ir::Buffer::Space::kGlobal && !load->buffer->written &&
         type != hlo::ElementType::kPred;
}

}  // namespace

TurnedLoads::TurnedLoads(const Stmt& body, const ir::Var& along, const ir::Var& across)
    : body_(body), along_(along), across_(across) {
  const LoadStrides strides(body);
  for (const Expr& load : LoadsOf(body)) {
    const auto stride = strides.Of(load, along);
    const bool crosses = !stride || std::abs(*stride) * hlo::BytesOf(load->buffer->storage) >= kLineBytes;
    if (!CanTurn(load) || !crosses || strides.Of(load, across) != 1) continue;
    if (const auto place = strides.PlaceOf(load)) loads_.push_back({load, *place, stride});
  }
  if (loads_.size() > kMostLoads) loads_.clear();
}

int64_t TurnedLoads::element_bytes() const {
  int64_t bytes = kLineBytes;
  for (const Crossing& crossing : loads_)
    bytes = std::min<int64_t>(bytes, hlo::BytesOf(crossing.load->buffer->storage));
  return bytes;
}

std::vector<Stmt> TurnedLoads::Declare(int64_t width, int64_t side) {
  std::vector<Stmt> arrays;
  for (Crossing& crossing : loads_) {
    crossing.turned = ir::MakeBuffer(fmt::format("turned{}", arrays.size()), crossing.load->type.element, width * side,
                                     ir::Buffer::Space::kPrivate, /*written=*/true);
    arrays.push_back(ir::DeclareArray(crossing.turned));
  }
  return arrays;
}

Stmt TurnedLoads::Fill(const Block& block) const {
  const ir::Type index = along_->type;
  std::vector<Stmt> fills;
  for (const Crossing& crossing : loads_) {
    const ir::BufferRef& from = crossing.load->buffer;
    const std::string& name = crossing.turned->name;
    const bool whole_rows = from->storage != crossing.load->type.element;
    const auto place_of = [&](const Expr& along) {
      return Substitute(Substitute(crossing.place, along_, along), across_, block.first);
    };
    const ir::Var row = ir::MakeIndex("square_row", 0, block.width - block.lanes, index),
                  column = ir::MakeIndex("square_column", 0, block.side - block.lanes, index);
    std::vector<Expr> rows;  // where a square's begin
    std::vector<Stmt> squares;
    if (crossing.stride) {
      const ir::Var corner = ir::MakeVar(name + "_from", index),
                    ahead = ir::MakeIndex(name + "_ahead", 0, block.width - 1, index);
      fills.push_back(ir::Let(corner, place_of(block.begin)));
      if (block.reads_ahead) {
        const Stmt lines = ReadAhead(crossing, ir::Ref(corner) + ir::Ref(ahead) * *crossing.stride, block);
        fills.push_back(ir::For(ir::LoopRole::kSerial, ahead, ir::Int(0, index), ir::Int(block.width, index), lines));
      }
      for (int64_t i = 0; i < block.lanes; ++i) rows.push_back(ir::Ref(corner) + (ir::Ref(row) + i) * *crossing.stride);
    } else {
      for (int64_t i = 0; i < block.lanes; ++i) {
        const ir::Var begin = ir::MakeVar(fmt::format("{}_from{}", name, i), index);
        squares.push_back(ir::Let(begin, place_of(block.begin + (ir::Ref(row) + i))));
        if (block.reads_ahead) squares.push_back(ReadAhead(crossing, ir::Ref(begin), block));
        rows.push_back(ir::Ref(begin));
      }
    }
    const auto read = [&](int64_t i, int64_t element, int64_t count) {
      const Expr place = rows[static_cast<size_t>(i)] + ir::Ref(column) + element;
      return ir::Load(from, ir::Ramp(place, static_cast<int>(count)));
    };
    const auto write = [&](int64_t i, const Expr& elements) {
      return ir::Store(crossing.turned,
                       ir::Ramp((ir::Ref(column) + (block.at + i)) * block.width + ir::Ref(row), block.lanes),
                       elements);
    };
    const auto loop = [&](const ir::Var& var, int64_t end, const Stmt& body) {
      return ir::For(ir::LoopRole::kSerial, var, ir::Int(0, index), ir::Int(end, index), body, block.lanes);
    };
    const Stmt square = TransposeSquare(crossing.load->type.WithLanes(block.lanes), whole_rows, read, write);
    squares.push_back(loop(column, block.side, square));
    fills.push_back(loop(row, block.width, ir::Block(std::move(squares))));
  }
  return ir::Block(std::move(fills));
}

// Lines of the block after the next one, each of a row of its own: more rows than the hardware's prefetcher follows.
Stmt TurnedLoads::ReadAhead(const Crossing& crossing, const Expr& row, const Block& block) {
  const ir::BufferRef& from = crossing.load->buffer;
  const int64_t ahead = kBlocksAhead * block.side, span = block.width * crossing.stride.value_or(0);
  if (from->size > INT32_MAX - ahead - span && row->type == ir::kIndex32) return ir::Block({});
  return PrefetchLines(from, row + ahead, block.side, ir::CacheLevel::kSecond);
}

Stmt TurnedLoads::Body(const Block& block) const {
  Stmt body = body_;
  for (const Crossing& crossing : loads_) {
    const Expr place = (ir::Ref(across_) - block.first) * block.width + (ir::Ref(along_) - block.begin);
    body = Replace(body, crossing.load, ir::Load(crossing.turned, place));
  }
  return body;
}

std::vector<ir::Helper> TurnedLoads::Helpers(int lanes, bool inline_assembly) const {
  std::vector<ir::Helper> helpers;
  for (const Crossing& crossing : loads_) {
    const bool whole_rows = crossing.load->buffer->storage != crossing.load->type.element;
    for (ir::Helper& helper : TransposeHelpers(crossing.load->type.WithLanes(lanes), whole_rows, inline_assembly)) {
      const bool is_new = std::none_of(helpers.begin(), helpers.end(),
                                       [&](const ir::Helper& known) { return known.name == helper.name; });
      if (is_new) helpers.push_back(std::move(helper));
    }
  }
  return helpers;
}

}  // namespace hlorun::opencl
