// dot, ragged-dot, convolution.
#include "tests/conformance/template_cases.h"

// Tables, one case a row.
// clang-format off

namespace hlorun::conformance {

namespace {

Template Convolved(const std::string& name, const std::string& types, const std::string& input, const std::string& kernel,
                   const std::string& output, const std::string& attributes) {
  return {"convolution-" + name, types,
          "ENTRY e { x = $T[" + input + "] parameter(0)\n k = $T[" + kernel + "] parameter(1)\n ROOT r = $T[" + output +
              "] convolution(x, k), " + attributes + " }"};
}

}  // namespace

std::vector<Template> ProductTemplates() {
  const std::string types = "s8 s32 s64 u32 f16 bf16 f32 f64 c64 c128";
  const std::string floats = "f16 bf16 f32 f64 c64 s32";
  const std::string nhwc = "dim_labels=b01f_01io->b01f";
  std::vector<Template> templates = {
      {"dot-matrix", types, "ENTRY e { a = $T[5,7] parameter(0)\n b = $T[7,6] parameter(1)\n ROOT r = $T[5,6] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0} }"},
      {"dot-tall", floats, "ENTRY e { a = $T[33,4] parameter(0)\n b = $T[4,2] parameter(1)\n ROOT r = $T[33,2] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0} }"},
      {"dot-rows", floats, "ENTRY e { a = $T[26,10] parameter(0)\n b = $T[10,18] parameter(1)\n ROOT r = $T[26,18] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0} }"},
      {"dot-rows-columns", floats, "ENTRY e { a = $T[26,10] parameter(0)\n b = $T[18,10] parameter(1)\n ROOT r = $T[26,18] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={1} }"},
      {"dot-transposed", floats, "ENTRY e { a = $T[7,5] parameter(0)\n b = $T[6,7] parameter(1)\n ROOT r = $T[5,6] dot(a, b), lhs_contracting_dims={0}, rhs_contracting_dims={1} }"},
      {"dot-vectors", types, "ENTRY e { a = $T[9] parameter(0)\n b = $T[9] parameter(1)\n ROOT r = $T[] dot(a, b), lhs_contracting_dims={0}, rhs_contracting_dims={0} }"},
      {"dot-matrix-vector", floats, "ENTRY e { a = $T[4,9] parameter(0)\n b = $T[9] parameter(1)\n ROOT r = $T[4] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0} }"},
      {"dot-outer", floats, "ENTRY e { a = $T[4] parameter(0)\n b = $T[3] parameter(1)\n ROOT r = $T[4,3] dot(a, b), lhs_contracting_dims={}, rhs_contracting_dims={} }"},
      {"dot-batch", floats, "ENTRY e { a = $T[3,4,5] parameter(0)\n b = $T[3,5,6] parameter(1)\n ROOT r = $T[3,4,6] dot(a, b), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_contracting_dims={1} }"},
      {"dot-batch-odd", floats, "ENTRY e { a = $T[4,2,5,3] parameter(0)\n b = $T[5,3,6,2] parameter(1)\n ROOT r = $T[2,3,4,6] dot(a, b), lhs_batch_dims={1,3}, rhs_batch_dims={3,1}, lhs_contracting_dims={2}, rhs_contracting_dims={0} }"},
      {"dot-two-contracting", floats, "ENTRY e { a = $T[4,2,5] parameter(0)\n b = $T[5,2,3] parameter(1)\n ROOT r = $T[4,3] dot(a, b), lhs_contracting_dims={1,2}, rhs_contracting_dims={1,0} }"},
      {"dot-empty", "f32 s32", "ENTRY e { a = $T[4,0] parameter(0)\n b = $T[0,3] parameter(1)\n ROOT r = $T[4,3] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0} }"},
      {"dot-widened", "s8 bf16 f16", "ENTRY e { a = $T[4,6] parameter(0)\n b = $T[6,3] parameter(1)\n ROOT r = f32[4,3] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0} }"},
      {"dot-s8-s32", "s8 u8", "ENTRY e { a = $T[4,6] parameter(0)\n b = $T[6,3] parameter(1)\n ROOT r = s32[4,3] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0} }", 0, 0, {{0, {100, -100, 90}}, {1, {120, 100, 99, -7}}}},
      {"dot-words", "s8 u8", "ENTRY e { a = $T[26,44] parameter(0)\n b = $T[44,35] parameter(1)\n ROOT r = s32[26,35] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0} }", 0, 0, {{0, {127, -128, 90, 3, -77}}, {1, {-128, 127, 99, -7, 50, 1, -90}}}},
      {"dot-words-columns", "s8 u8", "ENTRY e { a = $T[3,17,20] parameter(0)\n b = $T[3,33,20] parameter(1)\n ROOT r = s32[3,17,33] dot(a, b), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_contracting_dims={2} }", 0, 0, {{0, {-128, 127, -90}}, {1, {127, -128, 99, -7}}}},
      {"dot-words-odd", "s8 bf16", "ENTRY e { a = $T[15,21] parameter(0)\n b = $T[21,18] parameter(1)\n ROOT r = $T[15,18] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0} }"},
      {"dot-weights-by-rows", "f32 f64 bf16 f16 s32", "ENTRY e { a = $T[19,60] parameter(0)\n b = $T[85,60] parameter(1)\n ROOT r = $T[19,85] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={1} }"},
      {"dot-words-by-rows", "s8 u8", "ENTRY e { a = $T[19,60] parameter(0)\n b = $T[85,60] parameter(1)\n ROOT r = s32[19,85] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={1} }", 0, 0, {{0, {127, -128, 90, 3, -77}}, {1, {-128, 127, 99, -7, 50, 1, -90}}}},
      {"dot-tiles", "bf16 s8", "ENTRY e { a = $T[2,37,300] parameter(0)\n b = $T[2,300,49] parameter(1)\n ROOT r = $T[2,37,49] dot(a, b), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_contracting_dims={1} }"},
      {"dot-tiles-columns", "bf16", "ENTRY e { a = $T[71,40] parameter(0)\n b = $T[71,50] parameter(1)\n ROOT r = f32[40,50] dot(a, b), lhs_contracting_dims={0}, rhs_contracting_dims={0} }"},
      {"dot-tiles-s8", "s8", "ENTRY e { a = $T[530,44] parameter(0)\n b = $T[48,530] parameter(1)\n ROOT r = s32[44,48] dot(a, b), lhs_contracting_dims={0}, rhs_contracting_dims={1} }", 0, 0, {{0, {127, -128, 90, 3, -77}}, {1, {-128, 127, 99, -7, 50, 1, -90}}}},
      {"dot-heads", "f32 f64 bf16 f16 s32 s8", "ENTRY e { a = $T[14,9] parameter(0)\n b = $T[9,48] parameter(1)\n c = $T[3,16] parameter(2)\n d = $T[14,48] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n s = $T[2,7,3,16] reshape(d)\n w = $T[2,7,3,16] broadcast(c), dimensions={2,3}\n p = $T[2,7,3,16] add(s, w)\n ROOT r = $T[2,3,7,16] transpose(p), dimensions={0,2,1,3} }"},
      {"dot-heads-back", "f32 f64 bf16 s32", "ENTRY e { a = $T[6,7,9] parameter(0)\n b = $T[6,9,32] parameter(1)\n d = $T[6,7,32] dot(a, b), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_contracting_dims={1}\n s = $T[2,3,7,32] reshape(d)\n ROOT r = $T[2,7,3,32] transpose(s), dimensions={0,2,1,3} }"},
      {"dot-complex", "c64 c128", "ENTRY e { a = $T[3,40,33] parameter(0)\n b = $T[3,40,35] parameter(1)\n ROOT r = $T[3,33,35] dot(a, b), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={1}, rhs_contracting_dims={1} }"},
      {"dot-long", "bf16 f16 f32", "ENTRY e { a = $T[2,3000] parameter(0)\n b = $T[3000,2] parameter(1)\n ROOT r = $T[2,2] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0} }", 0, 0, {{0, {1, 1, 0}}, {1, {1}}}},
      {"dot-wrapping", "s32 u32 s8", "ENTRY e { a = $T[2,3] parameter(0)\n b = $T[3,2] parameter(1)\n ROOT r = $T[2,2] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0} }", 0, 0, {{0, {100, 99}}, {1, {101, 98, 97}}}},
      {"ragged-dot", "f32 bf16", "ENTRY e { a = $T[9,4] parameter(0)\n b = $T[3,4,5] parameter(1)\n g = s32[3] parameter(2)\n ROOT r = $T[9,5] ragged-dot(a, b, g), lhs_contracting_dims={1}, rhs_contracting_dims={1}, lhs_ragged_dims={0}, rhs_group_dims={0} }", 0, 0, {{2, {2, 0, 6}}}},
      {"ragged-dot-contracting", "f32", "ENTRY e { a = $T[4,9] parameter(0)\n b = $T[9,5] parameter(1)\n g = s32[3] parameter(2)\n ROOT r = $T[3,4,5] ragged-dot(a, b, g), lhs_contracting_dims={1}, rhs_contracting_dims={0}, lhs_ragged_dims={1}, rhs_group_dims={} }", 0, 0, {{2, {3, 1, 5}}}},
      Convolved("1d", floats, "2,9,3", "3,3,4", "2,7,4", "window={size=3}, dim_labels=b0f_0io->b0f"),
      Convolved("2d", floats, "2,6,7,3", "3,2,3,4", "2,4,6,4", "window={size=3x2}, " + nhwc),
      Convolved("3d", "f32 f64", "1,4,5,6,2", "2,2,2,2,3", "1,3,4,5,3", "window={size=2x2x2}, dim_labels=b012f_012io->b012f"),
      Convolved("nchw", "f32 bf16", "2,3,6,7", "4,3,3,3", "2,4,6,7", "window={size=3x3 pad=1_1x1_1}, dim_labels=bf01_oi01->bf01"),
      Convolved("mixed-labels", "f32", "6,2,3,7", "3,2,4,3", "7,4,4,2", "window={size=3x2 pad=0_0x1_0}, dim_labels=0bf1_i1o0->1f0b"),
      Convolved("strided-padded", floats, "1,7,8,2", "3,3,2,3", "1,4,4,3", "window={size=3x3 stride=2x2 pad=1_1x0_1}, " + nhwc),
      Convolved("base-dilated", "f32 f64 bf16", "1,4,5,2", "3,3,2,3", "1,7,9,3", "window={size=3x3 pad=1_1x1_1 lhs_dilate=2x2}, " + nhwc),
      Convolved("window-dilated", "f32 f64 bf16", "1,9,9,2", "3,3,2,3", "1,5,3,3", "window={size=3x3 rhs_dilate=2x3}, " + nhwc),
      Convolved("reversed", "f32 f64", "1,6,6,2", "3,3,2,3", "1,4,4,3", "window={size=3x3 rhs_reversal=1x1}, " + nhwc),
      Convolved("all-dilations", "f32", "2,5,6,2", "2,3,2,3", "2,5,6,3", "window={size=2x3 stride=2x2 pad=2_1x2_3 lhs_dilate=2x2 rhs_dilate=3x2 rhs_reversal=0x1}, " + nhwc),
      Convolved("groups", "f32 f64 bf16", "2,5,5,6", "3,3,2,9", "2,3,3,9", "window={size=3x3}, " + nhwc + ", feature_group_count=3"),
      Convolved("groups-of-a-few", "f32 bf16", "2,6,6,32", "3,3,4,32", "2,6,6,32", "window={size=3x3 pad=1_1x1_1}, " + nhwc + ", feature_group_count=8"),
      Convolved("groups-of-vectors", "f32 f64 bf16", "1,5,6,32", "3,3,16,64", "1,3,3,64", "window={size=3x3 stride=2x2 pad=1_1x1_0}, " + nhwc + ", feature_group_count=2"),
      Convolved("groups-strided", "f32 f64 bf16 f16 s32", "2,9,11,24", "3,3,8,36", "2,5,6,36", "window={size=3x3 stride=2x2 pad=1_1x1_1}, " + nhwc + ", feature_group_count=3"),
      Convolved("groups-dilated", "f32 bf16 s32", "1,12,11,33", "3,3,11,39", "1,12,8,39", "window={size=3x3 pad=2_2x1_2 rhs_dilate=2x3}, " + nhwc + ", feature_group_count=3"),
      Convolved("groups-1d", "f32 bf16", "2,31,32", "5,16,48", "2,16,48", "window={size=5 stride=2 pad=2_2}, dim_labels=b0f_0io->b0f, feature_group_count=2"),
      Convolved("groups-nchw", "f32", "2,48,6,7", "60,16,3,3", "2,60,6,7", "window={size=3x3 pad=1_1x1_1}, dim_labels=bf01_oi01->bf01, feature_group_count=3"),
      Convolved("transposed", "f32 bf16", "2,4,5,3", "4,4,3,5", "2,8,10,5", "window={size=4x4 pad=2_2x2_2 lhs_dilate=2x2}, " + nhwc),
      Convolved("transposed-groups", "f32", "1,3,4,32", "3,3,8,32", "1,6,8,32", "window={size=3x3 pad=1_2x2_1 lhs_dilate=2x2}, " + nhwc + ", feature_group_count=4"),
      Convolved("depthwise", "f32 bf16", "2,5,5,4", "3,3,1,4", "2,5,5,4", "window={size=3x3 pad=1_1x1_1}, " + nhwc + ", feature_group_count=4"),
      Convolved("depthwise-rows", "f32 f64 bf16 f16 s32", "2,9,37,48", "3,3,1,48", "2,9,37,48", "window={size=3x3 pad=1_1x1_1}, " + nhwc + ", feature_group_count=48"),
      Convolved("depthwise-strided", "f32 bf16", "1,13,35,24", "5,5,1,24", "1,7,18,24", "window={size=5x5 stride=2x2 pad=2_2x2_2}, " + nhwc + ", feature_group_count=24"),
      Convolved("depthwise-dilated", "f32", "1,7,19,20", "3,4,1,20", "1,3,22,20", "window={size=3x4 pad=0_0x5_7 rhs_dilate=2x3}, " + nhwc + ", feature_group_count=20"),
      Convolved("depthwise-multiplier", "f32", "2,5,5,4", "3,3,1,8", "2,5,5,8", "window={size=3x3 pad=1_1x1_1}, " + nhwc + ", feature_group_count=4"),
      Convolved("few-features", "f32 f64 bf16 f16 s32", "1,66,63,32", "3,3,32,3", "1,66,63,3", "window={size=3x3 pad=1_1x1_1}, " + nhwc),
      Convolved("batch-groups", "f32", "6,5,5,2", "3,3,2,9", "2,3,3,9", "window={size=3x3}, " + nhwc + ", batch_group_count=3"),
      Convolved("kernel-gradient", "f32", "2,6,6,3", "2,4,4,5", "3,3,3,5", "window={size=4x4}, dim_labels=f01b_i01o->01bf"),
      Convolved("grouped-kernel-gradient", "f32 f64 bf16 s32", "2,9,10,12", "2,9,10,96", "3,3,4,96", "window={size=9x10 pad=1_1x1_1}, dim_labels=f01b_i01o->01bf, batch_group_count=3"),
      Convolved("grouped-kernel-gradient-strided", "f32 bf16", "3,13,12,32", "3,7,6,48", "3,3,16,48", "window={size=7x6 pad=1_1x1_0 rhs_dilate=2x2}, dim_labels=f01b_i01o->01bf, batch_group_count=2"),
      Convolved("depthwise-kernel-gradient", "f32 f64 bf16 f16 s32", "3,9,10,20", "3,9,10,20", "3,3,1,20", "window={size=9x10 pad=1_1x1_1}, dim_labels=f01b_i01o->01bf, batch_group_count=20"),
      Convolved("depthwise-kernel-gradient-strided", "f32 bf16", "2,13,13,35", "2,7,7,35", "5,5,1,35", "window={size=7x7 pad=2_2x2_2 rhs_dilate=2x2}, dim_labels=f01b_i01o->01bf, batch_group_count=35"),
      Convolved("depthwise-kernel-gradient-nchw", "f32", "4,16,3,3", "4,16,3,3", "16,1,7,7", "window={size=3x3 pad=3_3x3_3}, dim_labels=fb01_io01->fb01, batch_group_count=16"),
      Convolved("one-by-one", floats, "2,5,5,4", "1,1,4,6", "2,5,5,6", "window={size=1x1}, " + nhwc),
  };
  Template negative = Convolved("negative-padding", "f32", "1,9,9,2", "3,3,2,3", "1,5,6,3", "window={size=3x3 pad=-1_-1x-2_1}, " + nhwc);
  negative.oracle_fault = "a dimension padded by -2 before and 1 after is cropped wrongly";
  templates.push_back(std::move(negative));
  return templates;
}

}  // namespace hlorun::conformance
