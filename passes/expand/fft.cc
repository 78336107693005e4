#include "passes/expand/fft.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "hlo/builder.h"
#include "hlo/error.h"
#include "passes/expand/chirp.h"
#include "passes/expand/fft_stages.h"
#include "passes/kernel_model.h"

namespace hlorun::passes {

using hlo::Dims;
using hlo::FftType;
using hlo::Instruction;
using hlo::Literal;
using hlo::Opcode;
using hlo::Shape;

namespace {

constexpr int64_t kLargestMatrix = 64;  // points of one product; beyond, a convolution takes less
constexpr int64_t kGoodMatrix = 32;     // points that make a product worth while

// A complex array as two real ones.
struct Complex {
  Instruction* real;
  Instruction* imaginary;  // null: zero
};

int64_t LargestPrimeFactor(int64_t n) {
  int64_t largest = 1;
  for (int64_t p = 2; p * p <= n; ++p) {
    while (n % p == 0) {
      largest = p;
      n /= p;
    }
  }
  return std::max(largest, n);
}

// The factor to split off first where products do the work: the largest up to kGoodMatrix, else the smallest there is.
int64_t FactorOfProducts(int64_t n) {
  if (n <= kGoodMatrix) return n;
  for (int64_t a = kGoodMatrix; a > 1; --a) {
    if (n % a == 0) return a;
  }
  for (int64_t a = kGoodMatrix + 1; a < n; ++a) {
    if (n % a == 0) return a;
  }
  return n;
}

class Transform {
 public:
  Transform(Instruction* fft, hlo::Builder& build, const KernelModel& kernels)
      : build_(build), kernels_(kernels), type_(hlo::RealOf(fft->operand(0)->shape().element_type())) {}

  // Whether a kernel makes transforms of n points.
  bool HasKernel(int64_t n) const { return n > kGoodMatrix && kernels_.HasFftKernel(type_, n, 1); }
  // Of columns, where they lie: products would have to transpose them.
  bool HasKernelOfColumns(int64_t n, int64_t columns) const {
    return columns > 1 && n > 1 && kernels_.HasFftKernel(type_, n, columns);
  }

  // Whether n points cost no more than a few log n operations each.
  bool IsFast(int64_t n) const { return HasKernel(n) || LargestPrimeFactor(n) > kLargestMatrix; }

  // Along the last of two dimensions [batch, n]; without the inverse's factor 1/n.
  Complex Run(const Complex& x, bool inverse) {
    const int64_t batch = x.real->shape().dimension(0), n = x.real->shape().dimension(1);
    if (HasKernel(n)) return ByKernel(x, inverse);
    if (LargestPrimeFactor(n) > kLargestMatrix) return ByChirp(x, inverse);
    const int64_t a = FactorOf(n), b = n / a;
    const double sign = inverse ? 2 * std::numbers::pi : -2 * std::numbers::pi;
    if (b == 1) return Product(x, n, 1, sign);
    // x[j1 b + j2] -> y[k1, j2] (by products y[j2, k1]), times the factors, -> z[k1, k2] = X[k1 + a k2].
    Complex y = Each(x, [&](Instruction* v) { return build_.Reshape(v, {batch, a, b}); });
    const double angle = sign / static_cast<double>(n);
    if (HasKernelOfColumns(a, b)) {
      y = Multiply(ByKernel(y, inverse), batch, a, b, angle);
    } else {
      y = Multiply(Product(y, a, 1, sign), batch, b, a, angle);
      y = Each(y, [&](Instruction* v) { return build_.Transpose(v, {0, 2, 1}); });
    }
    const Complex z = Run(Each(y, [&](Instruction* v) { return build_.Reshape(v, {batch * a, b}); }), inverse);
    return Each(z, [&](Instruction* v) {
      return build_.Reshape(build_.Transpose(build_.Reshape(v, {batch, a, b}), {0, 2, 1}), {batch, n});
    });
  }

