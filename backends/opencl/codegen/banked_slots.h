// Arrays in local memory whose elements are read by work-items a power of two apart: a slot is left out behind every
// `banks` elements, or those items would meet in a few of its banks.
#pragma once

#include "backends/opencl/codegen/body.h"
#include "backends/opencl/codegen/powers_of_two.h"

namespace hlorun::opencl {

struct BankedSlots {
  int64_t banks;  // a power of two: 32 for elements of four bytes

  constexpr int64_t Count(int64_t elements) const { return elements + elements / banks; }
  // Where element `number` lies.
  ir::Expr At(Body& body, const ir::Expr& number) const {
    const ir::Expr at = body.Name(number, "number");
    return body.Name(at + ir::Binary(ir::Op::kShr, at, ir::Int(Log2(banks), at->type)), "slot");
  }
};

}  // namespace hlorun::opencl
