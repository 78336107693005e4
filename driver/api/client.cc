// Client and Executable over the OpenCL backend.
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <map>
#include <memory_resource>
#include <mutex>
#include <set>

#include "backends/collectives/job.h"
#include "backends/collectives/timed_transport.h"
#include "backends/opencl/codegen/emit.h"
#include "backends/opencl/compiler.h"
#include "backends/opencl/runtime/executable.h"
#include "backends/opencl/tuning/kept_roofline.h"
#include "backends/topology/placement.h"
#include "driver/api/array_impl.h"
#include "driver/api/bucketed_executable.h"
#include "driver/api/module_impl.h"
#include "driver/api/sized_arrays.h"
#include "driver/api/tuned_compile.h"
#include "driver/arrays/bounds.h"
#include "hlo/error.h"
#include "hlo/shards.h"
#include "hlo/text/parser.h"
#include "hlorun/hlorun.h"
#include "passes/spmd/auto_shard.h"
#include "passes/spmd/link.h"
#include "passes/spmd/product_parts.h"
#include "passes/spmd/spmd.h"
#include "passes/spmd/uniform_predicates.h"

namespace hlorun {
namespace {

using Clock = std::chrono::steady_clock;

double SecondsSince(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

DeviceDescription Describe(const opencl::Device& device) {
  DeviceDescription description;
  description.platform = device.platform_index();
  description.device = device.device_index();
  description.name = device.spec().name;
  description.platform_name = device.spec().platform;
  description.label = device.Label();
  description.spec = device.spec();
  return description;
}

// What rematerialisation did for a plan that takes too much memory all the same; empty where there was nothing to do.
std::string WhatWasTried(const std::vector<Remark>& remarks) {
  const auto tried = std::find_if(remarks.begin(), remarks.end(), [](const Remark& remark) {
    return remark.subject == Remark::Subject::kMemory && remark.instruction.empty();
  });
  return tried == remarks.end() ? "" : " (" + tried->reason + ")";
}

// What to do where an array's size is not the module's.
std::string SizesAdvice(const Shape& actual, const Shape& declared, size_t argument) {
  for (int64_t d = 0; d < actual.rank(); ++d) {
    if (actual.dimension(d) == declared.dimension(d)) continue;
    return fmt::format(
        "; for sizes that vary, bound the dimension (--bound={}:{}=N), or export it with a named size and let --bucket=pow2 "
        "round it up",
        argument, d);
  }
  return "";
}

const char* KindName(const opencl::Thunk& thunk) {
  static constexpr const char* kNames[] = {"kernel",      "copy", "write",   "collective", "while",
                                           "conditional", "host", "library", "transfer",   "await"};
  static_assert(std::size(kNames) == std::variant_size_v<decltype(thunk.work)>);
  return kNames[thunk.work.index()];
}

StepTime StepTimeOf(const opencl::ThunkTime& time) {
  const opencl::Thunk& thunk = *time.thunk;
  StepTime step{thunk.label, thunk.op_name, KindName(thunk),     time.start_us,   time.end_us,
                thunk.flops, thunk.bytes,   thunk.bytes_written, thunk.arithmetic};
  step.packs = thunk.role == opencl::StepRole::kPacking;
  step.multiplies = thunk.role == opencl::StepRole::kProduct;
  step.by_team = time.by_team;
  const auto* launch = std::get_if<opencl::LaunchThunk>(&thunk.work);
  if (!step.packs || launch == nullptr || step.bytes > 0) return step;
  // The instruction's cost says nothing of its copies: they read and write what they are given.
  for (size_t i = 0; i < launch->arguments.size(); ++i) {
    const auto bytes = static_cast<double>(launch->arguments[i].bytes);
    step.bytes += bytes;
    if (launch->written[i]) step.bytes_written += bytes;
  }
  return step;
}

// Those of `donate` whose arrays are no argument of two devices: each of them would write its result there.
std::vector<bool> DonatedByOne(const std::vector<std::vector<Array>>& arguments, std::vector<bool> donate) {
  std::map<const Array::Impl*, size_t> device_of;
  std::set<const Array::Impl*> of_several;
  for (size_t d = 0; d < arguments.size(); ++d) {
    for (const Array& argument : arguments[d]) {
      const auto [first, is_new] = device_of.emplace(argument.impl().get(), d);
      if (!is_new && first->second != d) of_several.insert(argument.impl().get());
    }
  }
  for (size_t i = 0; i < donate.size(); ++i) {
    for (const std::vector<Array>& of_device : arguments) {
      if (i < of_device.size() && of_several.contains(of_device[i].impl().get())) donate[i] = false;
    }
  }
  return donate;
}

class ExecutableImpl : public Executable {
 public:
  ExecutableImpl(std::unique_ptr<opencl::Executable> executable, std::shared_ptr<opencl::DeviceContext> context,
                 std::shared_ptr<collectives::Job> job, std::shared_ptr<const CustomCallRegistry> custom_calls,
                 const CompileReport& report)
      : executable_(std::move(executable)),
        context_(std::move(context)),
        job_(std::move(job)),
        custom_calls_(std::move(custom_calls)),
        sized_(plan(), context_),
        report_(report) {
    const opencl::CompileStatistics& statistics = executable_->statistics();
    report_.kernels = statistics.kernels;
    report_.kernels_compiled = statistics.kernels_compiled;
    report_.host_thunks = plan().host_thunks;
  }

  std::vector<Array> Run(const std::vector<Array>& arguments, const RunFlags& flags) override {
    if (device_count() == 1) return RunOn(0, arguments, flags, nullptr);
    if (!IsCut()) return RunSharded({arguments}, flags).front();
    std::vector<std::vector<Array>> parts(static_cast<size_t>(job_->local_devices()));
    RunFlags of_parts = flags;
    CheckCount(arguments);
    for (size_t i = 0; i < arguments.size(); ++i) {
      if (arguments[i].impl() == nullptr) RefuseEmpty(i);
      of_parts.whole_shapes.push_back(arguments[i].shape());
      const std::vector<Array>& shards = arguments[i].shards();
      if (!shards.empty()) CheckSharding(i, arguments[i].sharding());
      for (size_t d = 0; d < parts.size(); ++d) parts[d].push_back(shards.empty() ? arguments[i] : shards[d]);
    }
    std::vector<std::vector<Array>> results = RunSharded(parts, of_parts);
    std::vector<Array> whole;
    for (size_t r = 0; r < whole_results_.size(); ++r) {
      std::vector<Array> shards;
      for (std::vector<Array>& device : results) shards.push_back(std::move(device[r]));
      const hlo::Dims whole_dimensions = shards.front().impl()->whole;
      auto impl = std::make_shared<Array::Impl>(
          whole_dimensions.empty() ? whole_results_[r] : Shape(whole_results_[r].element_type(), whole_dimensions));
      if (!whole_dimensions.empty()) impl->bound = whole_results_[r].dimensions();
      impl->shards = std::move(shards);
      impl->sharding = plan().results[r].sharding;
      impl->job = job_;
      whole.push_back(Array(std::move(impl)));
    }
    return whole;
  }

  std::vector<std::vector<Array>> RunSharded(const std::vector<std::vector<Array>>& arguments,
                                             const RunFlags& flags) override {
    const bool partitioned = device_count() > 1;
    const auto local = partitioned ? job_->local_devices() : int64_t{1};
    if (static_cast<int64_t>(arguments.size()) != local) {
      Invalid("this executable runs on {} devices of this process, arguments are given for {}", local,
              arguments.size());
    }
    if (!partitioned) {
      std::vector<std::vector<Array>> results;
      results.push_back(RunOn(0, arguments[0], flags, nullptr));
      return results;
    }
    const std::vector<bool> donate = DonatedByOne(arguments, flags.donate);
    return job_->OnEachLocalDevice<std::vector<Array>>(
        [&](int64_t d, const std::shared_ptr<collectives::Communicator>& c) {
          // One device's steps are enough for a profile; the others would interleave.
          RunFlags own = flags;
          own.donate = donate;
          if (d > 0) own.profile = nullptr;
          return RunOn(d, arguments[static_cast<size_t>(d)], own, c);
        });
  }

  std::vector<Shape> whole_parameter_shapes() const override {
    return IsCut() ? whole_parameters_ : parameter_shapes();
  }
  std::vector<Shape> parameter_shapes() const override {
    return Shapes(plan().parameters, plan().sizes.parameters.size());
  }
  std::vector<Shape> result_shapes() const override {
    return Shapes(plan().results, plan().sizes.results.size() + plan().sizes.whole_results.size());
  }
  std::vector<std::string> parameter_names() const override {
    return Strings([](const opencl::ArrayInfo& p) { return p.name; });
  }
  std::vector<std::string> parameter_op_names() const override {
    return Strings([](const opencl::ArrayInfo& p) { return p.op_name; });
  }
  std::vector<std::string> parameter_shardings() const override {
    return Strings([](const opencl::ArrayInfo& p) { return p.sharding; });
  }
  std::vector<std::string> result_shardings() const override {
    std::vector<std::string> values;
    for (const opencl::ArrayInfo& result : plan().results) values.push_back(result.sharding);
    return values;
  }

  MemoryUse memory() const override {
    const passes::MemoryStatistics& m = plan().memory;
    return {m.arena_bytes, m.argument_bytes, m.constant_bytes, m.result_bytes, m.largest_live_bytes, m.peak_bytes};
  }
  CompileReport report() const override { return report_; }
  int64_t device_count() const override { return plan().replica_count * plan().num_partitions; }
  std::vector<Remark> remarks() const override { return plan().remarks; }
  double flops() const override { return FlopsOf(plan().entry); }
  void Save(const std::string& path) override { opencl::SavePlan(executable_->Save(), path); }
  std::string module_text() const override { return plan().module_text; }
  std::string tuning() const override { return plan().tuning; }
  int64_t resource_creations() const override { return executable_->resource_creations(); }

 private:
  const opencl::Plan& plan() const { return executable_->plan(); }

  // Whether the plan is one device's part of a module of whole arrays; finds the shapes of its whole results.
  bool IsCut() const {
    std::call_once(cut_once_, [&] {
      if (device_count() == 1) return;
      const Module source = Module::FromText(plan().module_text);
      CompileOptions options;
      options.num_partitions = device_count();
      is_cut_ = passes::spmd::NeedsPartitioning(*source.impl()->module, options);
      for (const Shape& leaf : hlo::FlattenShape(source.result_shape())) whole_results_.push_back(leaf.WithoutLayout());
      whole_parameters_ = source.parameter_shapes();
    });
    return is_cut_;
  }

  // Of arguments in parts, where the plan reads sizes: the dimensions of the whole arrays, and that each part is its
  // piece.
  std::vector<hlo::Dims> WholeDimensions(const std::vector<Array>& arguments, const RunFlags& flags,
                                         int64_t device) const {
    if (plan().sizes.parameters.empty() || !IsCut()) return {};
    std::vector<hlo::Dims> whole;
    for (size_t i = 0; i < arguments.size(); ++i) {
      const opencl::ArrayInfo& parameter = plan().parameters[i];
      const hlo::Dims& mine = arguments[i].shape().dimensions();
      const bool is_cut = parameter.shape.dimensions() != whole_parameters_[i].dimensions();
      if (is_cut && flags.whole_shapes.empty()) {
        Invalid(
            "argument {} (%{}) is a part of an array of varying size: say what the whole arrays are (RunFlags::whole_shapes), or "
            "run on arrays in shards",
            i, parameter.name);
      }
      whole.push_back(is_cut ? flags.whole_shapes[i].dimensions() : mine);
      if (!is_cut) continue;
      const std::string what = fmt::format("argument {} (%{})", i, parameter.name);
      CheckBounds(Shape(parameter.shape.element_type(), whole[i]), whole_parameters_[i], what);
      const hlo::Dims part =
          hlo::PartDimensions(whole[i], whole_parameters_[i], hlo::ParseSharding(parameter.sharding), device);
      if (mine == part) continue;
      Invalid("{}: device {} has a part of {}, its part of {} is {}", what, device,
              arguments[i].shape().ToString(false), Shape(parameter.shape.element_type(), whole[i]).ToString(false),
              Shape(parameter.shape.element_type(), part).ToString(false));
    }
    return whole;
  }

  // Keeps with each result what the whole array's dimensions are.
  void KeepWholeDimensions(std::vector<Array>& results, const std::vector<int64_t>& whole_sizes) const {
    if (plan().sizes.results.empty() || !IsCut()) return;
    for (size_t r = 0; r < results.size(); ++r) {
      hlo::Dims& whole = results[r].impl()->whole = whole_results_[r].dimensions();
      for (int64_t d = 0; d < whole_results_[r].rank(); ++d) {
        if (whole_results_[r].is_dynamic_dimension(d)) whole[static_cast<size_t>(d)] = results[r].shape().dimension(d);
      }
    }
    for (size_t i = 0; i < whole_sizes.size(); ++i) {
      const passes::DimensionOfLeaf& d = plan().sizes.whole_results[i];
      results[static_cast<size_t>(d.leaf)].impl()->whole[static_cast<size_t>(d.dimension)] = whole_sizes[i];
    }
  }

  void CheckSharding(size_t argument, const std::string& given) const {
    const opencl::ArrayInfo& parameter = plan().parameters[argument];
    const auto parsed = [](const std::string& text) {
      return text.empty() ? hlo::Sharding{} : hlo::ParseSharding(text);
    };
    if (parsed(given) == parsed(parameter.sharding)) return;
    Invalid(
        "argument {} (%{}) lies as {}, the executable wants {}: make it with FromHost(shape, data, parameter_shardings()[{}])",
        argument, parameter.name, given, parameter.sharding, argument);
  }

  // Of all but the sizes, which come last and are the driver's own.
  static std::vector<Shape> Shapes(const std::vector<opencl::ArrayInfo>& arrays, size_t sizes) {
    std::vector<Shape> shapes;
    for (size_t i = 0; i + sizes < arrays.size(); ++i) shapes.push_back(arrays[i].shape);
    return shapes;
  }
  size_t argument_count() const { return plan().parameters.size() - plan().sizes.parameters.size(); }
  template <typename Field>
  std::vector<std::string> Strings(Field field) const {
    std::vector<std::string> values;
    for (size_t i = 0; i < argument_count(); ++i) values.push_back(field(plan().parameters[i]));
    return values;
  }

  static double FlopsOf(const opencl::Sequence& sequence) {
    double flops = 0;
    for (const opencl::Thunk& thunk : sequence.thunks) {
      flops += thunk.flops;
      if (const auto* loop = std::get_if<opencl::WhileThunk>(&thunk.work)) {
        flops += FlopsOf(*loop->body) * static_cast<double>(std::max<int64_t>(loop->trip_count, 1));
      }
    }
    return flops;
  }

  std::vector<Array> RunOn(int64_t local_device, const std::vector<Array>& arguments, const RunFlags& flags,
                           std::shared_ptr<collectives::Communicator> communicator) {
    CheckArguments(arguments, flags);
    const int64_t device = communicator != nullptr ? job_->first_device() + local_device : 0;
    // Short lists need no allocation.
    std::array<std::byte, 2048> on_stack;
    std::pmr::monotonic_buffer_resource room(on_stack.data(), on_stack.size());
    const std::pmr::vector<opencl::RunArgument> run_arguments =
        sized_.Bind(arguments, flags.donate, WholeDimensions(arguments, flags, device), &room);
    opencl::RunOptions options;
    options.custom_calls = custom_calls_;
    options.channels = flags.channels;
    if (communicator != nullptr) {
      options.replica = device / plan().num_partitions;
      options.partition = device % plan().num_partitions;
      options.communicator = std::move(communicator);
    }
    std::vector<opencl::ThunkTime> times;
    if (flags.profile != nullptr) options.profile = &times;
    std::pmr::vector<opencl::DeviceArray> on_device(plan().results.size(), &room);
    const opencl::EventRef done = executable_->Run(run_arguments, options, on_device);
    // Collectives of two runs must not interleave, a profile is complete only at the end, and without results nobody
    // else learns of an error; but the caller may have yet to give what the program takes from its channels.
    const bool is_unseen = on_device.empty() && flags.channels == nullptr;
    const bool waits = options.communicator != nullptr || flags.profile != nullptr || is_unseen;
    if (waits && done != nullptr) done->Wait();
    SizedArrays::Results measured = sized_.Measure(on_device);
    std::vector<Array> results = std::move(measured.arrays);
    KeepWholeDimensions(results, measured.whole_sizes);
    if (flags.profile != nullptr) {
      for (const opencl::ThunkTime& time : times) flags.profile->push_back(StepTimeOf(time));
    }
    return results;
  }

  void CheckArguments(const std::vector<Array>& arguments, const RunFlags& flags) const {
    const auto& parameters = plan().parameters;
    CheckCount(arguments);
    if (flags.donate.size() > arguments.size()) {
      Invalid("donation is given for {} arguments, there are {}", flags.donate.size(), arguments.size());
    }
    for (size_t i = 0; i < arguments.size(); ++i) {
      if (arguments[i].impl() == nullptr) RefuseEmpty(i);
      if (!arguments[i].impl()->shards.empty()) RefuseShards(i);
      // What follows writes names, which a short run has no time for.
      if (!FitsBounds(arguments[i].shape(), parameters[i].shape)) RefuseShape(i, arguments[i].shape());
    }
    if (!flags.whole_shapes.empty() && flags.whole_shapes.size() != arguments.size()) {
      Invalid("whole shapes are given for {} arguments, there are {}", flags.whole_shapes.size(), arguments.size());
    }
  }

  void CheckCount(const std::vector<Array>& arguments) const {
    if (arguments.size() == argument_count()) return;
    Invalid("the module has {} parameter arrays, {} are given", argument_count(), arguments.size());
  }
  [[noreturn]] void RefuseEmpty(size_t argument) const {
    Invalid("argument {} (%{}) is an empty array", argument, plan().parameters[argument].name);
  }
  [[noreturn]] void RefuseShards(size_t argument) const {
    Invalid(
        "argument {} (%{}) is a whole array in shards where one device's array is wanted: Array::Gather it, or give its shards()",
        argument, plan().parameters[argument].name);
  }

  [[noreturn]] void RefuseShape(size_t argument, const Shape& given) const {
    const opencl::ArrayInfo& parameter = plan().parameters[argument];
    const std::string what = fmt::format("argument {} (%{}{})", argument, parameter.name,
                                         parameter.op_name.empty() ? "" : ", " + parameter.op_name);
    CheckBounds(given, parameter.shape, what);
    const bool differs_in_size =
        given.rank() == parameter.shape.rank() && given.element_type() == parameter.shape.element_type();
    Invalid("{} is {}, the module wants {}{}", what, given.ToString(false), parameter.shape.ToString(false),
            differs_in_size ? SizesAdvice(given, parameter.shape, argument) : "");
  }

  std::unique_ptr<opencl::Executable> executable_;
  std::shared_ptr<opencl::DeviceContext> context_;
  std::shared_ptr<collectives::Job> job_;
  std::shared_ptr<const CustomCallRegistry> custom_calls_;
  SizedArrays sized_;
  CompileReport report_;
  mutable std::once_flag cut_once_;
  mutable bool is_cut_ = false;
  mutable std::vector<Shape> whole_parameters_, whole_results_;  // where it is cut
};

class ClientImpl : public Client, public std::enable_shared_from_this<ClientImpl> {
 public:
  ClientImpl(const ClientOptions& options, std::shared_ptr<collectives::Job> job) {
    std::shared_ptr<opencl::Device> device = opencl::FindDevice(options.device);
    DeviceSpec spec = device->spec();
    if (!options.device_class.empty()) {
      if (options.device_class != "cpu" && options.device_class != "gpu") {
        Invalid("the device class is \"cpu\" or \"gpu\", not \"{}\"", options.device_class);
      }
      // The registers of a GPU's work-item hold one element each.
      if (options.device_class == "gpu" && spec.device_class == DeviceClass::kCpu) spec.vector_bytes = 4;
      spec.device_class = options.device_class == "gpu" ? DeviceClass::kGpu : DeviceClass::kCpu;
    }
    if (!options.device_spec.empty()) spec = DeviceSpec::FromJson(options.device_spec, spec);
    description_ = Describe(*device);
    description_.spec = spec;
    fingerprint_ = device->Fingerprint();
    context_ = opencl::OpenDevice(device, spec);
    opencl::PoolOf(context_)->AllocateFrom(job->shared_heap());
    job_ = std::move(job);
    has_mixed_devices_ = FindMixedDevices();
    is_over_network_ = FindNetwork();
    if (const std::optional<collectives::TimedLink> link = collectives::WantedTimedLink()) {
      passes::spmd::SetLink(description_.spec, {.latency = link->latency, .bandwidth = link->bandwidth});
    }
  }

  const DeviceDescription& device() const override { return description_; }
  const std::shared_ptr<collectives::Job>& job() const override { return job_; }
  using Client::FromHost;

  Module Shard(const Module& module, const CompileOptions& options, std::vector<Remark>* remarks) override {
    const hlo::Module& source = *module.impl()->module;
    const int64_t devices = options.num_partitions > 0 ? options.num_partitions : job_->device_count();
    if (!options.auto_shard || devices == 1 || !passes::CanShardAutomatically(source)) return module;
    const passes::AutoSharder sharder(source, devices);
    const std::string chosen = job_->BroadcastFromFirst([&] {
      CompileOptions own = options;
      own.device_count = devices;
      const opencl::OpenClKernelModel kernels(description_.spec, own);
      passes::PassContext context{description_.spec, own, kernels, {}};
      const size_t plan = sharder.Choose(context);
      if (remarks != nullptr) *remarks = std::move(context.remarks);
      return std::to_string(plan);
    });
    return Module(std::make_shared<const Module::Impl>(Module::Impl{sharder.Annotated(std::stoul(chosen))}));
  }

  std::shared_ptr<Executable> Compile(const Module& given, const CompileOptions& options) override {
    const auto start = Clock::now();
    std::vector<Remark> remarks;
    const Module module = Shard(given, options, &remarks);
    const hlo::Module& source = *module.impl()->module;
    CompileReport report;
    const CompileOptions own = OptionsFor(source, options);
    std::unique_ptr<hlo::Module> marked;
    if (own.device_count > 1 && (has_mixed_devices_ || is_over_network_)) {
      marked = source.Clone();
      if (has_mixed_devices_) marked->frontend_attributes[passes::spmd::kMixedDevices] = "true";
      if (is_over_network_) marked->frontend_attributes[passes::kOverNetwork] = "true";
    }
    TunedCompilation tuned = CompileTuned(marked != nullptr ? *marked : source, own, context_, description_.spec,
                                          BuildOptionsOf(options), *job_, !has_mixed_devices_);
    opencl::CompilerResult& compiled = tuned.compiled;
    report.passes_run = compiled.passes_run;
    report.schedules_measured = tuned.schedules_measured;
    compiled.plan.remarks.insert(compiled.plan.remarks.begin(), remarks.begin(), remarks.end());

    auto executable = opencl::BuildExecutable(std::move(compiled.plan), context_, BuildOptionsOf(options));
    report.compile_s = SecondsSince(start);
    auto result = std::make_shared<ExecutableImpl>(std::move(executable), context_, job_, options.custom_calls, report);
    if (options.memory_limit > 0 && result->memory().peak_bytes > options.memory_limit) {
      Fail(ErrorCode::kResourceExhausted,
           "{} takes {} bytes on each device{}, the limit is {}: cut it for more devices, or raise --memory_limit",
           source.name(), result->memory().peak_bytes, WhatWasTried(result->remarks()), options.memory_limit);
    }
    return result;
  }

  std::shared_ptr<BucketedExecutable> CompileBuckets(const Module& module, const BucketOptions& buckets,
                                                     const CompileOptions& options) override {
    // It compiles as long as it lives, as other executables outlive their client.
    return MakeBucketedExecutable(module, buckets, [self = shared_from_this(), options](const Module& sized) {
      return self->Compile(sized, options);
    });
  }

  std::shared_ptr<Executable> Load(const std::string& plan_path, const CompileOptions& options,
                                   bool recompile) override {
    const auto start = Clock::now();
    opencl::SavedPlan saved = opencl::LoadPlan(plan_path);
    if (recompile) return Compile(Module::FromText(saved.plan.module_text, plan_path), options);
    // Behind it the form of the programs, which BuildExecutable compares.
    if (!saved.fingerprint.starts_with(fingerprint_)) {
      Fail(
          ErrorCode::kFailedPrecondition,
          "{} was made for another device or driver: it wants \"{}\", this is \"{}\"; --recompile rebuilds it from the "
          "module inside",
          plan_path, saved.fingerprint, fingerprint_);
    }
    const int64_t devices = saved.plan.replica_count * saved.plan.num_partitions;
    // k x N partitions on N ranks: k a rank, as for a module.
    const int64_t ranks = job_->rank_count();
    if (ranks > 1 && job_->local_devices() == 1 && devices > ranks && devices % ranks == 0)
      job_->DriveDevices(devices / ranks);
    CheckDevices(saved.plan.module_name, devices);
    auto executable = opencl::BuildExecutable(std::move(saved), context_, BuildOptionsOf(options));
    CompileReport report;
    report.compile_s = SecondsSince(start);
    return std::make_shared<ExecutableImpl>(std::move(executable), context_, job_, options.custom_calls, report);
  }

  DeviceSpec Measured(const CompileOptions& options) override {
    return opencl::MeasuredSpec(context_, BuildOptionsOf(options), options.observe_stage);
  }

  Array FromHost(const Shape& shape, const void* data) override {
    opencl::DeviceMemory memory = opencl::PoolOf(context_)->Allocate(shape.ByteSize(), shape.ToString(false));
    if (shape.ByteSize() > 0) opencl::CopyToDevice(context_, data, memory, shape.ByteSize());
    return MakeArray(opencl::DeviceArray{shape.WithoutLayout(), std::move(memory), nullptr}, context_);
  }

  Array Wrap(const Shape& shape, const void* data, std::shared_ptr<const void> owner) override {
    // The kernels' widest aligned access; memory that is less aligned is copied.
    const bool aligned =
        reinterpret_cast<uintptr_t>(data) % static_cast<uintptr_t>(description_.spec.buffer_alignment) == 0;
    if (!description_.spec.raw_pointers || !aligned || shape.ByteSize() == 0) return FromHost(shape, data);
    opencl::DeviceMemory memory =
        opencl::DeviceMemory::Wrap(const_cast<void*>(data), shape.ByteSize(), std::move(owner));
    return MakeArray(opencl::DeviceArray{shape.WithoutLayout(), std::move(memory), nullptr}, context_);
  }

 private:
  // A module for several devices runs on all of the job's; any other runs replicated on each.
  CompileOptions OptionsFor(const hlo::Module& module, CompileOptions options) const {
    options.device_count = module.replica_count * module.num_partitions;
    if (passes::spmd::NeedsPartitioning(module, options)) {
      // One device computes the whole program, whatever it is annotated for.
      options.num_partitions = job_->device_count() == 1 ? 1 : passes::spmd::PartitionsFor(module, options);
      options.device_count = module.replica_count * options.num_partitions;
    }
    CheckDevices(module.name(), options.device_count);
    return options;
  }

  void CheckDevices(const std::string& name, int64_t wanted) const {
    if (wanted > 1 && wanted != job_->device_count()) {
      Invalid(
          "{} is for {} devices (replica_count x num_partitions), the job has {}: run it with mpirun -n {} or --devices={}",
          name, wanted, job_->device_count(), wanted, wanted);
    }
  }

  // Whether another rank's device or driver is of another kind: then the same arithmetic need not give the same bits.
  bool FindMixedDevices() {
    if (job_->rank_count() == 1) return false;
    const std::string first = job_->BroadcastFromFirst([&] { return fingerprint_; });
    return OverAll(hlo::Opcode::kMaximum, kSetupSequence,
                   [&](const collectives::Communicator&) { return first != fingerprint_; });
  }
  // Whether all devices see a network between them: all come to the same answer.
  bool FindNetwork() {
    if (job_->device_count() == 1) return false;
    return OverAll(hlo::Opcode::kMinimum, kSetupSequence + 1,
                   [](collectives::Communicator& communicator) { return communicator.transport().is_network(); });
  }
  // The largest or smallest of what all devices say.
  template <typename Say>
  bool OverAll(hlo::Opcode opcode, int64_t sequence, const Say& say) {
    std::vector<int64_t> all(static_cast<size_t>(job_->device_count()));
    for (size_t d = 0; d < all.size(); ++d) all[d] = static_cast<int64_t>(d);
    return job_->OnEachLocalDevice<uint32_t>(
                   [&](int64_t, const std::shared_ptr<collectives::Communicator>& communicator) {
                     const auto own = static_cast<uint32_t>(say(*communicator));
                     uint32_t any = 0;
                     communicator->AllReduce(all, std::as_bytes(std::span(&own, 1)),
                                             std::as_writable_bytes(std::span(&any, 1)),
                                             {opcode, ElementType::kU32, nullptr}, sequence);
                     return any;
                   })
               .front() != 0;
  }
  static constexpr int64_t kSetupSequence = 1 << 11;

  static opencl::BuildOptions BuildOptionsOf(const CompileOptions& options) {
    return {options.compile_threads, options.use_disk_cache, options.cache_dir, options.observe_kernels};
  }

  DeviceDescription description_;
  std::string fingerprint_;
  std::shared_ptr<opencl::DeviceContext> context_;
  std::shared_ptr<collectives::Job> job_;
  bool has_mixed_devices_ = false;
  bool is_over_network_ = false;
};

// A job of the caller's communicator ends, on all ranks together, with the last that uses it.
std::shared_ptr<collectives::Job> JobOf(const ClientOptions& options) {
  if (options.job != nullptr) return options.job;
  if (options.communicator.bytes() == 0) return collectives::Job::InProcess(options.devices);
  // Before the OpenCL loader: the runtimes count cores when they are loaded.
  topology::PlaceProcess();
  std::shared_ptr<collectives::Job> job = collectives::Job::OverCommunicator(
      options.communicator.get(), options.communicator.bytes(), options.devices, options.heartbeat);
  collectives::Job* raw = job.get();
  return {raw, [job = std::move(job)](collectives::Job*) mutable {
            try {
              job->Finish(0);
            } catch (const Error& error) {
              std::fprintf(stderr, "hlorun: %s\n", error.what());
            }
            job.reset();
          }};
}

}  // namespace

std::shared_ptr<Client> Client::Create(const ClientOptions& options) {
  std::shared_ptr<collectives::Job> job = JobOf(options);
  return std::make_shared<ClientImpl>(options, std::move(job));
}

std::vector<DeviceDescription> Client::ListDevices() {
  std::vector<DeviceDescription> descriptions;
  for (const auto& device : opencl::ListDevices()) descriptions.push_back(Describe(*device));
  return descriptions;
}

}  // namespace hlorun
