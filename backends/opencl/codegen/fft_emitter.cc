#include <algorithm>
#include <cmath>
#include <numbers>

#include "backends/opencl/codegen/emission.h"
#include "backends/opencl/codegen/emitters.h"
#include "passes/expand/fft_stages.h"

namespace hlorun::opencl {
namespace {

using hlo::ElementType;
using hlo::Instruction;
using ir::BufferRef;
using ir::Expr;
using ir::Var;
using passes::FftStage;

// Both parts of both arrays between which stages go: half the second cache of a small core.
constexpr int64_t kPrivateBytes = 256 << 10;
constexpr int64_t kColumnBytes = 64;  // of a tile: what memory gives at once

int64_t PrivateBytes(ElementType type, int64_t points) { return 4 * points * hlo::BytesOf(type); }
int64_t TileOfColumns(ElementType type) { return kColumnBytes / hlo::BytesOf(type); }

// A complex value in two expressions.
struct Point {
  Expr re, im;
};
using Points = std::vector<Point>;

Point operator+(const Point& a, const Point& b) { return {a.re + b.re, a.im + b.im}; }
Point operator-(const Point& a, const Point& b) { return {a.re - b.re, a.im - b.im}; }

// All stages of one transform, between two private arrays; the first reads the operands, the last writes the results.
// Of [batch, n], a row at a time; of [batch, n, columns], which are transformed side by side, a tile of columns.
class FftKernel {
 public:
  explicit FftKernel(const EmitRequest& request)
      : e_(request.instruction, request.aliases, request.context),
        call_(*request.hero.instruction),
        type_(call_.operand(0)->shape().element_type()),
        rows_(call_.operand(0)->shape().dimension(0)),
        n_(call_.operand(0)->shape().dimension(1)),
        columns_(call_.operand(0)->shape().rank() == 2 ? 0 : call_.operand(0)->shape().dimension(2)),
        tile_(columns_ == 0 ? 1 : std::min(columns_, TileOfColumns(type_))),
        stages_(passes::FftStagesOf(n_)) {}

  EmittedLaunch Emit() {
    const Var row = e_.IndexVar("row", rows_);
    row_ = e_.math().Of(row);
    e_.values().Open();
    const Var tile = HasColumns() ? OpenTile() : nullptr;
    if (stages_.size() > 1) {
      for (const char* name : {"first", "second"})
        arrays_.push_back({e_.PrivateArray(name, type_, n_ * tile_), e_.PrivateArray(name, type_, n_ * tile_)});
    }
    for (size_t i = 0; i < stages_.size(); ++i) Stage(i);
    ir::Stmt body = e_.values().Close();
    const int64_t grain = GrainOf(WorkOf(body));
    if (tile) body = ir::For(ir::LoopRole::kParallel, tile, e_.IndexInt(0), e_.IndexInt(tile->max + 1), body);
    return e_.Finish(ir::For(ir::LoopRole::kParallel, row, e_.IndexInt(0), e_.IndexInt(rows_), body), grain);
  }

 private:
  struct Array {
    BufferRef re, im;
  };

  bool HasColumns() const { return columns_ > 0; }

  // The last tile reaches back over columns of the one before.
  Var OpenTile() {
    Var tile = e_.IndexVar("tile", (columns_ + tile_ - 1) / tile_);
    first_column_ = ir::MakeIndex("first_column", 0, columns_ - tile_, e_.math().type());
    if (columns_ % tile_ == 0) first_column_->factor = tile_;
    e_.body().Add(ir::Let(first_column_, ir::Min(ir::Ref(tile) * tile_, e_.IndexInt(columns_ - tile_))));
    return tile;
  }

  // Vectors are of columns, where there are such; else of `count` transforms of a stage.
  void ForEach(int64_t count, const std::function<void(const Index&)>& body) {
    if (!HasColumns()) return VectorLoop(count, body);
    e_.values().SerialLoop(count, [&](const Index& i) {
      VectorLoop(tile_, [&](const Index& column) {
        column_ = column;
        body(i);
      });
    });
  }

