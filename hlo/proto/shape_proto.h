// Shapes and layouts to and from their messages.
#pragma once

#include <google/protobuf/repeated_field.h>

#include <vector>

#include "hlo/proto/hlo.pb.h"
#include "hlo/shape.h"

namespace hlorun::hlo {

// Throws Error when the message describes no shape that hlorun can hold (negative or overflowing dimensions, a layout
// that is no permutation, an unknown element type).
Shape ShapeFromProto(const proto::ShapeProto& message);
// Writes what XLA writes: a scalar has an empty layout; other arrays have theirs, if any.
void ShapeToProto(const Shape& shape, proto::ShapeProto* message);

ProgramShape ProgramShapeFromProto(const proto::ProgramShapeProto& message);
void ProgramShapeToProto(const ProgramShape& shape, proto::ProgramShapeProto* message);

template <typename T>
std::vector<int64_t> ToVector(const google::protobuf::RepeatedField<T>& field) {
  return std::vector<int64_t>(field.begin(), field.end());
}

template <typename T>
void Assign(const std::vector<int64_t>& values, google::protobuf::RepeatedField<T>* field) {
  field->Reserve(static_cast<int>(values.size()));
  for (int64_t value : values) field->Add(static_cast<T>(value));
}

}  // namespace hlorun::hlo
