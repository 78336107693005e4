#include "backends/opencl/codegen/opencl_c.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <limits>
#include <optional>
#include <set>
#include <utility>

#include "backends/opencl/codegen/bf16_pairs.h"
#include "backends/opencl/codegen/interleaved.h"
#include "backends/opencl/codegen/opencl_helpers.h"
#include "backends/opencl/codegen/unrestricted.h"
#include "backends/opencl/codegen/widener.h"
#include "hlo/error.h"

namespace hlorun::opencl {
namespace {

using namespace ir;  // NOLINT: this file is about nothing else

constexpr const char* kLaneNames = "0123456789abcdef";

// Quirks::refuses_prefetch defines HLORUN_NO_PREFETCH.
constexpr const char* kPrefetch = R"(#ifdef HLORUN_NO_PREFETCH
#define hl_prefetch(p, locality)
#else
#define hl_prefetch(p, locality) __builtin_prefetch((const void*)(size_t)(p), 0, locality)
#endif
)";

int MaskBytes(ElementType type) { return type == ElementType::kPred ? 4 : hlo::BytesOf(type); }

// What a statement uses and does not declare itself, in the order of first use.
struct FreeNames {
  std::vector<BufferRef> buffers;
  std::vector<Var> variables;
  std::set<const void*> known;

  void Use(const Expr& x) {
    if (x->kind == ExprKind::kVar && known.insert(x->var.get()).second) variables.push_back(x->var);
    if (x->buffer && known.insert(x->buffer.get()).second) buffers.push_back(x->buffer);
    for (const Expr& a : x->args) Use(a);
  }
  void Use(const Stmt& s) {
    for (const Expr* e : {&s->value, &s->index, &s->begin, &s->end}) {
      if (*e) Use(*e);
    }
    if (s->kind == StmtKind::kLet || s->kind == StmtKind::kFor) known.insert(s->var.get());
    if (s->kind == StmtKind::kAssign) Use(Ref(s->var));
    if (s->buffer && known.insert(s->buffer.get()).second && s->kind != StmtKind::kDeclareArray)
      buffers.push_back(s->buffer);
    for (const Stmt& b : s->body) Use(b);
  }
};
FreeNames FreeNamesOf(const Stmt& s) {
  FreeNames names;
  names.Use(s);
  return names;
}

bool LoadsFrom(const Expr& x, const Buffer& buffer) {
  if (x->kind == ExprKind::kLoad && x->buffer.get() == &buffer) return true;
  return std::any_of(x->args.begin(), x->args.end(), [&](const Expr& a) { return LoadsFrom(a, buffer); });
}

Stmt WithoutLocalArrays(const Stmt& s, std::vector<BufferRef>& arrays) {
  if (s->kind == StmtKind::kDeclareArray && s->buffer->space == Buffer::Space::kLocal) {
    arrays.push_back(s->buffer);
    return Block({});
  }
  if (s->body.empty()) return s;
  StmtNode node = *s;
  for (Stmt& b : node.body) b = WithoutLocalArrays(b, arrays);
  return std::make_shared<const StmtNode>(std::move(node));
}

class Printer {
 public:
  explicit Printer(const DeviceSpec& device) : device_(device), helpers_(device) {}

  std::string Kernel(const ScheduledKernel& kernel) {
    std::string text = Body(kernel.function);
    text += fmt::format("__kernel __attribute__((reqd_work_group_size({}, {}, {})))", kernel.grid.local[0],
                        kernel.grid.local[1], kernel.grid.local[2]);
    if (const int64_t items = kernel.function.sub_group_items; items > 0)
      text += fmt::format(" __attribute__((intel_reqd_sub_group_size({})))", items);
    text += WidthAttribute(device_);
    return text + fmt::format("\nvoid {}({}) {{\n{}}}\n", kernel.function.name, Parameters(kernel.function), body_);
  }

