#include "driver/api/tuned_compile.h"

#include "backends/opencl/kernels/tuning_record.h"
#include "backends/opencl/runtime/device_context.h"
#include "backends/opencl/tuning/tuner.h"
#include "backends/opencl/tuning/tuning_files.h"

namespace hlorun {
namespace {

using opencl::TuningRecord;

// By default where measuring is cheap and rules know least: on a GPU, not on a CPU that plays one.
Autotune EffortOf(const CompileOptions& options, const DeviceSpec& spec, const opencl::Device& device) {
  if (options.autotune != Autotune::kAuto) return options.autotune;
  const bool is_gpu = spec.device_class == DeviceClass::kGpu && device.spec().device_class == DeviceClass::kGpu;
  return is_gpu ? Autotune::kQuick : Autotune::kOff;
}

// What `make` says on the first rank, on all of them where `is_shared`.
template <typename Make>
TuningRecord FromFirst(bool is_shared, collectives::Job& job, const DeviceSpec& spec, const Make& make) {
  if (!is_shared) return make();
  const std::string text = job.BroadcastFromFirst([&] { return make().ToJson(); });
  return TuningRecord::FromJson(text, spec, "the first rank's choices of schedules");
}

}  // namespace

TunedCompilation CompileTuned(const hlo::Module& module, const CompileOptions& options,
                              const std::shared_ptr<opencl::DeviceContext>& context, const DeviceSpec& spec,
                              const opencl::BuildOptions& build, collectives::Job& job, bool may_measure) {
  const Autotune effort = may_measure ? EffortOf(options, spec, context->device()) : Autotune::kOff;
  TunedCompilation result;
  if (effort == Autotune::kOff && options.tuning_file.empty()) {
    result.compiled = opencl::CompileModule(module, spec, options, options.observe_stage);
    return result;
  }
  const bool is_shared = options.device_count > 1 && job.rank_count() > 1;
  const opencl::Tuner tuner(context, build);
  auto record = std::make_shared<TuningRecord>(FromFirst(is_shared, job, spec, [&] {
    TuningRecord known = effort == Autotune::kOff ? TuningRecord(spec) : tuner.Kept();
    if (!options.tuning_file.empty()) known.Merge(opencl::ReadTuning(options.tuning_file, spec));
    return known;
  }));
  CompileOptions own = options;
  own.tuned = record;
  result.compiled = opencl::CompileModule(module, spec, own, options.observe_stage);
  if (!tuner.IsWanted(result.compiled.products, effort, *record)) return result;

  if (options.observe_stage) options.observe_stage("autotune");
  own.tuned = std::make_shared<TuningRecord>(FromFirst(is_shared, job, spec, [&] {
    TuningRecord tuned = *record;
    result.schedules_measured = tuner.Tune(result.compiled.products, effort, tuned);
    return tuned;
  }));
  const int64_t passes_run = result.compiled.passes_run;
  result.compiled = opencl::CompileModule(module, spec, own, options.observe_stage);
  result.compiled.passes_run += passes_run;
  return result;
}

}  // namespace hlorun
