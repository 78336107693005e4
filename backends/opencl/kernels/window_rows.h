// Windows of a convolution's input as rows of a matrix: taps from top to bottom and from left to right, the channels of
// each side by side, zeros where a window leaves the input. A work-group copies a block of rows at a time; or a run of
// the input's lines, in which windows lie.
#pragma once

#include "backends/opencl/kernels/convolution_plan.h"
#include "backends/opencl/kernels/kernel_draft.h"

namespace hlorun::opencl {

// Of one group of features, without base dilation.
class WindowRows {
 public:
  // What copies move: words of 32 bits where a pixel's channels fill them.
  static hlo::ElementType MovedType(const ConvolutionShape& shape);

  // `rows`: of MovedType, `pitch_bytes` from row to row. All must outlive it.
  WindowRows(const ConvolutionShape& shape, const ArgumentRef& input, const ir::BufferRef& rows, int64_t pitch_bytes,
             KernelParameters& parameters);

  // Of output pixels `first` .. `first` + `count`, counted over all images, to rows[at] on.
  ir::Stmt Copy(const ir::Expr& first, const ir::Expr& count, const ir::Expr& at) const;
  // Of the lines of `image` that windows meet, with zeros around them, one behind the other: pixels `first` .. `first`
  // + `count`, to rows[at] on; zeros behind the last one. Strides are 1, and channels whole vectors of what is moved.
  ir::Stmt CopyLines(const ir::Expr& image, const ir::Expr& first, int64_t count, const ir::Expr& at) const;
  // What lies between the ends of `count` rows and the next ones.
  ir::Stmt ClearTails(int64_t count, const ir::Expr& at) const;

 private:
  ir::Stmt RowOfWindow(const ir::Expr& image, const ir::Expr& y, const ir::Expr& x, const ir::Var& tap_row,
                       const ir::Expr& to) const;
  ir::Stmt Move(const ir::Expr& to, const ir::Expr& from, int64_t elements) const;
  ir::Stmt Clear(const ir::Expr& to, int64_t elements) const;
  // Pixels begin .. end of a line of `pixels`: from where the line's first one would be on either side.
  ir::Stmt MovePixels(const ir::Expr& to, const ir::Expr& from, const ir::Expr& begin, const ir::Expr& end,
                      int64_t pixels) const;
  ir::Stmt ClearPixels(const ir::Expr& to, const ir::Expr& begin, const ir::Expr& end, int64_t pixels) const;
  // For each vector of a run, the last one over part of the one before it where they do not fill it: `make` is given
  // the function from where a run begins to where the vector is.
  template <typename Make>
  ir::Stmt Vectors(int64_t elements, const Make& make) const;

  const ConvolutionShape& shape_;
  ir::BufferRef input_, rows_;
  int64_t channels_, pitch_;  // in moved elements
};

}  // namespace hlorun::opencl
