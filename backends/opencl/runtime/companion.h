// hlorun's own small programs, which it runs as processes of their own.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace hlorun::opencl {

// The path of `name`, beside this code (a build folder, bin/, lib/), where it was built or where it was installed; the
// environment variable `variable` says otherwise. Empty when there is none.
std::string CompanionProgram(const std::string& name, const char* variable);

// Starts `command` without input and output. -1 when it cannot be started; the caller waits for it.
pid_t Start(std::vector<std::string> command);

}  // namespace hlorun::opencl
