#include "driver/cli/session.h"

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "backends/opencl/plan_builder.h"
#include "driver/api/module_impl.h"
#include "driver/arrays/array_set.h"
#include "hlo/atomic_file.h"
#include "driver/arrays/compare.h"
#include "driver/arrays/seeded.h"
#include "driver/cli/agreement.h"
#include "driver/cli/partitioned_arrays.h"
#include "driver/cli/progress.h"
#include "driver/cli/rank_faults.h"
#include "driver/cli/reference.h"
#include "driver/cli/report.h"
#include "hlo/error.h"
#include "hlo/reader.h"

namespace hlorun::cli {
namespace {

using Clock = std::chrono::steady_clock;
using Literals = std::vector<hlo::Literal>;

CompileOptions CompileOptionsOf(const Flags& flags, Progress& progress) {
  CompileOptions options;
  if (flags.dot_library == "clblast") {
    Fail(ErrorCode::kUnimplemented, "--dot_library=clblast: this version multiplies with its own kernels only; use auto or own");
  }
  if (flags.dot_library != "auto" && flags.dot_library != "own") {
    Invalid("--dot_library={}: expected auto, own or clblast", flags.dot_library);
  }
  options.dump_to = flags.dump_to;
  options.dump_pass_re = flags.dump_pass_re;
  options.cache_dir = flags.cache_dir;
  options.use_disk_cache = !flags.no_cache;
  options.observe_stage = [&progress](const std::string& stage) { progress.Show("compiling: " + stage); };
  options.observe_kernels = [&progress](int64_t done, int64_t total) {
    progress.Show(fmt::format("compiling: kernels {}/{}", done, total));
  };
  return options;
}

std::vector<ArraySlot> SlotsOf(const Executable& executable) {
  const std::vector<Shape> shapes = executable.parameter_shapes();
  const std::vector<std::string> names = executable.parameter_names();
  const std::vector<std::string> op_names = executable.parameter_op_names();
  std::vector<ArraySlot> slots;
  for (size_t i = 0; i < shapes.size(); ++i) slots.push_back({static_cast<int64_t>(i), names[i], op_names[i], shapes[i]});
  return slots;
}

std::vector<ArraySlot> ResultSlots(const Executable& executable) {
  std::vector<ArraySlot> slots;
  for (const Shape& shape : executable.result_shapes()) slots.push_back({static_cast<int64_t>(slots.size()), "", "", shape});
  return slots;
}

// One process's part of a run: everything between compiling and comparing.
class Session {
 public:
  Session(const Flags& flags, const std::shared_ptr<collectives::Job>& job)
      : flags_(flags), job_(job), progress_(job->rank() == 0 && !flags.json) {}

  int Run() {
    Open();
    Compile();
    if (job_->rank() == 0 && !flags_.save_plan.empty()) executable_->Save(flags_.save_plan);
    if (flags_.compile_only) {
      PrintReport({});
      return kExitEqual;
    }
    seed_.seed = flags_.seed;
    seed_.integers = flags_.integers;
    seed_.normal = flags_.NormalSlots();
    LoadInputs();
    Execute();
    progress_.Clear();
    const std::vector<Literals> results = FetchResults();
    // Replicated runs compute the same everywhere: rank 0 speaks for all.
    if (job_->rank() == 0 || partitioned_) WriteOutputs(results);
    PrintReport(results.front());
    return Check(results);
  }

 private:
  void Open() {
    ClientOptions options;
    options.device = flags_.device;
    options.device_class = flags_.device_class;
    if (!flags_.device_spec.empty()) options.device_spec = hlo::ReadFileOrStdin(flags_.device_spec);
    options.job = job_;
    client_ = Client::Create(options);
  }