  OpenClBody PartOfKernel(ir::Function function, int depth) {
    const Expr group = Ref(MakeVar(kGroup, kIndex32)), lane = Ref(MakeVar(kLane, kIndex32));
    OpenClBody part;
    function.body = Rewrite(WithoutLocalArrays(function.body, part.local_arrays), [&](const Expr& x) -> Expr {
      if (x->kind != ExprKind::kCall) return nullptr;
      return x->function == "get_group_id" ? group : x->function == "get_local_id" ? lane : nullptr;
    });
    part.helpers = Body(function, depth);
    part.text = body_;
    return part;
  }

 private:
  // Fills body_; what stands before it.
  std::string Body(const ir::Function& function, int depth = 1) {
    for (const Helper& helper : function.helpers) helpers_.Add(helper.name, helper.source + "\n");
    depth_ = depth;
    unrestricted_ = Unrestricted(function.body);
    CollectAssigned(function.body);
    Print(function.body);
    for (const BufferRef& p : function.parameters) uses_double_ |= p->storage == ElementType::kF64;
    if (uses_double_ && !device_.has_f64)
      Fail(ErrorCode::kUnimplemented, "kernel {} computes in f64, which {} has not", function.name, device_.name);
    return (uses_double_ ? "#pragma OPENCL EXTENSION cl_khr_fp64 : enable\n" : "") + helpers_.Text();
  }

  std::string Parameters(const ir::Function& function) const {
    std::string parameters;
    for (const BufferRef& p : function.parameters)
      parameters += fmt::format("{}{}{} {}", parameters.empty() ? "" : ", ", PointerTo(*p), Restrict(*p), p->name);
    return parameters;
  }

  std::string TypeName(Type type) {
    uses_double_ |= type.element == ElementType::kF64;
    return CTypeName(type);
  }
  const char* Restrict(const Buffer& b) const { return b.restrict_ && unrestricted_.count(&b) == 0 ? " restrict" : ""; }
  void Line(const std::string& text) { body_ += std::string(static_cast<size_t>(depth_) * 2, ' ') + text + "\n"; }
  void Nested(const std::string& head, const Stmt& body) {
    Line(head.empty() ? "{" : head + " {");
    ++depth_;
    Print(body);
    --depth_;
    Line("}");
  }

  void Print(const Stmt& s) {
    switch (s->kind) {
      case StmtKind::kBlock: PrintBlock(s->body); break;
      case StmtKind::kLet:
        if (IsRounding(s->value) && assigned_.count(s->var.get()) == 0) rounded_.insert(s->var.get());
        if (IsKnown(s->value) && assigned_.count(s->var.get()) == 0) known_.insert(s->var.get());
        Line(fmt::format("{} {} = {};", TypeName(s->var->type), s->var->name, Text(s->value)));
        break;
      case StmtKind::kAssign: Line(fmt::format("{} = {};", s->var->name, Text(s->value))); break;
      case StmtKind::kStore: PrintStore(s); break;
      case StmtKind::kFor: {
        const std::string& v = s->var->name;
        if (s->unroll > 1) Line(fmt::format("#pragma unroll {}", s->unroll));
        Nested(fmt::format("for ({} {} = {}; {} < {}; {} += {})", TypeName(s->var->type), v, Text(s->begin), v,
                           Text(s->end), v, Text(s->step)),
               s->body[0]);
        break;
      }
      case StmtKind::kIf:
        Nested(fmt::format("if ({})", Text(s->value)), s->body[0]);
        if (s->body.size() > 1) Nested("else", s->body[1]);
        break;
      case StmtKind::kWhile: Nested(fmt::format("while ({})", Text(s->value)), s->body[0]); break;
      case StmtKind::kBarrier: Line("barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);"); break;
      case StmtKind::kDeclareArray:
        Line(fmt::format("{}{} {}[{}] __attribute__((aligned({})));",
                         s->buffer->space == Buffer::Space::kLocal ? "__local " : "", CarrierName(s->buffer->storage),
                         s->buffer->name, s->buffer->size, std::max<int64_t>(64, s->buffer->alignment)));
        break;
      case StmtKind::kPrefetch:
        // OpenCL C's own prefetch() does nothing in PoCL and in Intel's runtime.
        helpers_.Add("hl_prefetch", kPrefetch);
        Line(fmt::format("hl_prefetch({} + {}, {});", s->buffer->name, Text(s->index),
                         s->level == CacheLevel::kFirst ? 3 : 2));
        break;
      case StmtKind::kCall: Line(Text(s->value) + ";"); break;
      case StmtKind::kComment: Line("// " + s->text); break;
      case StmtKind::kOutline: PrintOutlined(s->body[0]); break;
      case StmtKind::kScope: Nested("", s->body[0]); break;
    }
  }

