#include "driver/cli/session.h"

#include <unistd.h>

#include <charconv>
#include <chrono>
#include <cstdio>
#include <filesystem>

#include "backends/opencl/plan_builder.h"
#include "driver/api/array_impl.h"
#include "driver/api/literals.h"
#include "driver/api/module_impl.h"
#include "driver/arrays/array_set.h"
#include "driver/arrays/bound_module.h"
#include "driver/arrays/bounds.h"
#include "driver/arrays/compare.h"
#include "driver/arrays/seeded.h"
#include "driver/arrays/varied_inputs.h"
#include "driver/cli/agreement.h"
#include "driver/cli/branch_strategy.h"
#include "driver/cli/explain.h"
#include "driver/cli/partitioned_arrays.h"
#include "driver/cli/progress.h"
#include "driver/cli/rank_faults.h"
#include "driver/cli/reference.h"
#include "driver/cli/report.h"
#include "driver/cli/trace.h"
#include "hlo/error.h"
#include "hlo/reader.h"
#include "hlo/shards.h"
#include "passes/spmd/overrides.h"
#include "passes/spmd/spmd.h"

namespace hlorun::cli {
namespace {

using Clock = std::chrono::steady_clock;
using Literals = std::vector<hlo::Literal>;

constexpr size_t kShownWarnings = 3;

DotLibrary DotLibraryOf(const std::string& name) {
  if (name == "auto") return DotLibrary::kAuto;
  if (name == "own") return DotLibrary::kOwn;
  if (name == "clblast") return DotLibrary::kClblast;
  Invalid("--dot_library={}: expected auto, own or clblast", name);
}

Autotune AutotuneOf(const std::string& name) {
  if (name == "off") return Autotune::kOff;
  if (name == "quick") return Autotune::kQuick;
  return name == "full" ? Autotune::kFull : Autotune::kAuto;
}

BucketOptions BucketsOf(const std::string& flag, const std::vector<std::string>& bounds) {
  BucketOptions buckets;
  buckets.bounds = bounds;
  if (flag == "pow2") return buckets;
  const char* end = flag.data() + flag.size();
  if (std::from_chars(flag.data(), end, buckets.multiple).ptr != end || buckets.multiple < 1) {
    Invalid("--bucket={}: expected pow2, or a number that sizes are rounded up to a multiple of", flag);
  }
  return buckets;
}

CompileOptions CompileOptionsOf(const Flags& flags, Progress& progress) {
  CompileOptions options;
  options.dot_library = DotLibraryOf(flags.dot_library);
  options.autotune = AutotuneOf(flags.autotune);
  options.tuning_file = flags.tuning;
  options.dump_to = flags.dump_to;
  options.dump_pass_re = flags.dump_pass_re;
  options.branches = BranchStrategyOf(flags.branches);
  options.cache_dir = flags.cache_dir;
  if (!flags.custom_calls.empty()) options.custom_calls = LoadCustomCalls(flags.custom_calls);
  options.use_disk_cache = !flags.no_cache;
  options.auto_shard = flags.auto_shard == "on";
  options.memory_limit = flags.memory_limit;
  const std::set<int64_t> constant = flags.ConstantSlots();
  options.constant_parameters.assign(constant.begin(), constant.end());
  options.observe_stage = [&progress](const std::string& stage) { progress.Show("compiling: " + stage); };
  options.observe_kernels = [&progress](int64_t done, int64_t total) {
    progress.Show(fmt::format("compiling: kernels {}/{}", done, total));
  };
  return options;
}

std::vector<ArraySlot> ParameterSlots(const Executable& executable) {
  const std::vector<Shape> shapes = executable.parameter_shapes();
  const std::vector<std::string> names = executable.parameter_names();
  const std::vector<std::string> op_names = executable.parameter_op_names();
  std::vector<ArraySlot> slots;
  for (size_t i = 0; i < shapes.size(); ++i)
    slots.push_back({static_cast<int64_t>(i), names[i], op_names[i], shapes[i]});
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
    if (job_->rank() == 0 && !flags_.explain.empty()) PrintExplanation();
    if (flags_.strict && !CheckStrict()) return kExitTrouble;
    if (job_->rank() == 0 && !flags_.save_plan.empty()) executable_->Save(flags_.save_plan);
    if (job_->rank() == 0 && !flags_.save_tuning.empty()) SaveTuning();
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
    std::vector<Literals> results = FetchResults();
    if (is_cut_) {
      // The parts become whole arrays on rank 0, which speaks for all.
      Literals whole = JoinOnFirst(results, executable_->result_shardings(), hlo::FlattenShape(source_result_), *job_);
      if (job_->rank() != 0) return kExitEqual;
      for (size_t i = 0; i < whole.size(); ++i) {
        const hlo::Dims& dimensions = results_.front()[i].impl()->whole;
        if (!dimensions.empty()) whole[i] = hlo::AtDimensions(whole[i], dimensions);
      }
      results = {std::move(whole)};
    }
    // Replicated runs compute the same everywhere: rank 0 speaks for all.
    if (job_->rank() == 0 || partitioned_) WriteOutputs(results);
    PrintReport(results.front());
    return Check(results);
  }

