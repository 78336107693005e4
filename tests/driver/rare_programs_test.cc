// Programs that few write: on the device, the evaluator's values.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/driver/evaluator_results.h"

namespace hlorun {
namespace {

// Constants of 2^63 and more are no negative numbers.
TEST(RarePrograms, TheLargestIntegersBecomeFloats) {
  ExpectEvaluatorsResult(R"(HloModule m
ENTRY e {
  p = u64[1000,2] parameter(0)
  c = u64[] constant(18446744073709551615)
  q = u64[1000,3] pad(p, c), padding=0_0x1_0
  ROOT f = f32[1000,3] convert(q)
})");
}

// A small array whose dilated one has more elements than 32 bits count.
TEST(RarePrograms, PaddingOfMoreThan32Bits) {
  ExpectEvaluatorsResult(R"(HloModule m
ENTRY e {
  x = f32[4] parameter(0)
  z = f32[] parameter(1)
  ROOT r = f32[4] pad(x, z), padding=-4294967295_-8589934590_4294967295
})");
}

// A branch that becomes a mask under a sum over its first and last dimension.
TEST(RarePrograms, SumsOfWhatAScalarChooses) {
  for (const char* chosen : {"select(p, x, y)", "conditional(p, x, y), true_computation=t, false_computation=f"}) {
    const std::string text = R"(HloModule m
add { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = f32[] add(a, b) }
t { ROOT v = f32[64,64,8] parameter(0) }
f { ROOT v = f32[64,64,8] parameter(0) }
ENTRY e {
  p = pred[] parameter(0)
  x = f32[64,64,8] parameter(1)
  y = f32[64,64,8] parameter(2)
  z = f32[] constant(0)
  s = f32[64,64,8] )" + std::string(chosen) +
                             R"(
  ROOT r = f32[64] reduce(s, z), dimensions={0,2}, to_apply=add
})";
    ExpectEvaluatorsResult(text);
  }
}

// The state of random numbers in a scan's step, and before it.
TEST(RarePrograms, ScansDrawNumbers) {
  ExpectEvaluatorsResult(R"(HloModule m
f { x = u64[2] parameter(0)
  c = u64[2] parameter(1)
  u = u64[2] rng-get-and-update-state(), delta=3
  v = u64[2] add(x, u)
  s = u64[2] xor(v, c)
  ROOT t = (u64[2], u64[2]) tuple(s, s) }
ENTRY e {
  x = u64[6,2] parameter(0)
  i = u64[2] parameter(1)
  u = u64[2] rng-get-and-update-state(), delta=5
  j = u64[2] add(i, u)
  ROOT r = (u64[6,2], u64[2]) scan(x, j), dimensions={0}, num_carries=1, to_apply=f
})");
}

// Reducers of another type than what they reduce, over one element, none, copies.
TEST(RarePrograms, ReducersOfMixedTypes) {
  for (const char* reduced :
       {"reduce(x, z), dimensions={1}", "reduce(none, z), dimensions={1}", "reduce(copies, z), dimensions={1}"}) {
    ExpectEvaluatorsResult(std::string(R"(HloModule m
largest { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = f32[] maximum(a, b) }
ENTRY e {
  x = bf16[5,1] parameter(0)
  none = bf16[5,0] slice(x), slice={[0:5], [0:0]}
  one = bf16[5] reshape(x)
  copies = bf16[5,3] broadcast(one), dimensions={0}
  z = bf16[] constant(0.5)
  ROOT r = f32[5] )") + reduced +
                           ", to_apply=largest\n}");
  }
}

// Computations of maps whose parameters are of another type than the arrays.
TEST(RarePrograms, MapsOfMixedTypes) {
  ExpectEvaluatorsResult(R"(HloModule m
f { p = bf16[] parameter(0)
  ROOT c = f32[] convert(p) }
ENTRY e { x = f32[64] parameter(0)
  ROOT r = f32[64] map(x), dimensions={0}, to_apply=f })");
  ExpectEvaluatorsResult(R"(HloModule m
g { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b) }
ENTRY e { x = bf16[64] parameter(0)
  y = f32[64] parameter(1)
  ROOT r = f32[64] map(x, y), dimensions={0}, to_apply=g })");
}

