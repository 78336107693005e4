#include "tests/passes/spmd/op_cases.h"

#include <algorithm>

#include "hlo/text/parser.h"
#include "tests/passes/equivalence.h"

// Tables, one case a row.
// clang-format off

namespace hlorun::passes {
namespace {

constexpr const char* kReducers = R"(
add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = f32[] add(a, b) }
max { a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = f32[] maximum(a, b) }
odd { a = f32[] parameter(0) b = f32[] parameter(1) c = f32[] add(a, b) ROOT r = f32[] add(c, b) }
second { a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = f32[] copy(b) }
ge { a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = pred[] compare(a, b), direction=GE }
lt { a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = pred[] compare(a, b), direction=LT }
lt2 { a = f32[] parameter(0) b = f32[] parameter(1) c = s32[] parameter(2) d = s32[] parameter(3)
  ROOT r = pred[] compare(a, b), direction=LT }
argmax { a = f32[] parameter(0) i = s32[] parameter(1) b = f32[] parameter(2) j = s32[] parameter(3)
  gt = pred[] compare(a, b), direction=GT eq = pred[] compare(a, b), direction=EQ lo = pred[] compare(i, j), direction=LT
  tie = pred[] and(eq, lo) first = pred[] or(gt, tie) m = f32[] select(first, a, b) k = s32[] select(first, i, j)
  ROOT t = (f32[], s32[]) tuple(m, k) }
add_s32 { a = s32[] parameter(0) b = s32[] parameter(1) ROOT r = s32[] add(a, b) }
mul { a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = f32[] multiply(a, b) }
either { a = pred[] parameter(0) b = pred[] parameter(1) ROOT r = pred[] or(a, b) }
both { a = f32[] parameter(0) b = s32[] parameter(1) c = f32[] parameter(2) d = s32[] parameter(3)
  e = f32[] add(a, c) f = s32[] maximum(b, d) ROOT t = (f32[], s32[]) tuple(e, f) }
larger_of { a = f32[] parameter(0) b = f32[] parameter(1) m = f32[] maximum(a, b) n = f32[] negate(m) ROOT r = f32[] negate(n) }
running { x = f32[6] parameter(0) c = f32[6] parameter(1) y = f32[6] add(x, c) ROOT t = (f32[6], f32[6]) tuple(y, y) }
running_planes { x = f32[8,3] parameter(0) c = f32[8,3] parameter(1) y = f32[8,3] add(x, c) d = f32[8,3] subtract(x, c)
  ROOT t = (f32[8,3], f32[8,3]) tuple(d, y) }
counts { x = f32[6] parameter(0) n = s32[] parameter(1) c = f32[6] parameter(2) one = s32[] constant(1) m = s32[] add(n, one)
  y = f32[6] maximum(x, c) z = f32[] constant(0) s = f32[] reduce(y, z), dimensions={0}, to_apply=add
  ROOT t = (f32[], f32[6], s32[], f32[6]) tuple(s, x, m, y) }
recurrent { x = f32[8,6] parameter(0) u = s32[8] parameter(1) w = f32[6,6] parameter(2) h = f32[8,6] parameter(3)
  p = f32[8,6] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0} lo = f32[] constant(-3) hi = f32[] constant(3)
  q = f32[8,6] add(p, h) n = f32[8,6] clamp(lo, q, hi) v = s32[8] add(u, u)
  ROOT t = (s32[8], f32[8,6], f32[6,6], f32[8,6]) tuple(v, n, w, n) }
flips { x = f32[9,5] parameter(0) c = f32[9,5] parameter(1) f = f32[9,5] reverse(c), dimensions={0} y = f32[9,5] add(x, f)
  ROOT t = (f32[9,5], f32[9,5]) tuple(f, y) }
counted { s = (s32[], f32[6]) parameter(0) i = s32[] get-tuple-element(s), index=0 x = f32[6] get-tuple-element(s), index=1
  one = s32[] constant(1) n = s32[] add(i, one) y = f32[6] add(x, x) ROOT t = (s32[], f32[6]) tuple(n, y) }
twice { s = (s32[], f32[6]) parameter(0) i = s32[] get-tuple-element(s), index=0 n = s32[] constant(2) ROOT r = pred[] compare(i, n), direction=LT }
inner_loop { x = f32[6] parameter(0) c = f32[6] parameter(1) z = s32[] constant(0) t = (s32[], f32[6]) tuple(z, x)
  w = (s32[], f32[6]) while(t), condition=twice, body=counted y = f32[6] get-tuple-element(w), index=1
  ROOT u = (f32[6], f32[6]) tuple(y, x) }
sq { a = f32[] parameter(0) ROOT r = f32[] multiply(a, a) }
body { s = (s32[], f32[8,6]) parameter(0) i = s32[] get-tuple-element(s), index=0 x = f32[8,6] get-tuple-element(s), index=1
  one = s32[] constant(1) n = s32[] add(i, one) y = f32[8,6] reverse(x), dimensions={0} z = f32[8,6] add(x, y)
  ROOT t = (s32[], f32[8,6]) tuple(n, z) }