 private:
  void SaveTuning() const {
    const std::string tuning = executable_->tuning();
    if (tuning.empty()) {
      Fail(ErrorCode::kFailedPrecondition,
           "--save_tuning={}: no schedule was measured for this module: give --autotune=quick or full, or there is no "
           "product in it that is worth it",
           flags_.save_tuning);
    }
    WriteFileAtomically(flags_.save_tuning, tuning);
  }

  void Open() {
    ClientOptions options;
    options.device = flags_.device;
    options.device_class = flags_.device_class;
    if (!flags_.device_spec.empty()) options.device_spec = hlo::ReadFileOrStdin(flags_.device_spec);
    options.job = job_;
    client_ = Client::Create(options);
  }

  void Compile() {
    CompileOptions options = CompileOptionsOf(flags_, progress_);
    const std::string bytes = ReadSameFile(flags_.file, *job_);
    if (opencl::LooksLikePlan(bytes)) {
      RefuseForPlan();
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
      if (!flags_.bounds.empty() && flags_.bucket.empty()) BoundModule(*modules.front(), flags_.bounds);
      OverrideShardings(*modules.front());
      module_ = std::move(modules.front());
      compiled_module_ = Shard(options);
      SpreadPartitions(options);
      executable_ =
          CompileModule(Module(std::make_shared<const Module::Impl>(Module::Impl{compiled_module_})), options);
    }
    PrintWarnings();
    partitioned_ = executable_->device_count() > 1;
    if (partitioned_) FindWholeShapes();
    if (!partitioned_ && job_->device_count() > 1 && job_->rank() == 0 && sharding_remarks_.empty()) {
      std::fprintf(stderr, "hlorun: warning: the module is for one device: each of the %d ranks runs all of it\n",
                   static_cast<int>(job_->rank_count()));
    }
    progress_.Clear();
  }

  // What a plan was compiled with it keeps.
  void RefuseForPlan() const {
    const std::pair<const char*, bool> given[] = {{"mesh", !flags_.mesh.empty()},
                                                  {"in_shardings", !flags_.in_shardings.empty()},
                                                  {"out_shardings", !flags_.out_shardings.empty()},
                                                  {"num_partitions", flags_.num_partitions > 0},
                                                  {"save_sharded", !flags_.save_sharded.empty()},
                                                  {"memory_limit", flags_.memory_limit > 0 && !flags_.recompile},
                                                  {"bound", !flags_.bounds.empty()},
                                                  {"bucket", !flags_.bucket.empty()}};
    for (const auto& [name, is_given] : given) {
      if (is_given) Invalid("{} is a saved plan: give --{} to the run that saves it", flags_.file, name);
    }
  }