  void VectorLoop(int64_t count, const std::function<void(const Index&)>& body) {
    int width = e_.Lanes();
    while (width > count && width > 1) width /= 2;
    const Var i = e_.IndexVar(e_.body().FreshName("i"), count);
    e_.values().Open();
    body(e_.math().Of(i));
    e_.body().Add(ir::For(ir::LoopRole::kVector, i, e_.IndexInt(0), e_.IndexInt(count), e_.values().Close(), 1, width));
  }

  void Stage(size_t number) {
    const FftStage& stage = stages_[number];
    const int64_t s = stage.stride, r = stage.radix;
    if (stage.by_element) {
      ForEach(stage.groups * s, [&](const Index& v) {
        const Points y = Multiplied(Transformed(Inputs(number, v)), Factors(stage, v));
        const Index group = e_.math().FloorDiv(v, s), q = e_.math().Mod(v, s);
        Outputs(number, e_.math().Add(e_.math().Mul(group, s * r), q), y);
      });
      return;
    }
    e_.values().SerialLoop(stage.groups, [&](const Index& p) {
      const Points factors = Factors(stage, p);  // the same for the whole loop
      ForEach(s, [&](const Index& q) {
        const Points y = Multiplied(Transformed(Inputs(number, e_.math().Add(e_.math().Mul(p, s), q))), factors);
        Outputs(number, e_.math().Add(e_.math().Mul(p, s * r), q), y);
      });
    });
  }

  // Of results 1, 2 ... of a stage; none where all are 1.
  Points Factors(const FftStage& stage, const Index& column) {
    Points factors;
    if (stage.factors() == 0) return factors;
    const Instruction& table = *call_.operand(2);
    for (int64_t k = 1; k < stage.radix; ++k) {
      const Index at = e_.math().Add(column, stage.table + (k - 1) * stage.factors_per_row());
      factors.push_back(Named({e_.values().Get(e_.frame(), table, {Index(0), at}).re,
                               e_.values().Get(e_.frame(), table, {Index(1), at}).re}));
    }
    return factors;
  }
  Points Multiplied(Points y, const Points& factors) {
    for (size_t k = 0; k < factors.size(); ++k) y[k + 1] = Times(y[k + 1], factors[k]);
    return y;
  }

  // In operands and results; in private arrays.
  Indices Place(const Index& at) {
    if (!HasColumns()) return {row_, at};
    return {row_, at, e_.math().Add(e_.math().Of(first_column_), column_)};
  }
  Expr PrivatePlace(const Index& at) {
    return e_.math().ToExpr(HasColumns() ? e_.math().Add(e_.math().Mul(at, tile_), column_) : at);
  }

  Points Inputs(size_t number, const Index& first) {
    const FftStage& stage = stages_[number];
    Points x;
    for (int64_t j = 0; j < stage.radix; ++j) {
      const Index at = e_.math().Add(first, j * stage.groups * stage.stride);
      if (number == 0) {
        x.push_back({e_.values().Get(e_.frame(), *call_.operand(0), Place(at)).re,
                     e_.values().Get(e_.frame(), *call_.operand(1), Place(at)).re});
      } else {
        const Array& from = arrays_[(number - 1) % 2];
        x.push_back({ir::Load(from.re, PrivatePlace(at)), ir::Load(from.im, PrivatePlace(at))});
      }
      x.back() = Named(x.back());
    }
    return x;
  }

  void Outputs(size_t number, const Index& first, const Points& y) {
    const int64_t s = stages_[number].stride;
    for (size_t k = 0; k < y.size(); ++k) {
      const Index at = e_.math().Add(first, static_cast<int64_t>(k) * s);
      if (number + 1 < stages_.size()) {
        const Array& to = arrays_[number % 2];
        e_.body().Add(ir::Store(to.re, PrivatePlace(at), y[k].re));
        e_.body().Add(ir::Store(to.im, PrivatePlace(at), y[k].im));
        continue;
      }
      for (const auto& output : e_.outputs()) {
        e_.Store(output, Place(at), {output.leaf == 0 ? y[k].re : y[k].im, nullptr});
      }
    }
  }

