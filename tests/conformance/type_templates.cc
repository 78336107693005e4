// Each op that is not elementwise, in every element type: small cases without edges, which the other families have.
// What XLA:CPU refuses among them, supported_types.cc takes out.
#include "tests/conformance/template_cases.h"

// Tables, one case a row.
// clang-format off

namespace hlorun::conformance {
namespace {

constexpr const char* kEvery =
    "pred s2 s4 s8 s16 s32 s64 u2 u4 u8 u16 u32 u64 f16 bf16 f32 f64 c64 c128 "
    "f8e5m2 f8e4m3fn f8e4m3b11fnuz f8e5m2fnuz f8e4m3fnuz f8e4m3 f8e3m4 f4e2m1fn f8e8m0fnu";

constexpr const char* kReal =
    "pred s2 s4 s8 s16 s32 s64 u2 u4 u8 u16 u32 u64 f16 bf16 f32 f64 "
    "f8e5m2 f8e4m3fn f8e4m3b11fnuz f8e5m2fnuz f8e4m3fnuz f8e4m3 f8e3m4 f4e2m1fn f8e8m0fnu";

constexpr const char* kWithZero =
    "f16 bf16 f32 f64 c64 c128 f8e5m2 f8e4m3fn f8e4m3b11fnuz f8e5m2fnuz f8e4m3fnuz f8e4m3 f8e3m4 f4e2m1fn";
constexpr const char* kSorts =
    "pred s4 s8 s16 s32 s64 u4 u8 u16 u32 u64 f16 bf16 f32 f64 c64 c128 "
    "f8e5m2 f8e4m3fn f8e4m3b11fnuz f8e5m2fnuz f8e4m3fnuz f8e4m3 f8e3m4 f4e2m1fn f8e8m0fnu";
constexpr const char* kNoF4 =
    "s2 s4 s8 s16 s32 s64 u2 u4 u8 u16 u32 u64 f16 bf16 f32 f64 "
    "f8e5m2 f8e4m3fn f8e4m3b11fnuz f8e5m2fnuz f8e4m3fnuz f8e4m3 f8e3m4 f8e8m0fnu";

Template Typed(const std::string& op, const std::string& text, std::vector<std::pair<int, std::vector<double>>> given = {}, double ulps = 0,
               double relative = 0) {
  return {"typed-" + op, kEvery, text, ulps, relative, std::move(given)};
}

void AddControl(std::vector<Template>& templates) {
  const std::string swap = "f { x = $T[3] parameter(0)\n y = $T[3] parameter(1)\n ROOT t = ($T[3], $T[3]) tuple(y, x) }\n";
  const std::string entry = "ENTRY e { x = $T[3] parameter(0)\n y = $T[3] parameter(1)\n ";
  templates.insert(templates.end(), {
      Typed("call", swap + entry + "ROOT r = ($T[3], $T[3]) call(x, y), to_apply=f }"),
      Typed("fusion", swap + entry + "ROOT r = ($T[3], $T[3]) fusion(x, y), kind=kLoop, calls=f }"),
      Typed("async-start", swap + entry + "s = (($T[3], $T[3]), ($T[3], $T[3]), s32[]) async-start(x, y), calls=f\n u = (($T[3], $T[3]), ($T[3], $T[3]), s32[]) async-update(s)\n ROOT r = ($T[3], $T[3]) async-done(u) }"),
      Typed("conditional", "a { t = ($T[3], $T[3]) parameter(0)\n ROOT x = $T[3] get-tuple-element(t), index=0 }\nb { t = ($T[3], $T[3]) parameter(0)\n ROOT x = $T[3] get-tuple-element(t), index=1 }\n" + entry + "t = ($T[3], $T[3]) tuple(x, y)\n i = s32[] parameter(2)\n ROOT r = $T[3] conditional(i, t, t), branch_computations={a, b} }", {{2, {0}}}),
      Typed("while", "body { s = (s32[], $T[3], $T[3]) parameter(0)\n i = s32[] get-tuple-element(s), index=0\n x = $T[3] get-tuple-element(s), index=1\n y = $T[3] get-tuple-element(s), index=2\n one = s32[] constant(1)\n n = s32[] add(i, one)\n ROOT t = (s32[], $T[3], $T[3]) tuple(n, y, x) }\ncond { s = (s32[], $T[3], $T[3]) parameter(0)\n i = s32[] get-tuple-element(s), index=0\n l = s32[] constant(5)\n ROOT p = pred[] compare(i, l), direction=LT }\n" + entry + "i = s32[] constant(0)\n s = (s32[], $T[3], $T[3]) tuple(i, x, y)\n ROOT w = (s32[], $T[3], $T[3]) while(s), condition=cond, body=body }"),
      Typed("tuple", entry + "t = ($T[3], $T[3]) tuple(x, y)\n u = (($T[3], $T[3]), $T[3]) tuple(t, y)\n v = ($T[3], $T[3]) get-tuple-element(u), index=0\n w = $T[3] get-tuple-element(v), index=1\n ROOT r = ($T[3], $T[3]) tuple(w, x) }"),
      Typed("opt-barrier", entry + "t = ($T[3], $T[3]) tuple(x, y)\n b = ($T[3], $T[3]) opt-barrier(t)\n ROOT r = $T[3] get-tuple-element(b), index=1 }"),
      Typed("copy-start", "ENTRY e { x = $T[3] parameter(0)\n s = ($T[3], $T[3], u32[]) copy-start(x)\n ROOT r = $T[3] copy-done(s) }"),
      Typed("add-dependency", entry + "t = token[] after-all()\n d = $T[3] add-dependency(x, t)\n ROOT r = ($T[3], $T[3]) tuple(d, y) }"),
      Typed("domain", entry + "d = $T[3] domain(x), domain={kind=\"sharding\", entry={maximal device=0}, exit={maximal device=0}}\n ROOT r = ($T[3], $T[3]) tuple(d, y) }"),
      Typed("set-dimension-size", "ENTRY e { x = $T[8] parameter(0)\n v = $T[] parameter(1)\n n = s32[] parameter(2)\n d = $T[<=8] set-dimension-size(x, n), dimensions={0}\n m = s32[] constant(8)\n ROOT r = $T[8] set-dimension-size(d, m), dimensions={0} }", {{2, {8}}}),
      Typed("get-dimension-size", "ENTRY e { x = $T[8,3] parameter(0)\n n = s32[] parameter(1)\n d = $T[<=8,3] set-dimension-size(x, n), dimensions={0}\n ROOT s = s32[] get-dimension-size(d), dimensions={0} }", {{1, {5}}}),
      Typed("dynamic-reshape", "ENTRY e { x = $T[6] parameter(0)\n n = s32[] constant(2)\n m = s32[] constant(3)\n ROOT r = $T[2,3] dynamic-reshape(x, n, m) }"),
      {"typed-constant", kReal, "ENTRY e { x = $T[2,3] parameter(0)\n c = $T[2,3] constant({{1,1,1},{1,1,1}})\n ROOT r = ($T[2,3], $T[2,3]) tuple(x, c) }"},
      {"typed-constant", "c64 c128", "ENTRY e { x = $T[3] parameter(0)\n c = $T[3] constant({(0,1),(1,-2),(0.5,-0)})\n ROOT r = ($T[3], $T[3]) tuple(x, c) }", 0, 0, {}, "reads -0 as 0, although it prints -0.0 so"},
      Typed("bitcast", "ENTRY e { x = $T[6,2] parameter(0)\n ROOT r = $T[3,4] bitcast(x) }"),
  });
}

void AddCollectives(std::vector<Template>& templates) {
  const std::string x = "ENTRY e { x = $T[4,3] parameter(0)\n ";
  templates.insert(templates.end(), {
      Typed("all-reduce", "$MAX" + x + "ROOT r = $T[4,3] all-reduce(x), replica_groups={{0}}, to_apply=max }"),
      Typed("all-reduce-start", "$MAX" + x + "s = $T[4,3] all-reduce-start(x), replica_groups={{0}}, to_apply=max\n ROOT r = $T[4,3] all-reduce-done(s) }"),
      Typed("all-gather", x + "ROOT r = $T[4,3] all-gather(x), replica_groups={{0}}, dimensions={0} }"),
      Typed("all-gather-start", x + "s = ($T[4,3], $T[4,3]) all-gather-start(x), replica_groups={{0}}, dimensions={0}\n ROOT r = $T[4,3] all-gather-done(s) }"),
      Typed("reduce-scatter", "$MAX" + x + "ROOT r = $T[4,3] reduce-scatter(x), replica_groups={{0}}, dimensions={0}, to_apply=max }"),
      Typed("all-to-all", x + "ROOT r = $T[4,3] all-to-all(x), replica_groups={{0}}, dimensions={0} }"),
      Typed("collective-permute", x + "ROOT r = $T[4,3] collective-permute(x), source_target_pairs={{0,0}} }"),
      Typed("collective-permute-start", x + "s = ($T[4,3], $T[4,3]) collective-permute-start(x), source_target_pairs={{0,0}}\n ROOT r = $T[4,3] collective-permute-done(s) }"),
      Typed("collective-broadcast", x + "ROOT r = $T[4,3] collective-broadcast(x), replica_groups={{0}} }"),
      Typed("ragged-all-to-all", x + "o = $T[6,3] parameter(1)\n i = s32[1] parameter(2)\n s = s32[1] parameter(3)\n p = s32[1] parameter(4)\n q = s32[1] parameter(5)\n ROOT r = $T[6,3] ragged-all-to-all(x, o, i, s, p, q), replica_groups={{0}} }", {{2, {1}}, {3, {2}}, {4, {3}}, {5, {2}}}),
  });
}

void AddMovement(std::vector<Template>& templates) {
  const std::string rows = "update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=";
  const std::string arrays = "ENTRY e { x = $T[5,4] parameter(0)\n i = s32[3,1] parameter(1)\n u = $T[3,4] parameter(2)\n ROOT r = $T[5,4] scatter(x, i, u), ";
  templates.insert(templates.end(), {
      Typed("iota", "ENTRY e { x = $T[1] parameter(0)\n i = $T[2] iota(), iota_dimension=0\n ROOT r = ($T[2], $T[1]) tuple(i, x) }"),
      Typed("reshape", "ENTRY e { x = $T[6,4] parameter(0)\n t = $T[4,6] transpose(x), dimensions={1,0}\n ROOT r = $T[2,12] reshape(t) }"),
      Typed("dynamic-slice", "ENTRY e { x = $T[5,6] parameter(0)\n i = s32[] parameter(1)\n j = s32[] parameter(2)\n ROOT r = $T[2,3] dynamic-slice(x, i, j), dynamic_slice_sizes={2,3} }", {{1, {-5}}, {2, {2}}}),
      Typed("gather", "ENTRY e { x = $T[3,6,4] parameter(0)\n i = s32[3,2,1] parameter(1)\n ROOT r = $T[3,2,4] gather(x, i), offset_dims={2}, collapsed_slice_dims={1}, start_index_map={1}, operand_batching_dims={0}, start_indices_batching_dims={0}, index_vector_dim=2, slice_sizes={1,1,4} }", {{1, {0, 5, 3, 2, 7, 1}}}),
      Typed("scatter", "f { a = $T[] parameter(0)\n ROOT b = $T[] parameter(1) }\n" + arrays + rows + "f }", {{1, {4, 0, 2}}}),
      Typed("scatter-add", "$ADD" + arrays + rows + "add }", {{1, {4, 0, 4}}}),
      Typed("scatter-maximum", "$MAX" + arrays + rows + "max }", {{1, {4, 0, 4}}}),
  });
}

void AddReductions(std::vector<Template>& templates) {
  const std::string pair = "f { a = $T[] parameter(0)\n b = s32[] parameter(1)\n c = $T[] parameter(2)\n d = s32[] parameter(3)\n p = pred[] compare(b, d), direction=GE\n s = $T[] select(p, a, c)\n m = s32[] maximum(b, d)\n ROOT t = ($T[], s32[]) tuple(s, m) }\n";
  const std::string take = "f { x = $T[4] parameter(0)\n c = $T[4] parameter(1)\n ROOT t = ($T[4], $T[4]) tuple(c, x) }\n";
  templates.insert(templates.end(), {
      Typed("reduce", "$MAXENTRY e { x = $T[4,6] parameter(0)\n z = $T[] parameter(1)\n ROOT r = $T[4] reduce(x, z), dimensions={1}, to_apply=max }"),
      Typed("reduce-add", "$ADDENTRY e { x = $T[4,3] parameter(0)\n z = $T[] parameter(1)\n ROOT r = $T[4] reduce(x, z), dimensions={1}, to_apply=add }"),
      Typed("reduce-two", pair + "ENTRY e { x = $T[5,8] parameter(0)\n k = s32[5,8] iota(), iota_dimension=1\n l = $T[] parameter(1)\n z = s32[] constant(-9)\n ROOT r = ($T[5], s32[5]) reduce(x, k, l, z), dimensions={1}, to_apply=f }"),
      Typed("reduce-window", "$MAXENTRY e { x = $T[5,6] parameter(0)\n z = $T[] parameter(1)\n ROOT r = $T[5,3] reduce-window(x, z), window={size=3x2 stride=1x2 pad=1_1x0_0}, to_apply=max }"),
      Typed("reduce-window-add", "$ADDENTRY e { x = $T[7] parameter(0)\n z = $T[] parameter(1)\n ROOT r = $T[6] reduce-window(x, z), window={size=2}, to_apply=add }"),
      Typed("reduce-window-two", pair + "ENTRY e { x = $T[5,8] parameter(0)\n k = s32[5,8] iota(), iota_dimension=1\n l = $T[] parameter(1)\n z = s32[] constant(-9)\n ROOT r = ($T[5,4], s32[5,4]) reduce-window(x, k, l, z), window={size=1x2 stride=1x2}, to_apply=f }"),
      Typed("select-and-scatter", "$GEf { a = $T[] parameter(0)\n ROOT b = $T[] parameter(1) }\nENTRY e { x = $T[4,6] parameter(0)\n s = $T[2,3] parameter(1)\n z = $T[] parameter(2)\n ROOT r = $T[4,6] select-and-scatter(x, s, z), window={size=2x2 stride=2x2}, select=ge, scatter=f }"),
      Typed("select-and-scatter-add", "$GE$ADDENTRY e { x = $T[4,6] parameter(0)\n s = $T[2,3] parameter(1)\n z = $T[] parameter(2)\n ROOT r = $T[4,6] select-and-scatter(x, s, z), window={size=2x2 stride=2x2}, select=ge, scatter=add }"),
      {"typed-sort", kSorts, "$LTENTRY e { x = $T[3,17] parameter(0)\n ROOT r = $T[3,17] sort(x), dimensions={1}, to_apply=lt }", 0, 0, {{0, {4, 1, 2, 1, 3, 2, 4}}}},
      {"typed-sort", "s2 u2", "$LTENTRY e { x = $T[3,17] parameter(0)\n ROOT r = $T[3,17] sort(x), dimensions={1}, to_apply=lt }", 0, 0, {{0, {4, 1, 2, 1, 3, 2, 4}}}, "does not sort, or dies"},
      Typed("sort-values", "f { a = s32[] parameter(0)\n b = s32[] parameter(1)\n c = $T[] parameter(2)\n d = $T[] parameter(3)\n ROOT r = pred[] compare(a, b), direction=GT }\nENTRY e { x = $T[30] parameter(0)\n k = s32[30] parameter(1)\n ROOT r = (s32[30], $T[30]) sort(k, x), dimensions={0}, is_stable=true, to_apply=f }"),
      {"typed-topk", kReal, "ENTRY e { x = $T[3,12] parameter(0)\n ROOT r = ($T[3,4], s32[3,4]) topk(x), k=4, largest=true }"},
      Typed("map", "f { a = $T[] parameter(0)\n b = $T[] parameter(1)\n p = pred[] compare(a, b), direction=NE\n ROOT d = $T[] select(p, b, a) }\nENTRY e { x = $T[4,5] parameter(0)\n y = $T[4,5] parameter(1)\n ROOT r = $T[4,5] map(x, y), dimensions={0,1}, to_apply=f }"),
      Typed("scan", take + "ENTRY e { x = $T[6,4] parameter(0)\n i = $T[4] parameter(1)\n ROOT r = ($T[6,4], $T[4]) scan(x, i), dimensions={0}, num_carries=1, to_apply=f }"),
  });
}

void AddProducts(std::vector<Template>& templates) {
  templates.insert(templates.end(), {
      Typed("dot", "ENTRY e { a = $T[3,2] parameter(0)\n b = $T[2,4] parameter(1)\n ROOT r = $T[3,4] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0} }"),
      Typed("dot-f32", "ENTRY e { a = $T[3,4] parameter(0)\n b = $T[4,5] parameter(1)\n ROOT r = f32[3,5] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0} }"),
      {"typed-dot-s32", "pred s2 s4 s8 s16 s32 s64 u2 u4 u8 u16 u32 u64", "ENTRY e { a = $T[3,4] parameter(0)\n b = $T[4,5] parameter(1)\n ROOT r = s32[3,5] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0} }"},
      Typed("convolution", "ENTRY e { x = $T[1,5,2] parameter(0)\n k = $T[2,2,3] parameter(1)\n ROOT r = $T[1,4,3] convolution(x, k), window={size=2}, dim_labels=b0f_0io->b0f }"),
      Typed("convolution-f32", "ENTRY e { x = $T[1,5,2] parameter(0)\n k = $T[2,2,3] parameter(1)\n ROOT r = f32[1,4,3] convolution(x, k), window={size=2}, dim_labels=b0f_0io->b0f }"),
      Typed("ragged-dot", "ENTRY e { a = $T[5,2] parameter(0)\n b = $T[2,2,3] parameter(1)\n g = s32[2] parameter(2)\n ROOT r = $T[5,3] ragged-dot(a, b, g), lhs_contracting_dims={1}, rhs_contracting_dims={1}, lhs_ragged_dims={0}, rhs_group_dims={0} }", {{2, {2, 3}}}),
  });
}

void AddNumeric(std::vector<Template>& templates) {
  const std::vector<double> positive = {4, 1, 0.5, 1, 5, 0.75, 0.5, 0.75, 6};
  templates.insert(templates.end(), {
      Typed("fft", "ENTRY e { x = $T[2,6] parameter(0)\n ROOT r = $T[2,6] fft(x), fft_type=FFT, fft_length={6} }", {}, 4, 1e-6),
      {"typed-cholesky", kWithZero, "ENTRY e { a = $T[3,3] parameter(0)\n ROOT r = $T[3,3] cholesky(a), lower=true }", 4, 1e-6, {{0, positive}}},
      {"typed-triangular-solve", kWithZero, "ENTRY e { a = $T[3,3] parameter(0)\n b = $T[3,2] parameter(1)\n ROOT r = $T[3,2] triangular-solve(a, b), left_side=true, lower=true, unit_diagonal=false, transpose_a=NO_TRANSPOSE }", 4, 1e-6, {{0, positive}}},
      Typed("batch-norm-training", "ENTRY e { x = $T[4,5,3] parameter(0)\n s = $T[3] parameter(1)\n o = $T[3] parameter(2)\n ROOT r = ($T[4,5,3], $T[3], $T[3]) batch-norm-training(x, s, o), epsilon=0.001, feature_index=2 }", {{1, {0.5, 2, 1}}}, 8, 1e-2),
      Typed("batch-norm-inference", "ENTRY e { x = $T[4,3,5] parameter(0)\n s = $T[3] parameter(1)\n o = $T[3] parameter(2)\n m = $T[3] parameter(3)\n v = $T[3] parameter(4)\n ROOT r = $T[4,3,5] batch-norm-inference(x, s, o, m, v), epsilon=0.001, feature_index=1 }", {{4, {0.5, 2, 1}}}, 8, 1e-2),
      Typed("batch-norm-grad", "ENTRY e { x = $T[4,3,5] parameter(0)\n s = $T[3] parameter(1)\n m = $T[3] parameter(2)\n v = $T[3] parameter(3)\n g = $T[4,3,5] parameter(4)\n ROOT r = ($T[4,3,5], $T[3], $T[3]) batch-norm-grad(x, s, m, v, g), epsilon=0.001, feature_index=1 }", {{1, {1, 2, 0.5}}, {3, {0.5, 2, 1}}}, 8, 2e-2),
      {"typed-rng-bit-generator", kNoF4, "ENTRY e { s = u64[3] parameter(0)\n ROOT r = (u64[3], $T[9]) rng-bit-generator(s), algorithm=rng_default }"},
      {"typed-rng-bit-generator", "f4e2m1fn", "ENTRY e { s = u64[3] parameter(0)\n ROOT r = (u64[3], $T[9]) rng-bit-generator(s), algorithm=rng_default }", 0, 0, {}, "its sign bit is never set"},
      {"typed-rng-bit-generator-three-fry", kNoF4, "ENTRY e { s = u64[2] parameter(0)\n ROOT r = (u64[2], $T[9]) rng-bit-generator(s), algorithm=rng_three_fry }"},
      {"typed-rng-bit-generator-three-fry", "f4e2m1fn", "ENTRY e { s = u64[2] parameter(0)\n ROOT r = (u64[2], $T[9]) rng-bit-generator(s), algorithm=rng_three_fry }", 0, 0, {}, "its sign bit is never set"},
      {"typed-rng-uniform", kReal, "ENTRY e { l = $T[] parameter(0)\n h = $T[] parameter(1)\n r = $T[64] rng(l, h), distribution=rng_uniform\n p = pred[64] compare(r, r), direction=EQ\n ROOT t = pred[64] or(p, p) }", 0, 0, {{0, {0}}, {1, {1}}}},
      {"typed-rng-normal", kReal, "ENTRY e { l = $T[] parameter(0)\n h = $T[] parameter(1)\n r = $T[64] rng(l, h), distribution=rng_normal\n p = pred[64] compare(r, r), direction=EQ\n ROOT t = pred[64] or(p, p) }", 0, 0, {{0, {0}}, {1, {1}}}},
      Typed("reduce-precision", "ENTRY e { x = $T[9] parameter(0)\n ROOT r = $T[9] reduce-precision(x), exponent_bits=4, mantissa_bits=1 }", {{0, {1, 1.5, 1.75, 3, 7, 0.25, 0.1, 0, 5}}}),
  });
  constexpr struct {
    const char *types, *bits, *fault;
  } kFloats[] = {{"f8e5m2 f8e4m3fn", "u8", ""}, {"f8e4m3b11fnuz f8e5m2fnuz f8e4m3fnuz f8e4m3 f8e3m4", "u8", "multiplies by 2^8 in the type itself, which overflows"}, {"f16 bf16", "u16", ""}, {"f32", "u32", ""}, {"f64", "u64", ""}};
  for (const char* to : {"s2", "s4", "s8", "s16", "s32", "s64", "u8"}) {
    for (const auto& from : kFloats) {
      templates.push_back({std::string("typed-stochastic-convert-") + to, from.types, std::string("ENTRY e { x = $T[8] parameter(0)\n n = ") + from.bits + "[8] parameter(1)\n ROOT r = " + to + "[8] stochastic-convert(x, n) }", 0, 0, {{0, {1.5, -1.5, 0.25, 200, -3.75}}, {1, {200, 20, 1, 255}}}, from.fault});
    }
  }
}

}  // namespace

std::vector<Template> TypeTemplates() {
  std::vector<Template> templates;
  AddControl(templates);
  AddCollectives(templates);
  AddMovement(templates);
  AddReductions(templates);
  AddProducts(templates);
  AddNumeric(templates);
  return templates;
}

}  // namespace hlorun::conformance