  // --mesh, --in_shardings, --out_shardings.
  void OverrideShardings(hlo::Module& module) const {
    const int64_t devices = passes::spmd::DevicesOfMesh(flags_.mesh);
    if (devices > 0 && flags_.num_partitions > 0 && devices != flags_.num_partitions) {
      Invalid("--mesh={} has {} devices, but --num_partitions is {}", flags_.mesh, devices, flags_.num_partitions);
    }
    if (devices > 0) module.num_partitions = devices;
    passes::spmd::OverrideShardings(module, {flags_.mesh, flags_.in_shardings, flags_.out_shardings});
  }

  // A module without shardings gets some, where several devices run it; the user reads which.
  std::shared_ptr<const hlo::Module> Shard(CompileOptions& options) {
    options.num_partitions = flags_.num_partitions;
    if (!flags_.bucket.empty()) options.auto_shard = false;  // its sizes are not known yet
    const Module sharded = client_->Shard(Module(std::make_shared<const Module::Impl>(Module::Impl{module_})), options,
                                          &sharding_remarks_);
    options.auto_shard = false;  // done
    if (job_->rank() == 0) {
      progress_.Clear();
      for (const Remark& remark : sharding_remarks_) {
        std::fprintf(stderr, "hlorun: sharding: %s (%s; %s)\n", remark.choice.c_str(), remark.reason.c_str(),
                     remark.cost.c_str());
      }
      if (!flags_.save_sharded.empty()) WriteFileAtomically(flags_.save_sharded, sharded.ToText());
    }
    return sharded.impl()->module;
  }

  std::shared_ptr<Executable> CompileModule(const Module& module, const CompileOptions& options) {
    if (!flags_.bucket.empty())
      return client_->CompileBuckets(module, BucketsOf(flags_.bucket, flags_.bounds), options);
    std::string open;
    for (const DimensionName& name : DimensionNames(*module_)) {
      const std::vector<Shape> leaves = module.parameter_shapes();
      if (!leaves.at(static_cast<size_t>(name.leaf)).is_dynamic_dimension(name.dimension)) open = name.name;
    }
    if (!open.empty()) {
      Invalid("the size {} of {} has no bound: give one (--bound={}=N), or round it up as it comes (--bucket=pow2)",
              open, module.name(), open);
    }
    return client_->Compile(module, options);
  }

  // What could not be done as the module, or a flag, asks; the first few, for they are often alike.
  void PrintWarnings() {
    if (job_->rank() != 0) return;
    progress_.Clear();
    std::vector<std::string> warnings;
    for (const Remark& remark : executable_->remarks()) {
      if (remark.warns) warnings.push_back(OneLine(remark));
    }
    for (size_t i = 0; i < std::min(warnings.size(), kShownWarnings); ++i) {
      std::fprintf(stderr, "hlorun: warning: %s\n", warnings[i].c_str());
    }
    if (warnings.size() > kShownWarnings) {
      std::fprintf(stderr, "hlorun: warning: and %zu more like these (--explain)\n", warnings.size() - kShownWarnings);
    }
  }

  // k x N partitions on N ranks: k a rank.
  void SpreadPartitions(CompileOptions& options) {
    options.num_partitions = flags_.num_partitions;
    if (!passes::spmd::NeedsPartitioning(*compiled_module_, options) || flags_.devices_per_rank != 1) return;
    const int64_t partitions = passes::spmd::PartitionsFor(*compiled_module_, options) * module_->replica_count;
    const int64_t ranks = job_->rank_count();
    if (ranks == 1 && flags_.num_partitions == 0) return;
    if (partitions % ranks != 0) {
      Invalid(
          "{} is for {} partitions, which {} ranks cannot share evenly: run it with mpirun -n {}, or with a number of "
          "ranks that divides it",
          module_->name(), partitions, ranks, partitions);
    }
    job_->DriveDevices(partitions / ranks);
  }

  // A module that was cut takes and gives whole arrays; one that was written for single devices takes their own.
  void FindWholeShapes() {
    const hlo::Module& source = ReferenceModule();
    for (const hlo::Instruction* parameter : source.entry()->parameters()) {
      for (hlo::Shape& leaf : hlo::FlattenShape(parameter->shape())) source_parameters_.push_back(std::move(leaf));
    }
    source_result_ = source.entry()->root()->shape();
    CompileOptions options;
    options.num_partitions = executable_->device_count();
    is_cut_ = passes::spmd::NeedsPartitioning(compiled_module_ != nullptr ? *compiled_module_ : source, options);
  }