  // x times `factor`, where it is a real array's, too.
  Complex Times(const Complex& x, const Complex& factor) {
    const auto times = [&](Instruction* u, Instruction* v) { return build_.Binary(Opcode::kMultiply, u, v); };
    const Complex of_real = {times(x.real, factor.real), times(x.real, factor.imaginary)};
    if (x.imaginary == nullptr) return of_real;
    return {build_.Binary(Opcode::kSubtract, of_real.real, times(x.imaginary, factor.imaginary)),
            build_.Binary(Opcode::kAdd, of_real.imaginary, times(x.imaginary, factor.real))};
  }

  template <typename F>
  Complex Each(const Complex& x, F f) {
    return {f(x.real), x.imaginary == nullptr ? nullptr : f(x.imaginary)};
  }

  // The kernel transforms forward, along dimension 1; with both parts exchanged, before and after, that is the inverse.
  Complex ByKernel(const Complex& x, bool inverse) {
    RegisterFftEvaluator();
    const int64_t n = x.real->shape().dimension(1);
    Instruction* imaginary = x.imaginary == nullptr ? build_.Splat(x.real->shape(), 0) : x.imaginary;
    hlo::attr::CustomCall call;
    call.target = kFftTarget;
    const Shape both = Shape::Tuple({x.real->shape(), x.real->shape()});
    Instruction* result = build_.Make(
        Opcode::kCustomCall,
        {inverse ? imaginary : x.real, inverse ? x.real : imaginary, build_.Constant(FftTable(type_, FftStagesOf(n)))},
        call, {}, both);
    return {build_.GetTupleElement(result, inverse ? 1 : 0), build_.GetTupleElement(result, inverse ? 0 : 1)};
  }

 private:
  // The one nearest to the square root of n where kernels transform both it and what is left.
  int64_t FactorOf(int64_t n) const {
    for (auto a = static_cast<int64_t>(std::sqrt(static_cast<double>(n))); a > kGoodMatrix; --a) {
      if (n % a == 0 && HasKernel(a) && HasKernel(n / a)) return a;
    }
    return FactorOfProducts(n);
  }

  // f(angle * i * j) for i < rows, j < columns; i j is taken modulo the period, so that large products stay exact.
  Instruction* Table(int64_t rows, int64_t columns, int64_t period, double full_turn, double (*f)(double)) {
    Literal table(Shape(type_, {rows, columns}));
    for (int64_t i = 0; i < rows; ++i) {
      for (int64_t j = 0; j < columns; ++j) {
        const double fraction = static_cast<double>(i * j % period) / static_cast<double>(period);
        table.SetDouble(i * columns + j, f(full_turn * fraction));
      }
    }
    return build_.Constant(std::move(table));
  }

  Instruction* Dot(Instruction* x, Instruction* matrix, int64_t dimension) {
    hlo::attr::Dot dot;
    dot.lhs_contracting = {dimension};
    dot.rhs_contracting = {0};
    dot.precision = {hlo::Precision::kHighest, hlo::Precision::kHighest};
    return build_.Dot(x, matrix, dot, type_);
  }

  // The transform of `n` points along `dimension`, which comes last in the result.
  Complex Product(const Complex& x, int64_t n, int64_t dimension, double full_turn) {
    Instruction* cosines = Table(n, n, n, full_turn, [](double v) { return std::cos(v); });
    Instruction* sines = Table(n, n, n, full_turn, [](double v) { return std::sin(v); });
    const Complex of_real = {Dot(x.real, cosines, dimension), Dot(x.real, sines, dimension)};
    if (x.imaginary == nullptr) return of_real;
    return {build_.Binary(Opcode::kSubtract, of_real.real, Dot(x.imaginary, sines, dimension)),
            build_.Binary(Opcode::kAdd, of_real.imaginary, Dot(x.imaginary, cosines, dimension))};
  }

