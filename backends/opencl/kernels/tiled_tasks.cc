#include "backends/opencl/kernels/tiled_tasks.h"

#include <numeric>

#include "backends/opencl/codegen/powers_of_two.h"
#include "backends/opencl/codegen/widener.h"
#include "backends/opencl/kernels/fragment_product.h"
#include "backends/opencl/kernels/index_math.h"
#include "backends/opencl/kernels/join_parts.h"

namespace hlorun::opencl {
namespace {

using ir::Expr;
using ir::Op;

// The input element that an output and a tap of the window meet along one dimension.
ElementPlace PlaceOf(const ConvolutionDimension& d, const Expr& out, const Expr& tap) {
  const Expr at = out * d.stride + tap * d.dilation - d.low;
  const int64_t last = d.Reach(d.out) - 1 - d.low;
  ElementPlace place{at, nullptr};
  const auto require = [&](const Expr& condition) {
    place.inside = place.inside ? ir::And(place.inside, condition) : condition;
  };
  if (d.low > 0) require(ir::Compare(Op::kGe, at, Index(0)));
  if (last >= (d.in - 1) * d.base_dilation + 1) require(at < Index((d.in - 1) * d.base_dilation + 1));
  if (d.base_dilation > 1) {
    require(ir::Compare(Op::kEq, ir::Binary(Op::kMod, at, Index(d.base_dilation)), Index(0)));
    place.index = ir::Binary(Op::kDiv, at, Index(d.base_dilation));
  }
  return place;
}

// The largest value that is plain.
std::optional<int64_t> MostOf(const Expr& x) {
  if (x->kind == ir::ExprKind::kIntConstant) return x->integer;
  if (x->kind == ir::ExprKind::kVar && x->var->max >= x->var->min) return x->var->max;
  if (x->kind != ir::ExprKind::kBinary || x->op != Op::kMul) return std::nullopt;
  const std::optional<int64_t> a = MostOf(x->args[0]), b = MostOf(x->args[1]);
  return a && b ? std::optional(*a * *b) : std::nullopt;
}

// The tap of the window and the channel that k stands for. A place within a block that lies in one tap changes the
// channel alone: the tap is then the same for the whole block.
struct Tap {
  Expr tap, channel;
};
Tap TapOf(const Expr& k, int64_t channels) {
  if (k->kind == ir::ExprKind::kBinary && k->op == Op::kAdd) {
    const Expr &block = k->args[0], &within = k->args[1];
    const std::optional<int64_t> most = MostOf(within);
    const int64_t size = PowerFrom(most.value_or(0) + 1);
    if (most && channels % size == 0 && KnownFactor(block, size) == size)
      return {Quotient(block, channels), Remainder(block, channels) + within};
  }
  return {Quotient(k, channels), Remainder(k, channels)};
}

// `x` further on by as many as each group before `group` has.
Expr InGroup(const Expr& x, const Expr& group, int64_t of_each) { return group * of_each + x; }

// The largest power of two in `extent`, as far as vectors go.
int64_t RunIn(int64_t extent) { return std::gcd<int64_t>(extent, 16); }

}  // namespace

TiledProduct TiledDot(const ProductTask& task, const ProductShape& shape) {
  TiledProduct product{.instruction = task.instruction,
                       .hero = task.hero,
                       .aliases = task.aliases,
                       .batch = shape.batch,
                       .m = shape.m,
                       .n = shape.n,
                       .k = shape.k,
                       .compute_type = shape.compute_type,
                       .lhs = {},
                       .rhs = {},
                       .result = {}};
  // Rows of the matrix as it is stored, whichever of its dimensions they are.
  const auto stored = [](int64_t outer, int64_t k, bool k_is_fastest) {
    return [=](const Expr& batch, const Expr& o, const Expr& p) {
      const Expr first = batch * (outer * k);
      return ElementPlace{k_is_fastest ? first + o * k + p : first + p * outer + o, nullptr};
    };
  };
  product.lhs = {task.lhs,
                 shape.lhs_type,
                 shape.batch * shape.m * shape.k,
                 stored(shape.m, shape.k, !shape.lhs_transposed),
                 !shape.lhs_transposed,
                 RunIn(shape.lhs_transposed ? shape.m : shape.k)};
  product.rhs = {task.rhs,
                 shape.rhs_type,
                 shape.batch * shape.n * shape.k,
                 stored(shape.n, shape.k, shape.rhs_transposed),
                 shape.rhs_transposed,
                 RunIn(shape.rhs_transposed ? shape.k : shape.n)};
  const bool swapped = shape.swapped, batched = task.hero.shape().rank() == 3;
  product.result = [swapped, batched](const Expr& batch, const Expr& row, const Expr& column) {
    RunIndex at;
    if (batched) at.index.push_back(batch);
    at.lane_dimension = at.index.size() + (swapped ? 0 : 1);
    at.index.push_back(swapped ? column : row);
    at.index.push_back(swapped ? row : column);
    return at;
  };
  return product;
}

TiledProduct TiledConvolution(const ConvolutionTask& task, const ConvolutionShape& shape) {
  TiledProduct product{.instruction = task.instruction,
                       .hero = task.hero,
                       .aliases = task.aliases,
                       .batch = shape.groups,
                       .m = shape.batch * shape.rows.out * shape.columns.out,
                       .n = shape.group_features(),
                       .k = shape.Depth(),
                       .compute_type = shape.compute_type,
                       .lhs = {},
                       .rhs = {},
                       .result = {}};
  const int64_t channels = shape.groups * shape.channels, features = shape.group_features();
  const auto pixels = [shape, channels](const Expr& group, const Expr& pixel, const Expr& k) {
    const auto [tap, channel] = TapOf(k, shape.channels);
    const Expr row_of_pixel = Quotient(pixel, shape.columns.out);
    const ElementPlace row =
        PlaceOf(shape.rows, Remainder(row_of_pixel, shape.rows.out), Quotient(tap, shape.columns.window));
    const ElementPlace column =
        PlaceOf(shape.columns, Remainder(pixel, shape.columns.out), Remainder(tap, shape.columns.window));
    const Expr image = Quotient(row_of_pixel, shape.rows.out);
    const Expr at = ((image * shape.rows.in + row.index) * shape.columns.in + column.index) * channels + channel;
    return ElementPlace{InGroup(at, group, shape.channels), row.inside && column.inside
                                                                ? ir::And(row.inside, column.inside)
                                                            : row.inside ? row.inside
                                                                         : column.inside};
  };
  product.lhs = {task.input, shape.input_type,     shape.batch * shape.rows.in * shape.columns.in * channels, pixels,
                 true,       RunIn(shape.channels)};
  const auto weights = [shape, features](const Expr& group, const Expr& feature, const Expr& k) {
    return ElementPlace{InGroup(k * shape.features + feature, group, features), nullptr};
  };
  product.rhs = {task.weights, shape.weight_type, shape.Depth() * shape.features, weights, false, RunIn(features)};
  product.result = [shape, features](const Expr& group, const Expr& pixel, const Expr& feature) {
    const Expr row_of_pixel = Quotient(pixel, shape.columns.out);
    RunIndex at;
    at.index.push_back(Quotient(row_of_pixel, shape.rows.out));
    if (shape.spatial_rank == 2) at.index.push_back(Remainder(row_of_pixel, shape.rows.out));
    at.index.push_back(Remainder(pixel, shape.columns.out));
    at.index.push_back(InGroup(feature, group, features));
    at.lane_dimension = at.index.size() - 1;
    return at;
  };
  return product;
}

std::vector<KernelDraft> GpuProductKernels(const TiledProduct& product, const ProductSchedule& schedule,
                                           const DeviceSpec& device) {
  std::vector<KernelDraft> kernels;
  if (const auto* fragments = std::get_if<FragmentSchedule>(&schedule))
    kernels.push_back(FragmentProductKernel(product, *fragments, device));
  else
    kernels.push_back(TiledProductKernel(product, std::get<TiledSchedule>(schedule), device));
  if (const int64_t parts = PartsOfSums(schedule, product.k); parts > 1)
    kernels.push_back(JoinPartsKernel(product, parts, device));
  return kernels;
}

int64_t PartBytes(const ProductShape& shape, const ProductSchedule& schedule) {
  const int64_t parts = PartsOfSums(schedule, shape.k);
  return parts == 1 ? 0 : parts * shape.batch * shape.m * shape.n * hlo::BytesOf(shape.compute_type);
}

}  // namespace hlorun::opencl
