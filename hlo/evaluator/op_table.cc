// Opcode -> the function that defines it. Elementwise opcodes are not listed: lanes/ has them.
#include <array>

#include "hlo/error.h"
#include "hlo/evaluator/op_functions.h"

namespace hlorun::hlo {
namespace {

struct Row {
  Opcode opcode;
  OpFunction function;
};
constexpr Row kRows[] = {
    {Opcode::kAddDependency, EvaluateFirstOperand},
    {Opcode::kAfterAll, EvaluateAfterAll},
    {Opcode::kAllGather, EvaluateAllGather},
    {Opcode::kAllGatherDone, EvaluateAsyncDone},
    {Opcode::kAllGatherStart, EvaluateAllGatherStart},
    {Opcode::kAllReduce, EvaluateAllReduce},
    {Opcode::kAllReduceDone, EvaluateFirstOperand},
    {Opcode::kAllReduceStart, EvaluateAllReduce},
    {Opcode::kAllToAll, EvaluateAllToAll},
    {Opcode::kAsyncDone, EvaluateAsyncDone},
    {Opcode::kAsyncStart, EvaluateAsyncStart},
    {Opcode::kAsyncUpdate, EvaluateFirstOperand},
    {Opcode::kBatchNormGrad, EvaluateBatchNormGrad},
    {Opcode::kBatchNormInference, EvaluateBatchNormInference},
    {Opcode::kBatchNormTraining, EvaluateBatchNormTraining},
    {Opcode::kBitcast, EvaluateBitcast},
    {Opcode::kBitcastConvert, EvaluateBitcastConvert},
    {Opcode::kBroadcast, EvaluateBroadcast},
    {Opcode::kCall, EvaluateCall},
    {Opcode::kCholesky, EvaluateCholesky},
    {Opcode::kClamp, EvaluateElementwise},
    {Opcode::kCollectiveBroadcast, EvaluateCollectiveBroadcast},
    {Opcode::kCollectivePermute, EvaluateCollectivePermute},
    {Opcode::kCollectivePermuteDone, EvaluateAsyncDone},
    {Opcode::kCollectivePermuteStart, EvaluateCollectivePermuteStart},
    {Opcode::kConcatenate, EvaluateConcatenate},
    {Opcode::kConditional, EvaluateConditional},
    {Opcode::kConstant, EvaluateConstant},
    {Opcode::kConvolution, EvaluateConvolution},
    {Opcode::kCopyDone, EvaluateCopyDone},
    {Opcode::kCopyStart, EvaluateCopyStart},
    {Opcode::kCustomCall, EvaluateCustomCall},
    {Opcode::kDomain, EvaluateFirstOperand},
    {Opcode::kDot, EvaluateDot},
    {Opcode::kDynamicReshape, EvaluateReshape},
    {Opcode::kDynamicSlice, EvaluateDynamicSlice},
    {Opcode::kDynamicUpdateSlice, EvaluateDynamicUpdateSlice},
    {Opcode::kFft, EvaluateFft},
    {Opcode::kFusion, EvaluateCall},
    {Opcode::kGather, EvaluateGather},
    {Opcode::kGetDimensionSize, EvaluateGetDimensionSize},
    {Opcode::kGetTupleElement, EvaluateGetTupleElement},
    {Opcode::kInfeed, EvaluateInfeed},
    {Opcode::kIota, EvaluateIota},
    {Opcode::kMap, EvaluateMap},
    {Opcode::kOptimizationBarrier, EvaluateFirstOperand},
    {Opcode::kOutfeed, EvaluateOutfeed},
    {Opcode::kPad, EvaluatePad},
    {Opcode::kParameter, EvaluateParameter},
    {Opcode::kPartitionId, EvaluatePartitionId},
    {Opcode::kRaggedAllToAll, EvaluateRaggedAllToAll},
    {Opcode::kRaggedDot, EvaluateRaggedDot},
    {Opcode::kScaledDot, EvaluateScaledDot},
    {Opcode::kRecv, EvaluateRecv},
    {Opcode::kRecvDone, EvaluateRecvDone},
    {Opcode::kReduce, EvaluateReduce},
    {Opcode::kReduceScatter, EvaluateReduceScatter},
    {Opcode::kReduceWindow, EvaluateReduceWindow},
    {Opcode::kReplicaId, EvaluateReplicaId},
    {Opcode::kReshape, EvaluateReshape},
    {Opcode::kReverse, EvaluateReverse},
    {Opcode::kRng, EvaluateRng},
    {Opcode::kRngBitGenerator, EvaluateRngBitGenerator},
    {Opcode::kRngGetAndUpdateState, EvaluateRngGetAndUpdateState},
    {Opcode::kScan, EvaluateScan},
    {Opcode::kScatter, EvaluateScatter},
    {Opcode::kSelectAndScatter, EvaluateSelectAndScatter},
    {Opcode::kSend, EvaluateSend},
    {Opcode::kSendDone, EvaluateSendDone},
    {Opcode::kSetDimensionSize, EvaluateSetDimensionSize},
    {Opcode::kSlice, EvaluateSlice},
    {Opcode::kSort, EvaluateSort},
    {Opcode::kStochasticConvert, EvaluateStochasticConvert},
    {Opcode::kTopK, EvaluateTopK},
    {Opcode::kTranspose, EvaluateTranspose},
    {Opcode::kTriangularSolve, EvaluateTriangularSolve},
    {Opcode::kTuple, EvaluateTuple},
    {Opcode::kWhile, EvaluateWhile},
};

constexpr auto kByOpcode = [] {
  std::array<OpFunction, 256> table{};
  for (OpFunction& function : table) function = EvaluateElementwise;
  for (const Row& row : kRows) table[static_cast<size_t>(row.opcode)] = row.function;
  return table;
}();

}  // namespace

OpFunction OpFunctionOf(Opcode opcode) { return kByOpcode[static_cast<size_t>(opcode)]; }

}  // namespace hlorun::hlo
