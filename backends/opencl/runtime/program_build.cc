#include "backends/opencl/runtime/program_build.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <map>
#include <mutex>
#include <numeric>
#include <optional>
#include <thread>

#include "backends/opencl/plan_slices.h"
#include "backends/opencl/runtime/binary_cache.h"
#include "backends/opencl/runtime/cache_directory.h"
#include "backends/opencl/runtime/cl_error.h"
#include "backends/opencl/runtime/compile_lock.h"
#include "backends/opencl/runtime/compile_program.h"
#include "backends/opencl/runtime/compiler_process.h"
#include "backends/opencl/runtime/kernel_text.h"
#include "backends/opencl/runtime/pocl_cache.h"
#include "hlo/atomic_file.h"

namespace hlorun::opencl {
namespace {

// A program has a cost of its own, as much as that of some 8 kB of kernels.
constexpr size_t kLeastBytes = 8192;
// Source that is worth the start of a compiler in a process of its own where this process has used none yet, and where
// it has one that is warm.
constexpr size_t kWorthProcesses = 16384, kWorthProcessesWhenWarm = 131072;

// Longest first, each to the group that has least: `count` groups of about equal source length, and one for each
// foreign kernel. Kernels keep the plan's order within a group, so that the same plan gives the same program text.
std::vector<std::vector<int32_t>> Groups(const std::vector<Kernel>& kernels, size_t threads) {
  std::vector<int32_t> order;
  size_t bytes = 0;
  std::vector<std::vector<int32_t>> foreign;
  for (size_t k = 0; k < kernels.size(); ++k) {
    const auto number = static_cast<int32_t>(k);
    if (kernels[k].foreign) {
      foreign.push_back({number});
    } else {
      order.push_back(number);
      bytes += kernels[k].source.size();
    }
  }
  const size_t count = std::min({threads, order.size(), bytes / kLeastBytes + 1});
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
  try {
    for (size_t t = 1; t < std::min(threads, count); ++t) pool.emplace_back(loop);
  } catch (const std::system_error&) {
    // No more threads than there are.
  }
  loop();
  for (std::thread& thread : pool) thread.join();
  if (error != nullptr) std::rethrow_exception(error);
}

cl::Program ProgramFromBinary(const DeviceContext& context, const std::string& binary) {
  const cl::Device& device = context.device().device();
  cl::Program program = UnbuiltProgram(binary, context.context(), device);
  CheckCl(clBuildProgram(program(), 1, &device(), context.build_options().c_str(), nullptr, nullptr),
          "loading a compiled program");
  return program;
}

// Writes what the compiler refuses, and all that it said; says where.
std::string KeptForReading(const std::string& source, const std::string& log, const std::string& folder) {
  const std::string stem = folder + "/failed-" + HashText(source).substr(0, 12);
  try {
    WriteFileAtomically(stem + ".cl", source);
    WriteFileAtomically(stem + ".log", log);
  } catch (const Error& error) {
    return fmt::format("its source and log could not be kept ({})", error.message());
  }
  return fmt::format("source: {}.cl, log: {}.log", stem, stem);
}

[[noreturn]] void FailBuild(const std::string& source, const std::string& log, const std::string& folder,
                            const std::vector<int32_t>& kernels, const Plan& plan) {
  const size_t at = log.find("error:");
  const std::string reason = at == std::string::npos ? "no message" : log.substr(at, log.find('\n', at) - at);
  const std::string where = KeptForReading(source, log, folder);
  const Kernel& first = plan.kernels[static_cast<size_t>(kernels[0])];
  if (first.foreign) Invalid("the OpenCL compiler refuses a custom-call's kernel: {}; {}", reason, where);
  Fail(ErrorCode::kInternal, "the OpenCL compiler refuses a program of {} kernels ({} ...): {}; {}", kernels.size(),
       first.name, reason, where);
}

// For each kernel the largest byte count that any launch gives one of its arguments.
std::vector<int64_t> LargestArguments(const Plan& plan) {
  std::vector<int64_t> largest(plan.kernels.size(), 0);
  for (const Sequence* sequence : SequencesOf(plan)) {
    for (const Thunk& thunk : sequence->thunks) {
      ForEachThunk(thunk, [&](const Thunk& inner) {
        const auto* launch = std::get_if<LaunchThunk>(&inner.work);
        if (launch == nullptr) return;
        int64_t& bytes = largest[static_cast<size_t>(launch->kernel)];
        for (const Slice& slice : launch->arguments) bytes = std::max(bytes, slice.bytes);
      });
    }
  }
  return largest;
}

ProgramForm FormOf(const DeviceContext& context) {
  const Quirks& quirks = context.quirks();
  const bool shares_groups = context.team() != nullptr;
  return {.guarded = quirks.binaries_need_launch,
          .shares_groups = shares_groups,
          .native_calls = shares_groups && context.device().calls_kernels(),
          .kernels_call = quirks.drops_functions,
          .joined = quirks.joins_kernels,
          .large_grid_groups = quirks.large_grid_groups};
}

// One group, or the number of groups from which the platform compiles another variant.
Grid VariantOf(const Grid& grid, int64_t large_grid_groups) {
  Grid variant = grid;
  for (int64_t& groups : variant.groups)
    groups = large_grid_groups > 0 && groups >= large_grid_groups ? large_grid_groups : 1;
  return variant;
}

size_t ThreadsOf(const DeviceContext& context, const BuildOptions& options) {
  if (context.quirks().builds_one_at_a_time) return 1;
  if (options.threads > 0) return static_cast<size_t>(options.threads);
  return std::max<size_t>(1, std::thread::hardware_concurrency());
}

class Builder {
 public:
  Builder(const Plan& plan, DeviceContext& context, const BuildOptions& options)
      : plan_(plan),
        context_(context),
        options_(options),
        form_(FormOf(context)),
        folder_(options.cache_dir.empty() ? DefaultCacheDirectory() : options.cache_dir),
        locks_(context.quirks().has_pocl_cache ? PoclCacheFolder() + "/hlorun" : folder_),
        cache_(folder_ + "/binaries"),
        threads_(ThreadsOf(context, options)) {}

