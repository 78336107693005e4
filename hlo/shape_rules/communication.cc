// Shapes of collectives, transfers and asynchronous pairs.
#include "hlo/module.h"
#include "hlo/shape_rules/rules.h"

namespace hlorun::hlo::shape_rules {
namespace {

// Devices in a replica group: as written, else all of the module, else unknown (0).
int64_t GroupSize(const Query& q, const attr::Collective& c) {
  if (c.replica_groups.group_count > 0) return c.replica_groups.group_size;
  if (!c.replica_groups.groups.empty()) return static_cast<int64_t>(c.replica_groups.groups[0].size());
  const Module* module = q.operands.empty() ? nullptr : q.operands[0]->module();
  if (module == nullptr) return 0;
  if (!c.channel_id.has_value()) return module->replica_count;
  return c.use_global_device_ids ? module->replica_count * module->num_partitions : module->num_partitions;
}

int64_t CheckedDimension(const Query& q, const attr::Collective& c, const Shape& operand) {
  const int64_t d = c.dimension.value_or(0);
  if (d < 0 || d >= operand.rank()) q.Reject("dimension {} is not one of {}", d, operand.ToString(false));
  return d;
}

std::vector<Shape> Operands(const Query& q) {
  q.RequireOperands(1);
  std::vector<Shape> shapes;
  for (int64_t i = 0; i < q.operand_count(); ++i) shapes.push_back(q.Array(i).WithoutLayout());
  return shapes;
}

std::vector<Shape> Gathered(const Query& q) {
  const auto& c = q.As<attr::Collective>();
  std::vector<Shape> results;
  for (Shape shape : Operands(q)) {
    const int64_t d = CheckedDimension(q, c, shape);
    const int64_t group = GroupSize(q, c);
    if (group < 1) q.Reject("the size of its replica groups is unknown; write replica_groups");
    shape.mutable_dimensions()[static_cast<size_t>(d)] *= group;
    results.push_back(std::move(shape));
  }
  return results;
}

const Shape& TupleOperand(const Query& q, size_t least) {
  q.RequireOperands(1);
  const Shape& shape = q.operand(0);
  if (!shape.IsTuple() || shape.tuple_shapes().size() < least) {
    q.Reject("the operand must be the tuple of the matching start, but is {}", shape.ToString(false));
  }
  return shape;
}

// Starts carry scratch values after operand and result (u32[] contexts): what is declared beyond these is kept.
Shape WithDeclaredContexts(const Query& q, std::vector<Shape> elements) {
  if (q.has_declared() && q.declared.IsTuple()) {
    for (size_t i = elements.size(); i < q.declared.tuple_shapes().size(); ++i) {
      elements.push_back(q.declared.tuple_shapes()[i].WithoutLayout());
    }
  }
  return Shape::Tuple(std::move(elements));
}

void RequireToken(const Query& q, int64_t i) {
  q.RequireOperands(i + 1);
  if (!q.operand(i).IsToken()) q.Reject("operand {} must be a token, but is {}", i, q.operand(i).ToString(false));
}

}  // namespace

Shape AllReduce(const Query& q) {
  std::vector<Shape> shapes = Operands(q);
  const ProgramShape reducer = q.Signature(0, 2);
  if (!reducer.result.IsScalar()) {
    q.Reject("reducer {} must return a scalar, but returns {}", q.called[0]->name(), reducer.result.ToString(false));
  }
  return OneOrTuple(std::move(shapes));
}

Shape AllGather(const Query& q) { return OneOrTuple(Gathered(q)); }

Shape AllGatherStart(const Query& q) {
  std::vector<Shape> gathered = Gathered(q);
  return WithDeclaredContexts(q, {OneOrTuple(Operands(q)), OneOrTuple(std::move(gathered))});
}

Shape ReduceScatter(const Query& q) {
  const auto& c = q.As<attr::Collective>();
  q.Signature(0, 2);
  std::vector<Shape> results;
  for (Shape shape : Operands(q)) {
    const int64_t d = CheckedDimension(q, c, shape);
    const int64_t group = GroupSize(q, c);
    if (group < 1) q.Reject("the size of its replica groups is unknown; write replica_groups");
    if (shape.dimension(d) % group != 0) {
      q.Reject("dimension {} of {} does not divide among {} devices", d, shape.ToString(false), group);
    }
    shape.mutable_dimensions()[static_cast<size_t>(d)] /= group;
    results.push_back(std::move(shape));
  }
  return OneOrTuple(std::move(results));
}

// With a dimension: one array, cut and put together along it. Without: operand i goes to device i of the group.
Shape AllToAll(const Query& q) {
  std::vector<Shape> shapes = Operands(q);
  const auto& c = q.As<attr::Collective>();
  const int64_t group = GroupSize(q, c);
  if (c.dimension.has_value()) {
    if (shapes.size() != 1) q.Reject("with dimensions= it takes one operand, but has {}", shapes.size());
    const int64_t d = CheckedDimension(q, c, shapes[0]);
    if (group > 0 && shapes[0].dimension(d) % group != 0) {
      q.Reject("dimension {} of {} does not divide among {} devices", d, shapes[0].ToString(false), group);
    }
    return shapes[0];
  }
  for (const Shape& shape : shapes) {
    if (!shape.SameAs(shapes[0])) {
      q.Reject("operands differ in shape: {} and {}", shapes[0].ToString(false), shape.ToString(false));
    }
  }
  if (group > 0 && group != static_cast<int64_t>(shapes.size())) {
    q.Reject("needs one operand for each of the {} devices of a group, but has {}", group, shapes.size());
  }
  return Shape::Tuple(std::move(shapes));
}

Shape CollectiveBroadcast(const Query& q) { return OneOrTuple(Operands(q)); }

// With slice_sizes (the in-place form) the operands are input, output and their start indices; the output is returned.
Shape CollectivePermute(const Query& q) {
  if (q.As<attr::CollectivePermute>().slice_sizes.empty()) return OneOrTuple(Operands(q));
  if (q.operand_count() != 4) q.Reject("the in-place form takes 4 operands, but has {}", q.operand_count());
  return q.operand(1).WithoutLayout();
}

Shape CollectivePermuteStart(const Query& q) {
  if (!q.As<attr::CollectivePermute>().slice_sizes.empty()) return q.Declared();
  const Shape arrays = OneOrTuple(Operands(q));
  return WithDeclaredContexts(q, {arrays, arrays});
}

Shape RaggedAllToAll(const Query& q) {
  if (q.operand_count() != 6) q.Reject("takes 6 operands, but has {}", q.operand_count());
  const Shape& input = q.Array(0);
  const Shape& output = q.Array(1);
  if (input.element_type() != output.element_type() || input.rank() < 1 || input.rank() != output.rank()) {
    q.Reject("input and output must have the same element type and rank: {} and {}", input.ToString(false),
             output.ToString(false));
  }
  for (int64_t i = 2; i < 6; ++i) {
    const Shape& sizes = q.Array(i);
    if (!IsInteger(sizes.element_type()) || sizes.rank() < 1 || sizes.rank() > 2 ||
        sizes.dimensions() != q.operand(2).dimensions()) {
      q.Reject("offsets and sizes must be integer arrays of the same dimensions, but operand {} is {}", i,
               sizes.ToString(false));
    }
  }
  return output.WithoutLayout();
}

Shape DeviceId(const Query&) { return Shape::Scalar(ElementType::kU32); }

Shape AsyncStart(const Query& q) {
  const ProgramShape wrapped = q.Signature(0, q.operand_count());
  std::vector<Shape> operands;
  for (int64_t i = 0; i < q.operand_count(); ++i) {
    operands.push_back(q.operand(i).WithoutLayout());
    if (!wrapped.parameters[static_cast<size_t>(i)].SameAs(operands.back())) {
      q.Reject("computation {} takes {} as parameter {}, but the operand is {}", q.called[0]->name(),
               wrapped.parameters[static_cast<size_t>(i)].ToString(false), i, operands.back().ToString(false));
    }
  }
  return WithDeclaredContexts(q, {Shape::Tuple(std::move(operands)), wrapped.result.WithoutLayout()});
}

Shape AsyncUpdate(const Query& q) { return TupleOperand(q, 2).WithoutLayout(); }

Shape AsyncDone(const Query& q) { return TupleOperand(q, 2).tuple_shape(1).WithoutLayout(); }

Shape CopyStart(const Query& q) {
  const Shape array = q.Array(0).WithoutLayout();
  return Shape::Tuple({array, array, Shape::Scalar(ElementType::kU32)});
}

Shape CopyDone(const Query& q) { return TupleOperand(q, 1).tuple_shape(0).WithoutLayout(); }

Shape Send(const Query& q) {
  RequireToken(q, 1);
  return Shape::Tuple({q.operand(0).WithoutLayout(), Shape::Scalar(ElementType::kU32), Shape::Token()});
}

Shape SendDone(const Query& q) {
  TupleOperand(q, 3);
  return Shape::Token();
}

Shape Recv(const Query& q) {
  RequireToken(q, 0);
  const Shape result = q.Declared();
  if (!result.IsTuple() || result.tuple_shapes().size() != 3 || !result.tuple_shape(2).IsToken()) {
    q.Reject("the result must be (data, u32[], token[]), but is {}", result.ToString(false));
  }
  return result;
}

Shape RecvDone(const Query& q) {
  const Shape& received = TupleOperand(q, 3);
  return Shape::Tuple({received.tuple_shape(0).WithoutLayout(), Shape::Token()});
}

Shape Infeed(const Query& q) {
  RequireToken(q, 0);
  const Shape result = q.Declared();
  if (!result.IsTuple() || result.tuple_shapes().size() != 2 || !result.tuple_shape(1).IsToken()) {
    q.Reject("the result must be (data, token[]), but is {}", result.ToString(false));
  }
  return result;
}

Shape Outfeed(const Query& q) {
  RequireToken(q, 1);
  const auto& declared = q.As<attr::Feed>().outfeed_shape;
  if (declared && !declared->SameAs(q.operand(0))) {
    q.Reject("outfeed_shape is {}, but the operand is {}", declared->ToString(false), q.operand(0).ToString(false));
  }
  return Shape::Token();
}

}  // namespace hlorun::hlo::shape_rules
