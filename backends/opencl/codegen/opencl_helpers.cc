#include "backends/opencl/codegen/opencl_helpers.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <utility>

#include "backends/opencl/codegen/bf16_pairs.h"
#include "backends/opencl/codegen/half_conversion.h"
#include "backends/opencl/codegen/math_functions.h"
#include "backends/opencl/codegen/word_dot.h"
#include "hlo/error.h"
#include "hlo/number_types.h"

namespace hlorun::opencl {
namespace {

using hlo::ElementType;
using ir::Buffer;

constexpr const char* kLaneNames = "0123456789abcdef";

std::string WithLanes(const std::string& element, int lanes) {
  return lanes == 1 ? element : element + std::to_string(lanes);
}

// Text with @F, @U, @I, @H, @B, @D (float, uint, int, ushort, uchar, double of n lanes), @n (lanes or nothing), @1
// (lanes), @?(c, a, b) for a select of 32-bit lanes, @any(c), and @store(v, array), @load(v, array) between lanes and
// an array.
std::string Expand(std::string text, int lanes) {
  const std::string n = lanes == 1 ? "" : std::to_string(lanes);
  const bool scalar = lanes == 1;
  const std::pair<const char*, std::string> replacements[] = {
      // Scalars by C's casts: Intel's compiler (2026.2) crashes on a sum or product in a loop that calls convert_uint
      // and whose count is no multiple of its vectors.
      {"convert_float@n", scalar ? "(float)" : "convert_float" + n},
      {"convert_uint@n", scalar ? "(uint)" : "convert_uint" + n},
      {"convert_int@n", scalar ? "(int)" : "convert_int" + n},
      {"convert_ushort@n", scalar ? "(ushort)" : "convert_ushort" + n},
      {"@F", "float" + n},
      {"@U", "uint" + n},
      {"@I", "int" + n},
      {"@H", "ushort" + n},
      {"@B", "uchar" + n},
      {"@D", "double" + n},
      {"@n", n},
      {"@1", std::to_string(lanes)},
      {"@?", scalar ? "HL_PICK" : "HL_PICKV"},
      {"@any", scalar ? "" : "any"},
      {"@store", scalar ? "HL_PUT" : "HL_PUTV" + n},
      {"@load", scalar ? "HL_GET" : "HL_GETV" + n}};
  for (const auto& [from, to] : replacements) {
    for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size())) {
      text.replace(at, std::strlen(from), to);
    }
  }
  return text;
}

constexpr const char* kPick =
    "#define HL_PICK(c, a, b) ((c) ? (a) : (b))\n#define HL_PICKV(c, a, b) select(b, a, c)\n"
    "#define HL_PUT(v, p) (p)[0] = (v);\n#define HL_GET(v, p) (v) = (p)[0];\n";

// Between a vector and an array of its lanes.
std::string ArrayMacros(int lanes) {
  return fmt::format("#define HL_PUTV{0}(v, p) vstore{0}(v, 0, p);\n#define HL_GETV{0}(v, p) (v) = vload{0}(0, p);\n",
                     lanes);
}

// Pairs of bf16 (bf16_pairs.h); what they call comes with the device's form (word_dot.h).
constexpr std::pair<const char*, const char*> kPairHelpers[] = {
    {kEvenOfPairs, "static inline float16 hl_even_bf16(uint16 p) { return as_float16(p << 16); }\n"},
    {kOddOfPairs, "static inline float16 hl_odd_bf16(uint16 p) { return as_float16(p & 0xffff0000u); }\n"},
    {kRoundToPairs, R"(typedef ushort hl_ushort32 __attribute__((ext_vector_type(32)));
static inline uint16 hl_pack_bf16(float16 x, float16 y) {
  hl_ushort32 b = __builtin_astype(hl_pack_any_bf16(x, y), hl_ushort32);
  return __builtin_astype(__builtin_shufflevector(b, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23,
                                                  8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31), uint16);
}
)"},
    {kJoinPairs, R"(static inline uint16 hl_join_bf16(float16 x, float16 y) {
  return convert_uint16(hl_to_bf16_16(x)) | (convert_uint16(hl_to_bf16_16(y)) << 16);
}
)"},
    {kSumOfPairs, R"(static inline float16 hl_sum_bf16(float16 sum, uint16 p) {
  return hl_dot_bf16(sum, p, (uint16)(0x3f803f80u));
}
)"}};

