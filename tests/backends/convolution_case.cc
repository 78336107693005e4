#include "tests/backends/convolution_case.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "backends/opencl/kernels/convolution.h"
#include "hlo/text/parser.h"

namespace hlorun::opencl {

using hlo::ElementType;
using hlo::Literal;

namespace {

Literal RandomLiteral(const hlo::Shape& shape, unsigned seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> reals(-1, 1);
  Literal literal(shape);
  for (int64_t i = 0; i < shape.ElementCount(); ++i) {
    const float real = reals(random);
    literal.SetDouble(i, hlo::IsFloating(shape.element_type()) ? real : std::trunc(100 * real));
  }
  return literal;
}

const hlo::Instruction& FindConvolution(const hlo::Instruction& root) {
  if (root.Is(hlo::Opcode::kConvolution)) return root;
  for (const auto& instruction : root.called()->instructions()) {
    if (instruction->Is(hlo::Opcode::kConvolution)) return *instruction;
  }
  throw std::runtime_error("no convolution");
}

// f01b_i01o->01bf (or one spatial dimension), in groups of the batch, summed plainly.
std::vector<double> HostGradient(const hlo::Instruction& convolution, const Literal& x, const Literal& g) {
  hlo::Window window = convolution.As<hlo::attr::Convolution>().window;
  const int64_t groups = convolution.As<hlo::attr::Convolution>().batch_group_count;
  hlo::Dims in = x.shape().dimensions(), from = g.shape().dimensions(), out = convolution.shape().dimensions();
  if (window.size() == 1) {
    window.insert(window.begin(), hlo::WindowDimension{});
    in.insert(in.begin() + 1, 1);
    from.insert(from.begin() + 1, 1);
    out.insert(out.begin(), 1);
  }
  std::vector<double> sums(static_cast<size_t>(hlo::CheckedProduct(out)));
  for (int64_t th = 0; th < out[0]; ++th) {
    for (int64_t tw = 0; tw < out[1]; ++tw) {
      for (int64_t pixel = 0; pixel < from[0] * from[1] * from[2]; ++pixel) {
        const int64_t n = pixel / (from[1] * from[2]), y = pixel / from[2] % from[1], v = pixel % from[2];
        const int64_t h = th * window[0].stride + y * window[0].window_dilation - window[0].padding_low;
        const int64_t w = tw * window[1].stride + v * window[1].window_dilation - window[1].padding_low;
        if (h < 0 || h >= in[1] || w < 0 || w >= in[2]) continue;
        for (int64_t c = 0; c < out[2]; ++c) {
          for (int64_t f = 0; f < out[3]; ++f) {
            const int64_t channel = f / (out[3] / groups) * out[2] + c;
            const double element = x.GetDouble(((n * in[1] + h) * in[2] + w) * in[3] + channel);
            sums[static_cast<size_t>(((th * out[1] + tw) * out[2] + c) * out[3] + f)] +=
                element * g.GetDouble(pixel * from[3] + f);
          }
        }
      }
    }
  }
  return sums;
}

// b01f_01io->b01f (or one spatial dimension), summed plainly.
std::vector<double> HostConvolution(const hlo::Instruction& convolution, const Literal& x, const Literal& w) {
  hlo::Window window = convolution.As<hlo::attr::Convolution>().window;
  hlo::Dims in = x.shape().dimensions(), out = convolution.shape().dimensions();
  const int64_t groups = convolution.As<hlo::attr::Convolution>().feature_group_count;
  if (window.size() == 1) {
    window.insert(window.begin(), hlo::WindowDimension{});
    in.insert(in.begin() + 1, 1);
    out.insert(out.begin() + 1, 1);
  }
  const int64_t channels = in[3] / groups;  // of a group
  std::vector<double> xs, ws, ys;
  for (int64_t i = 0; i < x.ElementCount(); ++i) xs.push_back(x.GetDouble(i));
  for (int64_t i = 0; i < w.ElementCount(); ++i) ws.push_back(w.GetDouble(i));
  // The input position of an output and a tap, or -1.
  const auto place = [](const hlo::WindowDimension& d, int64_t size, int64_t o, int64_t k) -> int64_t {
    const int64_t at = o * d.stride - d.padding_low + k * d.window_dilation;
    return at < 0 || at % d.base_dilation != 0 || at / d.base_dilation >= size ? -1 : at / d.base_dilation;
  };
  for (int64_t n = 0; n < out[0]; ++n) {
    for (int64_t oh = 0; oh < out[1]; ++oh) {
      for (int64_t ow = 0; ow < out[2]; ++ow) {
        for (int64_t o = 0; o < out[3]; ++o) {
          double sum = 0;
          for (int64_t kh = 0; kh < window[0].size; ++kh) {
            for (int64_t kw = 0; kw < window[1].size; ++kw) {
              const int64_t h = place(window[0], in[1], oh, kh), v = place(window[1], in[2], ow, kw);
              if (h < 0 || v < 0) continue;
              for (int64_t i = 0; i < channels; ++i) {
                const int64_t channel = o / (out[3] / groups) * channels + i;
                sum += xs[static_cast<size_t>(((n * in[1] + h) * in[2] + v) * in[3] + channel)] *
                       ws[static_cast<size_t>(((kh * window[1].size + kw) * channels + i) * out[3] + o)];
              }
            }
          }
          ys.push_back(sum);
        }
      }
    }
  }
  return ys;
}

}  // namespace

LaunchRunner& Runner() {
  static LaunchRunner runner;
  return runner;
}

std::string Grouped(int64_t groups) { return fmt::format("b01f_01io->b01f, feature_group_count={}", groups); }

std::string ConvolutionText(const ConvolutionCase& c, bool fused) {
  const std::string conv =
      fmt::format("{} convolution(x, w), window={{{}}}, dim_labels={}", c.output, c.window, c.labels);
  const size_t comma = c.output.rfind(',');
  const std::string features = c.output.substr(comma + 1), type = c.output.substr(0, c.output.find('['));
  const std::string bias = fmt::format("{}[{}", type, features);
  const std::string last = std::to_string(std::count(c.output.begin(), c.output.end(), ','));
  if (!fused) {
    return fmt::format("HloModule m\nENTRY main {{\n  x = {} parameter(0)\n  w = {} parameter(1)\n  ROOT y = {}\n}}\n",
                       c.input, c.weights, conv);
  }
  return fmt::format(R"(HloModule m
fused {{
  x = {0} parameter(0)
  w = {1} parameter(1)
  bias = {2} parameter(2)
  y = {3}
  wide = {4} broadcast(bias), dimensions={{{5}}}
  sum = {4} add(y, wide)
  zero = {6}[] constant(0)
  zeros = {4} broadcast(zero), dimensions={{}}
  ROOT relu = {4} maximum(sum, zeros)
}}
ENTRY main {{
  x = {0} parameter(0)
  w = {1} parameter(1)
  bias = {2} parameter(2)
  ROOT out = {4} fusion(x, w, bias), kind=kOutput, calls=fused
}}
)",
                     c.input, c.weights, bias, conv, c.output, last, type);
}

