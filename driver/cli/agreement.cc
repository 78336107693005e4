#include "driver/cli/agreement.h"

#include "backends/opencl/runtime/cache_directory.h"
#include "hlo/error.h"
#include "hlo/reader.h"

namespace hlorun::cli {
namespace {

std::string DigestOf(const std::string& bytes) {
  return fmt::format("{} bytes, hash {}", bytes.size(), opencl::HashText(bytes));
}

}  // namespace

void CheckSameFlags(const Flags& f, collectives::Job& job) {
  // One line a flag, as the user would write it. A profile costs one run more, on every rank.
  std::string text;
  const auto add = [&](const char* name, const auto& value) { text += fmt::format("--{}={}\n", name, value); };
  add("devices_per_rank", f.devices_per_rank);
  add("heartbeat", f.heartbeat);
  add("iterations", f.iterations);
  add("warmup", f.warmup);
  add("compile_only", f.compile_only);
  add("seed", f.seed);
  add("normal", f.normal);
  add("constant_params", f.constant_params);
  add("integers", f.integers);
  add("queued", f.queued);
  add("vary_inputs", f.vary_inputs);
  add("fill_elided", f.fill_elided);
  add("inputs", f.inputs.empty() ? "(none)" : "(given)");
  add("recompile", f.recompile);
  add("dot_library", f.dot_library);
  add("autotune", f.autotune);
  add("tuning", f.tuning.empty() ? "(none)" : "(given)");
  add("profile", f.profile);
  add("trace", f.trace.empty() ? "(none)" : "(given)");
  add("outputs", f.outputs.empty() ? "(none)" : "(given)");
  add("list_devices", f.list_devices);
  add("auto_shard", f.auto_shard);
  add("num_partitions", f.num_partitions);
  add("mesh", f.mesh);
  add("in_shardings", f.in_shardings);
  add("out_shardings", f.out_shardings);
  add("memory_limit", f.memory_limit);
  add("size", fmt::format("{}", fmt::join(f.sizes, ",")));
  add("bound", fmt::format("{}", fmt::join(f.bounds, ",")));
  add("bucket", f.bucket);
  add("strict", f.strict);
  add("branches", f.branches);
  add("custom_calls", f.custom_calls.empty() ? "(none)" : "(given)");
  job.CheckSame(text, "the command line");
}

std::string ReadSameFile(const std::string& path, collectives::Job& job) {
  std::string bytes = job.BroadcastFromFirst([&] { return hlo::ReadFileOrStdin(path); });
  if (job.rank_count() == 1) return bytes;
  const std::string first_path = job.BroadcastFromFirst([&] { return path; });
  job.CheckSame(DigestOf(path == first_path ? bytes : hlo::ReadFileOrStdin(path)), "the module");
  return bytes;
}

void CheckSameModule(const std::string& text, collectives::Job& job) {
  if (job.rank_count() > 1) job.CheckSame(DigestOf(text), "the module");
}

}  // namespace hlorun::cli