// Slices of what a loop's product multiplies, whose starts are one array.
TEST(RarePrograms, StartsInOneArrayInALoop) {
  for (const char* w : {"16,8,32", "8,16,32"}) {
    const bool is_major = std::string_view(w).starts_with("16");
    std::string text = R"(HloModule m
body {
  t = (s32[], s32[3], f32[W], f32[32,32], f32[8,32]) parameter(0)
  i = s32[] get-tuple-element(t), index=0
  p = s32[3] get-tuple-element(t), index=1
  w = f32[W] get-tuple-element(t), index=2
  k = f32[32,32] get-tuple-element(t), index=3
  acc = f32[8,32] get-tuple-element(t), index=4
  d = f32[S] dynamic-slice(w, p), dynamic_slice_sizes={S}
  m = f32[8,32] reshape(d)
  y = f32[8,32] dot(m, k), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  n = f32[8,32] add(acc, y)
  one = s32[] constant(1)
  j = s32[] add(i, one)
  st = s32[3] constant({T})
  q = s32[3] add(p, st)
  ROOT r = (s32[], s32[3], f32[W], f32[32,32], f32[8,32]) tuple(j, q, w, k, n)
}
cond {
  t = (s32[], s32[3], f32[W], f32[32,32], f32[8,32]) parameter(0)
  i = s32[] get-tuple-element(t), index=0
  l = s32[] constant(16)
  ROOT c = pred[] compare(i, l), direction=LT
}
ENTRY e {
  w = f32[W] parameter(0)
  k = f32[32,32] parameter(1)
  a = f32[8,32] parameter(2)
  z = s32[] constant(0)
  p = s32[3] constant({0,0,0})
  t = (s32[], s32[3], f32[W], f32[32,32], f32[8,32]) tuple(z, p, w, k, a)
  l = (s32[], s32[3], f32[W], f32[32,32], f32[8,32]) while(t), condition=cond, body=body
  ROOT r = f32[8,32] get-tuple-element(l), index=4
})";
    const auto replace = [&](char letter, const std::string& with) {
      for (const char* before : {"[", "{"}) {
        const std::string what = before + std::string(1, letter);
        for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at)) {
          text.replace(at + 1, 1, with);
        }
      }
    };
    replace('W', w);
    replace('S', is_major ? "1,8,32" : "8,1,32");
    replace('T', is_major ? "1,0,0" : "0,1,0");
    ExpectEvaluatorsResult(text);
  }
}

// The second value on the left of the comparator's comparison.
TEST(RarePrograms, TheLargestByAMirroredComparator) {
  ExpectEvaluatorsResult(R"(HloModule m
order { p0 = f32[] parameter(0)
  p1 = f32[] parameter(1)
  p2 = s32[] parameter(2)
  p3 = s32[] parameter(3)
  ROOT c = pred[] compare(p1, p0), direction=LT }
ENTRY e { x = f32[4,50] parameter(0)
  t = (f32[4,3], s32[4,3]) custom-call(x), custom_call_target="TopK", called_computations={order}
  ROOT v = f32[4,3] get-tuple-element(t), index=0 })");
}

