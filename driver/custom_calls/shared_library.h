// C functions of shared libraries as host functions.
#pragma once

#include <memory>
#include <string>

#include "hlo/custom_calls/host_call.h"

namespace hlorun {

// Stays loaded while a function of it is.
class SharedLibrary : public std::enable_shared_from_this<SharedLibrary> {
 public:
  // Throws kNotFound with the loader's reason.
  static std::shared_ptr<SharedLibrary> Open(const std::string& path);
  ~SharedLibrary();
  SharedLibrary(const SharedLibrary&) = delete;
  SharedLibrary& operator=(const SharedLibrary&) = delete;

  // The function `name`, an hlorun_custom_call. Throws kNotFound when the library has none of that name.
  hlo::HostFunction Function(const std::string& name) const;

 private:
  SharedLibrary(std::string path, void* handle) : path_(std::move(path)), handle_(handle) {}
  std::string path_;
  void* handle_;
};

}  // namespace hlorun