// A quotient of two bf16 by way of the reciprocal, which many share: its error, of some 2^-22, cannot move it over the
// middle between two bf16, from which quotients of 8-bit numbers stay 2^-17 away. Divisors whose reciprocal would be
// denormal are scaled; it is rounded up, so that a quotient that is the smallest normal does not become a denormal.
constexpr const char* kSharedQuotientBf16 = R"(static inline @F NAME(@F x, float y) {
  float scale = fabs(y) > 0x1p126f ? 0x1p-4f : 1.0f;
  return x * (@F)(1.0f / (y * scale) * 0x1.000002p+0f) * (@F)(scale);
}
)";

// Round to nearest even on the bits; NaN stays NaN, quiet.
constexpr const char* kToBf16 = R"(static inline @H NAME(@F x) {
  @U u = as_uint@n(x);
  @U r = (u + 0x7fffu + ((u >> 16) & 1u)) >> 16;
  return convert_ushort@n(@?(x != x, (@U)((u >> 16) | 0x40u), r));
}
)";
constexpr const char* kRoundBf16 = R"(static inline @F NAME(@F x) {
  @U u = as_uint@n(x);
  @U r = (u + 0x7fffu + ((u >> 16) & 1u)) & 0xffff0000u;
  return @?(x != x, x, as_float@n(r));
}
)";
// Of arithmetic on bf16. A NaN of x86 is one operand's or the default, none of which have lower bits that could carry.
constexpr const char* kResultBf16 = R"(static inline @F NAME(@F x) {
  @U u = as_uint@n(x);
  return as_float@n((u + 0x7fffu + ((u >> 16) & 1u)) & 0xffff0000u);
}
)";
// The same of any NaN, whose lower bits, too, are zero.
constexpr const char* kAnyResultBf16 = R"(static inline @F NAME(@F x) {
  @U u = as_uint@n(x), r = u + 0x7fffu + ((u >> 16) & 1u);
  return as_float@n(@?(x != x, u | 0x400000u, r) & 0xffff0000u);
}
)";
constexpr const char* kCutBf16 = "static inline @H NAME(@F x) { return convert_ushort@n(as_uint@n(x) >> 16); }\n";
constexpr const char* kFromBf16 = "static inline @F NAME(@H x) { return as_float@n(convert_uint@n(x) << 16); }\n";

// Subnormal halves go through an exact float: the magic number 2^23 rounds to integers, to nearest even.
constexpr const char* kToF16 = R"(static inline @H NAME(@F x) {
  @U u = as_uint@n(x), a = u & 0x7fffffffu, s = (u >> 16) & 0x8000u;
  @U normal = (a + 0xfffu + ((a >> 13) & 1u) - 0x38000000u) >> 13;
  @U tiny = as_uint@n(as_float@n(@?(a < 0x38800000u, a, (@U)(0u))) * 16777216.0f + 8388608.0f) - 0x4b000000u;
  @U r = @?(a < 0x38800000u, tiny, normal);
  r = @?(a >= 0x477ff000u, (@U)(0x7c00u), r);
  r = @?(a > 0x7f800000u, (@U)(0x7e00u), r);
  return convert_ushort@n(r | s);
}
)";
constexpr const char* kFromF16 = R"(static inline @F NAME(@H x) {
  @U h = convert_uint@n(x), a = h & 0x7fffu, s = (h & 0x8000u) << 16;
  @U normal = (a << 13) + 0x38000000u;
  @U tiny = as_uint@n(convert_float@n(a) * 5.9604644775390625e-8f);
  @U r = @?(a < 0x400u, tiny, normal);
  r = @?(a >= 0x7c00u, (@U)((a << 13) | 0x7f800000u), r);
  return as_float@n(r | s);
}
)";

bool IsNarrowFloat(ElementType type) { return hlo::IsFloating(type) && hlo::BitsOf(type) <= 8; }

std::string FloatBits(float value) { return fmt::format("0x{:08x}u", std::bit_cast<uint32_t>(value)); }

// Narrow floats decode by table; encoding searches it. The host's conversion is the definition of both.
std::string NarrowTable(ElementType type, const std::string& name) {
  std::string text = fmt::format("__constant uint {}[256] = {{", name);
  for (int i = 0; i < 256; ++i) {
    const int code = i & ((1 << hlo::BitsOf(type)) - 1);
    text += (i == 0 ? "" : ",") + FloatBits(hlo::NarrowToFloat(type, static_cast<uint8_t>(code)));
  }
  return text + "};\n";
}

