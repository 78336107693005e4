// The innermost part of every product: a tile of accumulators that lives in vector registers.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "backends/opencl/codegen/kernel_ir.h"
#include "backends/opencl/codegen/vector_registers.h"
#include "hlo/device_spec.h"

namespace hlorun::opencl {

// sum + x * y, fused where they are floating.
ir::Expr AddProduct(const ir::Expr& sum, const ir::Expr& x, const ir::Expr& y);

// `rows` x (`vectors` * `lanes`) accumulators. A step multiplies one element of each row with one vector of each column
// block: the elements are broadcast, so a step costs `vectors` vector loads and `rows` scalar ones for rows * vectors
// multiplications.
class RegisterTile {
 public:
  RegisterTile(const std::string& name, int64_t rows, int64_t vectors, ir::Type vector_type);

  int64_t rows() const { return rows_; }
  int64_t vectors() const { return vectors_; }
  int64_t lanes() const { return type_.lanes; }
  int64_t columns() const { return vectors_ * type_.lanes; }
  ir::Type vector_type() const { return type_; }

  using Element = std::function<ir::Expr(int64_t row)>;                   // a scalar, or null for none
  using Vector = std::function<ir::Expr(int64_t vector)>;                 // `lanes` wide
  using Position = std::function<ir::Expr(int64_t row, int64_t vector)>;  // element index of a vector's first lane

  // Places in an array of the tile's size, row by row.
  Position RowByRow() const;

  // Declares the accumulators, all zero.
  ir::Stmt Declare() const;
  // Sets them to zero.
  ir::Stmt Clear() const;
  // Sets them to what `buffer` holds, or adds that.
  ir::Stmt Load(const ir::BufferRef& buffer, const Position& position) const;
  ir::Stmt Add(const ir::BufferRef& buffer, const Position& position) const;
  // Sets the accumulators of each row to its element.
  ir::Stmt Fill(const Element& element) const;
  // How a step adds to an accumulator, and of what elements.
  struct Multiplier {
    hlo::ElementType operand;
    std::function<ir::Expr(const ir::Expr& sum, const ir::Expr& row, const ir::Expr& column)> add;
  };
  // accumulators += element(row) * vector(column block), by `multiplier` where given; rows without an element stay.
  ir::Stmt Step(const Element& element, const Vector& vector, const Multiplier* multiplier = nullptr) const;
  // A step loads its vectors from panels in the second cache, at element `at`: those of later steps are sent for,
  // further ahead than the hardware does.
  ir::Stmt ReadAhead(const ir::BufferRef& panels, const ir::Expr& at) const;
  ir::Stmt Store(const ir::BufferRef& buffer, const Position& position) const;
  // The accumulator of a row and column block.
  ir::Expr At(int64_t row, int64_t vector) const;

 private:
  const ir::Var& Accumulator(int64_t row, int64_t vector) const;
  // Each accumulator becomes `value` of it.
  ir::Stmt SetEach(const Position& value) const;

  std::string name_;
  int64_t rows_, vectors_;
  ir::Type type_;
  std::vector<ir::Var> accumulators_;
};

// Lanes of a vector of `type` that fills a register, within what OpenCL C has.
int64_t RegisterLanes(const DeviceSpec& device, hlo::ElementType type);

// How high a tile of `vectors` vectors may be: one register holds the broadcast element, `vectors` the columns.
int64_t MostTileRows(const DeviceSpec& device, int64_t vectors);

// The tile height that covers `extent` rows with the least work: at most `limit` rows a tile, all tiles equally high
// (the last one starts early enough to end at `extent`).
int64_t EvenTileRows(int64_t extent, int64_t limit);

}  // namespace hlorun::opencl
