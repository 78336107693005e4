// Kernel IR: what a fused computation becomes before it is OpenCL C.
//
// Emitters build scalar code: expressions over loop variables, loads and stores by linear element index, loops that
// carry a role. A schedule (schedule.h) turns roles into a device: on CPU class `parallel` loops become work-groups and
// `vector` loops become floatN code; on GPU class `parallel` becomes work-groups and `vector` lanes. Kernels that know
// their own vectors (matrix products) write them directly: lanes > 1, Ramp, Splat. The printer (opencl_c.h) is the last
// and dumbest step.
//
// Nodes are immutable and shared; identity is by pointer, equality by structure. Not synchronised, but immutable after
// construction: threads may read one tree at once. The functions below build nodes and fold constants; they check types
// (HLORUN_CHECK), so that a wrong tree fails where it is built.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "hlo/element_type.h"

namespace hlorun::opencl::ir {

using hlo::ElementType;

// What an expression evaluates to. Computation types only: kPred, integers of 8 to 64 bits, f32, f64, and f16 where the
// device computes in it. Storage types (bf16, f8, s4 ...) exist in buffers alone: loads and stores convert. Complex
// values are pairs of real ones; a complex buffer is one of reals, twice as long. Predicates are 0 or 1 as scalars; in
// vectors they are int lanes, 0 or -1, which only the printer needs to know.
struct Type {
  ElementType element = ElementType::kF32;
  int lanes = 1;  // 1, 2, 4, 8, 16
  bool operator==(const Type&) const = default;
  Type WithLanes(int n) const { return {element, n}; }
};
inline constexpr Type kIndex{ElementType::kS64, 1};  // where 32 bits are not proven enough
inline constexpr Type kIndex32{ElementType::kS32, 1};
inline constexpr Type kF32Type{ElementType::kF32, 1};
inline constexpr Type kPredType{ElementType::kPred, 1};

struct ExprNode;
struct StmtNode;
using Expr = std::shared_ptr<const ExprNode>;
using Stmt = std::shared_ptr<const StmtNode>;

// A kernel parameter or a private/local array.
struct Buffer {
  enum class Space : uint8_t { kGlobal, kLocal, kPrivate };
  std::string name;
  ElementType storage = ElementType::kF32;  // how elements lie in memory; never complex
  Space space = Space::kGlobal;
  int64_t size = 0;  // elements
  bool written = false;
  bool restrict_ = true;   // proven not to overlap another parameter
  int64_t alignment = 0;   // bytes, of the first element, where more than the element's own is known
  bool unordered = false;  // which element lies where does not matter: partial results of lanes
  bool streams = false;    // begins at a vector's alignment and is larger than the caches: vector stores go past them
};
using BufferRef = std::shared_ptr<Buffer>;

struct Variable {
  std::string name;
  Type type;
  // Range of an index variable, inclusive, when known (min <= max); drives simplification and 32-bit indices.
  int64_t min = 0, max = -1;
  int64_t factor = 1;  // divides every value: what alignment is proven by
};
using Var = std::shared_ptr<Variable>;

// clang-format off
enum class ExprKind : uint8_t {
  kIntConstant, kFloatConstant,  // splat when lanes > 1
  kVar,
  kUnary, kBinary, kCompare, kSelect,
  kCast,        // value conversion, C's rules; to and from kPred too
  kBitCast,     // same bits, another type of the same size
  kCall,        // a built-in of OpenCL C, a helper of the printer (opencl_c.h), or one of Function::helpers
  kLoad,
  kRamp,        // base + lane * stride
  kBroadcast,   // all lanes the same scalar
  kReduceLanes, // scalar from a vector by `op`
  kLane,        // one lane (`integer`) of a vector
};
enum class Op : uint8_t {
  kAdd, kSub, kMul, kDiv, kMod,  // integers: C's truncation, no overflow (cast to unsigned where it may); see kFloor*
  kFloorDiv, kFloorMod,          // indices: the operand is proven >= 0, so it prints as C's
  kMin, kMax,                    // floats: C's fmin/fmax without NaN rules; see element_expr.h for HLO's
  kAnd, kOr, kXor, kShl, kShr,   // kShr: arithmetic on signed, logical on unsigned
  kEq, kNe, kLt, kLe, kGt, kGe,  // kCompare; false on NaN but for kNe
  kNeg, kNot,                    // kNot: of a kPred, or all bits of an integer
};
// clang-format on

struct ExprNode {
  ExprKind kind;
  Type type;
  Op op = Op::kAdd;
  int64_t integer = 0;          // kIntConstant, kLane
  double real = 0;              // kFloatConstant
  std::string function = {};    // kCall
  Var var = {};                 // kVar
  BufferRef buffer = {};        // kLoad
  std::vector<Expr> args = {};  // kLoad: {linear index[, predicate: false lanes read nothing and are 0]}; kRamp: {base,
                                // stride}; kSelect: {condition, then, else}
};

enum class LoopRole : uint8_t { kParallel, kSerial, kVector, kUnroll };
enum class StmtKind : uint8_t {
  kBlock,
  kLet,
  kAssign,
  kStore,
  kFor,
  kIf,
  kWhile,
  kBarrier,
  kDeclareArray,
  kPrefetch,
  kCall,
  kComment,
  kOutline,
  kScope  // names end with it
};

// The nearest cache that a prefetch fills.
enum class CacheLevel : uint8_t { kFirst, kSecond };

struct StmtNode {
  StmtKind kind;
  std::vector<Stmt> body =
      {};           // kBlock; kFor/kWhile/kIf/kOutline/kScope: body[0]; kIf: body[1] is the else part when present
  Var var = {};     // kLet (declares; kAssign may change it later), kAssign, kFor
  Expr value = {};  // kLet, kAssign, kStore, kCall; kIf/kWhile: condition
  Expr index = {};  // kStore, kPrefetch
  BufferRef buffer = {};                 // kStore, kPrefetch, kDeclareArray
  Expr begin = {}, end = {}, step = {};  // kFor: begin <= var < end, step > 0
  LoopRole role = LoopRole::kSerial;
  int width = 1;           // kFor kVector: lanes
  bool pairs = false;      // kFor kVector: neighbouring bf16 may be taken as one word each (bf16_pairs.h)
  int unroll = 1;          // kFor kSerial: so many iterations the device's compiler is asked to write one after another
  bool streaming = false;  // kStore: non-temporal; the address is aligned to the vector
  CacheLevel level = CacheLevel::kFirst;  // kPrefetch
  std::string text = {};                  // kComment
};

// OpenCL C that the kernel calls by name (inline assembly, intrinsics). Printed once, before the kernel.
struct Helper {
  std::string name;
  std::string source;
};

// Parallel loops form a perfect nest at the top of `body`; only comments and array declarations may precede them.
struct Function {
  std::string name;
  std::vector<BufferRef> parameters;
  Stmt body;
  std::vector<Helper> helpers;
  // Iterations of the flattened parallel nest that a work-group should take at least, so that launching it pays.
  int64_t grain = 1;
  // GPU class: work-items of a group; 0: as the device likes (GroupLanes).
  int64_t group_items = 0;
  // Of a sub-group, by cl_intel_required_subgroup_size; 0: as the device likes.
  int64_t sub_group_items = 0;
};

// --- expressions ---
Expr Int(int64_t value, Type type = kIndex32);
Expr Real(double value, Type type = kF32Type);
Expr Pred(bool value);
Expr Zero(Type type);
Expr Constant(double value, Type type);  // of any type; integers truncate
Expr Ref(const Var& var);
Expr Unary(Op op, const Expr& x);
Expr Binary(Op op, const Expr& x, const Expr& y);  // one of them may be a scalar: it is splat
Expr Compare(Op op, const Expr& x, const Expr& y);
Expr Select(const Expr& condition, const Expr& on_true, const Expr& on_false);
Expr Cast(const Expr& x, ElementType to);
Expr BitCast(const Expr& x, ElementType to);
Expr Call(Type type, const std::string& function, std::vector<Expr> args);
Expr Load(const BufferRef& buffer, const Expr& index, const Expr& predicate = nullptr);
Expr Ramp(const Expr& base, const Expr& stride, int lanes);
Expr Ramp(const Expr& base, int lanes);  // stride 1
Expr Splat(const Expr& x, int lanes);    // x itself when lanes == 1 or it has them already
Expr ReduceLanes(Op op, const Expr& x);
Expr Lane(const Expr& x, int64_t lane);
// The lower and the upper half of a vector's lanes.
inline constexpr const char* kLowerHalf = "hl_lower_half";
inline constexpr const char* kUpperHalf = "hl_upper_half";
Expr Half(const Expr& x, const char* which);
// Lane l is lane l - by of `x` (by may be negative), or, where there is none, the nearest one that there is.
inline constexpr const char* kShiftedLanes = "hl_shifted_lanes";
Expr ShiftedLanes(const Expr& x, int64_t by);
// Where an element lies in memory, as a number (u64): for helpers of inline assembly.
inline constexpr const char* kAddress = "hl_address";
Expr Address(const BufferRef& buffer, const Expr& index);
// Sets these bits of an element of a local array of u32, also where work-items do so to the same element at once.
inline constexpr const char* kSetBits = "hl_set_bits";
// x / y, of bf16 values, to be rounded to bf16.
inline constexpr const char* kQuotientBf16 = "hl_quotient_bf16";
Expr Fma(const Expr& a, const Expr& b, const Expr& c);  // a * b + c, fused

inline Expr Add(const Expr& x, const Expr& y) { return Binary(Op::kAdd, x, y); }
inline Expr Sub(const Expr& x, const Expr& y) { return Binary(Op::kSub, x, y); }
inline Expr Mul(const Expr& x, const Expr& y) { return Binary(Op::kMul, x, y); }
inline Expr Div(const Expr& x, const Expr& y) { return Binary(Op::kDiv, x, y); }
inline Expr Min(const Expr& x, const Expr& y) { return Binary(Op::kMin, x, y); }
inline Expr Max(const Expr& x, const Expr& y) { return Binary(Op::kMax, x, y); }
inline Expr And(const Expr& x, const Expr& y) { return Binary(Op::kAnd, x, y); }
inline Expr Or(const Expr& x, const Expr& y) { return Binary(Op::kOr, x, y); }
Expr Not(const Expr& x);
inline Expr operator+(const Expr& x, const Expr& y) { return Add(x, y); }
inline Expr operator-(const Expr& x, const Expr& y) { return Sub(x, y); }
inline Expr operator*(const Expr& x, const Expr& y) { return Mul(x, y); }
Expr operator+(const Expr& x, int64_t y);
Expr operator-(const Expr& x, int64_t y);
Expr operator*(const Expr& x, int64_t y);
inline Expr operator<(const Expr& x, const Expr& y) { return Compare(Op::kLt, x, y); }

bool IsIntConstant(const Expr& x, int64_t value);
bool IsConstant(const Expr& x);
bool Equal(const Expr& x, const Expr& y);  // by structure
// x - y of integers where it is plain that it is constant: the same terms, but for constants.
std::optional<int64_t> ConstantDifference(const Expr& x, const Expr& y);

// The computation type of a storage type: bf16, f8 and (here) f16 -> f32; s4 -> s8; others themselves.
ElementType ComputeType(ElementType storage);

// --- statements ---
Var MakeVar(const std::string& name, Type type);
Var MakeIndex(const std::string& name, int64_t min, int64_t max, Type type = kIndex32);
BufferRef MakeBuffer(const std::string& name, ElementType storage, int64_t size,
                     Buffer::Space space = Buffer::Space::kGlobal, bool written = false);
Stmt Block(std::vector<Stmt> statements);
Stmt Let(const Var& var, const Expr& value);
Stmt Assign(const Var& var, const Expr& value);
// `value` is of the buffer's computation type, or u32 where it holds pairs of the buffer's bf16.
Stmt Store(const BufferRef& buffer, const Expr& index, const Expr& value, bool streaming = false);
Stmt For(LoopRole role, const Var& var, const Expr& begin, const Expr& end, const Stmt& body, int64_t step = 1,
         int width = 1);
Stmt WithPairs(const Stmt& vector_loop);
Stmt Unrolled(const Stmt& serial_loop, int times);
Stmt If(const Expr& condition, const Stmt& then, const Stmt& otherwise = nullptr);
Stmt While(const Expr& condition, const Stmt& body);
Stmt Barrier();  // local and global memory of the work-group; nothing on CPU class
Stmt DeclareArray(const BufferRef& buffer);
Stmt Prefetch(const BufferRef& buffer, const Expr& index, CacheLevel level = CacheLevel::kFirst);
Stmt CallStatement(const Expr& call);
Stmt SetBits(const BufferRef& buffer, const Expr& index, const Expr& bits);
Stmt Comment(const std::string& text);
// `body` as a function of its own, never inlined: compilers keep what does not change in a loop, a polynomial's
// constants for one, in registers through all loops around it, and the sums of a product need them all.
Stmt Outline(const Stmt& body);
// `body`, whose names may be used again behind it.
Stmt Scope(const Stmt& body);

// --- rewriting ---
// `x` with its arguments replaced; folds again.
Expr WithArgs(const Expr& x, std::vector<Expr> args);
// Every expression for which `rewriting` returns another one, of the same type, becomes that; null: its arguments are
// looked through.
using Rewriting = std::function<Expr(const Expr& x)>;
Stmt Rewrite(const Stmt& s, const Rewriting& rewriting);
// Every use of `var` becomes `with` (same element type; lanes may grow only in expressions).
Expr Substitute(const Expr& x, const Var& var, const Expr& with);
Stmt Substitute(const Stmt& s, const Var& var, const Expr& with);
// Every expression equal to `what` becomes `with`, of the same type.
Stmt Replace(const Stmt& s, const Expr& what, const Expr& with);
bool Uses(const Expr& x, const Var& var);
// By parameter: whether `function` stores to it and loads nothing of it.
std::vector<bool> OverwrittenParameters(const Function& function);

std::string ToString(Op op);
std::string ToString(const Type& type);
std::string ToString(const Expr& expr);
std::string ToString(const Stmt& stmt);
std::string ToString(const Function& function);  // readable kernel IR, for --dump_to

}  // namespace hlorun::opencl::ir