// The smallest positive float that encodes as `code`, by bisection over bits (encoding is monotone).
uint32_t FirstEncodedAs(ElementType type, uint8_t code) {
  uint32_t low = 0, high = 0x7f800000u;
  while (low < high) {
    const uint32_t middle = low + (high - low) / 2;
    if (hlo::FloatToNarrow(type, std::bit_cast<float>(middle)) == code)
      high = middle;
    else
      low = middle + 1;
  }
  return low;
}

std::string NarrowEncoder(ElementType type, const std::string& name, const std::string& table) {
  const hlo::NarrowFormat& format = hlo::NarrowFormatOf(type);
  const int sign_bit = format.is_unsigned ? 0 : 1 << (hlo::BitsOf(type) - 1);
  const uint8_t over = hlo::FloatToNarrow(type, INFINITY), nan = hlo::FloatToNarrow(type, NAN);
  int top = (format.is_unsigned ? 256 : sign_bit) - 1;
  while (top > 0 && !std::isfinite(hlo::NarrowToFloat(type, static_cast<uint8_t>(top)))) --top;
  const uint32_t limit = over == top ? 0x7f800000u : FirstEncodedAs(type, over);
  const uint8_t negative_zero = hlo::FloatToNarrow(type, -0.0f);
  return fmt::format(R"(static inline uchar {name}(float x) {{
  uint u = as_uint(x), a = u & 0x7fffffffu;
  if (a > 0x7f800000u) return {nan};
  if ({is_unsigned} && (u >> 31)) return {nan};
  uint s = (u >> 31) ? {sign}u : 0u;
  if (a == 0u) return (u >> 31) ? {negative_zero} : {zero};
  if (a >= {limit}u) return (uchar)({over}u | s);
  uint low = 0, high = {top};
  while (low < high) {{
    uint middle = (low + high + 1) / 2;
    if ({table}[middle] <= a) low = middle; else high = middle - 1;
  }}
  if (low < {top}u) {{
    float below = as_float(a) - as_float({table}[low]), above = as_float({table}[low + 1]) - as_float(a);
    if (above < below || (above == below && ({is_unsigned} || (low & 1u)))) low += 1;
  }}
  if (low == 0u) return (u >> 31) ? {negative_zero} : 0;
  return (uchar)(low | s);
}}
)",
                     fmt::arg("name", name), fmt::arg("nan", nan), fmt::arg("is_unsigned", format.is_unsigned ? 1 : 0),
                     fmt::arg("sign", sign_bit), fmt::arg("limit", limit), fmt::arg("over", over), fmt::arg("top", top),
                     fmt::arg("table", table), fmt::arg("negative_zero", negative_zero),
                     fmt::arg("zero", hlo::FloatToNarrow(type, 0.0f)));
}

// The scalar function, lane by lane.
std::string LaneByLane(const std::string& name, const std::string& scalar, const std::string& from,
                       const std::string& to, int lanes) {
  std::string text = fmt::format("static inline {} {}({} x) {{ return ({})(", WithLanes(to, lanes), name,
                                 WithLanes(from, lanes), WithLanes(to, lanes));
  for (int i = 0; i < lanes; ++i) text += fmt::format("{}{}(x.s{})", i == 0 ? "" : ", ", scalar, kLaneNames[i]);
  return text + "); }\n";
}

std::string Replace(std::string text, const std::string& name) {
  for (size_t at = text.find("NAME"); at != std::string::npos; at = text.find("NAME", at + name.size()))
    text.replace(at, 4, name);
  return text;
}

std::string SpaceLetter(Buffer::Space space) {
  return space == Buffer::Space::kGlobal ? "g" : space == Buffer::Space::kLocal ? "l" : "p";
}

}  // namespace

std::string CTypeName(ir::Type type) {
  static const std::map<ElementType, const char*> kNames = {
      {ElementType::kPred, "int"},   {ElementType::kS8, "char"},   {ElementType::kS16, "short"},
      {ElementType::kS32, "int"},    {ElementType::kS64, "long"},  {ElementType::kU8, "uchar"},
      {ElementType::kU16, "ushort"}, {ElementType::kU32, "uint"},  {ElementType::kU64, "ulong"},
      {ElementType::kF16, "half"},   {ElementType::kF32, "float"}, {ElementType::kF64, "double"}};
  const auto found = kNames.find(type.element);
  HLORUN_CHECK(found != kNames.end());
  return WithLanes(found->second, type.lanes);
}