  void PrintBlock(const std::vector<Stmt>& body) {
    for (size_t i = 0; i < body.size(); ++i) {
      const int64_t in_turn = StoresInTurn(body, i);
      if (in_turn == 1) {
        Print(body[i]);
      } else {
        PrintStoreInTurns(&body[i], in_turn);
        i += static_cast<size_t>(in_turn) - 1;
      }
    }
  }

  // Variables and arrays from outside become parameters. The text is the name, so that equal parts are one function.
  void PrintOutlined(const Stmt& body) {
    const FreeNames free = FreeNamesOf(body);
    std::string parameters, arguments;
    const auto add = [&](const std::string& declaration, const std::string& name) {
      parameters += (parameters.empty() ? "" : ", ") + declaration + name;
      arguments += (arguments.empty() ? "" : ", ") + name;
    };
    for (const BufferRef& b : free.buffers) {
      const bool is_const = b->space == Buffer::Space::kGlobal && !b->written;
      add(fmt::format("{}{} {}*{} ", SpaceName(b->space), is_const ? " const" : "", CarrierName(b->storage),
                      Restrict(*b)),
          b->name);
    }
    for (const Var& v : free.variables) add(TypeName(v->type) + " ", v->name);
    const std::string outer = std::exchange(body_, "");
    const int depth = std::exchange(depth_, 1);
    Print(body);
    const std::string text = std::exchange(body_, outer);
    depth_ = depth;
    const std::string name = fmt::format("hl_part_{:016x}", std::hash<std::string>()(parameters + text));
    helpers_.Add(name, fmt::format("static __attribute__((noinline)){} void {}({}) {{\n{}}}\n", WidthAttribute(device_),
                                   name, parameters, text));
    Line(fmt::format("{}({});", name, arguments));
  }

  void CollectAssigned(const Stmt& s) {
    if (s->kind == StmtKind::kAssign) assigned_.insert(s->var.get());
    for (const Stmt& b : s->body) CollectAssigned(b);
  }

  // A bf16, widened: storing it cuts it off, without rounding again.
  static bool IsRounding(const Expr& x) { return x->kind == ExprKind::kCall && x->function == "hl_result_bf16"; }
  // Whether the compiler knows it: of nothing but constants.
  bool IsKnown(const Expr& x) const {
    if (x->kind == ExprKind::kVar) return known_.count(x->var.get()) != 0;
    if (x->args.empty()) return x->kind == ExprKind::kIntConstant || x->kind == ExprKind::kFloatConstant;
    return x->kind != ExprKind::kLoad && x->kind != ExprKind::kCall &&
           std::all_of(x->args.begin(), x->args.end(), [this](const Expr& a) { return IsKnown(a); });
  }
  bool IsRounded(const Expr& x) const { return x->kind == ExprKind::kVar && rounded_.count(x->var.get()) != 0; }

  void PrintPairs(const Stmt& s) {
    const std::string place = fmt::format("({} + {})", s->buffer->name, Text(s->index->args[0]));
    const char* space = SpaceName(s->buffer->space);
    const std::string value = Text(s->value);
    if (s->streaming) return Line(fmt::format("__builtin_nontemporal_store({}, ({} uint16*){});", value, space, place));
    Line(fmt::format("*({} {}*){} = {};", space, helpers_.UnalignedPairs(), place, value));
  }

