// Long sums of floats, section by section: each starts at zero and is added to those before it. One chain of n
// additions loses bits as the root of n; two short ones lose few, and as few as the blocks in which XLA:CPU's library
// adds (docs/numerics.md).
#pragma once

#include <functional>

#include "backends/opencl/kernels/register_tile.h"

namespace hlorun::opencl {

// Steps of a section, where nothing else asks for fewer. What cuts a sum elsewhere, too (blocks of depth), cuts it at
// multiples of it.
constexpr int64_t kSectionSteps = 256;

// Whether a sum of so many steps goes by sections: asked of its length alone, so that the order of sums does not depend
// on how a device walks it.
bool GoesBySections(hlo::ElementType type, int64_t steps);

// The accumulators are the sum over begin .. end (at most `limit`) of `steps`, in sections of `section` steps, added to
// what `waiting` holds: a private array of the tile's size, row by row, which the sums are left in as well.
ir::Stmt SumSections(const RegisterTile& tile, const ir::BufferRef& waiting, const ir::Expr& begin, const ir::Expr& end,
                     int64_t section, int64_t limit,
                     const std::function<ir::Stmt(const ir::Expr& begin, const ir::Expr& end)>& steps);

}  // namespace hlorun::opencl
