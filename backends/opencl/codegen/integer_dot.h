// sum + the products of the four bytes of two words, by OpenCL's own function (cl_khr_integer_dot_product), which GPUs
// have an instruction for. A compiler without it multiplies byte by byte, to the same sums.
#pragma once

#include <fmt/format.h>

#include <string>

namespace hlorun::opencl {

inline constexpr int kBytesOfQuad = 4;

// Which of two words have signs.
struct QuadSigns {
  bool a, b;
};

// The function for sums of `lanes` (1, 2 or 4) ints: S name(S sum, U a, U b), U uints of as many lanes.
inline std::string QuadDotName(QuadSigns is_signed, int lanes) {
  return fmt::format("hl_dot_quads{}_{}{}", lanes == 1 ? "" : std::to_string(lanes), is_signed.a ? 's' : 'u',
                     is_signed.b ? 's' : 'u');
}

// Those of more lanes call that of one.
inline std::string QuadDotSource(QuadSigns is_signed, int lanes) {
  const std::string one = QuadDotName(is_signed, 1);
  if (lanes > 1) {
    std::string each;
    for (int lane = 0; lane < lanes; ++lane)
      each += fmt::format("{}{}(sum.s{}, a.s{}, b.s{})", lane == 0 ? "" : ", ", one, lane, lane, lane);
    return fmt::format("static inline int{0} {1}(int{0} sum, uint{0} a, uint{0} b) {{\n  return (int{0})({2});\n}}\n",
                       lanes, QuadDotName(is_signed, lanes), each);
  }
  const auto letter = [](bool has_sign) { return has_sign ? 's' : 'u'; };
  const auto type = [](bool has_sign) { return has_sign ? "char" : "uchar"; };
  return fmt::format(
      "static inline int {}(int sum, uint a, uint b) {{\n"
      "#if defined(__opencl_c_integer_dot_product_input_4x8bit_packed)\n"
      "  return sum + (int)dot_4x8packed_{}{}_{}(a, b);\n"
      "#else\n"
      "  const int4 p = convert_int4(as_{}4(a)) * convert_int4(as_{}4(b));\n"
      "  return sum + p.s0 + p.s1 + p.s2 + p.s3;\n"
      "#endif\n}}\n",
      one, letter(is_signed.a), letter(is_signed.b), is_signed.a || is_signed.b ? "int" : "uint", type(is_signed.a),
      type(is_signed.b));
}

// The words that 4 x `lanes` elements of 8 bits are.
inline std::string QuadsName(int lanes, bool is_signed) {
  return fmt::format("hl_quads{}_{}", lanes == 1 ? "" : std::to_string(lanes), is_signed ? "s8" : "u8");
}
inline std::string QuadsSource(int lanes, bool is_signed) {
  return fmt::format("static inline {0} {1}({2}{3} x) {{ return as_{0}(x); }}\n",
                     lanes == 1 ? "uint" : fmt::format("uint{}", lanes), QuadsName(lanes, is_signed),
                     is_signed ? "char" : "uchar", kBytesOfQuad * lanes);
}

}  // namespace hlorun::opencl
