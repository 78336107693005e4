// Tiles: a product whose result is large, what is made of it and the products that contract it again (attention) become
// one kernel that does all of it for one batch and a few rows at a time. What lies in between, the scores above all, is
// a tile at a time for each work-group, in the caches, and not as a whole in memory.
//
//   before: s = f32[8,2048,2048] dot(q, k)  ... softmax ...  o = f32[8,2048,64] dot(p, v)
//   after:  o = fusion(q, k, v), kind=kCustom, calls={ all of it }, backend_config={"region":"tiles","trips":[8,32,1]}
//
// The fusion's computation is the whole, as it was; a backend makes the kernel of what is done to one tile. Runs before
// Fusion, which is done tile by tile. CPU class only: what shares a GPU's memory there is the work-group, not a core.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "hlo/module.h"
#include "passes/pass.h"

namespace hlorun::passes {

class FormTiles : public Pass {
 public:
  std::string_view name() const override { return "tiles"; }
  bool Run(hlo::Module& module, PassContext& context) override;
};

// An array of which a tile needs a part that lies in one piece.
struct TileArray {
  int64_t number = 0;          // of the operand, or of the result leaf
  std::vector<int64_t> steps;  // by loop over tiles: elements from one trip's part to the next; 0: the same part
};

// What a fusion of tiles does to one tile, as a program.
struct TileProgram {
  std::unique_ptr<hlo::Module> module;  // its parameters are parts of operands, its result is a part of the results
  std::vector<int64_t> trips;           // of the loops over tiles, the outermost first
  std::vector<TileArray> parameters;    // by parameter
  std::vector<TileArray> results;       // by leaf
};
TileProgram TileProgramOf(const hlo::Instruction& tiles);

// The product that a fusion of tiles begins with.
const hlo::Instruction* SeedOfTiles(const hlo::Instruction& tiles);

// Makes kernels of the ops of a tile's program, and gives them an order.
void FuseTile(hlo::Module& tile, PassContext& context);

}  // namespace hlorun::passes
