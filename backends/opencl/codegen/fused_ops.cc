#include "backends/opencl/codegen/fused_ops.h"

#include <algorithm>
#include <map>

#include "hlo/error.h"

namespace hlorun::opencl {
namespace {

using namespace ir;  // NOLINT: this file is about nothing else
using hlo::Opcode;

Values One(Value value) { return {std::move(value)}; }

Values BroadcastRule(const OpAt& at) {
  Indices operand;
  for (const int64_t d : at.op.dimensions()) operand.push_back(at.index[static_cast<size_t>(d)]);
  return One(at.Operand(0, operand));
}

// reshape, bitcast: the same linear index.
Values ReshapeRule(const OpAt& at) {
  if (at.op.shape().element_type() != at.OperandShape(0).element_type()) {
    Fail(ErrorCode::kUnimplemented, "{}: a bitcast that changes the element type has no kernel", at.op.name());
  }
  const Index linear = at.math().Linearize(at.index, at.op.shape().dimensions());
  return One(at.Operand(0, at.math().Delinearize(linear, at.OperandShape(0).dimensions())));
}

Values TransposeRule(const OpAt& at) {
  Indices operand(at.index.size());
  for (size_t d = 0; d < operand.size(); ++d) operand[static_cast<size_t>(at.op.dimensions()[d])] = at.index[d];
  return One(at.Operand(0, operand));
}

Values SliceRule(const OpAt& at) {
  const auto& slice = at.op.As<hlo::attr::Slice>();
  Indices operand;
  for (size_t d = 0; d < at.index.size(); ++d) {
    const int64_t stride = slice.strides.empty() ? 1 : slice.strides[d];
    operand.push_back(at.math().Add(at.math().Mul(at.index[d], stride), slice.starts[d]));
  }
  return One(at.Operand(0, operand));
}

Values ReverseRule(const OpAt& at) {
  Indices operand = at.index;
  for (const int64_t d : at.op.dimensions()) {
    operand[static_cast<size_t>(d)] = at.math().Sub(at.op.shape().dimension(d) - 1, operand[static_cast<size_t>(d)]);
  }
  return One(at.Operand(0, operand));
}

Values PadRule(const OpAt& at) {
  const auto& padding = at.op.As<hlo::attr::Pad>().padding;
  Indices operand;
  Expr inside = Pred(true);
  for (size_t d = 0; d < at.index.size(); ++d) {
    const int64_t step = padding[d].interior + 1, size = at.OperandShape(0).dimensions()[d];
    const Index shifted = at.math().Add(at.index[d], -padding[d].low);
    inside = And(inside, at.math().Within(shifted, 0, (size - 1) * step + 1));
    if (step > 1) {
      const Index rest = at.math().Mod(shifted, step);
      if (!(rest == Index(0))) inside = And(inside, Compare(Op::kEq, at.math().ToExpr(rest), Int(0, at.math().type())));
    }
    operand.push_back(at.math().FloorDiv(shifted, step));
  }
  if (IsIntConstant(inside, 1)) return One(at.Operand(0, operand));
  inside = at.body().Name(inside, "m");
  const Value value = at.Operand(0, operand, inside);
  const Value picked = SelectValue(inside, value, at.Scalar(1));
  return One({at.body().Name(picked.re), picked.im ? at.body().Name(picked.im) : nullptr});
}

Values ConcatenateRule(const OpAt& at) {
  const auto d = static_cast<size_t>(at.op.dimensions()[0]);
  const Range range = at.math().RangeOf(at.index[d]);
  std::vector<std::pair<Expr, Value>> pieces;
  int64_t begin = 0;
  for (int64_t i = 0; i < at.op.operand_count(); ++i) {
    const int64_t end = begin + at.OperandShape(i).dimensions()[d];
    if (range.max >= begin && range.min < end) {
      Indices operand = at.index;
      operand[d] = at.math().Add(operand[d], -begin);
      const Expr inside = at.body().Name(at.math().Within(at.index[d], begin, end), "m");
      pieces.emplace_back(inside, at.Operand(i, operand, inside));
    }
    begin = end;
  }
  Value result = pieces.back().second;
  for (size_t i = pieces.size() - 1; i-- > 0;) result = SelectValue(pieces[i].first, pieces[i].second, result);
  return One({at.body().Name(result.re), result.im ? at.body().Name(result.im) : nullptr});
}

Values IotaRule(const OpAt& at) {
  const hlo::ElementType type = at.op.shape().element_type();
  const Expr index = at.body().Name(at.math().ToExpr(at.index[static_cast<size_t>(at.op.dimensions()[0])]));
  const hlo::ElementType from = at.math().type().element;
  return One(EmitConvert({index, nullptr}, from, type, at.body()));
}

// The clamped starts of a dynamic slice of `sizes`, whose operands begin at `first`.
Indices Starts(const OpAt& at, int64_t first, const hlo::Dims& sizes) {
  const hlo::Shape& shape = at.OperandShape(0);
  Indices starts;
  for (int64_t d = 0; d < shape.rank(); ++d) {
    const int64_t limit = shape.dimension(d) - sizes[static_cast<size_t>(d)];
    const bool packed =
        at.op.operand_count() == first + 1 && at.OperandShape(first).rank() == 1;  // old form: one s32[n]
    if (limit == 0)
      starts.emplace_back(0);
    else
      starts.push_back(at.values.RuntimeIndex(
          packed ? at.values.Get(at.frame, *at.op.operand(first), {Index(d)}) : at.Scalar(first + d), limit));
  }
  return starts;
}

Values DynamicSliceRule(const OpAt& at) {
  const Indices starts = Starts(at, 1, at.op.As<hlo::attr::DynamicSlice>().sizes);
  Indices operand;
  for (size_t d = 0; d < at.index.size(); ++d) operand.push_back(at.math().Add(at.index[d], starts[d]));
  return One(at.Operand(0, operand));
}

Values DynamicUpdateSliceRule(const OpAt& at) {
  const hlo::Shape& update = at.OperandShape(1);
  const Indices starts = Starts(at, 2, update.dimensions());
  Indices inner;
  Expr inside = Pred(true);
  for (size_t d = 0; d < at.index.size(); ++d) {
    inner.push_back(at.math().Sub(at.index[d], starts[d]));
    inside = And(inside, at.math().Within(inner[d], 0, update.dimensions()[d]));
  }
  inside = at.body().Name(inside, "m");
  const Value fresh = at.Operand(1, inner, inside);
  const Value picked = SelectValue(inside, fresh, at.Operand(0, at.index));
  return One({at.body().Name(picked.re), picked.im ? at.body().Name(picked.im) : nullptr});
}

Values GetTupleElementRule(const OpAt& at) {
  const hlo::Instruction& tuple = *at.op.operand(0);
  const auto element = static_cast<size_t>(at.op.tuple_index());
  if (tuple.Is(Opcode::kTuple))
    return at.values.GetAll(at.frame, *tuple.operand(at.op.tuple_index()), at.index, at.mask);
  return One(at.values.GetAll(at.frame, tuple, at.index, at.mask)[element]);
}

Values TupleRule(const OpAt& at) {
  Values values;
  for (int64_t i = 0; i < at.op.operand_count(); ++i) values.push_back(at.Operand(i, at.index));
  return values;
}

Values PassRule(const OpAt& at) { return at.values.GetAll(at.frame, *at.op.operand(0), at.index, at.mask); }

Values MapRule(const OpAt& at) {
  Values arguments;
  for (int64_t i = 0; i < at.op.operand_count(); ++i) arguments.push_back(at.Operand(i, at.index));
  return at.values.Apply(*at.op.called(), std::move(arguments));
}

Values GetDimensionSizeRule(const OpAt& at) {
  return One({Int(at.OperandShape(0).dimension(at.op.dimensions()[0])), nullptr});
}

// c128 is two c64: the words of its real part, and those of its imaginary part.
Value ComplexBitcast(const OpAt& at, hlo::ElementType from, hlo::ElementType to) {
  if (from == to) return at.Operand(0, at.index);
  if (!hlo::IsComplex(from) || !hlo::IsComplex(to)) {
    Fail(ErrorCode::kUnimplemented, "{}: bitcast-convert between real and complex numbers is not defined",
         at.op.name());
  }
  const auto wide = hlo::ElementType::kU64;
  Indices inner = at.index;
  const auto join = [&](const Value& words) {
    const Expr low = Cast(BitCast(words.re, hlo::ElementType::kU32), wide),
               high = Cast(BitCast(words.im, hlo::ElementType::kU32), wide);
    return at.body().Name(BitCast(Or(low, Binary(Op::kShl, high, Int(32, high->type))), hlo::ElementType::kF64));
  };
  if (to == hlo::ElementType::kC128) {
    inner.push_back(Index(0));
    const Value re = at.Operand(0, inner);
    inner.back() = Index(1);
    return {join(re), join(at.Operand(0, inner))};
  }
  const Expr second = Compare(Op::kNe, at.math().ToExpr(inner.back()), Int(0, at.math().type()));
  inner.pop_back();
  const Value x = at.Operand(0, inner);
  const Expr bits = at.body().Name(BitCast(Select(at.body().Name(second), x.im, x.re), wide));
  const auto word = [&](const Expr& b) {
    return at.body().Name(BitCast(Cast(b, hlo::ElementType::kU32), hlo::ElementType::kF32));
  };
  return {word(bits), word(Binary(Op::kShr, bits, Int(32, bits->type)))};
}

// The same bits: of one element, of a piece of a wider one, or of several narrower ones together.
Values BitcastConvertRule(const OpAt& at) {
  const hlo::ElementType from = at.OperandShape(0).element_type(), to = at.op.shape().element_type();
  if (hlo::IsComplex(from) || hlo::IsComplex(to)) {
    return One(ComplexBitcast(at, from, to));
  }
  const int from_bits = hlo::BitsOf(from), to_bits = hlo::BitsOf(to);
  if (from_bits == to_bits) {
    const Value x = at.Operand(0, at.index);
    if (from_bits < 8 && hlo::IsInteger(from) && hlo::IsInteger(to))
      return One({at.body().Name(RoundTo(Cast(x.re, ComputeType(to)), to)), nullptr});
    return One({at.body().Name(FromBits(at.body().Name(ToBits(x.re, from)), to)), nullptr});
  }
  const auto unsigned_type = [](int bits) {
    return bits <= 8    ? hlo::ElementType::kU8
           : bits == 16 ? hlo::ElementType::kU16
           : bits == 32 ? hlo::ElementType::kU32
                        : hlo::ElementType::kU64;
  };
  Indices outer = at.index;
  if (from_bits > to_bits) {
    const Expr piece = at.math().ToExpr(outer.back());
    outer.pop_back();
    const Expr bits = at.body().Name(ToBits(at.Operand(0, outer).re, from));
    const Expr shift = Cast(at.body().Name(piece * to_bits), bits->type.element);
    const Expr low = Cast(at.body().Name(Binary(Op::kShr, bits, shift)), unsigned_type(to_bits));
    return One({at.body().Name(FromBits(at.body().Name(low), to)), nullptr});
  }
  const hlo::ElementType wide = unsigned_type(to_bits);
  Expr bits = Int(0, {wide, 1});
  for (int64_t i = 0; i < to_bits / from_bits; ++i) {
    Indices inner = outer;
    inner.push_back(Index(i));
    Expr piece = Cast(at.body().Name(ToBits(at.Operand(0, inner).re, from)), wide);
    if (from_bits < 8) piece = And(piece, Int((1 << from_bits) - 1, piece->type));
    bits = at.body().Name(Or(bits, Binary(Op::kShl, piece, Int(i * from_bits, piece->type))));
  }
  return One({at.body().Name(FromBits(bits, to)), nullptr});
}

const std::map<Opcode, OpRule>& Rules() {
  static const std::map<Opcode, OpRule> kRules = {
      {Opcode::kBitcast, ReshapeRule},
      {Opcode::kBitcastConvert, BitcastConvertRule},
      {Opcode::kBroadcast, BroadcastRule},
      {Opcode::kConcatenate, ConcatenateRule},
      {Opcode::kConvolution, ConvolutionRule},
      {Opcode::kDot, DotRule},
      {Opcode::kDynamicSlice, DynamicSliceRule},
      {Opcode::kDynamicUpdateSlice, DynamicUpdateSliceRule},
      {Opcode::kGather, GatherRule},
      {Opcode::kGetDimensionSize, GetDimensionSizeRule},
      {Opcode::kGetTupleElement, GetTupleElementRule},
      {Opcode::kIota, IotaRule},
      {Opcode::kMap, MapRule},
      {Opcode::kOptimizationBarrier, PassRule},
      {Opcode::kPad, PadRule},
      {Opcode::kReduce, ReduceRule},
      {Opcode::kReduceWindow, ReduceWindowRule},
      {Opcode::kReshape, ReshapeRule},
      {Opcode::kReverse, ReverseRule},
      {Opcode::kSlice, SliceRule},
      {Opcode::kTranspose, TransposeRule},
      {Opcode::kTuple, TupleRule},
  };
  return kRules;
}

}  // namespace

OpRule FusedRule(Opcode opcode) {
  const auto found = Rules().find(opcode);
  return found == Rules().end() ? nullptr : found->second;
}

Values GatherRule(const OpAt& at) {
  const auto& gather = at.op.As<hlo::attr::Gather>();
  const hlo::Shape &operand_shape = at.OperandShape(0), &indices_shape = at.OperandShape(1);
  const auto contains = [](const std::vector<int64_t>& list, int64_t x) {
    return std::find(list.begin(), list.end(), x) != list.end();
  };
  Indices batch, offsets;
  for (int64_t d = 0; d < at.op.shape().rank(); ++d) {
    (contains(gather.offset_dims, d) ? offsets : batch).push_back(at.index[static_cast<size_t>(d)]);
  }
  Indices operand(static_cast<size_t>(operand_shape.rank()));
  for (size_t d = 0, next = 0; d < operand.size(); ++d) {
    const auto dim = static_cast<int64_t>(d);
    if (!contains(gather.collapsed_slice_dims, dim) && !contains(gather.operand_batching_dims, dim))
      operand[d] = offsets[next++];
  }
  for (size_t i = 0; i < gather.operand_batching_dims.size(); ++i) {
    int64_t position = gather.start_indices_batching_dims[i];
    if (position > gather.index_vector_dim) --position;
    operand[static_cast<size_t>(gather.operand_batching_dims[i])] = batch[static_cast<size_t>(position)];
  }
  for (size_t i = 0; i < gather.start_index_map.size(); ++i) {
    const auto d = static_cast<size_t>(gather.start_index_map[i]);
    Indices start = batch;
    if (gather.index_vector_dim < indices_shape.rank())
      start.insert(start.begin() + gather.index_vector_dim, Index(static_cast<int64_t>(i)));
    const int64_t limit = operand_shape.dimensions()[d] - gather.slice_sizes[d];
    if (limit == 0) continue;
    operand[d] = at.math().Add(
        operand[d], at.values.RuntimeIndex(at.values.Get(at.frame, *at.op.operand(1), start, at.mask), limit));
  }
  return One(at.Operand(0, operand));
}

}  // namespace hlorun::opencl
