// gather and scatter.
#include "tests/conformance/template_cases.h"

// Tables, one case a row.
// clang-format off

namespace hlorun::conformance {

std::vector<Template> IndexingTemplates() {
  const std::string types = "pred s4 s8 s16 s32 s64 u8 u32 u64 f8e5m2 f16 bf16 f32 f64 c64";
  const std::string few = "s8 s32 u64 f16 bf16 f32 f64";
  const std::string scatter_rows = "update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=";
  const std::string replace = "f { a = $T[] parameter(0)\n ROOT b = $T[] parameter(1) }\n";
  return {
      {"gather-rows", types, "ENTRY e { x = $T[5,4] parameter(0)\n i = s32[3] parameter(1)\n ROOT r = $T[3,4] gather(x, i), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1,4} }", 0, 0, {{1, {4, 0, 2}}}},
      {"gather-clamped", few, "ENTRY e { x = $T[5,4] parameter(0)\n i = s32[4] parameter(1)\n ROOT r = $T[4,4] gather(x, i), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1,4} }", 0, 0, {{1, {-1, 5, 1000, -2147483648.0}}}},
      {"gather-boxes", few, "ENTRY e { x = $T[6,7] parameter(0)\n i = s32[4,2] parameter(1)\n ROOT r = $T[4,2,3] gather(x, i), offset_dims={1,2}, collapsed_slice_dims={}, start_index_map={0,1}, index_vector_dim=1, slice_sizes={2,3} }", 0, 0, {{1, {0, 0, 4, 4, 5, 6, -1, 2}}}},
      {"gather-map-swapped", few, "ENTRY e { x = $T[6,7] parameter(0)\n i = s32[2,4] parameter(1)\n ROOT r = $T[2,4,3] gather(x, i), offset_dims={0,2}, collapsed_slice_dims={}, start_index_map={1,0}, index_vector_dim=0, slice_sizes={2,3} }", 0, 0, {{1, {0, 3, 1, 6, 2, 4, 5, 0}}}},
      {"gather-batching", few, "ENTRY e { x = $T[3,6,4] parameter(0)\n i = s32[3,2,1] parameter(1)\n ROOT r = $T[3,2,4] gather(x, i), offset_dims={2}, collapsed_slice_dims={1}, start_index_map={1}, operand_batching_dims={0}, start_indices_batching_dims={0}, index_vector_dim=2, slice_sizes={1,1,4} }", 0, 0, {{1, {0, 5, 3, 2, 7, 1}}}},
      {"gather-index", "s8 s16 s64 u8 u16 u32 u64", "ENTRY e { x = f32[9] parameter(0)\n i = $T[4,1] parameter(1)\n ROOT r = f32[4] gather(x, i), offset_dims={}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1} }", 0, 0, {{1, {3, 100, 0, 8}}}},
      {"scatter-add", types, "$ADDENTRY e { x = $T[5,4] parameter(0)\n i = s32[3,1] parameter(1)\n u = $T[3,4] parameter(2)\n ROOT r = $T[5,4] scatter(x, i, u), " + scatter_rows + "add }", 0, 0, {{1, {4, 0, 4}}}},
      {"scatter-outside", few, "$ADDENTRY e { x = $T[5,4] parameter(0)\n i = s32[4,1] parameter(1)\n u = $T[4,4] parameter(2)\n ROOT r = $T[5,4] scatter(x, i, u), " + scatter_rows + "add }", 0, 0, {{1, {-1, 5, 2, 2147483647}}}},
      {"scatter-box-outside", few, "$ADDENTRY e { x = $T[6,7] parameter(0)\n i = s32[4,2] parameter(1)\n u = $T[4,2,3] parameter(2)\n ROOT r = $T[6,7] scatter(x, i, u), update_window_dims={1,2}, inserted_window_dims={}, scatter_dims_to_operand_dims={0,1}, index_vector_dim=1, to_apply=add }", 0, 0, {{1, {0, 0, 5, 0, 4, 5, 4, 4}}}},
      {"scatter-replace", types, replace + "ENTRY e { x = $T[5,4] parameter(0)\n i = s32[3,1] parameter(1)\n u = $T[3,4] parameter(2)\n ROOT r = $T[5,4] scatter(x, i, u), " + scatter_rows + "f }", 0, 0, {{1, {4, 0, 2}}}},
      {"scatter-maximum", few, "$MAXENTRY e { x = $T[5,4] parameter(0)\n i = s32[3,1] parameter(1)\n u = $T[3,4] parameter(2)\n ROOT r = $T[5,4] scatter(x, i, u), " + scatter_rows + "max }", 0, 0, {{1, {1, 1, 1}}}},
      {"scatter-multiply", few, "$MULENTRY e { x = $T[5,4] parameter(0)\n i = s32[3,1] parameter(1)\n u = $T[3,4] parameter(2)\n ROOT r = $T[5,4] scatter(x, i, u), " + scatter_rows + "mul }", 0, 0, {{1, {3, 1, 3}}}},
      {"scatter-many", "bf16 f16 f32", "$ADDENTRY e { x = $T[2] parameter(0)\n i = s32[600,1] parameter(1)\n u = $T[600] parameter(2)\n ROOT r = $T[2] scatter(x, i, u), update_window_dims={}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=add }", 0, 0, {{0, {0}}, {1, {0}}, {2, {1}}}},
      // Enough updates for each place that they are cut into parts.
      // Windows that lie far apart in memory: pixels whose channels come first.
      {"scatter-pixels", "bf16 f32 s32 c64", "$ADDENTRY e { x = $T[2,7,9,11] parameter(0)\n i = s32[13,10,2] parameter(1)\n u = $T[2,7,13,10] parameter(2)\n ROOT r = $T[2,7,9,11] scatter(x, i, u), update_window_dims={0,1}, inserted_window_dims={2,3}, scatter_dims_to_operand_dims={2,3}, index_vector_dim=2, to_apply=add }"},
      {"scatter-pixels-replace", "f32 f64", replace + "ENTRY e { x = $T[2,3,9,11] parameter(0)\n i = s32[13,10,2] parameter(1)\n u = $T[2,3,13,10] parameter(2)\n ROOT r = $T[2,3,9,11] scatter(x, i, u), update_window_dims={0,1}, inserted_window_dims={2,3}, scatter_dims_to_operand_dims={2,3}, index_vector_dim=2, to_apply=f }"},
      {"scatter-parts", "bf16 f32 f64 s8 s32 u64", "$ADDENTRY e { x = $T[6] parameter(0)\n i = s32[90,100,1] parameter(1)\n u = $T[90,100] parameter(2)\n ROOT r = $T[6] scatter(x, i, u), update_window_dims={}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=2, to_apply=add }"},
      {"scatter-parts-rows", few, "$MAXENTRY e { x = $T[5,7] parameter(0)\n i = s32[1300,1] parameter(1)\n u = $T[1300,7] parameter(2)\n ROOT r = $T[5,7] scatter(x, i, u), " + scatter_rows + "max }"},
      {"scatter-parts-sliding", "f32 s32", "$ADDENTRY e { x = $T[40] parameter(0)\n i = s32[1300,1] parameter(1)\n u = $T[1300,7] parameter(2)\n ROOT r = $T[40] scatter(x, i, u), update_window_dims={1}, inserted_window_dims={}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=add }"},
      // One window at a known place; and none whose place anything says.
      {"scatter-one-window", "f8e4m3fn bf16 f16 f32 f64 s32", "$MAXENTRY e { x = $T[6,5] parameter(0)\n i = s32[2] constant({1, 0})\n u = $T[4,5] parameter(1)\n ROOT r = $T[6,5] scatter(x, i, u), update_window_dims={0,1}, inserted_window_dims={}, scatter_dims_to_operand_dims={0,1}, index_vector_dim=0, to_apply=max }"},
      {"scatter-one-window-add", "bf16 f32 s8 u32", "$ADDENTRY e { x = $T[6,5] parameter(0)\n i = s32[1] constant({2})\n u = $T[6,3] parameter(1)\n ROOT r = $T[6,5] scatter(x, i, u), update_window_dims={0,1}, inserted_window_dims={}, scatter_dims_to_operand_dims={1}, index_vector_dim=0, to_apply=add }"},
      {"scatter-empty-indices", "f32", "$ADDENTRY e { x = $T[4] parameter(0)\n i = s32[3,0] constant({ { }, { }, { } })\n u = $T[3,4] parameter(1)\n ROOT r = $T[4] scatter(x, i, u), update_window_dims={1}, inserted_window_dims={}, scatter_dims_to_operand_dims={}, index_vector_dim=1, to_apply=add }"},
      {"scatter-halves", "bf16 f32 s32", "$ADDENTRY e { x = $T[5,70] parameter(0)\n i = s32[9,1] parameter(1)\n u = $T[9,70] parameter(2)\n ROOT r = $T[5,70] scatter(x, i, u), " + scatter_rows + "add }"},
      {"scatter-batching", few, "$ADDENTRY e { x = $T[3,6,4] parameter(0)\n i = s32[3,2,1] parameter(1)\n u = $T[3,2,4] parameter(2)\n ROOT r = $T[3,6,4] scatter(x, i, u), update_window_dims={2}, inserted_window_dims={1}, scatter_dims_to_operand_dims={1}, input_batching_dims={0}, scatter_indices_batching_dims={0}, index_vector_dim=2, to_apply=add }", 0, 0, {{1, {0, 5, 3, 2, 7, 1}}}},
      {"scatter-no-index", few, "$ADDENTRY e { x = $T[3,6] parameter(0)\n i = s32[0] parameter(1)\n u = $T[3,6] parameter(2)\n ROOT r = $T[3,6] scatter(x, i, u), update_window_dims={0,1}, inserted_window_dims={}, scatter_dims_to_operand_dims={}, index_vector_dim=0, to_apply=add }"},
      {"scatter-scalar-index", few, "$ADDENTRY e { x = $T[5,4] parameter(0)\n i = s32[] parameter(1)\n u = $T[4] parameter(2)\n ROOT r = $T[5,4] scatter(x, i, u), update_window_dims={0}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=0, to_apply=add }", 0, 0, {{1, {3}}}},
      {"scatter-two-operands", "f32", "f { a = $T[] parameter(0)\n b = s32[] parameter(1)\n c = $T[] parameter(2)\n d = s32[] parameter(3)\n s = $T[] add(a, c)\n m = s32[] maximum(b, d)\n ROOT t = ($T[], s32[]) tuple(s, m) }\nENTRY e { x = $T[5] parameter(0)\n y = s32[5] parameter(1)\n i = s32[3,1] parameter(2)\n u = $T[3] parameter(3)\n v = s32[3] parameter(4)\n ROOT r = ($T[5], s32[5]) scatter(x, y, i, u, v), update_window_dims={}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=f }", 0, 0, {{2, {1, 4, 1}}}},
      {"scatter-no-reduction", "f32", "f { a = $T[] parameter(0)\n b = $T[] parameter(1)\n c = $T[] multiply(a, b)\n ROOT d = $T[] subtract(c, a) }\nENTRY e { x = $T[5,4] parameter(0)\n i = s32[3,1] parameter(1)\n u = $T[3,4] parameter(2)\n ROOT r = $T[5,4] scatter(x, i, u), " + scatter_rows + "f }", 0, 0, {{1, {4, 0, 2}}}},
  };
}

}  // namespace hlorun::conformance