  // The type of a vector in memory. GPUs load it whole only where its address is known to be a multiple of its size:
  // arrays start so, `cl_mem` objects too.
  std::string VectorName(const Buffer& buffer, const Expr& first, int lanes) {
    const std::string element = CarrierName(buffer.storage);
    const bool starts_aligned =
        device_.device_class == DeviceClass::kGpu && (buffer.space != Buffer::Space::kGlobal || !device_.raw_pointers);
    if (starts_aligned && KnownFactor(first, lanes) == lanes) return fmt::format("{}{}", element, lanes);
    return helpers_.Unaligned(element, lanes);
  }

  // How many of the stores from `body[first]` on fill neighbouring elements in turn.
  int64_t StoresInTurn(const std::vector<Stmt>& body, size_t first) const {
    const ir::StmtNode& begin = *body[first];
    if (device_.device_class != DeviceClass::kCpu || begin.kind != StmtKind::kStore) return 1;
    const std::optional<EveryNth> which = EveryNthOf(*begin.buffer, begin.index);
    if (!which || which->stride > kLongestStoredRow || first + static_cast<size_t>(which->stride) > body.size())
      return 1;
    for (int64_t i = 1; i < which->stride; ++i) {
      const ir::StmtNode& next = *body[first + static_cast<size_t>(i)];
      const bool is_alike = next.kind == StmtKind::kStore && next.buffer == begin.buffer &&
                            next.value->type == begin.value->type && next.index->kind == ExprKind::kRamp &&
                            IsIntConstant(next.index->args[1], which->stride);
      if (!is_alike || ConstantDifference(next.index->args[0], begin.index->args[0]) != i) return 1;
      if (LoadsFrom(next.value, *begin.buffer)) return 1;  // what is stored before
    }
    return which->stride;
  }

  // (A bf16 that is rounded already is rounded again, to itself.)
  void PrintStoreInTurns(const Stmt* stores, int64_t count) {
    const ir::StmtNode& first = *stores[0];
    const Buffer& buffer = *first.buffer;
    const int lanes = first.value->type.lanes;
    const std::string convert = helpers_.ToStorage(buffer.storage, lanes);
    std::string text =
        fmt::format("{}({} + {}", helpers_.StoreInTurns(buffer.space, CarrierName(buffer.storage), lanes, count),
                    buffer.name, Text(first.index->args[0]));
    for (int64_t i = 0; i < count; ++i) {
      const std::string value = Text(stores[i]->value);
      text += convert.empty() ? ", " + value : fmt::format(", {}({})", convert, value);
    }
    Line(text + ");");
  }

  void PrintStore(const Stmt& s) {
    const Buffer& buffer = *s->buffer;
    if (buffer.storage == ElementType::kBF16 && s->value->type.element == ElementType::kU32) return PrintPairs(s);
    const std::string element = CarrierName(buffer.storage);
    const int lanes = s->value->type.lanes;
    const bool is_bf16 = buffer.storage == ElementType::kBF16;
    const bool is_cut = is_bf16 && (IsRounded(s->value) || IsRounding(s->value));
    const std::string convert =
        is_cut ? helpers_.Named("hl_cut_bf16", lanes) : helpers_.ToStorage(buffer.storage, lanes);
    std::string value = Text(s->value);
    if (!convert.empty()) value = fmt::format("{}({})", convert, value);
    if (lanes == 1) return Line(fmt::format("{}[{}] = {};", buffer.name, Text(s->index), value));
    if (s->index->kind == ExprKind::kRamp && IsIntConstant(s->index->args[1], 1)) {
      const std::string base = fmt::format("({} + {})", buffer.name, Text(s->index->args[0]));
      if (s->streaming) {
        return Line(fmt::format("__builtin_nontemporal_store({}, ({} {}{}*){});", value, SpaceName(buffer.space),
                                element, lanes, base));
      }
      return Line(fmt::format("*({} {}*){} = {};", SpaceName(buffer.space),
                              VectorName(buffer, s->index->args[0], lanes), base, value));
    }
    const std::string index = CTypeName(s->index->type.WithLanes(1));
    Line(fmt::format("{}({}, {}, {});", helpers_.Scatter(buffer.space, element, lanes, index), buffer.name,
                     Text(s->index), value));
  }