cond { s = (s32[], f32[8,6]) parameter(0) i = s32[] get-tuple-element(s), index=0 n = s32[] constant(3)
  ROOT r = pred[] compare(i, n), direction=LT }
outer { s = (s32[], f32[8,6]) parameter(0) i = s32[] get-tuple-element(s), index=0 x = f32[8,6] get-tuple-element(s), index=1
  z = s32[] constant(1) t = (s32[], f32[8,6]) tuple(z, x) w = (s32[], f32[8,6]) while(t), condition=cond, body=body
  y = f32[8,6] get-tuple-element(w), index=1 one = s32[] constant(1) n = s32[] add(i, one)
  ROOT u = (s32[], f32[8,6]) tuple(n, y) }
double { x = f32[8,6] parameter(0) ROOT r = f32[8,6] add(x, x) }
flip { x = f32[8,6] parameter(0) ROOT r = f32[8,6] reverse(x), dimensions={0,1} }
)";

struct Template {
  const char* name;
  const char* body;  // instructions of the entry; the last is the root
  bool is_exact = true;
};

constexpr Template kTemplates[] = {
    {"add", "x = f32[8,6] parameter(0) y = f32[8,6] parameter(1) ROOT r = f32[8,6] add(x, y)"},
    {"add_uneven", "x = f32[5,7] parameter(0) y = f32[5,7] parameter(1) ROOT r = f32[5,7] add(x, y)"},
    {"select", "p = pred[6,5] parameter(0) x = s32[6,5] parameter(1) y = s32[6,5] parameter(2) ROOT r = s32[6,5] select(p, x, y)"},
    {"clamp", "l = f32[] parameter(0) x = f32[9,4] parameter(1) h = f32[] parameter(2) ROOT r = f32[9,4] clamp(l, x, h)"},
    {"convert", "x = f32[10,3] parameter(0) ROOT r = s8[10,3] convert(x)"},
    {"compare", "x = f32[4,9] parameter(0) y = f32[4,9] parameter(1) ROOT r = pred[4,9] compare(x, y), direction=LT"},
    {"map", "x = f32[8,3] parameter(0) ROOT r = f32[8,3] map(x), dimensions={0,1}, to_apply=sq"},
    {"broadcast", "x = f32[6] parameter(0) ROOT r = f32[4,6,5] broadcast(x), dimensions={1}"},
    {"broadcast_scalar", "x = f32[] parameter(0) ROOT r = f32[7,8] broadcast(x), dimensions={}"},
    {"transpose", "x = f32[4,6,5] parameter(0) ROOT r = f32[5,4,6] transpose(x), dimensions={2,0,1}"},
    {"reshape_split", "x = f32[24,5] parameter(0) ROOT r = f32[4,6,5] reshape(x)"},
    {"reshape_merge", "x = f32[4,6,5] parameter(0) ROOT r = f32[24,5] reshape(x)"},
    {"reshape_mixed", "x = f32[8,6] parameter(0) ROOT r = f32[4,12] reshape(x)"},
    {"reshape_ones", "x = f32[1,8,1,7] parameter(0) ROOT r = f32[8,7,1] reshape(x)"},
    {"reshape_flat", "x = f32[3,8] parameter(0) ROOT r = f32[24] reshape(x)"},
    {"reduce_add", "x = f32[8,5,6] parameter(0) z = f32[] constant(0) ROOT r = f32[8,6] reduce(x, z), dimensions={1}, to_apply=add"},
    {"reduce_all", "x = f32[7,6] parameter(0) z = f32[] constant(0) ROOT r = f32[] reduce(x, z), dimensions={0,1}, to_apply=add"},
    {"reduce_init", "x = f32[7,6] parameter(0) z = f32[] parameter(1) ROOT r = f32[6] reduce(x, z), dimensions={0}, to_apply=add"},
    {"reduce_max", "x = f32[9,4] parameter(0) z = f32[] constant(-inf) ROOT r = f32[4] reduce(x, z), dimensions={0}, to_apply=max"},
    {"reduce_argmax", "x = f32[9,5] parameter(0) i = s32[9,5] iota(), iota_dimension=0 z = f32[] constant(-inf) n = s32[] constant(2147483647) ROOT r = (f32[5], s32[5]) reduce(x, i, z, n), dimensions={0}, to_apply=argmax"},
    {"dot", "x = f32[8,6] parameter(0) y = f32[6,10] parameter(1) ROOT r = f32[8,10] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}"},
    {"dot_uneven", "x = f32[5,7] parameter(0) y = f32[7,9] parameter(1) ROOT r = f32[5,9] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}"},
    {"dot_batch", "x = f32[4,6,5] parameter(0) y = f32[4,5,8] parameter(1) ROOT r = f32[4,6,8] dot(x, y), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_contracting_dims={1}"},
    {"dot_two_contracting", "x = f32[4,6,5] parameter(0) y = f32[5,6,8] parameter(1) ROOT r = f32[4,8] dot(x, y), lhs_contracting_dims={1,2}, rhs_contracting_dims={1,0}"},
    {"dot_vector", "x = f32[9] parameter(0) y = f32[9] parameter(1) ROOT r = f32[] dot(x, y), lhs_contracting_dims={0}, rhs_contracting_dims={0}"},
    {"conv_same", "x = f32[4,9,8,3] parameter(0) k = f32[3,3,3,6] parameter(1) ROOT r = f32[4,9,8,6] convolution(x, k), window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f"},
    {"conv_stride", "x = f32[2,16,13,4] parameter(0) k = f32[3,5,4,6] parameter(1) ROOT r = f32[2,8,7,6] convolution(x, k), window={size=3x5 stride=2x2 pad=0_1x2_2}, dim_labels=b01f_01io->b01f"},
    {"conv_dilated", "x = f32[2,17,4] parameter(0) k = f32[3,4,4] parameter(1) ROOT r = f32[2,13,4] convolution(x, k), window={size=3 rhs_dilate=2}, dim_labels=b0f_0io->b0f"},
    {"conv_base_dilated", "x = f32[2,6,4] parameter(0) k = f32[3,4,4] parameter(1) ROOT r = f32[2,11,4] convolution(x, k), window={size=3 pad=1_1 lhs_dilate=2}, dim_labels=b0f_0io->b0f"},
    {"conv_depthwise", "x = f32[2,8,8] parameter(0) k = f32[3,1,8] parameter(1) ROOT r = f32[2,8,8] convolution(x, k), window={size=3 pad=1_1}, dim_labels=b0f_0io->b0f, feature_group_count=8"},
    {"conv_grouped", "x = f32[2,8,8] parameter(0) k = f32[3,2,8] parameter(1) ROOT r = f32[2,8,8] convolution(x, k), window={size=3 pad=1_1}, dim_labels=b0f_0io->b0f, feature_group_count=4"},
    {"conv_batch_group", "x = f32[8,6,3] parameter(0) k = f32[3,3,8] parameter(1) ROOT r = f32[2,4,8] convolution(x, k), window={size=3}, dim_labels=b0f_0io->b0f, batch_group_count=4"},
    {"conv_weight_gradient", "x = f32[4,8,3] parameter(0) g = f32[4,8,6] parameter(1) ROOT r = f32[3,3,6] convolution(x, g), window={size=8 pad=1_1}, dim_labels=f0b_i0o->b0f"},
    {"reduce_window", "x = f32[4,12,9] parameter(0) z = f32[] constant(-inf) ROOT r = f32[4,6,5] reduce-window(x, z), window={size=1x3x2 stride=1x2x2 pad=0_0x0_1x0_1}, to_apply=max"},
    {"reduce_window_sum", "x = f32[10,3] parameter(0) z = f32[] constant(0) ROOT r = f32[10,3] reduce-window(x, z), window={size=3x1 pad=2_0x0_0}, to_apply=add"},
    {"cumsum", "x = f32[9] parameter(0) z = f32[] constant(0) ROOT r = f32[9] reduce-window(x, z), window={size=9 pad=8_0}, to_apply=add"},
    {"select_and_scatter", "x = f32[4,8,6] parameter(0) s = f32[4,4,6] parameter(1) z = f32[] constant(0) ROOT r = f32[4,8,6] select-and-scatter(x, s, z), window={size=1x2x1 stride=1x2x1}, select=ge, scatter=add"},
    {"pad", "x = f32[8,5] parameter(0) v = f32[] parameter(1) ROOT r = f32[11,5] pad(x, v), padding=1_2x0_0"},
    {"pad_negative", "x = f32[9,6] parameter(0) v = f32[] parameter(1) ROOT r = f32[7,7] pad(x, v), padding=-2_0x2_-1"},
    {"pad_large", "x = f32[6] parameter(0) v = f32[] parameter(1) ROOT r = f32[17] pad(x, v), padding=9_2"},
    {"pad_interior", "x = f32[6,4] parameter(0) v = f32[] parameter(1) ROOT r = f32[11,4] pad(x, v), padding=0_0_1x0_0"},
    {"slice", "x = f32[12,7] parameter(0) ROOT r = f32[8,7] slice(x), slice={[3:11], [0:7]}"},
    {"slice_strided", "x = f32[13,6] parameter(0) ROOT r = f32[6,3] slice(x), slice={[1:13:2], [0:6:2]}"},
    {"slice_one", "x = f32[8,6] parameter(0) ROOT r = f32[1,6] slice(x), slice={[5:6], [0:6]}"},
    {"concatenate", "x = f32[5,4] parameter(0) y = f32[3,4] parameter(1) z = f32[8,4] parameter(2) ROOT r = f32[16,4] concatenate(x, y, z), dimensions={0}"},
    {"concatenate_uneven", "x = f32[4,7] parameter(0) y = f32[4,2] parameter(1) ROOT r = f32[4,9] concatenate(x, y), dimensions={1}"},
    {"reverse", "x = f32[8,7] parameter(0) ROOT r = f32[8,7] reverse(x), dimensions={0,1}"},
    {"iota", "x = s32[7,5] iota(), iota_dimension=0 y = s32[7,5] parameter(0) ROOT r = s32[7,5] add(x, y)"},
    {"iota_narrow", "y = u8[300] parameter(0) x = u8[300] iota(), iota_dimension=0 ROOT r = u8[300] xor(x, y)"},
    {"constant", "c = f32[3,4] constant({{1,2,3,4},{5,6,7,8},{9,10,11,12}}) y = f32[3,4] parameter(0) ROOT r = f32[3,4] multiply(c, y)"},
    {"dynamic_slice", "x = f32[12,6] parameter(0) i = s32[] parameter(1) j = s32[] parameter(2) ROOT r = f32[5,6] dynamic-slice(x, i, j), dynamic_slice_sizes={5,6}"},
    {"dynamic_slice_one", "x = s32[9,8] parameter(0) i = u32[] parameter(1) j = u32[] parameter(2) ROOT r = s32[1,4] dynamic-slice(x, i, j), dynamic_slice_sizes={1,4}"},
    {"dynamic_slice_pred", "x = pred[9,4] parameter(0) i = s64[] parameter(1) j = s64[] parameter(2) ROOT r = pred[2,4] dynamic-slice(x, i, j), dynamic_slice_sizes={2,4}"},
    {"dynamic_update_slice", "x = f32[12,6] parameter(0) u = f32[5,6] parameter(1) i = s32[] parameter(2) j = s32[] parameter(3) ROOT r = f32[12,6] dynamic-update-slice(x, u, i, j)"},
    {"dynamic_update_slice_one", "x = f32[7,8] parameter(0) u = f32[1,3] parameter(1) i = s8[] parameter(2) j = s8[] parameter(3) ROOT r = f32[7,8] dynamic-update-slice(x, u, i, j)"},
    {"gather_rows", "x = f32[9,6] parameter(0) i = s32[5,4] parameter(1) ROOT r = f32[5,4,6] gather(x, i), offset_dims={2}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=2, slice_sizes={1,6}"},
    {"gather_points", "x = f32[9,8] parameter(0) i = s32[6,2] parameter(1) ROOT r = f32[6] gather(x, i), offset_dims={}, collapsed_slice_dims={0,1}, start_index_map={1,0}, index_vector_dim=1, slice_sizes={1,1}"},
    {"gather_windows", "x = f32[8,6] parameter(0) i = u32[2,5] parameter(1) ROOT r = f32[5,3,6] gather(x, i), offset_dims={1,2}, collapsed_slice_dims={}, start_index_map={0,1}, index_vector_dim=0, slice_sizes={3,6}"},
    {"gather_batched", "x = f32[4,9,3] parameter(0) i = s64[4,5,1] parameter(1) ROOT r = f32[4,5,3] gather(x, i), offset_dims={2}, collapsed_slice_dims={1}, start_index_map={1}, operand_batching_dims={0}, start_indices_batching_dims={0}, index_vector_dim=2, slice_sizes={1,1,3}"},
    {"scatter_add", "x = f32[9,6] parameter(0) i = s32[5,1] parameter(1) u = f32[5,6] parameter(2) ROOT r = f32[9,6] scatter(x, i, u), update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=add"},
    {"scatter_set", "x = f32[9,4] parameter(0) i = u32[6,1] parameter(1) u = f32[6,4] parameter(2) ROOT r = f32[9,4] scatter(x, i, u), update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=second"},
    {"scatter_max_points", "x = f32[7,8] parameter(0) i = s64[8,2] parameter(1) u = f32[8] parameter(2) ROOT r = f32[7,8] scatter(x, i, u), update_window_dims={}, inserted_window_dims={0,1}, scatter_dims_to_operand_dims={0,1}, index_vector_dim=1, to_apply=max"},
    {"scatter_window", "x = f32[8,6] parameter(0) i = s32[4,1] parameter(1) u = f32[4,3,6] parameter(2) ROOT r = f32[8,6] scatter(x, i, u), update_window_dims={1,2}, inserted_window_dims={}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=add"},
    {"scatter_batched", "x = f32[4,6] parameter(0) i = s32[4,3,1] parameter(1) u = f32[4,3] parameter(2) ROOT r = f32[4,6] scatter(x, i, u), update_window_dims={}, inserted_window_dims={1}, scatter_dims_to_operand_dims={1}, input_batching_dims={0}, scatter_indices_batching_dims={0}, index_vector_dim=2, to_apply=add"},
    {"sort", "x = f32[8,7] parameter(0) ROOT r = f32[8,7] sort(x), dimensions={0}, is_stable=true, to_apply=lt"},
    {"sort_pairs", "x = f32[5,8] parameter(0) y = s32[5,8] parameter(1) ROOT r = (f32[5,8], s32[5,8]) sort(x, y), dimensions={1}, is_stable=true, to_apply=lt2"},
    {"topk", "x = f32[6,9] parameter(0) ROOT r = (f32[6,3], s32[6,3]) topk(x), k=3, largest=true"},
    {"fft", "x = f32[4,6,8] parameter(0) ROOT r = c64[4,6,5] fft(x), fft_type=RFFT, fft_length={8}", false},
    {"cholesky", "x = f32[4,3,3] parameter(0) t = f32[4,3,3] transpose(x), dimensions={0,2,1} g = f32[4,3,3] dot(x, t), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_contracting_dims={1} ROOT r = f32[4,3,3] cholesky(g), lower=true", false},
    {"triangular_solve", "a = f32[4,3,3] parameter(0) b = f32[4,3,6] parameter(1) ROOT r = f32[4,3,6] triangular-solve(a, b), left_side=true, lower=true, unit_diagonal=true, transpose_a=NO_TRANSPOSE", false},
    {"rng_bits", "s = u64[2] parameter(0) ROOT r = (u64[2], u32[8,6]) rng-bit-generator(s), algorithm=rng_three_fry"},
    {"bitcast_convert", "x = u32[6,4] parameter(0) ROOT r = u8[6,4,4] bitcast-convert(x)"},
    {"while", "x = f32[8,6] parameter(0) z = s32[] constant(0) t = (s32[], f32[8,6]) tuple(z, x) w = (s32[], f32[8,6]) while(t), condition=cond, body=body ROOT r = f32[8,6] get-tuple-element(w), index=1"},
    {"conditional", "p = pred[] parameter(0) x = f32[8,6] parameter(1) y = f32[8,6] parameter(2) ROOT r = f32[8,6] conditional(p, x, y), true_computation=double, false_computation=flip"},
    {"conditional_index", "p = s32[] parameter(0) x = f32[8,6] parameter(1) y = f32[8,6] parameter(2) ROOT r = f32[8,6] conditional(p, x, y), branch_computations={double, flip}"},
    {"dot_integers", "x = s32[6,9] parameter(0) y = s32[9,4] parameter(1) ROOT r = s32[6,4] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}"},
    {"dot_outer", "x = f32[7] parameter(0) y = f32[6] parameter(1) ROOT r = f32[7,6] dot(x, y)"},
    {"dot_transposed", "x = f32[6,8] parameter(0) y = f32[10,6] parameter(1) ROOT r = f32[8,10] dot(x, y), lhs_contracting_dims={0}, rhs_contracting_dims={1}"},
    {"dot_two_batches", "x = f32[2,4,3,5] parameter(0) y = f32[4,2,5,6] parameter(1) ROOT r = f32[2,4,3,6] dot(x, y), lhs_batch_dims={0,1}, rhs_batch_dims={1,0}, lhs_contracting_dims={3}, rhs_contracting_dims={2}"},
    {"conv_point", "x = f32[4,6,5] parameter(0) k = f32[1,5,8] parameter(1) ROOT r = f32[4,6,8] convolution(x, k), window={size=1}, dim_labels=b0f_0io->b0f"},
    {"conv_reversed", "x = f32[2,9,4] parameter(0) k = f32[3,4,6] parameter(1) ROOT r = f32[2,9,6] convolution(x, k), window={size=3 pad=1_1 rhs_reversal=1}, dim_labels=b0f_0io->b0f"},
    {"conv_negative_pad", "x = f32[2,12,3] parameter(0) k = f32[3,3,4] parameter(1) ROOT r = f32[2,9,4] convolution(x, k), window={size=3 pad=-1_0}, dim_labels=b0f_0io->b0f"},
    {"conv_image_gradient", "x = f32[2,8,4] parameter(0) k = f32[3,3,4] parameter(1) ROOT r = f32[2,16,3] convolution(x, k), window={size=3 pad=1_2 lhs_dilate=2 rhs_reversal=1}, dim_labels=b0f_0oi->b0f"},
    {"reduce_or", "x = pred[9,4] parameter(0) z = pred[] constant(false) ROOT r = pred[4] reduce(x, z), dimensions={0}, to_apply=either"},
    {"reduce_multiply", "x = f32[7,4] parameter(0) z = f32[] parameter(1) ROOT r = f32[4] reduce(x, z), dimensions={0}, to_apply=mul"},
    {"reduce_integers", "x = s32[5,9] parameter(0) z = s32[] parameter(1) ROOT r = s32[5] reduce(x, z), dimensions={1}, to_apply=add_s32"},
    {"reduce_max_init", "x = f32[9,4] parameter(0) z = f32[] parameter(1) ROOT r = f32[4] reduce(x, z), dimensions={0}, to_apply=max"},
    {"reduce_pair", "x = f32[6,8] parameter(0) y = s32[6,8] parameter(1) z = f32[] constant(0) m = s32[] constant(-9) ROOT r = (f32[6], s32[6]) reduce(x, y, z, m), dimensions={1}, to_apply=both"},
    {"reduce_window_dilated", "x = f32[14,4] parameter(0) z = f32[] constant(0) ROOT r = f32[10,4] reduce-window(x, z), window={size=3x1 rhs_dilate=2x1}, to_apply=add"},
    {"reduce_window_base_dilated", "x = f32[6,4] parameter(0) z = f32[] constant(0) ROOT r = f32[10,4] reduce-window(x, z), window={size=2x1 lhs_dilate=2x1}, to_apply=add"},
    {"reduce_window_pair", "x = f32[8,4] parameter(0) y = s32[8,4] parameter(1) z = f32[] constant(0) m = s32[] constant(-9) ROOT r = (f32[4,4], s32[4,4]) reduce-window(x, y, z, m), window={size=2x1 stride=2x1}, to_apply=both"},
    {"select_and_scatter_overlap", "x = f32[9,6] parameter(0) s = f32[4,6] parameter(1) z = f32[] constant(0) ROOT r = f32[9,6] select-and-scatter(x, s, z), window={size=3x1 stride=2x1}, select=ge, scatter=add"},
    {"pad_interior_negative", "x = f32[7,4] parameter(0) v = f32[] parameter(1) ROOT r = f32[11,4] pad(x, v), padding=-1_-1_1x0_0"},
    {"concatenate_three_dims", "x = f32[2,3,4] parameter(0) y = f32[2,5,4] parameter(1) ROOT r = f32[2,8,4] concatenate(x, y), dimensions={1}"},
    {"reverse_middle", "x = f32[3,8,5] parameter(0) ROOT r = f32[3,8,5] reverse(x), dimensions={1}"},
    {"clamp_arrays", "l = f32[9,4] parameter(0) x = f32[9,4] parameter(1) h = f32[9,4] parameter(2) ROOT r = f32[9,4] clamp(l, x, h)"},
    {"complex", "x = f32[6,5] parameter(0) y = f32[6,5] parameter(1) c = c64[6,5] complex(x, y) d = c64[6,5] multiply(c, c) ROOT r = f32[6,5] imag(d)"},
    {"dynamic_update_slice_two", "x = f32[9,8] parameter(0) u = f32[4,3] parameter(1) i = s32[] parameter(2) j = s32[] parameter(3) ROOT r = f32[9,8] dynamic-update-slice(x, u, i, j)"},
    {"gather_one_row", "x = f32[8,6] parameter(0) i = s32[1] parameter(1) ROOT r = f32[6] gather(x, i), offset_dims={0}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=0, slice_sizes={1,6}"},
    {"gather_columns", "x = f32[5,9] parameter(0) i = s32[8] parameter(1) ROOT r = f32[5,8] gather(x, i), offset_dims={0}, collapsed_slice_dims={1}, start_index_map={1}, index_vector_dim=1, slice_sizes={5,1}"},
    {"scatter_pair", "x = f32[9,4] parameter(0) y = s32[9,4] parameter(1) i = s32[5,1] parameter(2) u = f32[5,4] parameter(3) v = s32[5,4] parameter(4) ROOT r = (f32[9,4], s32[9,4]) scatter(x, y, i, u, v), update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=both"},
    {"scatter_columns", "x = f32[6,9] parameter(0) i = s32[4] parameter(1) u = f32[6,4] parameter(2) ROOT r = f32[6,9] scatter(x, i, u), update_window_dims={0}, inserted_window_dims={1}, scatter_dims_to_operand_dims={1}, index_vector_dim=1, to_apply=add"},
    {"sort_three_dims", "x = f32[3,8,4] parameter(0) ROOT r = f32[3,8,4] sort(x), dimensions={1}, is_stable=true, to_apply=lt"},
    {"inverse_fft", "x = f32[4,6,8] parameter(0) c = c64[4,6,8] convert(x) d = c64[4,6,8] fft(c), fft_type=IFFT, fft_length={6,8} ROOT r = f32[4,6,8] real(d)", false},
    {"triangular_solve_right", "a = f32[4,3,3] parameter(0) b = f32[4,6,3] parameter(1) ROOT r = f32[4,6,3] triangular-solve(a, b), left_side=false, lower=false, unit_diagonal=true, transpose_a=TRANSPOSE", false},
    {"rng_philox", "s = u64[3] parameter(0) ROOT r = (u64[3], u32[5,8]) rng-bit-generator(s), algorithm=rng_philox"},
    {"reduce_precision", "x = f32[7,8] parameter(0) ROOT r = f32[7,8] reduce-precision(x), exponent_bits=5, mantissa_bits=2"},
    {"tuple_of_two", "x = f32[8,6] parameter(0) y = f32[8,6] parameter(1) s = f32[8,6] add(x, y) d = f32[8,6] subtract(x, y) ROOT r = (f32[8,6], f32[8,6]) tuple(s, d)"},
    {"call", "x = f32[8,6] parameter(0) a = f32[8,6] call(x), to_apply=flip ROOT r = f32[8,6] add(a, x)"},
    {"nested_while", "x = f32[8,6] parameter(0) z = s32[] constant(1) t = (s32[], f32[8,6]) tuple(z, x) w = (s32[], f32[8,6]) while(t), condition=cond, body=outer ROOT r = f32[8,6] get-tuple-element(w), index=1"},
    {"scan", "x = f32[8,6] parameter(0) c = f32[6] parameter(1) ROOT r = (f32[8,6], f32[6]) scan(x, c), dimensions={0}, num_carries=1, to_apply=running"},
    {"scan_along_columns", "x = f32[6,9] parameter(0) c = f32[6] parameter(1) s = (f32[6,9], f32[6]) scan(x, c), dimensions={1}, is_reverse=true, num_carries=1, to_apply=running ROOT r = f32[6,9] get-tuple-element(s), index=0"},
    {"scan_carry", "x = f32[7,6] parameter(0) c = f32[6] parameter(1) s = (f32[7,6], f32[6]) scan(x, c), dimensions={0}, num_carries=1, to_apply=running ROOT r = f32[6] get-tuple-element(s), index=1"},
    {"scan_middle", "x = f32[8,5,3] parameter(0) c = f32[8,3] parameter(1) ROOT r = (f32[8,5,3], f32[8,3]) scan(x, c), dimensions={1}, num_carries=1, to_apply=running_planes"},
    {"scan_reduces", "x = f32[5,6] parameter(0) c = f32[6] parameter(1) n = s32[] constant(3) ROOT r = (f32[5], f32[5,6], s32[], f32[6]) scan(x, n, c), dimensions={0}, num_carries=2, to_apply=counts"},
    {"scan_recurrent", "x = f32[5,8,6] parameter(0) u = s32[5,8] parameter(1) w = f32[6,6] parameter(2) h = f32[8,6] parameter(3) s = (s32[5,8], f32[5,8,6], f32[6,6], f32[8,6]) scan(x, u, w, h), dimensions={0}, num_carries=2, to_apply=recurrent ROOT r = f32[5,8,6] get-tuple-element(s), index=1"},
    {"scan_flips", "x = f32[4,9,5] parameter(0) c = f32[9,5] parameter(1) ROOT r = (f32[4,9,5], f32[9,5]) scan(x, c), dimensions={0}, num_carries=1, to_apply=flips"},
    {"scan_twice", "x = f32[8,6] parameter(0) c = f32[6] parameter(1) s = (f32[8,6], f32[6]) scan(x, c), dimensions={0}, num_carries=1, to_apply=running y = f32[8,6] get-tuple-element(s), index=0 ROOT r = (f32[8,6], f32[6]) scan(y, c), dimensions={0}, num_carries=1, to_apply=running"},
    {"scan_of_loops", "x = f32[5,6] parameter(0) c = f32[6] parameter(1) ROOT r = (f32[5,6], f32[6]) scan(x, c), dimensions={0}, num_carries=1, to_apply=inner_loop"},
    {"cumsum_rows", "x = f32[8,9] parameter(0) z = f32[] constant(0) ROOT r = f32[8,9] reduce-window(x, z), window={size=1x9 pad=0_0x8_0}, to_apply=add"},
    {"cumsum_from_the_end", "x = s32[10,6] parameter(0) z = s32[] constant(0) ROOT r = s32[10,6] reduce-window(x, z), window={size=10x1 pad=0_9x0_0}, to_apply=add_s32"},
    {"cumprod", "x = f32[9,4] parameter(0) z = f32[] constant(1) ROOT r = f32[9,4] reduce-window(x, z), window={size=9x1 pad=8_0x0_0}, to_apply=mul"},
    {"cummax_wide", "x = f32[7,5] parameter(0) z = f32[] constant(-inf) ROOT r = f32[7,5] reduce-window(x, z), window={size=12x1 pad=11_0x0_0}, to_apply=max"},
    {"cumulative_init", "x = f32[9] parameter(0) z = f32[] parameter(1) ROOT r = f32[9] reduce-window(x, z), window={size=9 pad=0_8}, to_apply=max"},
    {"cumulative_computed", "x = f32[11,3] parameter(0) z = f32[] constant(-inf) ROOT r = f32[11,3] reduce-window(x, z), window={size=11x1 pad=10_0x0_0}, to_apply=larger_of"},
    {"associative_scan", "x = f32[8,6] parameter(0) a = f32[4,6] slice(x), slice={[0:8:2], [0:6]} b = f32[4,6] slice(x), slice={[1:8:2], [0:6]} s = f32[4,6] add(a, b) z = f32[] constant(0) e = f32[8,6] pad(a, z), padding=0_1_1x0_0 o = f32[8,6] pad(s, z), padding=1_0_1x0_0 ROOT r = f32[8,6] add(e, o)"},
    {"chain", "x = f32[8,6] parameter(0) y = f32[6,4] parameter(1) b = f32[4] parameter(2) d = f32[8,4] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0} e = f32[8,4] broadcast(b), dimensions={1} s = f32[8,4] add(d, e) z = f32[] constant(0) m = f32[4] reduce(s, z), dimensions={0}, to_apply=add n = f32[8,4] broadcast(m), dimensions={1} ROOT r = f32[8,4] subtract(s, n)"},
};