  ProgramSet Build() {
    const auto start = std::chrono::steady_clock::now();
    set_.kernels = Groups(plan_.kernels, threads_);
    const size_t count = set_.kernels.size();
    set_.programs.resize(count);
    set_.binaries.resize(count);
    set_.entries.resize(plan_.kernels.size());
    set_.program_of.assign(plan_.kernels.size(), 0);
    keys_.resize(count);
    const std::vector<int64_t> largest = LargestArguments(plan_);
    for (size_t p = 0; p < count; ++p) requests_.push_back(RequestFor(p, largest));
    FaultPause(Fault::kCompileSlow);
    std::vector<size_t> all(count);
    std::iota(all.begin(), all.end(), 0);
    std::vector<size_t> missing = Missing(all);
    if (!missing.empty()) {
      std::vector<std::string_view> sources;
      for (size_t p : missing) sources.push_back(requests_[p].source);
      const CompileLock lock(locks_, sources);
      if (lock.waited()) missing = Missing(missing);
      Compile(missing);
    }
    set_.statistics.kernels = static_cast<int64_t>(plan_.kernels.size());
    set_.statistics.programs = static_cast<int64_t>(count);
    set_.statistics.kernels_compiled = compiled_;
    set_.statistics.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    set_.FindFunctions(plan_, context_);
    return std::move(set_);
  }

 private:
  ProgramRequest RequestFor(size_t p, const std::vector<int64_t>& largest) {
    const std::vector<int32_t>& members = set_.kernels[p];
    ProgramText text = TextOf(plan_.kernels, members, form_);
    ProgramRequest request;
    request.source = std::move(text.source);
    if (FaultHits(Fault::kKernelBuild)) request.source += "#error HLORUN_FAULT=kernel_build\n";
    request.options = context_.build_options();
    request.raw_pointers = context_.raw_pointers();
    request.links_generic_variants = context_.quirks().has_pocl_cache;
    for (size_t m = 0; m < members.size(); ++m) {
      const auto k = static_cast<size_t>(members[m]);
      set_.program_of[k] = static_cast<int32_t>(p);
      set_.entries[k] = text.entries[m];
      if (!context_.quirks().binaries_need_launch || plan_.kernels[k].foreign) continue;
      AddWarmUp(plan_.kernels[k], text.entries[m], request);
      request.scratch_bytes = std::max(request.scratch_bytes, largest[k]);
    }
    keys_[p] = context_.device().Fingerprint() + "\n" + VariantsOf(request) + "\n" + request.source;
    return request;
  }