  std::string LoadText(const Expr& x) {
    const Buffer& buffer = *x->buffer;
    const std::string element = CarrierName(buffer.storage);
    const int lanes = x->type.lanes;
    const Expr& index = x->args[0];
    const bool masked = x->args.size() > 1;
    const std::string index_type = CTypeName(index->type.WithLanes(1));
    const bool contiguous = index->kind == ExprKind::kRamp && IsIntConstant(index->args[1], 1);
    std::string raw;
    if (lanes == 1) {
      raw = fmt::format("{}[{}]", buffer.name, Text(index));
      if (masked) raw = fmt::format("({2})({0} ? {1} : ({2})0)", Text(x->args[1]), raw, element);
    } else if (masked && x->args[1]->type.lanes == 1) {
      raw = fmt::format("({} ? {} : ({}{})0)", Text(x->args[1]), RawLoad(x, contiguous), element, lanes);
    } else if (masked) {
      const std::string function =
          contiguous ? helpers_.MaskedLoad(buffer.space, buffer.storage, lanes, index_type, IsKnown(x->args[1]))
                     : helpers_.MaskedGather(buffer.space, element, lanes, index_type);
      raw = fmt::format("{}({}, {}, {}{})", function, buffer.name, Text(contiguous ? index->args[0] : index),
                        Text(x->args[1]), contiguous ? fmt::format(", {}", buffer.size - lanes) : "");
    } else {
      raw = RawLoad(x, contiguous);
    }
    const std::string convert = helpers_.FromStorage(buffer.storage, lanes);
    return convert.empty() ? raw : fmt::format("{}({})", convert, raw);
  }

  std::string RawLoad(const Expr& x, bool contiguous) {
    const Buffer& buffer = *x->buffer;
    const std::string element = CarrierName(buffer.storage);
    const Expr& index = x->args[0];
    const int lanes = x->type.lanes;
    if (contiguous) {
      return fmt::format("*({} const {}*)({} + {})", SpaceName(buffer.space), VectorName(buffer, index->args[0], lanes),
                         buffer.name, Text(index->args[0]));
    }
    const std::optional<EveryNth> which =
        device_.device_class == DeviceClass::kCpu ? EveryNthOf(buffer, index) : std::nullopt;
    if (which) {
      return fmt::format("{}({} + {})", helpers_.EveryNth(buffer.space, element, lanes, *which), buffer.name,
                         Text(which->first));
    }
    if (const auto repeats = device_.device_class == DeviceClass::kCpu ? RepeatsOf(index) : std::nullopt) {
      return fmt::format("{}({} + {})", helpers_.Repeats(buffer.space, element, lanes, repeats->times), buffer.name,
                         Text(repeats->first));
    }
    if (index->kind == ExprKind::kRamp) {
      const std::string gather =
          helpers_.StridedGather(buffer.space, element, lanes, CTypeName(index->type.WithLanes(1)));
      return fmt::format("{}({} + {}, {})", gather, buffer.name, Text(index->args[0]), Text(index->args[1]));
    }
    return fmt::format("{}({}, {})", helpers_.Gather(buffer.space, element, lanes, CTypeName(index->type.WithLanes(1))),
                       buffer.name, Text(index));
  }

  std::string IntText(int64_t value, ElementType type) {
    switch (type) {
      case ElementType::kPred: return value != 0 ? "1" : "0";
      case ElementType::kS32:
        return value == std::numeric_limits<int32_t>::min() ? "(-2147483647 - 1)" : std::to_string(value);
      case ElementType::kS64:
        return value == std::numeric_limits<int64_t>::min() ? "(-9223372036854775807L - 1)"
                                                            : std::to_string(value) + "L";
      case ElementType::kU32: return std::to_string(value) + "u";
      case ElementType::kU64: return std::to_string(static_cast<uint64_t>(value)) + "uL";
      default: return fmt::format("(({}){})", CTypeName({type, 1}), value);
    }
  }

