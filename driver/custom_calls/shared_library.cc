#include "driver/custom_calls/shared_library.h"

#include <dlfcn.h>

#include <array>
#include <vector>

#include "hlo/error.h"
#include "hlorun/custom_call.h"

namespace hlorun {
namespace {

std::vector<hlorun_array> Described(std::span<const hlo::HostArray> arrays) {
  std::vector<hlorun_array> list;
  for (const hlo::HostArray& array : arrays) {
    list.push_back({array.data, hlo::ElementTypeName(array.shape.element_type()).data(), array.shape.rank(),
                    array.shape.dimensions().data(), array.shape.ElementCount(), array.shape.ByteSize()});
  }
  return list;
}

void Call(hlorun_custom_call function, const hlo::HostCall& call) {
  const std::string target(call.target), config(call.config);
  const std::vector<hlorun_array> operands = Described(call.operands), results = Described(call.results);
  std::array<char, 1024> message{};
  hlorun_call c = {};
  c.struct_size = sizeof(c);
  c.target = target.c_str();
  c.backend_config = config.c_str();
  c.operand_count = static_cast<int64_t>(operands.size());
  c.operands = operands.data();
  c.result_count = static_cast<int64_t>(results.size());
  c.results = results.data();
  c.error = message.data();
  c.error_size = message.size();
  const int status = function(&c);
  message.back() = '\0';
  if (status != 0) {
    Fail(ErrorCode::kAborted, "custom-call target \"{}\" failed with {}: {}", target, status,
         message[0] == '\0' ? "no message" : message.data());
  }
}

}  // namespace

std::shared_ptr<SharedLibrary> SharedLibrary::Open(const std::string& path) {
  void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) Fail(ErrorCode::kNotFound, "the library {} does not load: {}", path, dlerror());
  return std::shared_ptr<SharedLibrary>(new SharedLibrary(path, handle));
}

SharedLibrary::~SharedLibrary() { dlclose(handle_); }

hlo::HostFunction SharedLibrary::Function(const std::string& name) const {
  const auto function = reinterpret_cast<hlorun_custom_call>(dlsym(handle_, name.c_str()));
  if (function == nullptr) Fail(ErrorCode::kNotFound, "the library {} has no function {}", path_, name);
  return [library = shared_from_this(), function](const hlo::HostCall& call) { Call(function, call); };
}

}  // namespace hlorun
