#include "passes/spmd/local_builder.h"

#include <algorithm>

#include "hlo/error.h"

namespace hlorun::passes::spmd {

using hlo::ElementType;
using hlo::Instruction;
using hlo::Literal;
using hlo::Opcode;
using hlo::Shape;

namespace {

// The arrays that reducing ops of these types take; narrower ones are widened around the collective.
Shape WithDimension(Shape shape, int64_t dimension, int64_t size) {
  shape.mutable_dimensions()[static_cast<size_t>(dimension)] = size;
  return shape;
}

int64_t DivideUp(int64_t a, int64_t b) { return (a + b - 1) / b; }

}  // namespace

Instruction* LocalBuilder::Coordinate(const AxisList& axes) {
  Instruction*& known = coordinates_[axes];
  if (known != nullptr) return known;
  hlo::Builder b = Make();
  if (partition_id_ == nullptr)
    partition_id_ = b.Make(Opcode::kPartitionId, {}, hlo::attr::None{}, {}, Shape::Scalar(ElementType::kU32));
  // A table rather than arithmetic: any device order is the same few instructions.
  Literal table(Shape(ElementType::kS32, {mesh_.device_count()}));
  for (int64_t device = 0; device < mesh_.device_count(); ++device)
    table.SetInt(device, mesh_.Coordinate(device, axes));
  known = b.Reshape(b.DynamicSlice(b.Constant(std::move(table)), {partition_id_}, {1}), {});
  return known;
}

Instruction* LocalBuilder::StartOf(const AxisList& axes, PartStart start) {
  // Places in cut dimensions are s32.
  constexpr int64_t kMost = int64_t{1} << 31;
  const int64_t end = start.first + start.step * mesh_.SizeOf(axes);
  if (start.first < -kMost || start.first >= kMost || end < -kMost || end >= kMost) {
    Fail(ErrorCode::kUnimplemented,
         "a dimension of 2^31 or more elements is cut into {} parts of {}: cut another dimension", mesh_.SizeOf(axes),
         start.step);
  }
  hlo::Builder b = Make();
  Instruction* first = b.ScalarConstant(ElementType::kS32, start.first);
  if (start.step == 0 || mesh_.SizeOf(axes) == 1) return first;
  Instruction* offset = b.Binary(Opcode::kMultiply, Coordinate(axes), b.ScalarConstant(ElementType::kS32, start.step));
  return start.first == 0 ? offset : b.Binary(Opcode::kAdd, offset, first);
}

hlo::attr::Collective LocalBuilder::Groups(const AxisList& axes, std::optional<int64_t> dimension, bool global_ids) {
  hlo::attr::Collective collective;
  const int64_t replicas = global_ids ? computation_->module()->replica_count : 1;
  for (int64_t replica = 0; replica < replicas; ++replica) {
    for (std::vector<int64_t> group : mesh_.Groups(axes)) {
      for (int64_t& id : group) id += replica * mesh_.device_count();
      collective.replica_groups.groups.push_back(std::move(group));
    }
  }
  collective.channel_id = (*next_channel_)++;
  collective.use_global_device_ids = global_ids;
  collective.dimension = dimension;
  return collective;
}

hlo::Computation* LocalBuilder::ReducerOf(Opcode opcode, ElementType type) {
  return hlo::MakeScalarComputation(computation_->module(), opcode, type);
}

Instruction* LocalBuilder::AllReduce(Instruction* x, const AxisList& axes, Opcode reducer) {
  if (mesh_.SizeOf(axes) == 1) return x;
  return Make().Make(Opcode::kAllReduce, {x}, Groups(axes, std::nullopt, true),
                     {ReducerOf(reducer, x->shape().element_type())});
}

Instruction* LocalBuilder::ReduceScatter(Instruction* x, int64_t dimension, const AxisList& axes, Opcode reducer) {
  if (mesh_.SizeOf(axes) == 1) return x;
  return Make().Make(Opcode::kReduceScatter, {x}, Groups(axes, dimension, true),
                     {ReducerOf(reducer, x->shape().element_type())});
}

Instruction* LocalBuilder::AllGather(Instruction* x, int64_t dimension, const AxisList& axes) {
  if (mesh_.SizeOf(axes) == 1) return x;
  return Make().Make(Opcode::kAllGather, {x}, Groups(axes, dimension, true));
}

Instruction* LocalBuilder::AllToAll(Instruction* x, int64_t split, int64_t join, const AxisList& axes) {
  const int64_t count = mesh_.SizeOf(axes);
  if (count == 1) return x;
  hlo::Builder b = Make();
  const hlo::Dims dims = x->shape().dimensions();
  const auto rank = static_cast<int64_t>(dims.size());
  // The parts become a dimension of their own in front: one message is one run of memory.
  hlo::Dims cut = dims;
  cut[static_cast<size_t>(split)] /= count;
  hlo::Dims with_parts = cut;
  with_parts.insert(with_parts.begin() + split, count);
  std::vector<int64_t> to_front = {split};
  for (int64_t d = 0; d <= rank; ++d) {
    if (d != split) to_front.push_back(d);
  }
  Instruction* parts = b.Transpose(b.Reshape(x, with_parts), to_front);
  Instruction* exchanged = b.Make(Opcode::kAllToAll, {parts}, Groups(axes, 0, false));
  std::vector<int64_t> to_join;
  for (int64_t d = 0; d < rank; ++d) {
    if (d == join) to_join.push_back(0);
    to_join.push_back(d + 1);
  }
  cut[static_cast<size_t>(join)] *= count;
  return b.Reshape(b.Transpose(exchanged, to_join), cut);
}

Instruction* LocalBuilder::Permute(Instruction* x, std::vector<std::pair<int64_t, int64_t>> pairs) {
  hlo::attr::CollectivePermute permute;
  permute.source_target_pairs = std::move(pairs);
  permute.channel_id = (*next_channel_)++;
  return Make().Make(Opcode::kCollectivePermute, {x}, std::move(permute));
}

Instruction* LocalBuilder::PadWith(Instruction* x, int64_t dimension, int64_t low, int64_t high, Instruction* value) {
  if (low == 0 && high == 0) return x;
  std::vector<hlo::PaddingDimension> padding(static_cast<size_t>(x->shape().rank()));
  padding[static_cast<size_t>(dimension)] = {low, high, 0};
  return Make().Pad(x, value, std::move(padding));
}

Instruction* LocalBuilder::SliceOf(Instruction* x, int64_t dimension, int64_t start, int64_t limit, int64_t stride) {
  if (start == 0 && limit == x->shape().dimension(dimension) && stride == 1) return x;
  hlo::Dims starts(static_cast<size_t>(x->shape().rank()), 0), limits = x->shape().dimensions();
  hlo::Dims strides(starts.size(), 1);
  starts[static_cast<size_t>(dimension)] = start;
  limits[static_cast<size_t>(dimension)] = limit;
  strides[static_cast<size_t>(dimension)] = stride;
  return Make().Slice(x, starts, limits, strides);
}

Instruction* LocalBuilder::CutAt(Instruction* x, int64_t dimension, const AxisList& axes, PartStart start,
                                 int64_t size) {
  const int64_t last = start.first + start.step * (mesh_.SizeOf(axes) - 1);
  const int64_t least = std::min(start.first, last), most = std::max(start.first, last) + size;
  const int64_t low = std::max<int64_t>(0, -least);
  const int64_t high = std::max<int64_t>(0, most - x->shape().dimension(dimension));
  Instruction* padded = PadWith(x, dimension, low, high, Zero(x->shape().element_type()));
  start.first += low;
  if (start.step == 0 || mesh_.SizeOf(axes) == 1) return SliceOf(padded, dimension, start.first, start.first + size);
  hlo::Builder b = Make();
  Instruction* zero = b.ScalarConstant(ElementType::kS32, 0);
  std::vector<Instruction*> starts(static_cast<size_t>(x->shape().rank()), zero);
  starts[static_cast<size_t>(dimension)] = StartOf(axes, start);
  return b.DynamicSlice(padded, starts, WithDimension(padded->shape(), dimension, size).dimensions());
}

Instruction* LocalBuilder::Fetch(Instruction* x, int64_t dimension, const AxisList& axes, int64_t global,
                                 PartStart start, int64_t size) {
  const int64_t parts = mesh_.SizeOf(axes);
  const int64_t length = x->shape().dimension(dimension);
  if (parts == 1) return CutAt(x, dimension, axes, start, size);
  // How many elements of the devices before and behind any one needs; nobody needs what is outside of the whole.
  int64_t before = 0, behind = 0;
  for (int64_t p = 0; p < parts; ++p) {
    const int64_t begin = std::max<int64_t>(start.first + start.step * p, 0);
    const int64_t end = std::min(start.first + start.step * p + size, global);
    if (begin >= end) continue;
    before = std::max(before, length * p - begin);
    behind = std::max(behind, end - length * (p + 1));
  }
  if (length == 0) return PadWith(x, dimension, 0, size, Zero(x->shape().element_type()));
  if (before + behind > length * (parts - 1) / 2 + length) {
    return CutAt(AllGather(x, dimension, axes), dimension, axes, start, size);
  }
  const auto shifted = [&](Instruction* piece, int64_t by) {
    std::vector<std::pair<int64_t, int64_t>> pairs;
    for (const std::vector<int64_t>& group : mesh_.Groups(axes)) {
      for (int64_t p = 0; p < parts; ++p) {
        if (p + by >= 0 && p + by < parts)
          pairs.emplace_back(group[static_cast<size_t>(p)], group[static_cast<size_t>(p + by)]);
      }
    }
    return Permute(piece, std::move(pairs));
  };
  std::vector<Instruction*> pieces;
  for (int64_t hop = DivideUp(before, length); hop > 0; --hop) {
    const int64_t wanted = std::min(length, before - (hop - 1) * length);
    pieces.push_back(shifted(SliceOf(x, dimension, length - wanted, length), hop));
  }
  pieces.push_back(x);
  for (int64_t hop = 1; hop <= DivideUp(behind, length); ++hop) {
    const int64_t wanted = std::min(length, behind - (hop - 1) * length);
    pieces.push_back(shifted(SliceOf(x, dimension, 0, wanted), -hop));
  }
  Instruction* joined = pieces.size() == 1 ? x : Make().Concatenate(pieces, dimension);
  // Element 0 of `joined` is element length * p - before of the whole.
  return CutAt(joined, dimension, axes, {start.first + before, start.step - length}, size);
}

Instruction* LocalBuilder::InRange(const Shape& shape, int64_t dimension, Instruction* start, int64_t low,
                                   int64_t high) {
  hlo::Builder b = Make();
  // One dimension of positions, compared there and broadcast: the rest of the array repeats it.
  const Shape line(ElementType::kS32, {shape.dimension(dimension)});
  Instruction* position = b.Binary(Opcode::kAdd, b.Iota(line, 0), b.Broadcast(start, line.dimensions(), {}));
  Instruction* inside = nullptr;
  if (high < (int64_t{1} << 31)) {
    inside = b.Compare(position, b.Splat(line, high), hlo::ComparisonDirection::kLt);
  }
  if (low > -(int64_t{1} << 31)) {
    Instruction* above = b.Compare(position, b.Splat(line, low), hlo::ComparisonDirection::kGe);
    inside = inside == nullptr ? above : b.Binary(Opcode::kAnd, inside, above);
  }
  return b.Broadcast(inside, shape.dimensions(), {dimension});
}

Instruction* LocalBuilder::Mask(Instruction* x, int64_t dimension, const AxisList& axes, PartStart start, int64_t low,
                                int64_t high, Instruction* fill) {
  const int64_t last = start.first + start.step * (mesh_.SizeOf(axes) - 1);
  const bool all_inside =
      std::min(start.first, last) >= low && std::max(start.first, last) + x->shape().dimension(dimension) <= high;
  if (all_inside || x->shape().ElementCount() == 0) return x;
  hlo::Builder b = Make();
  Instruction* inside = InRange(x->shape(), dimension, StartOf(axes, start), low, high);
  return b.Select(inside, x, b.Broadcast(fill, x->shape().dimensions(), {}));
}

}  // namespace hlorun::passes::spmd