std::vector<Literal> RandomOperands(const hlo::Instruction& root) {
  std::vector<Literal> operands;
  for (const hlo::Instruction* operand : root.operands()) {
    operands.push_back(RandomLiteral(operand->shape(), static_cast<unsigned>(operands.size() + 1)));
  }
  return operands;
}

Literal OnDevice(const hlo::Instruction& root, const std::vector<Literal>& operands, const DeviceSpec& spec,
                 const CompileOptions& options) {
  Literal got(root.shape());
  const auto launches = EmitConvolution(root, {-1}, {spec, options});
  EXPECT_TRUE(launches.has_value());
  if (!launches) return got;
  std::vector<void*> addresses;
  for (const Literal& operand : operands) addresses.push_back(const_cast<std::byte*>(operand.data()));
  constexpr int64_t kGuard = 1024;
  constexpr unsigned char kLeftBehind = 0xff;  // NaN of any type
  const int64_t scratch_bytes = ConvolutionScratchBytes(root, {spec, options});
  std::vector<unsigned char> scratch(static_cast<size_t>(scratch_bytes + kGuard), kLeftBehind);
  Runner().Run(*launches, addresses, {got.mutable_data()}, scratch.data());
  EXPECT_TRUE(
      std::all_of(scratch.begin() + scratch_bytes, scratch.end(), [](unsigned char b) { return b == kLeftBehind; }));
  return got;
}

void ExpectConvolution(const ConvolutionCase& c, bool fused, const DeviceSpec& spec, const CompileOptions& options) {
  SCOPED_TRACE(c.input + " x " + c.weights + " {" + c.window + "}" + (fused ? " fused" : ""));
  const auto module = hlo::ParseModule(ConvolutionText(c, fused));
  const hlo::Instruction& root = *module->entry()->root();
  const std::vector<Literal> operands = RandomOperands(root);
  const Literal got = OnDevice(root, operands, spec, options);

  const bool gradient = c.labels[0] == 'f';
  const std::vector<double> sums =
      (gradient ? HostGradient : HostConvolution)(FindConvolution(root), operands[0], operands[1]);
  const int64_t features = root.shape().dimensions().back();
  double largest = 0, error = 0;
  for (size_t i = 0; i < sums.size(); ++i) {
    double expected = sums[i];
    if (fused) expected = std::max(0.0, expected + operands[2].GetDouble(static_cast<int64_t>(i) % features));
    largest = std::max(largest, std::abs(expected));
    const double difference = std::abs(expected - got.GetDouble(static_cast<int64_t>(i)));
    error = std::isnan(difference) ? INFINITY : std::max(error, difference);
  }
  const ElementType type = root.shape().element_type();
  EXPECT_LE(error, (type == ElementType::kBF16 ? 1e-2 : type == ElementType::kF64 ? 1e-13 : 1e-5) * largest);
}

}  // namespace hlorun::opencl
