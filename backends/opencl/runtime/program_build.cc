#include "backends/opencl/runtime/program_build.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <mutex>
#include <numeric>
#include <thread>

#include "backends/opencl/runtime/binary_cache.h"
#include "backends/opencl/runtime/cache_directory.h"
#include "backends/opencl/runtime/cl_error.h"
#include "backends/opencl/runtime/compile_lock.h"
#include "backends/opencl/runtime/pocl_cache.h"
#include "backends/opencl/runtime/warm_up.h"
#include "hlo/atomic_file.h"

namespace hlorun::opencl {
namespace {

// Longest first, each to the group that has least: `count` groups of about equal source length, and one for each
// foreign kernel. Kernels keep the plan's order within a group, so that the same plan gives the same program text.
std::vector<std::vector<int32_t>> Groups(const std::vector<Kernel>& kernels, size_t threads) {
  std::vector<int32_t> order;
  std::vector<std::vector<int32_t>> foreign;
  for (size_t k = 0; k < kernels.size(); ++k) {
    const auto number = static_cast<int32_t>(k);
    if (kernels[k].foreign) {
      foreign.push_back({number});
    } else {
      order.push_back(number);
    }
  }
  const size_t count = std::min(threads, order.size());
  std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
    return kernels[static_cast<size_t>(a)].source.size() > kernels[static_cast<size_t>(b)].source.size();
  });
  std::vector<std::vector<int32_t>> groups(count);
  std::vector<size_t> load(count, 0);
  for (int32_t kernel : order) {
    const size_t least = static_cast<size_t>(std::min_element(load.begin(), load.end()) - load.begin());
    groups[least].push_back(kernel);
    load[least] += kernels[static_cast<size_t>(kernel)].source.size() + 1;
  }
  for (auto& group : groups) std::sort(group.begin(), group.end());
  groups.insert(groups.end(), foreign.begin(), foreign.end());
  return groups;
}

// Runs work(0) ... work(count - 1) on up to `threads` threads, this one among them; rethrows the first exception.
void InParallel(size_t count, size_t threads, const std::function<void(size_t)>& work) {
  std::atomic<size_t> next{0};
  std::mutex mutex;
  std::exception_ptr error;
  const auto loop = [&] {
    for (size_t i = next++; i < count; i = next++) {
      try {
        work(i);
      } catch (...) {
        std::lock_guard lock(mutex);
        if (error == nullptr) error = std::current_exception();
        next = count;
      }
    }
  };
  std::vector<std::thread> pool;
  for (size_t t = 1; t < std::min(threads, count); ++t) pool.emplace_back(loop);
  loop();
  for (std::thread& thread : pool) thread.join();
  if (error != nullptr) std::rethrow_exception(error);
}

cl::Program ProgramFromBinary(const DeviceContext& context, const std::string& binary) {
  const cl_device_id device = context.device().device()();
  const size_t size = binary.size();
  const auto* bytes = reinterpret_cast<const unsigned char*>(binary.data());
  cl_int of_binary = CL_SUCCESS, status = CL_SUCCESS;
  cl::Program program(clCreateProgramWithBinary(context.context()(), 1, &device, &size, &bytes, &of_binary, &status));
  if (status == CL_SUCCESS) status = of_binary;
  if (status == CL_SUCCESS)
    status = clBuildProgram(program(), 1, &device, context.build_options().c_str(), nullptr, nullptr);
  CheckCl(status, "loading a compiled program");
  return program;
}

std::string BinaryOf(const cl::Program& program) {
  size_t size = 0;
  CheckCl(clGetProgramInfo(program(), CL_PROGRAM_BINARY_SIZES, sizeof(size), &size, nullptr),
          "asking for a binary's size");
  std::string binary(size, '\0');
  auto* bytes = reinterpret_cast<unsigned char*>(binary.data());
  CheckCl(clGetProgramInfo(program(), CL_PROGRAM_BINARIES, sizeof(bytes), &bytes, nullptr), "asking for a binary");
  return binary;
}

