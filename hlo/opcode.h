// The opcode table: everything that is regular about an opcode is here, so that parser, printer, verifier, evaluator,
// docs and fuzzer need no switch of their own.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace hlorun::hlo {

enum OpcodeTrait : uint32_t {
  kElementwise = 1u << 0,   // result[i] depends on operands[i] only, same dimensions throughout
  kCommutative = 1u << 1,   // binary, operands may be exchanged
  kCollective = 1u << 2,    // communicates between devices
  kSideEffect = 1u << 3,    // never removed, merged or reordered with another of its kind
  kCalls = 1u << 4,         // has called computations
  kControl = 1u << 5,       // call, while, conditional: the called computations are executed as part of the program
  kAsync = 1u << 6,         // start / update / done forms
  kDataMovement = 1u << 7,  // result elements are copies of operand elements (or of a padding value)
  kExpensive = 1u << 8,     // never recomputed by fusion
  kTransparent = 1u << 9,   // moves no data: tuple, get-tuple-element, bitcast, optimization-barrier, ...
};

// Which payload of `Attributes` (attributes.h) an opcode carries: the name of a struct there.
// OP(enumerator, name, arity (-1: any), traits, payload)
#define HLO_OPCODES(OP)                                                                                \
  OP(kAbs, "abs", 1, kElementwise, None)                                                               \
  OP(kAcos, "acos", 1, kElementwise | kExpensive, None)                                                \
  OP(kAcosh, "acosh", 1, kElementwise | kExpensive, None)                                              \
  OP(kAdd, "add", 2, kElementwise | kCommutative, None)                                                \
  OP(kAddDependency, "add-dependency", 2, kTransparent, None)                                          \
  OP(kAfterAll, "after-all", -1, kTransparent, None)                                                   \
  OP(kAllGather, "all-gather", -1, kCollective, Collective)                                            \
  OP(kAllGatherDone, "all-gather-done", 1, kCollective | kAsync, None)                                 \
  OP(kAllGatherStart, "all-gather-start", -1, kCollective | kAsync, Collective)                        \
  OP(kAllReduce, "all-reduce", -1, kCollective | kCalls, Collective)                                   \
  OP(kAllReduceDone, "all-reduce-done", 1, kCollective | kAsync, None)                                 \
  OP(kAllReduceStart, "all-reduce-start", -1, kCollective | kAsync | kCalls, Collective)               \
  OP(kAllToAll, "all-to-all", -1, kCollective, Collective)                                             \
  OP(kAnd, "and", 2, kElementwise | kCommutative, None)                                                \
  OP(kAsin, "asin", 1, kElementwise | kExpensive, None)                                                \
  OP(kAsinh, "asinh", 1, kElementwise | kExpensive, None)                                              \
  OP(kAsyncDone, "async-done", 1, kAsync | kCalls | kSideEffect, Async)                                \
  OP(kAsyncStart, "async-start", -1, kAsync | kCalls | kSideEffect, Async)                             \
  OP(kAsyncUpdate, "async-update", 1, kAsync | kCalls | kSideEffect, Async)                            \
  OP(kAtan2, "atan2", 2, kElementwise | kExpensive, None)                                              \
  OP(kAtanh, "atanh", 1, kElementwise | kExpensive, None)                                              \
  OP(kBatchNormGrad, "batch-norm-grad", 5, 0, BatchNorm)                                               \
  OP(kBatchNormInference, "batch-norm-inference", 5, 0, BatchNorm)                                     \
  OP(kBatchNormTraining, "batch-norm-training", 3, 0, BatchNorm)                                       \
  OP(kBitcast, "bitcast", 1, kTransparent | kDataMovement, None)                                       \
  OP(kBitcastConvert, "bitcast-convert", 1, 0, None)                                                   \
  OP(kBroadcast, "broadcast", 1, kDataMovement, Dimensions)                                            \
  OP(kCall, "call", -1, kCalls | kControl, Call)                                                       \
  OP(kCbrt, "cbrt", 1, kElementwise | kExpensive, None)                                                \
  OP(kCeil, "ceil", 1, kElementwise, None)                                                             \
  OP(kCholesky, "cholesky", 1, kExpensive, Cholesky)                                                   \
  OP(kClamp, "clamp", 3, 0, None)                                                                      \
  OP(kClz, "count-leading-zeros", 1, kElementwise, None)                                               \
  OP(kCollectiveBroadcast, "collective-broadcast", -1, kCollective, Collective)                        \
  OP(kCollectivePermute, "collective-permute", -1, kCollective, CollectivePermute)                     \
  OP(kCollectivePermuteDone, "collective-permute-done", 1, kCollective | kAsync, None)                 \
  OP(kCollectivePermuteStart, "collective-permute-start", -1, kCollective | kAsync, CollectivePermute) \
  OP(kCompare, "compare", 2, kElementwise, Compare)                                                    \
  OP(kComplex, "complex", 2, kElementwise, None)                                                       \
  OP(kConcatenate, "concatenate", -1, kDataMovement, Dimensions)                                       \
  OP(kConditional, "conditional", -1, kCalls | kControl, None)                                         \
  OP(kConstant, "constant", 0, 0, Constant)                                                            \
  OP(kConvert, "convert", 1, kElementwise, None)                                                       \
  OP(kConvolution, "convolution", 2, kExpensive, Convolution)                                          \
  OP(kCopy, "copy", 1, kElementwise | kDataMovement, None)                                             \
  OP(kCopyDone, "copy-done", 1, kAsync, None)                                                          \
  OP(kCopyStart, "copy-start", 1, kAsync, CopyStart)                                                   \
  OP(kCos, "cosine", 1, kElementwise | kExpensive, None)                                               \
  OP(kCosh, "cosh", 1, kElementwise | kExpensive, None)                                                \
  OP(kCustomCall, "custom-call", -1, kCalls, CustomCall)                                               \
  OP(kDivide, "divide", 2, kElementwise, None)                                                         \
  OP(kDomain, "domain", 1, kTransparent, Domain)                                                       \
  OP(kDot, "dot", -1, kExpensive, Dot)                                                                 \
  OP(kDynamicReshape, "dynamic-reshape", -1, kDataMovement, None)                                      \
  OP(kDynamicSlice, "dynamic-slice", -1, kDataMovement, DynamicSlice)                                  \
  OP(kDynamicUpdateSlice, "dynamic-update-slice", -1, kDataMovement, None)                             \
  OP(kErf, "erf", 1, kElementwise | kExpensive, None)                                                  \
  OP(kExp, "exponential", 1, kElementwise | kExpensive, None)                                          \
  OP(kExpm1, "exponential-minus-one", 1, kElementwise | kExpensive, None)                              \
  OP(kFft, "fft", 1, kExpensive, Fft)                                                                  \
  OP(kFloor, "floor", 1, kElementwise, None)                                                           \
  OP(kFusion, "fusion", -1, kCalls, Fusion)                                                            \
  OP(kGather, "gather", 2, kDataMovement, Gather)                                                      \
  OP(kGetDimensionSize, "get-dimension-size", 1, 0, Dimensions)                                        \
  OP(kGetTupleElement, "get-tuple-element", 1, kTransparent, TupleIndex)                               \
  OP(kImag, "imag", 1, kElementwise, None)                                                             \
  OP(kInfeed, "infeed", 1, kSideEffect, Feed)                                                          \
  OP(kIota, "iota", 0, 0, Dimensions)                                                                  \
  OP(kIsFinite, "is-finite", 1, kElementwise, None)                                                    \
  OP(kLog, "log", 1, kElementwise | kExpensive, None)                                                  \
  OP(kLog1p, "log-plus-one", 1, kElementwise | kExpensive, None)                                       \
  OP(kLogistic, "logistic", 1, kElementwise | kExpensive, None)                                        \
  OP(kMap, "map", -1, kCalls, Dimensions)                                                              \
  OP(kMaximum, "maximum", 2, kElementwise | kCommutative, None)                                        \
  OP(kMinimum, "minimum", 2, kElementwise | kCommutative, None)                                        \
  OP(kMultiply, "multiply", 2, kElementwise | kCommutative, None)                                      \
  OP(kNegate, "negate", 1, kElementwise, None)                                                         \
  OP(kNot, "not", 1, kElementwise, None)                                                               \
  OP(kOptimizationBarrier, "opt-barrier", 1, kTransparent, None)                                       \
  OP(kOr, "or", 2, kElementwise | kCommutative, None)                                                  \
  OP(kOutfeed, "outfeed", 2, kSideEffect, Feed)                                                        \
  OP(kPad, "pad", 2, kDataMovement, Pad)                                                               \
  OP(kParameter, "parameter", 0, 0, Parameter)                                                         \
  OP(kPartitionId, "partition-id", 0, 0, None)                                                         \
  OP(kPopulationCount, "popcnt", 1, kElementwise, None)                                                \
  OP(kPower, "power", 2, kElementwise | kExpensive, None)                                              \
  OP(kRaggedAllToAll, "ragged-all-to-all", 6, kCollective, Collective)                                 \
  OP(kRaggedDot, "ragged-dot", 3, kExpensive, Dot)                                                     \
  OP(kReal, "real", 1, kElementwise, None)                                                             \
  OP(kRecv, "recv", 1, kSideEffect | kAsync, Transfer)                                                 \
  OP(kRecvDone, "recv-done", 1, kSideEffect | kAsync, Transfer)                                        \
  OP(kReduce, "reduce", -1, kCalls, Dimensions)                                                        \
  OP(kReducePrecision, "reduce-precision", 1, kElementwise, ReducePrecision)                           \
  OP(kReduceScatter, "reduce-scatter", -1, kCollective | kCalls, Collective)                           \
  OP(kReduceWindow, "reduce-window", -1, kCalls | kExpensive, Windowed)                                \
  OP(kRemainder, "remainder", 2, kElementwise, None)                                                   \
  OP(kReplicaId, "replica-id", 0, 0, None)                                                             \
  OP(kReshape, "reshape", 1, kDataMovement, Reshape)                                                   \
  OP(kReverse, "reverse", 1, kDataMovement, Dimensions)                                                \
  OP(kRng, "rng", -1, kSideEffect, Rng)                                                                \
  OP(kRngBitGenerator, "rng-bit-generator", 1, kExpensive, RngBitGenerator)                            \
  OP(kRngGetAndUpdateState, "rng-get-and-update-state", 0, kSideEffect, RngState)                      \
  OP(kRoundNearestAfz, "round-nearest-afz", 1, kElementwise, None)                                     \
  OP(kRoundNearestEven, "round-nearest-even", 1, kElementwise, None)                                   \
  OP(kRsqrt, "rsqrt", 1, kElementwise, None)                                                           \
  OP(kScaledDot, "scaled-dot", 4, kExpensive, Dot)                                                     \
  OP(kScan, "scan", -1, kCalls | kExpensive, Scan)                                                     \
  OP(kScatter, "scatter", -1, kCalls | kExpensive, Scatter)                                            \
  OP(kSelect, "select", 3, kElementwise, None)                                                         \
  OP(kSelectAndScatter, "select-and-scatter", 3, kCalls | kExpensive, Windowed)                        \
  OP(kSend, "send", 2, kSideEffect | kAsync, Transfer)                                                 \
  OP(kSendDone, "send-done", 1, kSideEffect | kAsync, Transfer)                                        \
  OP(kSetDimensionSize, "set-dimension-size", 2, kDataMovement, Dimensions)                            \
  OP(kShiftLeft, "shift-left", 2, kElementwise, None)                                                  \
  OP(kShiftRightArithmetic, "shift-right-arithmetic", 2, kElementwise, None)                           \
  OP(kShiftRightLogical, "shift-right-logical", 2, kElementwise, None)                                 \
  OP(kSign, "sign", 1, kElementwise, None)                                                             \
  OP(kSin, "sine", 1, kElementwise | kExpensive, None)                                                 \
  OP(kSinh, "sinh", 1, kElementwise | kExpensive, None)                                                \
  OP(kSlice, "slice", 1, kDataMovement, Slice)                                                         \
  OP(kSort, "sort", -1, kCalls | kExpensive, Sort)                                                     \
  OP(kSqrt, "sqrt", 1, kElementwise, None)                                                             \
  OP(kStochasticConvert, "stochastic-convert", 2, kElementwise, None)                                  \
  OP(kSubtract, "subtract", 2, kElementwise, None)                                                     \
  OP(kTan, "tan", 1, kElementwise | kExpensive, None)                                                  \
  OP(kTanh, "tanh", 1, kElementwise | kExpensive, None)                                                \
  OP(kTopK, "topk", 1, kExpensive, TopK)                                                               \
  OP(kTranspose, "transpose", 1, kDataMovement, Dimensions)                                            \
  OP(kTriangularSolve, "triangular-solve", 2, kExpensive, TriangularSolve)                             \
  OP(kTuple, "tuple", -1, kTransparent, None)                                                          \
  OP(kWhile, "while", 1, kCalls | kControl, None)                                                      \
  OP(kXor, "xor", 2, kElementwise | kCommutative, None)

enum class Opcode : uint8_t {
#define HLO_DEFINE_OPCODE(enumerator, name, arity, traits, payload) enumerator,
  HLO_OPCODES(HLO_DEFINE_OPCODE)
#undef HLO_DEFINE_OPCODE
};

struct OpcodeInfo {
  Opcode opcode;
  std::string_view name;
  int arity;  // -1: any number of operands
  uint32_t traits;
  std::string_view payload;  // name of the attribute struct, "None" for none
};

std::span<const OpcodeInfo> AllOpcodes();
const OpcodeInfo& InfoOf(Opcode opcode);
inline std::string_view OpcodeName(Opcode opcode) { return InfoOf(opcode).name; }
inline bool HasTrait(Opcode opcode, OpcodeTrait trait) { return (InfoOf(opcode).traits & trait) != 0; }
std::optional<Opcode> OpcodeFromName(std::string_view name);

}  // namespace hlorun::hlo
