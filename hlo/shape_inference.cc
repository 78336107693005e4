#include "hlo/shape_inference.h"

#include <limits>

#include "hlo/error.h"
#include "hlo/shape_rules/rules.h"

namespace hlorun::hlo {
namespace {

namespace rule = shape_rules;

struct Row {
  Opcode opcode;
  rule::Rule rule;
};

// Every opcode once; the static_assert below says so.
constexpr Row kRows[] = {
    {Opcode::kAbs, rule::RealPart},
    {Opcode::kAcos, rule::Unary},
    {Opcode::kAcosh, rule::Unary},
    {Opcode::kAdd, rule::Binary},
    {Opcode::kAddDependency, rule::SameAsOperand},
    {Opcode::kAfterAll, rule::AfterAll},
    {Opcode::kAllGather, rule::AllGather},
    {Opcode::kAllGatherDone, rule::AsyncDone},
    {Opcode::kAllGatherStart, rule::AllGatherStart},
    {Opcode::kAllReduce, rule::AllReduce},
    {Opcode::kAllReduceDone, rule::SameAsOperand},
    {Opcode::kAllReduceStart, rule::AllReduce},
    {Opcode::kAllToAll, rule::AllToAll},
    {Opcode::kAnd, rule::Binary},
    {Opcode::kAsin, rule::Unary},
    {Opcode::kAsinh, rule::Unary},
    {Opcode::kAsyncDone, rule::AsyncDone},
    {Opcode::kAsyncStart, rule::AsyncStart},
    {Opcode::kAsyncUpdate, rule::AsyncUpdate},
    {Opcode::kAtan2, rule::Binary},
    {Opcode::kAtanh, rule::Unary},
    {Opcode::kBatchNormGrad, rule::BatchNormGrad},
    {Opcode::kBatchNormInference, rule::BatchNormInference},
    {Opcode::kBatchNormTraining, rule::BatchNormTraining},
    {Opcode::kBitcast, rule::Bitcast},
    {Opcode::kBitcastConvert, rule::BitcastConvert},
    {Opcode::kBroadcast, rule::Broadcast},
    {Opcode::kCall, rule::Call},
    {Opcode::kCbrt, rule::Unary},
    {Opcode::kCeil, rule::Unary},
    {Opcode::kCholesky, rule::Cholesky},
    {Opcode::kClamp, rule::Clamp},
    {Opcode::kClz, rule::Unary},
    {Opcode::kCollectiveBroadcast, rule::CollectiveBroadcast},
    {Opcode::kCollectivePermute, rule::CollectivePermute},
    {Opcode::kCollectivePermuteDone, rule::AsyncDone},
    {Opcode::kCollectivePermuteStart, rule::CollectivePermuteStart},
    {Opcode::kCompare, rule::Predicate},
    {Opcode::kComplex, rule::Complex},
    {Opcode::kConcatenate, rule::Concatenate},
    {Opcode::kConditional, rule::Conditional},
    {Opcode::kConstant, rule::Given},
    {Opcode::kConvert, rule::Convert},
    {Opcode::kConvolution, rule::Convolution},
    {Opcode::kCopy, rule::SameAsOperand},
    {Opcode::kCopyDone, rule::CopyDone},
    {Opcode::kCopyStart, rule::CopyStart},
    {Opcode::kCos, rule::Unary},
    {Opcode::kCosh, rule::Unary},
    {Opcode::kCustomCall, rule::Given},
    {Opcode::kDivide, rule::Binary},
    {Opcode::kDomain, rule::SameAsOperand},
    {Opcode::kDot, rule::Dot},
    {Opcode::kDynamicReshape, rule::DynamicReshape},
    {Opcode::kDynamicSlice, rule::DynamicSlice},
    {Opcode::kDynamicUpdateSlice, rule::DynamicUpdateSlice},
    {Opcode::kErf, rule::Unary},
    {Opcode::kExp, rule::Unary},
    {Opcode::kExpm1, rule::Unary},
    {Opcode::kFft, rule::Fft},
    {Opcode::kFloor, rule::Unary},
    {Opcode::kFusion, rule::Call},
    {Opcode::kGather, rule::Gather},
    {Opcode::kGetDimensionSize, rule::GetDimensionSize},
    {Opcode::kGetTupleElement, rule::GetTupleElement},
    {Opcode::kImag, rule::RealPart},
    {Opcode::kInfeed, rule::Infeed},
    {Opcode::kIota, rule::Iota},
    {Opcode::kIsFinite, rule::Predicate},
    {Opcode::kLog, rule::Unary},
    {Opcode::kLog1p, rule::Unary},
    {Opcode::kLogistic, rule::Unary},
    {Opcode::kMap, rule::Map},
    {Opcode::kMaximum, rule::Binary},
    {Opcode::kMinimum, rule::Binary},
    {Opcode::kMultiply, rule::Binary},
    {Opcode::kNegate, rule::Unary},
    {Opcode::kNot, rule::Unary},
    {Opcode::kOptimizationBarrier, rule::SameAsOperand},
    {Opcode::kOr, rule::Binary},
    {Opcode::kOutfeed, rule::Outfeed},
    {Opcode::kPad, rule::Pad},
    {Opcode::kParameter, rule::Given},
    {Opcode::kPartitionId, rule::DeviceId},
    {Opcode::kPopulationCount, rule::Unary},
    {Opcode::kPower, rule::Binary},
    {Opcode::kRaggedAllToAll, rule::RaggedAllToAll},
    {Opcode::kRaggedDot, rule::RaggedDot},
    {Opcode::kReal, rule::RealPart},
    {Opcode::kRecv, rule::Recv},
    {Opcode::kRecvDone, rule::RecvDone},
    {Opcode::kReduce, rule::Reduce},
    {Opcode::kReducePrecision, rule::ReducePrecision},
    {Opcode::kReduceScatter, rule::ReduceScatter},
    {Opcode::kReduceWindow, rule::ReduceWindow},
    {Opcode::kRemainder, rule::Binary},
    {Opcode::kReplicaId, rule::DeviceId},
    {Opcode::kReshape, rule::Reshape},
    {Opcode::kReverse, rule::Reverse},
    {Opcode::kRng, rule::Rng},
    {Opcode::kRngBitGenerator, rule::RngBitGenerator},
    {Opcode::kRngGetAndUpdateState, rule::RngGetAndUpdateState},
    {Opcode::kRoundNearestAfz, rule::Unary},
    {Opcode::kRoundNearestEven, rule::Unary},
    {Opcode::kRsqrt, rule::Unary},
    {Opcode::kScaledDot, rule::ScaledDot},
    {Opcode::kScan, rule::Scan},
    {Opcode::kScatter, rule::Scatter},
    {Opcode::kSelect, rule::Select},
    {Opcode::kSelectAndScatter, rule::SelectAndScatter},
    {Opcode::kSend, rule::Send},
    {Opcode::kSendDone, rule::SendDone},
    {Opcode::kSetDimensionSize, rule::SetDimensionSize},
    {Opcode::kShiftLeft, rule::Binary},
    {Opcode::kShiftRightArithmetic, rule::Binary},
    {Opcode::kShiftRightLogical, rule::Binary},
    {Opcode::kSign, rule::Unary},
    {Opcode::kSin, rule::Unary},
    {Opcode::kSinh, rule::Unary},
    {Opcode::kSlice, rule::Slice},
    {Opcode::kSort, rule::Sort},
    {Opcode::kSqrt, rule::Unary},
    {Opcode::kStochasticConvert, rule::StochasticConvert},
    {Opcode::kSubtract, rule::Binary},
    {Opcode::kTan, rule::Unary},
    {Opcode::kTanh, rule::Unary},
    {Opcode::kTopK, rule::TopK},
    {Opcode::kTranspose, rule::Transpose},
    {Opcode::kTriangularSolve, rule::TriangularSolve},
    {Opcode::kTuple, rule::Tuple},
    {Opcode::kWhile, rule::While},
    {Opcode::kXor, rule::Binary},
};

constexpr size_t kOpcodeCount = 0
#define HLO_COUNT_OPCODE(enumerator, name, arity, traits, payload) +1
    HLO_OPCODES(HLO_COUNT_OPCODE)
#undef HLO_COUNT_OPCODE
    ;

// The table is in the order of the enumeration, so that it can be indexed.
constexpr bool RowsFollowOpcodes() {
  for (size_t i = 0; i < std::size(kRows); ++i) {
    if (static_cast<size_t>(kRows[i].opcode) != i) return false;
  }
  return true;
}
static_assert(std::size(kRows) == kOpcodeCount && RowsFollowOpcodes(), "each opcode needs one shape rule, in order");

}  // namespace

Shape InferShape(Opcode opcode, std::span<Instruction* const> operands, const Attributes& attributes,
                 std::span<Computation* const> called, const Shape& declared) {
  const rule::Query query{opcode, operands, attributes, called, declared};
  const int arity = InfoOf(opcode).arity;
  if (arity >= 0 && query.operand_count() != arity) {
    query.Reject("takes {} operand(s), but has {}", arity, query.operand_count());
  }
  Shape shape = kRows[static_cast<size_t>(opcode)].rule(query);
  CheckAddressable(shape);
  return shape;
}

Shape InferShape(const Instruction& instruction) {
  return InferShape(instruction.opcode(), instruction.operands(), instruction.attributes(),
                    instruction.called_computations(), instruction.shape());
}

int64_t WindowedSize(int64_t size, const WindowDimension& window) {
  // Attributes come from files: 128 bits hold any product of two of them.
  __extension__ using Wide = __int128;
  const auto dilated = [](int64_t extent, int64_t dilation) -> Wide {
    return extent <= 0 ? Wide{0} : (Wide{extent} - 1) * dilation + 1;
  };
  const Wide padded = dilated(size, window.base_dilation) + window.padding_low + window.padding_high;
  const Wide reach = dilated(window.size, window.window_dilation);
  if (padded < reach) return 0;
  const Wide count = (padded - reach) / window.stride + 1;
  if (count > std::numeric_limits<int64_t>::max()) {
    Invalid("a window of size {} over {} elements fits more than 2^63 - 1 times", window.size, size);
  }
  return static_cast<int64_t>(count);
}

ElementType DequantizedType(ElementType operand, ElementType scale) {
  const int bits = BitsOf(operand), scale_bits = BitsOf(scale);
  if (bits < 16 && scale_bits < 16) return ElementType::kBF16;
  if (operand == scale) return operand;
  if (bits == scale_bits) return ElementType::kF32;
  return bits > scale_bits ? operand : scale;
}

}  // namespace hlorun::hlo