  void AddWarmUp(const Kernel& kernel, const KernelEntry& entry, ProgramRequest& request) const {
    auto at = std::find_if(request.kernels.begin(), request.kernels.end(),
                           [&](const KernelRequest& known) { return known.symbol == entry.symbol; });
    if (at == request.kernels.end()) {
      const uint32_t integers = entry.which >= 0 && !entry.by_table ? 1 : 0;
      at = request.kernels.insert(at, {entry.symbol, !HasBarrier(kernel), integers, {}});
    }
    for (const Grid& grid : kernel.grids) {
      const Grid variant = form_.shares_groups ? Grid{} : VariantOf(grid, form_.large_grid_groups);
      if (std::find(at->variants.begin(), at->variants.end(), variant) == at->variants.end())
        at->variants.push_back(variant);
    }
  }

  // Binaries hold the machine code of the grids that they were warmed up with.
  static std::string VariantsOf(const ProgramRequest& request) {
    std::string text;
    for (const KernelRequest& kernel : request.kernels) {
      for (const Grid& g : kernel.variants) {
        text += fmt::format("{}:{}x{}x{}/{}x{}x{} ", kernel.symbol, g.groups[0], g.groups[1], g.groups[2], g.local[0],
                            g.local[1], g.local[2]);
      }
    }
    return text;
  }

  // Those of `programs` that the disk cache has not; takes the others from there.
  std::vector<size_t> Missing(const std::vector<size_t>& programs) {
    std::vector<char> cached(programs.size(), 0);
    InParallel(programs.size(), threads_, [&](size_t i) {
      cached[i] = IsCached(programs[i]) ? 1 : 0;
      if (cached[i] != 0) Report(programs[i]);
    });
    std::vector<size_t> missing;
    for (size_t i = 0; i < programs.size(); ++i) {
      if (cached[i] == 0) missing.push_back(programs[i]);
    }
    return missing;
  }

  bool IsCached(size_t p) {
    if (!options_.use_disk_cache || !cache_.Load(keys_[p], set_.binaries[p])) return false;
    try {
      set_.programs[p] = ProgramFromBinary(context_, set_.binaries[p]);
      return true;
    } catch (const Error&) {
      cache_.Remove(keys_[p]);  // whole, but the driver does not take it
      return false;
    }
  }

  // Longest first: here and, where that is faster, in processes beside this one. Each of those replaces a thread, which
  // would claim its program before the process has started.
  void Compile(std::vector<size_t> programs) {
    std::stable_sort(programs.begin(), programs.end(),
                     [&](size_t a, size_t b) { return requests_[a].source.size() > requests_[b].source.size(); });
    std::vector<ProgramRequest> requests;
    for (size_t p : programs) requests.push_back(requests_[p]);
    CompilerProcesses processes(requests, context_.device(), ProcessesFor(requests), folder_);
    std::vector<char> is_own(programs.size(), 0);
    InParallel(programs.size(), threads_ - processes.count(), [&](size_t i) {
      if (!processes.Claim(i)) return;
      is_own[i] = 1;
      Finish(programs[i], CompileHere(programs[i]));
    });
    for (size_t i = 0; i < programs.size(); ++i) {
      if (is_own[i] != 0) continue;
      std::optional<std::string> binary = processes.Take(i);
      Finish(programs[i], binary ? std::move(*binary) : CompileHere(programs[i]));
    }
  }

  size_t ProcessesFor(const std::vector<ProgramRequest>& requests) const {
    if (!context_.quirks().compiles_in_processes || requests.empty()) return 0;
    size_t bytes = 0;
    for (const ProgramRequest& request : requests) bytes += request.source.size();
    static std::atomic<bool> is_warm{false};
    if (bytes < (is_warm.exchange(true) ? kWorthProcessesWhenWarm : kWorthProcesses)) return 0;
    return std::min(threads_, requests.size()) - 1;
  }

  std::string CompileHere(size_t p) const {
    try {
      return CompileProgram(requests_[p], context_.device().device());
    } catch (const Refused& refused) {
      FailBuild(requests_[p].source, refused.what(), folder_, set_.kernels[p], plan_);
    }
  }

