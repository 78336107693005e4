// Rules whose element needs a loop: reduce, reduce-window, dot, convolution.
#include <algorithm>

#include "backends/opencl/codegen/fused_ops.h"
#include "backends/opencl/codegen/window_place.h"
#include "hlo/builder.h"
#include "hlo/error.h"

namespace hlorun::opencl {
namespace {

using namespace ir;  // NOLINT: this file is about nothing else
using hlo::Contains;
using hlo::Opcode;

// A variable (or two) for each accumulated value.
struct Accumulators {
  std::vector<Var> re, im;

  Accumulators(Body& body, const Values& initial) {
    for (const Value& v : initial) {
      re.push_back(body.Mutable(v.re));
      im.push_back(v.im ? body.Mutable(v.im) : nullptr);
    }
  }
  Values Current() const {
    Values values;
    for (size_t i = 0; i < re.size(); ++i) values.push_back({Ref(re[i]), im[i] ? Ref(im[i]) : nullptr});
    return values;
  }
  void Set(Body& body, const Values& values) const {
    for (size_t i = 0; i < re.size(); ++i) {
      body.Add(Assign(re[i], values[i].re));
      if (im[i]) body.Add(Assign(im[i], values[i].im));
    }
  }
};

hlo::Dims WindowSizes(const hlo::Window& window) {
  hlo::Dims sizes;
  for (const auto& w : window) sizes.push_back(w.size);
  return sizes;
}

// Whether the taps along the innermost dimension are written one after the other: each then leaves the operand from a
// result on that is known beforehand, where the loop over the results is cut (loop_pieces.h). Each tap has cuts of its
// own: rows that are hardly more than their ends had rather ask, unless every lane would be asked for.
bool WritesTapsOut(const hlo::Window& window, const hlo::Shape& result) {
  constexpr int64_t kMostTaps = 8, kLongRow = 16;
  if (window.empty()) return false;
  const hlo::WindowDimension& minor = window.back();
  const bool asks = minor.padding_low > 0 || minor.padding_high > 0;
  return asks && minor.size <= kMostTaps && minor.base_dilation == 1 &&
         (minor.stride > 1 || result.dimensions().back() >= minor.size * kLongRow);
}

// The places in a window, those of the innermost dimension last.
void OverTaps(const OpAt& at, const hlo::Window& window, const std::function<void(const Indices&)>& body) {
  hlo::Dims looped = WindowSizes(window);
  const bool written_out = WritesTapsOut(window, hlo::FlattenShape(at.op.shape())[0]);
  if (written_out) looped.pop_back();
  at.values.SerialLoops(looped, [&](const Indices& k) {
    if (!written_out) return body(k);
    Indices place = k;
    place.emplace_back();
    for (int64_t tap = 0; tap < window.back().size; ++tap) {
      place.back() = tap;
      body(place);
    }
  });
}

// Ops that compute an element, up to so many.
int OpsOf(const hlo::Instruction& value, int most) {
  if (value.Is(Opcode::kParameter) || value.Is(Opcode::kConstant) || most <= 0) return 0;
  int ops = 1;
  for (const hlo::Instruction* operand : value.operands()) ops += OpsOf(*operand, most - ops);
  return ops;
}

// A reduction of rows of a few elements, each little work: where each of them lies in its row is known if they are
// written one after the other, so that all come from the same vectors (interleaved.h).
bool IsShortRow(const hlo::Instruction& reduce) {
  constexpr int64_t kLongest = 9;  // of more, vectors wait for registers
  const hlo::Shape& shape = reduce.operand(0)->shape();
  const int64_t minor = shape.rank() - 1;
  constexpr int kMostOps = 8;
  return reduce.dimensions() == std::vector<int64_t>{minor} && shape.dimension(minor) <= kLongest &&
         OpsOf(*reduce.operand(0), kMostOps + 1) <= kMostOps;
}

// acc += x * y in the result's computation type.
void MultiplyInto(const OpAt& at, const Accumulators& sum, Value x, Value y, const Expr& inside) {
  const hlo::ElementType type = at.op.shape().element_type();
  // Products of bf16 and f16 are exact in f32, where sums stay until the end.
  const hlo::ElementType wide = hlo::IsFloating(type) && hlo::BitsOf(type) < 32 ? hlo::ElementType::kF32 : type;
  x = EmitConvert(x, at.OperandShape(0).element_type(), wide, at.body());
  y = EmitConvert(y, at.OperandShape(1).element_type(), wide, at.body());
  const Value product = EmitBinary(Opcode::kMultiply, wide, x, y, at.body());
  Value next = EmitBinary(Opcode::kAdd, wide, sum.Current()[0], product, at.body());
  if (inside) next = SelectValue(inside, next, sum.Current()[0]);
  sum.Set(at.body(), {next});
}

Values RoundedSum(const OpAt& at, const Accumulators& sum) {
  Value value = sum.Current()[0];
  if (!value.im) value.re = at.body().Name(RoundTo(value.re, at.op.shape().element_type()));
  return {value};
}

}  // namespace

Values ReduceRule(const OpAt& at) {
  const int64_t count = at.op.operand_count() / 2;
  Values initial;
  for (int64_t i = 0; i < count; ++i) initial.push_back(at.Scalar(count + i));
  const Accumulators acc(at.body(), initial);
  const hlo::Shape& shape = at.OperandShape(0);
  hlo::Dims extents;
  for (const int64_t d : at.op.dimensions()) extents.push_back(shape.dimension(d));
  const auto element = [&](const Indices& k) {
    Indices operand(static_cast<size_t>(shape.rank()));
    for (size_t d = 0, kept = 0; d < operand.size(); ++d) {
      const auto found = std::find(at.op.dimensions().begin(), at.op.dimensions().end(), static_cast<int64_t>(d));
      if (found == at.op.dimensions().end())
        operand[d] = at.index[kept++];
      else
        operand[d] = k[static_cast<size_t>(found - at.op.dimensions().begin())];
    }
    Values arguments = acc.Current();
    for (int64_t i = 0; i < count; ++i) arguments.push_back(at.Operand(i, operand));
    acc.Set(at.body(), at.values.Apply(*at.op.called(), std::move(arguments)));
  };
  if (IsShortRow(at.op)) {
    for (int64_t k = 0; k < extents[0]; ++k) element({k});
  } else {
    at.values.SerialLoops(extents, element);
  }
  return acc.Current();
}

Values ReduceWindowRule(const OpAt& at) {
  const int64_t count = at.op.operand_count() / 2;
  const hlo::Window& window = at.op.As<hlo::attr::Windowed>().window;
  Values initial;
  for (int64_t i = 0; i < count; ++i) initial.push_back(at.Scalar(count + i));
  const Accumulators acc(at.body(), initial);
  OverTaps(at, window, [&](const Indices& k) {
    Indices operand;
    Expr inside = Pred(true);
    for (size_t d = 0; d < window.size(); ++d) {
      const WindowPlace place =
          PlaceInWindow(at.math(), window[d], at.index[d], k[d], at.OperandShape(0).dimensions()[d]);
      operand.push_back(place.index);
      inside = And(inside, place.inside);
    }
    inside = at.body().Name(inside, "m");
    const Values before = acc.Current();
    Values arguments = before;
    for (int64_t i = 0; i < count; ++i) arguments.push_back(at.Operand(i, operand, inside));
    Values after = at.values.Apply(*at.op.called(), std::move(arguments));
    for (size_t i = 0; i < after.size(); ++i) after[i] = SelectValue(inside, after[i], before[i]);
    acc.Set(at.body(), after);
  });
  return acc.Current();
}

Values DotRule(const OpAt& at) {
  const auto& dot = at.op.As<hlo::attr::Dot>();
  const hlo::Shape &lhs = at.OperandShape(0), &rhs = at.OperandShape(1);
  Indices x(static_cast<size_t>(lhs.rank())), y(static_cast<size_t>(rhs.rank()));
  size_t next = 0;
  for (size_t i = 0; i < dot.lhs_batch.size(); ++i, ++next) {
    x[static_cast<size_t>(dot.lhs_batch[i])] = y[static_cast<size_t>(dot.rhs_batch[i])] = at.index[next];
  }
  for (int64_t d = 0; d < lhs.rank(); ++d) {
    if (!Contains(dot.lhs_batch, d) && !Contains(dot.lhs_contracting, d)) x[static_cast<size_t>(d)] = at.index[next++];
  }
  for (int64_t d = 0; d < rhs.rank(); ++d) {
    if (!Contains(dot.rhs_batch, d) && !Contains(dot.rhs_contracting, d)) y[static_cast<size_t>(d)] = at.index[next++];
  }
  hlo::Dims extents;
  for (const int64_t d : dot.lhs_contracting) extents.push_back(lhs.dimension(d));
  const Accumulators sum(at.body(), {ZeroOf(at.op.shape().element_type())});
  at.values.SerialLoops(extents, [&](const Indices& k) {
    for (size_t i = 0; i < k.size(); ++i) {
      x[static_cast<size_t>(dot.lhs_contracting[i])] = y[static_cast<size_t>(dot.rhs_contracting[i])] = k[i];
    }
    MultiplyInto(at, sum, at.Operand(0, x), at.Operand(1, y), nullptr);
  });
  return RoundedSum(at, sum);
}

Values ConvolutionRule(const OpAt& at) {
  const auto& conv = at.op.As<hlo::attr::Convolution>();
  const hlo::attr::ConvolutionDimensions& dims = conv.dimensions;
  const hlo::Shape &input = at.OperandShape(0), &kernel = at.OperandShape(1);
  const auto out = [&](int64_t d) { return at.index[static_cast<size_t>(d)]; };
  const int64_t group_features = kernel.dimension(dims.kernel_input_feature);
  const int64_t out_features = kernel.dimension(dims.kernel_output_feature);

  Indices x(static_cast<size_t>(input.rank())), w(static_cast<size_t>(kernel.rank()));
  const Index feature = out(dims.output_feature);
  w[static_cast<size_t>(dims.kernel_output_feature)] = feature;
  Index batch = out(dims.output_batch);
  if (conv.batch_group_count > 1) {
    const int64_t batch_size = input.dimension(dims.input_batch) / conv.batch_group_count;
    batch = at.math().Add(
        batch, at.math().Mul(at.math().FloorDiv(feature, out_features / conv.batch_group_count), batch_size));
  }
  x[static_cast<size_t>(dims.input_batch)] = batch;
  Index first_feature;
  if (conv.feature_group_count > 1) {
    first_feature = at.math().Mul(at.math().FloorDiv(feature, out_features / conv.feature_group_count), group_features);
  }
  hlo::Dims extents = WindowSizes(conv.window);
  extents.push_back(group_features);
  const Accumulators sum(at.body(), {ZeroOf(at.op.shape().element_type())});
  at.values.SerialLoops(extents, [&](const Indices& k) {
    Expr inside = Pred(true);
    for (size_t d = 0; d < conv.window.size(); ++d) {
      const hlo::WindowDimension& window = conv.window[d];
      const int64_t input_dim = dims.input_spatial[d];
      const WindowPlace place =
          PlaceInWindow(at.math(), window, out(dims.output_spatial[d]), k[d], input.dimension(input_dim));
      x[static_cast<size_t>(input_dim)] = place.index;
      inside = And(inside, place.inside);
      w[static_cast<size_t>(dims.kernel_spatial[d])] =
          window.window_reversal ? at.math().Sub(window.size - 1, k[d]) : k[d];
    }
    x[static_cast<size_t>(dims.input_feature)] = at.math().Add(first_feature, k.back());
    w[static_cast<size_t>(dims.kernel_input_feature)] = k.back();
    const bool always = IsIntConstant(inside, 1);
    inside = at.body().Name(inside, "m");
    MultiplyInto(at, sum, at.Operand(0, x, inside), at.Operand(1, w), always ? nullptr : inside);
  });
  return RoundedSum(at, sum);
}

}  // namespace hlorun::opencl
