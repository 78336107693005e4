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
// Two rows of u16 or four of u8 as u32 words, the first in the lowest bits: out[b][j / width][i / 2 or 4][j % width];
// what rows lack of a whole word is zero. Every word is combined with `flip` by exclusive or.
KernelDraft PackColumnWords(const MatrixSource& source, int64_t lanes, int64_t width, uint32_t flip,
                            const ArgumentRef& out);
// The same as PackColumns from a source stored transposed, [rows = n][columns = k]. `inline_assembly`: the device's.
KernelDraft PackTransposed(const MatrixSource& source, hlo::ElementType type, int64_t lanes, int64_t width,
                           uint32_t flip, bool inline_assembly, const ArgumentRef& out);
// out[b][t][i][r] = source[b][i][min(t * width, columns - width) + r]: tiles of `width` columns, of which the last may
// repeat columns of the one before. source [rows = k][columns = m].
KernelDraft PackTiles(const MatrixSource& source, hlo::ElementType type, int64_t lanes, int64_t width,
                      const ArgumentRef& out);
// The same order, another type.
KernelDraft Convert(const MatrixSource& source, hlo::ElementType type, int64_t lanes, const ArgumentRef& out);
// The same order, rows `stride` elements apart: out[b][i * stride + j]. What lies between rows is left as it is. Rows
// are whole vectors of `lanes`.
KernelDraft SpreadRows(const MatrixSource& source, hlo::ElementType type, int64_t lanes, int64_t stride,
                       const ArgumentRef& out);

}  // namespace hlorun::opencl