  // Zeros behind the points make of the wrapped convolution one that does not wrap.
  Complex ByChirp(const Complex& x, bool inverse) {
    const int64_t batch = x.real->shape().dimension(0), n = x.real->shape().dimension(1);
    Chirp chirp = ChirpOf(type_, n, inverse);
    const auto spread = [&](Chirp::Parts& parts, int64_t size) {
      const auto row = [&](Literal& part) {
        return build_.Broadcast(build_.Constant(std::move(part)), {batch, size}, {1});
      };
      return Complex{row(parts[0]), row(parts[1])};
    };
    const Complex factors = spread(chirp.factors, n), spectrum = spread(chirp.spectrum, chirp.length);
    Instruction* zero = build_.ScalarConstant(type_, 0);
    const Complex padded = Each(Times(x, factors), [&](Instruction* v) {
      return build_.Pad(v, zero, {{0, 0, 0}, {0, chirp.length - n, 0}});
    });
    const Complex convolved = Run(Times(Run(padded, false), spectrum), true);
    return Times(Each(convolved, [&](Instruction* v) { return build_.Slice(v, {0, 0}, {batch, n}, {1, 1}); }), factors);
  }

  // y[batch, i, j] times e^(i angle i j), i < rows, j < columns.
  Complex Multiply(const Complex& y, int64_t batch, int64_t rows, int64_t columns, double angle) {
    const int64_t n = rows * columns;
    const double full_turn = angle * static_cast<double>(n);
    const auto spread = [&](Instruction* table) { return build_.Broadcast(table, {batch, rows, columns}, {1, 2}); };
    Instruction* cosines = spread(Table(rows, columns, n, full_turn, [](double v) { return std::cos(v); }));
    Instruction* sines = spread(Table(rows, columns, n, full_turn, [](double v) { return std::sin(v); }));
    return Times(y, {cosines, sines});
  }

  hlo::Builder& build_;
  const KernelModel& kernels_;
  hlo::ElementType type_;
};

class Expansion {
 public:
  Expansion(Instruction* fft, const KernelModel& kernels)
      : fft_(fft),
        attributes_(fft->As<hlo::attr::Fft>()),
        build_(fft->parent(), fft),
        transform_(fft, build_, kernels) {
    build_.before = fft;
  }

  Instruction* Run() {
    Instruction* x = fft_->operand(0);
    const bool inverse = attributes_.type == FftType::kIfft || attributes_.type == FftType::kIrfft;
    const auto count = static_cast<int64_t>(attributes_.length.size());
    Complex value{x, nullptr};
    if (hlo::IsComplex(x->shape().element_type())) {
      value = {build_.Unary(Opcode::kReal, x), build_.Unary(Opcode::kImag, x)};
    }
    const int64_t last = x->shape().rank() - 1;
    // The real side of a real transform is its last dimension: first on the way there, last on the way back.
    const int64_t n = attributes_.length.empty() ? 1 : attributes_.length.back();
    const bool by_pairs = n % 2 == 0 && transform_.IsFast(n / 2);
    if (attributes_.type == FftType::kIrfft) {
      for (int64_t i = 1; i < count; ++i) value = Along(value, last - i, true);
      value = by_pairs ? RealFromHalf(value, n) : Along(MirroredHalf(value, n), last, true);
    } else {
      if (attributes_.type == FftType::kRfft) {
        value = by_pairs ? HalfOfReal(value.real, n) : FirstHalf(Along(value, last, false), n / 2 + 1);
      } else {
        value = Along(value, last, inverse);
      }
      for (int64_t i = 1; i < count; ++i) value = Along(value, last - i, inverse);
    }
    if (inverse) value = Scaled(value, 1.0 / static_cast<double>(hlo::CheckedProduct(attributes_.length)));
    if (attributes_.type == FftType::kIrfft) return value.real;
    return build_.Binary(Opcode::kComplex, value.real, value.imaginary);
  }