// Masks of a program's own are the ends of sums only where they count as sizes do.
TEST(RarePrograms, MasksByOtherTypesThanSizes) {
  struct Mask {
    const char *type, *limit;
  };
  for (const Mask& mask : {Mask{"s64", "9223372036854775807"}, Mask{"u32", "4294967295"}, Mask{"f32", "inf"},
                           Mask{"u8", "20"}, Mask{"s32", "2147483647"}, Mask{"s32", "-1"}}) {
    for (const char* reduced :
         {"f32[40] reduce(m, zero), dimensions={1}", "f32[300] reduce(m, zero), dimensions={0}"}) {
      ExpectEvaluatorsResult(fmt::format(R"(HloModule m
f {{ a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b) }}
ENTRY e {{
  x = f32[40,300] parameter(0)
  l = {0}[] constant({1})
  lb = {0}[40,300] broadcast(l), dimensions={{}}
  i = {0}[40,300] iota(), iota_dimension={3}
  p = pred[40,300] compare(i, lb), direction=LT
  zero = f32[] constant(0)
  zb = f32[40,300] broadcast(zero), dimensions={{}}
  e = f32[40,300] exponential(x)
  m = f32[40,300] select(p, e, zb)
  ROOT r = {2}, to_apply=f
}})",
                                         mask.type, mask.limit, reduced, reduced[4] == '4' ? 1 : 0));
    }
  }
}

// By their real parts, of equal ones the first.
TEST(RarePrograms, ExtremesOfComplexNumbers) {
  for (const char* opcode : {"maximum", "minimum"}) {
    for (const char* reduced :
         {"x = c64[4,512] parameter(0)\n ROOT r = c64[4] reduce(x, z), dimensions={1}, to_apply=f",
          "x = c64[20000,4] parameter(0)\n ROOT r = c64[4] reduce(x, z), dimensions={0}, to_apply=f",
          "x = c64[64] parameter(0)\n ROOT r = c64[] reduce(x, z), dimensions={0}, to_apply=f",
          "x = c64[140000] parameter(0)\n ROOT r = c64[] reduce(x, z), dimensions={0}, to_apply=f",
          "x = c64[4096] parameter(0)\n ROOT r = c64[4096] reduce-window(x, z), window={size=64 pad=0_63}, to_apply=f",
          "x = c64[512] parameter(0)\n ROOT r = c64[512] reduce-window(x, z), window={size=512 pad=511_0}, "
          "to_apply=f"}) {
      ExpectEvaluatorsResult(fmt::format(R"(HloModule m
f {{ a = c64[] parameter(0)
  b = c64[] parameter(1)
  ROOT s = c64[] {}(a, b) }}
ENTRY e {{
  z = c64[] constant((0.25, -1))
  {}
}})",
                                         opcode, reduced));
    }
  }
}

// A sum of -0 is -0.
TEST(RarePrograms, SumsOfNegativeZeros) {
  for (const int64_t n : {100, 140000}) {
    ExpectEvaluatorsResult(fmt::format(R"(HloModule m
f {{ a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b) }}
ENTRY e {{
  x = f32[{0}] parameter(0)
  k = f32[] constant(-0)
  b = f32[{0}] broadcast(k), dimensions={{}}
  y = f32[{0}] abs(x)
  m = f32[{0}] multiply(y, b)
  s = f32[] reduce(m, k), dimensions={{0}}, to_apply=f
  one = f32[] constant(1)
  ROOT r = f32[] divide(one, s)
}})",
                                       n));
  }
}

// The parts of long rows, of complex numbers, and of a cumulative sum.
TEST(RarePrograms, SumsOfNegativeZerosByParts) {
  for (const char* divisor : {"w", "q"}) {
    ExpectEvaluatorsResult(fmt::format(R"(HloModule m
add {{ x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT s = f32[] add(x, y) }}
addc {{ x = c64[] parameter(0)
  y = c64[] parameter(1)
  ROOT s = c64[] add(x, y) }}
ENTRY e {{
  p = f32[4,20000] parameter(0)
  m = f32[] constant(-0)
  mb = f32[4,20000] broadcast(m), dimensions={{}}
  a = f32[4,20000] abs(p)
  n = f32[4,20000] multiply(a, mb)
  cm = c64[] complex(m, m)
  c = c64[4,20000] complex(n, n)
  w = f32[4,20000] reduce-window(n, m), window={{size=1x20000 pad=0_0x19999_0}}, to_apply=add
  r = c64[4] reduce(c, cm), dimensions={{1}}, to_apply=addc
  re = f32[4] real(r)
  im = f32[4] imag(r)
  both = f32[4] maximum(re, im)
  q = f32[4,20000] broadcast(both), dimensions={{0}}
  one = f32[] constant(1)
  o = f32[4,20000] broadcast(one), dimensions={{}}
  ROOT d = f32[4,20000] divide(o, {})
}})",
                                       divisor));
  }
}