ElementType CarrierType(ElementType storage) {
  if (storage == ElementType::kPred) return ElementType::kU8;
  if (storage == ElementType::kBF16 || storage == ElementType::kF16) return ElementType::kU16;
  if (IsNarrowFloat(storage)) return ElementType::kU8;
  return ir::ComputeType(storage);
}
std::string CarrierName(ElementType storage) { return CTypeName({CarrierType(storage), 1}); }

const char* MaskElement(int64_t bytes) {
  return bytes == 8 ? "long" : bytes == 4 ? "int" : bytes == 2 ? "short" : "char";
}

const char* SpaceName(Buffer::Space space) {
  return space == Buffer::Space::kGlobal ? "__global" : space == Buffer::Space::kLocal ? "__local" : "__private";
}

HelperSet::HelperSet(const DeviceSpec& device) : bf16_form_(device.bf16_dot), half_form_(device.half_conversion) {
  if (!bf16_form_.empty() && SourceOf(kBf16RoundForms, bf16_form_) == nullptr)
    Invalid("device spec: there is no way \"{}\" to round to bf16", bf16_form_);
  if (!half_form_.empty() && std::find(kHalfForms.begin(), kHalfForms.end(), half_form_) == kHalfForms.end())
    Invalid("device spec: there is no way \"{}\" to convert halves", half_form_);
}

void HelperSet::Add(const std::string& name, const std::string& source) {
  if (!known_.emplace(name, true).second) return;
  sources_.push_back(fmt::format("#ifndef HAVE_{0}\n#define HAVE_{0}\n{1}#endif\n", name, source));
}

std::string HelperSet::Text() const {
  std::string text;
  for (const std::string& source : sources_) text += source;
  return text;
}

std::string HelperSet::Unaligned(const std::string& element, int lanes) {
  std::string name = fmt::format("hl_{}{}u", element, lanes);
  Add(name, fmt::format("typedef {0} {1} __attribute__((ext_vector_type({2}), aligned(sizeof({0}))));\n", element, name,
                        lanes));
  return name;
}

std::string HelperSet::UnalignedPairs() {
  Add("hl_pairs16u", "typedef uint hl_pairs16u __attribute__((ext_vector_type(16), aligned(2)));\n");
  return "hl_pairs16u";
}

std::string HelperSet::Bf16Rounding(const char* function) {
  Add("hl_bf16_rounding", SourceOf(kBf16RoundForms, bf16_form_));
  return function;
}

std::string HelperSet::Named(const std::string& function, int lanes) {
  static const std::map<std::string, const char*> kSources = {{"hl_to_bf16", kToBf16},
                                                              {"hl_from_bf16", kFromBf16},
                                                              {"hl_round_bf16", kRoundBf16},
                                                              {"hl_to_f16", kToF16},
                                                              {"hl_from_f16", kFromF16},
                                                              {"hl_cut_bf16", kCutBf16},
                                                              {ir::kQuotientBf16, kSharedQuotientBf16}};
  std::string name = WithLanes(function + (lanes == 1 ? "" : "_"), lanes);
  if (function == "hl_result_bf16") {
    if (!bf16_form_.empty() && lanes == 16) return Bf16Rounding(kBf16RoundFunction);
    Add("hl_pick", kPick);
    Add(name, fmt::format("#if defined(__x86_64__)\n{}#else\n{}#endif\n", Replace(Expand(kResultBf16, lanes), name),
                          Replace(Expand(kAnyResultBf16, lanes), name)));
    return name;
  }
  if (function == kRoundToAnyPairs) return Bf16Rounding(kRoundToAnyPairs);
  for (const auto& [pair_function, source] : kPairHelpers) {
    if (function != pair_function) continue;
    if (function == kRoundToPairs) Bf16Rounding(kRoundToAnyPairs);
    if (function == kSumOfPairs) Add(kBf16DotFunction, SourceOf(kBf16DotForms, bf16_form_));
    if (function == kJoinPairs) Named("hl_to_bf16", lanes);
    Add(function, source);
    return function;
  }
  if (!half_form_.empty() && (function == "hl_to_f16" || function == "hl_from_f16")) {
    Add(WithLanes("hl_halves_", lanes), HalfConversions(half_form_, lanes));
    return name;
  }
  if (const auto found = kSources.find(function); found != kSources.end()) {
    Add("hl_pick", kPick);
    Add(name, Replace(Expand(found->second, lanes), name));
    return name;
  }
  for (const char* prefix : {"hl_round_", "hl_to_", "hl_from_"}) {
    if (function.rfind(prefix, 0) != 0) continue;
    const auto type = hlo::ElementTypeFromName(function.substr(std::string(prefix).size()));
    HLORUN_CHECK(type.has_value());
    const std::string type_name(hlo::ElementTypeName(*type));
    if (std::string(prefix) == "hl_round_") {
      const std::string to = Named("hl_to_" + type_name, lanes), from = Named("hl_from_" + type_name, lanes);
      const std::string floats = WithLanes("float", lanes);
      Add(name, fmt::format("static inline {} {}({} x) {{ return {}({}(x)); }}\n", floats, name, floats, from, to));
      return name;
    }
    const std::string table = "hl_table_" + type_name;
    Add(table, NarrowTable(*type, table));
    const bool decode = std::string(prefix) == "hl_from_";
    if (decode)
      Add(function, fmt::format("static inline float {}(uchar x) {{ return as_float({}[x]); }}\n", function, table));
    else
      Add(function, NarrowEncoder(*type, function, table));
    if (lanes > 1) Add(name, LaneByLane(name, function, decode ? "uchar" : "float", decode ? "float" : "uchar", lanes));
    return name;
  }
  return function;
}