[[noreturn]] void FailBuild(const std::string& source, const std::string& log, const std::string& folder,
                            const std::vector<int32_t>& kernels, const Plan& plan) {
  const std::string stem = folder + "/failed-" + HashText(source).substr(0, 12);
  WriteFileAtomically(stem + ".cl", source);
  WriteFileAtomically(stem + ".log", log);
  const size_t at = log.find("error:");
  const std::string reason = at == std::string::npos ? "no message" : log.substr(at, log.find('\n', at) - at);
  const Kernel& first = plan.kernels[static_cast<size_t>(kernels[0])];
  if (first.foreign) {
    Invalid("the OpenCL compiler refuses a custom-call's kernel: {}; source: {}.cl, log: {}.log", reason, stem, stem);
  }
  Fail(ErrorCode::kInternal,
       "the OpenCL compiler refuses a program of {} kernels ({} ...): {}; source: {}.cl, log: {}.log", kernels.size(),
       first.name, reason, stem, stem);
}

class Builder {
 public:
  Builder(const Plan& plan, DeviceContext& context, const BuildOptions& options)
      : plan_(plan),
        context_(context),
        options_(options),
        folder_(options.cache_dir.empty() ? DefaultCacheDirectory() : options.cache_dir),
        cache_(folder_ + "/binaries") {}

  ProgramSet Build() {
    const auto start = std::chrono::steady_clock::now();
    const size_t threads = options_.threads > 0 ? static_cast<size_t>(options_.threads)
                                                : std::max<size_t>(1, std::thread::hardware_concurrency());
    set_.kernels = Groups(plan_.kernels, threads);
    const size_t count = set_.kernels.size();
    set_.programs.resize(count);
    set_.binaries.resize(count);
    set_.program_of.assign(plan_.kernels.size(), 0);
    for (size_t p = 0; p < count; ++p) {
      for (int32_t k : set_.kernels[p]) set_.program_of[static_cast<size_t>(k)] = static_cast<int32_t>(p);
    }
    InParallel(count, context_.quirks().builds_one_at_a_time ? 1 : threads, [this](size_t p) { BuildOne(p); });
    set_.statistics.kernels = static_cast<int64_t>(plan_.kernels.size());
    set_.statistics.programs = static_cast<int64_t>(count);
    set_.statistics.kernels_compiled = compiled_;
    set_.statistics.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    return std::move(set_);
  }

 private:
  void BuildOne(size_t p) {
    const std::vector<int32_t>& kernels = set_.kernels[p];
    FaultPause(Fault::kCompileSlow);
    const std::string source = SourceOf(kernels);
    const std::string key = context_.device().Fingerprint() + "\n" + VariantsOf(kernels) + "\n" + source;
    if (!IsCached(p, key)) {
      const CompileLock lock(folder_, source);
      if (!lock.waited() || !IsCached(p, key)) {
        set_.programs[p] = Compile(source, kernels, set_.binaries[p]);
        compiled_ += static_cast<int64_t>(kernels.size());
        if (options_.use_disk_cache) cache_.Store(key, set_.binaries[p]);
      }
    }
    Report(kernels.size());
  }

  // Takes program `p` from the disk cache where it is there.
  bool IsCached(size_t p, const std::string& key) {
    if (!options_.use_disk_cache || !cache_.Load(key, set_.binaries[p])) return false;
    try {
      set_.programs[p] = ProgramFromBinary(context_, set_.binaries[p]);
      return true;
    } catch (const Error&) {
      cache_.Remove(key);  // whole, but the driver does not take it
      return false;
    }
  }

  std::string SourceOf(const std::vector<int32_t>& kernels) const {
    std::string source;
    for (int32_t k : kernels) {
      const Kernel& kernel = plan_.kernels[static_cast<size_t>(k)];
      const bool guarded = context_.quirks().binaries_need_launch && !kernel.foreign;
      const std::string text = context_.team() != nullptr ? WithGroupLoop(kernel.source, kernel.name)
                               : guarded                  ? WithEntryGuard(kernel)
                                                          : kernel.source;
      source += fmt::format("#define {0} {1}\n{2}\n#undef {0}\n", kernel.name, SymbolOf(kernel), text);
    }
    if (FaultHits(Fault::kKernelBuild)) source += "#error HLORUN_FAULT=kernel_build\n";
    return source;
  }