  std::vector<ArraySlot> WholeSlots() const {
    std::vector<ArraySlot> slots = ParameterSlots(*executable_);
    for (size_t i = 0; is_cut_ && i < slots.size(); ++i) slots[i].shape = source_parameters_[i];
    return slots;
  }

  void PrintExplanation() const {
    std::vector<Remark> remarks = sharding_remarks_;
    const std::vector<Remark> own = executable_->remarks();
    remarks.insert(remarks.end(), own.begin(), own.end());
    std::fputs(flags_.explain == "json" ? ExplainJson(remarks).c_str() : ExplainText(remarks).c_str(), stdout);
    FlushOutput();
  }

  // Whether the program runs without the host waiting for the device to decide anything.
  bool CheckStrict() const {
    const std::string waits = HostWaits(executable_->remarks());
    if (!waits.empty() && job_->rank() == 0) std::fputs(waits.c_str(), stderr);
    return waits.empty();
  }

  int64_t LocalDevices() const { return partitioned_ ? job_->local_devices() : 1; }

  void LoadInputs() {
    const std::vector<ArraySlot> slots = ParameterSlots(*executable_);
    if (flags_.inputs.empty()) CheckFits(ActualShapes(WholeSlots(), flags_.sizes));
    if (is_cut_) {
      whole_inputs_ = flags_.inputs.empty() ? SeededInputs(seed_) : LoadArrays(flags_.inputs, WholeSlots(), "input");
      if (!flags_.save_inputs.empty() && job_->rank() == 0) SaveArrays(flags_.save_inputs, whole_inputs_);
      CutInputs();
      LoadExpectations();
      return UploadInputs();
    }
    if (!flags_.inputs.empty()) {
      inputs_ = LoadPartitioned(flags_.inputs, slots, executable_->parameter_shardings(), *job_, partitioned_);
    } else {
      inputs_ = {SeededInputs(seed_)};
      while (static_cast<int64_t>(inputs_.size()) < LocalDevices()) inputs_.push_back(inputs_.front());
    }
    if (!flags_.save_inputs.empty() && job_->rank() == 0) SaveArrays(flags_.save_inputs, inputs_.front());
    // Read before the run: what cannot be compared with need not be waited for.
    LoadExpectations();
    UploadInputs();
  }

  void CutInputs() {
    inputs_ = CutForDevices(whole_inputs_, executable_->parameter_shardings(), source_parameters_, *job_);
  }

  // Rank 0 compares what was joined.
  void LoadExpectations() {
    if (flags_.expect.empty() || (is_cut_ && job_->rank() != 0)) return;
    expected_ = LoadExpected(flags_.expect, WholeResultSlots(), *job_, partitioned_ && !is_cut_);
  }

  // Pages are there when they are written to: a machine that has too few ends the process without a word.
  static void CheckFits(const std::vector<Shape>& shapes) {
    int64_t bytes = 0;
    for (const Shape& shape : shapes) bytes += shape.ByteSize();
    const int64_t memory = sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE);
    if (bytes <= memory) return;
    Fail(ErrorCode::kResourceExhausted,
         "out of memory: the inputs take {} bytes, this machine has {}; --compile_only compiles without them", bytes,
         memory);
  }

  Literals SeededInputs(const SeedOptions& seed) const {
    Literals inputs;
    const std::set<int64_t> constant = flags_.ConstantSlots();
    for (const Shape& shape : ActualShapes(WholeSlots(), flags_.sizes)) {
      const auto slot = static_cast<int64_t>(inputs.size());
      inputs.push_back(SeededLiteral(shape, slot, constant.contains(slot) ? seed_ : seed));
    }
    return inputs;
  }