  std::string RealText(double value, ElementType type) {
    const char* suffix = type == ElementType::kF64 ? "" : "f";
    if (std::isnan(value)) {  // its sign shows in a total order
      if (type == ElementType::kF64)
        return std::signbit(value) ? "as_double(0xfff8000000000000uL)" : "as_double(0x7ff8000000000000uL)";
      return std::signbit(value) ? "as_float(0xffc00000u)" : "as_float(0x7fc00000u)";
    }
    if (std::isinf(value)) {
      if (type == ElementType::kF64)
        return value > 0 ? "as_double(0x7ff0000000000000uL)" : "as_double(0xfff0000000000000uL)";
      return value > 0 ? "as_float(0x7f800000u)" : "as_float(0xff800000u)";
    }
    return fmt::format("{}{}{}{}", std::signbit(value) ? "(" : "", fmt::format("{:a}", value), suffix,
                       std::signbit(value) ? ")" : "");
  }

  std::string SplatText(const std::string& scalar, Type type) {
    if (type.lanes == 1) return scalar;
    if (type.element == ElementType::kPred) return fmt::format("((int{})(-({})))", type.lanes, scalar);
    return fmt::format("(({})({}))", TypeName(type), scalar);
  }

  // A mask of int lanes, made as wide as the lanes of `type`.
  std::string MaskFor(const Expr& mask, ElementType type) {
    const int bytes = MaskBytes(type);
    std::string text = Text(mask);
    if (bytes == 4) return text;
    return fmt::format("convert_{}{}({})", MaskElement(bytes), mask->type.lanes, text);
  }

  // By a constant the compiler multiplies.
  bool DividesAsDoubles(const Expr& x) const {
    const ElementType type = x->type.element;
    const Expr& y = x->args[1];
    const bool is_known = IsConstant(y) || (y->kind == ExprKind::kBroadcast && IsConstant(y->args[0]));
    return x->type.lanes > 1 && hlo::IsInteger(type) && hlo::BitsOf(type) <= 32 && !is_known && device_.has_f64 &&
           device_.device_class == DeviceClass::kCpu;
  }

  std::string BinaryText(const Expr& x) {
    const std::string a = Text(x->args[0]), b = Text(x->args[1]);
    if (x->op == Op::kMin || x->op == Op::kMax)
      return fmt::format("{}({}, {})", x->op == Op::kMin ? "min" : "max", a, b);
    if ((x->op == Op::kDiv || x->op == Op::kMod) && DividesAsDoubles(x)) {
      uses_double_ = true;
      return fmt::format("{}({}, {})", x->op == Op::kDiv ? helpers_.Quotient(x->type) : helpers_.Remainder(x->type), a,
                         b);
    }
    static const std::map<Op, const char*> kSigns = {
        {Op::kAdd, "+"},      {Op::kSub, "-"}, {Op::kMul, "*"}, {Op::kDiv, "/"}, {Op::kMod, "%"},  {Op::kFloorDiv, "/"},
        {Op::kFloorMod, "%"}, {Op::kAnd, "&"}, {Op::kOr, "|"},  {Op::kXor, "^"}, {Op::kShl, "<<"}, {Op::kShr, ">>"}};
    const bool promoted = x->type.lanes == 1 && hlo::IsInteger(x->type.element) && hlo::BitsOf(x->type.element) < 32;
    if (promoted && x->op == Op::kMul) return fmt::format("(({})((uint){} * (uint){}))", TypeName(x->type), a, b);
    if (promoted) return fmt::format("(({})({} {} {}))", TypeName(x->type), a, kSigns.at(x->op), b);
    return fmt::format("({} {} {})", a, kSigns.at(x->op), b);
  }

  std::string CompareText(const Expr& x) {
    static const std::map<Op, const char*> kSigns = {{Op::kEq, "=="}, {Op::kNe, "!="}, {Op::kLt, "<"},
                                                     {Op::kLe, "<="}, {Op::kGt, ">"},  {Op::kGe, ">="}};
    std::string text = fmt::format("({} {} {})", Text(x->args[0]), kSigns.at(x->op), Text(x->args[1]));
    if (x->type.lanes == 1 || MaskBytes(x->args[0]->type.element) == 4) return text;
    return fmt::format("convert_int{}({})", x->type.lanes, text);
  }

