// Products of words (ProductPlan::words): the function that multiplies them, and what words of s8 need besides.
#pragma once

#include <vector>

#include "backends/opencl/kernels/multiply.h"

namespace hlorun::opencl {

// sums + products of the elements of words: `row` of lhs, `column` of rhs.
ir::Expr DotWords(WordKind words, const ir::Expr& sum, const ir::Expr& row, const ir::Expr& column);
// The function that it calls; none for kNone.
std::vector<ir::Helper> WordHelpers(const WordForm& words);

// What words of rhs are combined with by exclusive or when they are copied: the instruction wants the bytes of one side
// unsigned, and b + 128 is b with its highest bit flipped.
uint32_t FlipOfWords(WordKind words);
// What sums then start with: -128 times the sum of the row of lhs (plan.HasRowStarts()).
KernelDraft RowStartKernel(const ProductTask& task, const ProductPlan& plan);

}  // namespace hlorun::opencl