  // Constant ones only once.
  void UploadInputs() {
    const std::set<int64_t> constant = flags_.ConstantSlots();
    const std::vector<std::vector<Array>> before = std::move(arguments_);
    arguments_.clear();
    for (size_t d = 0; d < inputs_.size(); ++d) {
      std::vector<Array>& arguments = arguments_.emplace_back();
      for (const hlo::Literal& input : inputs_[d]) {
        const size_t slot = arguments.size();
        if (d < before.size() && constant.contains(static_cast<int64_t>(slot))) {
          arguments.push_back(before[d][slot]);
        } else {
          arguments.push_back(client_->Wrap(input.shape(), input.data(), std::make_shared<hlo::Literal>(input)));
        }
      }
    }
  }

  // Their lists stay for the next run.
  void DropResults() {
    for (std::vector<Array>& of_device : results_) of_device.clear();
  }

  double RunOnce(RunFlags run_flags) {
    for (const hlo::Literal& input : whole_inputs_) run_flags.whole_shapes.push_back(input.shape());
    RunFaults();
    const int64_t runs = run_flags.profile == nullptr ? flags_.queued : 1;
    const auto start = Clock::now();
    // Runs end in the order in which they start; results that nobody asks for give their memory to those behind them.
    for (int64_t i = 0; i < runs; ++i) {
      DropResults();
      if (executable_->device_count() == 1) {
        results_.resize(1);
        results_[0] = executable_->Run(arguments_[0], run_flags);
      } else {
        results_ = executable_->RunSharded(arguments_, run_flags);
      }
    }
    for (const auto& device_results : results_) {
      for (const Array& result : device_results) result.Wait();
    }
    return std::chrono::duration<double, std::milli>(Clock::now() - start).count() / static_cast<double>(runs);
  }

  void Execute() {
    timing_.first_ms = RunOnce({});
    for (int64_t i = 0; i < flags_.warmup; ++i) RunOnce({});
    VariedInputs varied(flags_.iterations, [this](int64_t run) {
      SeedOptions seed = seed_;
      seed.seed += static_cast<uint64_t>(run);
      return SeededInputs(seed);
    });
    for (int64_t i = 0; i < flags_.iterations; ++i) {
      progress_.Show(fmt::format("running: {}/{}", i + 1, flags_.iterations));
      if (flags_.vary_inputs && flags_.inputs.empty()) {
        if (is_cut_) {
          whole_inputs_ = varied.Next();
          CutInputs();
        } else {
          inputs_.assign(inputs_.size(), varied.Next());
        }
        UploadInputs();
      }
      DropResults();  // so that their memory is reused
      timing_.ms.push_back(RunOnce({}));
    }
    if (flags_.profile || !flags_.trace.empty()) {
      RunFlags profiled;
      profiled.profile = &steps_;
      RunOnce(profiled);
      if (!flags_.trace.empty()) traces_ = GatherTraces(steps_, *job_);
    }
  }

  std::vector<Literals> FetchResults() const {
    std::vector<Literals> all;
    for (const auto& device_results : results_) all.push_back(ToLiterals(device_results));
    return all;
  }

  void WriteOutputs(const std::vector<Literals>& results) {
    if (flags_.outputs.empty()) return;
    AtomicFiles files(Fault::kWriteOutput);
    const bool by_rank = partitioned_ && !is_cut_;
    StagePartitioned(files, flags_.outputs, results, *job_, by_rank);
    FaultPause(Fault::kWriteSlow);
    if (by_rank) job_->CheckSame("written", "the state of the outputs");  // no rank's appear without the others'
    files.Commit();
  }

  // The roofs of this device. Once on each machine: then they are kept beside the kernels.
  DeviceSpec MeasureDevice() {
    CompileOptions options = CompileOptionsOf(flags_, progress_);
    options.observe_stage = [this](const std::string&) { progress_.Show("measuring what the device can reach"); };
    const DeviceSpec measured = client_->Measured(options);
    progress_.Clear();
    return measured;
  }