  std::string CastText(const Expr& x) {
    const Type to = x->type, from = x->args[0]->type;
    const std::string text = Text(x->args[0]);
    if (to.lanes == 1)
      return to.element == ElementType::kPred ? fmt::format("({} != 0)", text)
                                              : fmt::format("(({}){})", TypeName(to), text);
    if (from.element == ElementType::kPred) return fmt::format("convert_{}({} & 1)", TypeName(to), text);
    if (to.element == ElementType::kPred) return Text(Compare(Op::kNe, x->args[0], Zero(from)));
    const bool same_size = hlo::IsInteger(to.element) && hlo::IsInteger(from.element) &&
                           hlo::BitsOf(to.element) == hlo::BitsOf(from.element);
    return fmt::format("{}_{}({})", same_size ? "as" : "convert", TypeName(to), text);
  }

  // Lanes that share a divisor share its reciprocal.
  std::string QuotientText(const Expr& x) {
    const Expr& divisor = x->args[1];
    const bool is_shared = divisor->kind == ExprKind::kBroadcast || IsConstant(divisor);
    if (x->type.lanes == 1 || !is_shared) return fmt::format("({} / {})", Text(x->args[0]), Text(divisor));
    const std::string scalar =
        divisor->kind == ExprKind::kBroadcast ? Text(divisor->args[0]) : RealText(divisor->real, ElementType::kF32);
    return fmt::format("{}({}, {})", helpers_.Named(kQuotientBf16, x->type.lanes), Text(x->args[0]), scalar);
  }

  std::string ShiftedText(const Expr& x) {
    const int64_t lanes = x->type.lanes, by = x->args[1]->integer;
    std::string text = fmt::format("({}).s", Text(x->args[0]));
    for (int64_t lane = 0; lane < lanes; ++lane)
      text += fmt::format("{:x}", std::clamp<int64_t>(lane - by, 0, lanes - 1));
    return text;
  }

  std::string CallText(const Expr& x) {
    if (x->function == "get_group_id" || x->function == "get_local_id")
      return fmt::format("(int){}({})", x->function, Text(x->args[0]));
    if (x->function == kLoadPairs) {
      const Expr& load = x->args[0];
      return fmt::format("*({} const {}*)({} + {})", SpaceName(load->buffer->space), helpers_.UnalignedPairs(),
                         load->buffer->name, Text(load->args[0]->args[0]));
    }
    if (x->function == kAddress) {
      const Expr& load = x->args[0];
      return fmt::format("(ulong)({} + {})", load->buffer->name, Text(load->args[0]));
    }
    if (x->function == kSetBits) {
      const Expr& load = x->args[0];
      return fmt::format("atomic_or({} + {}, {})", load->buffer->name, Text(load->args[0]), Text(x->args[1]));
    }
    if (x->function == kAddBf16) return fmt::format("({} + {})", Text(x->args[0]), Text(x->args[1]));
    if (x->function == kLowerHalf) return fmt::format("({}).lo", Text(x->args[0]));
    if (x->function == kUpperHalf) {
      const std::string function = helpers_.UpperHalf(TypeName(x->type), TypeName(x->args[0]->type));
      return fmt::format("{}({})", function, Text(x->args[0]));
    }
    if (x->function == kShiftedLanes) return ShiftedText(x);
    if (x->function == kQuotientBf16) return QuotientText(x);
    std::string args;
    for (const Expr& a : x->args) args += (args.empty() ? "" : ", ") + Text(a);
    return fmt::format("{}({})", helpers_.Math(x->function, x->type), args);
  }

