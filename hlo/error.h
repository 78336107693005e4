// The one exception type of hlorun.
//
// A message is one line for the user: what is wrong, where, and what to do about it. Where the fault lies in a file of
// the user's, the location names it; what() then reads "graph.hlo:12:18: error: ...".
#pragma once

#include <fmt/format.h>

#include <stdexcept>
#include <string>
#include <utility>

namespace hlorun {

enum class ErrorCode {
  kInvalidArgument,     // the caller's text, arrays, flags or options are wrong
  kNotFound,            // a file, device or platform is missing
  kUnimplemented,       // valid HLO that hlorun does not run (yet)
  kFailedPrecondition,  // the environment does not fit: launcher, driver version, saved plan
  kResourceExhausted,   // memory or disk is full
  kDataLoss,            // a stored file is corrupt
  kAborted,             // a peer rank failed, or a signal arrived
  kInternal,            // a bug of hlorun
};

// A place in a file of the user's. line and column count from 1; 0 means unknown.
struct SourceLocation {
  std::string file;
  int line = 0;
  int column = 0;
  std::string excerpt;  // the line itself with a caret under the column, or empty
};

class Error : public std::runtime_error {
 public:
  Error(ErrorCode code, const std::string& message, SourceLocation location = {});

  ErrorCode code() const { return code_; }
  const std::string& message() const { return message_; }  // without the location
  const SourceLocation& location() const { return location_; }

 private:
  ErrorCode code_;
  std::string message_;
  SourceLocation location_;
};

const char* ErrorCodeName(ErrorCode code);

template <typename... Args>
[[noreturn]] void Fail(ErrorCode code, fmt::format_string<Args...> format, Args&&... args) {
  throw Error(code, fmt::format(format, std::forward<Args>(args)...));
}

// The caller gave something wrong.
template <typename... Args>
[[noreturn]] void Invalid(fmt::format_string<Args...> format, Args&&... args) {
  throw Error(ErrorCode::kInvalidArgument, fmt::format(format, std::forward<Args>(args)...));
}

[[noreturn]] void FailCheck(const char* condition, const char* file, int line);

}  // namespace hlorun

// For invariants of hlorun itself: a failure is a bug, reported as ErrorCode::kInternal.
#define HLORUN_CHECK(condition)                                            \
  do {                                                                     \
    if (!(condition)) ::hlorun::FailCheck(#condition, __FILE__, __LINE__); \
  } while (false)
