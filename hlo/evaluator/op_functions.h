// The functions of the op table, by family; each is defined in the file named above it.
#pragma once

#include "hlo/evaluator/evaluation.h"

namespace hlorun::hlo {

// elementwise.cc
Literal EvaluateElementwise(OpCall& call);
Literal EvaluateBitcastConvert(OpCall& call);
Literal EvaluateStochasticConvert(OpCall& call);
Literal EvaluateMap(OpCall& call);

// data_movement.cc
Literal EvaluateBroadcast(OpCall& call);
Literal EvaluateTranspose(OpCall& call);
Literal EvaluateReshape(OpCall& call);
Literal EvaluateBitcast(OpCall& call);
Literal EvaluateReverse(OpCall& call);
Literal EvaluateSlice(OpCall& call);
Literal EvaluatePad(OpCall& call);
Literal EvaluateConcatenate(OpCall& call);
Literal EvaluateDynamicSlice(OpCall& call);
Literal EvaluateDynamicUpdateSlice(OpCall& call);
Literal EvaluateIota(OpCall& call);
Literal EvaluateConstant(OpCall& call);

// dynamic_sizes.cc
Literal EvaluateGetDimensionSize(OpCall& call);
Literal EvaluateSetDimensionSize(OpCall& call);

// dot.cc
Literal EvaluateDot(OpCall& call);
Literal EvaluateRaggedDot(OpCall& call);
Literal EvaluateScaledDot(OpCall& call);

// convolution.cc
Literal EvaluateConvolution(OpCall& call);

// reduce.cc
Literal EvaluateReduce(OpCall& call);

// window.cc
Literal EvaluateReduceWindow(OpCall& call);
Literal EvaluateSelectAndScatter(OpCall& call);

// scan.cc
Literal EvaluateScan(OpCall& call);

// gather_scatter.cc
Literal EvaluateGather(OpCall& call);
Literal EvaluateScatter(OpCall& call);

// sort.cc
Literal EvaluateSort(OpCall& call);
Literal EvaluateTopK(OpCall& call);

// random.cc
Literal EvaluateRng(OpCall& call);
Literal EvaluateRngBitGenerator(OpCall& call);
Literal EvaluateRngGetAndUpdateState(OpCall& call);

// fft.cc
Literal EvaluateFft(OpCall& call);

// linear_algebra.cc
Literal EvaluateCholesky(OpCall& call);
Literal EvaluateTriangularSolve(OpCall& call);

// batch_norm.cc
Literal EvaluateBatchNormTraining(OpCall& call);
Literal EvaluateBatchNormInference(OpCall& call);
Literal EvaluateBatchNormGrad(OpCall& call);

// control_flow.cc
Literal EvaluateCall(OpCall& call);  // fusion too
Literal EvaluateWhile(OpCall& call);
Literal EvaluateConditional(OpCall& call);
Literal EvaluateTuple(OpCall& call);
Literal EvaluateGetTupleElement(OpCall& call);
Literal EvaluateFirstOperand(OpCall& call);  // opt-barrier, domain, add-dependency
Literal EvaluateAfterAll(OpCall& call);
Literal EvaluateAsyncStart(OpCall& call);
Literal EvaluateAsyncDone(OpCall& call);
Literal EvaluateCopyStart(OpCall& call);
Literal EvaluateCopyDone(OpCall& call);
Literal EvaluateInfeed(OpCall& call);
Literal EvaluateOutfeed(OpCall& call);
Literal EvaluateRecv(OpCall& call);
Literal EvaluateRecvDone(OpCall& call);
Literal EvaluateSend(OpCall& call);
Literal EvaluateSendDone(OpCall& call);
Literal EvaluateParameter(OpCall& call);

// collectives.cc
Literal EvaluateAllReduce(OpCall& call);
Literal EvaluateReduceScatter(OpCall& call);
Literal EvaluateAllGather(OpCall& call);
Literal EvaluateAllGatherStart(OpCall& call);
Literal EvaluateAllToAll(OpCall& call);
Literal EvaluateRaggedAllToAll(OpCall& call);
Literal EvaluateCollectiveBroadcast(OpCall& call);
Literal EvaluateCollectivePermute(OpCall& call);
Literal EvaluateCollectivePermuteStart(OpCall& call);
Literal EvaluatePartitionId(OpCall& call);
Literal EvaluateReplicaId(OpCall& call);

// custom_calls.cc
Literal EvaluateCustomCall(OpCall& call);

}  // namespace hlorun::hlo
