#include "backends/opencl/kernels/register_tile.h"

#include <fmt/format.h>

#include <algorithm>

#include "backends/opencl/codegen/prefetch_lines.h"

namespace hlorun::opencl {

using ir::Expr;
using ir::Stmt;

// Measured: docs/products.md, the Xeon.
constexpr int64_t kBytesAhead = 1024;

Expr AddProduct(const Expr& sum, const Expr& x, const Expr& y) {
  return hlo::IsFloating(sum->type.element) ? ir::Fma(x, y, sum) : sum + x * y;
}

RegisterTile::RegisterTile(const std::string& name, int64_t rows, int64_t vectors, ir::Type vector_type)
    : name_(name), rows_(rows), vectors_(vectors), type_(vector_type) {
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t vector = 0; vector < vectors; ++vector) {
      accumulators_.push_back(ir::MakeVar(fmt::format("{}_{}_{}", name, row, vector), type_));
    }
  }
}

const ir::Var& RegisterTile::Accumulator(int64_t row, int64_t vector) const {
  return accumulators_[static_cast<size_t>(row * vectors_ + vector)];
}

Expr RegisterTile::At(int64_t row, int64_t vector) const { return ir::Ref(Accumulator(row, vector)); }

RegisterTile::Position RegisterTile::RowByRow() const {
  return [width = columns(), lanes = lanes()](int64_t row, int64_t vector) {
    return ir::Int(row * width + vector * lanes, ir::kIndex);
  };
}

Stmt RegisterTile::Declare() const {
  std::vector<Stmt> statements;
  for (const ir::Var& accumulator : accumulators_) statements.push_back(ir::Let(accumulator, ir::Zero(type_)));
  return ir::Block(std::move(statements));
}

Stmt RegisterTile::SetEach(const Position& value) const {
  std::vector<Stmt> statements;
  for (int64_t row = 0; row < rows_; ++row) {
    for (int64_t vector = 0; vector < vectors_; ++vector)
      statements.push_back(ir::Assign(Accumulator(row, vector), value(row, vector)));
  }
  return ir::Block(std::move(statements));
}

Stmt RegisterTile::Clear() const {
  return SetEach([&](int64_t, int64_t) { return ir::Zero(type_); });
}

Stmt RegisterTile::Load(const ir::BufferRef& buffer, const Position& position) const {
  return SetEach(
      [&](int64_t row, int64_t vector) { return ir::Load(buffer, ir::Ramp(position(row, vector), type_.lanes)); });
}

Stmt RegisterTile::Add(const ir::BufferRef& buffer, const Position& position) const {
  return SetEach([&](int64_t row, int64_t vector) {
    return At(row, vector) + ir::Load(buffer, ir::Ramp(position(row, vector), type_.lanes));
  });
}

Stmt RegisterTile::Fill(const Element& element) const {
  std::vector<Stmt> statements;
  for (int64_t row = 0; row < rows_; ++row) {
    const Expr value = ir::Splat(element(row), type_.lanes);
    for (int64_t vector = 0; vector < vectors_; ++vector)
      statements.push_back(ir::Assign(Accumulator(row, vector), value));
  }
  return ir::Block(std::move(statements));
}

Stmt RegisterTile::Step(const Element& element, const Vector& vector, const Multiplier* multiplier) const {
  const ir::Type operand{multiplier ? multiplier->operand : type_.element, type_.lanes};
  const auto add = [&](const Expr& sum, const Expr& row, const Expr& column) {
    return multiplier ? multiplier->add(sum, row, column) : AddProduct(sum, row, column);
  };
  std::vector<Stmt> statements;
  std::vector<Expr> columns;
  for (int64_t v = 0; v < vectors_; ++v) {
    const ir::Var column = ir::MakeVar(fmt::format("{}_column_{}", name_, v), operand);
    statements.push_back(ir::Let(column, vector(v)));
    columns.push_back(ir::Ref(column));
  }
  for (int64_t row = 0; row < rows_; ++row) {
    const Expr of_row = element(row);
    if (!of_row) continue;
    const ir::Var scalar = ir::MakeVar(fmt::format("{}_row_{}", name_, row), operand);
    statements.push_back(ir::Let(scalar, ir::Splat(of_row, type_.lanes)));
    for (int64_t v = 0; v < vectors_; ++v) {
      const Expr& column = columns[static_cast<size_t>(v)];
      statements.push_back(ir::Assign(Accumulator(row, v), add(At(row, v), ir::Ref(scalar), column)));
    }
  }
  return ir::Block(std::move(statements));
}

Stmt RegisterTile::ReadAhead(const ir::BufferRef& panels, const Expr& at) const {
  return PrefetchLines(panels, at + kBytesAhead / hlo::BytesOf(panels->storage), columns());
}

Stmt RegisterTile::Store(const ir::BufferRef& buffer, const Position& position) const {
  std::vector<Stmt> statements;
  for (int64_t row = 0; row < rows_; ++row) {
    for (int64_t vector = 0; vector < vectors_; ++vector) {
      statements.push_back(ir::Store(buffer, ir::Ramp(position(row, vector), type_.lanes), At(row, vector)));
    }
  }
  return ir::Block(std::move(statements));
}

int64_t MostTileRows(const DeviceSpec& device, int64_t vectors) {
  const int64_t registers = VectorRegisters(device);
  const int64_t spare = registers == 32 ? device.spare_registers : 0;
  return std::clamp<int64_t>((registers - 2 - spare - vectors) / vectors, 1, 14);
}

int64_t RegisterLanes(const DeviceSpec& device, hlo::ElementType type) {
  const int64_t lanes = device.vector_bytes / std::max(1, hlo::BytesOf(type));
  int64_t power = 1;
  while (power * 2 <= std::min<int64_t>(lanes, 16)) power *= 2;
  return power;
}

int64_t EvenTileRows(int64_t extent, int64_t limit) {
  if (extent <= limit) return std::max<int64_t>(extent, 1);
  // Fewer rows fill the multipliers worse, so the search stops at half the limit.
  int64_t best = limit;
  int64_t best_cost = -1;
  for (int64_t rows = limit; rows * 2 > limit; --rows) {
    const int64_t tiles = (extent + rows - 1) / rows;
    // A step of a tile costs its rows and about one row's worth of loads.
    const int64_t cost = tiles * (rows + 1);
    if (best_cost < 0 || cost < best_cost) {
      best = rows;
      best_cost = cost;
    }
  }
  return best;
}

}  // namespace hlorun::opencl
