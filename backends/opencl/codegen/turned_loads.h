// Loads that cross the vectors of a loop nest: contiguous along a dimension `across`, at least a cache line apart, or
// at places of their own, along the one that has the vectors. Block by block they are read along `across`, transposed
// by squares in registers and left in private memory, from where the nest's body reads whole vectors.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "backends/opencl/codegen/kernel_ir.h"

namespace hlorun::opencl {

class TurnedLoads {
 public:
  // The loads of `body` that `along` (the vectors' variable) and `across` cross. None where there are many of them, or
  // one's element cannot be named in front of the nest.
  TurnedLoads(const ir::Stmt& body, const ir::Var& along, const ir::Var& across);

  bool empty() const { return loads_.empty(); }
  struct Crossing {
    ir::Expr load;
    ir::Expr place;                 // of the element, by the nest's variables alone
    std::optional<int64_t> stride;  // elements, along `along`; none: not constant
    ir::BufferRef turned = {};      // null until it is declared
  };
  const std::vector<Crossing>& crossings() const { return loads_; }
  // Bytes of the narrowest of the elements read.
  int64_t element_bytes() const;

  // A block: `width` elements of `along` from `begin` on by `side` of `across` from `first` on, both multiples of
  // `lanes`, which are at least two.
  struct Block {
    ir::Expr begin, first;
    int64_t width, side;
    int lanes;
    int64_t at = 0;           // where `first` lies in the arrays, along `across`
    bool reads_ahead = true;  // of rows with more behind the block
  };
  // Arrays of blocks of that size, to be declared before `Fill` and `Body`.
  std::vector<ir::Stmt> Declare(int64_t width, int64_t side);
  // Reads and transposes a block.
  ir::Stmt Fill(const Block& block) const;
  // The body that was given, with a filled block's elements.
  ir::Stmt Body(const Block& block) const;
  // What Fill calls. `inline_assembly`: DeviceSpec::has_inline_assembly.
  std::vector<ir::Helper> Helpers(int lanes, bool inline_assembly) const;

 private:
  // Sends for what is next in a block's row.
  static ir::Stmt ReadAhead(const Crossing& crossing, const ir::Expr& row, const Block& block);

  ir::Stmt body_;
  ir::Var along_, across_;
  std::vector<Crossing> loads_;
};

}  // namespace hlorun::opencl
