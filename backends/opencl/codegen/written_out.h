// Values of a row that follow some of its dimensions only: relative positions, which attention over the pixels [h, w]
// of an image adds by h and by w, and scales of channels where a row is [channels, h, w].
//
// Where such a dimension is no whole vectors, vectors along the row cross its end, and each of their lanes would be a
// division and a load of its own, in every sweep. So they are written out once a row, whole, into private memory.
#pragma once

#include <functional>
#include <vector>

#include "backends/opencl/codegen/emission.h"
#include "backends/opencl/codegen/row_shape.h"

namespace hlorun::opencl {

// The broadcasts in the fusion `instruction` that are such values of its rows, read `step` elements at a time; none of
// them needs a reduction. Empty where `instruction` is none, or a row has dimensions apart from one another.
std::vector<const hlo::Instruction*> ValuesToWriteOut(const hlo::Instruction& instruction, const RowShape& rows,
                                                      int64_t step);

// Writes a row of `value`, of which element j is at `place_of(j)`, to `buffer`, which has room for another vector
// behind it.
void WriteOut(Emission& e, const hlo::Instruction& value, const RowShape& rows,
              const std::function<Indices(const Index& j)>& place_of, const ir::BufferRef& buffer, int lanes);

}  // namespace hlorun::opencl
