#include "passes/expand/fft_stages.h"

#include <array>
#include <cmath>
#include <complex>
#include <numbers>

#include "hlo/evaluator/custom_calls.h"

namespace hlorun::passes {
namespace {

// Largest first: the second stage's stride is the first one's radix, and long strides make long vectors. 8 leaves no
// single factor 2 behind where two of 4 do as well.
constexpr std::array<int64_t, 8> kRadices = {8, 13, 11, 7, 5, 4, 3, 2};
constexpr int64_t kShortStride = 8;

std::vector<int64_t> RadicesOf(int64_t n) {
  std::vector<int64_t> radices;
  for (const int64_t radix : kRadices) {
    while (n % radix == 0 && !(radix == 8 && n % 16 == 0 && n % 32 != 0)) {
      radices.push_back(radix);
      n /= radix;
    }
  }
  return n == 1 ? radices : std::vector<int64_t>();
}

hlo::Literal EvaluateFftCall(hlo::OpCall& call) {
  const hlo::Literal& re = call.operand(0);
  const hlo::Literal& im = call.operand(1);
  const int64_t n = re.shape().dimension(1), columns = re.shape().rank() == 2 ? 1 : re.shape().dimension(2);
  const int64_t transforms = re.shape().dimension(0) * columns;
  std::array<hlo::Literal, 2> parts = {hlo::Literal(re.shape()), hlo::Literal(re.shape())};
  for (int64_t t = 0; t < transforms; ++t) {
    const auto place = [&](int64_t point) { return (t / columns * n + point) * columns + t % columns; };
    for (int64_t k = 0; k < n; ++k) {
      std::complex<double> sum = 0;
      for (int64_t j = 0; j < n; ++j) {
        const double angle = -2 * std::numbers::pi * static_cast<double>(j * k % n) / static_cast<double>(n);
        sum += std::complex<double>(re.GetDouble(place(j)), im.GetDouble(place(j))) * std::polar(1.0, angle);
      }
      parts[0].SetDouble(place(k), sum.real());
      parts[1].SetDouble(place(k), sum.imag());
    }
  }
  return hlo::Literal::Tuple({std::move(parts[0]), std::move(parts[1])});
}

}  // namespace

std::vector<FftStage> FftStagesOf(int64_t n) {
  std::vector<FftStage> stages;
  int64_t stride = 1, table = 0;
  for (const int64_t radix : RadicesOf(n)) {
    FftStage stage{radix, n / (radix * stride), stride, stride < kShortStride, table};
    table += stage.factors();
    stride *= radix;
    stages.push_back(stage);
  }
  return stages;
}

hlo::Literal FftTable(hlo::ElementType type, const std::vector<FftStage>& stages) {
  const int64_t size = stages.empty() ? 0 : stages.back().table + stages.back().factors();
  hlo::Literal table(hlo::Shape(type, {2, size}));
  for (const FftStage& stage : stages) {
    if (stage.factors() == 0) continue;
    const int64_t period = stage.radix * stage.groups, row = stage.factors_per_row();
    for (int64_t k = 1; k < stage.radix; ++k) {
      for (int64_t i = 0; i < row; ++i) {
        const int64_t p = stage.by_element ? i / stage.stride : i;
        const double angle = -2 * std::numbers::pi * static_cast<double>(p * k) / static_cast<double>(period);
        const int64_t at = stage.table + (k - 1) * row + i;
        table.SetDouble(at, std::cos(angle));
        table.SetDouble(size + at, std::sin(angle));
      }
    }
  }
  return table;
}

void RegisterFftEvaluator() {
  static const bool kOnce = (hlo::RegisterCustomCallEvaluator(kFftTarget, EvaluateFftCall), true);
  static_cast<void>(kOnce);
}

}  // namespace hlorun::passes
