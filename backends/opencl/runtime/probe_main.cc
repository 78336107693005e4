// hlorun-probe QUESTION PLATFORM DEVICE: asks an OpenCL runtime a question that may crash the asker. Exit status 0 is
// yes. Started by probe.cc; uses the C interface only.
#define CL_TARGET_OPENCL_VERSION 300
#include <CL/cl.h>
#include <signal.h>
#include <sys/prctl.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "backends/opencl/codegen/fragments.h"
#include "backends/opencl/codegen/half_conversion.h"
#include "backends/opencl/codegen/matrix_unit.h"
#include "backends/opencl/codegen/sub_groups.h"
#include "backends/opencl/codegen/wide_fragments.h"
#include "backends/opencl/codegen/word_dot.h"
#include "backends/opencl/runtime/marked_instructions.h"
#include "backends/opencl/runtime/tile_permission.h"

namespace {

using hlorun::opencl::WordDotForm;

cl_device_id DeviceAt(size_t platform_index, size_t device_index) {
  cl_uint count = 0;
  if (clGetPlatformIDs(0, nullptr, &count) != CL_SUCCESS || platform_index >= count) return nullptr;
  std::vector<cl_platform_id> platforms(count);
  clGetPlatformIDs(count, platforms.data(), nullptr);
  if (clGetDeviceIDs(platforms[platform_index], CL_DEVICE_TYPE_ALL, 0, nullptr, &count) != CL_SUCCESS) return nullptr;
  if (device_index >= count) return nullptr;
  std::vector<cl_device_id> devices(count);
  clGetDeviceIDs(platforms[platform_index], CL_DEVICE_TYPE_ALL, count, devices.data(), nullptr);
  return devices[device_index];
}

// A queue on the device and a kernel called f; null members where something failed.
struct Subject {
  cl_command_queue queue = nullptr;
  cl_kernel kernel = nullptr;
};
Subject Build(cl_device_id device, const char* source) {
  cl_int status = CL_SUCCESS;
  cl_context context = clCreateContext(nullptr, 1, &device, nullptr, nullptr, &status);
  if (status != CL_SUCCESS) return {};
  cl_command_queue queue = clCreateCommandQueueWithProperties(context, device, nullptr, &status);
  if (status != CL_SUCCESS) return {};
  cl_program program = clCreateProgramWithSource(context, 1, &source, nullptr, &status);
  if (status != CL_SUCCESS || clBuildProgram(program, 1, &device, "", nullptr, nullptr) != CL_SUCCESS) return {};
  cl_kernel kernel = clCreateKernel(program, "f", &status);
  if (status != CL_SUCCESS) return {};
  return {queue, kernel};
}

// The same from the binary's text with its marked comments as instructions.
Subject BuildMarked(cl_device_id device, const char* source) {
  const Subject first = Build(device, source);
  if (first.kernel == nullptr) return {};
  cl_program program = nullptr;
  cl_context context = nullptr;
  size_t size = 0;
  clGetKernelInfo(first.kernel, CL_KERNEL_PROGRAM, sizeof(program), &program, nullptr);
  clGetProgramInfo(program, CL_PROGRAM_CONTEXT, sizeof(context), &context, nullptr);
  clGetProgramInfo(program, CL_PROGRAM_BINARY_SIZES, sizeof(size), &size, nullptr);
  std::string binary(size, '\0');
  auto* from = reinterpret_cast<unsigned char*>(binary.data());
  if (clGetProgramInfo(program, CL_PROGRAM_BINARIES, sizeof(from), &from, nullptr) != CL_SUCCESS) return {};
  const std::string ptx = hlorun::opencl::WithMarkedInstructions(binary);
  const auto* bytes = reinterpret_cast<const unsigned char*>(ptx.data());
  size = ptx.size();
  cl_int status = CL_SUCCESS;
  program = clCreateProgramWithBinary(context, 1, &device, &size, &bytes, nullptr, &status);
  if (status != CL_SUCCESS || clBuildProgram(program, 1, &device, "", nullptr, nullptr) != CL_SUCCESS) return {};
  cl_kernel kernel = clCreateKernel(program, "f", &status);
  if (status != CL_SUCCESS) return {};
  return {first.queue, kernel};
}

struct Array {
  void* data;
  size_t bytes;
};

// One group of `items` runs the kernel over copies of the arrays, of which the last comes back.
bool RunOnArrays(cl_command_queue queue, cl_kernel kernel, const std::vector<Array>& arrays, size_t items) {
  cl_context context = nullptr;
  clGetCommandQueueInfo(queue, CL_QUEUE_CONTEXT, sizeof(context), &context, nullptr);
  cl_uint number = 0;
  cl_mem last = nullptr;
  for (const Array& array : arrays) {
    cl_int status = CL_SUCCESS;
    last = clCreateBuffer(context, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR, array.bytes, array.data, &status);
    if (status != CL_SUCCESS) return false;
    clSetKernelArg(kernel, number++, sizeof(last), &last);
  }
  return clEnqueueNDRangeKernel(queue, kernel, 1, nullptr, &items, &items, 0, nullptr, nullptr) == CL_SUCCESS &&
         clEnqueueReadBuffer(queue, last, CL_TRUE, 0, arrays.back().bytes, arrays.back().data, 0, nullptr, nullptr) ==
             CL_SUCCESS;
}

// A function of word_dot.h, and what it makes of 1 and two words.
struct WordQuestion {
  const char *function, *sums;  // the type of sums
  cl_uint a, b;
  float expected;
};
// 1 + 2 * 4 + 3 * 5; 1 - 1 * 255 + 2 * 4 + 3 * 200 - 128 * 1.
constexpr WordQuestion kBf16Question = {hlorun::opencl::kBf16DotFunction, "float", 0x40404000U, 0x40a04080U, 24};
// What is rounded by both functions: a tie, 1 + 3 / 256, to 1.015625, and 3.01 to 3.015625.
constexpr const char* kRoundsWords =
    "static inline float16 hl_rounded(float16 sum, uint16 a, uint16 b) {\n"
    "  return as_float16(hl_pack_any_bf16(as_float16(a), as_float16(a)) << 16) + hl_result_bf16_16(as_float16(b)) + sum;\n}\n";
constexpr WordQuestion kRoundQuestion = {"hl_rounded", "float", 0x3f818000U, 0x4040a3d7U, 5.03125F};
constexpr WordQuestion kS8Question = {hlorun::opencl::kS8DotFunction, "int", 0x800302ffU, 0x01c804ffU, 226};

bool AnswersWords(cl_device_id device, const std::string& functions, const WordQuestion& question) {
  const std::string type = question.sums;
  const std::string source =
      functions +
      "__kernel __attribute__((reqd_work_group_size(1, 1, 1), min_vector_width(512))) void f(__global float* y, uint a, uint b) {\n"
      "  vstore16(convert_float16(" +
      question.function + "((" + type + "16)(1), (uint16)(a), (uint16)(b))), 0, y);\n}\n";
  const Subject subject = Build(device, source.c_str());
  if (subject.kernel == nullptr) return false;
  cl_context context = nullptr;
  clGetCommandQueueInfo(subject.queue, CL_QUEUE_CONTEXT, sizeof(context), &context, nullptr);
  cl_int status = CL_SUCCESS;
  float y[16] = {};
  cl_mem buffer = clCreateBuffer(context, CL_MEM_WRITE_ONLY, sizeof(y), nullptr, &status);
  if (status != CL_SUCCESS) return false;
  clSetKernelArg(subject.kernel, 0, sizeof(buffer), &buffer);
  clSetKernelArg(subject.kernel, 1, sizeof(cl_uint), &question.a);
  clSetKernelArg(subject.kernel, 2, sizeof(cl_uint), &question.b);
  const size_t one = 1;
  if (clEnqueueNDRangeKernel(subject.queue, subject.kernel, 1, nullptr, &one, &one, 0, nullptr, nullptr) != CL_SUCCESS)
    return false;
  if (clEnqueueReadBuffer(subject.queue, buffer, CL_TRUE, 0, sizeof(y), y, 0, nullptr, nullptr) != CL_SUCCESS)
    return false;
  for (float value : y) {
    if (value != question.expected) return false;
  }
  return true;
}

// What a half's bits stand for; infinity counts as what would come next, 65536.
float ValueOfHalf(int bits) {
  const int exponent = bits >> 10 & 31, fraction = bits & 1023;
  const float size = exponent == 0 ? std::ldexp(static_cast<float>(fraction), -24)
                                   : std::ldexp(static_cast<float>(1024 + fraction), exponent - 25);
  return bits < 0x8000 ? size : -size;
}

// Conversions by every number of lanes up to the widest: assembly has no operand for vectors that the device has not.
struct HalfQuestion {
  std::string_view form;
  int lanes;
};
std::vector<int> LanesOf(const HalfQuestion& question) {
  std::vector<int> lanes;
  for (int n = 1; n <= question.lanes; n *= 2) lanes.push_back(n);
  return lanes;
}

// ... of so many values each.
std::string HalfSource(const HalfQuestion& question, size_t count, const std::string& from, const std::string& to,
                       const std::string& function) {
  std::string source, body;
  for (const int lanes : LanesOf(question)) {
    const std::string n = std::to_string(lanes);
    source += hlorun::opencl::HalfConversions(question.form, lanes);
    const std::string elements = lanes == 1 ? "y[i] = FUNCTION(x[i]);" : "vstoreN(FUNCTION_N(vloadN(i, x)), i, y);";
    std::string loop = "  for (int i = 0; i < COUNT / LANES; ++i) " + elements + "\n  y += COUNT;\n";
    for (const auto& [word, with] : std::initializer_list<std::pair<std::string, std::string>>{
             {"FUNCTION", function}, {"COUNT", std::to_string(count)}, {"LANES", n}, {"N", n}}) {
      for (size_t at = loop.find(word); at != std::string::npos; at = loop.find(word, at + with.size()))
        loop.replace(at, word.size(), with);
    }
    body += loop;
  }
  return source + "__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void f(__global const " + from +
         "* x, __global " + to + "* y) {\n" + body + "}\n";
}

template <typename From, typename To>
bool ConvertsTo(cl_device_id device, const std::string& source, size_t times, std::vector<From> values,
                const std::vector<To>& want) {
  const auto [queue, kernel] = Build(device, source.c_str());
  if (kernel == nullptr) return false;
  std::vector<To> y(values.size() * times);
  if (!RunOnArrays(queue, kernel, {{values.data(), values.size() * sizeof(From)}, {y.data(), y.size() * sizeof(To)}},
                   1))
    return false;
  for (size_t i = 0; i < y.size(); ++i) {
    const To wanted = want[i % want.size()];
    if (y[i] != wanted || std::signbit(static_cast<float>(y[i])) != std::signbit(static_cast<float>(wanted)))
      return false;
  }
  return true;
}

// Every half but NaN; every half, what is next to the middle between it and the next one, and the middle itself.
bool ConvertsHalves(cl_device_id device, const HalfQuestion& question) {
  const size_t times = LanesOf(question).size();
  std::vector<cl_ushort> bits, rounded;
  std::vector<float> values, exact;
  for (int half = 0; half < 0xfc00; ++half) {
    if ((half & 0x7fff) >= 0x7c00) continue;
    const float value = ValueOfHalf(half), middle = (value + ValueOfHalf(half + 1)) / 2;
    bits.push_back(static_cast<cl_ushort>(half));
    exact.push_back(value);
    for (const float tried : {value, std::nextafter(middle, value), middle, std::nextafter(middle, 2 * middle)}) {
      values.push_back(tried);
      const bool next = std::abs(tried) > std::abs(middle) || (tried == middle && (half & 1) != 0);
      rounded.push_back(static_cast<cl_ushort>(half + (next ? 1 : 0)));
    }
  }
  for (const cl_ushort infinity : {0x7c00, 0xfc00}) {
    for (int i = 0; i < 8; ++i) {
      bits.push_back(infinity);
      exact.push_back(infinity < 0x8000 ? INFINITY : -INFINITY);
    }
  }
  return ConvertsTo(device, HalfSource(question, bits.size(), "ushort", "float", "hl_from_f16"), times, bits, exact) &&
         ConvertsTo(device, HalfSource(question, values.size(), "float", "ushort", "hl_to_f16"), times, values,
                    rounded);
}

// A kind of tiles: small integers as the last element of a word.
struct TileQuestion {
  const char *type, *steps, *sums;
  cl_uint (*word)(int value);
};
cl_uint Bf16Word(int value) {
  const auto number = static_cast<float>(value);
  cl_uint bits = 0;
  std::memcpy(&bits, &number, sizeof(bits));
  return bits;
}
cl_uint S8Word(int value) { return static_cast<cl_uint>(value) << 24U; }
constexpr TileQuestion kTileQuestions[] = {
    {"unit-bf16", hlorun::opencl::kUnitBf16, "float", Bf16Word},
    {"unit-s8", hlorun::opencl::kUnitS8, "int", S8Word},
};

// The same 32 x 32 products twice, with the sums in memory between.
std::string TileSource(const TileQuestion& question) {
  std::string source;
  for (const hlorun::opencl::NamedSource& function : hlorun::opencl::kUnitFunctions) source += function.source;
  const std::string steps = "  " + std::string(question.steps) +
                            "((ulong)(a), 64, 2048, (ulong)(b), 1, (ulong)(a), 2);\n  hl_unit_store((ulong)(sums));\n";
  return source +
         "__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void f(__global const uint* a, __global const uint* b, "
         "__global float* y) {\n  " +
         question.sums + " sums[1024] __attribute__((aligned(64)));\n  hl_unit_begin();\n  hl_unit_zero();\n" + steps +
         "  hl_unit_load((ulong)(sums));\n" + steps +
         "  hl_unit_end();\n  for (int i = 0; i < 1024; ++i) y[i] = sums[i];\n}\n";
}

bool MultipliesTiles(cl_device_id device, const TileQuestion& question) {
  constexpr int kRows = 32, kSide = 16;
  const auto left = [](int row, int word) { return (row + 2 * word) % 7 - 3; };
  const auto right = [](int word, int column) { return (3 * word + column) % 5 - 2; };
  // Two tiles each: rows of lhs; columns of rhs.
  cl_uint a[kRows * kSide], b[kRows * kSide];
  float y[kRows * kRows] = {};
  for (int i = 0; i < kRows; ++i) {
    for (int word = 0; word < kSide; ++word) {
      a[i * kSide + word] = question.word(left(i, word));
      b[(i / kSide * kSide + word) * kSide + i % kSide] = question.word(right(word, i));
    }
  }
  const std::string source = TileSource(question);
  if (!hlorun::opencl::AskForTiles()) return false;
  const auto [queue, kernel] = Build(device, source.c_str());
  if (kernel == nullptr) return false;
  if (!RunOnArrays(queue, kernel, {{a, sizeof(a)}, {b, sizeof(b)}, {y, sizeof(y)}}, 1)) return false;
  for (int i = 0; i < kRows * kRows; ++i) {
    int sum = 0;
    for (int word = 0; word < kSide; ++word) sum += 2 * left(i / kRows, word) * right(word, i % kRows);
    if (y[i] != static_cast<float>(sum)) return false;
  }
  return true;
}

// A type that matrix instructions multiply: its small integers, and how many of them lie in 16 bits.
struct FragmentQuestion {
  const char *multiply, *sums;  // the function, and the type of sums
  int per_unit;
  cl_ushort (*bits)(int value);
};

// 16 lines of lhs, 16 units of k each, times 16 lines of 16 units of rhs, first as columns of k and then, turned, as
// rows, by one sub-group. A unit is 16 bits.
std::string FragmentSource(const FragmentQuestion& question) {
  using hlorun::opencl::kFragmentLoad, hlorun::opencl::kFragmentLoadTurned;
  std::string source;
  for (const hlorun::opencl::NamedSource& function : hlorun::opencl::kFragmentFunctions) {
    if (function.name == kFragmentLoad || function.name == kFragmentLoadTurned || function.name == question.multiply)
      source += function.source;
  }
  const std::string type = question.sums, sums = " = " + std::string(question.multiply) + "((" + type + ")(0), x, ";
  return source +
         "__kernel __attribute__((reqd_work_group_size(32, 1, 1))) void f(__global const ushort* a, "
         "__global const ushort* b, __global float* y) {\n"
         "  __local ushort l[256] __attribute__((aligned(64))), r[256] __attribute__((aligned(64)));\n"
         "  int i = get_local_id(0), g = i / 4, t = i % 4;\n"
         "  for (int j = i; j < 256; j += 32) { l[j] = a[j]; r[j] = b[j]; }\n"
         "  barrier(CLK_LOCAL_MEM_FENCE);\n"
         "  int low = i % 8, odd = i / 8 % 2 * 8, high = i / 16 * 8;\n"
         "  uint4 x = hl_fragment_load((ulong)(l + (low + odd) * 16 + high));\n"
         "  uint4 p = hl_fragment_load((ulong)(r + (low + high) * 16 + odd));\n"
         "  uint4 q = hl_fragment_load_turned((ulong)(r + (low + odd) * 16 + high));\n  " +
         type + " s[4];\n  s[0]" + sums + "p.s0, p.s1);\n  s[1]" + sums + "p.s2, p.s3);\n  s[2]" + sums +
         "q.s0, q.s1);\n  s[3]" + sums +
         "q.s2, q.s3);\n"
         "  for (int j = 0; j < 4; ++j) {\n"
         "    int at = j / 2 * 256 + g * 16 + j % 2 * 8 + 2 * t;\n"
         "    y[at] = s[j].s0; y[at + 1] = s[j].s1; y[at + 128] = s[j].s2; y[at + 129] = s[j].s3;\n"
         "  }\n}\n";
}

// The bits of small integers as 16-bit floats.
cl_ushort Bf16Bits(int value) {
  const auto number = static_cast<float>(value);
  cl_uint bits = 0;
  std::memcpy(&bits, &number, sizeof(bits));
  return static_cast<cl_ushort>(bits >> 16U);
}
cl_ushort F16Bits(int value) {
  const int size = value < 0 ? -value : value;
  int exponent = 0;
  while (size >> (exponent + 1) != 0) ++exponent;
  const int bits = size == 0 ? 0 : (exponent + 15) * 1024 + (size * 1024 >> exponent) - 1024;
  return static_cast<cl_ushort>(bits + (value < 0 ? 0x8000 : 0));
}

cl_ushort S8Bits(int value) { return static_cast<cl_ushort>(value & 0xff); }
constexpr FragmentQuestion kBf16Fragments = {hlorun::opencl::kFragmentBf16, "float4", 1, Bf16Bits};
constexpr FragmentQuestion kF16Fragments = {hlorun::opencl::kFragmentF16, "float4", 1, F16Bits};
constexpr FragmentQuestion kS8Fragments = {hlorun::opencl::kFragmentS8, "int4", 2, S8Bits};

bool MultipliesFragments(cl_device_id device, const FragmentQuestion& question) {
  constexpr int kSide = 16;
  const int per_unit = question.per_unit;
  // Those of s8 reach from -128 to 127.
  const auto left = [&](int row, int k) {
    return per_unit == 1 ? (row + 2 * k + row * k) % 7 - 3 : (37 * row + 11 * k + row * k * k) % 256 - 128;
  };
  const auto right = [&](int outer, int inner) {
    return per_unit == 1 ? (3 * outer + inner + outer * inner) % 5 - 2
                         : (101 * outer + 29 * inner + outer * inner) % 256 - 128;
  };
  cl_ushort a[kSide * kSide] = {}, b[kSide * kSide] = {};
  for (int i = 0; i < kSide * kSide; ++i) {
    for (int j = 0; j < per_unit; ++j) {
      const int line = i / kSide, k = i % kSide * per_unit + j;
      a[i] = static_cast<cl_ushort>(a[i] | question.bits(left(line, k)) << (8 * j));
      b[i] = static_cast<cl_ushort>(b[i] | question.bits(right(line, k)) << (8 * j));
    }
  }
  float y[2 * kSide * kSide] = {};
  const std::string source = FragmentSource(question);
  const auto [queue, kernel] = Build(device, source.c_str());
  if (kernel == nullptr) return false;
  if (!RunOnArrays(queue, kernel, {{a, sizeof(a)}, {b, sizeof(b)}, {y, sizeof(y)}}, 32)) return false;
  // Pairs are not turned: where a unit has two, the second half says nothing.
  for (int i = 0; i < (per_unit == 1 ? 2 : 1) * kSide * kSide; ++i) {
    const bool is_turned = i >= kSide * kSide;
    const int row = i / kSide % kSide, column = i % kSide;
    int sum = 0;
    for (int k = 0; k < kSide * per_unit; ++k) sum += left(row, k) * (is_turned ? right(k, column) : right(column, k));
    if (y[i] != static_cast<float>(sum)) return false;
  }
  return true;
}

// 64 lines of lhs, of `depth` k, times 64 columns of rhs, both with k fastest, or both with the other side fastest.
std::string WideSource(const hlorun::opencl::WideFragments& functions, const hlorun::opencl::WideOperand& operand) {
  using hlorun::opencl::WideFragments;
  std::string source;
  for (const auto& [name, text] : functions.functions()) source += text;
  const int64_t line = operand.k_is_fastest ? operand.depth : 64;
  const std::string length = std::to_string(line), count = std::to_string(64 * operand.depth);
  source +=
      "__kernel __attribute__((reqd_work_group_size(128, 1, 1))) void f(__global const ushort* a, "
      "__global const ushort* b, __global float* y) {\n"
      "  __local ushort l[" +
      count + "] __attribute__((aligned(1024))), r[" + count +
      "] __attribute__((aligned(1024)));\n"
      "  int i = get_local_id(0);\n"
      "  for (int j = i; j < " +
      count +
      "; j += 128) {\n"
      "    int row = j / " +
      length + ", at = j % " + length +
      ";\n"
      "    int to = row * " +
      length + " + ((at / 8 ^ row / " + std::to_string(64 / line) + " % " + std::to_string(line / 8) +
      ") * 8 + at % 8);\n"
      "    l[to] = a[j]; r[to] = b[j];\n  }\n  " +
      functions.Begin() + "();\n  " + WideFragments::Wait() + "();\n  barrier(CLK_LOCAL_MEM_FENCE);\n  " +
      WideFragments::Open() + "();\n";
  for (int64_t k = 0; k < operand.depth; k += 16) {
    const std::string at = std::to_string(operand.k_is_fastest ? k : k * line);
    source += "  " + functions.Multiply() + "((ulong)(l + " + at + "), (ulong)(r + " + at + "));\n";
  }
  source += "  " + WideFragments::Close() + "();\n  " + WideFragments::Wait() + "();\n  float4 s;\n";
  for (int eight = 0; eight < 8; ++eight) {
    const std::string at = "(i / 32 * 16 + i % 32 / 4) * 64 + i % 4 * 2 + " + std::to_string(8 * eight);
    source += "  s = " + WideFragments::Sums(eight) + "();\n  y[" + at + "] = s.s0; y[" + at + " + 1] = s.s1; y[" + at +
              " + 512] = s.s2; y[" + at + " + 513] = s.s3;\n";
  }
  return source + "}\n";
}

bool MultipliesWide(cl_device_id device, bool is_bf16, const hlorun::opencl::WideOperand& operand) {
  constexpr int kSide = 64;
  const auto bits = is_bf16 ? Bf16Bits : F16Bits;
  const auto left = [](int row, int k) { return (row + 2 * k + row * k) % 7 - 3; };
  const auto right = [](int column, int k) { return (3 * column + k + column * k) % 5 - 2; };
  const auto depth = static_cast<int>(operand.depth);
  std::vector<cl_ushort> a(static_cast<size_t>(kSide * depth)), b(a.size());
  for (int outer = 0; outer < kSide; ++outer) {
    for (int k = 0; k < depth; ++k) {
      const auto at = static_cast<size_t>(operand.k_is_fastest ? outer * depth + k : k * kSide + outer);
      a[at] = bits(left(outer, k));
      b[at] = bits(right(outer, k));
    }
  }
  std::vector<float> y(kSide * kSide, 0);
  const std::string source = WideSource(hlorun::opencl::WideFragments(is_bf16, kSide, operand, operand), operand);
  const auto [queue, kernel] = BuildMarked(device, source.c_str());
  if (kernel == nullptr) return false;
  if (!RunOnArrays(queue, kernel,
                   {{a.data(), a.size() * 2}, {b.data(), b.size() * 2}, {y.data(), y.size() * sizeof(float)}}, 128)) {
    return false;
  }
  for (int i = 0; i < kSide * kSide; ++i) {
    int sum = 0;
    for (int k = 0; k < depth; ++k) sum += left(i / kSide, k) * right(i % kSide, k);
    if (y[static_cast<size_t>(i)] != static_cast<float>(sum)) return false;
  }
  return true;
}

// Lines of each length, operands of either order, and both types once; pieces behind the first are left to the kernels.
bool MultipliesWide(cl_device_id device) {
  for (const int64_t depth : {16, 32, 64}) {
    for (const bool k_is_fastest : {true, false}) {
      if (!MultipliesWide(device, depth != 32, {k_is_fastest, depth})) return false;
    }
  }
  return true;
}

// Each work-item of a group of four sub-groups or more asks all lanes that a power of two is between, for words and for
// pairs of them.
bool ExchangesLanes(cl_device_id device, const hlorun::opencl::ExchangeForm& form, size_t size) {
  const size_t items = std::max<size_t>(128, 4 * size);
  size_t distances = 0;
  while (size_t{1} << distances < size) ++distances;
  const std::string attribute =
      form.names_size ? " __attribute__((intel_reqd_sub_group_size(" + std::to_string(size) + ")))" : "";
  const std::string source = std::string(form.word) + form.wide + "__kernel __attribute__((reqd_work_group_size(" +
                             std::to_string(items) + ", 1, 1)))" + attribute +
                             " void f(__global ulong* y) {\n  uint i = get_local_id(0);\n  for (uint j = 0; j < " +
                             std::to_string(distances) +
                             "; ++j) {\n    uint x = hl_exchange(i * 3 + 1, 1u << j);\n"
                             "    ulong w = hl_exchange_wide(((ulong)(i) << 40) + i, 1u << j);\n"
                             "    y[j * get_local_size(0) + i] = w + ((ulong)(x) << 20);\n  }\n}\n";
  const auto [queue, kernel] = Build(device, source.c_str());
  if (kernel == nullptr) return false;
  std::vector<cl_ulong> y(items * distances, 0);
  if (!RunOnArrays(queue, kernel, {{y.data(), y.size() * sizeof(cl_ulong)}}, items)) return false;
  for (size_t i = 0; i < y.size(); ++i) {
    const cl_ulong there = (i % items) ^ (size_t{1} << (i / items));
    if (y[i] != (there << 40U) + ((there * 3 + 1) << 20U) + there) return false;
  }
  return true;
}

// Plain pointers, also into the middle of a block, as kernel arguments and in a copy command.
bool TakesRawPointers(cl_device_id device) {
  const char* source =
      "__kernel void f(__global const int* x, __global int* y) { y[get_global_id(0)] = x[get_global_id(0)] + 1; }";
  const auto [queue, kernel] = Build(device, source);
  if (kernel == nullptr) return false;

  constexpr size_t kCount = 4096, kOffset = 16;
  std::vector<int> x(kCount + kOffset, 41), y(kCount + kOffset, 0), z(kCount, 0);
  if (clSetKernelArgSVMPointer(kernel, 0, x.data() + kOffset) != CL_SUCCESS) return false;
  if (clSetKernelArgSVMPointer(kernel, 1, y.data() + kOffset) != CL_SUCCESS) return false;
  const size_t global = kCount;
  if (clEnqueueNDRangeKernel(queue, kernel, 1, nullptr, &global, nullptr, 0, nullptr, nullptr) != CL_SUCCESS)
    return false;
  if (clEnqueueSVMMemcpy(queue, CL_FALSE, z.data(), y.data() + kOffset, kCount * sizeof(int), 0, nullptr, nullptr) !=
      CL_SUCCESS) {
    return false;
  }
  if (clFinish(queue) != CL_SUCCESS) return false;
  for (int value : z) {
    if (value != 42) return false;
  }
  return y[0] == 0;
}

// Calls a function that the kernel names, as native_call.h does.
bool CallsFunctions(cl_device_id device) {
#if defined(__x86_64__)
  const char* source = R"(__attribute__((noinline, used)) void hl_function(__global ulong* p) { p[1] = 3 * p[2]; }
__kernel void f(__global ulong* p) {
  if (p[2] > 0) {
    hl_function(p);
    return;
  }
  ulong where;
  __asm__("leaq hl_function(%%rip), %0" : "=r"(where));
  p[0] = where;
})";
  const auto [queue, kernel] = Build(device, source);
  if (kernel == nullptr) return false;
  std::vector<cl_ulong> words(3, 0);
  if (clSetKernelArgSVMPointer(kernel, 0, words.data()) != CL_SUCCESS) return false;
  constexpr size_t kOne = 1;
  if (clEnqueueNDRangeKernel(queue, kernel, 1, nullptr, &kOne, &kOne, 0, nullptr, nullptr) != CL_SUCCESS) return false;
  if (clFinish(queue) != CL_SUCCESS || words[0] == 0) return false;
  words[2] = 14;
  reinterpret_cast<void (*)(cl_ulong*)>(words[0])(words.data());
  return words[1] == 42;
#else
  return device == nullptr;
#endif
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  prctl(PR_SET_PDEATHSIG, SIGKILL);  // nobody wants the answer of a process that was killed
  cl_device_id device = DeviceAt(std::strtoul(argv[2], nullptr, 10), std::strtoul(argv[3], nullptr, 10));
  if (device == nullptr) return 2;
  if (std::string_view(argv[1]) == "raw-pointers") return TakesRawPointers(device) ? 0 : 1;
  if (std::string_view(argv[1]) == "native-calls") return CallsFunctions(device) ? 0 : 1;
  for (const WordDotForm& form : hlorun::opencl::kBf16DotForms) {
    if (argv[1] != "bf16-words-" + std::string(form.name)) continue;
    const std::string rounds = hlorun::opencl::SourceOf(hlorun::opencl::kBf16RoundForms, form.name);
    return AnswersWords(device, form.source, kBf16Question) &&
                   AnswersWords(device, rounds + kRoundsWords, kRoundQuestion)
               ? 0
               : 1;
  }
  for (const WordDotForm& form : hlorun::opencl::kS8DotForms) {
    if (argv[1] == "s8-" + std::string(form.name)) return AnswersWords(device, form.source, kS8Question) ? 0 : 1;
  }
  for (const std::string_view form : hlorun::opencl::kHalfForms) {
    const std::string question = argv[1], start = "halves-" + std::string(form) + "-";
    if (question.starts_with(start))
      return ConvertsHalves(device, {form, std::atoi(question.c_str() + start.size())}) ? 0 : 1;
  }
  const std::string form(hlorun::opencl::kFragmentsByPtx);
  if (argv[1] == "fragments-" + form)
    return MultipliesFragments(device, kBf16Fragments) && MultipliesFragments(device, kF16Fragments) ? 0 : 1;
  if (argv[1] == "fragments-s8-" + form) return MultipliesFragments(device, kS8Fragments) ? 0 : 1;
  if (argv[1] == "fragments-wide-" + form) return MultipliesWide(device) ? 0 : 1;
  for (const hlorun::opencl::ExchangeForm& form : hlorun::opencl::kExchangeForms) {
    const std::string question = argv[1], start = "moves-" + std::string(form.name) + "-";
    if (question.starts_with(start))
      return ExchangesLanes(device, form, std::strtoul(question.c_str() + start.size(), nullptr, 10)) ? 0 : 1;
  }
  for (const TileQuestion& question : kTileQuestions) {
    if (std::string_view(argv[1]) == question.type) return MultipliesTiles(device, question) ? 0 : 1;
  }
  return 2;
}