// {devices=[...]<=[n]} forms for an array of this rank on n devices: whole; each dimension by all devices; each dimension by a
// part of them; pairs of dimensions.
std::vector<std::string> Shardings(int64_t rank, int64_t partitions) {
  std::vector<std::string> texts = {"{replicated}"};
  const auto tiles = [&](int64_t a, int64_t parts_a, int64_t b, int64_t parts_b) {
    std::string text = "{devices=[";
    for (int64_t d = 0; d < rank; ++d) text += fmt::format("{}{}", d > 0 ? "," : "", d == a ? parts_a : d == b ? parts_b : 1);
    return text;
  };
  for (int64_t d = 0; d < rank; ++d) texts.push_back(tiles(d, partitions, -1, 1) + fmt::format("]<=[{}]}}", partitions));
  if (partitions < 4) return texts;
  const int64_t minor = partitions / 2;
  for (int64_t d = 0; d < rank; ++d) {
    texts.push_back(tiles(d, 2, -1, 1) + fmt::format(",{}]<=[{}] last_tile_dim_replicate}}", minor, partitions));
    texts.push_back(tiles(d, minor, -1, 1) + fmt::format(",2]<=[2,{}]T(1,0) last_tile_dim_replicate}}", minor));
    texts.push_back(tiles(d, partitions, -1, 1) + fmt::format("]<=[2,{}]T(1,0)}}", minor));
    for (int64_t e = 0; e < rank; ++e) {
      if (e == d) continue;
      texts.push_back(tiles(std::min(d, e), d < e ? 2 : minor, std::max(d, e), d < e ? minor : 2) +
                      (d < e ? fmt::format("]<=[{}]}}", partitions) : fmt::format("]<=[2,{}]T(1,0)}}", minor)));
    }
  }
  return texts;
}