 private:
  Complex Along(const Complex& x, int64_t dimension, bool inverse) {
    const int64_t last = x.real->shape().rank() - 1;
    const auto middle = x.real->shape().dimensions().begin() + dimension;
    const int64_t columns = hlo::CheckedProduct(Dims(middle + 1, x.real->shape().dimensions().end()));
    if (transform_.HasKernelOfColumns(*middle, columns)) {
      const Dims all = x.real->shape().dimensions();
      const Dims sides = {x.real->shape().ElementCount() / (*middle * columns), *middle, columns};
      const Complex y =
          transform_.ByKernel(transform_.Each(x, [&](Instruction* v) { return build_.Reshape(v, sides); }), inverse);
      return transform_.Each(y, [&](Instruction* v) { return build_.Reshape(v, all); });
    }
    std::vector<int64_t> exchange(static_cast<size_t>(last) + 1);
    for (size_t i = 0; i < exchange.size(); ++i) exchange[i] = static_cast<int64_t>(i);
    std::swap(exchange[static_cast<size_t>(dimension)], exchange.back());
    const auto exchanged = [&](Instruction* v) { return dimension == last ? v : build_.Transpose(v, exchange); };
    const Complex moved = transform_.Each(x, exchanged);
    const Dims dimensions = moved.real->shape().dimensions();
    const int64_t n = dimensions.back(), batch = moved.real->shape().ElementCount() / n;
    Complex y = transform_.Each(moved, [&](Instruction* v) { return build_.Reshape(v, {batch, n}); });
    y = transform_.Run(y, inverse);
    return transform_.Each(y, [&](Instruction* v) { return exchanged(build_.Reshape(v, dimensions)); });
  }

  // [start, limit) of the last dimension.
  Instruction* Part(Instruction* x, int64_t start, int64_t limit) {
    Dims starts(static_cast<size_t>(x->shape().rank()), 0), limits = x->shape().dimensions();
    starts.back() = start;
    limits.back() = limit;
    return build_.Slice(x, starts, limits, Dims(starts.size(), 1));
  }

  Complex FirstHalf(const Complex& x, int64_t size) {
    return transform_.Each(x, [&](Instruction* v) { return Part(v, 0, size); });
  }

  // The spectrum of a real array of n points from its first half: X[n - k] is the conjugate of X[k].
  Complex MirroredHalf(const Complex& half, int64_t n) {
    const int64_t last = half.real->shape().rank() - 1;
    const Complex kept = FirstHalf(half, n / 2 + 1);
    if (n <= 2) return kept;
    Complex rest =
        transform_.Each(half, [&](Instruction* v) { return build_.Reverse(Part(v, 1, (n + 1) / 2), {last}); });
    rest.imaginary = build_.Unary(Opcode::kNegate, rest.imaginary);
    return {build_.Concatenate({kept.real, rest.real}, last),
            build_.Concatenate({kept.imaginary, rest.imaginary}, last)};
  }

  // --- a real array of n = 2 h points as a complex one of h: z[j] = x[2 j] + i x[2 j + 1] ---
  // With Z its transform, Z* mirrored and conjugate: Z*[k] = conj(Z[h - k]), and w = e^(-2 pi i / n),
  //   X[k] = (Z[k] + Z*[k]) / 2 - i w^k (Z[k] - Z*[k]) / 2 for k = 0 ... h, Z[h] = Z[0], and the other way round
  //   2 Z[k] = (X[k] + X*[k]) + i w^-k (X[k] - X*[k]).

  Complex HalfOfReal(Instruction* x, int64_t n) {
    const int64_t h = n / 2, last = x->shape().rank() - 1;
    const Complex z = Along({EveryOther(x, 0), EveryOther(x, 1)}, last, false);
    const Complex whole = transform_.Each(z, [&](Instruction* v) {
      return build_.Concatenate({v, Part(v, 0, 1)}, last);
    });
    const auto [sum, difference] = WithMirrored(whole);
    const Complex turned = Turned(difference, n, h + 1, -1);
    return Scaled({build_.Binary(Opcode::kAdd, sum.real, turned.real),
                   build_.Binary(Opcode::kAdd, sum.imaginary, turned.imaginary)},
                  0.5);
  }