  void PrintReport(const Literals& results) {
    if (job_->rank() != 0) return;
    std::optional<Profile> profile;
    DeviceSpec measured = client_->device().spec;
    if (flags_.profile) {
      if (!steps_.empty()) measured = MeasureDevice();
      profile = ProfileOf(steps_, measured, timing_.ms.empty() ? 0 : 1e3 * timing_.Best());
      std::fputs(ProfileTable(*profile, measured).c_str(), stderr);
    }
    if (!flags_.trace.empty()) WriteFileAtomically(flags_.trace, ChromeTrace(traces_));
    if (flags_.json) {
      std::fputs(JsonReport(*executable_, timing_, client_->device(), results, profile ? &*profile : nullptr, measured)
                     .c_str(),
                 stdout);
    } else {
      std::fputs(HumanReport(*executable_, timing_, client_->device(), results).c_str(), stdout);
    }
    FlushOutput();
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
      if (partitioned_ && !is_cut_)
        Invalid("--reference compares a module for one device; use --expect for {} devices", job_->device_count());
      const hlo::Module& module = ReferenceModule();
      if (flags_.reference == "each" && partitioned_) Invalid("--reference=each runs on one device; use --reference");
      if (flags_.reference == "each") {
        const std::string line =
            FirstDivergence(module, inputs_.front(), *client_, CompileOptionsOf(flags_, progress_), tolerance);
        if (!line.empty()) std::fprintf(stderr, "hlorun: %s\n", line.c_str());
        if (!line.empty()) exit_code = kExitMismatch;
      } else if (!Equal(results.front(),
                        ReferenceResults(module, is_cut_ ? whole_inputs_ : inputs_.front(),
                                         CompileOptionsOf(flags_, progress_)),
                        tolerance, "evaluator")) {
        exit_code = kExitMismatch;
      }
    }
    if (flags_.debug_nans && !partitioned_) {
      const std::string line =
          FirstNan(ReferenceModule(), inputs_.front(), *client_, CompileOptionsOf(flags_, progress_));
      if (!line.empty()) std::fprintf(stderr, "hlorun: %s\n", line.c_str());
      if (!line.empty()) exit_code = kExitMismatch;
    }
    return exit_code;
  }

  std::vector<ArraySlot> WholeResultSlots() const {
    std::vector<ArraySlot> slots = SlotsOf(executable_->result_shapes());
    const std::vector<hlo::Shape> whole = hlo::FlattenShape(source_result_);
    for (size_t i = 0; is_cut_ && i < slots.size(); ++i) slots[i].shape = whole[i];
    return slots;
  }

  const hlo::Module& ReferenceModule() {
    if (module_ == nullptr)
      module_ = std::move(hlo::ReadModulesFromBytes(executable_->module_text(), flags_.file).front());
    return *module_;
  }

  bool Equal(const Literals& actual, const Literals& expected, const Tolerance& tolerance, const char* against) const {
    bool equal = true;
    for (size_t i = 0; i < actual.size(); ++i) {
      const Comparison comparison = Compare(actual[i], expected[i], tolerance);
      if (comparison.equal) continue;
      equal = false;
      std::fprintf(stderr, "hlorun: output %zu differs from the %s value: %s\n", i, against,
                   comparison.message.c_str());
    }
    return equal;
  }

  const Flags& flags_;
  std::shared_ptr<collectives::Job> job_;
  Progress progress_;
  std::shared_ptr<Client> client_;
  std::shared_ptr<Executable> executable_;
  std::shared_ptr<const hlo::Module> module_;           // as it was read
  std::shared_ptr<const hlo::Module> compiled_module_;  // with shardings that were chosen for it; null for a plan
  std::vector<Remark> sharding_remarks_;
  bool partitioned_ = false;                   // one program for several devices
  bool is_cut_ = false;                        // from a module of whole arrays
  std::vector<hlo::Shape> source_parameters_;  // leaves, whole
  hlo::Shape source_result_;
  Literals whole_inputs_;
  SeedOptions seed_;
  std::vector<Literals> inputs_, expected_;  // of each local device
  std::vector<std::vector<Array>> arguments_, results_;
  Timing timing_;
  std::vector<StepTime> steps_;
  std::vector<RankTrace> traces_;  // on rank 0
};

}  // namespace

int RunSession(const Flags& flags, const std::shared_ptr<collectives::Job>& job) { return Session(flags, job).Run(); }

}  // namespace hlorun::cli
