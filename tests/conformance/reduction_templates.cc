// reduce, reduce-window, select-and-scatter, sort, topk, scan, map.
#include <cmath>

#include "tests/conformance/template_cases.h"

// Tables, one case a row.
// clang-format off

namespace hlorun::conformance {

std::vector<Template> ReductionTemplates() {
  const std::string numbers = "s8 s16 s32 s64 u8 u32 u64 f16 bf16 f32 f64";
  const std::string ints = "s8 s32 s64 u8 u32 u64 pred";
  const std::string few = "s8 s32 s64 bf16 f16 f32 f64";
  const double nan = std::nan("");
  const std::vector<double> floats = {3, -1, 2, nan, -0.0, 0, 5, 2, -7, INFINITY, -INFINITY, 2, nan, 1};
  return {
      {"reduce-add-inner", numbers + " c64 c128", "$ADDENTRY e { x = $T[7,9] parameter(0)\n z = $T[] parameter(1)\n ROOT r = $T[7] reduce(x, z), dimensions={1}, to_apply=add }"},
      {"reduce-add-outer", numbers + " c64", "$ADDENTRY e { x = $T[7,9] parameter(0)\n z = $T[] parameter(1)\n ROOT r = $T[9] reduce(x, z), dimensions={0}, to_apply=add }"},
      {"reduce-add-all", numbers, "$ADDENTRY e { x = $T[3,5,7] parameter(0)\n z = $T[] parameter(1)\n ROOT r = $T[] reduce(x, z), dimensions={0,1,2}, to_apply=add }"},
      {"reduce-add-two", few, "$ADDENTRY e { x = $T[3,5,7] parameter(0)\n z = $T[] parameter(1)\n ROOT r = $T[5] reduce(x, z), dimensions={2,0}, to_apply=add }"},
      {"reduce-add-none", few, "$ADDENTRY e { x = $T[3] parameter(0)\n z = $T[] parameter(1)\n ROOT r = $T[3] reduce(x, z), dimensions={}, to_apply=add }"},
      {"reduce-add-empty", few, "$ADDENTRY e { x = $T[3,0] parameter(0)\n z = $T[] parameter(1)\n ROOT r = $T[3] reduce(x, z), dimensions={1}, to_apply=add }"},
      {"reduce-add-long", "bf16 f16 f32", "$ADDENTRY e { x = $T[3000] parameter(0)\n z = $T[] constant(0)\n ROOT r = $T[] reduce(x, z), dimensions={0}, to_apply=add }", 0, 0, {{0, {1, 1, 0}}}},
      {"reduce-multiply", numbers, "$MULENTRY e { x = $T[4,6] parameter(0)\n z = $T[] constant(1)\n ROOT r = $T[4] reduce(x, z), dimensions={1}, to_apply=mul }"},
      {"reduce-maximum", numbers, "$MAXENTRY e { x = $T[4,6] parameter(0)\n z = $T[] constant(0)\n ROOT r = $T[4] reduce(x, z), dimensions={1}, to_apply=max }"},
      {"reduce-maximum-nan", "f16 bf16 f32 f64", "$MAXENTRY e { x = $T[2,7] parameter(0)\n z = $T[] constant(-inf)\n ROOT r = $T[7] reduce(x, z), dimensions={0}, to_apply=max }", 0, 0, {{0, floats}}},
      {"reduce-minimum", numbers, "$MINENTRY e { x = $T[4,6] parameter(0)\n z = $T[] constant(1)\n ROOT r = $T[6] reduce(x, z), dimensions={0}, to_apply=min }"},
      {"reduce-and", ints, "$ANDENTRY e { x = $T[4,6] parameter(0)\n z = $T[] parameter(1)\n ROOT r = $T[4] reduce(x, z), dimensions={1}, to_apply=and_ }"},
      {"reduce-or", ints, "$ORENTRY e { x = $T[4,6] parameter(0)\n z = $T[] parameter(1)\n ROOT r = $T[4] reduce(x, z), dimensions={1}, to_apply=or_ }"},
      {"reduce-xor", "s8 s32 s64 u8 u32", "$XORENTRY e { x = $T[4,6] parameter(0)\n z = $T[] parameter(1)\n ROOT r = $T[4] reduce(x, z), dimensions={1}, to_apply=xor_ }"},
      {"reduce-wrapping", "s8 u8 s32 s64", "$ADDENTRY e { x = $T[40] parameter(0)\n z = $T[] constant(0)\n ROOT r = $T[] reduce(x, z), dimensions={0}, to_apply=add }", 0, 0, {{0, {100, 27, 93}}}},
      {"reduce-general", few, "f { a = $T[] parameter(0)\n b = $T[] parameter(1)\n c = $T[] multiply(b, b)\n ROOT d = $T[] add(a, c) }\nENTRY e { x = $T[4,6] parameter(0)\n z = $T[] constant(0)\n ROOT r = $T[4] reduce(x, z), dimensions={1}, to_apply=f }"},
      {"reduce-general-long", "bf16 f16", "f { a = $T[] parameter(0)\n b = $T[] parameter(1)\n z = $T[] constant(-5)\n c = $T[] add(a, b)\n ROOT d = $T[] maximum(c, z) }\nENTRY e { x = $T[3000] parameter(0)\n z = $T[] constant(0)\n ROOT r = $T[] reduce(x, z), dimensions={0}, to_apply=f }", 0, 0, {{0, {1, 1, 0}}}},
      {"reduce-window-long", "bf16 f16", "$ADDENTRY e { x = $T[3000] parameter(0)\n z = $T[] constant(0)\n ROOT r = $T[1] reduce-window(x, z), window={size=3000}, to_apply=add }", 0, 0, {{0, {1, 1, 0}}}},
      {"reduce-argmax", few, "f { v0 = $T[] parameter(0)\n i0 = s32[] parameter(1)\n v1 = $T[] parameter(2)\n i1 = s32[] parameter(3)\n p = pred[] compare(v0, v1), direction=GE\n v = $T[] select(p, v0, v1)\n i = s32[] select(p, i0, i1)\n ROOT t = ($T[], s32[]) tuple(v, i) }\nENTRY e { x = $T[5,8] parameter(0)\n k = s32[5,8] iota(), iota_dimension=1\n l = $T[] constant(-100)\n z = s32[] constant(0)\n ROOT r = ($T[5], s32[5]) reduce(x, k, l, z), dimensions={1}, to_apply=f }"},
      {"group-norm", "f32 f64", "$ADDENTRY e { x = $T[34,41,4,60] parameter(0)\n k = $T[4,60] parameter(1)\n z = $T[] constant(0)\n s = $T[34,4] reduce(x, z), dimensions={1,3}, to_apply=add\n n = $T[] constant(2460)\n ns = $T[34,4] broadcast(n), dimensions={}\n m = $T[34,4] divide(s, ns)\n ms = $T[34,41,4,60] broadcast(m), dimensions={0,2}\n d = $T[34,41,4,60] subtract(x, ms)\n q = $T[34,41,4,60] multiply(d, d)\n v = $T[34,4] reduce(q, z), dimensions={1,3}, to_apply=add\n w = $T[34,4] divide(v, ns)\n r = $T[34,4] rsqrt(w)\n rs = $T[34,41,4,60] broadcast(r), dimensions={0,2}\n y = $T[34,41,4,60] multiply(d, rs)\n ks = $T[34,41,4,60] broadcast(k), dimensions={2,3}\n o = $T[34,41,4,60] multiply(y, ks)\n ROOT t = ($T[34,41,4,60], $T[34,4]) tuple(o, m) }", 0, 0, {{0, {1, 2, -3, 0.5}}}},
      {"reduce-window-sum", few, "$ADDENTRY e { x = $T[8,9] parameter(0)\n z = $T[] constant(0)\n ROOT r = $T[4,4] reduce-window(x, z), window={size=2x3 stride=2x2}, to_apply=add }"},
      {"reduce-window-max-padded", few, "$MAXENTRY e { x = $T[5,6] parameter(0)\n z = $T[] constant(-9)\n ROOT r = $T[5,6] reduce-window(x, z), window={size=3x3 pad=1_1x1_1}, to_apply=max }"},
      {"reduce-window-dilated", few, "$ADDENTRY e { x = $T[9] parameter(0)\n z = $T[] constant(0)\n ROOT r = $T[6] reduce-window(x, z), window={size=3 pad=1_0 rhs_dilate=2}, to_apply=add }"},
      {"reduce-window-base-dilated", few, "$ADDENTRY e { x = $T[5] parameter(0)\n z = $T[] constant(0)\n ROOT r = $T[8] reduce-window(x, z), window={size=3 pad=1_0 lhs_dilate=2}, to_apply=add }"},
      {"reduce-window-negative-pad", few, "$ADDENTRY e { x = $T[9] parameter(0)\n z = $T[] constant(0)\n ROOT r = $T[5] reduce-window(x, z), window={size=3 pad=-1_-1}, to_apply=add }"},
      {"reduce-window-init", few, "$ADDENTRY e { x = $T[6] parameter(0)\n z = $T[] constant(3)\n ROOT r = $T[5] reduce-window(x, z), window={size=2}, to_apply=add }"},
      {"cumulative-sum", "s32 f32 f64 bf16", "$ADDENTRY e { x = $T[3,40] parameter(0)\n z = $T[] constant(0)\n ROOT r = $T[3,40] reduce-window(x, z), window={size=1x40 pad=0_0x39_0}, to_apply=add }"},
      {"cumulative-recurrence", "s32 f32 bf16", "f { a = $T[] parameter(0)\n b = $T[] parameter(1)\n c = $T[] parameter(2)\n d = $T[] parameter(3)\n e = $T[] multiply(a, c)\n m = $T[] multiply(c, b)\n s = $T[] add(m, d)\n ROOT t = ($T[], $T[]) tuple(e, s) }\nENTRY e { x = $T[3,40] parameter(0)\n y = $T[3,40] parameter(1)\n one = $T[] constant(1)\n z = $T[] constant(0)\n w = ($T[3,40], $T[3,40]) reduce-window(x, y, one, z), window={size=1x40 pad=0_0x39_0}, to_apply=f\n ROOT r = $T[3,40] get-tuple-element(w), index=1 }"},
      {"cumulative-recurrence-to-the-end", "s32 f32 bf16", "f { a = $T[] parameter(0)\n b = $T[] parameter(1)\n c = $T[] parameter(2)\n d = $T[] parameter(3)\n e = $T[] multiply(a, c)\n m = $T[] multiply(c, b)\n s = $T[] add(m, d)\n ROOT t = ($T[], $T[]) tuple(e, s) }\nENTRY e { x = $T[9,40] parameter(0)\n one = $T[] constant(1)\n y = $T[9,40] broadcast(one), dimensions={}\n z = $T[] constant(0)\n w = ($T[9,40], $T[9,40]) reduce-window(x, y, one, z), window={size=9x1 pad=0_8x0_0}, to_apply=f\n ROOT r = $T[9,40] get-tuple-element(w), index=1 }"},
      {"scan-of-slices", "s32 f32 bf16", "ENTRY e { x = $T[6,5] parameter(0)\n z = $T[] constant(0)\n l = $T[3,5] slice(x), slice={[0:5:2], [0:5:1]}\n r = $T[3,5] slice(x), slice={[1:6:2], [0:5:1]}\n h = $T[3,5] add(l, r)\n hl = $T[1,5] slice(h), slice={[0:2:2], [0:5:1]}\n hr = $T[1,5] slice(h), slice={[1:3:2], [0:5:1]}\n q = $T[1,5] add(hl, hr)\n h0 = $T[1,5] slice(h), slice={[0:1], [0:5]}\n h2 = $T[1,5] slice(h), slice={[2:3:2], [0:5:1]}\n qe = $T[1,5] add(q, h2)\n ce = $T[2,5] concatenate(h0, qe), dimensions={0}\n pe = $T[3,5] pad(ce, z), padding=0_0_1x0_0_0\n po = $T[3,5] pad(q, z), padding=1_1_1x0_0_0\n o = $T[3,5] add(pe, po)\n ob = $T[2,5] slice(o), slice={[0:2], [0:5]}\n x2 = $T[2,5] slice(x), slice={[2:6:2], [0:5:1]}\n e2 = $T[2,5] add(ob, x2)\n x0 = $T[1,5] slice(x), slice={[0:1], [0:5]}\n c = $T[3,5] concatenate(x0, e2), dimensions={0}\n p = $T[6,5] pad(c, z), padding=0_1_1x0_0_0\n s = $T[6,5] pad(o, z), padding=1_0_1x0_0_0\n ROOT a = $T[6,5] add(p, s) }"},
      {"scan-of-slices-maximum", "s32 f32", "ENTRY e { x = $T[6,5] parameter(0)\n z = $T[] constant(0)\n l = $T[3,5] slice(x), slice={[0:5:2], [0:5:1]}\n r = $T[3,5] slice(x), slice={[1:6:2], [0:5:1]}\n h = $T[3,5] maximum(l, r)\n hl = $T[1,5] slice(h), slice={[0:2:2], [0:5:1]}\n hr = $T[1,5] slice(h), slice={[1:3:2], [0:5:1]}\n q = $T[1,5] maximum(hl, hr)\n h0 = $T[1,5] slice(h), slice={[0:1], [0:5]}\n h2 = $T[1,5] slice(h), slice={[2:3:2], [0:5:1]}\n qe = $T[1,5] maximum(q, h2)\n ce = $T[2,5] concatenate(h0, qe), dimensions={0}\n pe = $T[3,5] pad(ce, z), padding=0_0_1x0_0_0\n po = $T[3,5] pad(q, z), padding=1_1_1x0_0_0\n o = $T[3,5] add(pe, po)\n ob = $T[2,5] slice(o), slice={[0:2], [0:5]}\n x2 = $T[2,5] slice(x), slice={[2:6:2], [0:5:1]}\n e2 = $T[2,5] maximum(ob, x2)\n x0 = $T[1,5] slice(x), slice={[0:1], [0:5]}\n c = $T[3,5] concatenate(x0, e2), dimensions={0}\n p = $T[6,5] pad(c, z), padding=0_1_1x0_0_0\n s = $T[6,5] pad(o, z), padding=1_0_1x0_0_0\n ROOT a = $T[6,5] add(p, s) }"},
      {"reduce-window-two", "s32 f32", "f { a = $T[] parameter(0)\n b = s32[] parameter(1)\n c = $T[] parameter(2)\n d = s32[] parameter(3)\n s = $T[] add(a, c)\n m = s32[] maximum(b, d)\n ROOT t = ($T[], s32[]) tuple(s, m) }\nENTRY e { x = $T[7] parameter(0)\n y = s32[7] parameter(1)\n z = $T[] constant(0)\n l = s32[] constant(-5)\n ROOT r = ($T[5], s32[5]) reduce-window(x, y, z, l), window={size=3}, to_apply=f }"},
      {"select-and-scatter", few, "$GE$ADDENTRY e { x = $T[4,6] parameter(0)\n s = $T[2,3] parameter(1)\n z = $T[] constant(0)\n ROOT r = $T[4,6] select-and-scatter(x, s, z), window={size=2x2 stride=2x2}, select=ge, scatter=add }"},
      {"select-and-scatter-overlap", few, "$GE$ADDENTRY e { x = $T[5,5] parameter(0)\n s = $T[3,3] parameter(1)\n z = $T[] constant(1)\n ROOT r = $T[5,5] select-and-scatter(x, s, z), window={size=3x3 stride=2x2 pad=1_1x1_1}, select=ge, scatter=add }"},
      {"sort-ascending", numbers, "$LTENTRY e { x = $T[3,17] parameter(0)\n ROOT r = $T[3,17] sort(x), dimensions={1}, to_apply=lt }"},
      {"sort-outer", few, "$LTENTRY e { x = $T[17,3] parameter(0)\n ROOT r = $T[17,3] sort(x), dimensions={0}, is_stable=true, to_apply=lt }"},
      {"sort-pairs-stable", few, "f { a = $T[] parameter(0)\n b = $T[] parameter(1)\n c = s32[] parameter(2)\n d = s32[] parameter(3)\n ROOT r = pred[] compare(a, b), direction=GT }\nENTRY e { x = $T[30] parameter(0)\n k = s32[30] iota(), iota_dimension=0\n ROOT r = ($T[30], s32[30]) sort(x, k), dimensions={0}, is_stable=true, to_apply=f }"},
      {"sort-total-order", "f16 bf16 f32 f64", "f { a = $T[] parameter(0)\n b = $T[] parameter(1)\n ROOT r = pred[] compare(a, b), direction=LT, type=TOTALORDER }\nENTRY e { x = $T[14] parameter(0)\n ROOT r = $T[14] sort(x), dimensions={0}, is_stable=true, to_apply=f }", 0, 0, {{0, floats}}},
      {"topk", "f32 bf16 s32", "ENTRY e { x = $T[3,12] parameter(0)\n ROOT r = ($T[3,4], s32[3,4]) topk(x), k=4, largest=true }"},
      {"topk-nan", "f32", "ENTRY e { x = $T[14] parameter(0)\n ROOT r = ($T[9], s32[9]) topk(x), k=9, largest=true }", 0, 0, {{0, floats}}},
      {"topk-smallest", "f32 s32", "ENTRY e { x = $T[3,12] parameter(0)\n ROOT r = ($T[3,4], s32[3,4]) topk(x), k=4, largest=false }"},
      {"topk-call", "f32 bf16", "f { a = $T[] parameter(0)\n b = $T[] parameter(1)\n c = s32[] parameter(2)\n d = s32[] parameter(3)\n ROOT r = pred[] compare(a, b), direction=GT }\nENTRY e { x = $T[3,12] parameter(0)\n ROOT r = ($T[3,4], s32[3,4]) custom-call(x), custom_call_target=\"TopK\", called_computations={f} }"},
      {"map", few, "f { a = $T[] parameter(0)\n b = $T[] parameter(1)\n c = $T[] multiply(a, b)\n ROOT d = $T[] subtract(c, b) }\nENTRY e { x = $T[4,5] parameter(0)\n y = $T[4,5] parameter(1)\n ROOT r = $T[4,5] map(x, y), dimensions={0,1}, to_apply=f }"},
      {"scan", "s32 f32", "f { x = $T[4] parameter(0)\n c = $T[4] parameter(1)\n s = $T[4] add(x, c)\n ROOT t = ($T[4], $T[4]) tuple(s, s) }\nENTRY e { x = $T[6,4] parameter(0)\n i = $T[4] parameter(1)\n ROOT r = ($T[6,4], $T[4]) scan(x, i), dimensions={0}, num_carries=1, to_apply=f }"},
      {"scan-reverse", "s32 f32", "f { x = $T[4] parameter(0)\n c = $T[4] parameter(1)\n s = $T[4] add(x, c)\n ROOT t = ($T[4], $T[4]) tuple(s, s) }\nENTRY e { x = $T[6,4] parameter(0)\n i = $T[4] parameter(1)\n ROOT r = ($T[6,4], $T[4]) scan(x, i), dimensions={0}, is_reverse=true, num_carries=1, to_apply=f }"},
  };
}

}  // namespace hlorun::conformance