  // n times the inverse.
  Complex RealFromHalf(const Complex& half, int64_t n) {
    const int64_t h = n / 2, last = half.real->shape().rank() - 1;
    Complex x = FirstHalf(half, h + 1);
    // The first and the last of a real array's spectrum are real, whatever is given.
    Literal inner(Shape(hlo::ElementType::kPred, {h + 1}));
    for (int64_t k = 1; k < h; ++k) inner.SetInt(k, 1);
    Instruction* is_inner = build_.Broadcast(build_.Constant(std::move(inner)), x.real->shape().dimensions(), {last});
    x.imaginary = build_.Select(is_inner, x.imaginary, build_.Splat(x.imaginary->shape(), 0));
    const auto [sum, difference] = WithMirrored(x);
    const Complex turned = Turned(difference, n, h + 1, 1);
    const Complex z = Along(FirstHalf({build_.Binary(Opcode::kAdd, sum.real, turned.real),
                                       build_.Binary(Opcode::kAdd, sum.imaginary, turned.imaginary)},
                                      h),
                            last, true);
    Dims pairs = z.real->shape().dimensions(), both = pairs;
    pairs.push_back(1);
    both.back() = n;
    return {
        build_.Reshape(
            build_.Concatenate({build_.Reshape(z.real, pairs), build_.Reshape(z.imaginary, pairs)}, last + 1), both),
        nullptr};
  }

  Instruction* EveryOther(Instruction* x, int64_t first) {
    Dims starts(static_cast<size_t>(x->shape().rank()), 0), strides(starts.size(), 1);
    starts.back() = first;
    strides.back() = 2;
    return build_.Slice(x, starts, x->shape().dimensions(), strides);
  }

  // x + x* and x - x*.
  std::pair<Complex, Complex> WithMirrored(const Complex& x) {
    const int64_t last = x.real->shape().rank() - 1;
    const Complex mirrored = transform_.Each(x, [&](Instruction* v) { return build_.Reverse(v, {last}); });
    return {{build_.Binary(Opcode::kAdd, x.real, mirrored.real),
             build_.Binary(Opcode::kSubtract, x.imaginary, mirrored.imaginary)},
            {build_.Binary(Opcode::kSubtract, x.real, mirrored.real),
             build_.Binary(Opcode::kAdd, x.imaginary, mirrored.imaginary)}};
  }

  // x[k] times sign i e^(sign 2 pi i k / n), k < size.
  Complex Turned(const Complex& x, int64_t n, int64_t size, double sign) {
    const auto table = [&](double (*f)(double), double factor) {
      Literal values(Shape(x.real->shape().element_type(), {size}));
      for (int64_t k = 0; k < size; ++k)
        values.SetDouble(k, factor * f(2 * std::numbers::pi * static_cast<double>(k) / static_cast<double>(n)));
      return build_.Broadcast(build_.Constant(std::move(values)), x.real->shape().dimensions(),
                              {x.real->shape().rank() - 1});
    };
    // i (cos + i sin) and -i (cos - i sin): the real parts are the same.
    Instruction* real = table([](double v) { return std::sin(v); }, -1);
    Instruction* imaginary = table([](double v) { return std::cos(v); }, sign);
    return transform_.Times(x, {real, imaginary});
  }

  Complex Scaled(const Complex& x, double factor) {
    return transform_.Each(
        x, [&](Instruction* v) { return build_.Binary(Opcode::kMultiply, v, build_.Splat(v->shape(), factor)); });
  }

  Instruction* fft_;
  const hlo::attr::Fft attributes_;
  hlo::Builder build_;
  Transform transform_;
};

bool MayExpand(const Instruction& instruction) {
  if (!instruction.Is(Opcode::kFft) || instruction.shape().ElementCount() == 0) return false;
  return !instruction.As<hlo::attr::Fft>().length.empty();
}

}  // namespace

bool ExpandFft::Run(hlo::Module& module, PassContext& context) {
  bool changed = false;
  for (hlo::Computation* computation : module.PostOrder()) {
    for (Instruction* instruction : computation->PostOrder()) {
      if (!MayExpand(*instruction)) continue;
      computation->Replace(instruction, Expansion(instruction, context.kernels).Run());
      changed = true;
    }
  }
  return changed;
}

}  // namespace hlorun::passes