std::string HelperSet::Math(const std::string& builtin, ir::Type type) {
  const MathFunction* function = FindMathFunction(builtin, type.element);
  if (function == nullptr) return Named(builtin, type.lanes);
  const std::string base = fmt::format("hl_{}_{}", builtin, hlo::ElementTypeName(type.element));
  std::string name = WithLanes(base + (type.lanes == 1 ? "" : "_"), type.lanes);
  Add("hl_pick", kPick);
  if (type.lanes > 1) Add(fmt::format("hl_arrays{}", type.lanes), ArrayMacros(type.lanes));
  const bool by_assembly = bf16_form_ == "assembly" && type.lanes == 16 && !function->by_assembly.empty();
  std::string source(by_assembly ? function->by_assembly : function->source);
  for (const std::string_view used : function->uses) {
    const bool shared = FindMathFunction(used, type.element)->source.find("NAME") == std::string_view::npos;
    const std::string callee = Math(std::string(used), shared ? type.WithLanes(1) : type);
    const std::string hole = fmt::format("@{{{}}}", used);
    for (size_t at = source.find(hole); at != std::string::npos; at = source.find(hole, at + callee.size())) {
      source.replace(at, hole.size(), callee);
    }
  }
  // Scalar functions in front of the one with lanes come once.
  const size_t own = source.rfind("static inline");
  if (own != std::string::npos && own > 0) Add(base + "_scalar", source.substr(0, own));
  if (own == std::string::npos)
    Add(base, source);
  else
    Add(name, Replace(Expand(source.substr(own), type.lanes), name));
  return name;
}

std::string HelperSet::FromStorage(ElementType storage, int lanes) {
  if (CarrierType(storage) == ir::ComputeType(storage)) return "";
  if (storage == ElementType::kPred) {
    std::string name = WithLanes("hl_from_pred_", lanes);
    Add(name, lanes == 1 ? fmt::format("static inline int {}(uchar x) {{ return x != 0; }}\n", name)
                         : fmt::format("static inline int{0} {1}(uchar{0} x) {{ return convert_int{0}(x) != 0; }}\n",
                                       lanes, name));
    return name;
  }
  return Named("hl_from_" + std::string(hlo::ElementTypeName(storage)), lanes);
}

std::string HelperSet::ToStorage(ElementType storage, int lanes) {
  if (CarrierType(storage) == ir::ComputeType(storage)) return "";
  if (storage == ElementType::kPred) {
    std::string name = WithLanes("hl_to_pred_", lanes);
    Add(name, lanes == 1 ? fmt::format("static inline uchar {}(int x) {{ return (uchar)(x & 1); }}\n", name)
                         : fmt::format("static inline uchar{0} {1}(int{0} x) {{ return convert_uchar{0}(x & 1); }}\n",
                                       lanes, name));
    return name;
  }
  return Named("hl_to_" + std::string(hlo::ElementTypeName(storage)), lanes);
}