// The arrays of a case that get shardings: parameters, then the root.
std::vector<hlo::Instruction*> ShardedOf(const hlo::Module& module) {
  std::vector<hlo::Instruction*> arrays(module.entry()->parameters());
  arrays.push_back(module.entry()->root());
  return arrays;
}

hlo::Sharding ShardingFor(const hlo::Instruction& instruction, const std::string& text) {
  const hlo::Sharding sharding = hlo::ParseSharding(text);
  if (!instruction.shape().IsTuple()) return sharding;
  hlo::Sharding tuple;
  tuple.kind = hlo::Sharding::Kind::kTuple;
  for (const hlo::Shape& leaf : hlo::FlattenShape(instruction.shape())) {
    const size_t tiled = sharding.tile_dimensions.size() - (sharding.replicate_on_last_tile_dim ? 1 : 0);
    const bool fits = static_cast<size_t>(leaf.rank()) == tiled && leaf.rank() > 1;
    tuple.elements.push_back(fits ? sharding : hlo::Sharding{});
  }
  return tuple;
}

}  // namespace

const std::vector<OpCase>& OpCases() {
  static const std::vector<OpCase> kCases = [] {
    std::vector<OpCase> cases;
    for (const Template& t : kTemplates) {
      cases.push_back({t.name, fmt::format("HloModule {}\n{}\nENTRY main {{ {} }}\n", t.name, kReducers, t.body), t.is_exact});
    }
    return cases;
  }();
  return kCases;
}

