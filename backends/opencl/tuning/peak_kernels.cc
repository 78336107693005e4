#include "backends/opencl/tuning/peak_kernels.h"

#include <algorithm>
#include <string_view>

#include "backends/opencl/codegen/matrix_unit.h"
#include "backends/opencl/codegen/word_dot.h"
#include "backends/opencl/kernels/register_tile.h"
#include "hlo/error.h"

namespace hlorun::opencl {
namespace {

using hlo::ElementType;

// Some devices run one work-item a group, others want many: that is the caller's.
std::string Header(const DeviceSpec& device, const std::string& name) {
  const char* one_item =
      device.device_class == DeviceClass::kCpu ? "__attribute__((reqd_work_group_size(1, 1, 1))) " : "";
  return fmt::format(
      "__kernel {}__attribute__((min_vector_width(512))) void {}(__global const float* x, __global uint* out) {{\n"
      "  const float half_one = x[get_group_id(0) * {}];\n",
      one_item, name, kPeakStride);
}

// All chains together, so that none is dropped.
std::string Footer(const std::string& type, int64_t chains) {
  std::string sum = "a0";
  for (int64_t i = 1; i < chains; ++i) sum += fmt::format(" + a{}", i);
  return fmt::format("  *(__global {}*)(out + get_group_id(0) * {}) = {};\n}}\n", type, kPeakStride, sum);
}

// `step`: what a round does to a chain, with {} for its name.
std::string Chains(const std::string& type, const std::string& start, std::string_view step, int64_t chains,
                   int64_t rounds) {
  std::string text;
  for (int64_t i = 0; i < chains; ++i) text += fmt::format("  {} a{} = ({})({}{});\n", type, i, type, start, i);
  text += fmt::format("  for (int r = 0; r < {}; ++r) {{\n", rounds);
  for (int64_t i = 0; i < chains; ++i) {
    const std::string name = fmt::format("a{}", i);
    std::string line = fmt::format("    {} = {};\n", name, step);
    for (size_t at = line.find('@'); at != std::string::npos; at = line.find('@')) line.replace(at, 1, name);
    text += line;
  }
  return text + "  }\n";
}

// Enough chains to hide a multiply-add's latency, few enough to leave registers for the factors.
int64_t ChainsOf(const DeviceSpec& device) { return VectorRegisters(device) * 3 / 4; }

// a = a * m + m of a register's lanes.
PeakKernel MultiplyAdd(const DeviceSpec& device, const std::string& name, int64_t rounds, ElementType type,
                       const std::string& scalar, std::string_view step) {
  const int64_t lanes = RegisterLanes(device, type), chains = ChainsOf(device);
  const std::string vector = lanes == 1 ? scalar : scalar + std::to_string(lanes);
  PeakKernel kernel;
  if (type == ElementType::kF16) kernel.source += "#pragma OPENCL EXTENSION cl_khr_fp16 : enable\n";
  if (type == ElementType::kF64) kernel.source += "#pragma OPENCL EXTENSION cl_khr_fp64 : enable\n";
  // The factor of integers is odd: 3.
  const char* factor = type == ElementType::kS32 ? "half_one * 6" : "half_one";
  kernel.source += Header(device, name) +
                   fmt::format("  const {} m = ({})(({})({}));\n", vector, vector, scalar, factor) +
                   Chains(vector, "", step, chains, rounds) + Footer(vector, chains);
  kernel.operations = 2.0 * static_cast<double>(lanes * chains * rounds);
  return kernel;
}

PeakKernel F32(const DeviceSpec& device, const std::string& name, int64_t rounds) {
  return MultiplyAdd(device, name, rounds, ElementType::kF32, "float", "fma(@, m, m)");
}
PeakKernel F64(const DeviceSpec& device, const std::string& name, int64_t rounds) {
  return MultiplyAdd(device, name, rounds, ElementType::kF64, "double", "fma(@, m, m)");
}
PeakKernel F16(const DeviceSpec& device, const std::string& name, int64_t rounds) {
  return MultiplyAdd(device, name, rounds, ElementType::kF16, "half", "fma(@, m, m)");
}
PeakKernel S32(const DeviceSpec& device, const std::string& name, int64_t rounds) {
  return MultiplyAdd(device, name, rounds, ElementType::kS32, "int", "@ * m + m");
}

// sum + products of words: `elements` of them in each of 16 lanes.
PeakKernel Words(const DeviceSpec& device, const std::string& name, int64_t rounds, std::span<const WordDotForm> forms,
                 const std::string& form, const char* function, const std::string& sums, int64_t elements) {
  const char* dot = SourceOf(forms, form);
  if (dot == nullptr) Invalid("device spec: there is no way \"{}\" to multiply words", form);
  const int64_t chains = ChainsOf(device);
  PeakKernel kernel;
  kernel.functions.push_back(dot);
  kernel.source = Header(device, name) + "  const uint16 m = (uint16)((uint)(half_one * 2));\n" +
                  Chains(sums, "", fmt::format("{}(@, m, m)", function), chains, rounds) + Footer(sums, chains);
  kernel.operations = 2.0 * 16 * static_cast<double>(elements * chains * rounds);
  return kernel;
}

PeakKernel Bf16Words(const DeviceSpec& device, const std::string& name, int64_t rounds) {
  return Words(device, name, rounds, kBf16DotForms, device.bf16_dot, kBf16DotFunction, "float16", 2);
}
PeakKernel S8Words(const DeviceSpec& device, const std::string& name, int64_t rounds) {
  return Words(device, name, rounds, kS8DotForms, device.s8_dot, kS8DotFunction, "int16", 4);
}

// 32 x 32 sums by the matrix unit, from panels in the first cache, as the products' innermost loop has it.
PeakKernel Tiles(const DeviceSpec& device, const std::string& name, int64_t rounds, const char* function,
                 int64_t elements) {
  constexpr int64_t kSteps = 4, kStepBytes = 2048;
  PeakKernel kernel;
  for (const NamedSource& unit : kUnitFunctions) {
    const bool is_used = unit.name == kUnitBegin || unit.name == kUnitEnd || unit.name == kUnitZero ||
                         unit.name == kUnitStore || unit.name == function;
    if (is_used) kernel.functions.push_back(unit.source);
  }
  kernel.source = Header(device, name) +
                  fmt::format(
                      "  uint lhs[{0}] __attribute__((aligned(64))), rhs[{0}] __attribute__((aligned(64)));\n"
                      "  uint sums[1024] __attribute__((aligned(64)));\n"
                      "  for (int i = 0; i < {0}; ++i) lhs[i] = rhs[i] = (uint)(half_one * 2);\n"
                      "  const ulong a = (ulong)(&lhs[0]), b = (ulong)(&rhs[0]);\n"
                      "  {1}();\n  {2}();\n"
                      "  for (int r = 0; r < {3}; ++r) {4}(a, 64ul, {5}ul, b, {6}, a, 0);\n"
                      "  {7}((ulong)(&sums[0]));\n  {8}();\n"
                      "  for (int i = 0; i < 16; ++i) out[get_group_id(0) * {9} + i] = sums[i * 64];\n}}\n",
                      kSteps * kStepBytes / 4, kUnitBegin, kUnitZero, rounds, function, kStepBytes, kSteps, kUnitStore,
                      kUnitEnd, kPeakStride);
  // Four products of 16 x 16 sums a step, each 64 bytes deep.
  kernel.operations = 2.0 * 4 * 16 * 16 * 16 * static_cast<double>(elements * kSteps * rounds);
  return kernel;
}

PeakKernel Bf16Tiles(const DeviceSpec& device, const std::string& name, int64_t rounds) {
  return Tiles(device, name, rounds, kUnitBf16, 2);
}
PeakKernel S8Tiles(const DeviceSpec& device, const std::string& name, int64_t rounds) {
  return Tiles(device, name, rounds, kUnitS8, 4);
}

constexpr Peak kPeaks[] = {
    {kF32Peak, [](const DeviceSpec&) { return true; }, F32},
    {"f64_gflops", [](const DeviceSpec& d) { return d.has_f64; }, F64},
    {"f16_gflops", [](const DeviceSpec& d) { return d.has_f16; }, F16},
    {"s32_gflops", [](const DeviceSpec&) { return true; }, S32},
    {"bf16_words_gflops", [](const DeviceSpec& d) { return !d.bf16_dot.empty(); }, Bf16Words},
    {"s8_words_gflops", [](const DeviceSpec& d) { return !d.s8_dot.empty(); }, S8Words},
    {"bf16_tiles_gflops", [](const DeviceSpec& d) { return d.has_bf16_tiles; }, Bf16Tiles},
    {"s8_tiles_gflops", [](const DeviceSpec& d) { return d.has_s8_tiles; }, S8Tiles},
};

}  // namespace

std::string ProgramOf(std::span<const PeakKernel> kernels) {
  std::vector<std::string_view> functions;
  std::string program;
  for (const PeakKernel& kernel : kernels) {
    for (const std::string_view function : kernel.functions) {
      if (std::find(functions.begin(), functions.end(), function) != functions.end()) continue;
      functions.push_back(function);
      program += function;
    }
    program += kernel.source;
  }
  return program;
}

std::span<const Peak> Peaks() { return kPeaks; }

const Peak& PeakOf(std::string_view cost) {
  const auto found = std::find_if(std::begin(kPeaks), std::end(kPeaks), [&](const Peak& p) { return p.cost == cost; });
  HLORUN_CHECK(found != std::end(kPeaks));
  return *found;
}

}  // namespace hlorun::opencl
