#include "tests/backends/codegen/kernel_runner.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <random>

#include "backends/opencl/runtime/cl.h"
#include "hlo/evaluator/evaluator.h"
#include "hlo/text/parser.h"
#include "passes/fusion/hero.h"

namespace hlorun::opencl {
namespace {

using hlo::Instruction;
using hlo::Literal;
using hlo::Opcode;

constexpr size_t kGuardBytes = 256;
constexpr unsigned char kGuard = 0xA5;

// Host memory with guards on both sides, so that a write out of bounds shows.
class GuardedArray {
 public:
  explicit GuardedArray(size_t bytes)
      : bytes_(bytes), memory_(static_cast<unsigned char*>(std::aligned_alloc(64, Rounded(bytes)))) {
    std::memset(memory_.get(), kGuard, Rounded(bytes));
  }
  unsigned char* data() { return memory_.get() + kGuardBytes; }
  bool Intact() const {
    for (size_t i = 0; i < kGuardBytes; ++i) {
      if (memory_.get()[i] != kGuard || memory_.get()[kGuardBytes + bytes_ + i] != kGuard) return false;
    }
    return true;
  }

 private:
  struct Free {
    void operator()(unsigned char* p) const { std::free(p); }
  };
  static size_t Rounded(size_t bytes) { return (bytes + 2 * kGuardBytes + 63) / 64 * 64; }
  size_t bytes_;
  std::unique_ptr<unsigned char, Free> memory_;
};
using ArrayRef = std::shared_ptr<GuardedArray>;

Literal RandomLiteral(const hlo::Shape& shape, std::mt19937& random) {
  Literal literal(shape);
  const hlo::ElementType type = shape.element_type();
  std::normal_distribution<double> normal;
  for (int64_t i = 0; i < shape.ElementCount(); ++i) {
    if (type == hlo::ElementType::kPred)
      literal.SetInt(i, random() & 1);
    else if (hlo::IsInteger(type))
      literal.SetInt(i, static_cast<int64_t>(random() % 23) - (hlo::IsSigned(type) ? 7 : 0));
    else if (hlo::IsComplex(type))
      literal.SetComplex(i, {normal(random), normal(random)});
    else
      literal.SetDouble(i, normal(random));
  }
  return literal;
}

double Tolerance(hlo::ElementType type) {
  switch (hlo::RealOf(type)) {
    case hlo::ElementType::kF64: return 1e-11;
    case hlo::ElementType::kF32: return 2e-5;
    case hlo::ElementType::kF16: return 4e-3;
    case hlo::ElementType::kBF16: return 2e-2;
    default: return hlo::IsFloating(type) ? 0.3 : 0;
  }
}

bool CloseEnough(double x, double y, double tolerance) {
  if (std::isnan(x) || std::isnan(y)) return std::isnan(x) && std::isnan(y);
  if (x == y) return true;
  return std::abs(x - y) <= tolerance * (1 + std::abs(y));
}

std::string FirstDifference(const Literal& got, const Literal& want) {
  const double tolerance = Tolerance(want.element_type());
  for (int64_t i = 0; i < want.ElementCount(); ++i) {
    const auto a = got.GetComplex(i), b = want.GetComplex(i);
    if (CloseEnough(a.real(), b.real(), tolerance) && CloseEnough(a.imag(), b.imag(), tolerance)) continue;
    return fmt::format("element {} of {}: {} + {}i, expected {} + {}i", i, want.shape().ToString(), a.real(), a.imag(),
                       b.real(), b.imag());
  }
  return "";
}

std::vector<const Literal*> Leaves(const Literal& literal) {
  if (!literal.shape().IsTuple()) return {&literal};
  std::vector<const Literal*> leaves;
  for (const Literal& element : literal.elements()) {
    for (const Literal* leaf : Leaves(element)) leaves.push_back(leaf);
  }
  return leaves;
}

bool NeedsKernel(const Instruction& op) { return passes::HeroOf(op).kind != passes::KernelKind::kNone; }

std::string Renamed(std::string source, const std::string& name) {
  const std::string from = kKernelName;
  for (size_t at = source.find(from); at != std::string::npos; at = source.find(from, at + name.size()))
    source.replace(at, from.size(), name);
  return source;
}

}  // namespace

struct KernelRunner::Case {
  std::string name;
  std::unique_ptr<hlo::Module> module;
  struct Step {
    const Instruction* instruction;
    AliasPattern aliases;
    std::vector<EmittedLaunch> launches;
    std::vector<std::string> kernels;
  };
  std::vector<Step> steps;
};

KernelRunner::KernelRunner(DeviceSpec device) : device_(std::move(device)) {}
KernelRunner::~KernelRunner() = default;

void KernelRunner::Add(const std::string& name, const std::string& hlo_text) {
  AddModule(name, hlo::ParseModule(hlo_text));
}

void KernelRunner::AddModule(const std::string& name, std::unique_ptr<hlo::Module> module) {
  auto added = std::make_unique<Case>();
  added->name = name;
  added->module = std::move(module);
  cases_.push_back(std::move(added));
}

void KernelRunner::RunAll(bool in_place) {
  const CompileOptions options;
  const EmitContext context{device_, options};
  const OpenClKernelModel model(device_, options);
  std::string program_text;
  std::map<std::string, std::string> names;  // source -> kernel name
  for (const auto& c : cases_) {
    for (const auto& op : c->module->entry()->instructions()) {
      if (!NeedsKernel(*op)) continue;
      EXPECT_TRUE(model.Supports(*op)) << c->name << ": " << op->ToString();
      Case::Step step{op.get(), AliasPattern(static_cast<size_t>(hlo::LeafCount(op->shape())), -1), {}, {}};
      for (size_t leaf = 0; in_place && leaf < step.aliases.size(); ++leaf) {
        for (int64_t i = 0; i < op->operand_count() && step.aliases[leaf] < 0; ++i) {
          const bool taken = std::find(step.aliases.begin(), step.aliases.end(), i) != step.aliases.end();
          if (!taken && !op->operand(i)->IsConstant() && model.MayShareBuffer(*op, i, static_cast<int64_t>(leaf)))
            step.aliases[leaf] = i;
        }
      }
      try {
        step.launches = EmitInstruction(*op, step.aliases, context);
      } catch (const Error& error) {
        ADD_FAILURE() << c->name << ": " << error.what();
        continue;
      }
      for (const EmittedLaunch& launch : step.launches) {
        std::string& kernel = names[launch.source];
        if (kernel.empty()) {
          kernel = fmt::format("k{}", names.size());
          program_text += Renamed(launch.source, kernel) + "\n";
        }
        step.kernels.push_back(kernel);
      }
      c->steps.push_back(std::move(step));
    }
  }

  cl::Platform platform = cl::Platform::getDefault();
  std::vector<cl::Device> devices;
  platform.getDevices(CL_DEVICE_TYPE_ALL, &devices);
  ASSERT_FALSE(devices.empty());
  cl::Context cl_context(devices[0]);
  cl::CommandQueue queue(cl_context, devices[0]);
  cl::Program program(cl_context, program_text);
  try {
    program.build({devices[0]}, "-cl-std=CL1.2 -cl-denorms-are-zero -w");
  } catch (const cl::Error&) {
    if (const char* path = std::getenv("HLORUN_TEST_SOURCE")) std::ofstream(path) << program_text;
    FAIL() << program.getBuildInfo<CL_PROGRAM_BUILD_LOG>(devices[0]).substr(0, 4000);
  }

  for (const auto& c : cases_) {
    SCOPED_TRACE(c->name);
    std::mt19937 random(17);
    std::vector<Literal> arguments;
    std::map<std::pair<const Instruction*, int64_t>, ArrayRef> arrays;  // by leaf
    const auto put = [&](const Instruction* op, const Literal& literal) {
      auto array = std::make_shared<GuardedArray>(static_cast<size_t>(literal.ByteSize()));
      std::memcpy(array->data(), literal.data(), static_cast<size_t>(literal.ByteSize()));
      arrays[{op, 0}] = array;
    };
    for (const Instruction* p : c->module->entry()->parameters()) {
      arguments.push_back(RandomLiteral(p->shape(), random));
      put(p, arguments.back());
    }
    for (const auto& op : c->module->entry()->instructions()) {
      if (op->IsConstant()) put(op.get(), op->literal());
    }
    // Tuples and their elements name arrays; they hold none.
    const std::function<ArrayRef(const Instruction*, int64_t)> leaf_of = [&](const Instruction* op,
                                                                             int64_t leaf) -> ArrayRef {
      if (op->Is(Opcode::kGetTupleElement)) return leaf_of(op->operand(0), op->tuple_index());
      if (op->Is(Opcode::kTuple)) return leaf_of(op->operand(leaf), 0);
      if (op->Is(Opcode::kBitcast)) return leaf_of(op->operand(0), 0);
      return arrays[{op, leaf}];
    };
    for (const Case::Step& step : c->steps) {
      const std::vector<hlo::Shape> leaves = hlo::FlattenShape(step.instruction->shape());
      for (size_t leaf = 0; leaf < leaves.size(); ++leaf) {
        arrays[{step.instruction, static_cast<int64_t>(leaf)}] =
            step.aliases[leaf] >= 0 ? leaf_of(step.instruction->operand(step.aliases[leaf]), 0)
                                    : std::make_shared<GuardedArray>(static_cast<size_t>(leaves[leaf].ByteSize()));
      }
      GuardedArray scratch(static_cast<size_t>(model.ScratchBytes(*step.instruction)));
      for (size_t i = 0; i < step.launches.size(); ++i) {
        const EmittedLaunch& launch = step.launches[i];
        cl::Kernel kernel(program, step.kernels[i].c_str());
        for (size_t a = 0; a < launch.arguments.size(); ++a) {
          const ArgumentRef& ref = launch.arguments[a];
          void* pointer = ref.kind == ArgumentRef::Kind::kOperand
                              ? leaf_of(step.instruction->operand(ref.number), 0)->data()
                          : ref.kind == ArgumentRef::Kind::kResult ? arrays[{step.instruction, ref.number}]->data()
                                                                   : scratch.data();
          ASSERT_EQ(
              clSetKernelArgSVMPointer(kernel(), static_cast<cl_uint>(a), static_cast<char*>(pointer) + ref.offset),
              CL_SUCCESS);
        }
        cl::NDRange global, local;
        const auto& g = launch.grid;
        global =
            cl::NDRange(static_cast<size_t>(g.groups[0] * g.local[0]), static_cast<size_t>(g.groups[1] * g.local[1]),
                        static_cast<size_t>(g.groups[2] * g.local[2]));
        local = cl::NDRange(static_cast<size_t>(g.local[0]), static_cast<size_t>(g.local[1]),
                            static_cast<size_t>(g.local[2]));
        queue.enqueueNDRangeKernel(kernel, cl::NullRange, global, local);
      }
      queue.finish();
      EXPECT_TRUE(scratch.Intact()) << "scratch of " << step.instruction->name() << " was overrun";
    }
    for (const auto& [key, array] : arrays) {
      if (array) {
        EXPECT_TRUE(array->Intact()) << key.first->name() << " was overrun";
      }
    }
    const Literal want = hlo::Evaluate(*c->module, arguments);
    const std::vector<const Literal*> want_leaves = Leaves(want);
    for (size_t leaf = 0; leaf < want_leaves.size(); ++leaf) {
      const ArrayRef array = leaf_of(c->module->entry()->root(), static_cast<int64_t>(leaf));
      ASSERT_TRUE(array != nullptr);
      Literal got(want_leaves[leaf]->shape());
      std::memcpy(got.mutable_data(), array->data(), static_cast<size_t>(got.ByteSize()));
      const std::string difference = FirstDifference(got, *want_leaves[leaf]);
      EXPECT_TRUE(difference.empty()) << c->name << " leaf " << leaf << ": " << difference
                                      << (std::getenv("HLORUN_TEST_SOURCE") && !c->steps.empty() &&
                                                  !c->steps.back().launches.empty()
                                              ? "\n" + c->steps.back().launches.back().kernel_ir +
                                                    c->steps.back().launches.back().source
                                              : "");
    }
  }
}

DeviceSpec CpuSpec() {
  DeviceSpec spec;
  spec.has_f64 = true;
  return spec;
}
DeviceSpec GpuSpec() {
  DeviceSpec spec;
  spec.device_class = DeviceClass::kGpu;
  return spec;
}

}  // namespace hlorun::opencl