// Each update rounds, however many there are.
TEST(RarePrograms, ManyUpdatesOfOneBf16) {
  ClientOptions options;
  for (const char* device_class : {"cpu", "gpu"}) {
    options.device_class = device_class;
    ExpectEvaluatorsResult(R"(HloModule m
add { x = bf16[] parameter(0)
  y = bf16[] parameter(1)
  ROOT s = bf16[] add(x, y) }
ENTRY e {
  p = bf16[4] parameter(0)
  i = s32[16384] parameter(1)
  t = s32[] constant(3)
  three = s32[16384] broadcast(t), dimensions={}
  j = s32[16384] and(i, three)
  one = bf16[] constant(1)
  u = bf16[16384] broadcast(one), dimensions={}
  ROOT r = bf16[4] scatter(p, j, u), update_window_dims={}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=add
})",
                           options);
  }
}

// Beyond the outer array; and a place in an array of which two slices take one element.
TEST(RarePrograms, SlicesOfSlicesThatTakeLittle) {
  ExpectEvaluatorsResult(R"(HloModule m
ENTRY e {
  x = f32[20] parameter(0)
  y = f32[7] slice(x), slice={[0:20:3]}
  r = f32[0] slice(y), slice={[7:7]}
  s = f32[1] slice(y), slice={[6:7:4000000000000000000]}
  z = f32[] constant(3)
  p = f32[2] pad(r, z), padding=1_1
  ROOT t = (f32[2], f32[0], f32[1]) tuple(p, r, s)
})");
}

TEST(RarePrograms, RaggedProductsOfNoGroup) {
  ExpectEvaluatorsResult(R"(HloModule m
ENTRY e {
  l = f32[11,5] parameter(0)
  r = f32[0,5,7] parameter(1)
  g = s32[0] parameter(2)
  ROOT o = f32[11,7] ragged-dot(l, r, g), lhs_contracting_dims={1}, rhs_contracting_dims={1}, lhs_ragged_dims={0}, rhs_group_dims={0}
})");
}

// Bits of arrays of other shapes, of which the one has parts of the other's elements.
TEST(RarePrograms, BitcastsToOtherTypesAndShapes) {
  struct Case {
    const char *from, *to;
  };
  for (const Case& bits : {Case{"s32[2,6]", "f32[4,3]"}, Case{"s32[4]", "f32[2,2]"}, Case{"s32[4]", "u8[16]"},
                           Case{"f32[3,1]", "u8[3,4]"}, Case{"s32[2,1,6]", "f32[2,6]"}, Case{"u8[16]", "s32[4]"},
                           Case{"u8[2,8]", "s32[4]"}, Case{"f32[2,4]", "f64[4]"}, Case{"s32[]", "u16[2]"}}) {
    ExpectEvaluatorsResult(fmt::format(R"(HloModule m
ENTRY e {{
  a = {0} parameter(0)
  n = {0} add(a, a)
  b = {1} bitcast(n)
  ROOT c = {1} add(b, b)
}})",
                                       bits.from, bits.to));
  }
}

constexpr const char* kSelectAndScatter = R"(HloModule m
ge { x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT r = pred[] compare(x, y), direction=GE }
add { x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT r = f32[] add(x, y) }
)";