std::string HelperSet::Gather(Buffer::Space space, const std::string& element, int lanes, const std::string& index) {
  std::string name = fmt::format("hl_gather_{}_{}{}_{}", SpaceLetter(space), element, lanes, index);
  std::string text = fmt::format("static inline {0}{1} {2}({3} const {0}* p, {4}{1} i) {{ return ({0}{1})(", element,
                                 lanes, name, SpaceName(space), index);
  for (int i = 0; i < lanes; ++i) text += fmt::format("{}p[i.s{}]", i == 0 ? "" : ", ", kLaneNames[i]);
  Add(name, text + "); }\n");
  return name;
}

std::string HelperSet::StridedGather(Buffer::Space space, const std::string& element, int lanes,
                                     const std::string& index) {
  std::string name = fmt::format("hl_strided_gather_{}_{}{}_{}", SpaceLetter(space), element, lanes, index);
  std::string text = fmt::format("static inline {0}{1} {2}({3} const {0}* p, {4} stride) {{ return ({0}{1})(", element,
                                 lanes, name, SpaceName(space), index);
  for (int i = 0; i < lanes; ++i) text += fmt::format("{}p[{} * stride]", i == 0 ? "" : ", ", i);
  Add(name, text + "); }\n");
  return name;
}

std::string HelperSet::EveryNth(Buffer::Space space, const std::string& element, int lanes,
                                const opencl::EveryNth& which) {
  const std::string phase = which.phase ? fmt::format("_{}", *which.phase) : "";
  std::string name = fmt::format("hl_every{}{}_{}_{}{}", which.stride, phase, SpaceLetter(space), element, lanes);
  Add(name, LoadOfEveryNth(name, {SpaceName(space), element, Unaligned(element, lanes), lanes}, which));
  return name;
}

std::string HelperSet::Repeats(Buffer::Space space, const std::string& element, int lanes, int64_t times) {
  std::string name = fmt::format("hl_repeat{}_{}_{}{}", times, SpaceLetter(space), element, lanes);
  const int read = lanes / static_cast<int>(times);
  Add(name,
      LoadOfRepeats(name, {SpaceName(space), element, read > 1 ? Unaligned(element, read) : element, lanes}, times));
  return name;
}

std::string HelperSet::StoreInTurns(Buffer::Space space, const std::string& element, int lanes, int64_t stride) {
  std::string name = fmt::format("hl_store_in_turns{}_{}_{}{}", stride, SpaceLetter(space), element, lanes);
  Add(name, opencl::StoreInTurns(name, {SpaceName(space), element, Unaligned(element, lanes), lanes}, stride));
  return name;
}

std::string HelperSet::MaskedGather(Buffer::Space space, const std::string& element, int lanes,
                                    const std::string& index) {
  std::string name = fmt::format("hl_masked_gather_{}_{}{}_{}", SpaceLetter(space), element, lanes, index);
  std::string text = fmt::format("static inline {0}{1} {2}({3} const {0}* p, {4}{1} i, int{1} m) {{ return ({0}{1})(",
                                 element, lanes, name, SpaceName(space), index);
  for (int i = 0; i < lanes; ++i)
    text += fmt::format("{0}(m.s{1} ? p[i.s{1}] : ({2})0)", i == 0 ? "" : ", ", kLaneNames[i], element);
  Add(name, text + "); }\n");
  return name;
}

std::string HelperSet::MaskedLoad(Buffer::Space space, ElementType storage, int lanes, const std::string& index,
                                  bool known) {
  const std::string element = CarrierName(storage);
  std::string name =
      fmt::format("hl_{}masked_load_{}_{}{}_{}", known ? "known_" : "", SpaceLetter(space), element, lanes, index);
  std::string text = fmt::format("static inline {0}{1} {2}({3} const {0}* p, {4} i, int{1} m, {4} last) {{\n", element,
                                 lanes, name, SpaceName(space), index);
  // Inside of the array what the mask leaves out can be read all the same. Beyond it all lanes are off, but for vectors
  // across its ends. Where the mask is known, the lanes become as few loads.
  if (!known) {
    const char* wide = MaskElement(hlo::BytesOf(CarrierType(storage)));
    text += fmt::format(
        "  if (i >= 0 && i <= last) return select(({0}{1})0, *({2} const {3}*)(p + i), convert_{4}{1}(m));\n"
        "  if (!any(m)) return ({0}{1})0;\n",
        element, lanes, SpaceName(space), Unaligned(element, lanes), wide);
  }
  text += fmt::format("  return ({}{})(", element, lanes);
  for (int i = 0; i < lanes; ++i)
    text += fmt::format("{0}(m.s{1} ? p[i + {2}] : ({3})0)", i == 0 ? "" : ", ", kLaneNames[i], i, element);
  Add(name, text + ");\n}\n");
  return name;
}

