// Kernel IR: what a fused computation becomes before it is OpenCL C.
//
// Emitters build scalar code: expressions over loop variables, loads and stores by linear element index, loops that
// carry a role. A schedule (schedule.h) turns roles into a device: on CPU class `parallel` loops become work-groups and
// `vector` loops become floatN code; on GPU class `parallel` becomes work-groups and `vector` lanes. The printer
// (opencl_c.h) is the last and dumbest step.
//
// Nodes are immutable and shared; identity is by pointer, equality by structure. Not synchronised, but immutable after
// construction: threads may read one tree at once.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "hlo/element_type.h"

namespace hlorun::opencl::ir {

using hlo::ElementType;

// What an expression evaluates to. Computation types only: kPred (a bool), integers of 8 to 64 bits, f16 where the
// device computes in it, f32, f64, c64, c128. Storage types (bf16, f8 ...) exist in buffers alone: loads and stores
// convert. lanes > 1 only after the schedule.
struct Type {
  ElementType element = ElementType::kF32;
  int lanes = 1;
  bool operator==(const Type&) const = default;
};
inline constexpr Type kIndex{ElementType::kS64, 1};   // where 32 bits are not proven enough
inline constexpr Type kIndex32{ElementType::kS32, 1};

struct ExprNode;
struct StmtNode;
using Expr = std::shared_ptr<const ExprNode>;
using Stmt = std::shared_ptr<const StmtNode>;

// A kernel parameter or a private/local array.
struct Buffer {
  enum class Space : uint8_t { kGlobal, kLocal, kPrivate };
  std::string name;
  ElementType storage = ElementType::kF32;  // how elements lie in memory
  Space space = Space::kGlobal;
  int64_t size = 0;       // elements
  bool written = false;
  bool restrict_ = true;  // proven not to overlap another parameter
};
using BufferRef = std::shared_ptr<Buffer>;

struct Variable {
  std::string name;
  Type type;
  // Range of an index variable, inclusive, when known (min <= max); drives simplification and 32-bit indices.
  int64_t min = 0, max = -1;
};
using Var = std::shared_ptr<Variable>;

enum class ExprKind : uint8_t {
  kIntConstant, kFloatConstant,  // splat when lanes > 1
  kVar,
  kUnary, kBinary, kCompare, kSelect, kCast,
  kCall,       // a built-in or helper function by name
  kLoad,
  kRamp,       // base + lane * stride            (vector, after scheduling)
  kBroadcast,  // all lanes the same scalar
  kReduceLanes,  // scalar from a vector by `op`
  kLane,       // one lane of a vector
};
enum class Op : uint8_t {
  kAdd, kSub, kMul, kDiv, kMod,  // integers: C's truncation; kFloorDiv/kFloorMod for indices (operand >= 0 prints as C's)
  kFloorDiv, kFloorMod, kMin, kMax, kAnd, kOr, kXor, kShl, kShr, kSar, kFma,
  kEq, kNe, kLt, kLe, kGt, kGe,
  kNeg, kNot, kBitNot,
};

struct ExprNode {
  ExprKind kind;
  Type type;
  Op op = Op::kAdd;
  int64_t integer = 0;
  double real = 0;
  std::string function;  // kCall
  Var var;
  BufferRef buffer;      // kLoad
  std::vector<Expr> args;  // kLoad: {linear index[, predicate]}; kSelect: {condition, then, else}
};

enum class LoopRole : uint8_t { kParallel, kSerial, kVector, kUnroll };
enum class StmtKind : uint8_t { kBlock, kLet, kAssign, kStore, kFor, kIf, kWhile, kBarrier, kDeclareArray, kPrefetch, kComment };

struct StmtNode {
  StmtKind kind;
  std::vector<Stmt> body;   // kBlock; kFor/kWhile/kIf: body[0]; kIf: body[1] is the else part when present
  Var var;                  // kLet (declares), kAssign, kFor
  Expr value;               // kLet, kAssign, kStore; kIf/kWhile: condition
  Expr index;               // kStore, kPrefetch
  BufferRef buffer;         // kStore, kPrefetch, kDeclareArray
  Expr begin, end, step;    // kFor: begin <= var < end, step > 0
  LoopRole role = LoopRole::kSerial;
  int width = 1;            // kFor kVector: lanes
  bool streaming = false;   // kStore: non-temporal
  std::string text;         // kComment
};

struct Function {
  std::string name;
  std::vector<BufferRef> parameters;
  Stmt body;
  // Helper functions by name that the printer must emit before it (math library, conversions) are found by the printer.
};

std::string ToString(const Expr& expr);
std::string ToString(const Stmt& stmt);
std::string ToString(const Function& function);  // readable kernel IR, for --dump_to

}  // namespace hlorun::opencl::ir
