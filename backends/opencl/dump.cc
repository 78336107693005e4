#include "backends/opencl/dump.h"

#include <atomic>
#include <filesystem>
#include <fstream>
#include <regex>

#include "hlo/error.h"
#include "hlo/text/printer.h"

namespace hlorun::opencl {

Dump::Dump(std::string folder, std::string pass_re, const std::string& module_name)
    : folder_(std::move(folder)), pass_re_(std::move(pass_re)) {
  if (folder_.empty()) return;
  std::error_code error;
  std::filesystem::create_directories(folder_, error);
  if (error) Invalid("cannot make the dump folder {}: {}", folder_, error.message());
  try {
    std::regex checked(pass_re_);
  } catch (const std::regex_error& e) {
    Invalid("--dump_pass_re={} is no regular expression: {}", pass_re_, e.what());
  }
  static std::atomic<int> modules{0};
  std::string name = module_name;
  std::replace(name.begin(), name.end(), '/', '_');
  prefix_ = fmt::format("{}/module_{:04}.{}", folder_, modules++, name);
}

void Dump::Write(const std::string& suffix, const std::string& text) const {
  const std::string path = prefix_ + "." + suffix;
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << text;
  file.close();
  if (!file) Invalid("cannot write the dump {}", path);
}

void Dump::Module(const hlo::Module& module, const std::string& stage) const {
  if (enabled()) Write(stage + ".txt", hlo::PrintModule(module));
}

void Dump::AfterPass(const hlo::Module& module, const std::string& pass) {
  ++pass_number_;
  if (!enabled() || pass_re_.empty() || !std::regex_search(pass, std::regex(pass_re_))) return;
  Write(fmt::format("{:04}.after_{}.txt", pass_number_, pass), hlo::PrintModule(module));
}

void Dump::Buffers(const passes::BufferAssignment& buffers) const {
  if (enabled()) Write("buffer-assignment.txt", buffers.ToString());
}

void Dump::PlanAndKernels(const Plan& plan) const {
  if (!enabled()) return;
  Write("plan.txt", plan.ToString());
  for (const Kernel& kernel : plan.kernels) {
    Write(kernel.name + ".kir", kernel.kernel_ir);
    Write(kernel.name + ".cl", kernel.source);
  }
}

}  // namespace hlorun::opencl