int64_t ForEachShardedCase(int64_t first, int64_t stride, int64_t limit, const std::function<void(const ShardedCase&)>& visit) {
  int64_t number = 0;
  for (const OpCase& op : OpCases()) {
    const std::unique_ptr<hlo::Module> plain = Parse(op.text);
    for (const int64_t partitions : {2, 3, 4, 8}) {
      std::vector<std::vector<std::string>> choices;
      int64_t combinations = 1;
      for (const hlo::Instruction* array : ShardedOf(*plain)) {
        const std::vector<hlo::Shape> leaves = hlo::FlattenShape(array->shape());
        const auto widest = std::max_element(leaves.begin(), leaves.end(), [](const hlo::Shape& a, const hlo::Shape& b) { return a.rank() < b.rank(); });
        choices.push_back(Shardings(widest->rank(), partitions));
        combinations *= static_cast<int64_t>(choices.back().size());
      }
      // A step that is coprime to most counts of choices, so that every choice of every array is met.
      const int64_t step = combinations <= limit ? 1 : combinations / limit | 1;
      for (int64_t c = 0; c < combinations; c += step, ++number) {
        if (number % stride != first % stride) continue;
        ShardedCase sharded{fmt::format("{}/{}", op.name, partitions), std::shared_ptr<hlo::Module>(plain->Clone()), partitions, op.is_exact};
        int64_t rest = c;
        const std::vector<hlo::Instruction*> arrays = ShardedOf(*sharded.module);
        for (size_t i = 0; i < arrays.size(); ++i) {
          const auto size = static_cast<int64_t>(choices[i].size());
          const std::string& text = choices[i][static_cast<size_t>(rest % size)];
          rest /= size;
          arrays[i]->sharding = ShardingFor(*arrays[i], text);
          sharded.name += "/" + text;
        }
        visit(sharded);
      }
    }
  }
  return number;
}

}  // namespace hlorun::passes