  void Compile() {
    const CompileOptions options = CompileOptionsOf(flags_, progress_);
    const std::string bytes = ReadSameFile(flags_.file, *job_);
    if (opencl::LooksLikePlan(bytes)) {
      executable_ = client_->Load(flags_.file, options, flags_.recompile);
      module_ = nullptr;
      CheckSameModule(executable_->module_text(), *job_);  // each rank maps the file of its own host
    } else {
      hlo::ReadOptions read;
      read.fill_elided = flags_.fill_elided;
      auto modules = hlo::ReadModulesFromBytes(bytes, flags_.file, read);
      if (modules.empty()) Invalid("{}: there is no HLO module in it", flags_.file);
      if (modules.size() > 1 && job_->rank() == 0) {
        std::fprintf(stderr, "hlorun: warning: %s holds %zu modules; only the first, %s, runs\n", flags_.file.c_str(),
                     modules.size(), modules.front()->name().c_str());
      }
      module_ = std::move(modules.front());
      executable_ = client_->Compile(Module(std::make_shared<const Module::Impl>(Module::Impl{module_})), options);
    }
    partitioned_ = executable_->device_count() > 1;
    if (!partitioned_ && job_->device_count() > 1 && job_->rank() == 0) {
      std::fprintf(stderr, "hlorun: warning: the module is for one device: each of the %d ranks runs all of it\n",
                   static_cast<int>(job_->rank_count()));
    }
    progress_.Clear();
  }

  int64_t LocalDevices() const { return partitioned_ ? job_->local_devices() : 1; }

  void LoadInputs() {
    const std::vector<ArraySlot> slots = SlotsOf(*executable_);
    if (!flags_.inputs.empty()) {
      inputs_ = LoadPartitioned(flags_.inputs, slots, executable_->parameter_shardings(), *job_, partitioned_);
    } else {
      inputs_ = {SeededInputs(seed_)};
      while (static_cast<int64_t>(inputs_.size()) < LocalDevices()) inputs_.push_back(inputs_.front());
    }
    if (!flags_.save_inputs.empty() && job_->rank() == 0) SaveArrays(flags_.save_inputs, inputs_.front());
    // Read before the run: what cannot be compared with need not be waited for.
    if (!flags_.expect.empty()) expected_ = LoadExpected(flags_.expect, ResultSlots(*executable_), *job_, partitioned_);
    UploadInputs();
  }

  Literals SeededInputs(const SeedOptions& seed) const {
    Literals inputs;
    for (const Shape& shape : executable_->parameter_shapes()) {
      inputs.push_back(SeededLiteral(shape, static_cast<int64_t>(inputs.size()), seed));
    }
    return inputs;
  }

  void UploadInputs() {
    arguments_.clear();
    for (const Literals& device_inputs : inputs_) {
      std::vector<Array>& arguments = arguments_.emplace_back();
      for (const hlo::Literal& input : device_inputs) {
        arguments.push_back(client_->Wrap(input.shape(), input.data(), std::make_shared<hlo::Literal>(input)));
      }
    }
  }

  double RunOnce(const RunFlags& run_flags) {
    RunFaults();
    const auto start = Clock::now();
    results_ = executable_->RunSharded(arguments_, run_flags);
    for (const auto& device_results : results_) {
      for (const Array& result : device_results) result.Wait();
    }
    return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
  }

  void Execute() {
    timing_.first_ms = RunOnce({});
    for (int64_t i = 0; i < flags_.warmup; ++i) RunOnce({});
    for (int64_t i = 0; i < flags_.iterations; ++i) {
      progress_.Show(fmt::format("running: {}/{}", i + 1, flags_.iterations));
      if (flags_.vary_inputs && flags_.inputs.empty()) {
        SeedOptions seed = seed_;
        seed.seed += static_cast<uint64_t>(i) + 1;
        for (Literals& device_inputs : inputs_) device_inputs = SeededInputs(seed);
        UploadInputs();
      }
      results_.clear();  // so that their memory is reused
      timing_.ms.push_back(RunOnce({}));
    }
    if (flags_.profile || !flags_.trace.empty()) {
      RunFlags profiled;
      profiled.profile = &steps_;
      RunOnce(profiled);
    }
  }

  std::vector<Literals> FetchResults() const {
    std::vector<Literals> all;
    for (const auto& device_results : results_) {
      Literals& results = all.emplace_back();
      for (const Array& array : device_results) {
        hlo::Literal literal(array.shape().WithoutLayout());
        array.ToHost(literal.mutable_data());
        results.push_back(std::move(literal));
      }
    }
    return all;
  }

