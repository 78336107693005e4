// The matrix product under dot and convolution, on contiguous arrays.
#pragma once

#include "hlo/literal.h"

namespace hlorun::hlo {

// The type in which products of operands are formed for a result of `result` type: f32 for narrow floats.
ElementType ProductType(ElementType result);

// out[m,n] = sum over k of a[m,k] * b[k,n]; all of `type`, a ProductType. Sums of f32 are accumulated in f64 and
// rounded once; integers wrap.
void MatrixProduct(ElementType type, const void* a, const void* b, void* out, int64_t m, int64_t n, int64_t k);

// out[m,n] = a[m] * b[n]. Not a sum: -0 stays.
void OuterProduct(ElementType type, const void* a, const void* b, void* out, int64_t m, int64_t n);

}  // namespace hlorun::hlo
