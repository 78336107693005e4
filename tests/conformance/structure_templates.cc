// Ops that are about structure: async pairs, tokens, domains, several outputs at once, scans, products in groups and
// with scales, scalar functions over arrays, the random state.
#include "tests/conformance/template_cases.h"

// Tables, one case a row.
// clang-format off

namespace hlorun::conformance {

std::vector<Template> StructureTemplates() {
  const std::string few = "s32 f32 bf16 f16 f64";
  const std::string pair = "f { a = $T[] parameter(0)\n b = s32[] parameter(1)\n c = $T[] parameter(2)\n d = s32[] parameter(3)\n s = $T[] add(a, c)\n m = s32[] maximum(b, d)\n ROOT t = ($T[], s32[]) tuple(s, m) }\n";
  const std::string scan = "f { x = $T[4] parameter(0)\n c = $T[4] parameter(1)\n s = $T[4] add(x, c)\n ROOT t = ($T[4], $T[4]) tuple(s, c) }\n";
  const std::string general = "f { a = $T[] parameter(0)\n b = $T[] parameter(1)\n c = $T[] multiply(b, b)\n ROOT d = $T[] maximum(a, c) }\n";
  const std::string advance = "s = (u64[2], s32[]) parameter(0)\n x = u64[2] get-tuple-element(s), index=0\n i = s32[] get-tuple-element(s), index=1\n one = s32[] constant(1)\n n = s32[] add(i, one)\n ";
  return {
      {"async", few, "f { x = $T[3] parameter(0)\n y = $T[3] parameter(1)\n ROOT r = $T[3] add(x, y) }\nENTRY e { x = $T[3] parameter(0)\n y = $T[3] parameter(1)\n s = (($T[3], $T[3]), $T[3], s32[]) async-start(x, y), calls=f\n u = (($T[3], $T[3]), $T[3], s32[]) async-update(s)\n ROOT r = $T[3] async-done(u) }"},
      {"copy-start", few, "ENTRY e { x = $T[3] parameter(0)\n s = ($T[3], $T[3], u32[]) copy-start(x)\n ROOT r = $T[3] copy-done(s) }"},
      {"tokens", few, "ENTRY e { x = $T[3] parameter(0)\n t = token[] after-all()\n u = token[] after-all(t)\n ROOT r = $T[3] add-dependency(x, u) }"},
      {"domain", few, "ENTRY e { x = $T[3] parameter(0)\n y = $T[3] add(x, x)\n d = $T[3] domain(y), domain={kind=\"sharding\", entry={maximal device=0}, exit={maximal device=0}}\n ROOT r = $T[3] multiply(d, x) }"},
      {"barrier-array", few, "ENTRY e { x = $T[3] parameter(0)\n b = $T[3] opt-barrier(x)\n ROOT r = $T[3] add(b, x) }"},
      {"call-nested", few, "g { x = $T[3] parameter(0)\n ROOT r = $T[3] negate(x) }\nf { x = $T[3] parameter(0)\n y = $T[3] call(x), to_apply=g\n ROOT r = $T[3] add(x, y) }\nENTRY e { x = $T[3] parameter(0)\n y = $T[3] call(x), to_apply=f\n ROOT r = $T[3] call(y), to_apply=g }"},
      {"fusion", few, "f { x = $T[3,4] parameter(0)\n y = $T[4] parameter(1)\n b = $T[3,4] broadcast(y), dimensions={1}\n ROOT r = $T[3,4] multiply(x, b) }\nENTRY e { x = $T[3,4] parameter(0)\n y = $T[4] parameter(1)\n ROOT r = $T[3,4] fusion(x, y), kind=kLoop, calls=f }"},
      {"reduce-two-outer", few, pair + "ENTRY e { x = $T[5,8] parameter(0)\n k = s32[5,8] parameter(1)\n l = $T[] constant(0)\n z = s32[] constant(-9)\n ROOT r = ($T[8], s32[8]) reduce(x, k, l, z), dimensions={0}, to_apply=f }"},
      {"reduce-two-all", few, pair + "ENTRY e { x = $T[5,8] parameter(0)\n k = s32[5,8] parameter(1)\n l = $T[] constant(0)\n z = s32[] constant(-9)\n ROOT r = ($T[], s32[]) reduce(x, k, l, z), dimensions={0,1}, to_apply=f }"},
      {"reduce-window-two-padded", few, pair + "ENTRY e { x = $T[5,8] parameter(0)\n k = s32[5,8] parameter(1)\n l = $T[] constant(0)\n z = s32[] constant(-9)\n ROOT r = ($T[5,4], s32[5,4]) reduce-window(x, k, l, z), window={size=3x2 stride=1x2 pad=1_1x0_0}, to_apply=f }"},
      {"reduce-window-general", few, general + "ENTRY e { x = $T[9] parameter(0)\n z = $T[] constant(0)\n ROOT r = $T[7] reduce-window(x, z), window={size=3}, to_apply=f }"},
      {"sort-three", few, "f { a = $T[] parameter(0)\n b = $T[] parameter(1)\n c = s32[] parameter(2)\n d = s32[] parameter(3)\n g = f32[] parameter(4)\n h = f32[] parameter(5)\n ROOT r = pred[] compare(a, b), direction=LT }\nENTRY e { x = $T[4,20] parameter(0)\n k = s32[4,20] iota(), iota_dimension=1\n v = f32[4,20] parameter(1)\n ROOT r = ($T[4,20], s32[4,20], f32[4,20]) sort(x, k, v), dimensions={1}, is_stable=true, to_apply=f }"},
      {"sort-then-use", few, "$LTENTRY e { x = $T[4,20] parameter(0)\n s = $T[4,20] sort(x), dimensions={1}, to_apply=lt\n r = $T[4,20] reverse(s), dimensions={1}\n ROOT d = $T[4,20] add(r, x) }"},
      {"sort-of-product", few, "$LTENTRY e { x = $T[4,20] parameter(0)\n y = $T[4,20] multiply(x, x)\n ROOT s = $T[4,20] sort(y), dimensions={1}, to_apply=lt }"},
      {"scatter-then-use", few, "$ADDENTRY e { x = $T[5,4] parameter(0)\n i = s32[3,1] parameter(1)\n u = $T[3,4] parameter(2)\n s = $T[5,4] scatter(x, i, u), update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=add\n ROOT r = $T[5,4] add(s, s) }", 0, 0, {{1, {4, 0, 4}}}},
      {"scatter-onto-zeros", few, "$ADDENTRY e { z = $T[] constant(0)\n x = $T[5,4] broadcast(z), dimensions={}\n i = s32[3,1] parameter(0)\n u = $T[3,4] parameter(1)\n s = $T[5,4] scatter(x, i, u), update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, unique_indices=true, indices_are_sorted=true, to_apply=add\n ROOT r = $T[5,4] negate(s) }", 0, 0, {{0, {0, 2, 4}}}},
      {"scatter-two-general", few, pair + "ENTRY e { x = $T[6] parameter(0)\n k = s32[6] parameter(1)\n i = s32[4,1] parameter(2)\n u = $T[4] parameter(3)\n v = s32[4] parameter(4)\n ROOT r = ($T[6], s32[6]) scatter(x, k, i, u, v), update_window_dims={}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=f }", 0, 0, {{2, {1, 3, 1, 5}}}},
      {"select-and-scatter-then-use", few, "$GE$ADDENTRY e { x = $T[4,6] parameter(0)\n s = $T[2,3] parameter(1)\n z = $T[] constant(0)\n y = $T[4,6] select-and-scatter(x, s, z), window={size=2x2 stride=2x2}, select=ge, scatter=add\n ROOT r = $T[4,6] multiply(y, x) }"},
      {"gather-of-constant", "s32 f32", "ENTRY e { c = $T[4] constant({5, 7, 9, 11})\n i = s32[3] parameter(0)\n g = $T[3] gather(c, i), offset_dims={}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1}\n ROOT r = $T[3] add(g, g) }", 0, 0, {{0, {3, 1, 2}}}},
      {"map-branches", few, "f { a = $T[] parameter(0)\n z = $T[] constant(1)\n p = pred[] compare(a, z), direction=GT\n b = $T[] add(a, a)\n ROOT r = $T[] select(p, b, z) }\nENTRY e { x = $T[4,5] parameter(0)\n ROOT r = $T[4,5] map(x), dimensions={0,1}, to_apply=f }"},
      {"scan-inclusive", few, scan + "ENTRY e { x = $T[6,4] parameter(0)\n i = $T[4] parameter(1)\n ROOT r = ($T[6,4], $T[4]) scan(x, i), dimensions={0}, num_carries=1, to_apply=f }"},
      {"scan-columns", few, scan + "ENTRY e { x = $T[4,6] parameter(0)\n i = $T[4] parameter(1)\n ROOT r = ($T[4,6], $T[4]) scan(x, i), dimensions={1}, num_carries=1, to_apply=f }"},
      {"scan-columns-reverse", few, scan + "ENTRY e { x = $T[4,6] parameter(0)\n i = $T[4] parameter(1)\n ROOT r = ($T[4,6], $T[4]) scan(x, i), dimensions={1}, is_reverse=true, num_carries=1, to_apply=f }"},
      {"ragged-dot-some-rows", "f32 bf16 f64 s32", "ENTRY e { a = $T[9,4] parameter(0)\n b = $T[3,4,5] parameter(1)\n g = s32[3] parameter(2)\n ROOT r = $T[9,5] ragged-dot(a, b, g), lhs_contracting_dims={1}, rhs_contracting_dims={1}, lhs_ragged_dims={0}, rhs_group_dims={0} }", 0, 0, {{2, {2, 0, 4}}}},
      {"ragged-dot-too-many-rows", "f32", "ENTRY e { a = $T[9,4] parameter(0)\n b = $T[3,4,5] parameter(1)\n g = s32[3] parameter(2)\n ROOT r = $T[9,5] ragged-dot(a, b, g), lhs_contracting_dims={1}, rhs_contracting_dims={1}, lhs_ragged_dims={0}, rhs_group_dims={0} }", 0, 0, {{2, {5, 7, -4}}}},
      {"ragged-dot-contracting-some", "f32 bf16 s32", "ENTRY e { a = $T[4,9] parameter(0)\n b = $T[9,5] parameter(1)\n g = s32[3] parameter(2)\n ROOT r = $T[3,4,5] ragged-dot(a, b, g), lhs_contracting_dims={1}, rhs_contracting_dims={0}, lhs_ragged_dims={1}, rhs_group_dims={} }", 0, 0, {{2, {3, 1, 2}}}},
      {"ragged-dot-batch", "f32 s32", "ENTRY e { a = $T[6,4,3] parameter(0)\n b = $T[6,3,2] parameter(1)\n g = s32[2] parameter(2)\n ROOT r = $T[6,4,2] ragged-dot(a, b, g), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_contracting_dims={1}, lhs_ragged_dims={0}, rhs_group_dims={} }", 0, 0, {{2, {3, 1}}}},
      {"scaled-dot", "f8e4m3fn f8e5m2 bf16 f32", "ENTRY e { a = $T[4,8] parameter(0)\n b = $T[8,5] parameter(1)\n s = f8e8m0fnu[4,2] parameter(2)\n t = f8e8m0fnu[2,5] parameter(3)\n ROOT r = f32[4,5] scaled-dot(a, b, s, t), lhs_contracting_dims={1}, rhs_contracting_dims={0} }", 0, 0, {{2, {1, 2, 4, 0.5}}, {3, {2, 1, 8}}}, "no kernel"},
      {"scaled-dot-one-side", "bf16", "ENTRY e { a = $T[4,8] parameter(0)\n b = $T[8,5] parameter(1)\n s = $T[] parameter(2)\n t = $T[2,5] parameter(3)\n ROOT r = f32[4,5] scaled-dot(a, b, s, t), lhs_contracting_dims={1}, rhs_contracting_dims={0} }", 0, 0, {}, "no kernel"},
      {"random-state", "s32", "ENTRY e { x = $T[] parameter(0)\n a = u64[2] rng-get-and-update-state(), delta=3\n b = u64[2] rng-get-and-update-state(), delta=1\n ROOT r = (u64[2], u64[2], $T[]) tuple(a, b, x) }", 0, 0, {}, "the state goes on from run to run"},
      {"random-state-in-loop", "s32", "body { " + advance + "r = u64[2] rng-get-and-update-state(), delta=5\n y = u64[2] xor(x, r)\n ROOT t = (u64[2], s32[]) tuple(y, n) }\ncond { s = (u64[2], s32[]) parameter(0)\n i = s32[] get-tuple-element(s), index=1\n k = s32[] constant(7)\n ROOT p = pred[] compare(i, k), direction=LT }\nENTRY e { x = u64[2] parameter(0)\n z = $T[] constant(0)\n t = (u64[2], s32[]) tuple(x, z)\n w = (u64[2], s32[]) while(t), condition=cond, body=body\n ROOT r = u64[2] get-tuple-element(w), index=0 }", 0, 0, {}, "the state goes on from run to run"},
      {"stochastic-convert-s32", "f16 bf16", "ENTRY e { x = $T[8] parameter(0)\n n = u32[8] parameter(1)\n m = u16[8] convert(n)\n ROOT r = s32[8] stochastic-convert(x, m) }", 0, 0, {{0, {1.5, -1.5, 0.25, 200, -3.75}}, {1, {40000, 20000, 1, 65535}}}, "refused for these widths"},
      {"clamp-scalar-bounds", "s8 s32 u8 u32 f16 bf16 f32 f64", "ENTRY e { l = $T[] parameter(0)\n x = $T[19] parameter(1)\n h = $T[] parameter(2)\n ROOT r = $T[19] clamp(l, x, h) }", 0, 0, {{0, {0}}, {2, {1}}}},
      {"clamp-constant-bounds", "s8 s32 f16 bf16 f32 f64", "ENTRY e { l = $T[] constant(-1)\n x = $T[19] parameter(0)\n h = $T[] constant(1)\n ROOT r = $T[19] clamp(l, x, h) }"},
      {"maximum-of-constant", "f16 bf16 f32 f64", "ENTRY e { z = $T[] constant(0)\n b = $T[6] broadcast(z), dimensions={}\n x = $T[6] parameter(0)\n y = $T[6] maximum(x, b)\n w = $T[6] maximum(b, x)\n v = $T[6] minimum(x, b)\n ROOT t = ($T[6], $T[6], $T[6]) tuple(y, w, v) }", 0, 0, {{0, {-0.0, 0, 1e-40, -1e-40, 2, -3}}}},
      {"cholesky-singular", "f32 f64 c64", "ENTRY e { a = $T[2,2,2] parameter(0)\n ROOT r = $T[2,2,2] cholesky(a), lower=true }", 4, 1e-6, {{0, {1, 1, 1, 1, 4, 0, 0, 4}}}},
  };
}

}  // namespace hlorun::conformance
