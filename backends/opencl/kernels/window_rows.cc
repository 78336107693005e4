#include "backends/opencl/kernels/window_rows.h"

#include <algorithm>

#include "backends/opencl/codegen/ceil_div.h"
#include "backends/opencl/kernels/index_math.h"

namespace hlorun::opencl {
namespace {

using hlo::ElementType;
using ir::Expr;
using ir::Op;
using ir::Stmt;

constexpr int64_t kLanes = 16;
constexpr int64_t kWordBytes = 4;

int64_t ChannelBytes(const ConvolutionShape& shape) { return shape.channels * hlo::BytesOf(shape.input_type); }

Expr Within(const Expr& x, int64_t end) { return ir::And(ir::Compare(Op::kGe, x, Index(0)), x < Index(end)); }

}  // namespace

ElementType WindowRows::MovedType(const ConvolutionShape& shape) {
  if (ChannelBytes(shape) % kWordBytes == 0) return ElementType::kU32;
  return hlo::BytesOf(shape.input_type) == 2 ? ElementType::kU16 : ElementType::kU8;
}

WindowRows::WindowRows(const ConvolutionShape& shape, const ArgumentRef& input, const ir::BufferRef& rows,
                       int64_t pitch_bytes, KernelParameters& parameters)
    : shape_(shape),
      rows_(rows),
      channels_(ChannelBytes(shape) / hlo::BytesOf(MovedType(shape))),
      pitch_(pitch_bytes / hlo::BytesOf(MovedType(shape))) {
  input_ = parameters.Add("input", MovedType(shape), shape.batch * shape.rows.in * shape.columns.in * channels_, input);
}

Stmt WindowRows::Copy(const Expr& first, const Expr& count, const Expr& at) const {
  const int64_t height = shape_.rows.out, width = shape_.columns.out, pixels = shape_.batch * height * width;
  const ir::Var row = IndexVar("window", pixels), pixel = IndexVar("pixel", pixels);
  const ir::Var image = IndexVar("image", shape_.batch), y = IndexVar("y", height), x = IndexVar("x", width);
  const ir::Var tap_row = IndexVar("tap_row", shape_.rows.window), to = ir::MakeVar("to", ir::kIndex);
  const Stmt taps = Loop(tap_row, Index(0), Index(shape_.rows.window),
                         RowOfWindow(ir::Ref(image), ir::Ref(y), ir::Ref(x), tap_row, ir::Ref(to)));
  return Loop(row, Index(0), count,
              ir::Block({ir::Let(pixel, first + ir::Ref(row)), ir::Let(x, Remainder(ir::Ref(pixel), width)),
                         ir::Let(y, Remainder(Quotient(ir::Ref(pixel), width), height)),
                         ir::Let(image, Quotient(ir::Ref(pixel), width * height)),
                         ir::Let(to, at + ir::Ref(row) * pitch_), taps}));
}

Stmt WindowRows::RowOfWindow(const Expr& image, const Expr& y, const Expr& x, const ir::Var& tap_row,
                             const Expr& to) const {
  const ConvolutionDimension &rows = shape_.rows, &columns = shape_.columns;
  const int64_t run = columns.window * channels_;
  const ir::Var h = ir::MakeIndex("h", -rows.low, rows.in + rows.Reach(rows.out), ir::kIndex);
  const ir::Var left = ir::MakeIndex("left", -columns.low, columns.in + columns.Reach(columns.out), ir::kIndex);
  const ir::Var tap = IndexVar("tap", columns.window), w = ir::MakeVar("w", ir::kIndex);
  const ir::Var start = ir::MakeVar("start", ir::kIndex), line = ir::MakeVar("line", ir::kIndex);
  const Expr at = ir::Ref(start) + ir::Ref(tap) * channels_;
  const Stmt one =
      ir::Block({ir::Let(w, ir::Ref(left) + ir::Ref(tap) * columns.dilation),
                 ir::If(Within(ir::Ref(w), columns.in), Move(at, ir::Ref(line) + ir::Ref(w) * channels_, channels_),
                        Clear(at, channels_))});
  Stmt taps = Loop(tap, Index(0), Index(columns.window), one);
  if (columns.dilation == 1) {
    const Expr whole =
        ir::And(ir::Compare(Op::kGe, ir::Ref(left), Index(0)), ir::Ref(left) < Index(columns.in - columns.window + 1));
    taps = ir::If(whole, Move(ir::Ref(start), ir::Ref(line) + ir::Ref(left) * channels_, run), taps);
  }
  const Stmt inside = ir::Block({ir::Let(left, x * columns.stride - columns.low),
                                 ir::Let(line, (image * rows.in + ir::Ref(h)) * (columns.in * channels_)), taps});
  return ir::Block({ir::Let(h, y * rows.stride + ir::Ref(tap_row) * rows.dilation - rows.low),
                    ir::Let(start, to + ir::Ref(tap_row) * run),
                    ir::If(Within(ir::Ref(h), rows.in), inside, Clear(ir::Ref(start), run))});
}

Stmt WindowRows::CopyLines(const Expr& image, const Expr& first, int64_t count, const Expr& at) const {
  const ConvolutionDimension &rows = shape_.rows, &columns = shape_.columns;
  const int64_t lines = rows.Reach(rows.out), pixels = columns.Reach(columns.out);
  const int64_t left = std::clamp<int64_t>(columns.low, 0, pixels);
  const int64_t right = std::clamp<int64_t>(columns.in + columns.low, left, pixels);
  const ir::Var y = IndexVar("copied_line", lines + CeilDiv(count, pixels) + 1);
  const ir::Var begin = IndexVar("begin", pixels), end = IndexVar("end", pixels + 1);
  const ir::Var to = ir::MakeVar("to", ir::kIndex), from = ir::MakeVar("from", ir::kIndex);
  const Expr line = ir::Ref(y) * pixels, h = ir::Ref(y) - rows.low;
  const Expr input_pixel = (image * rows.in + h) * columns.in - columns.low;
  const Stmt within =
      ir::Block({ir::Let(from, input_pixel * channels_),
                 ClearPixels(ir::Ref(to), ir::Ref(begin), ir::Min(ir::Ref(end), Index(left)), pixels),
                 MovePixels(ir::Ref(to), ir::Ref(from), ir::Max(ir::Ref(begin), Index(left)),
                            ir::Min(ir::Ref(end), Index(right)), pixels),
                 ClearPixels(ir::Ref(to), ir::Max(ir::Ref(begin), Index(right)), ir::Ref(end), pixels)});
  const Stmt one = ir::Block(
      {ir::Let(begin, ir::Max(first - line, Index(0))), ir::Let(end, ir::Min(first + count - line, Index(pixels))),
       ir::Let(to, at + (line - first) * channels_),
       ir::If(Within(h, rows.in), within, ClearPixels(ir::Ref(to), ir::Ref(begin), ir::Ref(end), pixels))});
  return Loop(y, Quotient(first, pixels), Quotient(first + (count - 1), pixels) + 1, one);
}

Stmt WindowRows::MovePixels(const Expr& to, const Expr& from, const Expr& begin, const Expr& end,
                            int64_t pixels) const {
  const ir::Var i = IndexVar("moved", pixels * channels_);
  const auto vector_at = [&](const Expr& line) { return ir::Ramp(line + ir::Ref(i), static_cast<int>(kLanes)); };
  return Loop(i, begin * channels_, end * channels_, ir::Store(rows_, vector_at(to), ir::Load(input_, vector_at(from))),
              kLanes);
}

Stmt WindowRows::ClearPixels(const Expr& to, const Expr& begin, const Expr& end, int64_t pixels) const {
  const ir::Var i = IndexVar("cleared", pixels * channels_);
  const Expr at = ir::Ramp(to + ir::Ref(i), static_cast<int>(kLanes));
  return Loop(i, begin * channels_, end * channels_, ir::Store(rows_, at, ir::Zero({rows_->storage, at->type.lanes})),
              kLanes);
}

Stmt WindowRows::ClearTails(int64_t count, const Expr& at) const {
  const int64_t used = shape_.rows.window * shape_.columns.window * channels_;
  const ir::Var row = IndexVar("row_end", count);
  if (used == pitch_) return nullptr;
  return Loop(row, Index(0), Index(count), Clear(at + ir::Ref(row) * pitch_ + used, pitch_ - used));
}

template <typename Make>
Stmt WindowRows::Vectors(int64_t elements, const Make& make) const {
  if (elements <= 0) return nullptr;
  const ir::Var i = IndexVar("moved", elements);
  if (elements < kLanes)
    return Loop(i, Index(0), Index(elements), make([&](const Expr& run) { return run + ir::Ref(i); }));
  const auto vector_at = [&](const Expr& first) {
    return make([&](const Expr& run) { return ir::Ramp(run + first, static_cast<int>(kLanes)); });
  };
  const int64_t whole = elements / kLanes * kLanes;
  const Stmt vectors = Loop(i, Index(0), Index(whole), vector_at(ir::Ref(i)), kLanes);
  return whole == elements ? vectors : ir::Block({vectors, vector_at(Index(elements - kLanes))});
}

Stmt WindowRows::Move(const Expr& to, const Expr& from, int64_t elements) const {
  return Vectors(elements,
                 [&](const auto& place) { return ir::Store(rows_, place(to), ir::Load(input_, place(from))); });
}

Stmt WindowRows::Clear(const Expr& to, int64_t elements) const {
  return Vectors(elements, [&](const auto& place) {
    const Expr at = place(to);
    return ir::Store(rows_, at, ir::Zero({rows_->storage, at->type.lanes}));
  });
}

}  // namespace hlorun::opencl