  // Binaries hold the machine code of the grids that they were warmed up with.
  std::string VariantsOf(const std::vector<int32_t>& kernels) const {
    std::string text;
    if (!context_.quirks().binaries_need_launch) return text;
    const int64_t large = context_.quirks().large_grid_groups;
    for (int32_t k : kernels) {
      for (const Grid& g : plan_.kernels[static_cast<size_t>(k)].grids) {
        const bool is_large =
            std::any_of(g.groups.begin(), g.groups.end(), [&](int64_t n) { return large > 0 && n >= large; });
        text += fmt::format("{}:{}x{}x{}{} ", k, g.local[0], g.local[1], g.local[2], is_large ? "L" : "");
      }
    }
    return text;
  }

  cl::Program Compile(const std::string& source, const std::vector<int32_t>& kernels, std::string& binary) {
    const cl::Device& device = context_.device().device();
    // A context of its own: platforms compile one program at a time in a context.
    const cl::Context own(device);
    cl::Program program(own, source, false);
    if (clBuildProgram(program(), 1, &device(), context_.build_options().c_str(), nullptr, nullptr) != CL_SUCCESS) {
      FailBuild(source, program.getBuildInfo<CL_PROGRAM_BUILD_LOG>(device), folder_, kernels, plan_);
    }
    if (context_.quirks().binaries_need_launch) WarmUp(plan_, kernels, program, own, device, context_);
    if (context_.quirks().compiles_generic_variants) {
      std::vector<std::string> symbols;
      for (int32_t k : kernels) symbols.push_back(SymbolOf(plan_.kernels[static_cast<size_t>(k)]));
      LinkGenericVariants(symbols);
    }
    binary = BinaryOf(program);
    return ProgramFromBinary(context_, binary);
  }

  void Report(size_t kernels) {
    const int64_t done = done_ += static_cast<int64_t>(kernels);
    std::lock_guard lock(progress_mutex_);
    if (options_.progress) options_.progress(done, static_cast<int64_t>(plan_.kernels.size()));
  }

  const Plan& plan_;
  DeviceContext& context_;
  const BuildOptions& options_;
  std::string folder_;
  BinaryCache cache_;
  ProgramSet set_;
  std::atomic<int64_t> compiled_{0}, done_{0};
  std::mutex progress_mutex_;
};

}  // namespace

std::string SymbolOf(const Kernel& kernel) { return kernel.name + "_" + HashText(kernel.source).substr(0, 12); }

cl::Kernel ProgramSet::MakeKernel(const Plan& plan, int32_t kernel) const {
  const std::string name = SymbolOf(plan.kernels[static_cast<size_t>(kernel)]);
  cl_int status = CL_SUCCESS;
  const cl_program program = programs[static_cast<size_t>(program_of[static_cast<size_t>(kernel)])]();
  const cl_kernel made = clCreateKernel(program, name.c_str(), &status);
  if (status != CL_SUCCESS) FailCl(status, "taking kernel " + name + " from its program");
  return cl::Kernel(made);
}

ProgramSet BuildPrograms(const Plan& plan, DeviceContext& context, const BuildOptions& options) {
  try {
    return Builder(plan, context, options).Build();
  } catch (const cl::Error& e) {
    FailCl(e.err(), std::string("building kernels (") + e.what() + ")");
  }
}

ProgramSet LoadPrograms(const SavedPlan& saved, DeviceContext& context) {
  const auto start = std::chrono::steady_clock::now();
  ProgramSet set;
  set.binaries = saved.binaries;
  set.kernels = saved.programs;
  set.programs.resize(saved.binaries.size());
  set.program_of.assign(saved.plan.kernels.size(), -1);
  for (size_t p = 0; p < saved.programs.size(); ++p) {
    for (int32_t k : saved.programs[p]) set.program_of[static_cast<size_t>(k)] = static_cast<int32_t>(p);
  }
  try {
    InParallel(set.programs.size(), std::max(1u, std::thread::hardware_concurrency()),
               [&](size_t p) { set.programs[p] = ProgramFromBinary(context, set.binaries[p]); });
  } catch (const Error& e) {
    Fail(ErrorCode::kFailedPrecondition,
         "the plan of {} holds binaries that this driver refuses ({}); rebuild it from the module",
         saved.plan.module_name, e.message());
  }
  set.statistics.kernels = static_cast<int64_t>(saved.plan.kernels.size());
  set.statistics.programs = static_cast<int64_t>(set.programs.size());
  set.statistics.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return set;
}

}  // namespace hlorun::opencl
