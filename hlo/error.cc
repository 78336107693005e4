#include "hlo/error.h"

namespace hlorun {
namespace {

std::string WithLocation(const std::string& message, const SourceLocation& location) {
  std::string text;
  if (!location.file.empty()) text += location.file + ":";
  if (location.line > 0) text += fmt::format("{}:", location.line);
  if (location.column > 0) text += fmt::format("{}:", location.column);
  if (!text.empty()) text += " error: ";
  text += message;
  if (!location.excerpt.empty()) text += "\n" + location.excerpt;
  return text;
}

}  // namespace

Error::Error(ErrorCode code, const std::string& message, SourceLocation location)
    : std::runtime_error(WithLocation(message, location)),
      code_(code),
      message_(message),
      location_(std::move(location)) {}

const char* ErrorCodeName(ErrorCode code) {
  switch (code) {
    case ErrorCode::kInvalidArgument: return "invalid argument";
    case ErrorCode::kNotFound: return "not found";
    case ErrorCode::kUnimplemented: return "unimplemented";
    case ErrorCode::kFailedPrecondition: return "failed precondition";
    case ErrorCode::kResourceExhausted: return "resource exhausted";
    case ErrorCode::kDataLoss: return "data loss";
    case ErrorCode::kAborted: return "aborted";
    case ErrorCode::kInternal: return "internal";
  }
  return "unknown";
}

void FailCheck(const char* condition, const char* file, int line) {
  throw Error(ErrorCode::kInternal,
              fmt::format("internal error: {} does not hold ({}:{}); please report this with the module", condition,
                          file, line));
}

}  // namespace hlorun