  void Finish(size_t p, std::string binary) {
    set_.programs[p] = ProgramFromBinary(context_, binary);
    set_.binaries[p] = std::move(binary);
    if (options_.use_disk_cache) cache_.Store(keys_[p], set_.binaries[p]);
    compiled_ += static_cast<int64_t>(set_.kernels[p].size());
    Report(p);
  }

  void Report(size_t p) {
    const auto kernels = static_cast<int64_t>(set_.kernels[p].size());
    const int64_t done = done_ += kernels;
    std::lock_guard lock(progress_mutex_);
    if (options_.progress) options_.progress(done, static_cast<int64_t>(plan_.kernels.size()));
  }

  const Plan& plan_;
  DeviceContext& context_;
  const BuildOptions& options_;
  const ProgramForm form_;
  std::string folder_;
  std::string locks_;  // the folder that all who compile this share
  BinaryCache cache_;
  size_t threads_;
  ProgramSet set_;
  std::vector<ProgramRequest> requests_;  // by program
  std::vector<std::string> keys_;         // in the disk cache, by program
  std::atomic<int64_t> compiled_{0}, done_{0};
  std::mutex progress_mutex_;
};

}  // namespace

void ProgramSet::FindFunctions(const Plan& plan, const DeviceContext& context) {
  functions.assign(entries.size(), nullptr);
  if (!FormOf(context).native_calls) return;
  cl_int status = CL_SUCCESS;
  const cl::CommandQueue queue(context.context(), context.device().device(), 0, &status);
  CheckCl(status, "making a queue");
  std::map<std::string, NativeFunction> known;
  for (size_t k = 0; k < entries.size(); ++k) {
    if (!entries[k].by_table) continue;
    const auto [at, is_new] = known.try_emplace(entries[k].symbol, nullptr);
    if (is_new) {
      at->second = FunctionOf(MakeKernel(plan, static_cast<int32_t>(k)), queue);
      libraries.emplace_back(at->second);
    }
    functions[k] = at->second;
  }
}

cl::Kernel ProgramSet::MakeKernel(const Plan& plan, int32_t kernel) const {
  const KernelEntry& entry = entries[static_cast<size_t>(kernel)];
  cl_int status = CL_SUCCESS;
  const cl_program program = programs[static_cast<size_t>(program_of[static_cast<size_t>(kernel)])]();
  const cl_kernel made = clCreateKernel(program, entry.symbol.c_str(), &status);
  if (status != CL_SUCCESS) FailCl(status, "taking kernel " + entry.symbol + " from its program");
  cl::Kernel owned(made);
  if (entry.which < 0 || entry.by_table) return owned;
  const auto own = static_cast<uint32_t>(plan.kernels[static_cast<size_t>(kernel)].parameter_count);
  for (uint32_t i = own; i < entry.pointers; ++i)
    CheckCl(clSetKernelArg(made, i, sizeof(cl_mem), nullptr), "setting an argument that is not used");
  const cl_int which = entry.which;
  CheckCl(clSetKernelArg(made, entry.pointers, sizeof(which), &which), "choosing a kernel");
  return owned;
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
  set.entries.resize(saved.plan.kernels.size());
  for (size_t p = 0; p < saved.programs.size(); ++p) {
    const std::vector<int32_t>& members = saved.programs[p];
    const ProgramText text = TextOf(saved.plan.kernels, members, FormOf(context));
    for (size_t m = 0; m < members.size(); ++m) {
      set.program_of[static_cast<size_t>(members[m])] = static_cast<int32_t>(p);
      set.entries[static_cast<size_t>(members[m])] = text.entries[m];
    }
  }
  try {
    InParallel(set.programs.size(), std::max(1u, std::thread::hardware_concurrency()),
               [&](size_t p) { set.programs[p] = ProgramFromBinary(context, set.binaries[p]); });
  } catch (const Error& e) {
    Fail(ErrorCode::kFailedPrecondition,
         "the plan of {} holds binaries that this driver refuses ({}); rebuild it from the module",
         saved.plan.module_name, e.message());
  }
  set.FindFunctions(saved.plan, context);
  set.statistics.kernels = static_cast<int64_t>(saved.plan.kernels.size());
  set.statistics.programs = static_cast<int64_t>(set.programs.size());
  set.statistics.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return set;
}

}  // namespace hlorun::opencl
