// broadcast, transpose, reshape, slice, pad, concatenate, reverse, iota, dynamic slices.
#include "tests/conformance/template_cases.h"

// Tables, one case a row.
// clang-format off

namespace hlorun::conformance {

std::vector<Template> MovementTemplates() {
  const std::string all = "pred s2 s4 s8 s16 s32 s64 u2 u4 u8 u16 u32 u64 f4e2m1fn f8e8m0fnu f8e5m2 f8e4m3fn f8e4m3 f8e3m4 f8e4m3b11fnuz f8e5m2fnuz f8e4m3fnuz f16 bf16 f32 f64 c64 c128";
  const std::string few = "pred s2 s4 s8 s16 s32 s64 u4 u8 u16 u32 u64 f8e5m2 f8e4m3fn f16 bf16 f32 f64 c64 c128";
  return {
      {"broadcast-scalar", all, "ENTRY e { x = $T[] parameter(0)\n ROOT r = $T[3,4] broadcast(x), dimensions={} }"},
      {"broadcast-inner", few, "ENTRY e { x = $T[4] parameter(0)\n ROOT r = $T[3,4] broadcast(x), dimensions={1} }"},
      {"broadcast-outer", few, "ENTRY e { x = $T[3] parameter(0)\n ROOT r = $T[3,4,5] broadcast(x), dimensions={0} }"},
      {"broadcast-two", few, "ENTRY e { x = $T[3,5] parameter(0)\n ROOT r = $T[3,4,5] broadcast(x), dimensions={0,2} }"},
      {"broadcast-empty", few, "ENTRY e { x = $T[0] parameter(0)\n ROOT r = $T[0,3] broadcast(x), dimensions={0} }"},
      {"transpose-2d", all, "ENTRY e { x = $T[5,7] parameter(0)\n ROOT r = $T[7,5] transpose(x), dimensions={1,0} }"},
      {"transpose-4d", few, "ENTRY e { x = $T[2,3,4,5] parameter(0)\n ROOT r = $T[5,3,2,4] transpose(x), dimensions={3,1,0,2} }"},
      {"transpose-squares", few, "ENTRY e { x = $T[2,37,70] parameter(0)\n ROOT r = $T[2,70,37] transpose(x), dimensions={0,2,1} }"},
      {"reshape", few, "ENTRY e { x = $T[6,4] parameter(0)\n ROOT r = $T[2,12] reshape(x) }"},
      {"transpose-weights", few, "ENTRY e { x = $T[3,3,40,37] parameter(0)\n ROOT r = $T[37,40,3,3] transpose(x), dimensions={3,2,0,1} }"},
      {"reshape-after-transpose", few, "ENTRY e { x = $T[6,4] parameter(0)\n t = $T[4,6] transpose(x), dimensions={1,0}\n ROOT r = $T[24] reshape(t) }"},
      {"slice", all, "ENTRY e { x = $T[10,7] parameter(0)\n ROOT r = $T[3,2] slice(x), slice={[1:9:3],[2:5:2]} }"},
      {"slice-empty", few, "ENTRY e { x = $T[10] parameter(0)\n ROOT r = $T[0] slice(x), slice={[4:4]} }"},
      {"reverse", all, "ENTRY e { x = $T[4,3,5] parameter(0)\n ROOT r = $T[4,3,5] reverse(x), dimensions={0,2} }"},
      {"pad", all, "ENTRY e { x = $T[3,4] parameter(0)\n v = $T[] parameter(1)\n ROOT r = $T[6,7] pad(x, v), padding=1_2x3_0 }"},
      {"pad-negative", few, "ENTRY e { x = $T[6,5] parameter(0)\n v = $T[] parameter(1)\n ROOT r = $T[4,4] pad(x, v), padding=-1_-1x1_-2 }"},
      {"pad-interior", few, "ENTRY e { x = $T[3,4] parameter(0)\n v = $T[] parameter(1)\n ROOT r = $T[9,8] pad(x, v), padding=1_1_2x0_1_1 }"},
      {"pad-interior-negative", few, "ENTRY e { x = $T[4] parameter(0)\n v = $T[] parameter(1)\n ROOT r = $T[6] pad(x, v), padding=-2_-2_2 }"},
      {"pad-all-gone", few, "ENTRY e { x = $T[3] parameter(0)\n v = $T[] parameter(1)\n ROOT r = $T[2] pad(x, v), padding=-4_3 }"},
      {"concatenate", all, "ENTRY e { x = $T[2,3] parameter(0)\n y = $T[2,1] parameter(1)\n z = $T[2,0] parameter(2)\n ROOT r = $T[2,4] concatenate(x, y, z), dimensions={1} }"},
      {"iota", "s8 s16 s32 s64 u8 u16 u32 u64 f16 bf16 f32 f64 c64", "ENTRY e { x = $T[] parameter(0)\n i = $T[3,300] iota(), iota_dimension=1\n ROOT t = ($T[3,300], $T[]) tuple(i, x) }"},
      {"iota-outer", "s8 s32 f16 bf16 f32 f64 c64", "ENTRY e { x = $T[] parameter(0)\n i = $T[5,3] iota(), iota_dimension=0\n ROOT t = ($T[5,3], $T[]) tuple(i, x) }"},
      {"dynamic-slice-inside", few, "ENTRY e { x = $T[5,6] parameter(0)\n i = s32[] parameter(1)\n j = s32[] parameter(2)\n ROOT r = $T[2,3] dynamic-slice(x, i, j), dynamic_slice_sizes={2,3} }", 0, 0, {{1, {2}}, {2, {1}}}},
      {"dynamic-slice-clamped", few, "ENTRY e { x = $T[5,6] parameter(0)\n i = s32[] parameter(1)\n j = s32[] parameter(2)\n ROOT r = $T[2,3] dynamic-slice(x, i, j), dynamic_slice_sizes={2,3} }", 0, 0, {{1, {-5}}, {2, {100}}}},
      {"dynamic-slice-index", "s8 s16 s64 u8 u16 u32 u64", "ENTRY e { x = f32[9] parameter(0)\n i = $T[] parameter(1)\n ROOT r = f32[3] dynamic-slice(x, i), dynamic_slice_sizes={3} }", 0, 0, {{1, {4}}}},
      {"dynamic-slice-far-index", "s64 u32 u64", "ENTRY e { x = f32[9] parameter(0)\n i = $T[] parameter(1)\n ROOT r = f32[3] dynamic-slice(x, i), dynamic_slice_sizes={3} }", 0, 0, {{1, {4294967294.0}}}},
      {"dynamic-slice-huge-index", "u64", "ENTRY e { x = f32[9] parameter(0)\n i = $T[] parameter(1)\n ROOT r = f32[3] dynamic-slice(x, i), dynamic_slice_sizes={3} }", 0, 0, {{1, {18446744073709500000.0}}}},
      {"dynamic-update-slice", all, "ENTRY e { x = $T[5,6] parameter(0)\n u = $T[2,3] parameter(1)\n i = s32[] parameter(2)\n j = s32[] parameter(3)\n ROOT r = $T[5,6] dynamic-update-slice(x, u, i, j) }", 0, 0, {{2, {1}}, {3, {2}}}},
      {"dynamic-update-slice-clamped", few, "ENTRY e { x = $T[5,6] parameter(0)\n u = $T[2,3] parameter(1)\n i = s32[] parameter(2)\n j = s32[] parameter(3)\n ROOT r = $T[5,6] dynamic-update-slice(x, u, i, j) }", 0, 0, {{2, {9}}, {3, {-1}}}},
  };
}

}  // namespace hlorun::conformance