std::string HelperSet::Scatter(Buffer::Space space, const std::string& element, int lanes, const std::string& index) {
  std::string name = fmt::format("hl_scatter_{}_{}{}_{}", SpaceLetter(space), element, lanes, index);
  std::string text = fmt::format("static inline void {2}({3} {0}* p, {4}{1} i, {0}{1} v) {{", element, lanes, name,
                                 SpaceName(space), index);
  for (int i = 0; i < lanes; ++i) text += fmt::format(" p[i.s{0}] = v.s{0};", kLaneNames[i]);
  Add(name, text + " }\n");
  return name;
}

// Processors divide vectors of doubles, not of integers. Rounded to zero the quotient is the integers' own: where x / y
// is no integer, the next one is at least 1 / |y| away, and below 2^32 rounding to 53 bits moves it by less, |x / y| *
// 2^-53.
std::string HelperSet::Quotient(ir::Type type) {
  const std::string integers = CTypeName(type), doubles = WithLanes("double", type.lanes);
  std::string name = "hl_quotient_" + integers;
  std::string quotient = fmt::format("convert_{}(x) / convert_{}(y)", doubles, doubles);
  if (hlo::BitsOf(type.element) < 32) quotient = fmt::format("convert_{}({})", WithLanes("int", type.lanes), quotient);
  Add(name,
      fmt::format("static inline {0} {1}({0} x, {0} y) {{ return convert_{0}({2}); }}\n", integers, name, quotient));
  return name;
}

std::string HelperSet::Remainder(ir::Type type) {
  const std::string integers = CTypeName(type), quotient = Quotient(type);
  std::string name = "hl_remainder_" + integers;
  Add(name,
      fmt::format("static inline {0} {1}({0} x, {0} y) {{ return x - {2}(x, y) * y; }}\n", integers, name, quotient));
  return name;
}

std::string HelperSet::UpperHalf(const std::string& half, const std::string& whole) {
  std::string name = "hl_upper_half_" + whole;
  // Quirks::doubts_upper_halves defines HLORUN_HALVES_IN_MEMORY.
  Add(name, fmt::format("static inline {0} {2}({1} x) {{\n#ifdef HLORUN_HALVES_IN_MEMORY\n  return (({0}*)&x)[1];\n"
                        "#else\n  return x.hi;\n#endif\n}}\n",
                        half, whole, name));
  return name;
}

std::string HelperSet::ReduceLanes(ir::Op op, ir::Type type) {
  static const std::map<ir::Op, const char*> kNames = {{ir::Op::kAdd, "add"}, {ir::Op::kMul, "mul"},
                                                       {ir::Op::kMin, "min"}, {ir::Op::kMax, "max"},
                                                       {ir::Op::kAnd, "and"}, {ir::Op::kOr, "or"}};
  static const std::map<ir::Op, const char*> kForms = {{ir::Op::kAdd, "a + b"},     {ir::Op::kMul, "a * b"},
                                                       {ir::Op::kMin, "min(a, b)"}, {ir::Op::kMax, "max(a, b)"},
                                                       {ir::Op::kAnd, "a & b"},     {ir::Op::kOr, "a | b"}};
  HLORUN_CHECK(kNames.count(op) != 0);
  const std::string element = CTypeName(type.WithLanes(1));
  std::string name = fmt::format("hl_reduce_{}_{}{}", kNames.at(op), element, type.lanes);
  std::string text = fmt::format("static inline {0} {1}({0}{2} x) {{\n", element, name, type.lanes);
  std::string from = "x";
  for (int lanes = type.lanes / 2; lanes >= 1; lanes /= 2) {
    const std::string wide = WithLanes(element, lanes);
    const std::string upper = UpperHalf(wide, WithLanes(element, 2 * lanes));
    text += fmt::format("  {0} x{1};\n  {{ {0} a = {2}.lo, b = {3}({2}); x{1} = {4}; }}\n", wide, lanes, from, upper,
                        kForms.at(op));
    from = fmt::format("x{}", lanes);
  }
  Add(name, text + "  return x1;\n}\n");
  return name;
}

}  // namespace hlorun::opencl