  Point Named(const Point& x) { return {e_.body().Name(x.re, "re"), e_.body().Name(x.im, "im")}; }
  Expr Real(double value) const { return ir::Real(value, {type_, 1}); }
  Point Scaled(const Point& x, double factor) { return {x.re * Real(factor), x.im * Real(factor)}; }
  Point Times(const Point& x, const Point& y) { return Named({x.re * y.re - x.im * y.im, x.re * y.im + x.im * y.re}); }

  // e^(-2 pi i numerator / denominator) x, denominator a power of two up to 8.
  Point Turned(const Point& x, int64_t numerator, int64_t denominator) {
    switch (8 * numerator / denominator) {
      case 0: return x;
      case 1: return Scaled({x.re + x.im, x.im - x.re}, std::numbers::sqrt2 / 2);
      case 2: return {x.im, ir::Unary(ir::Op::kNeg, x.re)};
      default: return Scaled({x.im - x.re, ir::Unary(ir::Op::kNeg, x.re + x.im)}, std::numbers::sqrt2 / 2);
    }
  }

  // y[k] = sum over j of e^(-2 pi i j k / r) x[j].
  Points Transformed(const Points& x) {
    const size_t r = x.size();
    if (r == 1) return x;
    if (r % 2 != 0) return TransformedOdd(x);
    Points even, odd, y(r);
    for (size_t j = 0; j < r; ++j) (j % 2 == 0 ? even : odd).push_back(x[j]);
    even = Transformed(even);
    odd = Transformed(odd);
    for (size_t k = 0; k < r / 2; ++k) {
      const Point turned = Named(Turned(odd[k], static_cast<int64_t>(k), static_cast<int64_t>(r)));
      y[k] = Named(even[k] + turned);
      y[k + r / 2] = Named(even[k] - turned);
    }
    return y;
  }

  // Terms j and r - j have the same cosines and opposite sines, and so have results k and r - k.
  Points TransformedOdd(const Points& x) {
    const size_t r = x.size(), half = r / 2;
    Points sums, differences, y(r);
    y[0] = x[0];
    for (size_t j = 1; j <= half; ++j) {
      sums.push_back(Named(x[j] + x[r - j]));
      differences.push_back(Named(x[j] - x[r - j]));
      y[0] = y[0] + sums.back();
    }
    y[0] = Named(y[0]);
    for (size_t k = 1; k <= half; ++k) {
      Point same = x[0], opposite;
      for (size_t j = 1; j <= half; ++j) {
        const double angle = 2 * std::numbers::pi * static_cast<double>(j * k % r) / static_cast<double>(r);
        const Point sine = Scaled(differences[j - 1], std::sin(angle));
        same = same + Scaled(sums[j - 1], std::cos(angle));
        opposite = j == 1 ? sine : opposite + sine;
      }
      same = Named(same);
      opposite = Named(opposite);
      y[k] = Named({same.re + opposite.im, same.im - opposite.re});
      y[r - k] = Named({same.re - opposite.im, same.im + opposite.re});
    }
    return y;
  }

  Emission e_;
  const Instruction& call_;
  ElementType type_;
  int64_t rows_, n_, columns_;  // 0: there is no such dimension
  int64_t tile_;                // columns of it
  std::vector<FftStage> stages_;
  Index row_, column_;  // of the tile
  Var first_column_;
  std::vector<Array> arrays_;
};

}  // namespace

bool HasFftKernelFor(ElementType type, int64_t points, int64_t columns, const DeviceSpec& device) {
  if (device.device_class != DeviceClass::kCpu || passes::FftStagesOf(points).empty()) return false;
  if (type != ElementType::kF32 && !(type == ElementType::kF64 && device.has_f64)) return false;
  const int64_t tile = columns == 1 ? 1 : TileOfColumns(type);
  return columns >= tile && PrivateBytes(type, points) * tile <= kPrivateBytes;
}

bool IsFft(const Instruction& instruction) {
  return instruction.Is(hlo::Opcode::kCustomCall) &&
         instruction.As<hlo::attr::CustomCall>().target == passes::kFftTarget;
}

Launches EmitFft(const EmitRequest& request) {
  Launches launches;
  launches.push_back(FftKernel(request).Emit());
  return launches;
}

}  // namespace hlorun::opencl