// Of equal elements the first is selected, whatever order the dimensions come to lie in.
TEST(RarePrograms, TiesInWindowsOverChannels) {
  ExpectEvaluatorsResult(kSelectAndScatter + std::string(R"(ENTRY e {
  a = f32[2,4,6,4] parameter(0)
  z = f32[] constant(0)
  fl = f32[2,4,6,4] floor(a)
  t = f32[2,4,4,6] transpose(fl), dimensions={0,3,1,2}
  s = f32[2,2,2,3] iota(), iota_dimension=3
  p = f32[2,4,4,6] select-and-scatter(t, s, z), window={size=1x2x2x2 stride=1x2x2x2}, select=ge, scatter=add
  ROOT u = f32[2,4,6,4] transpose(p), dimensions={0,2,3,1}
})"));
}

TEST(RarePrograms, SelectionsInDilatedWindows) {
  for (const char* entry : {R"(ENTRY e {
  t = f32[2,4,9] parameter(0)
  s = f32[2,4,3] parameter(1)
  z = f32[] constant(1)
  ROOT p = f32[2,4,9] select-and-scatter(t, s, z), window={size=1x1x3 stride=1x1x2 rhs_dilate=1x1x2}, select=ge, scatter=add
})",
                            R"(ENTRY e {
  t = f32[4] parameter(0)
  s = f32[5] parameter(1)
  z = f32[] constant(1)
  ROOT p = f32[4] select-and-scatter(t, s, z), window={size=3 lhs_dilate=2}, select=ge, scatter=add
})"}) {
    ExpectEvaluatorsResult(kSelectAndScatter + std::string(entry));
  }
}

// Images smaller than the window.
TEST(RarePrograms, ConvolutionsWithoutResults) {
  for (const char* result : {"f32[2,0,0,5] convolution(a, k), window={size=3x3}",
                             "f32[2,2,0,5] convolution(a, k), window={size=3x3 pad=1_1x0_0}",
                             "f32[2,0,3,5] convolution(a, k), window={size=3x3 pad=-1_0x1_1 lhs_dilate=2x2}"}) {
    ExpectEvaluatorsResult(fmt::format(R"(HloModule m
ENTRY e {{
  a = f32[2,2,2,3] parameter(0)
  k = f32[3,3,3,5] parameter(1)
  ROOT c = {}, dim_labels=b01f_01io->b01f
}})",
                                       result));
  }
}

TEST(RarePrograms, TotalOrderBesideNegativeNan) {
  ExpectEvaluatorsResult(R"(HloModule m
ENTRY e {
  x = f32[8] parameter(0)
  c = f32[] constant(-nan)
  b = f32[8] broadcast(c), dimensions={}
  ROOT l = pred[8] compare(x, b), direction=LT, type=TOTALORDER
})");
}

// A dynamic size over a reducer whose type has nothing that changes nothing.
TEST(RarePrograms, SumsOfATypeWithoutZero) {
  ExpectEvaluatorsResult(R"(HloModule m
sum { a = f8e8m0fnu[] parameter(0)
  b = f8e8m0fnu[] parameter(1)
  ROOT c = f8e8m0fnu[] add(a, b) }
ENTRY e {
  x = f32[8] parameter(0)
  n = s32[] constant(3)
  one = f8e8m0fnu[] constant(1)
  e = f8e8m0fnu[8] convert(x)
  y = f8e8m0fnu[<=8] set-dimension-size(e, n), dimensions={0}
  ROOT r = f8e8m0fnu[] reduce(y, one), dimensions={0}, to_apply=sum
})");
}

// Windows larger than what an array of dynamic size has.
TEST(RarePrograms, GathersOfMoreThanThereIs) {
  ExpectEvaluatorsResult(R"(HloModule m
ENTRY e {
  x = f32[8] parameter(0)
  k = s32[] parameter(1)
  z = s32[] xor(k, k)
  c = s32[] constant(2)
  n = s32[] add(z, c)
  i = s32[2,1] constant({{0},{3}})
  y = f32[<=8] set-dimension-size(x, n), dimensions={0}
  ROOT r = f32[2,4] gather(y, i), offset_dims={1}, collapsed_slice_dims={}, start_index_map={0}, index_vector_dim=1, slice_sizes={4}
})");
}

}  // namespace
}  // namespace hlorun
