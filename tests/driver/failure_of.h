// What a call of the C++ API says is wrong.
#pragma once

#include <functional>
#include <string>

#include "hlorun/hlorun.h"

namespace hlorun {

// The message of the Error that `body` throws, with its place; "no error" where it throws none.
inline std::string FailureOf(const std::function<void()>& body) {
  try {
    body();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace hlorun