  std::string Text(const Expr& x) {
    uses_double_ |= x->type.element == ElementType::kF64;
    switch (x->kind) {
      case ExprKind::kIntConstant: return SplatText(IntText(x->integer, x->type.element), x->type);
      case ExprKind::kFloatConstant: return SplatText(RealText(x->real, x->type.element), x->type);
      case ExprKind::kVar: return x->var->name;
      case ExprKind::kUnary: {
        if (x->op == Op::kNot) return fmt::format("({}{})", x->type == kPredType ? "!" : "~", Text(x->args[0]));
        const bool narrow = x->type.lanes == 1 && hlo::IsInteger(x->type.element) && hlo::BitsOf(x->type.element) < 32;
        return narrow ? fmt::format("(({})(-{}))", TypeName(x->type), Text(x->args[0]))
                      : fmt::format("(-{})", Text(x->args[0]));
      }
      case ExprKind::kBinary: return BinaryText(x);
      case ExprKind::kCompare: return CompareText(x);
      case ExprKind::kSelect: {
        const std::string a = Text(x->args[1]), b = Text(x->args[2]);
        // C's ?: promotes narrow integers.
        if (x->args[0]->type.lanes == 1)
          return fmt::format("(({})({} ? {} : {}))", TypeName(x->type), Text(x->args[0]), a, b);
        return fmt::format("select({}, {}, {})", b, a, MaskFor(x->args[0], x->type.element));
      }
      case ExprKind::kCast: return CastText(x);
      case ExprKind::kBitCast: return fmt::format("as_{}({})", TypeName(x->type), Text(x->args[0]));
      case ExprKind::kCall: return CallText(x);
      case ExprKind::kLoad: return LoadText(x);
      case ExprKind::kRamp: {
        const Type type = x->type;
        std::string steps;
        for (int i = 0; i < type.lanes; ++i) steps += (i == 0 ? "" : ", ") + std::to_string(i);
        return fmt::format("(({0})({1}) + ({0})({2}) * ({0})({3}))", TypeName(type), Text(x->args[0]), Text(x->args[1]),
                           steps);
      }
      case ExprKind::kBroadcast: return SplatText(Text(x->args[0]), x->type);
      case ExprKind::kReduceLanes: {
        const std::string text = fmt::format("{}({})", helpers_.ReduceLanes(x->op, x->args[0]->type), Text(x->args[0]));
        return x->type.element == ElementType::kPred ? fmt::format("({} & 1)", text) : text;
      }
      case ExprKind::kLane: {
        const std::string text = fmt::format("({}).s{}", Text(x->args[0]), kLaneNames[x->integer]);
        return x->type.element == ElementType::kPred ? fmt::format("({} & 1)", text) : text;
      }
    }
    return "";
  }

  const DeviceSpec& device_;
  HelperSet helpers_;
  // Variables: changed after their declaration; IsRounding; IsKnown.
  std::set<const Variable*> assigned_, rounded_, known_;
  std::set<const Buffer*> unrestricted_;
  std::string body_;
  int depth_ = 0;
  bool uses_double_ = false;
};

}  // namespace

std::string ToOpenClC(const ScheduledKernel& kernel, const DeviceSpec& device) {
  return Printer(device).Kernel(kernel);
}

std::string PointerTo(const ir::Buffer& array) {
  return fmt::format("{} {}{}*", SpaceName(array.space), array.written ? "" : "const ", CarrierName(array.storage));
}

const char* WidthAttribute(const DeviceSpec& device) {
  const bool has_wide_vectors = device.device_class == DeviceClass::kCpu && device.vector_bytes >= 64;
  return has_wide_vectors ? " __attribute__((min_vector_width(512)))" : "";
}

OpenClBody ToOpenClBody(const ir::Function& function, int depth, const DeviceSpec& device) {
  return Printer(device).PartOfKernel(function, depth);
}

std::string WithGuards(const std::string& source, const std::string& kernel, const std::vector<GuardText>& guards) {
  const size_t head = source.find(fmt::format("\nvoid {}(", kernel));
  const size_t end = head == std::string::npos ? head : source.find(") {\n", head);
  HLORUN_CHECK(end != std::string::npos);
  std::string parameters, returns;
  for (size_t i = 0; i < guards.size(); ++i) {
    parameters += fmt::format(", __global const {}* guard{}", guards[i].element_type, i);
    returns += fmt::format("  if (!({})) return;\n", guards[i].condition);
  }
  return source.substr(0, end) + parameters + ") {\n" + returns + source.substr(end + 4);
}

}  // namespace hlorun::opencl