  void WriteOutputs(const std::vector<Literals>& results) {
    if (flags_.outputs.empty()) return;
    AtomicFiles files(Fault::kWriteOutput);
    StagePartitioned(files, flags_.outputs, results, *job_, partitioned_);
    FaultPause(Fault::kWriteSlow);
    if (partitioned_) job_->CheckSame("written", "the state of the outputs");  // no rank's appear without the others'
    files.Commit();
  }

  void PrintReport(const Literals& results) {
    if (job_->rank() != 0) return;
    if (flags_.profile) std::fputs(ProfileTable(steps_).c_str(), stderr);
    if (!flags_.trace.empty()) WriteFileAtomically(flags_.trace, ChromeTrace(steps_, job_->rank()));
    if (flags_.json) {
      std::fputs(JsonReport(*executable_, timing_, client_->device(), results).c_str(), stdout);
    } else {
      std::fputs(HumanReport(*executable_, timing_, client_->device(), results).c_str(), stdout);
    }
    if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) {
      Fail(ErrorCode::kResourceExhausted, "cannot write to the standard output: {}", std::strerror(errno));
    }
  }

  int Check(const std::vector<Literals>& results) {
    const Tolerance tolerance{flags_.rel_error_bound, flags_.abs_error_bound};
    int exit_code = kExitEqual;
    if (!flags_.expect.empty()) {
      for (size_t d = 0; d < results.size(); ++d) {
        if (!Equal(results[d], expected_[d], tolerance, "expected")) exit_code = kExitMismatch;
      }
    }
    if (!flags_.reference.empty()) {
      if (partitioned_) Invalid("--reference compares a module for one device; use --expect for {} devices", job_->device_count());
      const hlo::Module& module = ReferenceModule();
      if (flags_.reference == "each") {
        const std::string line = FirstDivergence(module, inputs_.front(), *client_, CompileOptionsOf(flags_, progress_), tolerance);
        if (!line.empty()) std::fprintf(stderr, "hlorun: %s\n", line.c_str());
        if (!line.empty()) exit_code = kExitMismatch;
      } else if (!Equal(results.front(), ReferenceResults(module, inputs_.front()), tolerance, "evaluator")) {
        exit_code = kExitMismatch;
      }
    }
    if (flags_.debug_nans && !partitioned_) {
      const std::string line = FirstNan(ReferenceModule(), inputs_.front(), *client_, CompileOptionsOf(flags_, progress_));
      if (!line.empty()) std::fprintf(stderr, "hlorun: %s\n", line.c_str());
      if (!line.empty()) exit_code = kExitMismatch;
    }
    return exit_code;
  }

  const hlo::Module& ReferenceModule() {
    if (module_ == nullptr) module_ = std::move(hlo::ReadModulesFromBytes(executable_->module_text(), flags_.file).front());
    return *module_;
  }

  bool Equal(const Literals& actual, const Literals& expected, const Tolerance& tolerance, const char* against) const {
    bool equal = true;
    for (size_t i = 0; i < actual.size(); ++i) {
      const Comparison comparison = Compare(actual[i], expected[i], tolerance);
      if (comparison.equal) continue;
      equal = false;
      std::fprintf(stderr, "hlorun: output %zu differs from the %s value: %s\n", i, against, comparison.message.c_str());
    }
    return equal;
  }

  const Flags& flags_;
  std::shared_ptr<collectives::Job> job_;
  Progress progress_;
  std::shared_ptr<Client> client_;
  std::shared_ptr<Executable> executable_;
  std::shared_ptr<const hlo::Module> module_;
  bool partitioned_ = false;
  SeedOptions seed_;
  std::vector<Literals> inputs_, expected_;  // of each local device
  std::vector<std::vector<Array>> arguments_, results_;
  Timing timing_;
  std::vector<StepTime> steps_;
};

}  // namespace

int RunSession(const Flags& flags, const std::shared_ptr<collectives::Job>& job) { return Session(flags, job).Run(); }

}  // namespace hlorun::cli
