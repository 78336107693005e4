// Copies of operands in the order in which register tiles read them.
#pragma once

#include <cstdint>

#include "backends/opencl/kernels/loop_ends.h"

namespace hlorun::opencl {

// A matrix as it lies in an operand: element (b, i, j) at b * rows * columns + i * columns + j.
struct MatrixSource {
  ArgumentRef argument;
  hlo::ElementType storage = hlo::ElementType::kF32;
  int64_t batch = 1, rows = 1, columns = 1;
  // How much of them is there, where it may be less.
  SizedLoop rows_there = {}, columns_there = {};
};

// Panels of columns: out[b][j / width][i][j % width], the last panel padded with zeros. source [rows = k][columns = n].
KernelDraft PackColumns(const MatrixSource& source, hlo::ElementType type, int64_t lanes, int64_t width,
                        const ArgumentRef& out);
// Pairs of rows of 16-bit elements, the first in the low half of a u32: out[b][j / width][i / 2][j % width]; rows is
// even.
KernelDraft PackColumnPairs(const MatrixSource& source, int64_t lanes, int64_t width, const ArgumentRef& out);
// The same as PackColumns from a source stored transposed, [rows = n][columns = k].
KernelDraft PackTransposed(const MatrixSource& source, hlo::ElementType type, int64_t lanes, int64_t width,
                           const ArgumentRef& out);
// out[b][t][i][r] = source[b][i][min(t * width, columns - width) + r]: tiles of `width` columns, of which the last may
// repeat columns of the one before. source [rows = k][columns = m].
KernelDraft PackTiles(const MatrixSource& source, hlo::ElementType type, int64_t lanes, int64_t width,
                      const ArgumentRef& out);
// The same order, another type.
KernelDraft Convert(const MatrixSource& source, hlo::ElementType type, int64_t lanes, const ArgumentRef& out);

}  // namespace hlorun::opencl
