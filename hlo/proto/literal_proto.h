// Literals to and from LiteralProto.
#pragma once

#include "hlo/literal.h"
#include "hlo/proto/hlo.pb.h"

namespace hlorun::hlo {

// Throws Error when the number of elements is not the shape's.
Literal LiteralFromProto(const proto::LiteralProto& message);
// `shape` gives the layouts: its elements are written in the order in which they lie in memory.
void LiteralToProto(const Literal& literal, const Shape& shape, proto::LiteralProto* message);

}  // namespace hlorun::hlo
